"""The heat map: order, marks and shades, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from exampp.records.decisions import Decision
from exampp.records.gradebook import MISSING, Cell, Dossier, PassageText, QueryGrades, Ranking
from exampp.records.graders import Grade, GraderIdentity, State
from exampp.records.items import Item
from exampp.web.pages.heat import heat_map, ordered, square, standings
from exampp.web.rendering import shade

RATINGS = [[0, 5], [4, 4], [MISSING, 1], [3, MISSING]]


def ranking(system: str, *passages: int, subtopic: int = 0) -> Ranking:
    return Ranking(system, subtopic, np.array(passages, np.int32), np.zeros(len(passages)))


def dossier(decisions: dict[Cell, list[Decision]] | None = None) -> Dossier:
    grades = QueryGrades(
        query_id="q",
        subtopic_ids=("f",),
        item_ids=("i1", "i2"),
        item_subtopics=np.zeros(2, np.int32),
        weights=np.array([1.0, 2.0]),
        passage_ids=("a", "b", "c", "d"),
        pool_size=3,
        ratings=np.array(RATINGS, np.int16),
        judgments=np.array([[0, MISSING, 2, 1], [3, MISSING, 0, MISSING]], np.int16),
        rankings=(
            ranking("one", 2, 0),
            ranking("two", 2, 1, 0),
            ranking("two", 0, subtopic=1),
            ranking("three", 3),
        ),
    )
    texts = tuple(PassageText("", f"text {name}") for name in "abc")
    return Dossier(
        grader=GraderIdentity("m", "p", "question"),
        bank="main",
        query_id="q",
        query_text="why",
        subtopic_texts={},
        grades=grades,
        items=(Item("i1", "q", "first?"), Item("i2", "q", "second?")),
        texts=(*texts, None),
        bank_order=(0, 1),
        automatic={(2, 0): Grade("i1", State.REFUSED)},
        decisions=decisions or {},
    )


def test_who_returns_a_passage_and_how_high() -> None:
    """Two rankings of one system count once, with the better of their ranks."""
    found = standings(dossier().grades)
    assert found.systems.tolist() == [2, 1, 2, 1]
    assert found.best_rank.tolist() == [1, 2, 1, 1]


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
    assert ordered(dossier().grades, order, 4).tolist() == expected


def test_a_square_says_why_it_has_no_grade() -> None:
    found = dossier()
    assert square(found, (0, 1)).text == "5"
    assert square(found, (2, 0)).said == "the grader refused"
    assert square(found, (3, 1)).said == "no text"


def test_people_are_marked() -> None:
    said = [Decision(1, "ann", 3), Decision(2, "bob", 4)]
    found = dossier({(0, 0): said[:1], (1, 0): said, (1, 1): [*said, Decision(3, "bob", 3)]})
    assert square(found, (0, 0)).mark == "decided"
    assert square(found, (0, 0)).said == "decided by ann"
    assert square(found, (1, 0)).mark == "disputed"
    assert square(found, (1, 1)).mark == "decided"


def test_only_what_was_decided_is_seen_by_who_is_blind() -> None:
    shown = heat_map(dossier(), min_rating=4, order="pool", seen=frozenset({(1, 1)}))
    texts = [[one.text for one in row.squares] for row in shown.rows]
    assert texts == [["", ""], ["", "4"], ["", ""], ["", ""]]


def test_pages_hold_every_passage_once() -> None:
    pages = [
        heat_map(dossier(), min_rating=4, order="pool", page=n, per_page=3) for n in (0, 1, 2, 9)
    ]
    assert [[row.passage_id for row in one.rows] for one in pages] == [
        ["a", "b", "c"],
        ["a", "b", "c"],
        ["d"],
        ["d"],
    ]
    assert {one.pages for one in pages} == {2}


def test_columns_count_what_covers() -> None:
    first, second = heat_map(dossier(), min_rating=4).columns
    assert (first.covered, first.graded, first.weight) == (1, 3, 1.0)
    assert (second.covered, second.graded) == (2, 3)
    assert second.share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rating", "lowest", "highest", "expected"),
    [
        (0, 0, 5, 0),
        (3, 0, 5, 3),
        (5, 0, 5, 5),
        (0, 0, 1, 0),
        (1, 0, 1, 5),
        (2, 1, 3, 2),
        (7, 0, 5, 5),
    ],
)
def test_shades_span_the_scale(rating: int, lowest: int, highest: int, expected: int) -> None:
    assert shade(rating, lowest, highest) == expected
