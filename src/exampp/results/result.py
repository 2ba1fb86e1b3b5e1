"""What every result can do: print, show itself in a notebook, become a frame, JSON or LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.html import table_html
from exampp.results.latex import table_latex
from exampp.results.text import as_text
from exampp.results.view import ERROR as ERROR
from exampp.results.view import GRADER_KEY as GRADER_KEY
from exampp.results.view import UNDEFINED as UNDEFINED
from exampp.results.view import (
    Cells,
    T,
    Value,
    is_numeric,
    json_value,
    notes_of,
    readable,
    styled_cells,
    without_machine_columns,
)
from exampp.results.view import Column as Column

if TYPE_CHECKING:
    import pandas
    import polars


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

    table = without_machine_columns(table)
    rule = ["---:" if right else "---" for right in is_numeric(table)]
    parts = [f"**{markdown_escape(table.caption)}**\n"] if table.caption else []
    heads = [markdown_escape(readable(column.heading)) for column in table.columns]
    parts += [line(heads), "|" + "|".join(rule) + "|"]
    parts += [line(cells) for cells in styled_cells(table, "markdown", markdown_escape)]
    if notes := notes_of(table, "markdown", markdown_escape):
        parts += ["", *(f"- {note}" for note in notes)]
    return "\n".join(parts) + "\n"


# ---- machines ----------------------------------------------------------------------------------


def _separated(table: Cells, delimiter: str) -> str:
    def line(cells: Sequence[Value]) -> str:
        # a field is quoted for the characters of the line end, and \r must be quoted too
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerow(
            map(json_value, cells)
        )
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


class Result:
    """Something that was found out, and the tables in which it is shown.

    A record derives from it and says how it looks: `tables` are for people, `records` hold a row a
    value at full precision.
    """

    __slots__ = ()

    @abstractmethod
    def tables(self) -> Mapping[str, Cells]:
        """The tables that people read, by name, in order."""

    def records(self) -> Mapping[str, Cells]:
        """The same for programs: a row a value, nothing rounded."""
        return self.tables()

    def render(self, style: str = "text", digits: int | None = None) -> str:
        """All tables in one of the styles of `report.styles`; those for machines show `records`.

        JSON is one object, by the names of the tables, or the only table itself.

        Raises:
            InputError: `digits` are given to a style that holds full precision.
        """
        shown = self.records() if style in _RECORDS else self.tables()
        if style != "json":
            return "\n".join(render(table, style, digits) for table in shown.values())
        found = {name: json.loads(render(table, style, digits)) for name, table in shown.items()}
        value = next(iter(found.values())) if len(found) == 1 else found
        return json.dumps(value, ensure_ascii=False, indent=1) + "\n"

    def to_json(self) -> str:
        """The `records` as JSON."""
        return self.render("json")

    def to_latex(self) -> str:
        """The tables for a paper (needs the LaTeX package booktabs)."""
        return self.render("latex")

    def to_markdown(self) -> str:
        """The tables as Markdown."""
        return self.render("markdown")

    def to_frame(self, name: str | None = None) -> pandas.DataFrame:
        """One of the `records` as a pandas frame; the first unless a name is given.

        Raises:
            InputError: There is no table of that name, or pandas is not installed.
        """
        table = self._record(name)
        try:
            import pandas
        except ImportError:
            raise _not_installed("pandas") from None
        frame = pandas.DataFrame(list(table.rows), columns=table.headings())
        return frame.convert_dtypes()

    def to_polars(self, name: str | None = None) -> polars.DataFrame:
        """One of the `records` as a polars frame; the first unless a name is given.

        Raises:
            InputError: There is no table of that name, or polars is not installed.
        """
        table = self._record(name)
        try:
            import polars
        except ImportError:
            raise _not_installed("polars") from None
        return polars.DataFrame(
            list(table.rows),
            schema=table.headings(),
            orient="row",
            strict=False,
            infer_schema_length=None,
        )

    def _record(self, name: str | None) -> Cells:
        found = self.records()
        if name is None:
            return next(iter(found.values()))
        if name not in found:
            raise InputError(f"there is no table {name!r}", mend=f"Known: {', '.join(found)}")
        return found[name]

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return self.render().rstrip("\n")

    def _repr_html_(self) -> str:
        """The tables with a style of their own, which holds for them alone."""
        style = files("exampp.results").joinpath("notebook.css").read_text(encoding="utf-8")
        return f'<div class="exampp">\n<style>\n{style}</style>\n{self.render("html")}</div>\n'


_RECORDS = ("tsv", "csv", "json")


def _not_installed(package: str) -> InputError:
    return InputError(
        f"a frame needs {package}, which is not installed",
        mend=f"Install it: {install_command(package)}",
    )


# The one table type: made once, rendered as text, tsv, csv, json, markdown, latex or html.
#
# Values stay numbers and booleans until they are rendered. None is an undefined value: its reason
# belongs into the notes, and no renderer prints it as a number.


@dataclass(frozen=True, slots=True, repr=False)
class Table(Cells, Result):
    """A table: what it holds, and whatever else a result can do."""

    def tables(self) -> Mapping[str, Table]:
        """This table alone."""
        return {self.caption: self}


@dataclass(frozen=True, slots=True, repr=False)
class Tables(Result):
    """Tables that belong together, by name: unpacked, or taken by name."""

    parts: Mapping[str, Table]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.parts.values())

    def __getitem__(self, name: str) -> Table:
        return self.parts[name]

    def tables(self) -> Mapping[str, Table]:
        """The tables."""
        return self.parts
