"""Saves what can be read of a damaged collection into a new one.

Every table is read from both ends up to the first row that lies on a damaged page; what lies
between the two is lost, and so is what belongs to a lost row (the grades of a lost text, say).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.store.checksums import TABLE as CHECKSUMS
from exampp.store.connection import connect, transaction
from exampp.store.schema import SCHEMA_VERSION
from exampp.store.tallies import TALLIES


class Rescued(NamedTuple):
    """Of one table: rows that are in the new collection, and rows without what they belong to."""

    table: str
    saved: int
    orphans: int


def rescue(damaged: str | Path, to: str | Path) -> list[Rescued]:
    """Make a new collection of what can be read of a damaged one; the damaged file stays as it is.

    Raises InputError where the new file holds something, or the damaged one no tables of exampp.
    """
    damaged, to = Path(damaged), Path(to)
    if to.exists() and to.stat().st_size:
        raise InputError("exists already", file=to, mend="Choose another name")
    if not damaged.is_file():
        raise InputError("no such file", file=damaged)
    with closing(sqlite3.connect(f"{damaged.resolve().as_uri()}?mode=ro", uri=True)) as source:
        source.execute("PRAGMA trusted_schema = OFF")
        _check(source, damaged)
        opened = connect(to, create=True)
        with closing(opened):
            opened.execute("PRAGMA foreign_keys = OFF")
            with opened, transaction(opened):
                names = _tables(opened)
                for name in names:
                    _copy(source, opened, name)
                orphans = _drop_orphans(opened)
                return [Rescued(name, _count(opened, name), orphans.get(name, 0)) for name in names]


def _check(source: sqlite3.Connection, path: Path) -> None:
    version = -1
    with suppress(sqlite3.DatabaseError):
        version = source.execute("PRAGMA user_version").fetchone()[0]
        source.execute("SELECT count(*) FROM grade WHERE 0")
    if version != SCHEMA_VERSION:
        what = "nothing can be read of it" if version < 0 else "was made by another exampp"
        raise InputError(what, file=path, mend="Take a copy that is whole")


def _tables(opened: sqlite3.Connection) -> list[str]:
    rows = opened.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    # counts and checksums are those of what can be read
    return [row[0] for row in rows if row[0] not in (*TALLIES, CHECKSUMS)]


def _copy(source: sqlite3.Connection, opened: sqlite3.Connection, table: str) -> None:
    columns = opened.execute(f"PRAGMA table_info({table})").fetchall()
    names = ", ".join(column[1] for column in columns)
    keys = sorted((column[5], column[1]) for column in columns if column[5])
    key = ", ".join(f"{name} {{order}}" for _, name in keys) or "rowid {order}"
    into = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    # rows that the schema itself has put there
    opened.execute(f"DELETE FROM {table}")
    # a view of that name, in a file of somebody else, could read without end
    real = "SELECT 1 FROM sqlite_master WHERE name = ? AND sql LIKE 'CREATE TABLE%'"
    for order in ("", "DESC"):
        with suppress(sqlite3.DatabaseError, InputError):
            if source.execute(real, (table,)).fetchone() is None:
                return
            for row in source.execute(
                f"SELECT {names} FROM {table} NOT INDEXED ORDER BY {key.format(order=order)}"
            ):
                with suppress(sqlite3.IntegrityError):
                    opened.execute(into, row)


def _drop_orphans(opened: sqlite3.Connection) -> dict[str, int]:
    """Remove rows whose other rows were lost, until all that is left belongs together."""
    dropped: dict[str, int] = {}
    while faults := {row[0] for row in opened.execute("PRAGMA foreign_key_check").fetchall()}:
        for table in faults:
            count = 0
            for one in opened.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                count += _drop(opened, table, one[2], one[3])
            dropped[table] = dropped.get(table, 0) + count
            if not count:
                return dropped
    return dropped


def _drop(opened: sqlite3.Connection, table: str, parent: str, column: str) -> int:
    """Remove the rows of a table whose row of another is lost, or the mention of it."""
    columns = {row[1]: row for row in opened.execute(f"PRAGMA table_info({table})")}
    key = next(row[1] for row in opened.execute(f"PRAGMA table_info({parent})") if row[5])
    lost = (
        f"{column} IS NOT NULL AND NOT EXISTS "
        f"(SELECT 1 FROM {parent} AS other WHERE other.{key} = {table}.{column})"
    )
    if columns[column][3]:
        return opened.execute(f"DELETE FROM {table} WHERE {lost}").rowcount
    return opened.execute(f"UPDATE {table} SET {column} = NULL WHERE {lost}").rowcount


def _count(opened: sqlite3.Connection, table: str) -> int:
    return int(opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
