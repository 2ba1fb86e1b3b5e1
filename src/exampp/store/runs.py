"""Grading runs in the store: who grades which query just now, and what grading took."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from exampp.store.interning import insert, to_json

LEASE_SECONDS = 600.0
"""How long a process may be silent before others take over what it was grading."""


class Spent(NamedTuple):
    """What grading took: wall-clock seconds, asks, cells settled by them, tokens, requests, cost.

    `requests` counts those sent to a server, failed ones and retries among them. `cost` is in the
    currency of the prices; None where none were given.
    """

    seconds: float = 0.0
    asked: int = 0
    cells: int = 0
    tokens_read: int = 0
    tokens_cached: int = 0
    tokens_written: int = 0
    requests: int = 0
    cost: float | None = None


def claim(connection: sqlite3.Connection, grader: int, query: int, owner: str) -> bool:
    """Take a query for a process, unless another one holds it; inside a transaction."""
    now = time.time()
    claimed = connection.execute(
        "INSERT INTO lease VALUES (:grader, :query, :owner, :until) ON CONFLICT DO UPDATE SET "
        "owner = excluded.owner, until = excluded.until "
        "WHERE owner = excluded.owner OR until < :now",
        {
            "grader": grader,
            "query": query,
            "owner": owner,
            "until": now + LEASE_SECONDS,
            "now": now,
        },
    )
    return claimed.rowcount > 0


def renew(connection: sqlite3.Connection, grader: int, owner: str) -> None:
    """Say that a process is alive, so that it keeps what it holds."""
    connection.execute(
        "UPDATE lease SET until = ? WHERE grader = ? AND owner = ?",
        (time.time() + LEASE_SECONDS, grader, owner),
    )


def release(
    connection: sqlite3.Connection, grader: int, owner: str, queries: Iterable[int]
) -> None:
    """Give queries back."""
    connection.executemany(
        "DELETE FROM lease WHERE grader = ? AND owner = ? AND query = ?",
        [(grader, owner, query) for query in queries],
    )


def release_all(connection: sqlite3.Connection, grader: int, owner: str) -> None:
    """Give back all that a process holds."""
    connection.execute("DELETE FROM lease WHERE grader = ? AND owner = ?", (grader, owner))


def release_others(connection: sqlite3.Connection, grader: int, owner: str) -> None:
    """Take from all other processes what they hold."""
    connection.execute("DELETE FROM lease WHERE grader = ? AND owner <> ?", (grader, owner))


class Lease(NamedTuple):
    """A query that a process grades just now, `until` some second since 1970 unless it goes on."""

    owner: str
    query: int
    until: float


def leases(connection: sqlite3.Connection, grader: int) -> list[Lease]:
    """The queries that processes hold; a lease that ran out holds nothing."""
    rows = connection.execute(
        "SELECT owner, query, until FROM lease WHERE grader = ? AND until >= ? ORDER BY query",
        (grader, time.time()),
    )
    return [Lease(*row) for row in rows.fetchall()]


def start_run(connection: sqlite3.Connection, grader: int, at: str, detail: Any) -> int:
    """Open the record of a run; `at` is ISO 8601 in UTC."""
    return insert(
        connection,
        "INSERT INTO run (grader, started, detail) VALUES (?, ?, ?)",
        (grader, at, to_json(detail)),
    )


def update_run(connection: sqlite3.Connection, run: int, spent: Spent) -> None:
    """Record what a run has taken so far."""
    connection.execute(
        "UPDATE run SET seconds = ?, asked = ?, cells = ?, tokens_read = ?, tokens_cached = ?, "
        "tokens_written = ?, requests = ?, cost = ? WHERE run = ?",
        (*spent, run),
    )


def spent_by(connection: sqlite3.Connection, grader: int) -> Spent:
    """What all runs of a grader took together."""
    row = connection.execute(
        "SELECT total(seconds), sum(asked), sum(cells), sum(tokens_read), sum(tokens_cached), "
        "sum(tokens_written), sum(requests), sum(cost) FROM run WHERE grader = ?",
        (grader,),
    ).fetchone()
    seconds, *counts, cost = row
    return Spent(seconds, *(int(value or 0) for value in counts))._replace(cost=cost)


def unpriced_runs(connection: sqlite3.Connection, grader: int) -> int:
    """How many runs of a grader sent requests whose cost is not known: no prices were given."""
    found = connection.execute(
        "SELECT count(*) FROM run WHERE grader = ? AND cost IS NULL AND tokens_read > 0", (grader,)
    )
    return int(found.fetchone()[0])
