"""Clients of the exam as a service, and what they asked.

A request is recorded, in a committed transaction, before it is answered: a process that is killed
in the middle has used up the request. All processes that serve a collection share the limits.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.clients import Limits, SealedBest, SealedUse, ServiceClient
from exampp.store.connection import transaction
from exampp.store.sql import exists, insert, records, select_integer

MINUTE = 60.0
_CLIENTS = """
SELECT name, rate, most_requests, most_cells, requests, cells,
(SELECT count(*) FROM client_request r WHERE r.client = c.client AND split IS NOT NULL), active, at
FROM client c
"""
_USE = """
SELECT r.split, b.name, s.at, count(DISTINCT r.client), count(*), count(r.report), max(r.at)
FROM client_request r JOIN split s USING (split) JOIN bank b USING (bank)
WHERE b.name = coalesce(?, b.name)
GROUP BY r.split ORDER BY max(r.request) DESC
"""
_BESTS = """
SELECT ladder, submission, depending, name, report, json_array_length(scores), at FROM (
SELECT r.*, c.name, row_number() OVER so_far AS submission, count(report) OVER so_far AS depending
FROM client_request r JOIN client c USING (client) WHERE split = ?
WINDOW so_far AS (ORDER BY request))
WHERE scores IS NOT NULL ORDER BY submission
"""


class Identified(NamedTuple):
    """The client of a token."""

    key: int
    name: str


class Ladder(NamedTuple):
    """The state of a ladder: its last report and the scores by query of that submission."""

    report: float
    scores: tuple[float, ...]


class OverLimit(InputError):
    """A client has used up a limit; after `wait` seconds it may try again (None: never)."""

    def __init__(self, what: str, hint: str, wait: int | None = None) -> None:
        super().__init__(what, hint=hint)
        self.wait = wait


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def clients(connection: sqlite3.Connection) -> list[ServiceClient]:
    """Return all clients by name, also those without a valid token."""
    return [
        ServiceClient(name, Limits(rate, *most), *used, bool(active), at)
        for name, rate, most_requests, most_cells, requests, cells, sealed, active, at in (
            connection.execute(f"{_CLIENTS} ORDER BY name").fetchall()
        )
        for most, used in [((most_requests, most_cells), (requests, cells, sealed))]
    ]


def put_client(connection: sqlite3.Connection, name: str, digest: str, limits: Limits) -> None:
    """Add a client in the caller's transaction; a known one gets a new token and new limits."""
    connection.execute(
        "INSERT INTO client (name, digest, rate, most_requests, most_cells, at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, "
        "rate = excluded.rate, most_requests = excluded.most_requests, "
        "most_cells = excluded.most_cells, active = 1",
        (name, digest, limits.rate, limits.requests, limits.cells, _now()),
    )


def check_writable(connection: sqlite3.Connection) -> None:
    """Raise InputError if requests cannot be recorded."""
    # BEGIN IMMEDIATE alone succeeds on a read-only file
    with connection, transaction(connection):
        connection.execute("UPDATE client SET rate = rate WHERE 0")


def local_client(connection: sqlite3.Connection, name: str, limits: Limits) -> int:
    """Return the key of a client without a token, added in the caller's transaction if unknown."""
    connection.execute(
        "INSERT OR IGNORE INTO client (name, digest, rate, at) VALUES (?, '', ?, ?)",
        (name, limits.rate, _now()),
    )
    return select_integer(connection, "SELECT client FROM client WHERE name = ?", (name,))


def _now() -> str:
    return _time(datetime.now(UTC))


def end_token(connection: sqlite3.Connection, name: str) -> None:
    """End the token of a client in the caller's transaction.

    Raises:
        InputError: The client is unknown or has no token.
    """
    if not exists(connection, "SELECT 1 FROM client WHERE name = ? AND active", (name,)):
        raise InputError(
            f"{name!r} has no token", hint="exampp clients COLLECTION lists the clients"
        )
    connection.execute("UPDATE client SET active = 0, digest = '' WHERE name = ?", (name,))


def identify(connection: sqlite3.Connection, digest: str) -> Identified | None:
    """Return the client with the digest of a token; None if it is unknown or was revoked."""
    if not digest:
        return None
    found = records(
        Identified,
        connection,
        "SELECT client, name FROM client WHERE active AND digest = ?",
        (digest,),
    )
    return found[0] if found else None


def record_request(
    connection: sqlite3.Connection,
    client: int,
    action: str,
    cells: int,
    sealed: tuple[int, str] | None = None,
    *,
    now: datetime | None = None,
) -> int:
    """Record a request within the limits, in the caller's transaction; return its key.

    `sealed` is the split and the ladder of a submission.

    Raises:
        OverLimit: A limit of the client is reached; nothing is recorded.
    """
    at = now or datetime.now(UTC)
    row = connection.execute(
        "SELECT active, rate, most_requests, most_cells, requests, cells FROM client "
        "WHERE client = ?",
        (client,),
    ).fetchone()
    active, rate, most_requests, most_cells, requests, used = row
    if not active:
        raise OverLimit("the token was revoked", "Ask the owner of the exam for a new one")
    owner = "Ask the owner of the exam for more"
    if most_requests is not None and requests >= most_requests:
        raise OverLimit(f"all {most_requests} requests of this token are used", owner)
    if most_cells is not None and used + cells > most_cells:
        left = f"{most_cells - used} of {most_cells} are left"
        raise OverLimit(f"the request takes {cells} cells, and {left}", owner)
    recent = connection.execute(
        "SELECT count(*), min(at) FROM (SELECT at FROM client_request WHERE client = ? AND at > ? "
        "ORDER BY at DESC LIMIT ?)",
        (client, _time(at - timedelta(seconds=MINUTE)), rate),
    ).fetchone()
    if recent[0] >= rate:
        first = datetime.fromisoformat(recent[1])
        wait = max(1, math.ceil(MINUTE - (at - first).total_seconds()))
        raise OverLimit(
            f"more than {rate} requests in a minute", f"Try again in {wait} s", min(wait, 60)
        )
    connection.execute(
        "UPDATE client SET requests = requests + 1, cells = cells + ? WHERE client = ?",
        (cells, client),
    )
    return insert(
        connection,
        "INSERT INTO client_request (client, action, cells, at, split, ladder) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (client, action, cells, _time(at), *(sealed or (None, None))),
    )


def find_ladder(connection: sqlite3.Connection, split: int, ladder: str) -> Ladder | None:
    """Return the state of a ladder; None before its first report."""
    row = connection.execute(
        "SELECT report, scores FROM client_request WHERE split = ? AND ladder = ? "
        "AND scores IS NOT NULL ORDER BY request DESC LIMIT 1",
        (split, ladder),
    ).fetchone()
    return Ladder(row[0], tuple(json.loads(row[1]))) if row else None


def count_sealed(connection: sqlite3.Connection, split: int) -> tuple[int, int]:
    """Return the submissions to a sealed part, and the answers that depended on them."""
    row = connection.execute(
        "SELECT count(*), count(report) FROM client_request WHERE split = ?", (split,)
    ).fetchone()
    return row[0], row[1]


def put_report(
    connection: sqlite3.Connection,
    request: int,
    report: float,
    scores: Sequence[float] | None = None,
) -> None:
    """Record that the answer to a submission depended on it, in the caller's transaction.

    `scores` are those by query of a new best, None if it failed.
    """
    connection.execute(
        "UPDATE client_request SET report = ?, scores = ? WHERE request = ?",
        (report, None if scores is None else json.dumps(list(scores)), request),
    )


def sealed_use(connection: sqlite3.Connection, bank: str | None = None) -> list[SealedUse]:
    """Return the sealed parts (of one bank) that clients submitted to, the last used first."""
    return [
        SealedUse._make((*use, tuple(records(SealedBest, connection, _BESTS, (split,)))))
        for split, *use in connection.execute(_USE, (bank,)).fetchall()
    ]


def bank_version(connection: sqlite3.Connection, bank: str) -> tuple[object, ...]:
    """Return a value that changes with the items, the queries and the split of a bank."""
    row: tuple[object, ...] = connection.execute(
        "SELECT (SELECT max(edit) FROM item_edit), (SELECT max(split) FROM split), "
        "(SELECT total FROM checksum WHERE name = 'query'), "
        "(SELECT total FROM checksum WHERE name = 'item')"
    ).fetchone()
    return bank, *row
