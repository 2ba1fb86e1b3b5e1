"""Checksums of all rows, so that a changed number is found where nothing else would contradict it.

The table `checksum` holds the number of rows of every other table, and the sum of their checksums.
Temporary triggers of each connection that writes add up what its transaction changes; the end of
the transaction writes the sums in the same commit, so that a crash cannot make them wrong. A row
that another program than exampp changed, or that changed on the disk, makes its table differ.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

TABLE = "checksum"
_TABLES = (
    "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    f"AND name <> '{TABLE}' AND EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = '{TABLE}') "
    "ORDER BY name"
)


class Mismatch(NamedTuple):
    """A table that differs from its checksum: its rows when exampp wrote it, and its rows now."""

    table: str
    expected: int
    found: int


class Checksums:
    """What the current transaction of a connection changes in the checksums of its tables.

    `_added` and `_removed` hold the checksums of rows, by table. The functions that the triggers
    call are built in: an interrupt inside a function written in Python would be lost.
    """

    def __init__(self) -> None:
        self._added: dict[str, array[int]] = {}
        self._removed: dict[str, array[int]] = {}
        self._watching = False

    def begin(self, connection: sqlite3.Connection) -> None:
        """Forget what was rolled back; make the triggers if this is the first transaction.

        Called before the transaction: a rollback would take the triggers away.
        """
        self._clear()
        if not self._watching:
            for (table,) in connection.execute(_TABLES).fetchall():
                added, removed = array("L"), array("L")
                connection.create_function(f"added_{table}", 1, added.append)
                connection.create_function(f"removed_{table}", 1, removed.append)
                for statement in _triggers(connection, table):
                    connection.execute(statement)
                self._added[table], self._removed[table] = added, removed
            self._watching = True

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what the transaction has changed, just before it is committed."""
        both = ((table, self._added[table], self._removed[table]) for table in self._added)
        changes = [
            (table, len(added) - len(removed), sum(added) - sum(removed))
            for table, added, removed in both
            if added or removed
        ]
        if changes:
            connection.executemany(
                f"INSERT INTO {TABLE} VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                "SET rows = rows + excluded.rows, total = total + excluded.total",
                changes,
            )
        self._clear()

    def _clear(self) -> None:
        for checksums in (*self._added.values(), *self._removed.values()):
            del checksums[:]


def _triggers(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield the triggers that note the rows added to a table and removed from it."""
    added = f"SELECT added_{table}({_checksum(connection, table, 'NEW.')});"
    removed = f"SELECT removed_{table}({_checksum(connection, table, 'OLD.')});"
    for event, body in (("INSERT", added), ("DELETE", removed), ("UPDATE", removed + added)):
        yield (
            f"CREATE TEMP TRIGGER IF NOT EXISTS checksum_{table}_{event} "
            f"AFTER {event} ON main.{table} BEGIN {body} END"
        )


def _checksum(connection: sqlite3.Connection, table: str, of: str = "") -> str:
    """SQL: the checksum of a row as it is read back, whatever is wrong with a text."""
    columns = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
    # -0.0 is stored as 0; texts as bytes, which may be no valid text
    forms = {"TEXT": "CAST({} AS BLOB)", "ANY": "CAST({} AS BLOB)", "REAL": "{} + 0.0"}
    values = ", ".join(forms.get(kind, "{}").format(of + name) for _, name, kind, *_ in columns)
    count = len(columns)
    connection.create_function(f"row_text{count}", count, " ".join(["{}"] * count).format)
    connection.create_function("crc32", 1, crc32)
    return f"crc32(CAST(row_text{count}({values}) AS BLOB))"


def write_all(connection: sqlite3.Connection) -> None:
    """Recompute the checksums of all tables, in the transaction that made or changed them.

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
    """Read all tables; return those whose rows are not the rows that exampp wrote."""
    begun = not connection.in_transaction
    if begun:
        # rows and checksums of one moment: others may be writing
        connection.execute("BEGIN")
    try:
        rows = connection.execute(f"SELECT name, rows, total FROM {TABLE}").fetchall()
        expected = {name: (rows, total) for name, rows, total in rows}
        return [
            Mismatch(name, expected.get(name, (0, 0))[0], found[0])
            for name, found in _totals(connection)
            if found != expected.get(name, (0, 0))
        ]
    finally:
        if begun:
            connection.execute("ROLLBACK")


def _totals(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[int, int]]]:
    for (table,) in connection.execute(_TABLES).fetchall():
        # NOT INDEXED: the table itself is read, not an index that repeats its columns
        count, total = connection.execute(
            f"SELECT count(*), coalesce(sum({_checksum(connection, table)}), 0) "
            f"FROM main.{table} NOT INDEXED"
        ).fetchone()
        yield table, (count, total)
