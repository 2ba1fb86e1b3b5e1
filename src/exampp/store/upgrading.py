"""Upgrade of collections of earlier versions, when they are opened.

Version 5 added the column `answerable` to queries, version 6 the tables of clients. A file that
cannot be written stays as it is; temporary tables then have what is missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from exampp.store.sql import TABLE, mismatches, sums_of_tables, tables_of

EARLIER = {4: "75417bf911168590acf665b325a2498f", 5: "af801df089b61fdccaf81e75eccb915e"}
"""The versions that are upgraded, and the digests of their schemas."""
_ANSWERABLE = 5
"""The version that added the column `answerable`."""
_TABLE = "CREATE TABLE "
_COPY = (
    "CREATE TEMP TABLE query (query INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, "
    "text TEXT NOT NULL, answerable INTEGER) STRICT",
    "INSERT INTO temp.query SELECT query, query_id, text, NULL FROM main.query",
)


def upgrade(connection: sqlite3.Connection, version: int, added: Sequence[str]) -> None:
    """Upgrade an earlier collection in one transaction; `added` are the statements of new tables.

    The checksum of queries is computed again only if it was right, so that changes by other
    programs are still found.
    """
    with connection:
        try:
            is_sound = _begin(connection, added)
        except sqlite3.OperationalError as error:
            if "readonly" not in str(error):
                raise
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            is_old = _version(connection) < _ANSWERABLE
            tables = [one[one.index(_TABLE) :] for one in added if _TABLE in one]
            for statement in (
                *(_COPY if is_old else ()),
                *(one.replace(_TABLE, "CREATE TEMP TABLE ") for one in tables),
            ):
                connection.execute(statement)
            return
        for name, sums in sums_of_tables(connection, _others(connection)) if is_sound else ():
            connection.execute(
                f"UPDATE {TABLE} SET rows = ?, total = ? WHERE name = ?", (*sums, name)
            )
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")


def _begin(connection: sqlite3.Connection, added: Sequence[str]) -> bool:
    """Add what is missing in a new transaction; return whether to renew the checksum of queries.

    Adds nothing if another process upgraded the collection meanwhile.
    """
    # errors are needed as SQLite raises them
    plain = sqlite3.Cursor(connection)
    plain.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    if version not in EARLIER:
        return False
    is_sound = version < _ANSWERABLE and not mismatches(connection, _others(connection))
    if version < _ANSWERABLE:
        plain.execute("ALTER TABLE query ADD COLUMN answerable INTEGER")
    for statement in added:
        plain.execute(statement)
    return is_sound


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _others(connection: sqlite3.Connection) -> list[str]:
    return [one for one in tables_of(connection) if one != "query"]
