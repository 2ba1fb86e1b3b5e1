"""Texts shortened for messages and pages."""

from __future__ import annotations

import pytest

from exampp.records.wording import cut_text, signed


def test_the_start_of_a_text_is_one_line() -> None:
    assert cut_text("a\n b\tc", 20) == "a b c"
    assert len(cut_text("word " * 100, 20)) <= 20


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0124, "+0.012"), (-0.0126, "-0.013"), (-0.0004, "0.000"), (0.0004, "0.000")],
)
def test_a_difference_that_rounds_to_0_has_no_sign(value: float, text: str) -> None:
    assert signed(value, 3) == text
