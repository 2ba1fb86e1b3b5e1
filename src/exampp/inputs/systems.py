"""The systems of a collection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.records.inputs import SystemCount
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.store.connection import transaction
from exampp.store.inputs import remove_systems, system_counts
from exampp.store.pages import write_pages


@dataclass(frozen=True, slots=True, repr=False)
class Systems(Result):
    """The systems of a collection, read at each use."""

    connection: sqlite3.Connection

    def __iter__(self) -> Iterator[SystemCount]:
        return iter(self.list())

    def list(self) -> Sequence[SystemCount]:
        """Return the systems, sorted by name, with their counts of passages."""
        return system_counts(self.connection)

    def tables(self) -> Mapping[str, Table]:
        """Return one row per system; passages are means over its queries."""
        heads: tuple[str | Column, ...] = ("system", "queries", Column("passages", 1))
        return {"systems": Table.of(heads, self.list())}

    def remove(self, *names: str) -> int:
        """Remove the rankings of systems; return the number of ranked passages.

        Passages and grades stay, so importing the run again restores it. Raises InputError, and
        removes nothing, if a system is unknown.
        """
        if not names:
            raise InputError("no system to remove", hint="Name one")
        with self.connection, transaction(self.connection):
            removed = remove_systems(self.connection, dict.fromkeys(names))
            write_pages(self.connection)
        return removed
