"""Units of a linear measure: their sums are the scores of the leaderboard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.gradebooks import make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import parse_measure
from exampp.measures.population import item_verdicts, population
from exampp.records.gradebook import MISSING, Gradebook


def book() -> Gradebook:
    first = make_query(
        [[5, 0], [0, 4], [1, None], [5, 5]],
        make_ranking("a", [0, 1, 3]),
        make_ranking("b", [2]),
        query_id="q1",
        weights=[3, 1],
    )
    second = make_query([[4], [2]], make_ranking("a", [1, 0]), query_id="q0", passage_ids="yx")
    judged = first.judgments.copy()
    judged[0] = [3, 1, 2, 0]
    return make_book(replace(first, judgments=judged), second)


@pytest.mark.parametrize("measure", ["P@2", "RBP@3", "RBP(p=0.5)@2", "Cover@2", "Cover@1"])
def test_sums_are_the_leaderboards(measure: str) -> None:
    """Also of a query that one system does not answer, and of short lists."""
    units = population(book(), parse_measure(measure), min_rating=4, min_relevant=2)
    sums = dict(zip(units.systems, units.coefficients @ units.graded, strict=True))
    board = evaluate(book(), [measure], [4])
    assert sums == pytest.approx(board.scores(board.columns[0].measure, 4), abs=1e-12)


def test_units_are_in_the_order_of_their_names() -> None:
    units = population(book(), parse_measure("P@2"), min_rating=4, min_relevant=2)
    assert units.names == (("q0", "x"), ("q0", "y"), ("q1", "p0"), ("q1", "p1"), ("q1", "p2"))
    assert np.isnan(units.judged[:2]).all()
    assert units.judged[2:].tolist() == [1, 0, 1]
    assert units.bins.tolist() == [1, 2, 2, 2, 1]
    own = population(book(), parse_measure("P(rel=3)@2"), min_rating=4, min_relevant=2)
    assert own.judged[2:].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("nDCG@10", "cannot be corrected"),
        ("AP@10", "cannot be corrected"),
        ("RR@10", "cannot be corrected"),
        ("Judged@10", "cannot be corrected"),
        ("nCover@10", "cannot be corrected"),
        ("P(judged_only=True)@5", "cannot be corrected"),
        ("RBP", "no cutoff"),
        ("Cover", "no cutoff"),
    ],
)
def test_what_is_no_sum_is_refused(measure: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        population(book(), parse_measure(measure), min_rating=4, min_relevant=2)


def test_subtopics_are_refused_and_nothing_ranked() -> None:
    by_subtopic = make_query([[5]], make_ranking("a", [0], subtopic=1), subtopics=["s"])
    with pytest.raises(InputError, match="all rankings are for subtopics"):
        population(make_book(by_subtopic), parse_measure("P@1"), min_rating=4, min_relevant=2)
    both = make_query([[5], [0]], make_ranking("a", [0], subtopic=1), make_ranking("a", [1]))
    units = population(
        make_book(replace(both, subtopic_ids=("s",), judgments=np.full((2, 2), MISSING, np.int16))),
        parse_measure("P@1"),
        min_rating=4,
        min_relevant=2,
    )
    assert units.names == (("q", "p1"),)
    assert units.notes
    for measure in ("P@1", "Cover@1"):
        with pytest.raises(InputError, match="no system returns"):
            population(
                make_book(make_query([[5]])), parse_measure(measure), min_rating=4, min_relevant=2
            )


def test_an_item_is_settled_by_few_decisions() -> None:
    """a returns p0 p1 p3, b p2 alone. What b has says nothing of a, and the other way around."""
    unit = ("q1", "q1/i0")
    at = {"k": 3, "min_rating": 4}
    nothing = item_verdicts(book(), [unit], {}, **at)[unit]
    assert np.isnan(nothing.covered).all()
    assert sorted(nothing.open) == ["p0", "p1", "p2", "p3"]
    some = item_verdicts(book(), [unit], {(*unit, "p1"): 4, (*unit, "p2"): 3}, **at)[unit]
    assert (some.covered.tolist(), some.open) == ([1, 0], ())
    none = item_verdicts(book(), [unit], {(*unit, f"p{n}"): 0 for n in range(4)}, **at)[unit]
    assert none.covered.tolist() == [0, 0]
    # who does not answer a query covers nothing of it
    other = ("q0", "q0/i0")
    assert item_verdicts(book(), [other], {(*other, "y"): 5}, **at)[other].covered.tolist() == [
        1,
        0,
    ]
