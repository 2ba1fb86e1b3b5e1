"""The schema of a collection as exampp makes it, and whether a file has that one.

A trigger, a view or a table of somebody else is code that SQLite runs whenever the collection is
used. A file with other parts than those that exampp makes is refused before anything is read.
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from exampp.store.guarded import Damaged

DIGEST = "0eaba846fa81cb6e9189460cf349b358"
"""The digest of the newest schema: to compare it is quicker than to make the schema."""
_OBJECTS = (
    "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM main.sqlite_master "
    # the indices of primary keys, which the tables imply, and what ANALYZE counts
    "WHERE NOT (type IS 'index' AND sql IS NULL) "
    "AND NOT (type IS 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"
)

Object = tuple[str, str, str]
"""Type, name and SQL of a part of a schema."""


def objects(connection: sqlite3.Connection) -> frozenset[Object]:
    """Return the parts of the schema, their SQL without quotation marks and line breaks."""
    rows = connection.execute(_OBJECTS).fetchall()
    return frozenset(
        (_text(kind), _text(name), " ".join(_text(sql).replace('"', "").split()))
        for kind, name, sql in rows
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def digest(found: frozenset[Object]) -> str:
    """Return the digest of the parts of a schema."""
    return hashlib.sha256(repr(sorted(found)).encode(errors="replace")).hexdigest()[:32]


def check_schema(connection: sqlite3.Connection, steps: tuple[str, ...], file: str) -> None:
    """Compare the schema with what the steps make.

    Raises:
        Damaged: It has parts that they do not make, or lacks some.
    """
    found = objects(connection)
    if digest(found) == DIGEST:
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for statement in newest(steps):
            made.execute(statement)
        expected = objects(made)
    if found == expected:
        return
    known = {name: kind for kind, name, _ in expected}
    for kind, name, sql in sorted(found - expected):
        if known.get(name) != kind:
            foreign = "it has parts that exampp does not make"
            raise Damaged(file, f"the {kind} {name}: {sql[:100]}", foreign)
        raise Damaged(file, f"the {kind} {name} is not as exampp makes it")
    kind, name, _ = min(expected - found)
    raise Damaged(file, f"the {kind} {name} is missing")


@functools.cache
def newest(steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return statements that make at once what all steps make one after another."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for step in steps:
            for statement in statements(step):
                made.execute(statement)
        _begin, *found, _commit = made.iterdump()
    return tuple(found)


def statements(step: str) -> Iterator[str]:
    """Yield the statements of a step; those inside a trigger belong to it."""
    statement = ""
    for part in step.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
