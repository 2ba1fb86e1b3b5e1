"""Batches in the store: which requests are out at a provider, and the replies that came.

A batch is noted before it is sent, so that one whose id was lost can be found again. A request is
in one batch at a time; its row goes when its reply is a grade, or when it is known that none comes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exampp.records.wording import counted
from exampp.store.interning import from_json, insert

PREPARED, OPEN, COLLECTED, ENDED = "prepared", "open", "collected", "ended"
"""Noted and perhaps sent; known at the provider; every reply is here; ended without replies."""


FILE = "file"
"""The provider of batches that are files."""


class BatchRow(NamedTuple):
    """A batch as it is kept.

    `key` is its name in metadata at the provider, `remote` its id there (None: not known, or never
    sent), `said` the last that the provider said of it. `answered` counts the replies that came,
    `worst` is the most that it can cost. `at` and `expires` are ISO 8601 in UTC.
    """

    batch: int
    key: str
    grader: int
    provider: str
    server: str
    remote: str | None
    state: str
    said: str
    requests: int
    answered: int
    worst: float
    at: str
    expires: str


class KeptRequest(NamedTuple):
    """A request that is out; `reply` is what came, None as long as nothing has."""

    batch: int
    reply: Any


def prepare_batch(
    connection: sqlite3.Connection,
    grader: int,
    about: Mapping[str, Any],
    requests: Sequence[str],
) -> int:
    """Note a batch that is about to be sent; `about` has key, provider, server, worst and at.

    Its requests are those that are not out already: another process may have been quicker.
    """
    batch = insert(
        connection,
        "INSERT INTO batch (key, grader, provider, server, state, requests, worst, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            about["key"],
            grader,
            about["provider"],
            about["server"],
            PREPARED,
            len(requests),
            about["worst"],
            about["at"],
        ),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO batch_request (request, batch, number) VALUES (?, ?, ?)",
        [(request, batch, number) for number, request in enumerate(requests)],
    )
    connection.execute(
        "UPDATE batch SET requests = (SELECT count(*) FROM batch_request r "
        "WHERE r.batch = batch.batch) WHERE batch = ?",
        (batch,),
    )
    return batch


def batches_of(
    connection: sqlite3.Connection, grader: int | None, states: Iterable[str] = ()
) -> list[BatchRow]:
    """The batches of a grader, or of all, in these states (all by default), oldest first."""
    rows = connection.execute(
        "SELECT batch, key, grader, provider, server, remote, state, said, requests, answered, "
        "worst, at, expires FROM batch WHERE (:grader IS NULL OR grader = :grader) "
        "AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states))) ORDER BY batch",
        {"grader": grader, "states": json.dumps(list(states))},
    )
    return [BatchRow(*row) for row in rows.fetchall()]


def open_batch(connection: sqlite3.Connection, batch: int, remote: str, expires: str) -> None:
    """Note the id that a batch has at its provider."""
    connection.execute(
        "UPDATE batch SET remote = ?, expires = ?, state = ? WHERE batch = ?",
        (remote, expires, OPEN, batch),
    )


def say_of_batch(connection: sqlite3.Connection, batch: int, said: str) -> None:
    """Note what the provider says of a batch."""
    connection.execute("UPDATE batch SET said = ? WHERE batch = ?", (said, batch))


def requests_of(connection: sqlite3.Connection, batch: int) -> list[str]:
    """The requests of a batch that are still kept, in the order in which they were sent."""
    rows = connection.execute(
        "SELECT request FROM batch_request WHERE batch = ? ORDER BY number", (batch,)
    )
    return [request for (request,) in rows.fetchall()]


def kept_request(connection: sqlite3.Connection, request: str) -> KeptRequest | None:
    """What is known of a request; None where it is not out."""
    row = connection.execute(
        "SELECT batch, reply FROM batch_request WHERE request = ?", (request,)
    ).fetchone()
    return None if row is None else KeptRequest(row[0], from_json(row[1]))


def has_replies(connection: sqlite3.Connection, grader: int) -> bool:
    """Whether a reply has come that is no grade yet."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM batch_request JOIN batch USING (batch) "
        "WHERE grader = ? AND reply IS NOT NULL)",
        (grader,),
    ).fetchone()
    return bool(row[0])


def unanswered(connection: sqlite3.Connection, batch: int) -> int:
    """How many requests of a batch are out and have no reply."""
    row = connection.execute(
        "SELECT count(*) FROM batch_request WHERE batch = ? AND reply IS NULL", (batch,)
    ).fetchone()
    return int(row[0])


def put_replies(connection: sqlite3.Connection, batch: int, replies: Mapping[str, Any]) -> int:
    """Keep replies by request; one that came before stays. Returns how many are new."""
    before = connection.total_changes
    connection.executemany(
        "UPDATE batch_request SET reply = ? WHERE request = ? AND batch = ? AND reply IS NULL",
        [
            (json.dumps(reply, ensure_ascii=False), request, batch)
            for request, reply in replies.items()
        ],
    )
    found = connection.total_changes - before
    connection.execute("UPDATE batch SET answered = answered + ? WHERE batch = ?", (found, batch))
    return found


def drop_requests(connection: sqlite3.Connection, requests: Iterable[str]) -> None:
    """Forget requests: they became grades, or no reply comes to them."""
    connection.executemany(
        "DELETE FROM batch_request WHERE request = ?", [(request,) for request in requests]
    )


def close_batch(connection: sqlite3.Connection, batch: int, state: str, said: str) -> None:
    """End a batch: what has no reply yet is not out any more."""
    connection.execute("DELETE FROM batch_request WHERE batch = ? AND reply IS NULL", (batch,))
    connection.execute("UPDATE batch SET state = ?, said = ? WHERE batch = ?", (state, said, batch))


def said_of_batches(rows: Sequence[BatchRow]) -> str:
    """How batches are doing, in a line."""
    return "; ".join(
        f"{row.remote or 'a batch'} ({counted(row.requests, 'request')}) "
        f"{'is being sent' if row.remote is None else row.said or 'sent'}"
        for row in rows
    )


def said_to_be_out(rows: Sequence[BatchRow]) -> str:
    """Where batches are out, and how they are doing; empty where none is."""
    servers = ", ".join(dict.fromkeys(row.server for row in rows if row.provider != FILE))
    return f"out{servers and f' at {servers}'}: {said_of_batches(rows)}" if rows else ""
