"""Tables for a paper in LaTeX (booktabs)."""

from __future__ import annotations

from collections.abc import Sequence

from exampp.report.table import (
    Table,
    column_groups,
    dressed,
    for_people,
    is_numeric,
    notes_of,
    row_groups,
)

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00b1": r"$\pm$",
    "\u2265": r"$\geq$",
    "\u2020": r"$^{\dagger}$",
    "\ufffd": "?",
    "<": r"$<$",
    ">": r"$>$",
}


def latex_escape(text: str) -> str:
    """The text with LaTeX's special characters spelled out."""
    return "".join(_LATEX.get(character, character) for character in text)


def table_latex(table: Table) -> str:
    """The table as a LaTeX float, with the packages that it needs in a comment."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cells) + r" \\"

    table = for_people(table)
    layout = "".join("r" if right else "l" for right in is_numeric(table))
    packages = "booktabs" + ",xcolor" * ("weak" in table.marks.values())
    cells = dressed(table, "latex", latex_escape)
    notes = [rf"\par\footnotesize {note}" for note in notes_of(table, "latex", latex_escape)]
    body: list[str] = []
    for group in row_groups(table):
        body += [r"\midrule"] * bool(body) + [line(cells[row]) for row in group]
    parts = [
        rf"% needs \usepackage{{{packages}}}",
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{latex_escape(table.caption)}}}"] if table.caption else []),
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *_latex_groups(column_groups(table)),
        line([latex_escape(column.head) for column in table.columns]),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *[r"\par\smallskip"] * bool(notes),
        *notes,
        r"\end{table}",
    ]
    return "\n".join(parts) + "\n"


def _latex_groups(groups: list[tuple[str, int]]) -> list[str]:
    if not groups:
        return []
    heads, rules, start = [], [], 1
    for name, size in groups:
        heads.append(rf"\multicolumn{{{size}}}{{c}}{{{latex_escape(name)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + size - 1}}}"] * bool(name)
        start += size
    return [" & ".join(heads) + r" \\", " ".join(rules)]
