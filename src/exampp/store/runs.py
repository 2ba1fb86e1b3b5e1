"""Grading runs: leases of queries, time and cost of runs, open batches."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from exampp.records.cascade import CascadeRule
from exampp.records.graders import GradingTarget
from exampp.records.wording import counted
from exampp.store.sql import (
    column,
    exists,
    extra_json,
    from_json,
    insert,
    records,
    select_integer,
)

LEASE_SECONDS = 600.0
"""Seconds after which a lease expires unless it is renewed."""


class RunUsage(NamedTuple):
    """Usage of a run: wall-clock seconds, requests, graded cells, tokens, cost.

    `requests` includes failed ones and retries. `cost` is in the currency of the prices; None
    without prices.
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
    """Acquire the lease of a query, unless another process has it; in a transaction."""
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
    """Renew the leases of a process."""
    connection.execute(
        "UPDATE lease SET until = ? WHERE grader = ? AND owner = ?",
        (time.time() + LEASE_SECONDS, grader, owner),
    )


def release(
    connection: sqlite3.Connection, grader: int, owner: str, queries: Iterable[int]
) -> None:
    """Release leases of queries."""
    connection.executemany(
        "DELETE FROM lease WHERE grader = ? AND owner = ? AND query = ?",
        [(grader, owner, query) for query in queries],
    )


def release_all(connection: sqlite3.Connection, grader: int, owner: str) -> None:
    """Release all leases of a process."""
    connection.execute("DELETE FROM lease WHERE grader = ? AND owner = ?", (grader, owner))


class Lease(NamedTuple):
    """A process's lease of a query; `until` is in seconds since the epoch."""

    owner: str
    query: int
    until: float


def leases(connection: sqlite3.Connection, grader: int) -> list[Lease]:
    """Return the valid leases."""
    return records(
        Lease,
        connection,
        "SELECT owner, query, until FROM lease WHERE grader = ? AND until >= ? ORDER BY query",
        (grader, time.time()),
    )


def start_run(connection: sqlite3.Connection, grader: int, at: str, detail: Any) -> int:
    """Open the record of a run; `at` is ISO 8601 in UTC."""
    return insert(
        connection,
        "INSERT INTO run (grader, started, detail) VALUES (?, ?, ?)",
        (grader, at, extra_json(detail)),
    )


class ActiveRun(NamedTuple):
    """A run with leases, as stored at its last commit; `total` cells were pending at its start."""

    grader: int
    owner: str
    total: int
    usage: RunUsage


def active_detail(owner: str, total: int) -> dict[str, Any]:
    """Return the details of a run that `active_runs` reads."""
    return {"owner": owner, "total": total}


def active_runs(connection: sqlite3.Connection) -> list[ActiveRun]:
    """Return the runs of other processes with valid leases."""
    here = f"{os.uname().nodename}:{os.getpid()}:"
    rows = connection.execute(
        "SELECT grader, json_extract(detail, '$.owner') AS owner, "
        "coalesce(json_extract(detail, '$.total'), 0), seconds, asked, cells, tokens_read, "
        "tokens_cached, tokens_written, requests, cost FROM run "
        "WHERE owner IN (SELECT owner FROM lease WHERE until >= ?) ORDER BY run",
        (time.time(),),
    )
    found = [
        ActiveRun(grader, owner, total, RunUsage(*usage)) for grader, owner, total, *usage in rows
    ]
    return [one for one in found if not (one.owner.startswith(here) or is_gone(one.owner))]


def target_of(connection: sqlite3.Connection, grader: int, bank: str) -> GradingTarget | None:
    """Return the target of the newest run of a grader on a bank; None if it needed all cells."""
    target = _detail_of_newest(connection, grader, bank, "$.for")
    return None if target is None else GradingTarget.read(target)


def targets_of(connection: sqlite3.Connection) -> dict[int, GradingTarget]:
    """Return the target of every grader that has one on a bank."""
    rows = connection.execute(
        "SELECT DISTINCT grader, json_extract(detail, '$.bank') FROM run WHERE grader IN "
        "(SELECT grader FROM run WHERE json_extract(detail, '$.for') IS NOT NULL)"
    )
    banks: dict[int, set[str]] = {}
    for grader, bank in rows.fetchall():
        banks.setdefault(grader, set()).update([bank] if bank is not None else ())
    return {
        grader: target
        for grader, named in banks.items()
        for bank in sorted(named or {""})
        if (target := target_of(connection, grader, bank)) is not None
    }


def put_target(connection: sqlite3.Connection, grader: int, target: GradingTarget, at: str) -> None:
    """Store the target of imported grades, unless the grader needed all cells here."""
    row = connection.execute(
        "SELECT json_extract(detail, '$.for') FROM run WHERE grader = ? "
        "ORDER BY started DESC, run DESC LIMIT 1",
        (grader,),
    ).fetchone()
    if row is None or row[0] not in (None, extra_json(target.stored)):
        start_run(connection, grader, at, {"for": target.stored})


def cascade_of(connection: sqlite3.Connection, grader: int, bank: str) -> CascadeRule | None:
    """Return the cascade for which the newest run of a grader on a bank graded, as the second."""
    rule = _detail_of_newest(connection, grader, bank, "$.after")
    return None if rule is None else CascadeRule(**rule)


def _detail_of_newest(connection: sqlite3.Connection, grader: int, bank: str, path: str) -> Any:
    """Return a detail of the newest run of a grader on a bank; None if it has none."""
    row = connection.execute(
        "SELECT json_extract(detail, :path) FROM run WHERE grader = :grader "
        "AND coalesce(json_extract(detail, '$.bank'), :bank) = :bank "
        "ORDER BY started DESC, run DESC LIMIT 1",
        {"grader": grader, "bank": bank, "path": path},
    ).fetchone()
    return None if row is None else from_json(row[0])


def details_of(connection: sqlite3.Connection, grader: int, name: str) -> set[Any]:
    """Return the values of a detail of all runs of a grader."""
    return set(
        column(
            connection,
            "SELECT json_extract(detail, '$.' || ?) AS one FROM run "
            "WHERE grader = ? AND one IS NOT NULL",
            (name, grader),
        )
    )


def models_of(
    connection: sqlite3.Connection, grader: int, bank: str, target: GradingTarget
) -> list[list[float]] | None:
    """Return the models by which a target skips cells; None if none were learned.

    They are those of the earliest run with this target, so that a merge does not change them.
    """
    rows = connection.execute(
        "SELECT json_extract(detail, '$.for'), json_extract(detail, '$.models') FROM run "
        "WHERE grader = ? AND json_extract(detail, '$.bank') = ? "
        "AND json_extract(detail, '$.models') IS NOT NULL ORDER BY started, run",
        (grader, bank),
    )
    for stored, models in rows:
        if GradingTarget.read(from_json(stored)) == target:
            return list(from_json(models))
    return None


def put_models(connection: sqlite3.Connection, run: int, models: list[list[float]]) -> None:
    """Store the models by which the target of a run skips cells."""
    connection.execute(
        "UPDATE run SET detail = json_set(detail, '$.models', json(?)) WHERE run = ?",
        (json.dumps(models), run),
    )


def update_run(connection: sqlite3.Connection, run: int, spent: RunUsage) -> None:
    """Record the usage of a run so far."""
    connection.execute(
        "UPDATE run SET seconds = ?, asked = ?, cells = ?, tokens_read = ?, tokens_cached = ?, "
        "tokens_written = ?, requests = ?, cost = ? WHERE run = ?",
        (*spent, run),
    )


def forget_unused(connection: sqlite3.Connection, grader: int, run: int) -> None:
    """Delete a run that got no reply and cost nothing, and its grader if nothing else used it."""
    connection.execute(
        "DELETE FROM run WHERE run = ? AND asked = 0 AND coalesce(cost, 0) = 0 AND NOT EXISTS "
        "(SELECT 1 FROM grade g WHERE g.grader = run.grader)",
        (run,),
    )
    used = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.grader = grader.grader)"
        for table in ("grade", "run", "batch", "lease", "sheet")
    )
    connection.execute(f"DELETE FROM grader WHERE grader = ? AND {used}", (grader,))


def usage_of(connection: sqlite3.Connection, grader: int) -> RunUsage:
    """Return the total usage of all runs of a grader."""
    row = connection.execute(
        "SELECT total(seconds), sum(asked), sum(cells), sum(tokens_read), sum(tokens_cached), "
        "sum(tokens_written), sum(requests), sum(cost) FROM run WHERE grader = ?",
        (grader,),
    ).fetchone()
    seconds, *counts, cost = row
    return RunUsage(seconds, *(int(value or 0) for value in counts))._replace(cost=cost)


def unpriced_runs(connection: sqlite3.Connection, grader: int) -> int:
    """Count the runs of a grader without prices, and so with unknown cost."""
    return select_integer(
        connection,
        "SELECT count(*) FROM run WHERE grader = ? AND cost IS NULL AND tokens_read > 0",
        (grader,),
    )


def read_step(connection: sqlite3.Connection, name: str) -> str | None:
    """Return the fingerprint of a finished step; None if it was never done."""
    row = connection.execute("SELECT fingerprint FROM step WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def put_step(connection: sqlite3.Connection, name: str, fingerprint: str, at: str) -> None:
    """Record that a step is finished."""
    connection.execute(
        "INSERT INTO step (name, fingerprint, at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at",
        (name, fingerprint, at),
    )


PREPARED, OPEN, COLLECTED, ENDED = "prepared", "open", "collected", "ended"
"""Recorded and perhaps sent; open at the provider; all replies stored; ended without replies."""


FILE = "file"
"""The provider name of batch files."""


class BatchRow(NamedTuple):
    """A stored batch.

    `key` is its name in metadata at the provider, `remote` its id there (None: unknown, or never
    sent), `said` the provider's last status. `answered` counts the cells with a reply, `worst` is
    its maximum cost. `at` and `expires` are ISO 8601 in UTC.
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


ITEM = 2**32
"""Step of `number` between the cells of one request; below it is the place in the batch."""
ALONE = -1
"""The `number` of a cell that goes into the next batch without others of its passage."""


class StoredRequest(NamedTuple):
    """A cell of an open request; `reply` is None until it has arrived.

    `alone`: the request is not open; the cell goes into the next batch alone.
    """

    reply: Any
    alone: bool


def prepare_batch(
    connection: sqlite3.Connection,
    grader: int,
    about: Mapping[str, Any],
    requests: Iterable[Sequence[str]],
) -> int:
    """Record a batch before it is sent; `about` has key, provider, server, worst and at.

    A request has one or several cells. It is left out if one of them is open already: another
    process may have been quicker.

    A batch is noted before it is sent, so that one whose id was lost can be found again. A cell is
    in one batch at a time; its row goes when its reply is a grade, or when it is known that none
    comes.
    """

    def is_open(cell: str) -> bool:
        stored = stored_request(connection, cell)
        return stored is not None and not stored.alone

    new = [cells for cells in requests if not any(map(is_open, cells))]
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
            len(new),
            about["worst"],
            about["at"],
        ),
    )
    connection.executemany(
        "REPLACE INTO batch_request (request, batch, number) VALUES (?, ?, ?)",
        [
            (cell, batch, number + at * ITEM)
            for number, cells in enumerate(new)
            for at, cell in enumerate(cells)
        ],
    )
    return batch


def batches_of(
    connection: sqlite3.Connection, grader: int | None, states: Iterable[str] = ()
) -> list[BatchRow]:
    """Return the batches of a grader, or of all, in these states (all by default), oldest first."""
    return records(
        BatchRow,
        connection,
        "SELECT batch, key, grader, provider, server, remote, state, said, requests, answered, "
        "worst, at, expires FROM batch WHERE (:grader IS NULL OR grader = :grader) "
        "AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states))) ORDER BY batch",
        {"grader": grader, "states": json.dumps(list(states))},
    )


def open_batch(connection: sqlite3.Connection, batch: int, remote: str, expires: str) -> None:
    """Record the id of a batch at its provider."""
    connection.execute(
        "UPDATE batch SET remote = ?, expires = ?, state = ? WHERE batch = ?",
        (remote, expires, OPEN, batch),
    )


def set_batch_status(connection: sqlite3.Connection, batch: int, status: str) -> None:
    """Record the provider's status of a batch."""
    connection.execute("UPDATE batch SET said = ? WHERE batch = ?", (status, batch))


def requests_of(
    connection: sqlite3.Connection, batch: int, *, waiting: bool = False
) -> list[list[str]]:
    """Return the cells of each stored request of a batch, in the order in which they were sent.

    `waiting`: only requests without a reply.
    """
    rows = connection.execute(
        f"SELECT number % {ITEM}, request FROM batch_request WHERE batch = ? AND number <> ? "
        "AND (reply IS NULL OR NOT ?) ORDER BY 1, number",
        (batch, ALONE, waiting),
    )
    return [[cell for _, cell in cells] for _, cells in groupby(rows, key=itemgetter(0))]


def stored_request(connection: sqlite3.Connection, request: str) -> StoredRequest | None:
    """Return a cell of a request if it is open, else None."""
    row = connection.execute(
        "SELECT reply, number FROM batch_request WHERE request = ?", (request,)
    ).fetchone()
    return None if row is None else StoredRequest(from_json(row[0]), row[1] == ALONE)


def has_replies(connection: sqlite3.Connection, grader: int) -> bool:
    """Return whether a received reply is not a grade yet."""
    return exists(
        connection,
        "SELECT 1 FROM batch_request JOIN batch USING (batch) "
        "WHERE grader = ? AND reply IS NOT NULL LIMIT 1",
        (grader,),
    )


def put_replies(connection: sqlite3.Connection, batch: int, replies: Mapping[str, Any]) -> None:
    """Store replies by cell, keeping earlier ones."""
    before = connection.total_changes
    connection.executemany(
        "UPDATE batch_request SET reply = ? WHERE request = ? AND batch = ? AND reply IS NULL",
        [
            (json.dumps(reply, ensure_ascii=False), request, batch)
            for request, reply in replies.items()
        ],
    )
    added = connection.total_changes - before
    connection.execute("UPDATE batch SET answered = answered + ? WHERE batch = ?", (added, batch))


def drop_requests(connection: sqlite3.Connection, requests: Iterable[str]) -> None:
    """Delete the cells of requests that became grades or will get no reply."""
    connection.executemany(
        "DELETE FROM batch_request WHERE request = ?", [(request,) for request in requests]
    )


def set_alone(connection: sqlite3.Connection, cell: str) -> None:
    """Replace the reply to a cell by the mark that it is requested alone."""
    connection.execute(
        "UPDATE batch_request SET reply = NULL, number = ? WHERE request = ?", (ALONE, cell)
    )


def requests_alone(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the cells that go into the next batch alone."""
    requests = "SELECT request FROM batch_request WHERE number = ?"
    return frozenset(column(connection, requests, (ALONE,)))


def close_batch(connection: sqlite3.Connection, batch: int, state: str, status: str) -> None:
    """End a batch; requests without a reply are no longer open."""
    connection.execute(
        "DELETE FROM batch_request WHERE batch = ? AND reply IS NULL AND number <> ?",
        (batch, ALONE),
    )
    connection.execute(
        "UPDATE batch SET state = ?, said = ? WHERE batch = ?", (state, status, batch)
    )


def describe_batches(rows: Sequence[BatchRow]) -> str:
    """Describe batches and their progress in one line."""
    return "; ".join(
        f"{row.remote or 'a batch'} ({counted(row.requests, 'request')}) "
        f"{'is being sent' if row.remote is None else row.said or 'sent'}"
        for row in rows
    )


def describe_open_batches(rows: Sequence[BatchRow]) -> str:
    """Describe open batches, their provider and progress; empty if there are none."""
    servers = ", ".join(dict.fromkeys(row.server for row in rows if row.provider != FILE))
    return f"out{servers and f' at {servers}'}: {describe_batches(rows)}" if rows else ""


_SERIAL = count()
_AT_WORK: dict[str, int] = {}
"""Runs of this process that may have leases: owner -> thread."""


class LeaseHolder(NamedTuple):
    """A run with leases; they expire at `until` (seconds since the epoch)."""

    host: str
    process: int
    queries: int
    until: float

    @property
    def is_here(self) -> bool:
        """Return whether it runs on this machine, where its end is detected immediately."""
        return self.host == os.uname().nodename

    def __str__(self) -> str:
        queries = "1 query" if self.queries == 1 else f"{self.queries} queries"
        if self.is_here:
            return f"Process {self.process} on this machine is grading {queries}"
        until = time.strftime("%H:%M:%S", time.localtime(self.until))
        return f"Process {self.process} on {self.host} has locked {queries} until {until}"


def new_owner() -> str:
    """Return a unique name of a run: host, process and number."""
    return f"{os.uname().nodename}:{os.getpid()}:{next(_SERIAL)}"


@contextmanager
def at_work(owner: str) -> Iterator[None]:
    """Register a run for the duration of the block; afterwards its leases are free."""
    _AT_WORK[owner] = threading.get_ident()
    try:
        yield
    finally:
        _AT_WORK.pop(owner, None)


def is_gone(owner: str) -> bool:
    """Return whether a run on this machine is gone; False for other machines.

    Another run of this thread counts as gone, because it cannot continue meanwhile.
    """
    host, process, _ = owner.rsplit(":", 2)
    if host != os.uname().nodename:
        return False
    if int(process) == os.getpid():
        return _AT_WORK.get(owner) in (None, threading.get_ident())
    return not process_exists(int(process))


def process_exists(process: int) -> bool:
    """Return whether a process of this machine exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # such as PermissionError: it belongs to another user
        return True
    return True


def others(connection: sqlite3.Connection, grader: int, owner: str) -> dict[str, list[int]]:
    """Return the queries leased by other runs of a grader, by run."""
    by_owner: dict[str, list[int]] = {}
    for lease in leases(connection, grader):
        if lease.owner != owner and not is_gone(lease.owner):
            by_owner.setdefault(lease.owner, []).append(lease.query)
    return by_owner


def holders(
    connection: sqlite3.Connection, grader: int, owner: str = ""
) -> tuple[LeaseHolder, ...]:
    """Return the runs of a grader with leases, except `owner`."""
    until = {lease.owner: lease.until for lease in leases(connection, grader)}
    return tuple(
        LeaseHolder(*_place(name), len(queries), until[name])
        for name, queries in others(connection, grader, owner).items()
    )


def _place(owner: str) -> tuple[str, int]:
    host, process, _ = owner.rsplit(":", 2)
    return host, int(process)
