"""Ids of the outside world to integer keys of the store, many at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, starmap
from typing import Any, TypeVar

from exampp.sanitize import check_id
from exampp.store.error_mapping import Damaged

T = TypeVar("T")

BATCH = 1000
"""Rows or ids per statement batch: enough to amortise a statement, little memory."""


def batches(things: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The things in lists of at most `size`."""
    iterator = iter(things)
    while batch := list(islice(iterator, size)):
        yield batch


def insert(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]) -> int:
    """Insert one row; returns its key.

    Not by RETURNING: an interrupt before its row is fetched would leave a statement in progress, as
    long as somebody keeps the traceback, and nothing could be committed meanwhile.
    """
    key = connection.execute(sql, parameters).lastrowid
    if key is None:
        raise ValueError("the statement inserts nothing")
    return key


def column(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    """Return the first value of every row."""
    return [row[0] for row in connection.execute(sql, parameters).fetchall()]


def pairs(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> dict[Any, Any]:
    """Return the second value of every row by the first."""
    return dict(connection.execute(sql, parameters).fetchall())


def records(
    make: Callable[..., T], connection: sqlite3.Connection, sql: str, parameters: Any = ()
) -> list[T]:
    """Return a record of every row."""
    return list(starmap(make, connection.execute(sql, parameters).fetchall()))


def select_integer(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> int:
    """Return the number that a query gives, 0 where it gives none."""
    return int(connection.execute(sql, parameters).fetchone()[0] or 0)


def exists(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> bool:
    """Return whether a query gives a row."""
    return connection.execute(sql, parameters).fetchone() is not None


def keys(
    connection: sqlite3.Connection, table: str, column: str, ids: Collection[str]
) -> dict[str, int]:
    """The key of each id that the table holds already."""
    return pairs(
        connection,
        f"SELECT {column}, {table} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )


def intern(
    connection: sqlite3.Connection, table: str, column: str, ids: Iterable[str]
) -> dict[str, int]:
    """The key of each id, in a row made for it where there was none."""
    wanted = list(dict.fromkeys(ids))
    for identifier in wanted:
        check_id(identifier)
    known = keys(connection, table, column, wanted)
    if len(known) < len(wanted):
        connection.executemany(
            f"INSERT INTO {table} ({column}) VALUES (?)",
            [(identifier,) for identifier in wanted if identifier not in known],
        )
        known = keys(connection, table, column, wanted)
    return known


def extra_json(value: Any) -> str | None:
    """JSON text for an `extra` column; None for nothing."""
    if not value:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def from_json(text: str | None) -> Any:
    """The value of a column of JSON; None for nothing. Raises Damaged where it is none."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged("", f"a value is no JSON: {error}") from None
