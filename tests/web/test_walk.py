"""People at work in a browser: by keyboard alone, blind, with what others decided meanwhile."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import live
from support.browsers import page_of
from support.live import Client

import exampp
from exampp.graders.scripted import ScriptedGrader

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page, Route

Decision = tuple[str, str, int, str]
"""item, passage, rating, reason."""


def exam(folder: Path, long: int = 0) -> Path:
    """One query, 6 passages x 3 questions, two systems; graded. Passages may be `long`."""
    path = folder / "tides.exam"
    path.write_bytes(_graded(long))
    return path


@functools.cache
def _graded(long: int) -> bytes:
    texts = {
        f"p{n}": f"The tide number {n} is {'very ' * n}high at noon." + " So it is." * (long // 10)
        for n in range(6)
    }
    questions = ("When is it high?", "Why?", "Where is that so?")
    orders = {"alpha": range(6), "beta": range(5, 1, -1)}
    with tempfile.TemporaryDirectory() as folder:
        with exampp.Collection.create(Path(folder, "tides.exam")) as collection:
            collection.add(
                queries={"q": "when are tides high"},
                passages=texts,
                bank={"q": questions},
                runs={name: {"q": [f"p{n}" for n in order]} for name, order in orders.items()},
            )
            collection.grade(ScriptedGrader(live.rate, record=False))
        return collection.path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return exam(tmp_path)


@pytest.fixture
def page(browser: Browser, client: Client) -> Iterator[Page]:
    with page_of(browser, client) as (opened, trouble):
        yield opened
        # what the server refuses is what some of the tests are about
        assert [one for one in trouble if "Failed to load resource" not in one] == []


def on_stage(page: Page) -> tuple[str, str]:
    """The item and the passage that are to be decided now."""
    packed = page.locator("#stage [name=cell]").input_value()
    _, item, passage = json.loads(packed)
    return item, passage


def automatic(page: Page) -> int:
    return int(page.locator("#stage article").get_attribute("data-automatic") or "-1")


def wait_for_another(page: Page, before: tuple[str, str]) -> None:
    page.wait_for_function(
        "before => document.querySelector('#stage [name=cell]')?.value !== before",
        arg=json.dumps(["q", *before]),
    )


def decided(path: Path) -> list[Decision]:
    with exampp.Collection(path) as collection:
        return [
            (one.item_id, one.passage_id, one.decision.rating or 0, one.decision.reason)
            for one in collection.decisions.list()
        ]


def settle(page: Page, count: int) -> None:
    """Wait until so many decisions of the session were confirmed by the server."""
    page.wait_for_function(
        "n => document.querySelector('#progress b').textContent == n", arg=str(count)
    )


def test_ten_decisions_by_keyboard(page: Page, path: Path) -> None:
    page.goto("/judge?order=query&query=q")
    expected: list[Decision] = []
    keys = [
        "4",
        "Enter",
        "s",
        "0",
        "r",
        "5",
        "Enter",
        "ArrowRight",
        "1",
        "2",
        "Enter",
        "3",
        "r",
        "0",
    ]
    for key in keys:
        before = on_stage(page)
        reason = ""
        if key == "r":
            reason = f"because of {before[1]}: 4 u b"
            page.keyboard.press("r")
            page.keyboard.type(reason)
            page.keyboard.press("Enter")
            assert on_stage(page) == before, "leaving the field decided something"
            key = "2"
        if key.isdigit():
            expected.append((*before, int(key), reason))
        elif key == "Enter":
            expected.append((*before, automatic(page), reason))
        page.keyboard.press(key)
        wait_for_another(page, before)
    settle(page, 12)
    assert len(expected) == 12
    assert decided(path) == expected


def test_blind_decisions_go_on_without_a_word_of_the_grader(page: Page, path: Path) -> None:
    page.goto("/judge?order=query&query=q")
    page.keyboard.press("b")
    page.wait_for_selector("#blind[aria-pressed=true]")
    first = on_stage(page)
    assert page.locator("#stage article").get_attribute("data-automatic") is None
    assert "Grader" not in page.locator("#stage").inner_text()
    assert page.locator("#stage mark").count() == 0
    # Enter has nothing to confirm
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#judged').innerText.includes('No grade')")
    assert on_stage(page) == first
    assert decided(path) == []
    page.keyboard.press("2")
    wait_for_another(page, first)
    settle(page, 1)
    assert page.locator("#stage article").get_attribute("data-hidden") == "1"
    assert "rader" not in page.locator(".judge-page").inner_text()
    with exampp.Collection(path) as collection:
        (made,) = collection.decisions.list()
    assert (made.decision.rating, made.decision.blind) == (2, True)
    # who has decided is told the grade, and does not decide blind any more
    page.goto(f"/judge?order=cell&query=q&item={first[0]}&passage={first[1]}")
    assert page.locator("#stage article").get_attribute("data-hidden") == "0"
    page.keyboard.press("3")
    page.wait_for_selector("#recent li:first-child .r3")
    with exampp.Collection(path) as collection:
        assert not collection.decisions.list()[-1].decision.blind


def test_undo_brings_the_cell_back_even_after_a_reload(page: Page, path: Path) -> None:
    page.goto("/judge?order=query&query=q")
    first = on_stage(page)
    page.keyboard.press("1")
    wait_for_another(page, first)
    settle(page, 1)
    page.goto("/judge?order=query&query=q")
    assert page.locator("#undo button").inner_text().split()[:3] == ["Undo", "1", "on"]
    assert on_stage(page) != first
    page.keyboard.press("u")
    page.wait_for_function(
        "before => document.querySelector('#stage [name=cell]')?.value === before",
        arg=json.dumps(["q", *first]),
    )
    settle(page, 0)
    assert page.locator("#recent li").count() == 0
    page.keyboard.press("5")
    wait_for_another(page, first)
    settle(page, 1)
    with exampp.Collection(path) as collection:
        assert [one.decision.rating for one in collection.decisions.list()] == [1, None, 5]
        dossier = next(collection.grades().dossiers())
        assert dossier.grades.ratings[dossier.grades.passage_ids.index(first[1])].max() == 5


def test_a_session_ends_at_its_goal_and_shows_the_agreement_then(page: Page, path: Path) -> None:
    page.goto("/judge/end")
    page.locator("#goal").fill("2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/judge")
    page.goto("/judge?order=query&query=q")
    for number in (1, 2):
        before = on_stage(page)
        assert "\u03ba" not in page.locator("main").inner_text()
        page.keyboard.press("3")
        if number < 2:
            wait_for_another(page, before)
            settle(page, number)
    page.wait_for_url("**/judge/end")
    assert "2 cells decided" in page.locator("h1").inner_text()
    assert "\u03ba" in page.locator("main").inner_text()
    assert len(decided(path)) == 2


@pytest.mark.parametrize("by", ["item", "passage"])
def test_many_cells_on_one_page_by_keyboard(page: Page, path: Path, by: str) -> None:
    page.goto(f"/judge/all?query=q&by={by}")
    rows = page.locator(".judge-row")
    count = 6 if by == "item" else 3
    assert rows.count() == count
    cells = [
        json.loads(one.locator("[name=cell]").get_attribute("value") or "")[1:]
        for one in rows.all()
    ]
    assert len({item for item, _ in cells}) == (1 if by == "item" else 3)
    assert len({passage for _, passage in cells}) == (6 if by == "item" else 1)
    current = page.locator(".judge-row[aria-current]")
    for key, then in (("4", 2), ("s", 3), ("ArrowUp", 2), ("r", 2)):
        page.keyboard.press(key)
        assert current.get_attribute("id") == f"cell-{then}", key
    page.keyboard.type("it says so: 3 u")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the grade of the second cell, confirmed
    settle(page, 2)
    assert page.locator("#left").inner_text() == str(count - 2)
    grade = int(rows.nth(1).get_attribute("data-automatic") or "-1")
    expected = [(*cells[0], 4, ""), (*cells[1], grade, "it says so: 3 u")]
    assert decided(path) == expected
    # another rating of the same cell replaces the first, and an undo brings that one back
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("1")
    page.wait_for_function(
        "() => document.querySelector('#recent .grade').textContent.trim() === '1'"
    )
    page.keyboard.press("u")
    pressed = rows.nth(0).locator("[aria-pressed=true]")
    page.wait_for_function(
        "() => document.querySelector('#cell-1 [aria-pressed=true]')?.textContent.trim() === '4'"
    )
    assert current.get_attribute("id") == "cell-1"
    page.keyboard.press("u")  # the decision of the second cell, which is open again
    page.wait_for_selector("#cell-2[data-state=open]")
    page.reload()
    assert pressed.inner_text() == "4"
    assert rows.nth(1).locator("[aria-pressed=true]").count() == 0
    assert current.get_attribute("id") == "cell-2"


def test_undo_stays_in_sight_on_a_phone(page: Page, path: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    page.goto("/judge/all?query=q")
    page.keyboard.press("4")
    settle(page, 1)
    page.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
    undo = page.locator("#undo button:enabled")
    box = undo.bounding_box()
    assert box is not None
    assert 0 <= box["y"] <= 700 - box["height"]
    undo.click()
    page.wait_for_selector("#cell-1[data-state=open]")


@pytest.mark.parametrize("status", [0, 502, 504])
def test_many_decisions_arrive_in_order_though_the_server_pauses(
    page: Page, path: Path, status: int
) -> None:
    tries = []

    def fail_twice(route: Route) -> None:
        tries.append(route)
        if len(tries) < 3:
            route.fulfill(status=status) if status else route.abort()
        else:
            route.continue_()

    page.route("**/judge/decide**", fail_twice)
    page.goto("/judge/all?query=q")
    for key in "043215":
        page.keyboard.press(key)
    page.click("text=End the session")
    page.wait_for_url("**/judge/end")
    assert [rating for _, _, rating, _ in decided(path)] == [0, 4, 3, 2, 1, 5]


def test_a_refused_decision_is_open_again(page: Page, path: Path) -> None:
    page.goto("/judge/all?query=q")
    form = page.locator("#cell-2 [name=versions]")
    form.evaluate("one => { one.value = '0,0' }")
    page.keyboard.press("s")
    page.keyboard.press("5")
    page.wait_for_selector("#judged.is-trouble")
    page.wait_for_selector("#cell-2[data-state=open][aria-current]")
    assert page.locator("#cell-2 [aria-pressed=true]").count() == 0
    assert decided(path) == []


@pytest.mark.parametrize("refused", [0, 1])
def test_of_two_quick_ratings_the_stored_one_is_marked(
    page: Page, path: Path, refused: int
) -> None:
    page.goto("/judge/all?query=q")
    asked: list[Route] = []
    page.route("**/judge/decide**", lambda route: asked.append(route))
    page.keyboard.press("2")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("4")
    for number in range(2):
        while len(asked) <= number:
            page.wait_for_timeout(20)
        if number == refused:
            asked[number].fulfill(status=400, body="No.")
        else:
            asked[number].continue_()
    page.wait_for_selector("#cell-1[data-state=decided]")
    stored = "42"[refused]
    assert page.locator("#cell-1 [aria-pressed=true]").inner_text() == stored
    assert page.locator("#judged").inner_text() == "Not saved: No."
    assert [rating for _, _, rating, _ in decided(path)] == [int(stored)]


def test_no_grade_is_on_a_blind_page_even_of_decided_cells(page: Page, path: Path) -> None:
    page.goto("/judge/all?query=q")
    page.keyboard.press("b")
    page.wait_for_selector("#blind[aria-pressed=true]")
    for key in "25":
        page.keyboard.press(key)
    settle(page, 2)
    for by in ("item", "passage"):
        page.goto(f"/judge/all?query=q&by={by}")
        assert page.locator(".grader-line, [data-automatic], .judge-row mark").count() == 0
        assert "rader" not in page.locator(".judge-many").inner_text()
    with exampp.Collection(path) as collection:
        assert [one.decision.blind for one in collection.decisions.list()] == [True, True]


def test_the_ratings_never_scroll_away(browser: Browser, tmp_path: Path) -> None:
    path = exam(tmp_path, long=50_000)
    with live.visiting(path) as client, page_of(browser, client) as (page, _):
        page.goto("/judge?order=query&query=q")
        page.keyboard.press("w")
        page.wait_for_function(
            "() => document.querySelector('#stage .reading').textContent.length > 50000"
        )
        buttons = page.locator("#stage button.rate")
        for width, height in ((1440, 900), (390, 844), (720, 450)):
            page.set_viewport_size({"width": width, "height": height})
            for place in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
                page.evaluate(f"scrollTo(0, {place})")
                boxes = [box for box in (one.bounding_box() for one in buttons.all()) if box]
                assert len(boxes) == 6
                assert all(box["y"] >= 0 and box["y"] + box["height"] <= height for box in boxes)
                assert len({(round(box["width"]), round(box["height"])) for box in boxes}) == 1
                assert min(min(box["width"], box["height"]) for box in boxes) >= 24
                assert len({round(box["y"]) for box in boxes}) == (2 if width == 390 else 1)
            # the last line can be read above them
            lowest = page.locator("#stage .grader-line").bounding_box()
            assert lowest is not None
            assert lowest["y"] + lowest["height"] <= min(box["y"] for box in boxes)


def test_a_decision_that_does_not_arrive_is_sent_again(page: Page, path: Path) -> None:
    tries = []

    def fail_twice(route: Route) -> None:
        tries.append(route)
        if len(tries) < 3:
            route.abort()
        else:
            route.continue_()

    page.route("**/judge/decide**", fail_twice)
    page.goto("/judge?order=query&query=q")
    first = on_stage(page)
    page.keyboard.press("4")
    wait_for_another(page, first)
    second = on_stage(page)
    page.keyboard.press("3")
    settle(page, 2)
    assert len(tries) == 4
    assert decided(path) == [(*first, 4, ""), (*second, 3, "")]


@contextmanager
def held(page: Page, address: str | re.Pattern[str]) -> Iterator[list[Route]]:
    """Hold the requests of a page to an address until the end of the block.

    The block opens the page: one that is open already may ask past what is put before it.
    """
    asked: list[Route] = []
    going = False
    page.route(address, lambda route: route.continue_() if going else asked.append(route))
    yield asked
    going = True
    for route in asked:
        route.continue_()


def open_cell(page: Page) -> None:
    """The panel of the first cell of the heat map."""
    page.goto("/query?id=q")
    page.locator("#heat td[tabindex='0']").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel h2")


def test_keys_count_while_a_decision_is_under_way(page: Page, path: Path) -> None:
    with held(page, "**/judge/decide**") as asked:
        open_cell(page)
        with page.expect_request("**/judge/decide**"):
            page.locator("#panel button[value='5']").click()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.querySelector('#panel h2')?.innerText === 'Why?'")
        assert len(asked) == 1
    page.wait_for_selector("#heat td.decided")
    # a panel that is filled again says so at once
    assert page.locator("#panel").get_attribute("aria-busy") is None
    assert page.locator("#panel h2").inner_text() == "Why?"
    first, second = page.locator("#heat tbody tr").first.locator("td[data-at]").all()[:2]
    assert "decided" in (first.get_attribute("class") or "").split()
    assert second.evaluate("one => one === document.activeElement")
    with held(page, "**/judge/decide**"):
        with page.expect_request("**/judge/decide**"):
            page.locator("#panel button[value='4']").click()
        page.keyboard.press("Escape")
        assert page.locator("#panel").is_hidden()
    page.wait_for_function("() => document.querySelectorAll('#heat td.decided').length === 2")
    assert page.locator("#panel").is_hidden()
    assert page.evaluate("document.activeElement.matches('#heat td.decided')")
    assert [one[2] for one in decided(path)] == [5, 4]


def test_a_decision_that_is_refused_brings_its_cell_back(page: Page, path: Path) -> None:
    with held(page, "**/judge/decide**"):
        open_cell(page)
        asked = page.locator("#panel h2").inner_text()
        page.locator("#panel [name=versions]").evaluate("one => { one.value = '7,7,7'; }")
        with page.expect_request("**/judge/decide**"):
            page.locator("#panel button[value='5']").click()
        page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('#panel [role=alert]')?.innerText")
    assert page.locator("#panel h2").inner_text() == asked
    assert decided(path) == []


WHOLE = re.compile("whole=1")


@pytest.mark.parametrize("address", ["/judge?order=query&query=q", "/cell?query=q&passage=p1"])
def test_the_whole_passage_leaves_a_typed_reason(
    browser: Browser, tmp_path: Path, address: str
) -> None:
    path = exam(tmp_path, 20_000)
    with live.visiting(path) as client, page_of(browser, client) as (page, trouble):
        page.goto(address)
        page.locator("[name=reason]").fill("the end says so")
        page.get_by_text("Show all").click()
        page.locator("[data-whole]").wait_for(state="detached")
        assert len(page.locator(".passage").inner_text()) > 20_000
        page.locator("[name=rating][value='4']").click()
        page.locator("#recent [data-made], .statements").wait_for(state="attached")
        assert [one[2:] for one in decided(path)] == [(4, "the end says so")]
        assert trouble == []


def test_a_whole_passage_that_comes_late_brings_no_decided_cell_back(
    browser: Browser, tmp_path: Path
) -> None:
    path = exam(tmp_path, 20_000)
    with live.visiting(path) as client, page_of(browser, client) as (page, _):
        with held(page, WHOLE):
            page.goto("/judge?order=query&query=q")
            first = on_stage(page)
            with page.expect_request(WHOLE):
                page.keyboard.press("w")
            page.keyboard.press("4")
            wait_for_another(page, first)
            second = on_stage(page)
        page.wait_for_load_state("networkidle")
        assert on_stage(page) == second
        page.keyboard.press("2")
        wait_for_another(page, second)
        settle(page, 2)
        assert decided(path) == [(*first, 4, ""), (*second, 2, "")]


def test_the_text_of_another_person_can_be_taken(page: Page, path: Path) -> None:
    page.goto("/bank?query=q")
    with exampp.Collection(path) as collection:
        dossier = next(collection.grades().dossiers())
        item = dossier.items[dossier.bank_order[0]]
        collection.bank().edit("reword", item.item_id, "When does it peak?", author="bob")
    page.locator("textarea").first.fill("When is it highest?")
    page.locator("textarea").nth(1).fill("Why is that?")
    with page.expect_response("**/bank/edit*") as answer:
        page.locator("button.primary").click()
    assert answer.value.status == 409
    assert "When does it peak?" in page.locator(".is-clash .theirs").inner_text()
    page.wait_for_selector("#impact [data-changes='2'] .figures")
    page.locator("[data-take]").click()
    assert page.locator("textarea").first.input_value() == "When does it peak?"
    page.wait_for_selector("#impact [data-changes='1'] .figures")
    page.locator("button.primary").click()
    page.wait_for_selector(".notice.good")


# ---- what stays in place, and what is waited for -------------------------------------------------


SLOW = """() => {
  const part = window.part;
  window.part = async (address, options) => {
    if (options?.method === "POST") await new Promise((wait) => setTimeout(wait, 250));
    return part(address, options);
  };
}"""


@pytest.mark.parametrize(
    ("leave", "there"),
    [
        (lambda page: page.click("text=End the session"), "**/judge/end"),
        (lambda page: (page.keyboard.press("g"), page.keyboard.press("q")), "**/queries"),
        (lambda page: page.keyboard.press("b"), "**/judge?order=query*"),
    ],
    ids=["link", "key", "form"],
)
def test_leaving_waits_for_decisions_on_their_way(
    page: Page, path: Path, leave: Callable[[Page], object], there: str
) -> None:
    page.goto("/judge?order=query&query=q")
    page.evaluate(SLOW)
    for _ in range(12):
        before = on_stage(page)
        page.keyboard.press("3")
        wait_for_another(page, before)
    assert len(decided(path)) < 12
    with page.expect_navigation(url=there):
        leave(page)
    assert len(decided(path)) == 12


def test_a_refused_decision_keeps_the_person_on_the_page(page: Page, path: Path) -> None:
    with held(page, "**/judge/decide**"):
        page.goto("/judge?order=query&query=q")
        page.locator("#stage [name=versions]").evaluate("one => { one.value = '7,7,7'; }")
        with page.expect_request("**/judge/decide**"):
            page.keyboard.press("3")
        page.click("text=End the session")
        page.wait_for_function(
            "() => document.querySelector('#judged').textContent.includes('Saving')"
        )
    page.wait_for_function(
        "() => document.querySelector('#judged').textContent.includes('Not saved')"
    )
    assert "/judge?" in page.url
    assert decided(path) == []


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_the_header_keeps_its_height_and_covers_nothing(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/judge")
    height = "document.querySelector('header.bar').getBoundingClientRect().height"
    before = page.evaluate(height)
    for _ in range(3):
        page.keyboard.press("3")
        page.wait_for_timeout(700)
    assert page.evaluate(height) == before
    assert "older than" not in page.inner_text("body").lower()
    below = "document.querySelector('.session-bar').getBoundingClientRect().top"
    assert page.evaluate(below) >= before - 1
    page.goto("/queries")
    assert page.evaluate(height) == before


def test_opinions_are_beside_the_passage_that_is_adjudicated(
    browser: Browser, tmp_path: Path
) -> None:
    path = exam(tmp_path, long=1500)
    with exampp.Collection(path) as collection:
        grades = collection.grades()
        item = grades.gradebook.queries[0].item_ids[0]
        for author, rating in (("ann", 0), ("bob", 5)):
            why = "because the text says so, in the second sentence of it"
            grades.decisions.decide("q", item, "p1", rating, author=author, reason=why)
    with live.visiting(path) as client, page_of(browser, client) as (page, _):
        page.goto("/judge?order=disputes")
        passage, opinion = box(page, ".case-passage"), box(page, ".opinion >> nth=1")
        assert opinion["x"] >= passage["x"] + passage["width"]
        assert abs(box(page, ".opinions")["y"] - passage["y"]) < 5
        assert opinion["y"] + opinion["height"] <= box(page, ".rating-bar")["y"]
        page.set_viewport_size({"width": 390, "height": 844})
        assert box(page, ".opinions")["y"] < box(page, ".case-passage")["y"]


def box(page: Page, name: str) -> FloatRect:
    """Return the place of an element in the window."""
    found = page.locator(name).bounding_box()
    assert found is not None
    return found
