"""The systems of a collection.

Removing one takes its rankings away and nothing else: the passages and their grades stay, so that
importing its run again brings back everything that it scored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.records.systems import SystemCount
from exampp.report.result import Result
from exampp.report.table import Column, Table
from exampp.store.connection import transaction
from exampp.store.systems import remove_systems, rename_system, system_counts


@dataclass(frozen=True, slots=True, repr=False)
class Systems(Result):
    """All systems, as they are whenever they are looked at."""

    connection: sqlite3.Connection

    def __iter__(self) -> Iterator[SystemCount]:
        return iter(self.list())

    def list(self) -> Sequence[SystemCount]:
        """The systems in order of first appearance, with how many passages each returned."""
        return system_counts(self.connection)

    def tables(self) -> Mapping[str, Table]:
        """A row a system; passages are the mean over the queries for which it returned some."""
        heads: tuple[str | Column, ...] = ("system", "queries", Column("passages", 1))
        return {"systems": Table.of(heads, self.list())}

    def rename(self, old: str, new: str) -> None:
        """Give a system another name.

        Raises InputError where there is no such system, one of the new name, or that is no name.
        """
        with self.connection, transaction(self.connection):
            rename_system(self.connection, old, new)

    def remove(self, *names: str) -> int:
        """Take the rankings of systems away; returns how many ranked passages those had.

        Importing a run again undoes it: passages and grades stay. Raises InputError, and removes
        none, where one of them is not known.
        """
        if not names:
            raise InputError("no system to remove", mend="Name one")
        with self.connection, transaction(self.connection):
            return remove_systems(self.connection, dict.fromkeys(names))
