"""The pages on which people decide and edit: no fault, nothing loaded or run from texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from support import hostile
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
    "judge": "/judge",
    "judge a query": "/judge?" + urlencode({"order": "query", "query": QUERY}),
    "adjudicate": "/judge?order=disputes",
    "queue": "/queue",
    "disputes": "/disputes",
    "agreement": "/agreement",
    "cells of the agreement": "/agreement/cells",
    "compare": "/compare?" + urlencode({"a": "sys/../%2e", "b": "<b>bold</b>\u202e"}),
    "items": "/items?" + urlencode({"query": QUERY, "item": ITEM}),
    "bank": "/bank?" + urlencode({"query": QUERY}),
}


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
def opened(browser: Browser, client: Client) -> Iterator[tuple[Page, Trouble]]:
    with page_of(browser, client, axe=True) as found:
        yield found


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_hostile_texts_on_every_page(opened: tuple[Page, Trouble], address: str) -> None:
    page, trouble = opened
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


def test_the_panel_of_a_cell(opened: tuple[Page, Trouble]) -> None:
    page, trouble = opened
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


def test_the_impact_of_an_edit(opened: tuple[Page, Trouble]) -> None:
    page, trouble = opened
    trouble.clear()
    page.goto(ADDRESSES["bank"])
    page.locator("textarea").first.fill(hostile.ATTACKS["close"])
    page.locator("input[type=checkbox]").nth(1).check()
    page.wait_for_selector("#impact [data-changes='2']")
    assert trouble == []
    assert page.evaluate(f"() => window.{hostile.PROOF}") is None
    assert faults(page) == []
