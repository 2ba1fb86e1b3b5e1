"""No figure of any command depends on the order of lines, files, queries, systems or passages."""

from __future__ import annotations

import permutations
import pytest


def test_a_permuted_exam_has_the_same_output_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short form of the campaign: every fifth command."""
    monkeypatch.setenv("COLUMNS", "200")
    exam = permutations.make_exam(5, queries=5, systems=4)
    original = permutations.in_order(exam, permutations.in_file_order, step=5)
    permuted = permutations.in_order(exam, permutations.shuffled(5), step=5)
    assert len(original) > 30
    assert list(permutations.differences(original, permuted)) == []
