"""Sources of a passage, order of passages, and how often items are covered."""

from __future__ import annotations

import pytest
from support.heat_map import dossier

from exampp.review.evidence import item_coverage, passage_order, returned, returned_by


def test_who_returns_a_passage_and_how_high() -> None:
    """Two rankings of one system count once, with the better of their ranks."""
    grades = dossier().grades
    found = returned(grades, None)
    assert found.counts.tolist() == [2, 1, 2, 1]
    assert found.best.tolist() == [1, 2, 1, 1]
    assert returned_by(grades, 0) == [("two", 1), ("one", 2)]
    assert returned_by(grades, 1) == [("two", 2)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("agreement", [0, 2, 3, 1]),
        ("rating", [0, 1, 3, 2]),
        ("judgment", [0, 2, 3, 1]),
        ("rank", [0, 2, 3, 1]),
        ("pool", [0, 1, 2, 3]),
        ("nonsense", [0, 2, 3, 1]),
    ],
)
def test_orders(order: str, expected: list[int]) -> None:
    assert passage_order(dossier().grades, order, 4) == expected


def test_how_many_passages_cover_an_item() -> None:
    assert item_coverage(dossier().grades, 4) == [(1, 3), (2, 3)]
