"""What every result can do: print, show itself in a notebook, become a frame, JSON or LaTeX."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.report.cells import Cells
from exampp.report.styles import render

if TYPE_CHECKING:
    import pandas
    import polars


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
        style = files("exampp.report").joinpath("notebook.css").read_text(encoding="utf-8")
        return f'<div class="exampp">\n<style>\n{style}</style>\n{self.render("html")}</div>\n'


_RECORDS = ("tsv", "csv", "json")


def _not_installed(package: str) -> InputError:
    return InputError(
        f"a frame needs {package}, which is not installed",
        mend=f"Install it: {install_command(package)}",
    )
