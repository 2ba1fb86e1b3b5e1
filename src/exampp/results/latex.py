"""Tables for a paper in LaTeX (booktabs), no wider than the place that they have there."""

from __future__ import annotations

from collections.abc import Sequence

from exampp.results.view import (
    Cells,
    column_groups,
    is_numeric,
    notes_of,
    row_groups,
    styled_cells,
    without_machine_columns,
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


COLUMN = 55
"""So many characters of a small font stand in a column of a page that has two."""
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def latex_escape(text: str) -> str:
    """The text with LaTeX's special characters spelled out."""
    return "".join(_LATEX.get(character, character) for character in text)


def table_latex(table: Cells) -> str:
    """The table as a LaTeX float, with the packages that it needs in a comment.

    What is wider than a column of two spans both; what is wider still is scaled down to fit.
    """

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cells) + r" \\"

    table = without_machine_columns(table)
    layout = "".join("r" if right else "l" for right in is_numeric(table))
    packages = "booktabs,graphicx" + ",xcolor" * ("weak" in table.marks.values())
    cells = styled_cells(table, "latex", latex_escape)
    notes = [rf"\par\footnotesize {note}" for note in notes_of(table, "latex", latex_escape)]
    body: list[str] = []
    for group in row_groups(table):
        body += [r"\midrule"] * bool(body) + [line(cells[row]) for row in group]
    place = "table*" if _width(table) > COLUMN else "table"
    parts = [
        rf"% needs \usepackage{{{packages}}}",
        rf"\begin{{{place}}}",
        r"\centering\small",
        *([rf"\caption{{{latex_escape(table.caption)}}}"] if table.caption else []),
        _FITTED,
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *_latex_groups(column_groups(table)),
        line([latex_escape(column.head) for column in table.columns]),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        *[r"\par\smallskip"] * bool(notes),
        *notes,
        rf"\end{{{place}}}",
    ]
    return "\n".join(parts) + "\n"


def _width(table: Cells) -> int:
    """How wide the table is, in characters: its columns, with two between them."""
    lines = [[column.head for column in table.columns], *styled_cells(table, "text", str)]
    return sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2


def _latex_groups(groups: list[tuple[str, int]]) -> list[str]:
    if not groups:
        return []
    heads, rules, start = [], [], 1
    for name, size in groups:
        heads.append(rf"\multicolumn{{{size}}}{{c}}{{{latex_escape(name)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + size - 1}}}"] * bool(name)
        start += size
    return [" & ".join(heads) + r" \\", " ".join(rules)]
