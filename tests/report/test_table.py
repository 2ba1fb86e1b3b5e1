"""Tables: numbers stay numbers for machines, and people see them aligned and rounded."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.report.table import STYLES, Column, Table, render

TABLE = Table.of(
    ["system", Column("score", 2), "n"],
    [["a_b|c", 0.12345, 3], ["\u4e2d\u6587", None, 10]],
    caption="Scores & more",
    notes=["one is undefined"],
)


def test_text() -> None:
    assert render(TABLE, "text") == (
        "Scores & more\n"
        "system  score   n\n"
        "------  -----  --\n"
        "a_b|c    0.12   3\n"
        "\u4e2d\u6587        -  10\n"
        "* one is undefined\n"
    )


def test_markdown() -> None:
    assert render(TABLE, "markdown") == (
        "**Scores & more**\n\n"
        "| system | score | n |\n"
        "|---|---:|---:|\n"
        "| a_b\\|c | 0.12 | 3 |\n"
        "| \u4e2d\u6587 | - | 10 |\n"
        "\n- one is undefined\n"
    )


def test_latex() -> None:
    text = render(TABLE, "latex")
    assert r"\caption{Scores \& more}" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"a\_b|c & 0.12 & 3 \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1


def test_machines_get_full_precision() -> None:
    assert render(TABLE, "tsv") == "system\tscore\tn\na_b|c\t0.12345\t3\n\u4e2d\u6587\t\t10\n"
    assert json.loads(render(TABLE, "json")) == {
        "caption": "Scores & more",
        "rows": [
            {"system": "a_b|c", "score": 0.12345, "n": 3},
            {"system": "\u4e2d\u6587", "score": None, "n": 10},
        ],
        "notes": ["one is undefined"],
    }


def test_not_a_number_never_leaves() -> None:
    with pytest.raises(ValueError, match="never NaN"):
        render(Table.of(["x"], [[float("nan")]]), "json")


def test_control_characters_do_not_reach_a_terminal() -> None:
    text = render(Table.of(["x"], [["\x1b[31mred\u202e\n"]]), "text")
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("style", STYLES)
def test_an_empty_table_is_a_table(style: str) -> None:
    assert render(Table.of(["a", "b"], []), style).endswith("\n")


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False) | st.none()), max_size=5))
def test_csv_reads_back(rows: list[tuple[str, float | None]]) -> None:
    text = render(Table.of(["name", "value"], rows), "csv")
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [(name, float(value) if value else None) for name, value in read] == rows
