"""Five tasks of a review done in a browser: clicks, keys, and seconds of the machine for each.

python benchmarks/review_tasks.py COLLECTION [--grader NAME] [--keyboard]

Works on a copy, with headless Chromium by Playwright. The collection needs grades on a scale from 0
to 5 and two systems. The tasks: 30 cells judged, the five worst items repaired, from the
leaderboard to a quote, nine disputes settled in the order of what hangs on them, the verdict of the
report. With `--keyboard` nothing is clicked: what would be is reached by Tab, and Enter presses it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

from exampp import Collection
from exampp.web.live_collection import LiveCollection
from exampp.web.page_request import AREAS, PLACES
from exampp.web.people import People
from exampp.web.serving import listen, prepare

DISPUTES = 9
CELLS = 30
FARTHEST = 500
"""Presses of Tab until something counts as out of reach."""
SETTLES = 300
"""Milliseconds until a page that was asked for by a key has begun to load."""


class Hand:
    """A person's hand on a page: counts what it clicks and types; without a mouse, all by keys."""

    def __init__(self, page: Page, *, keyboard: bool = False) -> None:
        self.page = page
        self.keyboard = keyboard
        self.clicks = self.keys = 0

    def click(self, what: Locator) -> None:
        """Click, and wait until what it leads to is there."""
        if self.keyboard:
            self.reach(what)
            self.press("Enter")
            self.page.wait_for_timeout(SETTLES)
        else:
            self.clicks += 1
            what.click(timeout=60_000)
        self.page.wait_for_load_state()

    def reach(self, what: Locator) -> None:
        """Press Tab until something has the focus, and shows that it has."""
        what.wait_for(state="attached", timeout=60_000)
        for _ in range(FARTHEST):
            if what.evaluate("one => one === document.activeElement"):
                break
            self.press("Tab")
        else:
            raise AssertionError(f"no key leads to {what}")
        seen = what.evaluate("one => getComputedStyle(one).outlineStyle !== 'none'")
        if not seen:
            raise AssertionError(f"nobody sees that {what} has the focus")

    def press(self, key: str) -> None:
        """Press a key."""
        self.keys += 1
        self.page.keyboard.press(key)

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


def judge(hand: Hand) -> str:
    hand.press("g")
    hand.press("j")
    hand.page.wait_for_url("**/queue")
    hand.click(hand.page.get_by_role("link", name="Judge these"))
    for number in range(CELLS):
        hand.decide(str(number % 6))
    hand.page.wait_for_function(
        "n => document.querySelector('#progress b').textContent == n", arg=str(CELLS)
    )
    return hand.page.locator("#progress").inner_text().strip() + " decided"


def repair(hand: Hand) -> str:
    page = hand.page
    hand.to("Items")
    hand.click(page.get_by_role("link", name="Worst 20"))
    for number in range(5):
        hand.click(page.locator("tbody tr:not(.opened) th .title").nth(number))
        hand.click(page.get_by_role("link", name="Edit in the bank"))
        page.locator("textarea").first.focus()
        page.keyboard.press("Control+End")
        page.keyboard.type(" In which year?")
        hand.click(page.get_by_role("button", name="Save"))
        hand.to("Items")
        hand.click(page.get_by_role("link", name="Worst 20"))
    return "saved one by one"


def quote(hand: Hand) -> str:
    page = hand.page
    hand.click(page.locator("table.board .system a").last)
    hand.click(page.locator(".bars tbody th .title").first)
    mark = page.locator(".versus mark").first
    mark.wait_for(timeout=60_000)
    return f"“{mark.inner_text()[:60]}”"


def settle(hand: Hand) -> str:
    hand.to("Disputes")
    hand.click(hand.page.get_by_role("link", name="Adjudicate by keyboard"))
    for _ in range(DISPUTES - 1):
        hand.decide("4")
    with hand.page.expect_response("**/judge/decide"):
        hand.press("4")
    return f"{DISPUTES} settled"


def verdict(hand: Hand, report: Path) -> str:
    hand.page.goto(report.as_uri())
    found = hand.page.get_by_role("heading", name="Verdict").first
    bottom = found.locator("xpath=..").evaluate("one => one.getBoundingClientRect().bottom")
    height = (hand.page.viewport_size or {"height": 0})["height"]
    return f"ends at {bottom:.0f} of {height} pixels"


def disagree(path: Path, grader: str | None) -> None:
    """Nine cells on which two people differ, some of them across the threshold."""
    with Collection(path) as collection:
        grades = collection.grades(grader)
        for number, one in enumerate(grades.decisions.queue(most=DISPUTES)):
            for author, rating in (("ann", 5), ("bob", 1 if number % 2 else 4)):
                grades.decisions.decide(*one.cell, rating, author=author)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--grader")
    parser.add_argument("--keyboard", action="store_true", help="without a mouse")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    path = folder / "copy.exam"
    shutil.copy(asked.collection, path)
    disagree(path, asked.grader)
    report = folder / "report.html"
    with Collection(path) as collection:
        collection.grades(asked.grader).report(report)
    listener = listen("127.0.0.1", 0)
    room = LiveCollection(path, grader=asked.grader)
    people = People()
    people.add("cas", "owner")
    served = prepare(room, listener, "127.0.0.1", people)
    threading.Thread(target=served.run, daemon=True).start()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    tasks: dict[str, Callable[[Hand], str]] = {
        "30 cells judged": judge,
        "from the leaderboard to the quote": quote,
        "nine disputes settled": settle,
        # last: other texts end what people said of them
        "five worst items repaired": repair,
        "the verdict": lambda hand: verdict(hand, report),
    }
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        entrance = next(iter(served.addresses().values()))
        page.goto(entrance)
        home = page.url
        for name, task in tasks.items():
            page.goto(home)
            page.locator(".scripted table.board").wait_for(timeout=120_000)
            hand, start = Hand(page, keyboard=asked.keyboard), time.perf_counter()
            said = task(hand)
            seconds = time.perf_counter() - start
            print(f"{name}: {hand.clicks} clicks, {hand.keys} keys, {seconds:.1f} s; {said}")
        browser.close()
    served.server.should_exit = True
    room.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
