"""The one table type: made once, rendered as text, tsv, csv, json, markdown or latex.

Values stay numbers until they are rendered. None is an undefined value: its reason belongs into
the notes, and no renderer prints it as a number.
"""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | None
UNDEFINED = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how many decimals people see of its floats."""

    name: str
    decimals: int = 3


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under columns, with a caption above and notes below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[str | Column],
        rows: Sequence[Sequence[Value]],
        caption: str = "",
        notes: Sequence[str] = (),
    ) -> Table:
        """A table from plain lists; a column may be given by its heading alone."""
        named = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
        cleaned = tuple(_clean(note) for note in notes)
        return cls(named, tuple(tuple(row) for row in rows), _clean(caption), cleaned)


def render(table: Table, style: str) -> str:
    """The table as text in one of `STYLES`, ending in a line end.

    tsv and csv hold full precision and neither caption nor notes, json all of it; the styles for
    people round to the columns' decimals.
    """
    return STYLES[style](table)


def _shown(value: Value, decimals: int) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return f"{value:.{decimals}f}"
    return _clean(str(value))


def _clean(text: str) -> str:
    """The text without control characters: untrusted text must not steer a terminal."""
    return "".join(c if unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)


def _cells(table: Table) -> list[list[str]]:
    return [
        [_shown(value, column.decimals) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def _numeric(table: Table) -> list[bool]:
    """Per column, whether it holds numbers (to be aligned right)."""
    return [
        any(isinstance(row[i], int | float) for row in table.rows)
        or all(row[i] is None or _leads_number(row[i]) for row in table.rows)
        for i in range(len(table.columns))
    ]


def _leads_number(value: Value) -> bool:
    head = str(value).partition(" ")[0]
    return head == UNDEFINED or head.replace(".", "", 1).isdigit()


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


def _text(table: Table) -> str:
    head = [column.name for column in table.columns]
    lines = [head, *_cells(table)]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(head))]
    right = _numeric(table)

    def aligned(cells: Sequence[str]) -> str:
        padded = []
        for cell, width, is_right in zip(cells, widths, right, strict=True):
            space = " " * (width - _width(cell))
            padded.append(space + cell if is_right else cell + space)
        return "  ".join(padded).rstrip()

    parts = [table.caption] if table.caption else []
    parts += [aligned(head), "  ".join("-" * width for width in widths)]
    parts += [aligned(line) for line in lines[1:]]
    parts += [f"* {note}" for note in table.notes]
    return "\n".join(parts) + "\n"


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        escaped = (cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
        return "| " + " | ".join(escaped) + " |"

    rule = ["---:" if right else "---" for right in _numeric(table)]
    parts = [f"**{table.caption}**\n"] if table.caption else []
    parts += [line([c.name for c in table.columns]), "|" + "|".join(rule) + "|"]
    parts += [line(cells) for cells in _cells(table)]
    if table.notes:
        parts += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(parts) + "\n"


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
    "<": r"$<$",
    ">": r"$>$",
}


def latex_escape(text: str) -> str:
    """The text with LaTeX's special characters spelled out."""
    return "".join(_LATEX.get(character, character) for character in text)


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(latex_escape(cell) for cell in cells) + r" \\"

    layout = "".join("r" if right else "l" for right in _numeric(table))
    parts = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{latex_escape(table.caption)}}}"] if table.caption else []),
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        line([column.name for column in table.columns]),
        r"\midrule",
        *(line(cells) for cells in _cells(table)),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\footnotesize {latex_escape(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(parts) + "\n"


def _separated(table: Table, delimiter: str) -> str:
    def line(cells: Sequence[Value]) -> str:
        # a field is quoted for the characters of the line end, and \r must be quoted too
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
        return stream.getvalue()[:-2] + "\n"

    return "".join(map(line, ([column.name for column in table.columns], *table.rows)))


def _json(table: Table) -> str:
    names = [column.name for column in table.columns]
    value = {
        "caption": table.caption,
        "rows": [dict(zip(names, map(_finite, row), strict=True)) for row in table.rows],
        "notes": list(table.notes),
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a table holds None for what is undefined, never NaN")
    return value


STYLES: Mapping[str, Callable[[Table], str]] = {
    "text": _text,
    "tsv": lambda table: _separated(table, "\t"),
    "csv": lambda table: _separated(table, ","),
    "json": _json,
    "markdown": _markdown,
    "latex": _latex,
}
