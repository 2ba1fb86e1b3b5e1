"""The one table type: made once, rendered as text, tsv, csv, json, markdown, latex or html.

Values stay numbers and booleans until they are rendered. None is an undefined value: its reason
belongs into the notes, and no renderer prints it as a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exampp.report.cells import ERROR as ERROR
from exampp.report.cells import GRADER_KEY as GRADER_KEY
from exampp.report.cells import UNDEFINED as UNDEFINED
from exampp.report.cells import Cells
from exampp.report.cells import Column as Column
from exampp.report.cells import Value as Value
from exampp.report.result import Result
from exampp.report.styles import MACHINES as MACHINES
from exampp.report.styles import STYLES as STYLES
from exampp.report.styles import render as render


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
