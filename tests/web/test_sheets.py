"""One page of something long."""

from __future__ import annotations

import pytest

from exampp.web.sheets import Sheet, sheet


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        (1, Sheet("abc", 7, 1, 3, 0)),
        (3, Sheet("g", 7, 3, 3, 6)),
        (9, Sheet("g", 7, 3, 3, 6)),
        (-2, Sheet("abc", 7, 1, 3, 0)),
    ],
)
def test_a_page_or_the_nearest_one(page: int, wanted: Sheet[str]) -> None:
    assert sheet("abcdefg", page, 3) == wanted


def test_nothing_has_one_empty_page() -> None:
    assert sheet("", 5, 3) == Sheet("", 0, 1, 1, 0)
    assert sheet("abc", 1, 3).pages == 1
