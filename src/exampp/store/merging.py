"""Another collection's content taken into this one, set by set.

The other collection is attached, and each of its keys is mapped to one of ours (`to_query`, ...).
What is appended only (edits, decisions, replies of generation) is put together; of what has one
value, ours stays and one that we lack is taken. Whatever differs is noted as a conflict. Nothing
is taken twice: merging again changes nothing.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from exampp.records.changes import MergeConflict, MergeCount

EMPTY, NULL = "''", "NULL"
"""SQL: what a column holds of which nothing is known."""
MOST_OTHERS = 10
"""Databases that SQLite attaches at most."""


@dataclass
class MergeStep:
    """The merging of one attached database, `schema`, in the caller's transaction.

    In SQL `{o}` stands for the schema. `counts` are (added, changed) by kind of thing.
    """

    connection: sqlite3.Connection
    schema: str
    counts: dict[str, list[int]] = field(default_factory=dict)

    def run(self, sql: str) -> int:
        """Execute a statement; returns how many rows it wrote."""
        return self.connection.execute(sql.format(o=self.schema)).rowcount

    def one(self, sql: str) -> int:
        """The number that a query gives."""
        return int(self.connection.execute(sql.format(o=self.schema)).fetchone()[0] or 0)

    def put(self, things: str, table: str, sql: str) -> None:
        """Insert rows into a table of ours, or complete some, and count both."""
        before = self.one(f"SELECT count(*) FROM main.{table}")
        written = self.run(sql)
        added = self.one(f"SELECT count(*) FROM main.{table}") - before
        self.count(things, added, written - added)

    def count(self, things: str, added: int, changed: int = 0) -> None:
        """Add to the counts of a kind of thing."""
        known = self.counts.setdefault(things, [0, 0])
        known[0] += added
        known[1] += changed

    def map(self, name: str, sql: str) -> None:
        """Make the table of (their key, our key) that `sql` selects."""
        self.scratch(f"to_{name}", "theirs INTEGER PRIMARY KEY, mine INTEGER NOT NULL", sql)

    def scratch(self, name: str, columns: str, sql: str) -> None:
        """Make a scratch table of what `sql` selects; `end` drops it."""
        self.run(f"CREATE TEMP TABLE {name} ({columns})")
        self.run(f"INSERT INTO {name} {sql}")

    def conflict(self, thing: str, sql: str, kept: str = "'here'") -> None:
        """Note what `sql` selects: (id, field, ours, theirs); `kept` is SQL for who stands."""
        self.run(
            f"INSERT INTO conflict SELECT '{thing}', id, field, here, there, {kept} FROM ({sql})"
        )

    def begin(self) -> None:
        """Make the table of conflicts."""
        self.run(
            "CREATE TEMP TABLE conflict (thing TEXT, id TEXT, field TEXT, here, there, kept TEXT)"
        )

    def end(self, other: str) -> tuple[list[MergeCount], list[MergeConflict]]:
        """What was done; all scratch tables are dropped."""
        rows = self.connection.execute("SELECT * FROM conflict ORDER BY rowid").fetchall()
        found = [
            MergeConflict(thing, str(name), what, _text(here), _text(there), kept, other)
            for thing, name, what, here, there, kept in rows
        ]
        tables = "SELECT name FROM temp.sqlite_master WHERE type = 'table'"
        for (name,) in self.connection.execute(tables).fetchall():
            self.run(f"DROP TABLE temp.{name}")
        return [MergeCount(things, *both) for things, both in self.counts.items()], found


def _text(value: object) -> str:
    return "" if value is None else str(value)


def fill(column: str, empty: str) -> str:
    """The end of an INSERT: a row that we have is given the column only where ours is empty."""
    return (
        f"ON CONFLICT DO UPDATE SET {column} = excluded.{column} "
        f"WHERE {column} IS {empty} AND excluded.{column} IS NOT {empty}"
    )


def differ(column: str, empty: str, ours: str, theirs: str = "t") -> str:
    """SQL: both have a value in the column, and not the same."""
    return (
        f"{ours}.{column} IS NOT {theirs}.{column} AND {ours}.{column} IS NOT {empty} "
        f"AND {theirs}.{column} IS NOT {empty}"
    )
