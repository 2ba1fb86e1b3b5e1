"""What an edit does to the leaderboard, against evaluating everything anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.books import (
    GRADER,
    add_item,
    edited,
    random_book,
    random_edits,
    retire_item,
    reword_item,
    weigh_item,
)

import exampp
from exampp.measures.cover import cover
from exampp.measures.qrels import Labelling, exam_labels
from exampp.measures.values import MeasureColumn, Values
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.review.impact import Baseline, Impact, Shift
from exampp.stats.estimate import Estimate

MEASURES = ("Cover@4", "nCover@4", "nDCG@3", "P@3", "ERR@3")


def with_query(book: Gradebook, query: QueryGrades) -> Gradebook:
    """The whole gradebook after the edit of one query."""
    queries = tuple(query if one.query_id == query.query_id else one for one in book.queries)
    return replace(book, queries=queries)


def impact_on(baseline: Baseline, query: QueryGrades) -> Impact:
    return baseline.impact({query.query_id: query})


def same_values(one: Values | None, other: Values | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.values, other.values) and np.array_equal(one.counts, other.counts)


def same_column(one: MeasureColumn, other: MeasureColumn) -> bool:
    """To the last digit."""
    pairs = ((one.values, other.values), (one.low, other.low), (one.high, other.high))
    return one.query_ids == other.query_ids and all(same_values(*pair) for pair in pairs)


def check(baseline: Baseline, query: QueryGrades) -> Impact:
    """The impact of an edit, compared in every respect with a full recomputation."""
    impact = baseline.impact({query.query_id: query})
    full = Baseline.of(
        with_query(baseline.gradebook, query),
        baseline.measures,
        min_rating=baseline.min_rating,
        labelling=baseline.labelling,
        subtopics=baseline.subtopics,
    )
    found = baseline.with_queries({query.query_id: query}).columns
    for ours, theirs in zip(found, full.columns, strict=True):
        assert same_column(ours, theirs), str(ours.measure)
    for shift, before, after in zip(impact.shifts, baseline.columns, full.columns, strict=True):
        check_moves(shift, before, after, baseline.gradebook.systems)
        check_swaps(shift, before, after, baseline.gradebook.systems)
    was, now = labels(baseline, baseline.gradebook), labels(full, full.gradebook)
    assert {(r.exam_id, r.passage_id): (r.before, r.after) for r in impact.labels} == {
        key: (was.get(key), now.get(key)) for key in {*was, *now} if was.get(key) != now.get(key)
    }
    return impact


def labels(baseline: Baseline, book: Gradebook) -> dict[tuple[str, str], int]:
    by_subtopic = baseline.mode == "subtopic"
    rows = exam_labels(book, baseline.labelling, baseline.min_rating, by_subtopic=by_subtopic)
    return {(row.query_id, row.passage_id): row.label for row in rows}


def check_moves(
    shift: Shift, before: MeasureColumn, after: MeasureColumn, systems: tuple[str, ...]
) -> None:
    moves = {move.system: move for move in shift.moves}
    assert set(moves) == set(systems)
    means = [dict(zip(systems, c.values.means(), strict=True)) for c in (before, after)]
    for system, move in moves.items():
        assert (move.before, move.after) == tuple(of[system].mean for of in means)
        for rank, of in ((move.rank_before, means[0]), (move.rank_after, means[1])):
            own = of[system].mean
            others = [m.mean for m in of.values() if m.mean is not None]
            better = sum(round(m, 10) > round(own, 10) for m in others) if own is not None else 0
            assert rank == (None if own is None else better + 1)
    assert [abs(m.change) for m in shift.moves] == sorted(
        (abs(m.change) for m in shift.moves), reverse=True
    )


def check_swaps(
    shift: Shift, before: MeasureColumn, after: MeasureColumn, systems: tuple[str, ...]
) -> None:
    old, new = (
        {s: m.mean for s, m in zip(systems, c.values.means(), strict=True)} for c in (before, after)
    )
    expected = set()
    for one, other in combinations(systems, 2):
        values = [old[one], old[other], new[one], new[other]]
        if None in values:
            continue
        a, b, c, d = (round(v, 10) for v in values if v is not None)
        if (a < b and c > d) or (a > b and c < d):
            expected.add((one, other) if c > d else (other, one))
    assert {(swap.ahead, swap.behind) for swap in shift.swaps} == expected
    for swap in shift.swaps:
        assert swap.before.value is not None
        assert swap.before.value < 0
        assert swap.after.value is not None
        assert swap.after.value > 0


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([(0, False), (2, False), (2, True)]),
    st.sampled_from(["auto", "query", "subtopic", "pool"]),
    st.sampled_from([Labelling(), Labelling("count"), Labelling("best", 2, "above")]),
)
def test_small_gradebooks(
    seed: int, count: int, subtopics: tuple[int, bool], mode: str, labelling: Labelling
) -> None:
    """Queries start and stop to count, subtopics appear, several edits come at once."""
    book = random_book(seed, subtopics=subtopics[0], by_subtopic=subtopics[1])
    baseline = Baseline.of(
        book,
        MEASURES,
        min_rating=3,
        labelling=labelling,
        subtopics=mode,  # type: ignore[arg-type]
    )
    random = np.random.default_rng(seed)
    query = book.queries[random.integers(len(book.queries))]
    check(baseline, edited(query, random_edits(query, random, count)))


def one_query(query_id: str, ratings: list[list[int]], tops: dict[str, list[int]]) -> QueryGrades:
    """Passages p0, p1, ... against items i0, i1, ...; -1 is a cell without a grade."""
    table = np.array(ratings, np.int16)
    table[table < 0] = MISSING
    return QueryGrades(
        query_id=query_id,
        subtopic_ids=(),
        item_ids=tuple(f"i{n}" for n in range(table.shape[1])),
        item_subtopics=np.zeros(table.shape[1], np.int32),
        weights=np.ones(table.shape[1]),
        passage_ids=tuple(f"p{n}" for n in range(len(table))),
        pool_size=len(table),
        ratings=table,
        judgments=np.full((1, len(table)), MISSING, np.int16),
        rankings=tuple(
            Ranking(name, 0, np.array(top, np.int32), np.arange(len(top), 0, -1.0))
            for name, top in tops.items()
        ),
    )


def by_hand() -> Gradebook:
    """Four queries. Cover@1 of a is 1/2 3/4 on q0 and 1/2 elsewhere; of b 3/4 on q0, 1/2 elsewhere.

    On q0 the passage of a answers i0 and i1, that of b i1, i2 and i3.
    """
    first = one_query(
        "q0", [[5, 4, 0, 0], [0, 4, 5, 4], [0, 0, 0, 0]], {"a": [0], "b": [1], "c": [2]}
    )
    rest = [
        one_query(f"q{n}", [[5, 0], [0, 5], [0, 0]], {"a": [0], "b": [1], "c": [2]})
        for n in (1, 2, 3)
    ]
    return Gradebook(GRADER, "bank", (first, *rest), ("a", "b", "c"))


def test_a_swap_by_hand() -> None:
    """b is ahead by (3/4 - 2/4) / 4 = 1/16; without i2 and i3 a is, by (2/2 - 1/2) / 4 = 1/8."""
    book = by_hand()
    baseline = Baseline.of(book, ["Cover@1"])
    impact = impact_on(
        baseline, edited(book.queries[0], [(retire_item, "i2"), (retire_item, "i3")])
    )
    (shift,) = impact.shifts
    assert [(m.system, m.before, m.after, m.rank_before, m.rank_after) for m in shift.moves] == [
        ("a", 0.5, 0.625, 2, 1),
        ("b", 0.5625, 0.5, 1, 2),
        ("c", 0.0, 0.0, 3, 3),
    ]
    (swap,) = shift.swaps
    assert (swap.ahead, swap.behind) == ("a", "b")
    assert (swap.before.value, swap.after.value) == (-0.0625, 0.125)
    # they differ on one query of four
    assert swap.after.low is not None
    assert swap.after.low < -0.5
    assert not swap.beyond_noise
    # the best grade of p1 is 4 now, not 5: still relevant
    assert [(r.passage_id, r.before, r.after, r.was_relevant, r.is_relevant)
            for r in impact.labels] == [("p1", 5, 4, True, True)]  # fmt: skip


def test_a_label_that_crosses_the_threshold() -> None:
    book = by_hand()
    impact = impact_on(Baseline.of(book), edited(book.queries[1], [(reword_item, "i0", {"p2": 4})]))
    found = [
        (r.passage_id, r.before, r.after, r.was_relevant, r.is_relevant) for r in impact.labels
    ]
    assert found == [("p0", 5, 0, True, False), ("p2", 0, 4, False, True)]


def test_one_query_swaps_no_pair_beyond_noise() -> None:
    """a is ahead by 0.05 to 0.13 on nine queries; b is, by 1, on the one where an item is wrong."""
    tops = {"a": [0], "b": [1]}
    light = [
        replace(one_query(f"q{n}", [[5, 5], [5, 0]], tops), weights=np.array([1 - w, w]))
        for n, w in enumerate(np.arange(5, 14) / 100)
    ]
    wrong = replace(one_query("wrong", [[0, 0], [5, 0]], tops), weights=np.array([1.0, 0.0]))
    book = Gradebook(GRADER, "bank", (*light, wrong), ("a", "b"))
    fixed = edited(wrong, [(retire_item, "i0"), (weigh_item, "i1", 1)])
    (shift,) = impact_on(Baseline.of(book, ["Cover@1"]), fixed).shifts
    (swap,) = shift.swaps
    assert (swap.ahead, swap.behind, swap.beyond_noise) == ("a", "b", False)
    assert swap.after.value == pytest.approx(0.081)
    # ten queries do not exclude a loss on up to 31 % of all queries
    assert swap.after.low is not None
    assert -0.31 < swap.after.low < -0.2
    assert swap.before.value == pytest.approx(-0.019)
    # and back: b comes out ahead, but by that one query alone
    (shift,) = Baseline.of(with_query(book, fixed), ["Cover@1"]).impact({"wrong": wrong}).shifts
    (swap,) = shift.swaps
    assert (swap.ahead, swap.behind, swap.beyond_noise) == ("b", "a", False)


def test_what_is_not_graded_yet_counts_as_not_covered_within_bounds() -> None:
    """A new item on q0: each system covers it or not, whatever the grades will be."""
    book = by_hand()
    baseline = Baseline.of(book, ["Cover@1", "nDCG@1"])
    impact = impact_on(baseline, edited(book.queries[0], [(add_item, "new")]))
    assert (impact.missing_before, impact.missing_after) == (0, 3)
    cover, ndcg = impact.shifts
    found = {m.system: [m.after, m.low, m.high] for m in cover.moves}
    assert found["a"] == pytest.approx([1.9 / 4, 1.9 / 4, 2.1 / 4])
    assert found["c"] == pytest.approx([0, 0, 0.2 / 4])
    assert {(m.low, m.high) for m in ndcg.moves} == {(None, None)}


def test_a_query_that_gets_its_first_item() -> None:
    """Before, the leaderboard is over three queries; then over four, of which one is new."""
    book = by_hand()
    empty = edited(book.queries[0], [(retire_item, f"i{n}") for n in range(4)])
    baseline = Baseline.of(with_query(book, empty), ["Cover@1"])
    impact = check(baseline, edited(empty, [(add_item, "new", 1.0, None, {"p2": 5})]))
    moves = {move.system: (move.before, move.after) for move in impact.shifts[0].moves}
    assert moves == {"a": (0.5, 0.375), "b": (0.5, 0.375), "c": (0.0, 0.25)}


def test_the_first_item_with_a_subtopic_changes_how_every_query_is_read() -> None:
    """Systems rank subtopics, items had none: their rankings were pooled, now they are not."""
    book = random_book(3, subtopics=2, by_subtopic=True)
    plain = [
        replace(query, item_subtopics=np.zeros(len(query.item_ids), np.int32))
        for query in book.queries
    ]
    baseline = Baseline.of(replace(book, queries=tuple(plain)), MEASURES, min_rating=3)
    assert baseline.mode == "pool"
    query = edited(plain[0], [(add_item, "new", 1.0, "f1", {"p0": 5, "p1": 5})])
    check(baseline, query)
    others, changed = (
        {name: columns[0].values.values[:, n] for n, name in enumerate(columns[0].query_ids)}
        for columns in (baseline.columns, baseline.with_queries({query.query_id: query}).columns)
    )
    assert others.keys() == changed.keys()
    assert not all(np.array_equal(others[name], changed[name]) for name in others if name != "q0")


def test_intervals_are_those_of_weighted_means() -> None:
    """An independent computation of the same interval, for the swaps of one large edit."""
    baseline = Baseline.of(random_book(8, queries=20, missing=0.0), ["Cover@20"])
    query, impact = next(
        (after, impact)
        for query in baseline.gradebook.queries
        for after in [edited(query, [(retire_item, item) for item in query.item_ids[:2]])]
        for impact in [impact_on(baseline, after)]
        if impact.shifts[0].swaps
    )
    book = with_query(baseline.gradebook, query)
    values = cover(book, [4]).of("Cover")[0].values.values
    place = {system: index for index, system in enumerate(book.systems)}
    swaps = impact.shifts[0].swaps
    for swap in swaps[:3]:
        difference = values[place[swap.ahead]] - values[place[swap.behind]]
        # Gaffke's limits from drawn weights
        weights = np.random.default_rng(99).dirichlet(np.ones(len(difference) + 1), 100_000)
        low = np.quantile(weights @ np.append(difference, -1.0), 0.025)
        high = np.quantile(weights @ np.append(difference, 1.0), 0.975)
        assert isinstance(swap.after, Estimate)
        assert swap.after.low == pytest.approx(low, abs=0.004)
        assert swap.after.high == pytest.approx(high, abs=0.004)


def test_an_unknown_query_is_refused() -> None:
    book = by_hand()
    with pytest.raises(exampp.InputError, match="there is no query 'z'"):
        impact_on(Baseline.of(book), replace(book.queries[0], query_id="z"))
