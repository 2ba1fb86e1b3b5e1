"""Tables in the room of a terminal: nothing is wider, no number and no name is lost."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from exampp.results.result import Table
from exampp.results.text import shortened, view_text, width_of
from exampp.results.view import Column, Marked

CODES = re.compile(r"\x1b\[[\d;]*m")
BOARD = Table.of(
    ["system", "Cover@20 \u22654", "\u00b1", "official_rank"],
    [["bm25", 0.25, 0.01, 2], ["dense", Marked(0.5, "best"), 0.02, 1]],
    notes=["One query counts, as the other has no item that any passage answers."],
)


def test_headings_and_notes_wrap() -> None:
    assert view_text(BOARD.view(), 34) == (
        "        Cover@20         official_\n"
        "system        \u22654      \u00b1       rank\n"
        "------  --------  -----  ---------\n"
        "bm25      0.250   0.010          2\n"
        "dense    *0.500*  0.020          1\n"
        "* *x*: the best\n"
        "* One query counts, as the other\n"
        "  has no item that any passage\n"
        "  answers.\n"
    )


def test_a_table_that_fits_is_the_table_of_a_file() -> None:
    assert view_text(BOARD.view(), 90) == view_text(BOARD.view())


def test_columns_without_room_stand_below_and_an_error_stays_with_its_mean() -> None:
    heads = [head for n in range(1, 5) for head in (f"P@{n}", "\u00b1")]
    table = Table.of(["system", *heads], [["bm25", *[0.1, 0.01] * 4]])
    assert view_text(table.view(), 40) == (
        "system    P@1      \u00b1    P@2      \u00b1\n"
        "------  -----  -----  -----  -----\n"
        "bm25    0.100  0.010  0.100  0.010\n"
        "\n"
        "system    P@3      \u00b1    P@4      \u00b1\n"
        "------  -----  -----  -----  -----\n"
        "bm25    0.100  0.010  0.100  0.010\n"
    )


def test_names_are_shortened_in_the_middle_as_far_as_they_stay_distinct() -> None:
    assert shortened("abcdefghij", 5) == "ab\u2026ij"
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("\u4e2d\u6587\u4e2d\u6587", 5) == "\u4e2d\u2026\u6587"
    names = [f"a{'x' * 20}{middle}{'y' * 20}z" for middle in ("one", "two")]
    table = Table.of(["system", "P@5"], [[name, 0.5] for name in names])
    first, second = (line.split()[0] for line in view_text(table.view(), 40).splitlines()[2:])
    assert first != second
    assert first[0] + first[-1] == second[0] + second[-1] == "az"
    assert "\u2026" not in view_text(table.view())


def test_texts_wrap_before_names_are_shortened() -> None:
    row = ["question-answering-of-a-model", "The answer, taken from the passage, in its own words"]
    assert view_text(Table.of(["prompt", "title"], [row]).view(), 60) == (
        "prompt                         title\n"
        "-----------------------------  -----------------------------\n"
        "question-answering-of-a-model  The answer, taken from the\n"
        "                               passage, in its own words\n"
    )


def test_marks_are_coloured_and_the_text_is_the_same() -> None:
    painted = view_text(BOARD.view(), None, styled=True)
    assert "\x1b[1;32m*0.500*\x1b[0m" in painted
    assert CODES.sub("", painted) == view_text(BOARD.view())
    assert "\x1b" not in view_text(BOARD.view())


words = st.text("abcdef\u4e2d", min_size=1, max_size=30)
tables = st.integers(1, 12).flatmap(
    lambda size: st.builds(
        lambda names, texts, values: Table.of(
            ["system", "text", *(Column(f"m{at}", 2, f"group {at // 3}") for at in range(size))],
            [
                [name, text, *values[:size]]
                for name, text in zip(dict.fromkeys(names), texts, strict=False)
            ],
            notes=[" ".join(texts)],
        ),
        st.lists(words, min_size=1, max_size=4),
        st.lists(st.lists(words, max_size=6).map(" ".join), min_size=4, max_size=4),
        st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size),
    )
)


@given(tables, st.integers(60, 120))
def test_no_line_is_wider_than_the_room_and_no_number_is_lost(table: Table, room: int) -> None:
    said = view_text(table.view(), room)
    assert max(map(width_of, said.splitlines())) <= room
    for value in table.rows[0][2:]:
        assert f"{value:z.2f}" in said.split()
    assert said.split().count(f"{table.rows[0][-1]:z.2f}") >= len(table.rows)
