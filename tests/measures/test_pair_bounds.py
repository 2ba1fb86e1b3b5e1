"""Bounds of Cover over all grades of missing cells: against trying all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from gradebooks import make_book, make_query, make_ranking
from hypothesis import given, settings
from hypothesis import strategies as st

from exampp.measures.cover import cover, cover_bounds, has_missing_cells
from exampp.records.gradebook import MISSING, Gradebook


def test_a_cell_that_both_read_has_one_grade_for_both() -> None:
    """By hand: of two items a covers the first; one cell of the second, read by both, is missing.

    Their own bounds are .5 to 1 and 0 to .5, so that the difference would be 0 to 1; it is .5.
    """
    book = make_book(
        make_query(
            [[5, 0], [0, None]],
            make_ranking("a", [0, 1]),
            make_ranking("b", [1]),
        )
    )
    found = cover_bounds(book, [4])
    assert found.low.tolist() == [[0.5, 0.0]]
    assert found.high.tolist() == [[1.0, 0.5]]
    assert found.least[0, 0, 1] == found.most[0, 0, 1] == 0.5


def test_a_cell_that_one_reads_moves_that_one() -> None:
    book = make_book(
        make_query([[None], [0]], make_ranking("a", [0]), make_ranking("b", [1])),
        make_query([[5], [0]], make_ranking("a", [0]), make_ranking("b", [1]), query_id="r"),
    )
    found = cover_bounds(book, [4])
    assert (found.least[0, 0, 1], found.most[0, 0, 1]) == (0.5, 1.0)
    assert (found.least[0, 1, 0], found.most[0, 1, 0]) == (-1.0, -0.5)


@st.composite
def books(draw: st.DrawFn) -> Gradebook:
    """Up to two queries of three passages and two items, with up to six missing cells."""
    cell = st.sampled_from([0, 3, 5, None])
    queries = []
    for number in range(draw(st.integers(1, 2))):
        rows = draw(st.lists(st.lists(cell, min_size=2, max_size=2), min_size=3, max_size=3))
        rankings = [
            make_ranking(system, draw(st.permutations(range(3)))[: draw(st.integers(0, 3))])
            for system in "ab"
        ]
        weights = draw(st.sampled_from([[1.0, 1.0], [1.0, 3.0]]))
        queries.append(make_query(rows, *rankings, query_id=f"q{number}", weights=weights))
    return make_book(*queries, systems=["a", "b"])


@settings(max_examples=40)
@given(books(), st.integers(1, 3))
def test_the_bounds_are_reached_and_never_passed(book: Gradebook, k: int) -> None:
    missing = [
        (number, place)
        for number, query in enumerate(book.queries)
        for place in zip(*np.nonzero(query.ratings == MISSING), strict=True)
    ]
    if len(missing) > 6:
        return
    tried = []
    for grades in product((0, 5), repeat=len(missing)):
        queries = [replace(query, ratings=query.ratings.copy()) for query in book.queries]
        for (number, place), grade in zip(missing, grades, strict=True):
            queries[number].ratings[place] = grade
        result = cover(replace(book, queries=tuple(queries)), [4], k=k)
        tried.append(result.of("Cover")[0].values.values.mean(axis=1))
    table = np.array(tried)
    difference = table[:, 0] - table[:, 1]
    found = cover_bounds(book, [4], k=k)
    assert found.low[0] == pytest.approx(table.min(axis=0))
    assert found.high[0] == pytest.approx(table.max(axis=0))
    assert found.least[0, 0, 1] == pytest.approx(difference.min())
    assert found.most[0, 0, 1] == pytest.approx(difference.max())


def test_missing_cells_are_those_that_systems_read() -> None:
    query = make_query([[5], [None]], make_ranking("a", [0]))
    assert not has_missing_cells(make_book(query))
    assert has_missing_cells(make_book(replace(query, rankings=(make_ranking("a", [1]),))))
