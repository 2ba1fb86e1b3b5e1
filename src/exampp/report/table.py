"""The one table type: made once, rendered as text, tsv, csv, json, markdown, latex or html.

Values stay numbers and booleans until they are rendered. None is an undefined value: its reason
belongs into the notes, and no renderer prints it as a number.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby

from exampp.errors import InputError
from exampp.report.bounded import Bounded
from exampp.report.result import Result

Value = str | int | float | bool | None
UNDEFINED = "-"
ERROR = "\u00b1"
"""The heading of a standard error, which belongs to the column before it."""

_NUMBER = re.compile(r"(-?[\d,]+(\.\d+)?(\.\.-?\d+(\.\d+)?)?%?( ?\[.*\])?)?")
"""What people read as a number: 0.25, 1,204, 12%, 0.1..0.2, -0.25 [-0.31, -0.19], or nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how many decimals people see of its floats.

    Neighbours of the same `group` stand under one heading of that name. One that is `for_machines`
    is in tsv, csv and json alone.
    """

    name: str
    decimals: int = 3
    group: str = ""
    for_machines: bool = False

    @property
    def heading(self) -> str:
        """The name where there is only one line for it."""
        return f"{self.group} {self.name}".strip()

    @property
    def head(self) -> str:
        """The name as people see it, below the group's."""
        return readable(self.name)


GRADER_KEY = Column("grader key", for_machines=True)
"""The whole key of the grader that a row names."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A way to set a cell apart: what it means, and what surrounds it in each style."""

    meaning: str
    text: tuple[str, str]
    markdown: tuple[str, str]
    latex: tuple[str, str]


MARKS: Mapping[str, Mark] = {
    "best": Mark("the best", ("*", "*"), ("**", "**"), (r"\textbf{\textit{", "}}")),
    "near": Mark("nearly as good", ("", "*"), ("_", "_"), (r"\textbf{", "}")),
    "weak": Mark("poor", ("(", ")"), ("(", ")"), (r"\textcolor{gray}{", "}")),
    "noted": Mark("see the notes", ("", "\u2020"), ("", "\u2020"), ("", r"$^{\dagger}$")),
}


@dataclass(frozen=True, slots=True, repr=False)
class Table(Result):
    """Rows of values under columns, with a caption above and notes below.

    `marks` sets cells (row, column) apart, each by one of `MARKS`; `legend` says what a mark means
    in this table, where that is more than its usual meaning. `grouped`: rows that share their
    first value belong together, and people see it once.

    Raises:
        ValueError: There is no such mark, or no such cell.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    legend: Mapping[str, str] = field(default_factory=dict)
    grouped: bool = False

    def __post_init__(self) -> None:
        for (row, column), mark in self.marks.items():
            if mark not in MARKS:
                raise ValueError(f"there is no mark {mark!r}, only {', '.join(MARKS)}")
            if not (0 <= row < len(self.rows) and 0 <= column < len(self.columns)):
                raise ValueError(f"the mark {mark!r} is at no cell: row {row}, column {column}")

    @classmethod
    def of(
        cls,
        columns: Sequence[str | Column],
        rows: Sequence[Sequence[Value]],
        caption: str = "",
        notes: Sequence[str] = (),
        *,
        marks: Mapping[tuple[int, int], str] | None = None,
        legend: Mapping[str, str] | None = None,
        grouped: bool = False,
    ) -> Table:
        """A table from plain lists; a column may be given by its heading alone."""
        named = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
        cleaned = tuple(readable(note) for note in notes)
        body = tuple(tuple(row) for row in rows)
        return cls(named, body, readable(caption), cleaned, marks or {}, legend or {}, grouped)

    def keyed(self, key: str | None) -> Table:
        """This table with a last column, the whole key of the grader that every row is about."""
        columns = (*self.columns, Column("grader_key"))
        return replace(self, columns=columns, rows=tuple((*row, key) for row in self.rows))

    def tables(self) -> Mapping[str, Table]:
        """This table alone."""
        return {self.caption: self}

    def headings(self) -> list[str]:
        """The names of the columns; a repeated one with its number, as in JSON."""
        return _unique(column.heading for column in self.columns)

    def meanings(self) -> dict[str, str]:
        """What the marks that occur mean, in the order of `MARKS`."""
        used = set(self.marks.values())
        return {
            name: readable(self.legend.get(name, mark.meaning))
            for name, mark in MARKS.items()
            if name in used
        }


def picked(table: Table, kept: Sequence[int]) -> Table:
    """The table with these of its columns alone, in this order."""
    place = {index: now for now, index in enumerate(kept)}
    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
        marks={(row, place[at]): mark for (row, at), mark in table.marks.items() if at in place},
    )


def for_people(table: Table) -> Table:
    """The table without the columns that only machines read."""
    return picked(table, [at for at, one in enumerate(table.columns) if not one.for_machines])


def render(table: Table, style: str, digits: int | None = None) -> str:
    """The table as text in one of `STYLES`, ending in a line end.

    tsv and csv hold full precision and neither caption, notes nor marks, json all of it; the
    styles for people round to the columns' decimals, or to `digits`.

    Raises:
        InputError: `digits` are given to a style that holds full precision.
    """
    if digits is not None and style in MACHINES:
        raise InputError(f"{style} holds all digits of a number", mend="Leave out --digits")
    return STYLES[style](rounded(table, digits))


def rounded(table: Table, digits: int | None) -> Table:
    """The table with so many decimals where people read it; None leaves those of the columns."""
    if digits is None:
        return table
    columns = tuple(replace(column, decimals=digits) for column in table.columns)
    return replace(table, columns=columns)


MACHINES = ("tsv", "csv", "json")
"""The styles that hold full precision."""


# ---- what the styles for people share ----------------------------------------------------------


def shown_cells(table: Table) -> list[list[str]]:
    """The cells as people see them, before any style: rounded, without control characters."""
    return [
        [_shown(value, column.decimals) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def is_numeric(table: Table) -> list[bool]:
    """Per column, whether it holds numbers (to be aligned right)."""
    return [
        any(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in table.rows)
        or all(_reads_as_number(row[i]) for row in table.rows)
        for i in range(len(table.columns))
    ]


def column_groups(table: Table) -> list[tuple[str, int]]:
    """(heading, number of columns) of neighbours that share one; empty if none has one."""
    if not any(column.group for column in table.columns):
        return []
    groups = groupby(readable(column.group) for column in table.columns)
    return [(name, len(list(of))) for name, of in groups]


def row_groups(table: Table) -> Iterator[range]:
    """The rows that belong together."""
    if not table.grouped:
        yield range(len(table.rows))
        return
    for _, group in groupby(range(len(table.rows)), key=lambda row: table.rows[row][0]):
        found = list(group)
        yield range(found[0], found[-1] + 1)


def _shown(value: Value, decimals: int) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return f"{value:z.{decimals}f}"
    if isinstance(value, Bounded):
        return value.shown(decimals)
    return readable(str(_spelled(value)))


def _spelled(value: Value) -> Value:
    """Booleans in words, as JSON has them; all else as it is."""
    return str(value).lower() if isinstance(value, bool) else value


def readable(text: str) -> str:
    """The text without control characters: untrusted text must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)


def _reads_as_number(value: Value) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return not isinstance(value, bool)


def _around(table: Table, place: tuple[int, int], style: str) -> tuple[str, str]:
    mark = table.marks.get(place)
    return getattr(MARKS[mark], style) if mark else ("", "")


def notes_of(table: Table, style: str, escape: Callable[[str], str] = str) -> list[str]:
    """The legend, where there are marks, and the notes."""
    parts = []
    for name, meaning in table.meanings().items():
        before, after = getattr(MARKS[name], style)
        parts.append(f"{before}x{after}: {escape(meaning)}")
    return ["; ".join(parts)] * bool(parts) + [escape(note) for note in table.notes]


def once(table: Table, cells: list[list[str]]) -> list[list[str]]:
    """The cells with the name of a group of rows in the first of them alone."""
    firsts = {group.start for group in row_groups(table)} if table.grouped else None
    return [
        line if firsts is None or row in firsts else ["", *line[1:]]
        for row, line in enumerate(cells)
    ]


# ---- markdown ----------------------------------------------------------------------------------


_MARKUP = re.compile(r"[\\|*`<\[]|(?<!\w)_|_(?!\w)")


def markdown_escape(text: str) -> str:
    """The text with what markdown would read as markup escaped; `_` within a word is none."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _markdown(table: Table) -> str:
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


def dressed(table: Table, style: str, escape: Callable[[str], str]) -> list[list[str]]:
    """The cells as people see them, escaped, within the marks of a style."""
    found = []
    for row, line in enumerate(once(table, shown_cells(table))):
        around = (_around(table, (row, index), style) for index in range(len(line)))
        found.append([b + escape(cell) + a for (b, a), cell in zip(around, line, strict=True)])
    return found


# ---- machines ----------------------------------------------------------------------------------


def _separated(table: Table, delimiter: str) -> str:
    def line(cells: Sequence[Value]) -> str:
        # a field is quoted for the characters of the line end, and \r must be quoted too
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerow(
            map(_spelled, cells)
        )
        return stream.getvalue()[:-2] + "\n"

    return "".join(map(line, ([column.heading for column in table.columns], *table.rows)))


def _json(table: Table) -> str:
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


def _unique(names: Iterable[str]) -> list[str]:
    """The names, a repeated one with its number: nothing is lost where names are keys."""
    found: dict[str, None] = {}
    for name in names:
        again = (f"{name} {number}" for number in count(2))
        found[next(one for one in chain([name], again) if one not in found)] = None
    return list(found)


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a table holds None for what is undefined, never NaN")
    return value


def _text(table: Table) -> str:
    # that module needs this one
    from exampp.report.text import as_text

    return as_text(table)


def _latex(table: Table) -> str:
    # that module needs this one
    from exampp.report.latex import table_latex

    return table_latex(table)


def _html(table: Table) -> str:
    # that module needs this one
    from exampp.report.html import table_html

    return table_html(table)


STYLES: Mapping[str, Callable[[Table], str]] = {
    "text": _text,
    "tsv": lambda table: _separated(table, "\t"),
    "csv": lambda table: _separated(table, ","),
    "json": _json,
    "markdown": _markdown,
    "latex": _latex,
    "html": _html,
}
