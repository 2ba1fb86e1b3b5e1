"""Labels of EXAM-Qrels, and runs from elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gradebooks import make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.measures.cover import cover
from exampp.measures.exams import exams
from exampp.measures.leaderboard import evaluate
from exampp.measures.qrels import Labelling, exam_labels, label_passages, subtopic_rows
from exampp.measures.rankings import with_runs
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.graders import GraderIdentity

N = None


def book() -> Gradebook:
    return make_book(
        make_query(
            # i0 (f1)  i1 i2 (f2)
            [[5, 3, 0], [N, N, N], [4, 4, N], [0, 0, 0]],
            query_id="q",
            subtopics=["f1", "f2"],
            item_subtopics=[1, 2, 2],
            passage_ids=["b", "ungraded", "a", "c"],
        )
    )


def lines(labelling: Labelling | None = None, threshold: int | None = None) -> list[str]:
    return [f"{row.passage_id} {row.label}" for row in exam_labels(book(), labelling, threshold)]


@pytest.mark.parametrize(
    ("labelling", "threshold", "labels"),
    [
        (Labelling(), None, [5, 4, 0]),
        (Labelling(at_least=2), None, [3, 4, 0]),
        (Labelling(at_least=3), None, [0, 0, 0]),  # a has two grades only, and no third best
        (Labelling(at_least=9), None, [0, 0, 0]),
        (Labelling("count"), 1, [2, 2, 0]),
        (Labelling("count"), 4, [1, 2, 0]),
        (Labelling(gains="binary"), 5, [1, 0, 0]),
        (Labelling(gains="above"), 5, [5, 0, 0]),
        (Labelling(at_least=2, gains="binary"), 4, [0, 1, 0]),
        (Labelling("count", at_least=2, gains="binary"), 4, [0, 1, 0]),
        (Labelling("count", at_least=2, gains="above"), 3, [2, 2, 0]),
    ],
)
def test_labels_by_hand(labelling: Labelling, threshold: int | None, labels: list[int]) -> None:
    """Only graded passages, in the order of the pool."""
    assert lines(labelling, threshold) == [
        f"{p} {label}" for p, label in zip("bac", labels, strict=True)
    ]


def test_by_subtopic() -> None:
    assert list(exam_labels(book(), by_subtopic=True)) == [
        ("q/f1", "b", 5),
        ("q/f1", "a", 4),
        ("q/f1", "c", 0),
        ("q/f2", "b", 3),
        ("q/f2", "a", 4),
        ("q/f2", "c", 0),
    ]


def test_subtopic_qrels_keep_uncovered_items() -> None:
    (exam,) = exams(book(), "query")
    rows = list(subtopic_rows(exam, 4))
    assert rows == [
        ("q", "q/i0", "b", 1),
        ("q", "q/i0", "a", 1),
        ("q", "q/i0", "c", 0),
        ("q", "q/i1", "b", 0),
        ("q", "q/i1", "a", 1),
        ("q", "q/i1", "c", 0),
        ("q", "q/i2", "b", 0),
        ("q", "q/i2", "c", 0),
        ("q", "q/i2", "_uncovered_/q/i2", 1),
    ]


def test_an_empty_bank_gives_no_lines() -> None:
    assert list(exam_labels(make_book(make_query([[], []])))) == []


def test_the_lowest_rating_is_that_of_the_scale() -> None:
    one_to_five = GraderIdentity("m", "p", "question", lowest=1)
    graded = make_book(make_query([[5, N]]), grader=one_to_five)
    assert [row.label for row in exam_labels(graded, Labelling(at_least=2))] == [1]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"at_least": 0}, "at least 1 item"),
        ({"kind": "worst"}, "unknown label 'worst'. Use one of best, count"),
        ({"gains": "x"}, "unknown gains 'x'"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Labelling(**wrong)


@pytest.mark.parametrize("labelling", [Labelling("count"), Labelling(gains="binary")])
def test_some_labels_need_a_threshold(labelling: Labelling) -> None:
    with pytest.raises(InputError, match="need a threshold"):
        lines(labelling)


@given(
    st.lists(
        st.lists(st.sampled_from([MISSING, 0, 1, 2, 3, 4, 5]), min_size=4, max_size=4), max_size=6
    ),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_the_mth_best_reaches_tau_where_m_items_do(
    table: list[list[int]], m: int, tau: int
) -> None:
    ratings = np.array(table, np.int16).reshape(-1, 4)
    best = label_passages(ratings, Labelling(at_least=m, gains="binary"), tau)
    count = label_passages(ratings, Labelling("count", at_least=m, gains="binary"), tau)
    assert best.tolist() == count.tolist() == [int(sum(c >= tau for c in r) >= m) for r in table]


# ---- tests/measures/test_evaluate_external.py


TABLE = [[5, 0], [0, 4]]


def test_runs_take_the_place_of_the_rankings() -> None:
    book = make_book(make_query(TABLE, make_ranking("old", [0]), query_id="q"))
    found = with_runs(
        book,
        {
            "new": {"q": [("outside", 9.0), ("p1", 1.0), ("p0", 1.0)], "other": [("p0", 1.0)]},
            "silent": {"q": []},
        },
    )
    assert found.notes == ("Skipped 1 unknown query of the runs: other.",)
    assert found.systems == ("new", "silent")
    (query,) = found.queries
    assert query.passage_ids == ("p0", "p1", "outside")
    assert query.pool_size == 2
    assert query.ratings.shape == (3, 2)
    assert query.judgments.shape == (1, 3)
    (ranking,) = query.rankings
    # By score, the tie by id, both descending.
    assert [query.passage_ids[p] for p in ranking.passages] == ["outside", "p1", "p0"]
    assert ranking.scores.tolist() == [9.0, 1.0, 1.0]
    assert book.queries[0].ratings.shape == (2, 2)
    result = cover(found, (1,), k=2)
    assert [m.mean for m in result.of("Cover")[0].values.means()] == [1 / 2, 0]
    assert result.columns[0].ungraded == (1 / 2, None)
    assert result.columns[0].overall_shares[0] == 0


def test_subtopics_are_found_by_name() -> None:
    book = make_book(
        make_query(TABLE, query_id="q", subtopics=["f", "g/h"], item_subtopics=[1, 2]),
        make_query(TABLE, query_id="q/f"),
    )
    found = with_runs(book, {"s": {"q/g/h": [("p1", 1.0)], "q/f": [("p0", 1.0)]}})
    assert [(r.subtopic, r.passages.tolist()) for q in found.queries for r in q.rankings] == [
        (2, [1]),
        (0, [0]),
    ]


@pytest.mark.parametrize(
    ("scored", "says"),
    [
        ([("p0", math.nan)], "run s, query q: a score is not a number"),
        (
            [("p0", 1.0), ("p0", 2.0)],
            "run s, query q: a passage is returned twice. Remove one of them",
        ),
    ],
)
def test_bad_runs_are_refused(scored: list[tuple[str, float]], says: str) -> None:
    with pytest.raises(InputError) as refused:
        with_runs(make_book(make_query(TABLE)), {"s": {"q": scored}})
    assert says in str(refused.value)


def test_unjudged_passages_show_in_the_leaderboard() -> None:
    book = with_runs(
        make_book(make_query(TABLE, query_id="q")), {"s": {"q": [("new", 2.0), ("p0", 1.0)]}}
    )
    board = evaluate(book, ["P@2", "Cover@2"], [1])
    assert [(row.mean, row.ungraded) for row in board.rows] == [(1 / 2, 1 / 2), (1 / 2, 1 / 2)]
    assert "Up to 50.0% (s) of the passages behind P@2 have no grade." in board.notes


def test_items_on_trial_do_not_change_labels_or_scores() -> None:
    """An item of weight 0 counts nowhere: as if the bank did not have it."""
    table: list[list[int | None]] = [[3, 5], [4, 0], [N, 5]]
    rankings = [make_ranking("s", [0, 1, 2]), make_ranking("t", [2, 1])]
    trial = make_book(make_query(table, *rankings, weights=[1.0, 0.0]))
    without = make_book(make_query([row[:1] for row in table], *rankings))
    both = make_book(make_query(table, *rankings))
    assert [(row.passage_id, row.label) for row in exam_labels(trial)] == [("p0", 3), ("p1", 4)]
    assert list(exam_labels(trial)) == list(exam_labels(without)) != list(exam_labels(both))
    names = ["P@2", "nDCG@3", "Judged@3", "Cover@3", "StRecall@3"]
    for labelling in (Labelling(), Labelling("count", gains="above")):
        board = evaluate(trial, names, [4], labelling=labelling)
        plain = evaluate(without, names, [4], labelling=labelling)
        assert [board.scores(one) for one in names] == [plain.scores(one) for one in names]
        assert evaluate(both, names, [4], labelling=labelling).scores("P@2") != board.scores("P@2")


def test_a_query_with_items_on_trial_alone_is_left_out_and_named() -> None:
    of_trial = make_query([[5]], make_ranking("s", [0]), weights=[0.0], query_id="q2")
    book = make_book(make_query([[5]], make_ranking("s", [0]), query_id="q1"), of_trial)
    board = evaluate(book, ["P@1", "Cover@1"], [4])
    assert board.scores("P@1") == {"s": 1.0}
    assert len([one for one in board.notes if "q2" in one and "left out" in one]) == 2
