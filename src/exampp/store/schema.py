"""The schema of a collection, and the check that a file has that schema.

A trigger, a view or a table of somebody else is code that SQLite runs whenever the collection is
used. A file with other parts than those of `schema.sql` is refused before anything is read.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from exampp.store.error_mapping import Damaged

APPLICATION_ID = 0x4558414D  # "EXAM"
SCHEMA_VERSION = 1
"""The number of the schema (`PRAGMA user_version`)."""
DIGEST = "20199e98db866c05c6cef66579b17cf9"
"""The digest of the schema: comparing it is quicker than making the schema."""
_OBJECTS = (
    "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM main.sqlite_master "
    # the indices of primary keys, which the tables imply, and what ANALYZE counts
    "WHERE NOT (type IS 'index' AND sql IS NULL) "
    "AND NOT (type IS 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"
)

Object = tuple[str, str, str]
"""Type, name and SQL of a part of a schema."""


def statements() -> Iterator[str]:
    """Yield the statements that make the schema; those inside a trigger belong to it."""
    statement = ""
    for part in Path(__file__).with_name("schema.sql").read_text(encoding="utf-8").split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def objects(connection: sqlite3.Connection) -> frozenset[Object]:
    """Return the parts of the schema, their SQL without quotation marks and line breaks."""
    rows = connection.execute(_OBJECTS).fetchall()
    return frozenset(
        (_text(kind), _text(name), " ".join(_text(sql).replace('"', "").split()))
        for kind, name, sql in rows
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def schema_digest(found: frozenset[Object]) -> str:
    """Return the digest of the parts of a schema."""
    return hashlib.sha256(repr(sorted(found)).encode(errors="replace")).hexdigest()[:32]


def check_schema(connection: sqlite3.Connection, file: str) -> None:
    """Compare the schema of a file with that of exampp.

    Raises:
        Damaged: It has other parts, or some are missing.
    """
    found = objects(connection)
    if schema_digest(found) == DIGEST:
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for statement in statements():
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
