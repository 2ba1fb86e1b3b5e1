"""Upgrade of collections of the version before, when they are opened.

Version 5 adds the column `answerable` to queries. A file that cannot be written stays as it is;
its queries are then read from a temporary table that has the column.
"""

from __future__ import annotations

import sqlite3

from exampp.store.sql import TABLE, mismatches, sums_of_tables, tables_of

BEFORE, BEFORE_DIGEST = 4, "75417bf911168590acf665b325a2498f"
"""The version that is upgraded, and the digest of its schema."""
_COPY = (
    "CREATE TEMP TABLE query (query INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, "
    "text TEXT NOT NULL, answerable INTEGER) STRICT",
    "INSERT INTO temp.query SELECT query, query_id, text, NULL FROM main.query",
)


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Upgrade a collection of version `BEFORE` in one transaction.

    The checksum of queries is computed again only if it was right, so that changes by other
    programs are still found.
    """
    with connection:
        try:
            is_sound = _begin(connection)
        except sqlite3.OperationalError as error:
            if "readonly" not in str(error):
                raise
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for statement in _COPY:
                connection.execute(statement)
            return
        for name, sums in sums_of_tables(connection, _others(connection)) if is_sound else ():
            connection.execute(
                f"UPDATE {TABLE} SET rows = ?, total = ? WHERE name = ?", (*sums, name)
            )
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")


def _begin(connection: sqlite3.Connection) -> bool:
    """Add the column in a new transaction; return whether the checksum of queries was right.

    Does not add it again if another process upgraded the collection meanwhile.
    """
    # errors are needed as SQLite raises them
    plain = sqlite3.Cursor(connection)
    plain.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != BEFORE:
        return False
    is_sound = not mismatches(connection, _others(connection))
    plain.execute("ALTER TABLE query ADD COLUMN answerable INTEGER")
    return is_sound


def _others(connection: sqlite3.Connection) -> list[str]:
    return [one for one in tables_of(connection) if one != "query"]
