"""The parts of a table, and the view of it that people get in every style.

Values stay numbers and booleans until they are rendered. None is an undefined value: the notes give
its reason, and no renderer prints it as a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, Protocol, runtime_checkable

UNDEFINED = "-"
ERROR = "\u00b1"
"""The heading of a standard error, which belongs to the column before it."""


@runtime_checkable
class HasInterval(Protocol):
    """A number with its interval, such as an `Estimate`; each of the three may be None."""

    @property
    def value(self) -> float | None:
        """The number."""

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""


class Interval(NamedTuple):
    """A number with its interval, 0.36 [0.30, 0.42]; either may be missing."""

    value: float | None
    low: float | None = None
    high: float | None = None


Value = str | int | float | bool | None
"""A cell as programs read it."""


class Marked(NamedTuple):
    """A value that is highlighted for people by one of `MARKS`."""

    value: Value | HasInterval
    mark: str


Cell = Value | HasInterval | Marked


def marked(value: Value | HasInterval, mark: str | None) -> Cell:
    """Return the value, wrapped in `Marked` if there is a mark."""
    return Marked(value, mark) if mark else value


def cell_value(cell: Cell) -> Value:
    """Return the value of a cell without its mark and interval."""
    value = cell.value if isinstance(cell, Marked) else cell
    return value if value is None or isinstance(value, str | int | float) else value.value


class Mark(NamedTuple):
    """The meaning of a mark, and what surrounds a marked cell in each style."""

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


Readers = Literal["all", "people", "programs"]
"""Those who see a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and the number of decimals for people.

    Neighbours of the same `group` share a group heading. Programs use the `key` of the column, by
    default its heading. `readers` are those who see the column. A column of numbers with an
    `interval` is three columns for programs, even without rows.
    """

    name: str
    decimals: int = 3
    group: str = ""
    key: str = ""
    readers: Readers = "all"
    interval: bool = False

    @property
    def heading(self) -> str:
        """The heading after that of its group, in one line."""
        return f"{self.group} {self.name}".strip()


GRADER_KEY = Column("grader key", readers="programs")
"""The whole key of the grader that a row names."""


def programs_only(*names: str) -> list[Column]:
    """Return columns that people do not see."""
    return [Column(name, readers="programs") for name in names]


@dataclass(frozen=True, slots=True)
class View:
    """A table for people before any style: rounded text without control characters.

    `numeric` marks the columns of numbers, which are aligned right. `row_groups` are the rows that
    belong together; if there are `titles`, they name the groups in place of a first column.
    """

    columns: Sequence[Column]
    cells: Sequence[Sequence[str]]
    marks: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    row_groups: Sequence[range]
    grouped: bool = False
    caption: str = ""
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] | None = None
    verdict: str = ""

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell]],
        digits: int | None,
        *,
        grouped: bool,
        caption: str,
        notes: Sequence[str],
        legend: Mapping[str, str],
        verdict: str = "",
    ) -> View:
        """Return the view of some rows, rounded to `digits` or to the decimals of the columns."""
        shown = [at for at, one in enumerate(columns) if one.readers != "programs"]
        decimals = [columns[at].decimals if digits is None else digits for at in shown]
        cells = [[row[at] for at in shown] for row in rows]
        forms = [shorten_digests if columns[at].name in _PASSAGE else str for at in shown]
        starts = [0]
        if grouped:
            starts += [at for at, (a, b) in enumerate(pairwise(rows), 1) if a[0] != b[0]]
        return cls(
            columns=[columns[at] for at in shown],
            cells=[
                [form(_text(cell, places)) for cell, places, form in zip(*line, strict=True)]
                for line in ((row, decimals, forms) for row in cells)
            ],
            marks=[[one.mark if isinstance(one, Marked) else "" for one in row] for row in cells],
            numeric=[_is_numeric([row[at] for row in rows]) for at in shown],
            row_groups=[range(*pair) for pair in pairwise([*starts, len(rows)])],
            grouped=grouped,
            caption=caption,
            notes=tuple(map(printable, notes)),
            legend=legend,
            verdict=verdict,
        )

    @property
    def heads(self) -> list[str]:
        """The headings, below those of the groups."""
        return [printable(column.name) for column in self.columns]

    @property
    def column_groups(self) -> list[tuple[str, int]]:
        """(heading, number of columns) of neighbours in a group; empty if there are no groups."""
        if not any(column.group for column in self.columns):
            return []
        groups = groupby(printable(column.group) for column in self.columns)
        return [(name, len(list(of))) for name, of in groups]

    @property
    def meanings(self) -> dict[str, str]:
        """The meanings of the marks that occur, in the order of `MARKS`."""
        used = {mark for line in self.marks for mark in line}
        legend = self.legend or {}
        return {
            name: printable(legend.get(name, mark.meaning))
            for name, mark in MARKS.items()
            if name in used
        }

    def select(self, places: Sequence[int]) -> View:
        """Return the view with only these columns, in this order."""
        return replace(
            self,
            columns=[self.columns[at] for at in places],
            cells=[[line[at] for at in places] for line in self.cells],
            marks=[[line[at] for at in places] for line in self.marks],
            numeric=[self.numeric[at] for at in places],
        )

    def once(self) -> list[list[str]]:
        """Return the cells; the name of a group is only in its first row."""
        firsts = {group.start for group in self.row_groups}
        return [
            ["", *line[1:]] if self.grouped and row not in firsts else list(line)
            for row, line in enumerate(self.cells)
        ]

    def styled(self, style: str, escape: Callable[[str], str]) -> list[list[str]]:
        """Return the cells, escaped and with the marks of a style."""
        lines = zip(self.once(), self.marks, strict=True)
        return [
            [_around(m, style, escape(c)) for c, m in zip(*line, strict=True)] for line in lines
        ]

    def footnotes(self, style: str, escape: Callable[[str], str] = str) -> list[str]:
        """Return the legend, if there are marks, and the notes."""
        legend = (f"{_around(m, style, 'x')}: {escape(why)}" for m, why in self.meanings.items())
        notes = [escape(shorten_digests(note)) for note in self.notes]
        return [line for line in ("; ".join(legend),) if line] + notes


def shorten_digests(text: str) -> str:
    """Cut every id that is the MD5 of a text to its first characters, as it says nothing."""
    return _DIGEST.sub("\\1\u2026", text)


_PASSAGE = ("passage_id", "passage")
"""Columns whose digests people see shortened."""
_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24}\b")


def _around(mark: str, style: str, text: str) -> str:
    before, after = getattr(MARKS[mark], style) if mark else ("", "")
    return f"{before}{text}{after}"


def _text(cell: Cell, decimals: int) -> str:
    value = cell.value if isinstance(cell, Marked) else cell
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return f"{value:z.{decimals}f}"
    if isinstance(value, str | int):
        return printable(str(spelled(value)))
    return interval_text(value, decimals)


def spelled(value: Value) -> Value:
    """Return booleans as words, as in JSON; all else as it is."""
    return str(value).lower() if isinstance(value, bool) else value


def interval_text(one: HasInterval, decimals: int, unit: Literal["f", "%"] = "f") -> str:
    """Return an interval as text, such as 0.36 [0.30, 0.42] or 36%; omit missing parts."""
    form = f"z.{decimals}{unit}"
    parts = [] if one.value is None else [f"{one.value:{form}}"]
    if one.low is not None and one.high is not None:
        parts.append(f"[{one.low:{form}}, {one.high:{form}}]")
    return " ".join(parts) or UNDEFINED


_NUMBER = re.compile(r"(-?[\d,]+(\.\d+)?(\.\.-?\d+(\.\d+)?)?%?( ?\[.*\])?)?")
"""Text that people read as a number: 0.25, 1,204, 12%, 0.1..0.2, -0.25 [-0.31, -0.19], or
nothing."""


def _is_numeric(cells: Sequence[Cell]) -> bool:
    values = [one.value if isinstance(one, Marked) else one for one in cells]
    if any(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        return True
    texts = [one for one in values if isinstance(one, str | bool)]
    return all(isinstance(one, str) and _NUMBER.fullmatch(one) for one in texts)


def printable(text: str) -> str:
    """Return the text without control characters, so that it cannot control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)
