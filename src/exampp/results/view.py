"""What a table holds, and what all styles make of it.

Values stay numbers and booleans until they are rendered. None is an undefined value: its reason
belongs into the notes, and no renderer prints it as a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from typing import Self, TypeVar


class Bounded(str):
    """A number with its interval, 0.36 [0.30, 0.42]; either may be missing.

    As a text, which is what machines read, it has two decimals.
    """

    value: float | None
    bounds: tuple[float, float] | None

    def __new__(cls, value: float | None, bounds: tuple[float, float] | None) -> Self:
        """The text with two decimals, and the numbers that it is made of."""
        made = super().__new__(cls, _text(value, bounds, 2))
        made.value, made.bounds = value, bounds
        return made

    def shown(self, decimals: int) -> str:
        """The text with so many decimals."""
        return _text(self.value, self.bounds, decimals)


def _text(value: float | None, bounds: tuple[float, float] | None, decimals: int) -> str:
    parts = [] if value is None else [f"{value:z.{decimals}f}"]
    if bounds is not None:
        parts.append(f"[{bounds[0]:z.{decimals}f}, {bounds[1]:z.{decimals}f}]")
    return " ".join(parts)


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
class Cells:
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
    ) -> Self:
        """A table from plain lists; a column may be given by its heading alone."""
        named = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
        cleaned = tuple(readable(note) for note in notes)
        body = tuple(tuple(row) for row in rows)
        return cls(named, body, readable(caption), cleaned, marks or {}, legend or {}, grouped)

    def keyed(self, key: str | None) -> Self:
        """This table with a last column, the whole key of the grader that every row is about."""
        columns = (*self.columns, Column("grader_key"))
        return replace(self, columns=columns, rows=tuple((*row, key) for row in self.rows))

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


T = TypeVar("T", bound=Cells)


def select_columns(table: T, kept: Sequence[int]) -> T:
    """The table with these of its columns alone, in this order."""
    place = {index: now for now, index in enumerate(kept)}
    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
        marks={(row, place[at]): mark for (row, at), mark in table.marks.items() if at in place},
    )


def without_machine_columns(table: T) -> T:
    """The table without the columns that only machines read."""
    return select_columns(
        table, [at for at, one in enumerate(table.columns) if not one.for_machines]
    )


# ---- what the styles for people share ----------------------------------------------------------


def shown_cells(table: Cells) -> list[list[str]]:
    """The cells as people see them, before any style: rounded, without control characters."""
    return [
        [_shown(value, column.decimals) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def is_numeric(table: Cells) -> list[bool]:
    """Per column, whether it holds numbers (to be aligned right)."""
    return [
        any(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in table.rows)
        or all(_reads_as_number(row[i]) for row in table.rows)
        for i in range(len(table.columns))
    ]


def column_groups(table: Cells) -> list[tuple[str, int]]:
    """(heading, number of columns) of neighbours that share one; empty if none has one."""
    if not any(column.group for column in table.columns):
        return []
    groups = groupby(readable(column.group) for column in table.columns)
    return [(name, len(list(of))) for name, of in groups]


def row_groups(table: Cells) -> Iterator[range]:
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
    return readable(str(json_value(value)))


def json_value(value: Value) -> Value:
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


def _around(table: Cells, place: tuple[int, int], style: str) -> tuple[str, str]:
    mark = table.marks.get(place)
    return getattr(MARKS[mark], style) if mark else ("", "")


def notes_of(table: Cells, style: str, escape: Callable[[str], str] = str) -> list[str]:
    """The legend, where there are marks, and the notes."""
    parts = []
    for name, meaning in table.meanings().items():
        before, after = getattr(MARKS[name], style)
        parts.append(f"{before}x{after}: {escape(meaning)}")
    return ["; ".join(parts)] * bool(parts) + [escape(note) for note in table.notes]


def once(table: Cells, cells: list[list[str]]) -> list[list[str]]:
    """The cells with the name of a group of rows in the first of them alone."""
    firsts = {group.start for group in row_groups(table)} if table.grouped else None
    return [
        line if firsts is None or row in firsts else ["", *line[1:]]
        for row, line in enumerate(cells)
    ]


def styled_cells(table: Cells, style: str, escape: Callable[[str], str]) -> list[list[str]]:
    """The cells as people see them, escaped, within the marks of a style."""
    found = []
    for row, line in enumerate(once(table, shown_cells(table))):
        around = (_around(table, (row, index), style) for index in range(len(line)))
        found.append([b + escape(cell) + a for (b, a), cell in zip(around, line, strict=True)])
    return found


def _unique(names: Iterable[str]) -> list[str]:
    """The names, a repeated one with its number: nothing is lost where names are keys."""
    found: dict[str, None] = {}
    for name in names:
        again = (f"{name} {number}" for number in count(2))
        found[next(one for one in chain([name], again) if one not in found)] = None
    return list(found)
