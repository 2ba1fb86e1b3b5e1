"""One page of something long, and the keys of the navigation."""

from __future__ import annotations

import pytest

from exampp.web.page_request import PLACES, PageOfEntries, page_of


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        (1, PageOfEntries("abc", 7, 1, 3, 0)),
        (3, PageOfEntries("g", 7, 3, 3, 6)),
        (9, PageOfEntries("g", 7, 3, 3, 6)),
        (-2, PageOfEntries("abc", 7, 1, 3, 0)),
    ],
)
def test_a_page_or_the_nearest_one(page: int, wanted: PageOfEntries[str]) -> None:
    assert page_of("abcdefg", page, 3) == wanted


def test_nothing_has_one_empty_page() -> None:
    assert page_of("", 5, 3) == PageOfEntries("", 0, 1, 1, 0)
    assert page_of("abc", 1, 3).pages == 1


def test_every_key_leads_to_one_page() -> None:
    keys = [one.key for one in PLACES]
    assert len({*keys, "f"}) == len(keys) + 1
