"""Cover, nCover and nugget scores: by hand, as published, and against their definitions."""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.gradebooks import Cells, dl19, make_book, make_query, make_ranking

import exampp
from exampp.analysis.changes import VersionScores
from exampp.analysis.compare import compare_systems
from exampp.analysis.gate import EarlierScores, GateSettings, judge_systems, scores_of
from exampp.analysis.significance import Significance, SignificanceSettings, significance
from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.measures.cover import EXAM, POLICIES, RUBRIC, Missing, cover, longest_ranking
from exampp.measures.exams import SubtopicChoice, interleave
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.names import Measure
from exampp.measures.qrels import exam_labels
from exampp.measures.requirements import parse_requirement
from exampp.measures.values import Mean, MeasureColumn, MeasuredSystems
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity

N = None


def cover_of(result: MeasuredSystems, system: str, threshold: int = 0) -> Mean:
    return result.of("Cover")[threshold].values.means()[result.systems.index(system)]


def overall(column: MeasureColumn) -> Mean:
    assert column.overall is not None
    return column.overall.means()[0]


def n_cover_of(result: MeasuredSystems, system: str, threshold: int = 0) -> Mean:
    return result.of("nCover")[threshold].values.means()[result.systems.index(system)]


# Items:            i0 i1 i2 i3
TABLE: Cells = [
    [5, 0, 0, 0],  # p0
    [0, 4, 0, 0],  # p1
    [0, 0, 3, 0],  # p2
    [5, 4, 3, 0],  # p3
]


def test_cover_by_hand() -> None:
    book = make_book(
        make_query(TABLE, make_ranking("a", [0, 1, 2]), make_ranking("b", [3]), query_id="q1"),
        make_query(TABLE, make_ranking("a", [2, 0]), query_id="q2"),
    )
    result = cover(book, (3, 4, 6), k=2)
    # a: q1 reads p0 p1 -> i0 i1; q2 reads p2 p0 -> i2 i0 (at 3), i0 (at 4). Bank 4, pool 3 (2).
    assert cover_of(result, "a", 0).mean == (2 / 4 + 2 / 4) / 2
    assert cover_of(result, "a", 1).mean == (2 / 4 + 1 / 4) / 2
    assert n_cover_of(result, "a", 0).mean == (2 / 3 + 2 / 3) / 2
    assert n_cover_of(result, "a", 1).mean == (2 / 2 + 1 / 2) / 2
    # b does not answer q2, which counts 0.
    assert cover_of(result, "b", 0).mean == (3 / 4 + 0) / 2
    assert result.unanswered == (0, 1)
    # stderr of (.75, 0): deviation .375 from the mean, sample variance 2 * .375^2, / sqrt 2.
    assert cover_of(result, "b", 0).stderr == pytest.approx(0.375)
    # Nothing reaches 6: Cover is 0, nCover undefined everywhere.
    assert cover_of(result, "a", 2) == Mean(0.0, 0.0, 2)
    assert n_cover_of(result, "a", 2) == Mean(None, None, 0)
    assert overall(result.of("Cover")[0]).mean == 3 / 4
    assert overall(result.of("nCover")[0]).mean == 1.0


def test_weights() -> None:
    book = make_book(make_query(TABLE, make_ranking("a", [0]), weights=[3, 1, 0, 2]))
    result = cover(book, (1,))
    assert cover_of(result, "a").mean == 3 / 6
    assert n_cover_of(result, "a").mean == 3 / 4


def test_a_query_without_items_is_left_out_and_named() -> None:
    book = make_book(
        make_query(TABLE, make_ranking("a", [3]), query_id="q1"),
        make_query([[], []], make_ranking("a", [0]), query_id="empty"),
        make_query(TABLE, make_ranking("a", [3]), query_id="weightless", weights=[0, 0, 0, 0]),
    )
    result = cover(book, (1,))
    assert result.left_out == ("empty", "weightless")
    assert result.query_ids == ("q1",)
    assert cover_of(result, "a").mean == 3 / 4


def test_n_cover_leaves_out_queries_whose_pool_covers_nothing() -> None:
    book = make_book(
        make_query(TABLE, make_ranking("a", [0]), query_id="q1"),
        make_query([[0, 0], [0, 0]], make_ranking("a", [0]), query_id="q2"),
    )
    result = cover(book, (1,))
    assert n_cover_of(result, "a") == Mean(1 / 3, None, 1)
    assert cover_of(result, "a").mean == (1 / 4 + 0) / 2
    filled = cover(book, (1,), policy=RUBRIC)
    assert n_cover_of(filled, "a").mean == (1 / 3 + 0) / 2
    assert overall(filled.of("nCover")[0]) == Mean(1.0, 0.0, 2)


def test_no_rankings_and_no_queries() -> None:
    result = cover(make_book(make_query(TABLE)), (1,), missing="bounds")
    assert result.systems == ()
    assert overall(result.of("Cover")[0]).mean == 3 / 4
    nothing = cover(make_book(systems=["a"]), (1, 2), missing="bounds")
    assert cover_of(nothing, "a") == Mean(None, None, 0)
    assert nothing.columns[0].missing_cells == (None,)


def test_an_empty_pool_and_an_empty_ranking() -> None:
    book = make_book(make_query([], make_ranking("a", []), items=2))
    result = cover(book, (1,))
    # nothing is graded, and so nothing has a value
    assert cover_of(result, "a") == Mean(None, None, 0)
    assert result.unanswered == (1,)
    assert result.answered_by_none == ("q",)
    assert result.columns[0].ungraded == (None,)


# Of p0 nothing is graded, of p1 only i0; p2 is complete.
HOLES: Cells = [[N, N, N], [0, N, N], [5, 5, 0], [5, 0, 0]]


def test_missing_cells_by_hand() -> None:
    book = make_book(
        make_query(
            HOLES,
            make_ranking("none", [0]),
            make_ranking("some", [0, 1]),
            make_ranking("part", [3, 1]),
            make_ranking("full", [2]),
            query_id="q",
        ),
        systems=["none", "some", "part", "full", "absent"],
    )
    zero = cover(book, (1,))
    assert [m.mean for m in zero.of("Cover")[0].values.means()] == [0, 0, 1 / 3, 2 / 3, 0]
    # none: 3 of 3 cells; some: 5 of 6; part: 2 of 6.
    assert zero.columns[0].missing_cells == (1.0, 5 / 6, 2 / 6, 0.0, None)
    assert zero.columns[0].ungraded == (1.0, 1 / 2, 0.0, 0.0, None)
    assert zero.columns[0].overall_shares == (1 / 4, 5 / 12)
    skip = cover(book, (1,), missing="skip")
    # none: no cell is left, undefined. some: only i0 is left, not covered; i0 is covered by the
    # pool, so nCover is 0 of 1. part: all items have a graded cell. absent: nothing is missing.
    assert [m.mean for m in skip.of("Cover")[0].values.means()] == [None, 0, 1 / 3, 2 / 3, 0]
    assert [m.mean for m in skip.of("nCover")[0].values.means()] == [None, 0, 1 / 2, 1, 0]
    bounds = cover(book, (1,), missing="bounds")
    low, high = bounds.of("Cover")[0].low, bounds.of("Cover")[0].high
    assert low is not None
    assert high is not None
    assert [m.mean for m in low.means()] == [0, 0, 1 / 3, 2 / 3, 0]
    assert [m.mean for m in high.means()] == [1, 1, 1, 2 / 3, 0]
    low, high = bounds.of("nCover")[0].low, bounds.of("nCover")[0].high
    assert low is not None
    assert high is not None
    # The pool covers i0 i1 for certain. i2 may be covered by p0 (outside `part`, `full`) or p1.
    # part covers i0 for certain: low 1 of 3 (p0 has i2), high i0 i1 i2 of 3. full: low 2 of 3.
    assert [m.mean for m in low.means()] == [0, 0, 1 / 3, 2 / 3, 0]
    assert [m.mean for m in high.means()] == [1, 1, 1, 1, 0]


SUBTOPICED: Cells = [
    # i0 i1 (f1)  i2 (f2)  i3 (none)
    [5, 0, 0, 0],  # p0
    [0, 5, 0, 0],  # p1
    [0, 0, 5, 0],  # p2
    [5, 5, 5, 5],  # p3
]


def subtopiced(*, with_items: bool = True) -> Gradebook:
    return make_book(
        make_query(
            SUBTOPICED,
            make_ranking("car", [0, 1], subtopic=1),
            make_ranking("car", [2, 0], subtopic=2),
            make_ranking("flat", [3, 0]),
            make_ranking("half", [2], subtopic=2),
            subtopics=["f1", "f2"],
            item_subtopics=[1, 1, 2, 0] if with_items else None,
        )
    )


@pytest.mark.parametrize(
    ("subtopics", "car", "flat", "half"),
    [
        # Exams f1 (i0 i1), f2 (i2), none (i3). car: 1/2, 1, 0 by the first passage of each.
        # flat sits all three with its one ranking; half has none for f1.
        ("subtopic", (1 / 2 + 1 + 0) / 3, 1.0, (0 + 1 + 0) / 3),
        # The first passage of the interleaved ones: car p0, half p2.
        ("pool", 1 / 4, 1.0, 1 / 4),
        ("query", 0.0, 1.0, 0.0),
        ("auto", (1 / 2 + 1 + 0) / 3, 1.0, (0 + 1 + 0) / 3),
    ],
)
def test_subtopics_by_hand(subtopics: SubtopicChoice, car: float, flat: float, half: float) -> None:
    result = cover(subtopiced(), (1,), k=1, subtopics=subtopics)
    values = result.of("Cover")[0].values
    assert [mean.mean for mean in values.means()] == pytest.approx([car, flat, half])


def test_items_of_no_subtopic_are_sat_with_the_pooled_rankings() -> None:
    # Of car's rankings p0 p1 and p2 p0, p3 is not one: i3 stays uncovered at any depth.
    result = cover(subtopiced(), (1,), k=9, subtopics="subtopic")
    assert cover_of(result, "car").mean == pytest.approx((1 + 1 + 0) / 3)


@given(st.lists(st.lists(st.integers(0, 9), unique=True, min_size=1), min_size=1, max_size=4))
def test_interleaving_against_the_obvious_loop(lists: list[list[int]]) -> None:
    wanted: list[int] = []
    for place in range(10):
        for ranking in lists:
            if place < len(ranking) and ranking[place] not in wanted:
                wanted.append(ranking[place])
    assert interleave([np.array(x, np.int32) for x in lists]).tolist() == wanted


def test_rubric_reads_ranks_as_written() -> None:
    ranked = make_ranking("a", [0, 1, 2], ranks=[0, 1, 2])
    from_one = make_ranking("b", [0, 1, 2], ranks=[1, 2, 3])
    unnumbered = make_ranking("c", [0, 1, 2])
    book = make_book(make_query(TABLE, ranked, from_one, unnumbered))
    ours = cover(book, (1,), k=1)
    theirs = cover(book, (1,), k=1, policy=RUBRIC)
    assert [m.mean for m in ours.of("Cover")[0].values.means()] == [1 / 4, 1 / 4, 1 / 4]
    assert [m.mean for m in theirs.of("Cover")[0].values.means()] == [2 / 4, 1 / 4, 1 / 4]


def test_rubric_counts_graded_items_and_answered_queries_and_pools_all() -> None:
    book = make_book(
        make_query([[5, N, 0]], make_ranking("a", [0]), query_id="q1"),
        make_query(SUBTOPICED, make_ranking("b", [0], 1), make_ranking("b", [2], 2), query_id="q2"),
    )
    result = cover(book, (1,), policy=RUBRIC)
    assert cover_of(result, "a") == Mean(1 / 2, None, 1)
    assert cover_of(result, "b") == Mean(2 / 4, None, 1)
    assert cover(book, (1,), policy=EXAM).unanswered == (1, 1)
    assert list(POLICIES) == ["exam", "rubric", "nuggetizer"]


def test_nonsense_is_refused() -> None:
    book = make_book(make_query(TABLE))
    with pytest.raises(InputError, match="cutoff"):
        cover(book, (1,), k=0)
    with pytest.raises(InputError, match="unknown subtopic mode 'x'"):
        cover(book, (1,), subtopics="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown policy for missing cells 'x'"):
        cover(book, (1,), missing="x")  # type: ignore[arg-type]


@st.composite
def books(draw: st.DrawFn) -> Gradebook:
    queries = []
    for number in range(draw(st.integers(1, 3))):
        items, passages = draw(st.integers(1, 4)), draw(st.integers(1, 5))
        cell = st.one_of(st.none(), st.integers(0, 5))
        rows = st.lists(cell, min_size=items, max_size=items)
        table = draw(st.lists(rows, min_size=passages, max_size=passages))
        some = st.lists(st.integers(0, passages - 1), unique=True)
        rankings = [make_ranking(s, draw(some), f) for s in "ab" for f in (0, 1, 2)]
        query = make_query(
            table,
            *(r for r in rankings if draw(st.booleans())),
            query_id=f"q{number}",
            subtopics=["f1", "f2"],
            item_subtopics=draw(st.lists(st.integers(0, 2), min_size=items, max_size=items)),
            weights=draw(
                st.lists(st.sampled_from([0.1, 1.0, 2.5]), min_size=items, max_size=items)
            ),
        )
        queries.append(query)
    return make_book(*queries, systems=["a", "b"])


MODES: Sequence[SubtopicChoice] = ("query", "subtopic", "pool")
WAYS: Sequence[Missing] = ("zero", "skip", "bounds")
CLOSE = 1e-12


@given(books(), st.sampled_from(MODES), st.sampled_from(WAYS))
def test_cover_is_a_share_and_falls_with_the_threshold(
    book: Gradebook, subtopics: SubtopicChoice, missing: Missing
) -> None:
    result = cover(book, (1, 2, 3, 4, 5), k=2, subtopics=subtopics, missing=missing)
    for table, normed in zip(result.of("Cover"), result.of("nCover"), strict=True):
        values, n_values = table.values, normed.values
        for found in (values, n_values):
            assert ((found.values >= 0) & (found.values <= 1)).all()
        if subtopics != "subtopic":
            # With subtopics nCover may leave out others than Cover does.
            both = values.counts & n_values.counts
            assert (n_values.values[both] >= values.values[both] - CLOSE).all()
        for bounded in (table, normed):
            if bounded.low is not None and bounded.high is not None:
                assert (bounded.low.values <= bounded.values.values + CLOSE).all()
                assert (bounded.values.values <= bounded.high.values + CLOSE).all()
    for easy, hard in itertools.pairwise(result.of("Cover")):
        assert (easy.values.values >= hard.values.values - CLOSE).all()


@given(books(), st.sampled_from(MODES))
def test_cover_grows_with_the_depth(book: Gradebook, subtopics: SubtopicChoice) -> None:
    depths = [cover(book, (1, 3), k=k, subtopics=subtopics) for k in (1, 2, 9)]
    for shallow, deep in itertools.pairwise(depths):
        for kind in ("Cover", "nCover"):
            for less, more in zip(shallow.of(kind), deep.of(kind), strict=True):
                assert (less.values.values <= more.values.values + CLOSE).all()


@given(books(), st.sampled_from(MODES))
def test_cover_is_the_same_past_the_longest_ranking(
    book: Gradebook, subtopics: SubtopicChoice
) -> None:
    longest = longest_ranking(book, subtopics)
    last, deeper = (cover(book, (1, 3), k=longest + more, subtopics=subtopics) for more in (0, 2))
    for one, other in zip(last.of("Cover"), deeper.of("Cover"), strict=True):
        assert (one.values.values == other.values.values).all()


@given(books(), st.integers(1, 5), st.integers(1, 4))
def test_cover_against_the_definition(book: Gradebook, tau: int, k: int) -> None:
    result = cover(book, (tau,), k=k, subtopics="query")
    for column, query in enumerate(book.queries):
        rankings = {r.system: r.passages.tolist() for r in query.rankings if r.subtopic == 0}
        for row, system in enumerate(book.systems):
            got = sum(
                weight
                for weight, item in zip(query.weights, query.ratings.T, strict=True)
                if any(item[p] >= tau for p in rankings.get(system, [])[:k])
            )
            value = result.of("Cover")[0].values.values[row, column]
            assert math.isclose(value, got / query.weights.sum(), abs_tol=CLOSE)


@given(books(), st.integers(1, 5), st.data())
def test_no_filling_of_the_holes_leaves_the_bounds(
    book: Gradebook, tau: int, data: st.DataObject
) -> None:
    bounds = cover(book, (tau,), k=2, subtopics="query", missing="bounds")
    filled = []
    for query in book.queries:
        table = [
            [int(c) if c >= 0 else data.draw(st.integers(0, 5)) for c in row]
            for row in query.ratings
        ]
        filled.append(
            make_query(
                table, *query.rankings, query_id=query.query_id, weights=query.weights.tolist()
            )
        )
    true = cover(make_book(*filled, systems=book.systems), (tau,), k=2, subtopics="query")
    for kind in ("Cover", "nCover"):
        (bounded,), (exact,) = bounds.of(kind), true.of(kind)
        assert bounded.low is not None
        assert bounded.high is not None
        both = bounded.values.counts & exact.values.counts
        assert (bounded.low.values[both] <= exact.values.values[both] + CLOSE).all()
        assert (bounded.high.values[both] >= exact.values.values[both] - CLOSE).all()


# ---- nugget scores


NAMES = ("NuggetAll@5", "NuggetVital@5", "NuggetWeighted@5")
STRICT = tuple(f"{name[:-2]}(strict=True)@5" for name in NAMES)
PUBLISHED = [
    f"{strict}{what}_score" for what in ("all", "vital", "weighted") for strict in ("", "strict_")
]


def science() -> Path:
    for folder in Path(__file__).resolve().parents:
        data = folder.parent / "shared" / "data" / "science"
        if data.is_dir():
            return data
    pytest.skip("shared/data/science is not at hand")


def book(importances: tuple[str | None, ...] = ("vital", "okay", "vital", None)) -> Gradebook:
    """One query: p0 supports i0, p1 supports i1 in part; i2 and i3 are not supported."""
    query = make_query(
        [[5, 1, 0, 2], [0, 3, 1, None]],
        make_ranking("both", [0, 1]),
        make_ranking("second", [1]),
        importances=importances,
    )
    return make_book(query)


def means(found: Any) -> dict[tuple[str, str], float | None]:
    return {(row.system, row.measure): row.mean for row in found.rows}


def test_scores_by_hand() -> None:
    found = means(evaluate_gradebook(book(), [*NAMES, *STRICT]))
    # credits of both: 1, 1/2, 0, 0; of second: 0, 1/2, 0, 0
    assert found["both", "NuggetAll@5"] == 1.5 / 4
    assert found["both", "NuggetVital@5"] == 1 / 2
    assert found["both", "NuggetWeighted@5"] == (1 + 0.5 * 0.5) / 2.5
    assert found["both", "NuggetAll(strict=True)@5"] == 1 / 4
    assert found["both", "NuggetWeighted(strict=True)@5"] == 1 / 2.5
    assert found["second", "NuggetAll@5"] == 0.5 / 4
    assert found["second", "NuggetVital@5"] == 0
    # the first passage alone
    assert means(evaluate_gradebook(book(), ["NuggetAll@1"]))["both", "NuggetAll@1"] == 1 / 4


def test_both_thresholds_are_options_and_in_the_header() -> None:
    found = evaluate_gradebook(book(), ["NuggetAll@5"], 5)
    assert "support of nuggets from 5, partial support from 4" in str(found)
    lower = evaluate_gradebook(book(), ["NuggetAll(partial=1)@5"], 3)
    # 1, 1 (3 is support now), 1/2, 1/2
    assert means(lower)["both", "NuggetAll(partial=1)@5"] == 3 / 4
    assert "support of nuggets from 3, partial support from 1" in str(lower)
    assert "partial" not in str(evaluate_gradebook(book(), ["NuggetAll(strict=True)@5"]))


def test_a_verdict_has_no_partial_support() -> None:
    verdicts = GraderIdentity("model", "verdict", "nugget", 0, 1)
    query = make_query([[1, 0]], make_ranking("a", [0]))
    found = evaluate_gradebook(make_book(query, grader=verdicts), ["NuggetAll@5"])
    assert means(found)["a", "NuggetAll@5"] == 0.5
    assert "support of nuggets from 1\n" in str(found)


@pytest.mark.parametrize(
    ("measure", "what"),
    [
        ("NuggetAll(partial=0)", "invalid partial rating 0 for ratings from 0 to 5"),
        ("NuggetAll(partial=6)", "invalid partial rating 6"),
        ("NuggetAll(strict=True,partial=2)", "is strict, so partial has no effect"),
        ("NuggetAll(half=2)", "no parameter 'half'"),
    ],
)
def test_contradictions_are_refused(measure: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        evaluate_gradebook(book(), [measure])


def test_what_has_no_denominator_is_left_out_and_said() -> None:
    okay = make_query([[5]], make_ranking("both", [0]), query_id="plain", importances=("okay",))
    two = make_book(*book().queries, okay)
    found = evaluate_gradebook(two, ["NuggetVital@5", "NuggetWeighted@5"])
    rows = {(row.system, row.measure): row for row in found.rows}
    assert rows["both", "NuggetVital@5"].queries == 1
    assert rows["both", "NuggetWeighted@5"].queries == 2
    assert "Queries without vital nuggets, left out of NuggetVital@5: plain." in found.notes
    # as published, such a query would count 0
    as_published = evaluate_gradebook(two, ["NuggetVital@5"], compat="nuggetizer")
    assert means(as_published)["both", "NuggetVital@5"] == 1 / 4


def test_without_importances_only_all_has_a_value() -> None:
    found = evaluate_gradebook(book(()), NAMES)
    assert means(found)["both", "NuggetAll@5"] == 1.5 / 4
    assert means(found)["both", "NuggetVital@5"] is None
    assert means(found)["both", "NuggetWeighted@5"] is None
    (said,) = [note for note in found.notes if "vital or okay" in note]
    assert said.startswith("No item is vital or okay")


def test_importances_that_are_none_are_listed_and_count_in_all_alone() -> None:
    found = evaluate_gradebook(book(("vital", "failed", "", "vital")), NAMES)
    assert means(found)["both", "NuggetAll@5"] == 1.5 / 4
    assert means(found)["both", "NuggetWeighted@5"] == 1 / 2
    (said,) = [note for note in found.notes if "are invalid" in note]
    assert "'failed' (1), '(empty)' (1)" in said


def test_missing_cells() -> None:
    """The cell of second and i3 has no grade."""
    skipped = means(evaluate_gradebook(book(), ["NuggetAll@5"], missing="skip"))
    assert skipped["second", "NuggetAll@5"] == 0.5 / 3
    bounds = evaluate_gradebook(book(), ["NuggetAll@5"], missing="bounds")
    (second,) = [row for row in bounds.rows if row.system == "second"]
    assert (second.low, second.high) == (0.5 / 4, 1.5 / 4)
    with pytest.raises(InputError, match="nuggetizer counts items without assignment"):
        evaluate_gradebook(book(), ["NuggetAll@5"], missing="skip", compat="nuggetizer")


def test_strict_all_is_cover_with_equal_weights() -> None:
    found = evaluate_gradebook(dl19(), ["NuggetAll(strict=True)@20", "Cover@20"], 4)
    strict, cover = (column.values.values for column in found.columns)
    assert (strict == cover).all()


def assignments(to: Path) -> Path:
    """The published assignments, whose texts were left out, as nuggetizer writes them.

    Of the topics whose labels are all valid, every sixth.
    """
    valid = {"vital", "okay", "support", "partial_support", "not_support"}
    with (
        gzip.open(science() / "nuggetizer-rag24-gpt4o.assignments.jsonl.gz") as lines,
        to.open("w") as out,
    ):
        for number, row in enumerate(map(json.loads, lines)):
            if number % 6 and all(valid.issuperset(one.values()) for one in row["nuggets"]):
                continue
            nuggets = [{"text": f"nugget {n}", **one} for n, one in enumerate(row["nuggets"])]
            texts = {"query": "why", "answer_text": f"of {row['qid']}", "run_id": "gpt4o"}
            out.write(json.dumps({**row, **texts, "nuggets": nuggets}) + "\n")
    return to


def test_published_scores(tmp_path: Path) -> None:
    """TREC RAG 2024, six scores of some 60 topics; with the labels that a model's replies left."""
    path = assignments(tmp_path / "rag24.jsonl")
    lines = (science() / "nuggetizer-rag24-gpt4o.scores.jsonl").read_text().splitlines()
    published = {row["qid"]: row for row in map(json.loads, lines)}
    with exampp.Collection.create(tmp_path / "rag24.exam") as exam:
        (remark,) = exam.import_files(path).remarks
        assert "40 nuggets have an importance that is neither vital nor okay" in remark
        assert "(for example 'failed' (10)" in remark
        grades = exam.grades()
        board = grades.evaluate(PUBLISHED, compat="nuggetizer")
    assert any("25 unparsed" in note for note in board.notes)
    for name, column in zip(PUBLISHED, board.columns, strict=True):
        theirs = [published[query_id][name] for query_id in column.query_ids]
        assert len(theirs) > 60
        assert column.values.values[0].tolist() == pytest.approx(theirs, abs=1e-9)
        assert column.values.means()[0].mean == pytest.approx(np.mean(theirs), abs=1e-9)


def test_invalid_labels_are_unparsed(tmp_path: Path) -> None:
    nuggets = [
        {"text": "a", "importance": "failed", "assignment": "support"},
        {"text": "b", "importance": "", "assignment": "who knows"},
    ]
    row = {"query": "why", "qid": "q", "answer_text": "so", "run_id": "s", "nuggets": nuggets}
    (tmp_path / "given.jsonl").write_text(json.dumps(row))
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "given.jsonl")
        exam.export(tmp_path / "back.jsonl", "nuggetizer")
        notes = exam.grades().evaluate(["NuggetAll"]).notes
    kept = json.loads((tmp_path / "back.jsonl").read_text())["nuggets"]
    assert [one["text"] for one in kept] == ["a", "b"]
    assert any("1 unparsed" in note for note in notes)


BANK = "query_id,nugget,importance,item_id\nq1,air scatters,vital,a\nq1,red is long,okay,b\n"


def test_people_set_importances(tmp_path: Path) -> None:
    """In a table, which is imported again as it is written, and by the weight of an item."""
    (tmp_path / "bank.csv").write_text(BANK)
    (tmp_path / "queries.tsv").write_text("q1\twhy\n")
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "queries.tsv", tmp_path / "bank.csv")
        bank = exam.bank("main")
        exam.export(tmp_path / "same.csv", "bank")
        rows = (tmp_path / "same.csv").read_text().splitlines()
        assert [row.split(",")[-1] for row in rows] == ["importance", "vital", "okay"]
        bank.edit("weight", "b", "1.0", author="ada", reason="it is needed")
        exam.export(tmp_path / "other.csv", "bank")
    assert "okay" not in (tmp_path / "other.csv").read_text()
    (tmp_path / "bad.csv").write_text(BANK.replace("okay", "good"))
    with (
        exampp.Collection.create(tmp_path / "bad.exam") as exam,
        pytest.raises(InputError, match="'good' is not vital, okay or avoid"),
    ):
        exam.import_files(tmp_path / "queries.tsv", tmp_path / "bad.csv")


# ---- items to avoid


AVOIDING = (Measure("Cover", 2), Measure("Avoided", 2), Measure("Points", 2))


def avoided_means(book: Gradebook, **options: Any) -> dict[str, list[float | None]]:
    result = cover(book, (3,), k=2, measures=AVOIDING, **options)
    return {one.measure.name: [m.mean for m in one.values.means()] for one in result.columns}


def test_items_to_avoid_by_hand() -> None:
    """HealthBench: points of the criteria that a response meets, over all positive points."""
    # Items:    +5 +3 -8 -2
    rows = [[5, 0, 0, 0], [0, 5, 0, 4], [0, 0, 4, 0]]
    weights = [5.0, 3.0, -8.0, -2.0]
    good, bad, none = make_ranking("good", [0]), make_ranking("bad", [1, 2]), make_ranking("no", [])
    book = make_book(
        make_query(rows, good, bad, none, weights=weights, query_id="q1"),
        make_query([[5], [0]], make_ranking("good", [0]), make_ranking("bad", [1]), query_id="q2"),
    )
    found = avoided_means(book)
    # q1: good meets 5 of 8; bad meets 3 - 8 - 2 = -7 of 8, and both items to avoid (10 of 10).
    assert found["Cover"] == [(5 / 8 + 1) / 2, (3 / 8 + 0) / 2, 0.0]
    # q2 has nothing to avoid; a system without passages counts 0.
    assert found["Avoided"] == [1.0, 0.0, 0.0]
    # The mean of bad, -7/16, is clipped.
    assert found["Points"] == [(5 / 8 + 1) / 2, 0.0, 0.0]
    (points,) = cover(book, (3,), k=2, measures=AVOIDING[2:]).columns
    assert points.values.values.tolist() == [[5 / 8, 1.0], [-7 / 8, 0.0], [0.0, 0.0]]


def test_a_query_with_nothing_but_items_to_avoid_counts_in_avoided_alone() -> None:
    query = make_query([[5, 0]], make_ranking("a", [0]), weights=[-1.0, -3.0])
    assert avoided_means(make_book(query)) == {"Cover": [None], "Avoided": [0.75], "Points": [None]}
    assert cover(make_book(query), (3,), k=2).query_ids == ()


def test_avoided_beside_other_measures_changes_none_of_them() -> None:
    """A query with nothing but items to avoid has no value where others are filled in."""
    graded = make_query([[5, 0]], make_ranking("a", [0]), query_id="q1")
    avoids = make_query([[5, 0]], make_ranking("a", [0]), weights=[-1.0, -3.0], query_id="q2")
    uncovered = make_query([[0, 0]], make_ranking("a", [0]), query_id="q3")
    book = make_book(graded, avoids, uncovered)
    names = ("Cover", "nCover", "NuggetAll", "NuggetVital")
    for policy in POLICIES.values():
        for name in names:
            own, avoided = Measure(name, 2), Measure("Avoided", 2)
            alone, beside = (
                cover(book, (3,), k=2, measures=some, policy=policy).columns[0]
                for some in ((own,), (own, avoided))
            )
            assert alone.values.means() == beside.values.means(), (policy.name, name)
            assert alone.overall is not None
            assert beside.overall is not None
            assert alone.overall.means() == beside.overall.means(), (policy.name, name)


def test_a_measure_without_cutoff_reads_all_passages_of_queries_that_only_avoid() -> None:
    short = make_query([[5], [0]], make_ranking("a", [0]), query_id="q1")
    long = make_query([[0], [5]], make_ranking("a", [0, 1]), weights=[-1.0], query_id="q2")
    board = evaluate_gradebook(make_book(short, long), ["Avoided"])
    assert [row.mean for row in board.rows if row.system == "a"] == [0.0]


def test_grades_that_miss_of_items_to_avoid_are_no_missing_cells_of_cover() -> None:
    """Of 2 wanted items all cells are graded, of the item to avoid 1 of 2."""
    rows: Cells = [[5, 0, N], [0, 0, 0]]
    query = make_query(rows, make_ranking("a", [0, 1]), weights=[1.0, 1.0, -1.0], query_id="q1")
    plain = make_query([[0], [0]], make_ranking("a", [0, 1]), query_id="q2")
    book = make_book(query, plain)
    alone = {one.measure.name: one for one in cover(book, (3,), k=2).columns}
    beside = {one.measure.name: one for one in cover(book, (3,), k=2, measures=AVOIDING).columns}
    assert beside["Cover"].missing_cells == alone["Cover"].missing_cells == (0.0,)
    assert beside["Cover"].low is None
    assert beside["Cover"].high is None
    # q2 has nothing to avoid: 1 of 2 cells; with the wanted ones of both queries, 1 of 8
    assert beside["Avoided"].missing_cells == (1 / 2,)
    assert beside["Points"].missing_cells == (1 / 8,)
    assert beside["Avoided"].bounds() == [(0.0, 1.0)]
    # q1: (1 - 1) / 2 to 1 / 2; q2: 0
    assert beside["Points"].bounds() == [(0.0, 0.25)]
    assert beside["Avoided"].ungraded == (0.5,)
    assert beside["Cover"].ungraded == (0.0,)


def test_a_mean_of_points_below_0_counts_as_0_everywhere() -> None:
    """Of bad: (-7/8 + 0) / 2; of good: (5/8 + 1) / 2. Differences are not clipped."""
    rows = [[5, 0, 0, 0], [0, 5, 0, 4], [0, 0, 4, 0]]
    first = make_query(
        rows,
        make_ranking("good", [0]),
        make_ranking("bad", [1, 2]),
        weights=[5.0, 3.0, -8.0, -2.0],
        query_id="q1",
    )
    second = make_query([[5], [0]], make_ranking("good", [0]), make_ranking("bad", [1]))
    book = make_book(first, replace(second, query_id="q2"))
    board = evaluate_gradebook(book, ["Points@2"], 3)
    means = {"good": 0.8125, "bad": 0.0}
    assert {row.system: row.mean for row in board.rows if row.system in means} == means
    assert {row.system: row.mean.mean for row in significance_of(book, board).systems} == means
    assert min(row.low or 0.0 for row in significance_of(book, board).systems) == 0.0
    compared = compare_systems(book, "good", "bad", "Points@2", min_rating=3)
    assert [one.mean for one in compared.means] == [0.8125, 0.0]
    assert compared.pair.difference.value == -0.4375 - 0.8125
    assert any("below 0 counts as 0" in one for one in compared.tables()["total"].notes)
    settings = GateSettings(min_rating=3)
    gate = judge_systems(book, [parse_requirement("Points@2>=0.1")], settings=settings)
    assert {row.system: row.mean for row in gate.rows} == means
    assert {row.low for row in gate.rows if row.system == "bad"} == {0.0}
    before = EarlierScores("last", scores_of(board), system="good")
    against = [parse_requirement("Points@2>=baseline-0.1")]
    (row,) = judge_systems(book, against, before, systems=["bad"], settings=settings).rows
    assert (row.mean, row.baseline, row.difference) == (0.0, 0.8125, -1.25)
    assert "a mean below 0 counts as 0" in row.why
    # a bound that every system meets is named
    (row,) = judge_systems(
        book, [parse_requirement("Points@2>=0")], systems=["bad"], settings=settings
    ).rows
    assert (row.verdict, row.mean) == ("passed", 0.0)
    assert "no mean of Points@2 is below 0" in row.why
    stored = VersionScores.of_file("last", scores_of(board), clipped=True)
    assert dict(zip(stored.systems, stored.means, strict=True)) == means


def significance_of(book: Gradebook, board: Leaderboard) -> Significance:
    return significance(book, board.columns[0], board.column_systems, SignificanceSettings())


def test_labels_ignore_items_to_avoid() -> None:
    rows = [[0, 5], [4, 0]]
    signed = make_book(make_query(rows, make_ranking("a", [0, 1]), weights=[1.0, -1.0]))
    assert [(one.passage_id, one.label) for one in exam_labels(signed)] == [("p0", 0), ("p1", 4)]


def test_only_a_bank_with_items_to_avoid_shows_avoided() -> None:
    rows = [[5, 0]]
    for weights, names in (([1.0, -1.0], [True]), ([1.0, 1.0], [])):
        book = make_book(make_query(rows, make_ranking("a", [0]), weights=weights))
        board = evaluate_gradebook(book)
        shown = [True for one in board.columns if str(one.measure) == "Avoided@20"]
        assert shown == names
        assert any("to avoid" in one for one in board.notes) == bool(names)


@st.composite
def signed_books(draw: st.DrawFn) -> Gradebook:
    queries = []
    for query in draw(books()).queries:
        sizes = st.sampled_from([-2.5, -1.0, -0.1, 0.1, 1.0, 2.5])
        items = len(query.item_ids)
        weights = draw(st.lists(sizes, min_size=items, max_size=items))
        queries.append(replace(query, weights=np.array(weights)))
    return make_book(*queries, systems=["a", "b"])


@given(signed_books(), st.integers(1, 5))
def test_points_and_avoided_against_the_definition(book: Gradebook, tau: int) -> None:
    result = cover(book, (tau,), k=2, subtopics="query", measures=AVOIDING[1:])
    avoided, points = result.columns
    for column, query_id in enumerate(result.query_ids):
        query = next(one for one in book.queries if one.query_id == query_id)
        rankings = {r.system: r.passages.tolist() for r in query.rankings if r.subtopic == 0}
        for row, system in enumerate(book.systems):
            read = rankings.get(system, [])[:2]
            met = [
                weight
                for weight, item in zip(query.weights.tolist(), query.ratings.T, strict=True)
                if any(item[p] >= tau for p in read)
            ]
            most = sum(one for one in query.weights.tolist() if one > 0)
            least = -sum(one for one in query.weights.tolist() if one < 0)
            assert points.values.counts[row, column] == (book.is_graded and most > 0)
            assert avoided.values.counts[row, column] == (book.is_graded and least > 0)
            if most and book.is_graded:
                assert math.isclose(
                    points.values.values[row, column], sum(met) / most, abs_tol=CLOSE
                )
            if least and book.is_graded:
                lost = -sum(one for one in met if one < 0) / least
                wanted = (1 - lost) * bool(read)
                assert math.isclose(avoided.values.values[row, column], wanted, abs_tol=CLOSE)


@given(signed_books(), st.integers(1, 5), st.data())
def test_no_filling_leaves_the_bounds_of_points(
    book: Gradebook, tau: int, data: st.DataObject
) -> None:
    # without any grade, no query counts
    assume(book.is_graded)
    filled = []
    for query in book.queries:
        fill = data.draw(st.lists(st.integers(0, 5), min_size=query.ratings.size))
        drawn = np.array(fill[: query.ratings.size]).reshape(query.ratings.shape)
        filled.append(replace(query, ratings=np.where(query.ratings < 0, drawn, query.ratings)))
    full = make_book(*filled, systems=book.systems)
    options: dict[str, Any] = {"k": 2, "subtopics": "query", "measures": AVOIDING[1:]}
    bounds = cover(book, (tau,), missing="bounds", **options)
    for bounded, exact in zip(bounds.columns, cover(full, (tau,), **options).columns, strict=True):
        assert bounded.low is not None
        assert bounded.high is not None
        assert (bounded.low.values <= exact.values.values + CLOSE).all()
        assert (bounded.high.values >= exact.values.values - CLOSE).all()
