"""Texts shortened for messages and pages."""

from __future__ import annotations

from exampp.records.wording import cut_text


def test_the_start_of_a_text_is_one_line() -> None:
    assert cut_text("a\n b\tc", 20) == "a b c"
    assert len(cut_text("word " * 100, 20)) <= 20
