from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gradebooks import make_book, make_query

from exampp.errors import InputError
from exampp.measures.qrels import Labelling, exam_labels, label_passages, subtopic_qrels
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
    rows = list(subtopic_qrels(book(), 4))
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
        ({"kind": "worst"}, "no label 'worst'. Choose from best, count"),
        ({"gains": "x"}, "no gains 'x'"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Labelling(**wrong)  # type: ignore[arg-type]


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
