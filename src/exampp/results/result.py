"""Results: tables that are declared once for programs and for people.

The rows of a `Table` hold numbers at full precision. Programs read each column under its `key`
(tsv, csv, json, frames), and a value with an interval as three columns; people read a `View`.
"""

from __future__ import annotations

import io
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Self

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.text import view_text
from exampp.results.view import Cell, Column, Marked, Value, View, cell_value, printable, spelled

if TYPE_CHECKING:
    import pandas
    import polars


class Result:
    """Base of all results: a record with the tables that show it.

    A subclass declares its `tables`. Where programs need other rows than people (a row per value
    instead of a wide table), it declares `records`, too.
    """

    __slots__ = ()

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Return the tables for people, by name, in order."""

    def records(self) -> Mapping[str, Table]:
        """Return the tables for programs: a row per value."""
        return self.tables()

    def render(self, style: str = "text", digits: int | None = None) -> str:
        """Render all tables in one of `STYLES`; styles for programs show the `records`.

        JSON is one object, by the names of the tables, or the only table itself.

        Raises:
            InputError: `digits` are given to a style that holds full precision.
        """
        shown = self.records() if style in MACHINES else self.tables()
        if style == "json" and len(shown) != 1:
            return json_of(shown)
        return "\n".join(render(table, style, digits) for table in shown.values())

    def to_json(self) -> str:
        """Return the `records` as JSON."""
        return self.render("json")

    def to_latex(self) -> str:
        """Return the tables as LaTeX (needs the package booktabs)."""
        return self.render("latex")

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return self.render("markdown")

    def to_frame(self, name: str | None = None) -> pandas.DataFrame:
        """Return one of the `records` as a pandas frame, by default the first.

        Raises:
            InputError: The table is unknown, or pandas is not installed.
        """
        names, rows = self._record(name).for_programs()
        frame: pandas.DataFrame = _installed("pandas").DataFrame(rows, columns=names)
        return frame.convert_dtypes()

    def to_polars(self, name: str | None = None) -> polars.DataFrame:
        """Return one of the `records` as a polars frame, by default the first.

        Raises:
            InputError: The table is unknown, or polars is not installed.
        """
        names, rows = self._record(name).for_programs()
        how = {"orient": "row", "strict": False, "infer_schema_length": None}
        frame: polars.DataFrame = _installed("polars").DataFrame(rows, schema=names, **how)
        return frame

    def _record(self, name: str | None) -> Table:
        records = self.records()
        if name is not None and name not in records:
            raise InputError(f"unknown table {name!r}", hint=f"Known: {', '.join(records)}")
        return next(iter(records.values())) if name is None else records[name]

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return self.render().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the tables for notebooks, with a style sheet that is limited to them."""
        return notebook_html(self.render("html"))


def notebook_html(content: str) -> str:
    """Return HTML for a notebook: the content with a style sheet that is limited to it."""
    from importlib.resources import files

    style = files("exampp.results").joinpath("notebook.css").read_text(encoding="utf-8")
    return f'<div class="exampp">\n<style>\n{style}</style>\n{content}</div>\n'


def page_html(content: str, title: str) -> str:
    """Return a whole HTML page with the content and its style sheet."""
    from html import escape

    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title></head>'
        f'<body style="font-family: system-ui, sans-serif; margin: 2rem">'
        f"{notebook_html(content)}</body>\n</html>\n"
    )


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        hint = f"Install it: {install_command(package)}"
        raise InputError(f"a frame needs {package}, which is not installed", hint=hint) from None


@dataclass(frozen=True, slots=True, repr=False)
class Table(Result):
    """Rows of values under columns, with a caption above and notes below.

    `verdict` is the result in one sentence, which people read first.
    `legend` overrides the usual meaning of a mark in this table. `grouped`: rows that share their
    first value belong together, and people see it once.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    grouped: bool = False
    verdict: str = ""

    @classmethod
    def of(
        cls,
        columns: Iterable[str | Column],
        rows: Iterable[Iterable[Cell]],
        caption: str = "",
        notes: Iterable[str] = (),
        *,
        legend: Mapping[str, str] | None = None,
        grouped: bool = False,
        verdict: str = "",
    ) -> Self:
        """Create the table from plain lists; a column may be given by its heading alone."""
        named = tuple(one if isinstance(one, Column) else Column(one) for one in columns)
        body = tuple(map(tuple, rows))
        return cls(named, body, printable(caption), tuple(notes), legend or {}, grouped, verdict)

    @classmethod
    def wide(
        cls,
        index: Iterable[str | Column],
        cells: Iterable[tuple[tuple[Value, ...], Column, Cell]],
        caption: str = "",
        **more: Any,
    ) -> Self:
        """Pivot (row, column, value) triples; rows and columns keep their first order.

        A row consists of the values of the columns of the `index`.
        """
        pivot: dict[tuple[Value, ...], dict[Column, Cell]] = {}
        columns: dict[Column, None] = {}
        for row, column, value in cells:
            pivot.setdefault(row, {})[column] = value
            columns[column] = None
        rows = ((*row, *(of.get(one) for one in columns)) for row, of in pivot.items())
        return cls.of([*index, *columns], rows, caption, **more)

    def tables(self) -> Mapping[str, Table]:
        """Return this table alone."""
        return {self.caption: self}

    def keyed(self, key: str | None) -> Self:
        """Return the table with the grader's key as last column."""
        columns = (*self.columns, Column("grader_key"))
        return replace(self, columns=columns, rows=tuple((*row, key) for row in self.rows))

    def headings(self) -> list[str]:
        """Return the names of all columns; repeated ones get a number, as in JSON."""
        return _unique(column.key or column.heading for column in self.columns)

    def view(self, digits: int | None = None) -> View:
        """Return the view for people, rounded to `digits` or to the decimals of the columns."""
        return View.of(
            self.columns,
            self.rows,
            digits,
            grouped=self.grouped,
            caption=self.caption,
            notes=self.notes,
            legend=self.legend,
            verdict=printable(self.verdict),
        )

    def for_programs(self) -> tuple[list[str], list[tuple[Value, ...]]]:
        """Return unique column names and the rows, at full precision."""
        columns = list(self._for_programs())
        rows = list(zip(*(values for _, values in columns), strict=True))
        return _unique(name for name, _ in columns), rows

    def _for_programs(self) -> Iterator[tuple[str, list[Value]]]:
        for at, column in enumerate(self.columns):
            if column.readers != "people":
                yield from _parts(column, [row[at] for row in self.rows])


@dataclass(frozen=True, slots=True, repr=False)
class Tables(Result):
    """Tables that belong together, accessed by position or by name."""

    parts: Mapping[str, Table]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.parts.values())

    def __getitem__(self, name: str) -> Table:
        return self.parts[name]

    def tables(self) -> Mapping[str, Table]:
        """Return the tables."""
        return self.parts


def _parts(column: Column, cells: Sequence[Cell]) -> Iterator[tuple[str, list[Value]]]:
    """Yield the columns for programs with their values: one, or three for an interval."""
    name = column.key or column.heading
    yield name, [cell_value(cell) for cell in cells]
    bounds = [_bounds(cell) for cell in cells]
    if column.interval:
        prefix = "" if name == "value" else f"{name}_"
        yield f"{prefix}low", [low for low, _ in bounds]
        yield f"{prefix}high", [high for _, high in bounds]
    elif any(ends != _NO_BOUNDS for ends in bounds):
        raise ValueError(f"column {name!r} holds intervals, and is not declared with interval=True")


_NO_BOUNDS = (None, None)


def _bounds(cell: Cell) -> tuple[float | None, float | None]:
    value = cell.value if isinstance(cell, Marked) else cell
    if value is None or isinstance(value, str | int | float):
        return _NO_BOUNDS
    return value.low, value.high


def _unique(names: Iterable[str]) -> list[str]:
    unique: dict[str, None] = {}
    for name in names:
        again = (f"{name} {number}" for number in count(2))
        unique[next(one for one in chain([name], again) if one not in unique)] = None
    return list(unique)


# ---- styles ------------------------------------------------------------------------------------

MACHINES = ("tsv", "csv", "json")
"""The styles that hold full precision."""
PEOPLE: Mapping[str, Callable[[View], str]] = {
    "text": view_text,
    "markdown": lambda view: _markdown(view),
    "latex": lambda view: _latex(view),
    "html": lambda view: _html(view),
}
STYLES = (*PEOPLE, *MACHINES)


def render(table: Table, style: str, digits: int | None = None) -> str:
    """Return the table as text in one of `STYLES`, ending in a line end.

    tsv and csv hold full precision, without verdict, caption, notes and marks; json holds all but
    marks. The styles for people round to the columns' decimals, or to `digits`.

    Raises:
        InputError: `digits` are given to a style that holds full precision.
    """
    if style in PEOPLE:
        return PEOPLE[style](table.view(digits))
    if digits is not None:
        raise InputError(f"{style} holds all digits of a number", hint="Leave out --digits")
    if style == "json":
        return json.dumps(_object(table), ensure_ascii=False, indent=1) + "\n"
    return _separated(table, "\t" if style == "tsv" else ",")


def json_of(tables: Mapping[str, Table]) -> str:
    """Return tables as one JSON object, by their names."""
    objects = {name: _object(table) for name, table in tables.items()}
    return json.dumps(objects, ensure_ascii=False, indent=1) + "\n"


def _object(table: Table) -> dict[str, object]:
    names, rows = table.for_programs()
    return {
        **({"verdict": printable(table.verdict)} if table.verdict else {}),
        "caption": table.caption,
        "rows": [dict(zip(names, map(_finite, row), strict=True)) for row in rows],
        "notes": list(map(printable, table.notes)),
    }


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a table holds None, never NaN, for undefined values")
    return value


def _separated(table: Table, delimiter: str) -> str:
    columns = [[name, *values] for name, values in table._for_programs()]
    import csv

    stream = io.StringIO()
    # a field is quoted for the characters of the line end, and \r must be quoted too
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\r\n")
    lines = []
    for row in zip(*columns, strict=True):
        writer.writerow(map(spelled, row))
        lines.append(stream.getvalue()[:-2])
        stream.seek(0)
        stream.truncate()
    return "\n".join(lines) + "\n"


_MARKUP = re.compile(r"[\\|*`<\[~]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)")
_LINKED = re.compile(
    r"(?<!\w)@(?=\w)|#(?=\w)|(?<!\w)GH-(?=\d)|:(?=//\S+/(?:issues|pull|discussions)/\d)", re.I
)
UNLINKED = "<!-- -->"
"""Keeps GitHub from reading a name as a mention or as another pull request."""


def markdown_escape(text: str) -> str:
    """Escape what Markdown reads as markup (`_` only at the edge of a word), and GitHub as a link.

    GitHub notifies @org/team, and links #12, GH-12 and addresses of pull requests, even after a
    backslash: an empty comment breaks them.
    """
    return _LINKED.sub(rf"\g<0>{UNLINKED}", _MARKUP.sub(r"\\\g<0>", text))


def _latex(view: View) -> str:
    from exampp.results.latex import view_latex

    return view_latex(view)


def _html(view: View) -> str:
    from exampp.results.html import view_html

    return view_html(view)


def _markdown(view: View) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = ["---:" if right else "---" for right in view.numeric]
    notes = [f"- {note}" for note in view.footnotes("markdown", markdown_escape)]
    parts = [
        *([f"{markdown_escape(view.verdict)}\n"] if view.verdict else []),
        *([f"**{markdown_escape(view.caption)}**\n"] if view.caption else []),
        line(markdown_escape(printable(column.heading)) for column in view.columns),
        f"|{'|'.join(rule)}|",
        *map(line, view.styled("markdown", markdown_escape)),
        *(["", *notes] if notes else []),
    ]
    return "\n".join(parts) + "\n"
