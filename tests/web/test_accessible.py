"""Pages in a real browser: no fault of accessibility, nothing refused by the policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from support import hostile, live
from support.browsers import Trouble, faults, page_of
from support.live import Client, visiting

import exampp

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUERY = next(iter(hostile.QUERIES))
ITEM = f"{next(iter(hostile.QUESTIONS))} of 0"
ADDRESSES = {
    "heat map": "/query?" + urlencode({"id": QUERY}),
    "cell": "/cell?" + urlencode({"query": QUERY, "item": ITEM, "passage": "plain"}),
    "long cell": "/cell?" + urlencode({"query": QUERY, "item": ITEM, "passage": "{{ 7*7 }}"}),
    "record": "/record?" + urlencode({"id": QUERY, "a": "sys/../%2e", "b": "<b>bold</b>\u202e"}),
    "judge": "/judge",
    "judge a query": "/judge?" + urlencode({"order": "query", "query": QUERY}),
    "judge an item": "/judge/all?" + urlencode({"query": QUERY, "item": ITEM}),
    "judge a passage": "/judge/all?"
    + urlencode({"query": QUERY, "by": "passage", "passage": "plain"}),
    "adjudicate": "/judge?order=disputes",
    "queue": "/queue",
    "disputes": "/disputes",
    "agreement": "/agreement",
    "cells of the agreement": "/agreement/cells",
    "compare": "/compare?" + urlencode({"a": "sys/../%2e", "b": "<b>bold</b>\u202e"}),
    "items": "/items?" + urlencode({"query": QUERY, "item": ITEM}),
    "bank": "/bank?" + urlencode({"query": QUERY}),
}
"""Pages that are looked at with hostile texts."""
PAGES = (
    *(one for one in live.NAVIGATION if one not in ADDRESSES.values()),
    "/lists/verify",
    "/lists/missing",
    "/lists/spurious",
    "/search?q=a",
    "/compare?a=beta&b=alpha",
    "/items?order=worst",
    "/judge/end",
    "/write",
    "/grade",
    "/plots",
    "/trust/sensitivity",
    "/trust/attacks",
    "/people",
    "/duplicates",
    "/record?id=q1",
    "/judge/all?query=q1",
    "/judge/all?query=q1&by=passage",
    "/judge/guidelines",
    "/sample/judge",
    "/nowhere",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Served]:
    path = live.graded(tmp_path_factory.mktemp("exam"))
    live.decide_some(path)
    with live.serving(path) as one:
        yield one


@pytest.fixture(scope="module")
def opened(browser: Browser, served: live.Served) -> Iterator[tuple[Page, Trouble]]:
    with page_of(browser, Client(served).enter(), width=1280, axe=True) as both:
        yield both


@pytest.fixture
def page(opened: tuple[Page, Trouble]) -> Page:
    return opened[0]


LONG_CHOICES = """for (const one of document.querySelectorAll("select option")) {
  if (!one.closest("#threshold, #decisions, #by, #only")) one.text = "m".repeat(90);
}"""
"""Graders, queries, systems and subtopics that one chooses from may be called anything."""


OUT_OF_SIGHT = """() => [...document.querySelectorAll(".places a, .scroll caption")]
  .filter((one) => {
    const words = document.createRange();
    words.selectNodeContents(one);
    return words.getBoundingClientRect().right > innerWidth && !one.matches(".hidden");
  })
  .map((one) => one.textContent)"""
"""Navigation and tables that are visible without sideways scrolling."""


@pytest.mark.parametrize("address", PAGES)
def test_no_fault_of_any_kind_and_nothing_wider_than_the_window(
    opened: tuple[Page, Trouble], address: str
) -> None:
    page, trouble = opened
    trouble.clear()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(address)
    assert faults(page) == []
    assert [said for said in trouble if "404" not in said] == []
    page.evaluate(LONG_CHOICES)
    for width in (390, 900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(OUT_OF_SIGHT) == [], width


def test_the_list_of_keys_opens_and_leads_on(page: Page) -> None:
    from playwright.sync_api import expect

    page.goto("/")
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#keys")).to_be_hidden()
    # a busy machine may take longer from key to key than the page waits for the second
    page.evaluate("const now = Date.now(); Date.now = () => now")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queries")
    page.keyboard.press("/")
    page.keyboard.type("magnets g h ?")
    expect(page.locator("#list .title")).to_have_count(0)
    assert page.locator("#find").input_value() == "magnets g h ?"
    page.locator("#find").fill("magnets")
    expect(page.locator("#list .title")).to_have_count(1)


def test_keys_can_be_turned_off(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("?")
    page.locator("[data-setting=keys]").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert not page.locator("dialog#keys").is_visible()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.locator("[data-setting=keys]").check()


def test_a_long_name_is_whole_on_the_leaderboard_and_the_scores_stay_in_sight(page: Page) -> None:
    page.goto("/")
    name = page.locator("table.board .system bdi").first
    name.evaluate("(one) => one.textContent = 'a-run-of-many-words-'.repeat(7)")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert name.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        score = page.locator("table.board td.chosen").first.bounding_box()
        assert score
        assert score["x"] + score["width"] <= width


def test_a_passage_from_right_to_left_begins_in_sight_on_the_heat_map(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/query?id=q1")
    begins, row = page.locator(".heat .start").first.evaluate(
        """(one) => {
          one.textContent = "\u0645\u0627\u0621 ".repeat(100);
          const letter = document.createRange();
          letter.setStart(one.firstChild, 0);
          letter.setEnd(one.firstChild, 1);
          return [letter, one.closest("th")].map((of) => of.getBoundingClientRect().right);
        }"""
    )
    assert begins <= row


def test_paper_is_dark_on_light_and_says_whose_grades_these_are(page: Page) -> None:
    page.goto("/")
    page.emulate_media(media="print", color_scheme="dark")
    try:
        ink = page.evaluate("getComputedStyle(document.documentElement).color")
        assert ink == "rgb(27, 29, 31)"
        assert page.locator(".context").is_visible()
        assert not page.locator(".bar").is_visible()
    finally:
        page.emulate_media(media="screen", color_scheme="light")


def test_all_of_the_overview_can_be_reached_by_keys(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('href')"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert {"/queue", "/trust", "/runs", "/?by=1", "/plots"} <= reached


# ---- test accessible review ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = hostile.make(tmp_path_factory.mktemp("hostile") / "my.exam")
    with exampp.Collection(path) as collection:
        for n, passage in enumerate(hostile.IDS[:6]):
            for author, rating in (("ada", n % 6), ("<b>bob</b>\u202e", 5 - n % 3)):
                collection.grades().decisions.decide(
                    QUERY, ITEM, passage, rating, author=author, reason="<i>so</i>", blind=n > 2
                )
    with visiting(path) as entered:
        yield entered


@pytest.fixture(scope="module")
def hostile_page(browser: Browser, client: Client) -> Iterator[tuple[Page, Trouble]]:
    with page_of(browser, client, axe=True) as found:
        yield found


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_hostile_texts_on_every_page(hostile_page: tuple[Page, Trouble], address: str) -> None:
    page, trouble = hostile_page
    trouble.clear()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(address)
    page.wait_for_timeout(100)
    # what a page does does not hang on its width, how it looks does
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert trouble == []
        assert page.evaluate(f"() => window.{hostile.PROOF}") is None
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert faults(page) == []


def test_the_panel_of_a_cell(hostile_page: tuple[Page, Trouble]) -> None:
    page, trouble = hostile_page
    trouble.clear()
    page.goto(ADDRESSES["heat map"])
    for row in range(0, len(hostile.IDS), 4):
        page.locator("#heat tbody tr").nth(row).locator("td[data-at]").first.click()
        page.wait_for_function(
            "() => !document.querySelector('#panel').hasAttribute('aria-busy') "
            "&& document.querySelector('#panel h2')"
        )
    assert trouble == []
    assert page.evaluate(f"() => window.{hostile.PROOF}") is None
    assert faults(page) == []


def test_the_impact_of_an_edit(hostile_page: tuple[Page, Trouble]) -> None:
    page, trouble = hostile_page
    trouble.clear()
    page.goto(ADDRESSES["bank"])
    page.locator("textarea").first.fill(hostile.ATTACKS["close"])
    page.locator("input[type=checkbox]").nth(1).check()
    page.wait_for_selector("#impact [data-changes='2']")
    assert trouble == []
    assert page.evaluate(f"() => window.{hostile.PROOF}") is None
    assert faults(page) == []
