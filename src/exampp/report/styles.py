"""The styles that a table is rendered in: text, tsv, csv, json, markdown, latex and html."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from exampp.errors import InputError
from exampp.report.cells import (
    Cells,
    T,
    Value,
    dressed,
    for_people,
    is_numeric,
    notes_of,
    readable,
    spelled,
)
from exampp.report.html import table_html
from exampp.report.latex import table_latex
from exampp.report.text import as_text


def render(table: Cells, style: str, digits: int | None = None) -> str:
    """The table as text in one of `STYLES`, ending in a line end.

    tsv and csv hold full precision and neither caption, notes nor marks, json all of it; the
    styles for people round to the columns' decimals, or to `digits`.

    Raises:
        InputError: `digits` are given to a style that holds full precision.
    """
    if digits is not None and style in MACHINES:
        raise InputError(f"{style} holds all digits of a number", mend="Leave out --digits")
    return STYLES[style](rounded(table, digits))


def rounded(table: T, digits: int | None) -> T:
    """The table with so many decimals where people read it; None leaves those of the columns."""
    if digits is None:
        return table
    columns = tuple(replace(column, decimals=digits) for column in table.columns)
    return replace(table, columns=columns)


MACHINES = ("tsv", "csv", "json")
"""The styles that hold full precision."""


# ---- markdown ----------------------------------------------------------------------------------


_MARKUP = re.compile(r"[\\|*`<\[~]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)")
_LINKED = re.compile(r"(?<!\w)@(?=\w)|#(?=\w)")


def markdown_escape(text: str) -> str:
    """Escape what Markdown reads as markup (`_` only at the edge of a word), and GitHub as a link.

    GitHub notifies @org/team and links #12 even behind a backslash: an empty comment breaks both.
    """
    return _LINKED.sub(rf"\g<0>{UNLINKED}", _MARKUP.sub(r"\\\g<0>", text))


UNLINKED = "<!-- -->"
"""What keeps GitHub from reading a name as a mention."""


def _markdown(table: Cells) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    table = for_people(table)
    rule = ["---:" if right else "---" for right in is_numeric(table)]
    parts = [f"**{markdown_escape(table.caption)}**\n"] if table.caption else []
    heads = [markdown_escape(readable(column.heading)) for column in table.columns]
    parts += [line(heads), "|" + "|".join(rule) + "|"]
    parts += [line(cells) for cells in dressed(table, "markdown", markdown_escape)]
    if notes := notes_of(table, "markdown", markdown_escape):
        parts += ["", *(f"- {note}" for note in notes)]
    return "\n".join(parts) + "\n"


# ---- machines ----------------------------------------------------------------------------------


def _separated(table: Cells, delimiter: str) -> str:
    def line(cells: Sequence[Value]) -> str:
        # a field is quoted for the characters of the line end, and \r must be quoted too
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerow(map(spelled, cells))
        return stream.getvalue()[:-2] + "\n"

    return "".join(map(line, ([column.heading for column in table.columns], *table.rows)))


def _json(table: Cells) -> str:
    names = table.headings()
    value: dict[str, object] = {
        "caption": table.caption,
        "rows": [dict(zip(names, map(_finite, row), strict=True)) for row in table.rows],
        "notes": list(table.notes),
    }
    if table.marks:
        value["marks"] = [
            {"row": row, "column": names[column], "mark": mark}
            for (row, column), mark in sorted(table.marks.items())
        ]
        value["legend"] = table.meanings()
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a table holds None for what is undefined, never NaN")
    return value


STYLES: Mapping[str, Callable[[Cells], str]] = {
    "text": as_text,
    "tsv": lambda table: _separated(table, "\t"),
    "csv": lambda table: _separated(table, ","),
    "json": _json,
    "markdown": _markdown,
    "latex": table_latex,
    "html": table_html,
}
