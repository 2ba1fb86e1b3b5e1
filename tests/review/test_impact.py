"""Effect of an edit: compared with a new evaluation, and with saving it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import exams
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
from support.commands import Commands

import exampp
from exampp.bank import Bank
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.items.edits import apply_change, change_item, find_item
from exampp.measures.cover import cover
from exampp.measures.exams import SubtopicChoice
from exampp.measures.qrels import Labelling, exam_labels
from exampp.measures.values import MeasureColumn, Values
from exampp.records import item_id
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GradingTarget
from exampp.results.result import Table
from exampp.review.impact import Baseline, EditPreview, Impact, Shift
from exampp.stats.estimate import Estimate
from exampp.store.bank import ItemChange, ItemState

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
    seed: int, count: int, subtopics: tuple[int, bool], mode: SubtopicChoice, labelling: Labelling
) -> None:
    """Queries start and stop to count, subtopics appear, several edits come at once."""
    book = random_book(seed, subtopics=subtopics[0], by_subtopic=subtopics[1])
    baseline = Baseline.of(
        book,
        MEASURES,
        min_rating=3,
        labelling=labelling,
        subtopics=mode,
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
    # an interval is not known to hold where cells are skipped
    skipping = GradingTarget(("Cover@1",), (4,), may_miss=0.1, audit=0.2)
    estimated = Baseline.of(replace(book, target=skipping), ["Cover@1"])
    ((other,),) = (
        one.swaps
        for one in impact_on(
            estimated, edited(book.queries[0], [(retire_item, "i2"), (retire_item, "i3")])
        ).shifts
    )
    assert (other.after.value, other.after.low) == (0.125, None)
    assert "(--may-miss)" in other.after.why
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
    with pytest.raises(exampp.InputError, match="unknown query 'z'"):
        impact_on(Baseline.of(book), replace(book.queries[0], query_id="z"))


# ---- test preview -------------------------------------------------------------------------------

SKY, SUNSET, MAGNET = "What does air scatter?", "Why are sunsets red?", "What makes a magnet?"
NEW = "Which colour does air scatter most?"
SKY_ID, SUNSET_ID, MAGNET_ID = item_id("q1", SKY), item_id("q1", SUNSET), item_id("q2", MAGNET)
OF_Q1 = 3
"""Passages in the pool of q1."""


class Operation(NamedTuple):
    """One edit of an item of q1."""

    operation: str
    item: str
    values: tuple[str, ...] = ()


def rating(ask: Request) -> str:
    """Some rating that depends on both texts."""
    return str(sum(map(ord, ask.item + ask.passage)) % 6)


def grade(collection: exampp.Collection) -> int:
    """Grade what is due; returns how many cells were asked."""
    grader = ScriptedGrader(rating)
    collection.grade(grader, model="scripted")
    return len(grader.calls)


def query_of(collection: exampp.Collection, query_id: str = "q1") -> QueryGrades:
    return next(q for q in collection.grades().gradebook.queries if q.query_id == query_id)


def same_query(one: QueryGrades, other: QueryGrades) -> bool:
    return (
        one.item_ids == other.item_ids
        and one.subtopic_ids == other.subtopic_ids
        and np.array_equal(one.item_subtopics, other.item_subtopics)
        and np.array_equal(one.weights, other.weights)
        and np.array_equal(one.ratings, other.ratings)
        and one.judgments.shape == other.judgments.shape
    )


def save_edits(collection: exampp.Collection, edits: Sequence[Operation | ItemState]) -> None:
    for edit in edits:
        if isinstance(edit, ItemState):
            text, subtopic = edit.text or "", edit.subtopic_id
            collection.bank().add(
                "q1", text, kind=edit.kind, subtopic_id=subtopic, weight=edit.weight
            )
        else:
            collection.bank().edit(edit.operation, edit.item, *edit.values, query_id="q1")


def changes(
    collection: exampp.Collection, edits: Sequence[Operation | ItemState], query_id: str = "q1"
) -> list[ItemChange]:
    items, found = collection.bank().items(query_id), []
    for edit in edits:
        if isinstance(edit, ItemState):
            change = ItemChange("add", None, edit)
        else:
            known = find_item(items, edit.item, query_id)
            change = change_item(known, edit.operation, edit.values)
        apply_change(items, change)
        found.append(change)
    return found


def preview(
    collection: exampp.Collection, *edits: Operation | ItemState, query_id: str = "q1"
) -> EditPreview:
    stored = collection.grades().stored
    return collection.bank().preview(changes(collection, edits, query_id), stored)


def check_preview(collection: exampp.Collection, *edits: Operation | ItemState) -> EditPreview:
    """Preview, save_edits, compare; grades what is due then."""
    before = exams.tables(collection.path)
    found = preview(collection, *edits)
    assert exams.tables(collection.path) == before
    save_edits(collection, edits)
    assert same_query(found.queries["q1"], query_of(collection))
    assert grade(collection) == found.to_grade
    return found


def test_each_edit(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        assert check_preview(collection, Operation("reword", SKY_ID, (NEW,))).to_grade == OF_Q1
        # the old wording finds its grades again, and so does the new one
        assert check_preview(collection, Operation("reword", SKY_ID, (SKY,))).to_grade == 0
        assert check_preview(collection, Operation("reword", SKY_ID, (NEW,))).to_grade == 0
        assert check_preview(collection, Operation("weight", SKY_ID, ("2.5",))).to_grade == 0
        assert check_preview(collection, Operation("key", SKY_ID, ("blue",))).to_grade == 0
        assert check_preview(collection, Operation("retire", SKY_ID)).to_grade == 0
        assert check_preview(collection, Operation("restore", SKY_ID)).to_grade == 0
        new = ItemState("q1", "", "How far does light go?", subtopic_id="light", weight=0.5)
        assert check_preview(collection, new).to_grade == OF_Q1
        assert preview(collection, ItemState("q1", "", "blue light", "nugget")).to_grade == 0


def test_decisions_come_back_with_their_text(tmp_path: Path) -> None:
    """A person decided about the old wording; the preview of going back to it knows."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        p1 = query_of(collection).passage_ids.index("p1")
        automatic = int(query_of(collection).ratings[p1, 0])
        other = (automatic + 3) % 6
        collection.grades().decisions.decide("q1", SKY_ID, "p1", other, author="ann")
        check_preview(collection, Operation("reword", SKY_ID, (NEW,)))
        back = check_preview(collection, Operation("reword", SKY_ID, (SKY,)))
        assert back.queries["q1"].ratings[p1, 0] == other


def test_what_was_graded_elsewhere_is_not_asked_again(tmp_path: Path) -> None:
    """q2 asks what q1 asked; they share the passage p4, whose grade is copied."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        found = preview(collection, Operation("reword", MAGNET_ID, (SKY,)), query_id="q2")
        pool = query_of(collection, "q2")
        shared = set(pool.passage_ids) & set(query_of(collection).passage_ids)
        assert shared == {"p4"}
        assert found.to_grade == len(pool.passage_ids) - 1
        collection.bank().edit("reword", MAGNET_ID, SKY)
        assert grade(collection) == found.to_grade


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (Operation("reword", SKY_ID, (SKY,)), "would not change"),
        (Operation("reword", SKY_ID, (" ",)), "the text is blank"),
        (Operation("weight", SKY_ID, ("much",)), "'much' is not"),
        (Operation("retire", MAGNET_ID), "has no item"),
        (ItemState("q1", "", SKY), "already has that question"),
    ],
)
def test_what_the_bank_refuses(tmp_path: Path, edit: Operation | ItemState, what: str) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        with pytest.raises(exampp.InputError, match=what):
            preview(collection, edit)


TEXTS = [SKY, SUNSET, NEW, "How far does light go?"]
PLACES = st.integers(0, 3).map(str)
WORDINGS = st.sampled_from(TEXTS)
WANTED = st.lists(
    st.one_of(
        st.builds(Operation, st.just("reword"), PLACES, st.tuples(WORDINGS)),
        st.builds(Operation, st.just("weight"), PLACES, st.tuples(st.sampled_from("0123"))),
        st.builds(Operation, st.sampled_from(["retire", "restore"]), PLACES),
        st.builds(
            ItemState,
            query_id=st.just("q1"),
            item_id=st.just(""),
            text=WORDINGS,
            subtopic_id=st.sampled_from([None, "light"]),
        ),
    ),
    max_size=8,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WANTED)
def test_any_edits_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Operation | ItemState]
) -> None:
    """Items are meant by their place; what the bank refuses is left out."""
    with exams.make(tmp_path_factory.mktemp("exam")) as collection:
        grade(collection)
        for edit in wanted:
            if isinstance(edit, Operation):
                known = collection.bank().items("q1")
                edit = edit._replace(item=known[int(edit.item) % len(known)].item_id)
            try:
                preview(collection, edit)
            except exampp.InputError:
                continue
            check_preview(collection, edit)


def test_the_impact_of_a_preview_is_that_of_saving(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        before = Baseline.of(collection.grades().gradebook)
        edits: list[Operation | ItemState] = [Operation("retire", SKY_ID), ItemState("q1", "", NEW)]
        found = preview(collection, *edits)
        save_edits(collection, edits)
        after = Baseline.of(collection.grades().gradebook)
        impact = before.impact(found.queries)
        for shift, means in zip(impact.shifts, after.means, strict=True):
            assert {move.system: move.after for move in shift.moves} == dict(
                zip(after.gradebook.systems, means, strict=True)
            )
        assert impact.missing_after == found.to_grade == OF_Q1


# ---- test dry run -------------------------------------------------------------------------------

SCATTER = item_id("q1", exams.QUESTIONS["q1"][0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The small exam, p1 and p3 rated 5, all else 0; answers extracted, one key matching."""
    with exams.make(tmp_path) as collection:
        collection.bank().edit("key", SCATTER, "blue light")
        for item in (
            item_id("q1", exams.QUESTIONS["q1"][1]),
            item_id("q2", exams.QUESTIONS["q2"][0]),
        ):
            collection.bank().edit("key", item, "nothing")
        best = ("Air", "Aligned")
        collection.grade(
            ScriptedGrader(lambda ask: "5" if ask.passage.startswith(best) else "0"), model="rater"
        )
        collection.grade(
            ScriptedGrader(lambda ask: " ".join(ask.passage.split()[2:4])),
            prompt="question-answering",
            model="extractor",
        )
    return tmp_path / "my.exam"


EDITS: list[Callable[[Bank], Table]] = [
    lambda bank: bank.edit("retire", SCATTER),
    lambda bank: bank.edit("reword", SCATTER, "What does the air scatter?"),
    lambda bank: bank.edit("key", SCATTER, "green light"),
    lambda bank: bank.edit("weight", SCATTER, "3"),
    lambda bank: bank.add("q1", "What is scattered?", answers=["blue"]),
    lambda bank: bank.revert(3),
    lambda bank: bank.undo(int(str(bank.log(last=1).rows[0][0]))),
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_trial_tells_what_the_edit_does(path: Path, edit: Callable[[Bank], Table]) -> None:
    before = exams.tables(path)
    with exampp.Collection(path) as collection:
        trial = collection.bank().trial(edit)
        assert exams.tables(path) == before
        assert edit(collection.bank()) == trial.changes
        due = dict(
            zip(("rater", "extractor"), [row[2] for row in collection.status().rows], strict=True)
        )
        for one in trial.effects:
            assert one.pending_after == due[one.grader.model]
            board = collection.grades(one.grader.model).evaluate(["Cover@20", "nDCG@20"])
            means = {(str(row.measure), row.system): row.mean for row in board.rows}
            told = {
                (str(shift.measure), move.system): move.after
                for shift in one.impact.shifts
                for move in shift.moves
            }
            assert told == pytest.approx(means)


def test_labels_of_a_changed_key_are_listed(path: Path) -> None:
    with exampp.Collection(path) as collection:
        trial = collection.bank().trial(lambda bank: bank.edit("key", SCATTER, "red light"))
        # only the verified grade of p1 ("blue light") changes, and the ratings do not
        labels = trial.tables()["labels"]
        assert [row[1:-1] for row in labels.rows] == [("q1", "p1", 1, 0)]
        assert str(labels.rows[0][0]).startswith("extractor")


def test_the_command_shows_it_and_changes_nothing(path: Path, exampp_command: Commands) -> None:
    before = exams.tables(path)
    ran = exampp_command("bank", "edit", path, "retire", SCATTER, "--dry-run", "--format", "json")
    found = json.loads(ran.out)
    assert list(found) == ["changes", "effects", "labels", "scores"]
    assert "(--dry-run)" in ran.err
    text = exampp_command("bank", "edit", path, "retire", SCATTER, "--dry-run").out
    assert "Passages with a new label: " in text
    assert exams.tables(path) == before


def test_an_import_of_a_bank_is_tried_out_too(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text(
        f"query_id\tid\tquestion\tanswer\nq1\t{SCATTER}\t{exams.QUESTIONS['q1'][0]}\tred light\n"
    )
    before = exams.tables(path)
    with exampp.Collection(path) as collection:
        report = collection.import_files(tmp_path / "bank.tsv", update=True, dry_run=True)
        assert ("q1", "p1", 1, 0) in [row[1:-1] for row in report.impact["labels"].rows]
        assert json.loads(report.to_json())["impact"]["labels"]
    assert exams.tables(path) == before
