"""Tables: numbers stay numbers for machines, and people see them aligned and rounded."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.results.result import MACHINES, STYLES, Table, render
from exampp.results.view import Cell, Column, Interval, Marked

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


def test_digits() -> None:
    """Of numbers and of those with an interval, where people read them; never of machines."""
    found = Table.of(
        ["a", Column("b", 2, interval=True)], [[0.12345, Interval(0.5, -0.00004, 1.0)]]
    )
    assert render(found, "text").splitlines()[2] == "0.123  0.50 [0.00, 1.00]"
    assert render(found, "text", 4).splitlines()[2] == "0.1235  0.5000 [0.0000, 1.0000]"
    assert render(found, "tsv").splitlines()[1] == "0.12345\t0.5\t-4e-05\t1.0"
    assert json.loads(render(found, "json"))["rows"] == [
        {"a": 0.12345, "b": 0.5, "b_low": -0.00004, "b_high": 1.0}
    ]
    for style in STYLES:
        if style in MACHINES:
            with pytest.raises(InputError, match=f"{style} holds all digits"):
                render(found, style, 4)
        else:
            assert "0.1235" in render(found, style, 4)


def test_markdown_names_nobody_and_links_nothing() -> None:
    names = ["@org/team", "fixes #12", "org/repo#3", "Cover@20", "&lt;b&gt;", "~~gone~~", "<!--"]
    lines = render(Table.of(["system"], [[name] for name in names]), "markdown").splitlines()[2:]
    assert [line[2:-2] for line in lines] == [
        "@<!-- -->org/team",
        "fixes #<!-- -->12",
        "org/repo#<!-- -->3",
        "Cover@20",
        r"\&lt;b\&gt;",
        r"\~\~gone\~\~",
        r"\<!--",
    ]


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
    [
        ["m_1", 1, Marked(0.931, "best"), 0.8, 0.4],
        ["m_1", 2, Marked(0.9, "near"), 0.7, Marked(None, "noted")],
        ["m_2", 1, Marked(0.45, "weak"), 0.1, 0.6],
    ],
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


def test_symbols_are_commands_in_latex() -> None:
    table = Table.of(["E\u03c1\u00b2", "\u03a6"], [["\u22483 \u00d7 2", "\u2212\u03c4"]])
    text = render(table, "latex")
    assert text.isascii()
    assert r"E$\rho$$^2$ & $\Phi$" in text
    assert r"$\approx$3 $\times$ 2 & $-$$\tau$" in text
    greek = Table.of(["item"], [["\u03b1\u03c1\u03c4\u03b9"]])
    assert "\u03b1\u03c1\u03c4\u03b9" in render(greek, "latex")


def test_marks_and_groups_in_latex() -> None:
    lines = render(MARKED, "latex").splitlines()
    assert lines[0] == r"% needs \usepackage{booktabs,graphicx,xcolor}"
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


def test_a_table_that_a_column_of_a_paper_cannot_hold_spans_both() -> None:
    """With 55 characters it fits: 40 of the names, 2 between, 13 of the head; with one more not."""
    for length, place in ((40, "table"), (41, "table*")):
        table = Table((Column("name"), Column("thirteen long")), (("n" * length, 0.5),))
        lines = render(table, "latex").splitlines()
        assert (lines[1], lines[-1]) == (rf"\begin{{{place}}}", rf"\end{{{place}}}")


def test_programs_get_values_without_marks() -> None:
    assert render(MARKED, "tsv").splitlines()[:2] == [
        "method\tmin\tCover S\tCover K\tP@20 S",
        "m_1\t1\t0.931\t0.8\t0.4",
    ]
    value = json.loads(render(MARKED, "json"))
    assert value["rows"][1]["Cover S"] == 0.9


def test_columns_have_keys_and_readers() -> None:
    columns: list[str | Column] = [
        "system",
        Column("items in all", readers="people"),
        Column("of", key="items"),
    ]
    columns.append(Column("grader key", readers="programs"))
    table = Table.of(columns, [["bm25", 6, 3, "k"]])
    assert render(table, "tsv") == "system\titems\tgrader key\nbm25\t3\tk\n"
    assert render(table, "markdown").splitlines()[0] == "| system | items in all | of |"


def test_wide_tables_are_pivots_of_values() -> None:
    cells: list[tuple[tuple[str], Column, Cell]] = [
        (("bm25",), Column("S", 2, "Cover"), 0.5),
        (("bm25",), Column("K", 2, "Cover"), Marked(0.25, "best")),
        (("dense",), Column("K", 2, "Cover"), 1.0),
    ]
    table = Table.wide(["system"], cells)
    assert render(table, "tsv") == ("system\tCover S\tCover K\nbm25\t0.5\t0.25\ndense\t\t1.0\n")


def test_headings_of_one_name_lose_nothing_in_json() -> None:
    table = Table.of(["x", "\u00b1", "y", "\u00b1", "\u00b1 2"], [[1, 0.5, 2, 0.25, 3]])
    (row,) = json.loads(render(table, "json"))["rows"]
    assert row == {"x": 1, "\u00b1": 0.5, "y": 2, "\u00b1 2": 0.25, "\u00b1 2 2": 3}


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "html"])
def test_headings_are_names_too_and_steer_no_terminal(style: str) -> None:
    table = Table.of([Column("a\n\u202eb", group="g\x1b"), "c\td"], [["x", "y"]])
    text = render(table, style)
    assert not {"\u202e", "\x1b", "\t"} & set(text)
    assert "a\n" not in text


def test_markdown_shows_markup_as_text() -> None:
    rows = [["*a*_b_`c`<d>[e](f)"], ["_overall_"], ["idst_bert_p1"]]
    lines = render(Table.of(["x"], rows, notes=["<b> of *c*"]), "markdown").splitlines()
    assert lines[2:5] == [
        r"| \*a\*\_b\_\`c\`\<d>\[e](f) |",
        r"| \_overall\_ |",
        "| idst_bert_p1 |",
    ]
    assert lines[-1] == r"- \<b> of \*c\*"


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["-0.25 [-0.31, -0.19]", "", None], True),
        (["12.5%", "0.100..0.250", "1,204"], True),
        (["3 reasons why", "2"], False),
        (["-", "1"], False),
        (["10-K"], False),
    ],
)
def test_what_reads_as_a_number_is_aligned_right(cells: list[str | None], right: bool) -> None:
    assert Table.of(["x"], [[cell] for cell in cells]).view().numeric == [right]


def test_nothing_is_less_than_nothing() -> None:
    assert render(Table.of(["x"], [[-0.0001]]), "markdown").splitlines()[-1] == "| 0.000 |"


def test_not_a_number_never_leaves() -> None:
    with pytest.raises(ValueError, match="never NaN"):
        render(Table.of(["x"], [[float("nan")]]), "json")


def test_control_characters_do_not_reach_a_terminal() -> None:
    text = render(Table.of(["x"], [["\x1b[31mred\u202e\n"]]), "text")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_columns_for_programs_do_not_depend_on_the_rows() -> None:
    columns = [
        Column("system"),
        Column("tau", key="value", interval=True),
        Column("phi", interval=True),
    ]
    expected = ["system", "value", "low", "high", "phi", "phi_low", "phi_high"]
    bodies: list[list[list[Cell]]] = [
        [],
        [["a", None, 0.5]],
        [["a", Interval(0.5), Marked(Interval(0, 0, 1), "best")]],
    ]
    for rows in bodies:
        assert Table.of(columns, rows).for_programs()[0] == expected
    with pytest.raises(ValueError, match=r"'b' holds intervals"):
        Table.of(["b"], [[Interval(0.5, 0.4, 0.6)]]).for_programs()


@pytest.mark.parametrize("style", STYLES)
def test_an_empty_table_is_a_table(style: str) -> None:
    assert render(Table.of(["a", "b"], []), style).endswith("\n")


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False) | st.none()), max_size=5))
def test_csv_reads_back(rows: list[tuple[str, float | None]]) -> None:
    text = render(Table.of(["name", "value"], rows), "csv")
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [(name, float(value) if value else None) for name, value in read] == rows


VERDICT = Table.of(["system"], [["a"]], "By model", ["one"], verdict="a_1 is best.")


@pytest.mark.parametrize(
    ("style", "start"),
    [
        ("text", "a_1 is best.\n\nBy model\nsystem\n"),
        ("markdown", "a_1 is best.\n\n**By model**\n"),
        ("html", '<figure class="table">\n<p class="finding">a_1 is best.</p>\n'),
        ("json", '{\n "verdict": "a_1 is best.",\n "caption": "By model",'),
        ("tsv", "system\na\n"),
    ],
)
def test_the_verdict_comes_first(style: str, start: str) -> None:
    assert render(VERDICT, style).startswith(start)


def test_a_table_without_rows_is_its_verdict() -> None:
    nothing = Table.of(["group", "item"], [], notes=["Words alone."], verdict="No duplicates.")
    assert str(nothing) == "No duplicates.\n\n* Words alone.\n"
    assert "group" in str(Table.of(["group", "item"], []))


def test_the_verdict_of_latex_stands_before_the_notes() -> None:
    assert r"\par\footnotesize a\_1 is best." + "\n" + r"\par\footnotesize one" in render(
        VERDICT, "latex"
    )


def test_a_table_without_a_verdict_has_none() -> None:
    table = Table.of(["system"], [["a"]])
    assert "verdict" not in json.loads(render(table, "json"))
    assert "finding" not in render(table, "html")
