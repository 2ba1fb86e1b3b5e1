"""No figure of any command depends on the order of lines, files, queries, systems or passages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "benchmarks" / "campaigns" / "permutations.py"


def test_a_permuted_exam_has_the_same_output_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short form of the campaign."""
    spec = importlib.util.spec_from_file_location("permutations", CAMPAIGN)
    assert spec is not None
    assert spec.loader is not None
    campaign = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "permutations", campaign)
    spec.loader.exec_module(campaign)
    monkeypatch.setenv("COLUMNS", "200")
    exam = campaign.make_exam(5, queries=5, systems=4)
    original = campaign.in_order(exam, campaign.in_file_order)
    permuted = campaign.in_order(exam, campaign.shuffled(5))
    assert len(original) > 150
    assert list(campaign.differences(original, permuted)) == []
