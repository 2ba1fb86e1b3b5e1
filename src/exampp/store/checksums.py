"""Checksums of all rows, so that a changed number is found where nothing else would contradict it.

The table `checksum` holds the number of rows of every other table, and the sum of their checksums.
Temporary triggers of each connection that writes add up what its transaction changes; the end of
the transaction writes the sums in the same commit, so that a crash cannot make them wrong. A row
that another program than exampp changed, or that changed on the disk, makes its table differ.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from marshal import dumps
from typing import Any, NamedTuple
from zlib import crc32

TABLE = "checksum"
_FORMAT = 2
"""The oldest format of marshal with binary floats; the bytes of a row never change in it."""
_TABLES = (
    "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    f"AND name <> '{TABLE}' ORDER BY name"
)


class Mismatch(NamedTuple):
    """A table that is not what its checksum says: its rows then, and its rows now."""

    table: str
    expected: int
    found: int


class Checksums:
    """What the current transaction of a connection adds to the checksums of its tables."""

    def __init__(self) -> None:
        self.installed = False
        self._pending: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def begin(self, connection: sqlite3.Connection) -> None:
        """Start with nothing, at the begin of a transaction; watch the tables from the first on."""
        self._pending.clear()
        if not self.installed:
            connection.create_function("row_added", -1, self._added)
            connection.create_function("row_removed", -1, self._removed)
            for statement in _triggers(connection):
                connection.execute(statement)
            self.installed = True

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what the transaction has changed, just before it is committed."""
        rows = [(table, *changes) for table, changes in self._pending.items() if any(changes)]
        self._pending.clear()
        if rows:
            connection.executemany(
                f"INSERT INTO {TABLE} VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                "SET rows = rows + excluded.rows, total = total + excluded.total",
                rows,
            )

    def _added(self, table: str, *row: Any) -> None:
        changes = self._pending[table]
        changes[0] += 1
        changes[1] += crc32(dumps(row, _FORMAT))

    def _removed(self, table: str, *row: Any) -> None:
        changes = self._pending[table]
        changes[0] -= 1
        changes[1] -= crc32(dumps(row, _FORMAT))


def _triggers(connection: sqlite3.Connection) -> Iterator[str]:
    added, removed = "SELECT row_added({new});", "SELECT row_removed({old});"
    for (table,) in connection.execute(_TABLES).fetchall():
        new, old = (f"'{table}', {_values(connection, table, of)}" for of in ("NEW.", "OLD."))
        for event, body in (
            ("INSERT", added),
            ("DELETE", removed),
            ("UPDATE", removed + added),
        ):
            yield (
                f"CREATE TEMP TRIGGER checksum_{table}_{event} AFTER {event} ON main.{table} "
                f"BEGIN {body.format(new=new, old=old)} END"
            )


def _values(connection: sqlite3.Connection, table: str, of: str = "") -> str:
    """SQL: the columns of a row, as they are read back, whatever is wrong with a text."""
    columns = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
    forms = {"TEXT": "CAST({} AS BLOB)", "ANY": "CAST({} AS BLOB)", "REAL": "{} + 0.0"}
    return ", ".join(forms.get(kind, "{}").format(of + name) for _, name, kind, *_ in columns)


def write_all(connection: sqlite3.Connection) -> None:
    """Write the checksums of all tables anew, in the transaction that made or changed them.

    Does nothing in a schema that has none yet.
    """
    if not connection.execute(f"PRAGMA main.table_info({TABLE})").fetchall():
        return
    connection.execute(f"DELETE FROM {TABLE}")
    connection.executemany(
        f"INSERT INTO {TABLE} VALUES (?, ?, ?)",
        [(name, *found) for name, found in _totals(connection) if found[0]],
    )


def mismatches(connection: sqlite3.Connection) -> list[Mismatch]:
    """The tables whose rows are not those that exampp wrote; all of them are read."""
    rows = connection.execute(f"SELECT name, rows, total FROM {TABLE}").fetchall()
    expected = {name: (rows, total) for name, rows, total in rows}
    return [
        Mismatch(name, expected.get(name, (0, 0))[0], found[0])
        for name, found in _totals(connection)
        if found != expected.get(name, (0, 0))
    ]


def _totals(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[int, int]]]:
    connection.create_function("row_checksum", -1, lambda *row: crc32(dumps(row, _FORMAT)))
    for (table,) in connection.execute(_TABLES).fetchall():
        # NOT INDEXED: the table itself is read, not an index that repeats its columns
        count, total = connection.execute(
            f"SELECT count(*), coalesce(sum(row_checksum({_values(connection, table)})), 0) "
            f"FROM main.{table} NOT INDEXED"
        ).fetchone()
        yield table, (count, total)
