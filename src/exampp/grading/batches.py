"""Grade through batches of a provider: half the price, within a day instead of seconds.

Batches are another way for replies to arrive, not another grader: prompts, reading and cells are
the same. Every pass over the pending cells yields the replies that have arrived and postpones the
rest, until a batch has ended.

A batch is recorded in the collection before it is sent, and its replies before they are read:
however the process ends, nothing is sent twice and no reply is lost.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError, Unfinished
from exampp.graders.base import ApproximateTokens, Reply, Request, Usage
from exampp.graders.budget import Budget
from exampp.graders.openai.batches import (
    BatchAdapter,
    BatchLine,
    BatchStatus,
    CallFailed,
    FileBatches,
    OpenAIBatches,
    TruncatedResults,
    line_id,
    read_replies,
    request_id,
)
from exampp.graders.openai.client import RequestFailure, RetryAction
from exampp.graders.openai.grader import OpenAICompatibleGrader
from exampp.records import GraderIdentity
from exampp.records.wording import counted
from exampp.sanitize import check_path
from exampp.stopping import wait_until_halted
from exampp.store import runs as kept
from exampp.store.connection import transaction
from exampp.store.grades import find_grader
from exampp.store.runs import (
    COLLECTED,
    ENDED,
    FILE,
    OPEN,
    PREPARED,
    BatchRow,
    describe_batches,
    describe_open_batches,
    process_exists,
)
from exampp.store.sql import batches as in_parts

MOST_SILENT = 30
"""Consecutive failed polls after which a run stops."""
SUBMISSIONS, DOWNLOADS = 4, 3
BACKOFF, LONGEST_BACKOFF = 1.0, 60.0
ABANDONED = timedelta(hours=1)
"""Time after which another machine's unfinished batch counts as abandoned."""
SKEW = timedelta(hours=1)
"""Tolerated difference between the provider's clock and ours."""
_SENDING: set[str] = set()
"""Keys of the batches that this process is sending."""


class Pending:
    """Requests of the next batch, as their cells and lines, and their maximum cost."""

    def __init__(self) -> None:
        self.requests: list[tuple[Sequence[str], bytes]] = []
        self.cells: set[str] = set()
        self.bytes = 0
        self.worst = 0.0

    def add(self, cells: Sequence[str], line: bytes, worst: float) -> None:
        """Add a request."""
        self.requests.append((cells, line))
        self.cells |= set(cells)
        self.bytes += len(line) + 1
        self.worst += worst


class FailedTries(NamedTuple):
    """Batches of this run that left a request without a reply, and the last reason."""

    times: int = 0
    why: str = ""


@dataclass(slots=True)
class _Download:
    """Downloaded results: answered requests, and requests to be sent again with the reason.

    `torn` is the reason why results are incomplete; `passes`: the server failed temporarily.
    """

    answered: set[str] = field(default_factory=set)
    passing: dict[str, str] = field(default_factory=dict)
    torn: str = ""
    passes: bool = False


class Outbox:
    """The batches of one grader at one provider.

    `why` is the reason why nothing more is sent; `tried` has the requests without a reply.
    `gives_up`: batches are being cancelled, and results that cannot be collected are dropped.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        service: OpenAIBatches,
        adapter: BatchAdapter,
        budget: Budget,
        halted: threading.Event,
        *,
        pause: float | None,
        gives_up: bool,
    ) -> None:
        self.service = service
        self.why = ""
        self.notes: list[str] = []
        self.tried: dict[str, FailedTries] = {}
        self.most = service.most_requests
        self.gives_up = gives_up
        self._connection = connection
        self._adapter = adapter
        self._budget = budget
        self._halted = halted
        self._pause = pause
        self._silent = self._torn = 0

    def out(self, grader: int) -> list[BatchRow]:
        """Return the batches that are recorded and not collected."""
        rows = kept.batches_of(self._connection, grader, (PREPARED, OPEN))
        return [row for row in rows if row.provider == self.service.name]

    def begin(self, grader: int) -> None:
        """Find sent batches without an id; reserve the cost of all open batches."""
        for row in self.out(grader):
            self._budget.reserve(row.worst, sent=True)
            if row.state == PREPARED and not _is_being_sent(row):
                self._find_again(row)

    # ---- sending --------------------------------------------------------------------------------

    def submit(self, grader: int, pending: Pending) -> None:
        """Record a batch, send it, and record its id; drop it if the provider is busy.

        Raises:
            InputError: The provider rejects every batch.
            Unfinished: It is unknown whether the batch arrived.
        """
        key = secrets.token_hex(8)
        about = {
            "key": key,
            "provider": self.service.name,
            "server": self.service.server,
            "worst": pending.worst,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        _SENDING.add(key)
        try:
            with self._connection, transaction(self._connection):
                requests = [cells for cells, _ in pending.requests]
                noted = kept.prepare_batch(self._connection, grader, about, requests)
                kept.set_batch_status(
                    self._connection, noted, f"{socket.gethostname()}:{os.getpid()}"
                )
            row = next(one for one in self.out(grader) if one.batch == noted)
            mine = {cells[0] for cells in kept.requests_of(self._connection, noted)}
            lines = [line for cells, line in pending.requests if cells[0] in mine]
            if not lines:
                self._close(row, ENDED, "sent by another process")
                return
            status = self._send(row, lines)
            if status is None:
                return
            if not self.service.deferred:
                for _ in lines:
                    self._budget.sent(retry=False, probe=False)
                self._opened(row, status)
        finally:
            _SENDING.discard(key)

    def finish(self, grader: int) -> None:
        """Complete a deferred submission, such as a file."""
        if self.service.deferred:
            self.service.finish()
            for row in self.out(grader):
                if row.state == PREPARED:
                    self._opened(row, self.service.look(row.server))

    def _opened(self, row: BatchRow, status: BatchStatus) -> None:
        with self._connection, transaction(self._connection):
            kept.open_batch(self._connection, row.batch, status.remote, status.expires)
            kept.set_batch_status(self._connection, row.batch, status.state)

    def _send(self, row: BatchRow, lines: Sequence[bytes]) -> BatchStatus | None:
        """Submit a batch; None if the provider takes none now and others are open.

        If it is unknown whether a batch arrived, search for it before sending it again.
        """
        failure = RequestFailure(RetryAction.RETRY, "")
        doubtful = False
        for attempt in range(SUBMISSIONS):
            try:
                return self.service.submit(row.key, self._adapter.path, lines)
            except CallFailed as failed:
                failure = failed.failure
            if failure.action is not RetryAction.RETRY:
                break
            doubtful |= failure.lost or failure.status >= 500
            pause = BACKOFF * 2**attempt if failure.wait is None else failure.wait
            longest = LONGEST_BACKOFF if self._pause is None else self._pause
            wait_until_halted(self._halted, min(pause, longest))
            if doubtful and (earlier := self._search_provider(row)):
                return earlier
            if self._halted.is_set():
                break
        if doubtful:
            raise Unfinished(
                f"{self.service.server}: it is unknown whether a batch of "
                f"{counted(row.requests, 'request')} arrived ({failure.reason}). Run it "
                "again later: exampp first searches for the batch"
            )
        self._close(row, ENDED, "not accepted")
        others = self.out(row.grader)
        if failure.action is RetryAction.RETRY and (others or self._halted.is_set()):
            self.most = 0
            return None
        what = f"{self.service.server} rejected a batch ({failure.reason})"
        raise failure.error or Unfinished(f"{what}. Nothing was charged")

    def _find_again(self, row: BatchRow) -> None:
        """Record the id of a batch that had none; close one that never arrived."""
        batch = self._search_provider(row)
        if batch is None:
            self._close(row, ENDED, "never sent")
        else:
            self._opened(row, batch)

    def _search_provider(self, row: BatchRow) -> BatchStatus | None:
        """Return the batch at the provider under a row's key; None if it never arrived."""
        since = (datetime.fromisoformat(row.at) - SKEW).isoformat()
        try:
            for status in self.service.recent(since):
                if status.key == row.key:
                    return status
            return None
        except CallFailed as failed:
            raise failed.failure.error or Unfinished(
                f"{self.service.server}: it is unknown whether a batch of "
                f"{counted(row.requests, 'request')} arrived ({failed.failure.reason}). Run it "
                "again later: exampp first searches for the batch, and sends nothing twice"
            ) from None

    # ---- looking and collecting -----------------------------------------------------------------

    def look(self, grader: int) -> bool:
        """Poll all open batches and collect those that ended; return whether any was closed."""
        before = self.out(grader)
        for row in before:
            if row.remote is None:
                if not _is_being_sent(row):
                    self._find_again(row)
                continue
            if status := self._status(row, row.remote):
                if status.state != row.said:
                    with self._connection, transaction(self._connection):
                        kept.set_batch_status(self._connection, row.batch, status.state)
                if status.ended:
                    self._collect(row, status)
                    self.most = self.most or self.service.most_requests
        return [row.batch for row in self.out(grader)] != [row.batch for row in before]

    def _status(self, row: BatchRow, remote: str) -> BatchStatus | None:
        """Return the status of a batch, None if the provider does not answer now."""
        try:
            status = self.service.look(remote)
            self._silent = 0
            return status
        except CallFailed as failed:
            failure = failed.failure
        self._silent += 1
        if failure.status == 404 and self.gives_up:
            self._close(row, ENDED, "unknown to the provider")
            return None
        if failure.status == 404:
            raise InputError(
                f"{self.service.server} does not know the batch {remote}",
                hint="Use the key that sent it, or forget it with --cancel-batches; its "
                "requests are then pending again",
            )
        if failure.action is not RetryAction.RETRY or self._silent >= MOST_SILENT:
            raise failure.error or Unfinished(
                f"{self.service.server}: {failure.reason}. The batch {remote} is not affected; "
                "the same command continues"
            )
        return None

    def _collect(self, row: BatchRow, status: BatchStatus) -> None:
        """Store the replies of a batch that has ended; requests without one are pending again."""
        if status.reason:
            self._refused(row, status)
            return
        download = self._download(row, status)
        torn, unanswered = download.torn, self._waiting(row)
        self._torn += bool(torn)
        if torn and self._torn < (MOST_SILENT if download.passes else DOWNLOADS):
            return
        if torn and not self.gives_up:
            raise Unfinished(
                f"{self.service.server}: the results of the batch {status.remote} are "
                f"incomplete ({torn}). {row.requests - len(unanswered)} of "
                f"{counted(row.requests, 'reply')} are stored; the same command tries again, and "
                "--cancel-batches makes the rest pending again"
            )
        for request, cells in unanswered.items():
            why = download.passing.get(request, status.state)
            for cell in cells:
                times = self.tried.get(cell, FailedTries()).times
                self.tried[cell] = FailedTries(times + 1, why)
        if status.cancelled and unanswered and not self.gives_up:
            self.why = (
                f"the batch {status.remote} was cancelled by another program: "
                f"{counted(len(unanswered), 'request')} of {row.requests} have no reply"
            )
        self._close(row, COLLECTED, status.state)

    def _refused(self, row: BatchRow, status: BatchStatus) -> None:
        """Close a batch that was rejected as a whole; smaller ones may be accepted."""
        self._close(row, ENDED, f"{status.state}: {status.reason}"[:500])
        if status.later and row.requests > 1:
            self.most = max(1, row.requests // 2)
            self.notes.append(
                f"{self.service.server} rejected a batch of "
                f"{counted(row.requests, 'request')} ({status.reason}): smaller ones are "
                "sent one after another"
            )
        else:
            self.why = (
                f"{self.service.server} rejected the batch {status.remote} "
                f"({status.reason}); nothing was charged for it"
            )

    def _download(self, row: BatchRow, status: BatchStatus) -> _Download:
        """Store all readable results."""
        requests, download = self._waiting(row), _Download()
        try:
            for some in in_parts(self.service.results(status)):
                self._store(row, requests, some, download)
        except TruncatedResults as error:
            download.torn = str(error)
        except CallFailed as failed:
            download.torn, download.passes = (
                failed.failure.reason,
                failed.failure.action is RetryAction.RETRY,
            )
        return download

    def _waiting(self, row: BatchRow) -> dict[str, list[str]]:
        """Return the cells of the requests of a batch without a reply, by the id of the request."""
        waiting = kept.requests_of(self._connection, row.batch, waiting=True)
        return {line_id(cells): cells for cells in waiting}

    def _store(
        self,
        row: BatchRow,
        requests: Mapping[str, Sequence[str]],
        lines: Iterable[BatchLine],
        download: _Download,
    ) -> None:
        """Store the first reply to each request; for transient errors only record the reason."""
        replies: dict[str, dict[str, object]] = {}
        for line in lines:
            known = line.request in download.answered or line.request in download.passing
            if known or (cells := requests.get(line.request)) is None:
                continue
            if why := self._adapter.transient(line):
                download.passing[line.request] = why
            else:
                replies.update(zip(cells, self._adapter.split(line, cells), strict=True))
                download.answered.add(line.request)
        with self._connection, transaction(self._connection):
            kept.put_replies(self._connection, row.batch, replies)

    def take(self, path: Path, grader: int) -> None:
        """Store the replies in a file to requests that were written to a file.

        Raises:
            InputError: No line answers any of them.
        """
        rows = self.out(grader)
        waiting = [self._waiting(row) for row in rows]
        awaited = set().union(*waiting)
        download, bad, is_known = _Download(), list[int](), False
        for some in in_parts(read_replies(path)):
            bad += [line for line in some if isinstance(line, int)]
            lines = [line for line in some if isinstance(line, BatchLine)]
            is_known = is_known or any(
                line.request in awaited or self._has_reply(line.request) for line in lines
            )
            for row, requests in zip(rows, waiting, strict=True):
                self._store(row, requests, lines, download)
        if not is_known:
            what = "no line answers a pending request"
            hint = "Use the reply file for a --batch-file, with the same options"
            raise InputError(what, file=path, hint=hint)
        if bad:
            unreadable = f"{counted(len(bad), 'line')} cannot be read, the first at line {bad[0]}"
            self.notes.append(f"{path.name}: {unreadable}")
        for row, requests in zip(rows, waiting, strict=True):
            for request in download.passing.keys() & requests.keys():
                cells = requests[request]
                self.tried |= dict.fromkeys(cells, FailedTries(1, download.passing[request]))
                with self._connection, transaction(self._connection):
                    kept.drop_requests(self._connection, cells)
            if not kept.requests_of(self._connection, row.batch, waiting=True):
                self._close(row, COLLECTED, "read")

    def _has_reply(self, request: str) -> bool:
        stored = kept.stored_request(self._connection, request.partition("-")[0])
        return stored is not None and stored.reply is not None

    # ---- ending ---------------------------------------------------------------------------------

    def cancel(self, grader: int) -> None:
        """Cancel all open batches and files; answers so far are collected afterwards."""
        for row in kept.batches_of(self._connection, grader, (PREPARED, OPEN)):
            if row.provider == FILE:
                if not _is_being_sent(row):
                    self._close(row, ENDED, "cancelled")
                continue
            if row.remote is None:
                continue
            try:
                self.service.cancel(row.remote)
            except CallFailed as failed:
                if failed.failure.error is not None and failed.failure.status != 404:
                    raise failed.failure.error from None

    def _close(self, row: BatchRow, state: str, status: str) -> None:
        with self._connection, transaction(self._connection):
            kept.close_batch(self._connection, row.batch, state, status)
        self._budget.settle(row.worst, Usage())


def _is_being_sent(row: BatchRow) -> bool:
    """Return whether a process is sending a batch that has no id yet."""
    if row.key in _SENDING:
        return True
    host, _, process = row.said.rpartition(":")
    fresh = datetime.now(UTC) - datetime.fromisoformat(row.at) < ABANDONED
    if not fresh or not process.isdigit():
        return False
    if host != socket.gethostname():
        return True
    return int(process) != os.getpid() and process_exists(int(process))


@dataclass(frozen=True, slots=True)
class Batches:
    """Options of a run by batches: send requests as batches and wait for them.

    Args:
        file: Write the requests to this file instead, for example for vLLM's `run-batch`.
        replies: Read the replies from this file.
        cancel: End open batches and files.
        poll: Seconds between two polls; by default 15, increasing to 300.

    Raises:
        InputError: Several of `file`, `replies` and `cancel` are given, or `poll` is invalid.
    """

    file: str | Path | None = None
    replies: str | Path | None = None
    cancel: bool = False
    poll: float | None = None

    def __post_init__(self) -> None:
        if (self.file is not None) + (self.replies is not None) + self.cancel > 1:
            raise InputError(
                "--batch-file, --replies and --cancel-batches exclude each other",
                hint="Use only one of --batch-file, --replies and --cancel-batches",
            )
        if self.poll is not None and not 0 <= self.poll <= 86_400:
            raise InputError(f"poll is {self.poll:g}", hint="Use 0 seconds up to a day")

    @property
    def offline(self) -> bool:
        """Return whether no server is used."""
        return self.file is not None or self.replies is not None

    @property
    def sends(self) -> bool:
        """Return whether requests are sent."""
        return self.replies is None and not self.cancel

    @property
    def target(self) -> Path | None:
        """Return the path of the file to write."""
        return None if self.file is None else check_path(self.file)


FIRST_POLL, LONGEST_POLL, GROWTH = 15.0, 300.0, 1.5
"""Seconds between two polls: at first, and at most."""
MOST_TRIES = 3
"""Batches of one run that may fail to answer a request before its cell fails."""
PUT_OFF = Reply("", later=True)


class BatchGrader(ApproximateTokens):
    """Wrapper that gets the answers of a server's grader through batches.

    Call `bind` before `answer`. `offline`: no server is used.
    """

    same_text_same_grade = True

    stopped: str
    prepaid = True

    def __init__(
        self,
        inner: OpenAICompatibleGrader,
        connection: sqlite3.Connection,
        batches: Batches,
        *,
        offline: bool,
    ) -> None:
        self._inner = inner
        self._adapter = inner.batch_adapter(offline=offline)
        self.mode = self._adapter.mode
        self._connection = connection
        self._chosen = batches
        service = OpenAIBatches(self._adapter)
        if batches.offline:
            service = FileBatches(self._adapter, batches.target)
        self.share = service.share
        self._budget = Budget(inner.options, service.share)
        self._halted = threading.Event()
        self._outbox = Outbox(
            connection,
            service,
            self._adapter,
            self._budget,
            self._halted,
            pause=batches.poll,
            gives_up=batches.cancel,
        )
        self._identity: GraderIdentity | None = None
        self._given: dict[int, str] = {}
        self._pending = Pending()
        self._bundle: dict[str, Request] = {}
        self._alone: set[str] = set()
        self.collects = self._begun = False
        self._why = ""
        self.stopped = ""
        self.late: Sequence[tuple[Request, Reply]] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the wrapped grader; batches do not change its identity."""
        return self._inner.settings

    @property
    def unnumbered(self) -> str | None:
        """Return the rule of the wrapped grader."""
        return self._inner.unnumbered

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Return the provenance of the wrapped grader and the service of the batches."""
        return {**self._inner.provenance, "batches": self._outbox.service.name}

    @property
    def note(self) -> str:
        """Return notes of the wrapped grader and about its batches."""
        return "\n".join(filter(None, (self._inner.note, *dict.fromkeys(self._outbox.notes))))

    @property
    def billed(self) -> tuple[int, float | None]:
        """Return the requests sent, and the cost of the replies that arrived."""
        return self._budget.billed

    @property
    def limit(self) -> int | None:
        """Return the maximum tokens of a prompt, if known."""
        return self._inner.limit

    @property
    def most_items(self) -> int:
        """Return the maximum number of items of a passage in one request."""
        return self._inner.most_items

    @cached_property
    def asks_alone(self) -> Callable[[Request], bool] | None:
        """Return whether the first request of a run for an item is for it alone; None if for no
        item.
        """
        alone = kept.requests_alone(self._connection)
        return (lambda request: self._cell_of(request) in alone) if alone else None

    def _cell_of(self, request: Request) -> str:
        return request_id(self._name, self._adapter.body([request]))

    def bind(self, identity: GraderIdentity) -> None:
        """Set the identity of the grader in the collection."""
        self._identity = identity

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield replies that have arrived, postpone the rest, and send new requests.

        A pass that yields replies sends nothing, because the replies may show that sending should
        stop.
        """
        self.stopped = ""
        grader = self._key
        if not self._begun:
            self._begin(grader)
        self.collects = not self.collects and kept.has_replies(self._connection, grader)
        blocked = self.collects or self._why or self._outbox.why
        sends = self._chosen.sends and not blocked
        self._pending, self._bundle, put_off = Pending(), {}, False
        for request in requests:
            cell = self._cell_of(request)
            reply = self._reply(request, cell)
            if reply is None and sends and self._outbox.most:
                self._add(grader, cell, request)
            put_off |= reply is None or reply.later
            yield request, reply or PUT_OFF
        if self._halted.is_set():
            return
        self._close_bundle(grader)
        if self._pending.requests:
            self._outbox.submit(grader, self._pending)
        self._outbox.finish(grader)
        self.stopped = self._reason(grader) if put_off else ""

    def _begin(self, grader: int) -> None:
        self._begun = True
        self._outbox.begin(grader)
        if self._chosen.replies:
            self._outbox.take(check_path(self._chosen.replies), grader)
        if self._chosen.cancel:
            self._outbox.cancel(grader)

    def _reply(self, request: Request, cell: str) -> Reply | None:
        """Return the stored reply, or that it is awaited or failed; None to send the request."""
        stored = kept.stored_request(self._connection, cell)
        if stored is not None and not stored.alone:
            return PUT_OFF if stored.reply is None else self._claim(request, cell, stored.reply)
        self._alone |= {cell} if stored else set()
        tried = self._outbox.tried.get(cell, FailedTries())
        if tried.times >= MOST_TRIES:
            return Reply("", fault=f"no reply in {tried.times} batches, most recently: {tried.why}")
        return None

    def _claim(self, request: Request, cell: str, stored: Mapping[str, Any]) -> Reply:
        """Return a stored reply; postpone it if the server needs another request for it."""
        read = self._adapter.read(request, stored)
        self._budget.settle(0.0, read.reply.usage)
        if read.changed or read.alone:
            with self._connection, transaction(self._connection):
                if read.alone:
                    kept.set_alone(self._connection, cell)
                else:
                    kept.drop_requests(self._connection, [cell])
            return replace(PUT_OFF, usage=read.reply.usage)
        self._why = self._why or read.error
        self._given[request.key] = cell
        return read.reply

    def _add(self, grader: int, cell: str, request: Request) -> None:
        """Add a cell to the next batch, in one request with others of its passage."""
        if cell in self._pending.cells or cell in self._bundle:
            return
        if cell in self._alone:
            self._send(grader, {cell: request})
            return
        before = next(iter(self._bundle.values()), request)
        if before.passage_of_query != request.passage_of_query:
            self._close_bundle(grader)
        self._bundle[cell] = request
        if len(self._bundle) == self.most_items:
            self._close_bundle(grader)

    def _close_bundle(self, grader: int) -> None:
        bundle, self._bundle = self._bundle, {}
        self._send(grader, bundle)

    def _send(self, grader: int, bundle: Mapping[str, Request]) -> None:
        """Add a request for some cells as far as the budget allows, and send a full batch."""
        pending, outbox, requests = self._pending, self._outbox, list(bundle.values())
        if not (requests and outbox.most):
            return
        names = {request.key: cell for cell, request in bundle.items()}
        cells = [names[request.key] for request in self.mode.ordered(requests)]
        body = self._adapter.body(requests)
        texts = [message["content"] for message in body["messages"]]
        worst = self._budget.worst(texts, self.mode.max_written)
        if not (self._budget.exhausted() or self._budget.reserve(worst)):
            line = outbox.service.line(line_id(cells), self._adapter.path, body)
            pending.add(cells, line, worst)
        full = len(pending.requests) >= outbox.most
        if pending.requests and (full or pending.bytes > outbox.service.most_bytes):
            outbox.submit(grader, pending)
            self._pending = Pending()
            # a provider with a full queue gets one batch after another
            outbox.most *= outbox.most == outbox.service.most_requests

    def acknowledge(self, keys: Iterable[int]) -> None:
        """Drop requests whose replies are stored as grades."""
        done = [self._given.pop(key) for key in keys if key in self._given]
        if done:
            with self._connection, transaction(self._connection):
                kept.drop_requests(self._connection, done)

    def stop(self, grace: float) -> None:
        """Send nothing more; open batches stay open."""
        del grace
        self._halted.set()

    def wait(self) -> Iterator[str]:
        """Poll the batches until one has ended; yield their states at every poll."""
        pause = FIRST_POLL if self._chosen.poll is None else self._chosen.poll
        while not self.collects and not self._halted.is_set():
            if not self._outbox.out(self._key) or self._outbox.look(self._key):
                break
            yield describe_batches(self._outbox.out(self._key))
            wait_until_halted(self._halted, pause)
            if self._chosen.poll is None:
                pause = min(pause * GROWTH, LONGEST_POLL)
        if self._halted.is_set() and (rows := self._outbox.out(self._key)):
            self.stopped = describe_open_batches(rows)

    def _reason(self, grader: int) -> str:
        """Return the reason why the run ends although cells are postponed; "" if replies may
        arrive.

        Raises:
            InputError: --max-cost allows no request.
        """
        service, batches, rows = self._outbox.service, self._chosen, self._outbox.out(grader)
        running = describe_open_batches(rows)
        if self.collects:
            # received replies may have shown that sending should stop
            return ""
        if isinstance(service, FileBatches) and batches.file and rows:
            new = f"{counted(service.written, 'request')} in {batches.file}"
            if not service.written:
                why = self._budget.exhausted() or "no new requests"
                new = f"{why}, so {batches.file} is not written; {running}"
            return f"{new}; read the replies with --replies"
        why = self._why or self._outbox.why
        if batches.replies and not why:
            why = "the file has no clear reply to them"
            running = running or "write requests for them with --batch-file"
        if why:
            return "; ".join(filter(None, (why, running)))
        if rows:
            return ""
        if batches.cancel:
            return "no open batches"
        self._budget.check_possible()
        return (
            self._budget.exhausted()
            or "the remaining requests would cost more than --max-cost allows"
        )

    @property
    def _key(self) -> int:
        key = None if self._identity is None else find_grader(self._connection, self._identity)
        if key is None:
            raise InputError("batches need a collection to store them")
        return key

    @property
    def _name(self) -> str:
        return "" if self._identity is None else self._identity.key
