"""The nine tasks of an assessor, a researcher and a RAG team, done in a real browser.

PYTHONPATH=tests python benchmarks/nine_tasks.py COLLECTION --files FILE... [--task NAME]
                                                 [--keyboard] [--pictures FOLDER]

Prints the actions of each task (clicks and keys, as one word typed is as many keys as it has
letters) and the seconds of the machine; each task ends with a look at the state that it reached, in
the collection where it changed something. Works on a copy, with headless Chromium by Playwright.
COLLECTION needs grades from 0 to 5 and two systems; the FILES make a new exam (those of the tour:
queries.tsv, bank.csv, answers.csv). With `--keyboard` nothing is clicked: what would be is reached
by Tab, and Enter presses it. With `--pictures`, the new exam is drawn as for the documentation.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, Locator, Page, sync_playwright
from support.servers import FaultServer

from exampp import Collection
from exampp.web.live_collection import LiveCollection
from exampp.web.page_request import AREAS, PLACES
from exampp.web.people import People
from exampp.web.serving import created_if_new, listen, prepare

DISPUTES = 9
CELLS = 30
WORST = 5
FARTHEST = 500
"""Presses of Tab until something counts as out of reach."""
SETTLES = 300
"""Milliseconds until a page that was asked for by a key has begun to load."""
PATIENCE = 120_000
"""Milliseconds until something that is waited for counts as missing."""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1440, 900
WHO = "cas"
EARLIER = "last.exam"
RELOADS = 100
"""Times that a page is loaded again until it shows the newest decisions."""


class NotReached(Exception):
    """A task did not reach its state."""


def check(holds: object, seen: object) -> None:
    """Raise NotReached with what was seen instead, unless the state holds."""
    if not holds:
        raise NotReached(str(seen)[:400])


@dataclass
class Hand:
    """A person's hand on a page: counts what it clicks and types; without a mouse, all by keys."""

    browser: Browser
    page: Page
    path: Path
    keyboard: bool = False
    pictures: Path | None = None
    clicks: int = 0
    keys: int = 0

    def click(self, what: Locator) -> None:
        """Click, and wait until what it leads to is there."""
        if self.keyboard:
            self.reach(what)
            self.press("Enter")
            self.page.wait_for_timeout(SETTLES)
        else:
            self.clicks += 1
            what.click()
        self.page.wait_for_load_state()

    def reach(self, what: Locator) -> None:
        """Press Tab until something has the focus, and shows that it has."""
        what.wait_for(state="attached")
        for _ in range(FARTHEST):
            if what.evaluate("one => one === document.activeElement"):
                break
            self.press("Tab")
        else:
            raise AssertionError(f"no key leads to {what}")
        if not what.evaluate("one => getComputedStyle(one).outlineStyle !== 'none'"):
            raise AssertionError(f"nobody sees that {what} has the focus")

    def press(self, key: str) -> None:
        """Press a key."""
        self.keys += 1
        self.page.keyboard.press(key)

    def type(self, what: Locator, text: str) -> None:
        """Type into a field."""
        what.fill(text)
        self.keys += len(text)

    def to(self, name: str) -> None:
        """Through the navigation: the area of a page, then the page."""
        area = next(one.area for one in PLACES if one.name == name)
        steps = [("Areas", area), (f"Pages of {area}", name)]
        for region, link in steps[: 1 if AREAS[area].name == name else 2]:
            within = self.page.get_by_role("navigation", name=region, exact=True)
            self.click(within.get_by_role("link", name=link, exact=True))

    def decide(self, key: str) -> None:
        """Press a key that decides the cell, and wait for the next one."""
        cell = self.page.locator("#stage [name=cell]").input_value()
        self.press(key)
        self.page.wait_for_function(
            "cell => !document.querySelector('#stage [name=cell]') || "
            "document.querySelector('#stage [name=cell]').value !== cell",
            arg=cell,
        )

    def draw(self, name: str) -> None:
        """Draw the window as it is, if pictures are wanted."""
        if self.pictures is not None:
            self.page.screenshot(path=self.pictures / f"{name}.png")


def judge(hand: Hand) -> str:
    """Judge 30 cells of the queue."""
    hand.press("g")
    hand.press("j")
    hand.page.wait_for_url("**/queue")
    hand.click(hand.page.get_by_role("link", name="Judge these"))
    for number in range(CELLS):
        hand.decide(str(number % 6))
    hand.page.wait_for_function(
        "n => document.querySelector('#progress b').textContent == n", arg=str(CELLS)
    )
    with Collection(hand.path) as collection:
        decided = len(collection.decisions.list(author=WHO))
    check(decided == CELLS, decided)
    return f"{decided} decisions in the collection"


def quote(hand: Hand) -> str:
    """See why one system beats another, to the sentence in the passage."""
    page = hand.page
    hand.click(page.locator("table.board .system a.title").last)
    hand.click(page.locator(".bars tbody th .title").first)
    mark = page.locator(".versus mark").first
    mark.wait_for()
    side = page.locator(".side", has=page.locator("mark")).first
    text = side.locator("mark").text_content() or ""
    address = side.locator("a.id").get_attribute("href") or ""
    place = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    with Collection(hand.path) as collection:
        dossier = next(collection.grades().dossiers([place["query"]]))
        passage = dossier.texts[dossier.grades.passage_ids.index(place["passage"])]
    check(passage and text and text in passage.text, text)
    return f"“{text[:50]}”"


def worst(hand: Hand) -> str:
    """Look at the five worst questions, and reword the first."""
    page = hand.page
    hand.to("Items")
    hand.click(page.get_by_role("link", name="Worst", exact=True))
    for number in range(WORST):
        hand.click(page.locator("tbody tr:not(.opened) th .title").nth(number))
        page.locator("tr.opened").first.wait_for()
    hand.click(page.locator("tr.opened").get_by_role("link", name="Edit in the bank").first)
    area = page.locator("textarea").first
    hand.type(area, f"{area.input_value()} In which year?")
    hand.click(page.get_by_role("button", name="Save"))
    page.get_by_text("In which year?").first.wait_for(state="attached")
    with Collection(hand.path) as collection:
        row = collection.bank().log().rows[-1]
    check(row[2] == WHO and "In which year?" in " ".join(map(str, row)), row)
    return f"edit {row[0]}: {row[3]}"


def settle(hand: Hand) -> str:
    """Settle all disputes."""
    hand.to("Disputes")
    hand.click(hand.page.get_by_role("link", name="Adjudicate by keyboard"))
    for _ in range(DISPUTES - 1):
        hand.decide("4")
    hand.press("4")
    # the page leaves when every decision is stored
    hand.page.get_by_text("No disputes").wait_for()
    with Collection(hand.path) as collection:
        left = collection.decisions.disputes()
    check(not left, left)
    return f"{DISPUTES} settled, none left"


def believe(hand: Hand) -> str:
    """Read whether the leaderboard can be believed."""
    page = hand.page
    began = time.monotonic()
    hand.to("Trust")
    page.locator(".answers li").first.wait_for()
    page.wait_for_function("() => !document.querySelector('.answers [role=status]')")
    seconds = time.monotonic() - began
    questions = page.locator(".answers li")
    answers = [one.locator("p").first.inner_text() for one in questions.all()]
    check(len(answers) >= 6 and all(answers), answers)
    doubts = page.locator(".answers .tag.warn").count()
    return f"{len(answers)} answers after {seconds:.1f} s, {doubts} doubts"


def share(hand: Hand) -> str:
    """Send one file; a colleague finds a query, reads, decides, and sends the decision back."""
    page = hand.page
    folder = hand.path.parent
    with page.expect_download() as download:
        hand.click(page.get_by_role("link", name="page to send"))
    sent = folder / "result.html"
    download.value.save_as(sent)
    with another(hand.browser) as colleague:
        theirs = replace(hand, page=colleague, clicks=0, keys=0)
        colleague.goto(sent.as_uri())
        colleague.wait_for_selector("#explore[data-ready]")
        rows = colleague.locator("#explore .rows").nth(1).locator("tbody tr:visible th button")
        name = rows.first.inner_text()
        theirs.type(colleague.get_by_label("Find queries"), name[:12])
        theirs.click(rows.first)
        theirs.click(colleague.locator("details.item summary").first)
        answer = colleague.locator(".answer").first
        theirs.click(answer.get_by_role("button", name="2", exact=True))
        theirs.type(colleague.get_by_label("Your name"), "dora")
        with colleague.expect_download() as decisions:
            theirs.click(colleague.locator("#explore-save"))
        back = folder / "decisions.json"
        decisions.value.save_as(back)
    hand.clicks, hand.keys = hand.clicks + theirs.clicks, hand.keys + theirs.keys
    hand.to("Files")
    hand.page.get_by_label("Drop files here").set_input_files(back)
    hand.clicks += 1
    hand.click(page.get_by_role("button", name="Add files"))
    hand.click(page.get_by_role("button", name="Import"))
    page.get_by_text("Imported").first.wait_for()
    with Collection(hand.path) as collection:
        made = collection.decisions.list(author="dora")
    check([one.decision.rating for one in made] == [2], made)
    return f"{sent.stat().st_size / 1e6:.1f} MB sent, one decision came back"


def versions(hand: Hand) -> str:
    """See what changed since an earlier copy of the exam."""
    if not any(one.name == "Changes" for one in PLACES):
        return "absent: no page compares two versions"
    page, earlier = hand.page, hand.path.with_name(EARLIER)
    hand.to("Changes")
    upload = page.locator("details", has_text="Upload an earlier copy")
    if upload.get_attribute("open") is None:
        hand.click(upload.locator("summary"))
    page.locator("#file").set_input_files(earlier)
    hand.clicks += 1
    hand.click(page.get_by_role("button", name="Upload and compare"))
    page.get_by_role("heading", name=f"Changes since {EARLIER}").wait_for()
    with Collection(hand.path) as collection:
        headline = collection.grades().changes(earlier).headline
    for _ in range(RELOADS):
        shown = page.locator(".answer").first.inner_text()
        if " ".join(shown.split()) == " ".join(headline.split()):
            break
        # scores are computed again a moment after decisions
        page.wait_for_timeout(SETTLES)
        page.reload()
    check(" ".join(shown.split()) == " ".join(headline.split()), (shown, headline))
    return headline[:60]


@contextmanager
def another(browser: Browser) -> Iterator[Page]:
    """The browser of somebody else, who has no access to the server."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


# ---- a new exam ----------------------------------------------------------------------------------


def from_nothing(hand: Hand, files: list[Path]) -> str:
    """Make a leaderboard from files."""
    page = hand.page
    hand.draw("start")
    page.get_by_label("Drop files here").set_input_files(files)
    hand.clicks += 1
    hand.click(page.get_by_role("button", name="Add files"))
    hand.draw("files")
    hand.click(page.get_by_role("button", name="Import"))
    hand.to("Leaderboard")
    hand.click(page.get_by_role("link", name="Choose a grader"))
    page.locator("#grader").select_option("draft")
    hand.clicks += 1
    hand.click(page.get_by_role("button", name="Show the price"))
    page.locator("#price section").wait_for()
    hand.click(page.get_by_role("button", name="Start grading"))
    hand.click(page.get_by_role("link", name="Open the leaderboard"))
    page.locator("table.board tbody tr").first.wait_for()
    systems = page.locator("table.board tbody tr").count()
    with Collection(hand.path) as collection:
        known = collection.grades().gradebook.systems
    check(systems == len(known), known)
    return f"{systems} systems on the leaderboard"


def watch(hand: Hand, url: str) -> str:
    """Watch a run of a model, stop it and resume it."""
    page = hand.page
    hand.to("Runs")
    hand.click(page.get_by_role("link", name="Grade", exact=True))
    hand.type(page.get_by_label("Model", exact=True), "tiny")
    hand.type(page.get_by_label("Address of the server"), url)
    hand.type(page.get_by_label("Price of a million input"), "0.15")
    hand.type(page.get_by_label("Price of a million output"), "0.6")
    hand.click(page.locator(".of-model summary", has_text="More options"))
    hand.type(page.get_by_label("Concurrency"), "4")
    hand.click(page.get_by_role("button", name="Show the price"))
    page.locator("#price section").wait_for()
    page.locator("#price").scroll_into_view_if_needed()
    hand.draw("price")
    hand.click(page.get_by_role("button", name="Start grading"))
    run = page.locator(".run").first
    run.locator(".row", has_text=" left").wait_for()
    hand.draw("runs")
    hand.click(run.get_by_role("button", name="Stop"))
    run.locator(".tag", has_text="stopped").wait_for()
    with Collection(hand.path) as collection:
        before = graded(collection)
    hand.click(run.get_by_role("button", name="Resume"))
    run.locator(".tag", has_text="finished").wait_for(timeout=600_000)
    with Collection(hand.path) as collection:
        after = graded(collection)
    check(0 < before[0] < before[1] == after[0] == after[1], (before, after))
    return f"stopped at {before[0]} of {before[1]} cells, resumed to the end"


def graded(collection: Collection) -> tuple[int, int]:
    """Return the graded and all cells of the model."""
    book = collection.grades("tiny").gradebook
    ratings = [query.ratings for query in book.queries]
    return sum(int((one >= 0).sum()) for one in ratings), sum(one.size for one in ratings)


# ---- the walk ------------------------------------------------------------------------------------


def disagree(path: Path) -> None:
    """Nine cells on which two people differ, some of them across the threshold."""
    with Collection(path) as collection:
        grades = collection.grades()
        for number, one in enumerate(grades.decisions.queue(most=DISPUTES)):
            for author, rating in (("ann", 5), ("bob", 1 if number % 2 else 4)):
                grades.decisions.decide(*one.cell, rating, author=author)


@contextmanager
def entered(browser: Browser, path: Path, given: argparse.Namespace) -> Iterator[Hand]:
    """The page of an owner, at a server of a collection."""
    with listen("127.0.0.1", 0) as listener, created_if_new(path):
        live, people = LiveCollection(path), People()
        people.add(WHO, "owner")
        served = prepare(live, listener, "127.0.0.1", people)
        thread = threading.Thread(target=served.run, daemon=True)
        thread.start()
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(next(iter(served.addresses().values())))
        yield Hand(browser, page, path, given.keyboard, given.pictures)
        context.close()
        served.server.should_exit = True
        thread.join(30)
        live.close()


@dataclass
class Walk:
    """The tasks, their names and what came of them."""

    only: list[str] | None
    failed: list[str] = field(default_factory=list)

    def run(self, hand: Hand, tasks: Mapping[str, Callable[[Hand], str]], home: str = "") -> None:
        """Do the tasks in order, each from the first page, and print what they took."""
        for name, task in tasks.items():
            if self.only and name not in self.only:
                continue
            if home:
                hand.page.goto(home)
                hand.page.locator(".scripted table.board").wait_for()
            hand.clicks = hand.keys = 0
            began = time.perf_counter()
            try:
                result = task(hand)
            except Exception as error:
                self.failed.append(name)
                result = f"FAILED: {type(error).__name__}: {error}"
            seconds = time.perf_counter() - began
            print(
                f"{name:20} {hand.clicks:3} clicks {hand.keys:4} keys {seconds:6.1f} s  {result}",
                flush=True,
            )


def main() -> int:
    """Do the tasks; return 1 if one did not reach its state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--files", nargs="+", type=Path, default=[])
    parser.add_argument("--task", action="append")
    parser.add_argument("--keyboard", action="store_true", help="without a mouse")
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    walk = Walk(given.task)
    with (
        tempfile.TemporaryDirectory() as folder,
        FaultServer(delay=0.25) as model,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        path = Path(folder, "copy.exam")
        shutil.copy(given.collection, path)
        shutil.copy(given.collection, path.with_name(EARLIER))
        disagree(path)
        with entered(browser, path, given) as hand:
            tasks = {
                "judge 30 cells": judge,
                "why A beats B": quote,
                "believe it?": believe,
                "disputes": settle,
                "share": share,
                "two versions": versions,
                # last: another text ends what people said of it
                "five worst questions": worst,
            }
            walk.run(hand, tasks, home=hand.page.url)
        if given.files:
            with entered(browser, Path(folder, "my.exam"), given) as hand:
                new: dict[str, Callable[[Hand], str]] = {
                    "from nothing": lambda hand: from_nothing(hand, given.files),
                    "watch and stop": lambda hand: watch(hand, model.url),
                }
                walk.run(hand, new)
        browser.close()
    print("failed:", ", ".join(walk.failed) or "none")
    return 1 if walk.failed else 0


if __name__ == "__main__":
    sys.exit(main())
