"""The queue: against trying every cell out, as people decide, and who is asked about what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exams
from support.books import random_book

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.cover import cover
from exampp.measures.exams import resolve_subtopics
from exampp.records.decisions import Decision
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.graders import Grade, State
from exampp.review.queue import (
    Assignment,
    Candidate,
    CellName,
    OverturnCount,
    by_passage,
    most_influential_cells,
    overturns,
    queue_of,
)
from exampp.store.connection import transaction
from exampp.store.decisions import JudgedCell
from exampp.store.grades import grade_row, graders, put_grades

MIN_RATING = 3


def means(book: Gradebook, k: int) -> list[float]:
    mode = resolve_subtopics(book, "auto")
    found = cover(book, [MIN_RATING], k=k, subtopics=mode).of("Cover")[0].values.means()
    return [mean.mean or 0.0 for mean in found]


def crossed(book: Gradebook, place: int, passage: int, item: int) -> Gradebook:
    """The gradebook with one cell on the other side of the threshold."""
    query = book.queries[place]
    ratings = query.ratings.copy()
    covered = ratings[passage, item] >= MIN_RATING
    ratings[passage, item] = MIN_RATING - 1 if covered else MIN_RATING
    queries = list(book.queries)
    queries[place] = replace(query, ratings=ratings)
    return replace(book, queries=tuple(queries))


def cells_of(book: Gradebook) -> Iterator[tuple[int, QueryGrades, int, int]]:
    for place, query in enumerate(book.queries):
        for passage in range(query.pool_size):
            for item in range(len(query.item_ids)):
                yield place, query, passage, item


def turned(before: list[float], after: list[float]) -> tuple[float, float]:
    """Pairs that swap, ties made or broken as halves; and by how much all differences change."""
    swaps = gaps = 0.0
    for a, b in combinations(range(len(before)), 2):
        was, now = before[a] - before[b], after[a] - after[b]
        swaps += abs(np.sign(round(was, 9)) - np.sign(round(now, 9))) / 2
        gaps += abs(was - now)
    return swaps, gaps


def brute_force(book: Gradebook, k: int) -> dict[CellName, tuple[int, float, float, float]]:
    """By cell that moves anybody: how many systems, by how much, swaps, changes of differences."""
    before = means(book, k)
    found = {}
    for place, query, passage, item in cells_of(book):
        after = means(crossed(book, place, passage, item), k)
        moves = [b - a for a, b in zip(before, after, strict=True) if abs(b - a) > 1e-12]
        if not moves:
            continue
        assert max(moves) - min(moves) < 1e-12
        name = (query.query_id, query.item_ids[item], query.passage_ids[passage])
        found[name] = (len(moves), moves[0], *turned(before, after))
    return found


def names(candidates: list[Candidate]) -> list[CellName]:
    return [(one.query_id, one.item_id, one.passage_id) for one in candidates]


@settings(max_examples=12)  # each tries every cell of a book out
@given(
    st.integers(0, 10**6), st.sampled_from([(0, False), (2, False), (2, True)]), st.integers(1, 5)
)
def test_what_a_cell_can_change(seed: int, subtopics: tuple[int, bool], k: int) -> None:
    book = random_book(
        seed, queries=3, passages=7, subtopics=subtopics[0], by_subtopic=subtopics[1]
    )
    found = most_influential_cells(book, min_rating=MIN_RATING, k=k, most=10**6)
    wanted = brute_force(book, k)
    assert len(found) == len(wanted)
    assert set(names(found)) == set(wanted)
    for name, one in zip(names(found), found, strict=True):
        systems, move, swaps, gaps = wanted[name]
        assert (one.systems, one.swaps) == (systems, swaps)
        assert (one.move, one.gaps) == pytest.approx((move, gaps), abs=1e-12)
    order = [one.priority for one in found]
    assert order == sorted(order, reverse=True)
    assert most_influential_cells(book, min_rating=MIN_RATING, k=k, most=5) == found[:5]
    assert names(
        most_influential_cells(book, min_rating=MIN_RATING, k=k, decided=set(names(found[::2])))
    ) == names(found[1::2])


def test_chances_by_hand() -> None:
    """Threshold 3: 3 and 2 are one step from the other side, 5 and 0 three."""
    book = random_book(5, equal_weights=True)
    rated: dict[int | None, set[float]] = {}
    for one in most_influential_cells(book, min_rating=MIN_RATING, most=10**6):
        rated.setdefault(one.rating, set()).add(one.chance)
    table = np.concatenate([query.ratings.ravel() for query in book.queries])
    graded = table[table != MISSING]
    assert rated == {
        0: {1 / 16},
        1: {1 / 8},
        2: {1 / 4},
        3: {1 / 4},
        4: {1 / 8},
        5: {1 / 16},
        None: {(graded >= MIN_RATING).sum() / len(graded)},
    }


def test_decisions_replace_the_guess() -> None:
    seen = overturns([(2, 4), (2, 3), (2, 2), (2, 0), (5, 4), (5, 5)], MIN_RATING)
    assert seen == {2: OverturnCount(4, 2), 5: OverturnCount(2, 0)}
    found = most_influential_cells(random_book(5), min_rating=MIN_RATING, seen=seen, most=10**6)
    chances = {one.rating: one.chance for one in found}
    assert chances[2] == pytest.approx((2 + 10 / 4) / 14)
    assert chances[5] == pytest.approx((0 + 10 / 16) / 12)
    assert chances[3] == 1 / 4


def test_nothing_to_decide() -> None:
    book = random_book(5)
    assert most_influential_cells(replace(book, queries=()), min_rating=MIN_RATING) == []
    bare = [replace(query, rankings=()) for query in book.queries]
    assert most_influential_cells(replace(book, queries=tuple(bare)), min_rating=MIN_RATING) == []


def test_cells_of_a_passage_come_together() -> None:
    found = [
        Candidate("q", f"i{n}", passage, 4, 1, 0.1, 8.0 - n, 1.0, 1.0)
        for n, passage in enumerate("ababa")
    ]
    assert [one.item_id for one in by_passage(found)] == ["i0", "i2", "i4", "i1", "i3"]


# ---- of a collection -----------------------------------------------------------------------------


def grade(collection: exampp.Collection) -> None:
    """Every cell gets 3: one step below the threshold."""
    collection.grade(ScriptedGrader("3"), model="scripted")


def waiting(collection: exampp.Collection) -> list[Candidate]:
    connection = collection.connection
    (grader,) = graders(connection)
    return queue_of(connection, grader, "main", collection.grades().gradebook, min_rating=4)


def decide(collection: exampp.Collection, one: Candidate, rating: int | None) -> None:
    collection.grades().decisions.decide(
        one.query_id, one.item_id, one.passage_id, rating, author="ann"
    )


def test_what_is_decided_leaves_the_queue_and_teaches_it(tmp_path: Path) -> None:
    """Nothing is covered: alpha has two passages on q1 and one on q2, beta p4 on both."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        first = waiting(collection)
        assert {(one.rating, one.chance) for one in first} == {(3, 0.25)}
        assert len(first) == 3 * 2 + 2
        decide(collection, first[0], 5)
        then = waiting(collection)
        assert first[0] not in then
        assert {one.chance for one in then} == {(1 + 10 * 0.25) / 11}
        decide(collection, first[0], 3)
        assert {one.chance for one in waiting(collection)} == {(0 + 10 * 0.25) / 11}
        # taken back, it is open again, and nothing is known of such grades
        decide(collection, first[0], None)
        assert waiting(collection) == first


def test_how_sure_the_model_was(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        connection = collection.connection
        (grader,) = graders(connection)
        (item, passage), *_ = connection.execute(
            "SELECT i.version, p.version FROM item i, passage p WHERE i.kind = 'question' "
            "AND p.passage_id = 'p2' ORDER BY i.item"
        ).fetchall()
        sure = Grade("", State.GRADED, 3, "3!", confidence=0.9)
        with connection, transaction(connection):
            put_grades(connection, [grade_row(grader.key, item, passage, sure)])
        chances = {(one.passage_id, one.item_id): one.chance for one in waiting(collection)}
        low = [name for name, chance in chances.items() if chance == pytest.approx(0.1 / 2)]
        assert [name[0] for name in low] == ["p2"]
        assert sorted(set(chances.values())) == [pytest.approx(0.05), 0.25]


# ---- who is asked --------------------------------------------------------------------------------


CELLS = [("q", f"i{n % 40}", f"p{n // 40}") for n in range(2000)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_share_is_what_was_asked_for_and_the_rest_is_shared_out_evenly(share: float) -> None:
    found = Counter(Assignment(("ann", "bob", "cas"), share).owner(cell) for cell in CELLS)
    assert found[None] / len(CELLS) == pytest.approx(share, abs=0.03)
    for person in ("ann", "bob", "cas"):
        assert found[person] / len(CELLS) == pytest.approx((1 - share) / 3, abs=0.03)


def test_a_larger_share_holds_the_smaller_one_whoever_is_there() -> None:
    small, large = Assignment(("ann",), 0.1), Assignment(("bob", "cas"), 0.3)
    assert all(large.is_shared(cell) for cell in CELLS if small.is_shared(cell))


def test_what_others_decided_of_the_share_is_owed_until_it_is_settled() -> None:
    def judged(*made: Decision) -> JudgedCell:
        return JudgedCell("q", "i", "p", 4, made)

    everything, nothing = Assignment(("ann", "bob"), 1.0), Assignment(("ann", "bob"), 0.0)
    by_ann, withdrawn = Decision(1, "ann", 3), Decision(2, "ann", None)
    assert everything.owed([judged(by_ann)], "bob") == [("q", "i", "p")]
    assert everything.owed([judged(by_ann)], "ann") == []
    assert everything.owed([judged(by_ann, withdrawn)], "bob") == []
    settled = Decision(3, "cas", 4, adjudicates=True)
    assert everything.owed([judged(by_ann, settled)], "bob") == []
    assert nothing.owed([judged(by_ann)], "bob") == []
