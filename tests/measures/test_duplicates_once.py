"""Cover with each group of duplicates as one item: by hand, and for all missing grades."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gradebooks import Cells, make_book, make_query, make_ranking

import exampp
from exampp.measures.cover import Missing, cover
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.gradebook import Gradebook, QueryGrades

N = None
# Items:            i0 i1 i2 i3, of which i0 and i1 ask one thing
TABLE: Cells = [
    [5, 0, 0, 0],  # p0
    [0, 4, 0, 0],  # p1
    [0, 0, 3, 0],  # p2
]
GROUPS = (0, 0, 2, 3)


def grouped(query: QueryGrades, groups: Sequence[int]) -> Gradebook:
    return make_book(replace(query, item_groups=tuple(groups)))


def values(book: Gradebook, threshold: int, subtopics: SubtopicChoice = "query") -> list[object]:
    found = cover(book, [threshold], k=1, subtopics=subtopics, once=True)
    return [found.of(name)[0].values.means()[0].mean for name in ("Cover", "nCover")]


def test_a_group_has_the_weight_of_its_heaviest_item() -> None:
    query = make_query(TABLE, make_ranking("a", [1]), weights=[2, 1, 1, 1])
    book = grouped(query, GROUPS)
    plain = cover(book, [4], k=1)
    assert plain.of("Cover")[0].values.means()[0].mean == 1 / 5
    # the group weighs 2 of 2 + 1 + 1; the pool covers it at 4, and i2 too at 3
    assert values(book, 4) == [2 / 4, 1]
    assert values(book, 3) == [2 / 4, 2 / 3]
    overall = cover(book, [3], k=1, once=True).of("Cover")[0].overall
    assert overall is not None
    assert overall.means()[0].mean == 3 / 4


def test_items_of_weight_0_have_no_part_in_a_group() -> None:
    query = make_query(TABLE, make_ranking("a", [0]), weights=[0, 1, 1, 1])
    assert values(grouped(query, GROUPS), 4) == [0, 0]


def test_a_group_counts_once_in_each_subtopic() -> None:
    query = make_query(
        TABLE, make_ranking("a", [1]), item_subtopics=[1, 2, 2, 2], subtopics=["s", "t"]
    )
    book = grouped(query, (0, 0, 2, 1))
    # s: i0 not covered; t: i1 of i1, i2 and i3
    assert values(book, 4, "subtopic") == [(0 + 1 / 3) / 2, (0 + 1) / 2]
    # i0 and i1 are one item of the whole query
    assert values(book, 4, "query")[0] == 1 / 3


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from([N, 0, 5]), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([(0, 0, 2), (0, 1, 1), (0, 0, 0), (0, 1, 2)]),
    st.lists(st.sampled_from([1.0, 2.0]), min_size=3, max_size=3),
)
def test_bounds_hold_for_all_values_of_missing_grades(
    table: list[list[int | None]], groups: tuple[int, ...], weights: list[float]
) -> None:
    def book(ratings: Cells) -> Gradebook:
        return grouped(make_query(ratings, make_ranking("a", [0]), weights=weights), groups)

    missing = [(r, c) for r, row in enumerate(table) for c, cell in enumerate(row) if cell is None]
    if len(missing) == 6:
        return
    column = cover(book(table), [4], k=1, missing="bounds", once=True).of("Cover")[0]
    seen = []
    for some in itertools.product([0, 5], repeat=len(missing)):
        filled = [list(row) for row in table]
        for (row, at), value in zip(missing, some, strict=True):
            filled[row][at] = value
        found = cover(book(filled), [4], k=1, once=True).of("Cover")[0]
        seen.append(found.values.means()[0].mean)
    assert column.low is not None
    assert column.high is not None
    assert column.low.means()[0].mean == pytest.approx(min(s for s in seen if s is not None))
    assert column.high.means()[0].mean == pytest.approx(max(s for s in seen if s is not None))


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_groups_of_one_item_change_nothing(missing: Missing) -> None:
    query = make_query(TABLE, make_ranking("a", [1]), make_ranking("b", [0]))
    book = grouped(query, range(4))
    plain, once = (
        cover(book, [3, 4], k=1, missing=missing, once=once).columns for once in (False, True)
    )
    assert [one.values.means() for one in plain] == [one.values.means() for one in once]


def test_the_board_shows_both_values_and_the_change() -> None:
    book = grouped(make_query(TABLE, make_ranking("a", [1]), make_ranking("b", [2])), GROUPS)
    board = evaluate_gradebook(book, ["Cover@1", "P@1"], 3, once=True)
    table = board.tables()["leaderboard"]
    assert [column.name for column in table.columns][:4] == [
        "system",
        "Cover@1 \u22653",
        "\u00b1",
        "once",
    ]
    assert {row[0]: row[3] for row in table.rows} == {"a": 1 / 3, "b": 1 / 3, "_overall_": 2 / 3}
    (change,) = [note for note in board.notes if "once" in note]
    assert "1 group of duplicates (2 items)" in change
    assert "by up to 0.083 (a)" in change
    tidy = board.records()["leaderboard"]
    names = [column.name for column in tidy.columns]
    of = {
        (row[names.index("system")], row[names.index("measure")]): row[names.index("mean_once")]
        for row in tidy.rows
    }
    assert of["a", "Cover@1"] == of["b", "Cover@1"] == 1 / 3
    assert of["a", "P@1"] is None


def test_without_groups_the_board_says_so() -> None:
    book = make_book(make_query(TABLE, make_ranking("a", [1])))
    board = evaluate_gradebook(book, ["Cover@1"], 3, once=True)
    assert any(note.startswith("No groups of duplicates") for note in board.notes)
    assert "once" not in [column.name for column in board.tables()["leaderboard"].columns]


def test_people_mark_items_and_take_it_back(small_exam: exampp.Collection) -> None:
    bank = small_exam.bank()
    first, second = (state.item_id for state in bank.items("q1")[:2])
    assert bank.duplicates().rows == ()
    bank.edit("same", first, second, author="ann", reason="one thing")
    assert {(row[3], row[5]) for row in bank.duplicates().rows} == {
        (first, "marked"),
        (second, "marked"),
    }
    assert bank.log(last=1).rows[0][3] == f"same_as = '{second}'"
    with pytest.raises(exampp.InputError, match="already marked as same"):
        bank.edit("same", first, second)
    bank.edit("different", second, first)
    assert bank.duplicates().rows == ()
    with pytest.raises(exampp.InputError, match="two or more different items"):
        bank.edit("same", first, first)
