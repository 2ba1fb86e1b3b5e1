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


MARKED = Table.of(
    ["method", "min", Column("S", 2, "Cover"), Column("K", 2, "Cover"), Column("S", 2, "P@20")],
    [["m_1", 1, 0.931, 0.8, 0.4], ["m_1", 2, 0.9, 0.7, None], ["m_2", 1, 0.45, 0.1, 0.6]],
    marks={(0, 2): "best", (1, 2): "near", (2, 2): "weak", (1, 4): "noted"},
    legend={"near": "within 0.05 of it"},
    notes=["all scores are equal"],
    grouped=True,
)


def test_marks_and_groups_in_text() -> None:
    assert render(MARKED, "text") == (
        "             -- Cover ---  P@20\n"
        "method  min      S      K     S\n"
        "------  ---  ------  ----  -----\n"
        "m_1       1  *0.93*  0.80  0.40\n"
        "          2   0.90*  0.70     -\u2020\n"
        "m_2       1  (0.45)  0.10  0.60\n"
        "* *x*: the best; x*: within 0.05 of it; (x): poor; x\u2020: see the notes\n"
        "* all scores are equal\n"
    )


def test_marks_and_groups_in_markdown() -> None:
    lines = render(MARKED, "markdown").splitlines()
    assert lines[0] == "| method | min | Cover S | Cover K | P@20 S |"
    assert lines[2:5] == [
        "| m_1 | 1 | **0.93** | 0.80 | 0.40 |",
        "|  | 2 | _0.90_ | 0.70 | -\u2020 |",
        "| m_2 | 1 | (0.45) | 0.10 | 0.60 |",
    ]
    assert (
        lines[6] == "- **x**: the best; _x_: within 0.05 of it; (x): poor; x\u2020: see the notes"
    )


def test_marks_and_groups_in_latex() -> None:
    lines = render(MARKED, "latex").splitlines()
    assert lines[0] == r"% needs \usepackage{booktabs,xcolor}"
    start = lines.index(r"\toprule") + 1
    assert lines[start : lines.index(r"\bottomrule")] == [
        r"\multicolumn{2}{c}{} & \multicolumn{2}{c}{Cover} & \multicolumn{1}{c}{P@20} \\",
        r"\cmidrule(lr){3-4} \cmidrule(lr){5-5}",
        r"method & min & S & K & S \\",
        r"\midrule",
        r"m\_1 & 1 & \textbf{\textit{0.93}} & 0.80 & 0.40 \\",
        r" & 2 & \textbf{0.90} & 0.70 & -$^{\dagger}$ \\",
        r"\midrule",
        r"m\_2 & 1 & \textcolor{gray}{0.45} & 0.10 & 0.60 \\",
    ]


def test_machines_get_values_and_marks_apart() -> None:
    assert render(MARKED, "tsv").splitlines()[:2] == [
        "method\tmin\tCover S\tCover K\tP@20 S",
        "m_1\t1\t0.931\t0.8\t0.4",
    ]
    value = json.loads(render(MARKED, "json"))
    assert value["rows"][1]["Cover S"] == 0.9
    assert {"row": 1, "column": "Cover S", "mark": "near"} in value["marks"]
    assert len(value["marks"]) == 4
    assert value["legend"]["near"] == "within 0.05 of it"


@pytest.mark.parametrize("marks", [{(0, 0): "shiny"}, {(1, 0): "best"}, {(0, -1): "best"}])
def test_a_mark_that_no_style_would_show(marks: dict[tuple[int, int], str]) -> None:
    with pytest.raises(ValueError, match="mark"):
        Table.of(["x"], [[1]], marks=marks)


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
