"""A grader whose replies come through batches: half the price, within a day instead of seconds.

A batch is another way that replies arrive, and no other grader: the same prompts, the same reading,
the same cells. Every pass over what is due gives out the replies that have come and puts the rest
off, until a batch has ended.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Grader, Reply, Request, Usage
from exampp.graders.budget import Budget
from exampp.graders.openai.batches import (
    BatchAdapter,
    BatchLine,
    BatchStatus,
    CallFailed,
    FileBatches,
    OpenAIBatches,
    TruncatedResults,
    read_replies,
    request_id,
)
from exampp.graders.openai.failures import RequestFailure, RetryAction
from exampp.graders.openai.grader import OpenAICompatibleGrader
from exampp.records import GraderIdentity
from exampp.records.wording import counted
from exampp.sanitize import check_path
from exampp.stopping import wait_until_halted
from exampp.store import runs as kept
from exampp.store.connection import transaction
from exampp.store.grades import find_grader
from exampp.store.interning import batches as in_parts
from exampp.store.runs import (
    COLLECTED,
    ENDED,
    FILE,
    OPEN,
    PREPARED,
    BatchRow,
    describe_batches,
    describe_open_batches,
)

# What is out at a provider: sent once, found again, looked at, collected, ended.
#
# A batch is noted in the collection before it is sent, and its replies before they are read:
# whatever ends the process, nothing is sent twice and nothing that came is lost.


MOST_SILENT = 30
"""Looks in a row without an answer after which a run leaves its batches alone."""
SUBMISSIONS, DOWNLOADS = 4, 3
BACKOFF, LONGEST_BACKOFF = 1.0, 60.0
ABANDONED = timedelta(hours=1)
"""After which a batch that is being sent on another machine counts as given up."""
SKEW = timedelta(hours=1)
"""By which the clock of a provider may differ from ours."""
_SENDING: set[str] = set()
"""The keys of batches that this process is sending just now."""


class Pending:
    """Requests that are to go out together: id -> line, and the most that they can cost."""

    def __init__(self) -> None:
        self.requests: dict[str, bytes] = {}
        self.bytes = 0
        self.worst = 0.0

    def add(self, request: str, line: bytes, worst: float) -> None:
        """One more."""
        self.requests[request] = line
        self.bytes += len(line) + 1
        self.worst += worst


class FailedTries(NamedTuple):
    """In how many batches of this run a request was without a reply, and why the last time."""

    times: int = 0
    why: str = ""


@dataclass(slots=True)
class _Download:
    """What results brought: answers that are kept, requests that another batch may answer and why.

    `torn` says why there may be more, and `passes` that it is the server's failure; `strange`
    counts results of requests that were not sent, `repeated` those that came again.
    """

    answered: set[str] = field(default_factory=set)
    passing: dict[str, str] = field(default_factory=dict)
    strange: int = 0
    repeated: int = 0
    torn: str = ""
    passes: bool = False


class Outbox:
    """The batches of one grader at one provider.

    `why` says why nothing more is to be sent, `tried` what became of requests without a reply.
    `gives_up` tells that batches are being ended: what cannot be collected is left.
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
        """The batches that are noted, or known at the provider, and not collected."""
        rows = kept.batches_of(self._connection, grader, (PREPARED, OPEN))
        return [row for row in rows if row.provider == self.service.name]

    def begin(self, grader: int) -> None:
        """Find again what was sent and not noted; hold back what all that is out can cost."""
        for row in self.out(grader):
            self._budget.reserve(row.worst, sent=True)
            if row.state == PREPARED and not _is_being_sent(row):
                self._find_again(row)

    # ---- sending --------------------------------------------------------------------------------

    def submit(self, grader: int, pending: Pending) -> None:
        """Note a batch, send it, and note its id; nothing is out where it takes none just now.

        Raises InputError or Unfinished where it takes none, or where that cannot be told.
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
                noted = kept.prepare_batch(self._connection, grader, about, list(pending.requests))
                kept.set_batch_status(
                    self._connection, noted, f"{socket.gethostname()}:{os.getpid()}"
                )
            row = next(one for one in self.out(grader) if one.batch == noted)
            mine = set(kept.requests_of(self._connection, noted))
            lines = [line for request, line in pending.requests.items() if request in mine]
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
        """Bring to its end what a service does not do at once."""
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
        """Have the provider take a batch; None where it takes none now and others are out.

        Where it is not known whether it did, it is looked for before it is sent again.
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
            if doubtful and (found := self._sought(row)):
                return found
            if self._halted.is_set():
                break
        if doubtful:
            raise Unfinished(
                f"{self.service.server}: whether a batch of {counted(row.requests, 'request')} "
                f"arrived there cannot be told ({failure.reason}). Run it again later: it is "
                "looked for first"
            )
        self._close(row, ENDED, "not taken")
        others = self.out(row.grader)
        if failure.action is RetryAction.RETRY and (others or self._halted.is_set()):
            self.most = 0
            return None
        what = f"{self.service.server} takes no batch ({failure.reason})"
        raise failure.error or Unfinished(f"{what}. Nothing was charged")

    def _find_again(self, row: BatchRow) -> None:
        """Note the id of a batch that had none; forget one that never arrived."""
        found = self._sought(row)
        if found is None:
            self._close(row, ENDED, "never sent")
        else:
            self._opened(row, found)

    def _sought(self, row: BatchRow) -> BatchStatus | None:
        """Return the batch at the provider under a row's key; None where it never arrived."""
        since = (datetime.fromisoformat(row.at) - SKEW).isoformat()
        try:
            for status in self.service.recent(since):
                if status.key == row.key:
                    return status
            return None
        except CallFailed as failed:
            failure = failed.failure
        raise failure.error or Unfinished(
            f"{self.service.server}: whether a batch of {counted(row.requests, 'request')} arrived "
            f"there cannot be told ({failure.reason}). Run it again later: it is looked for first, "
            "and nothing is sent twice"
        )

    # ---- looking and collecting -----------------------------------------------------------------

    def look(self, grader: int) -> bool:
        """Look at all that is out, and collect what has ended; whether anything is out no more."""
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
        """How a batch is doing; None where nobody says it now."""
        try:
            status = self.service.look(remote)
            self._silent = 0
            return status
        except CallFailed as failed:
            failure = failed.failure
        self._silent += 1
        if failure.status == 404 and self.gives_up:
            self._close(row, ENDED, "not known any more")
            return None
        if failure.status == 404:
            raise InputError(
                f"{self.service.server} does not know the batch {remote}",
                mend="Use the key that sent it; --cancel-batches forgets it, and what it was about "
                "is due again",
            )
        if failure.action is not RetryAction.RETRY or self._silent >= MOST_SILENT:
            raise failure.error or Unfinished(
                f"{self.service.server}: {failure.reason}. The batch {remote} is not touched by "
                "that; the same command goes on with it"
            )
        return None

    def _collect(self, row: BatchRow, status: BatchStatus) -> None:
        """Keep what came to a batch that has ended; what has no reply is due again."""
        if status.reason:
            self._refused(row, status)
            return
        requests = kept.requests_of(self._connection, row.batch)
        found = self._download(row, status, requests)
        torn, seen = found.torn, found.answered
        self._torn += bool(torn)
        if torn and self._torn < (MOST_SILENT if found.passes else DOWNLOADS):
            return
        if torn and not self.gives_up:
            raise Unfinished(
                f"{self.service.server}: the results of the batch {status.remote} cannot be read "
                f"whole ({torn}). {len(seen)} of {counted(row.requests, 'reply')} are "
                "kept; the same command tries again, and --cancel-batches has the rest be due again"
            )
        lost = [request for request in requests if request not in seen]
        for request in lost:
            times = self.tried.get(request, FailedTries()).times
            self.tried[request] = FailedTries(times + 1, found.passing.get(request, status.state))
        if found.strange:
            what = counted(found.strange, "result")
            self.notes.append(f"{status.remote}: {what} of requests that were not sent")
        if found.repeated:
            self.notes.append(
                f"{status.remote}: {counted(found.repeated, 'result')} came again; the first counts"
            )
        if status.cancelled and lost and not self.gives_up:
            self.why = (
                f"the batch {status.remote} was cancelled, not by this command: "
                f"{counted(len(lost), 'request')} of {row.requests} were not answered"
            )
        self._close(row, COLLECTED, status.state)

    def _refused(self, row: BatchRow, status: BatchStatus) -> None:
        """A batch that was refused as a whole: smaller ones may be taken, or none."""
        self._close(row, ENDED, f"{status.state}: {status.reason}"[:500])
        if status.later and row.requests > 1:
            self.most = max(1, row.requests // 2)
            self.notes.append(
                f"{self.service.server} took no batch of {counted(row.requests, 'request')} "
                f"({status.reason}): smaller ones are sent, one after another"
            )
        else:
            self.why = (
                f"{self.service.server} refused the batch {status.remote} ({status.reason}); "
                "nothing was charged for it"
            )

    def _download(self, row: BatchRow, status: BatchStatus, requests: Sequence[str]) -> _Download:
        """Keep what can be read of the results."""
        wanted, found = set(requests), _Download()
        try:
            for some in in_parts(self.service.results(status)):
                ours = [line for line in some if line.request in wanted]
                found.strange += len(some) - len(ours)
                self._keep(row, ours, found)
        except TruncatedResults as error:
            found.torn = str(error)
        except CallFailed as failed:
            found.torn, found.passes = (
                failed.failure.reason,
                failed.failure.action is RetryAction.RETRY,
            )
        return found

    def _keep(self, row: BatchRow, lines: Iterable[BatchLine], found: _Download) -> None:
        """Keep the replies of lines; of those that another request may bring, only why."""
        replies: dict[str, dict[str, object]] = {}
        for line in lines:
            if line.request in found.answered or line.request in found.passing:
                found.repeated += 1
            elif why := self._adapter.transient(line):
                found.passing[line.request] = why
            else:
                replies[line.request] = {"status": line.status, "body": line.body}
                found.answered.add(line.request)
        with self._connection, transaction(self._connection):
            kept.put_replies(self._connection, row.batch, replies)

    def take(self, path: Path, grader: int) -> None:
        """Keep the replies of a file to requests that were written to one.

        Raises InputError where no line of it is about any of them.
        """
        rows = {row.batch: row for row in self.out(grader)}
        found, bad = _Download(), list[int]()
        for some in in_parts(read_replies(path)):
            bad += [line for line in some if isinstance(line, int)]
            lines = [line for line in some if isinstance(line, BatchLine)]
            for batch, ours in self._by_batch(lines).items():
                if batch in rows:
                    self._keep(rows[batch], ours, found)
                else:
                    found.strange += len(ours)
        if not (found.answered or found.passing):
            what = "no line of it answers a request that is out"
            mend = "Give what came back for a file of --batch-file, with the options it had"
            raise InputError(what, file=path, mend=mend)
        if bad:
            unreadable = f"{counted(len(bad), 'line')} cannot be read, the first is line {bad[0]}"
            self.notes.append(f"{path.name}: {unreadable}")
        if found.strange:
            what = counted(found.strange, "line")
            self.notes.append(f"{path.name}: {what} about nothing that is out")
        for request, why in found.passing.items():
            self.tried[request] = FailedTries(1, why)
        with self._connection, transaction(self._connection):
            kept.drop_requests(self._connection, found.passing)
        for row in rows.values():
            if not kept.unanswered(self._connection, row.batch):
                self._close(row, COLLECTED, "read")

    def _by_batch(self, lines: Iterable[BatchLine]) -> dict[int, list[BatchLine]]:
        """Lines by the batch that their request is in; -1 for those of none."""
        found: dict[int, list[BatchLine]] = {}
        for line in lines:
            known = kept.stored_request(self._connection, line.request)
            found.setdefault(-1 if known is None else known.batch, []).append(line)
        return found

    # ---- ending ---------------------------------------------------------------------------------

    def cancel(self, grader: int) -> None:
        """Have all that is out ended, in files too; what was answered is collected when it has."""
        for row in kept.batches_of(self._connection, grader, (PREPARED, OPEN)):
            if row.provider == FILE:
                if not _is_being_sent(row):
                    self._close(row, ENDED, "given up")
                continue
            if row.remote is None:
                continue
            failure: RequestFailure | None = None
            try:
                self.service.cancel(row.remote)
            except CallFailed as failed:
                failure = failed.failure
            if failure is not None and failure.error is not None and failure.status != 404:
                raise failure.error

    def _close(self, row: BatchRow, state: str, said: str) -> None:
        with self._connection, transaction(self._connection):
            kept.close_batch(self._connection, row.batch, state, said)
        self._budget.settle(row.worst, Usage())


def _is_being_sent(row: BatchRow) -> bool:
    """Whether some process is at it to send a batch that is only noted yet."""
    if row.key in _SENDING:
        return True
    host, _, process = row.said.rpartition(":")
    fresh = datetime.now(UTC) - datetime.fromisoformat(row.at) < ABANDONED
    if not fresh or not process.isdigit():
        return False
    if host != socket.gethostname():
        return True
    if int(process) == os.getpid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class Batches:
    """A grader on a server is asked by batches, which are waited for.

    With `file` the requests are written there instead, for vLLM's `run-batch` and the like, and
    with `replies` what came back is read; with `cancel` what is out is ended, in files too. `poll`
    is the seconds between two looks at a batch; a quarter of a minute, growing, where it is None.

    Raises:
        InputError: Several of `file`, `replies` and `cancel`, or a `poll` that is no time.

    """

    file: str | Path | None = None
    replies: str | Path | None = None
    cancel: bool = False
    poll: float | None = None

    def __post_init__(self) -> None:
        if (self.file is not None) + (self.replies is not None) + self.cancel > 1:
            raise InputError(
                "a file of requests, a file of replies and the end of batches exclude each other",
                mend="Give one of --batch-file, --replies and --cancel-batches",
            )
        if self.poll is not None and not 0 <= self.poll <= 86_400:
            raise InputError(f"poll is {self.poll:g}", mend="Give seconds, up to a day")

    @property
    def offline(self) -> bool:
        """Whether no server is asked for anything."""
        return self.file is not None or self.replies is not None

    @property
    def sends(self) -> bool:
        """Whether requests go out."""
        return self.replies is None and not self.cancel

    @property
    def target(self) -> Path | None:
        """The file that is written."""
        return None if self.file is None else check_path(self.file)


FIRST_POLL, LONGEST_POLL, GROWTH = 15.0, 300.0, 1.5
"""Seconds between two looks at a batch, and by how much they grow."""
MOST_TRIES = 3
"""Batches that a request goes into, in one run, before its cell is failed."""
PUT_OFF = Reply("", later=True)


class BatchGrader(Grader):
    """Answers as the grader on a server does that it is made of, by batches.

    `bind` says who it is in the collection, before `answer` is called. `offline` tells that no
    server is to be asked. `goes_on_by` are the options of the command that goes on after a run was
    stopped, in place of those about files and ends of batches; None where it is the same command.
    """

    same_text_same_grade = True

    stopped: str
    prepaid = True
    exact_tokens = False

    def __init__(
        self,
        inner: OpenAICompatibleGrader,
        connection: sqlite3.Connection,
        chosen: Batches,
        *,
        offline: bool,
    ) -> None:
        self._inner = inner
        self._adapter = inner.batch_adapter(offline=offline)
        self._connection = connection
        self._chosen = chosen
        service = OpenAIBatches(self._adapter)
        if chosen.offline:
            service = FileBatches(self._adapter, chosen.target)
        self.share = service.share
        self._budget = Budget(inner.options, service.share)
        self._halted = threading.Event()
        self._outbox = Outbox(
            connection,
            service,
            self._adapter,
            self._budget,
            self._halted,
            pause=chosen.poll,
            gives_up=chosen.cancel,
        )
        self._identity: GraderIdentity | None = None
        self._given: dict[int, str] = {}
        self._claiming = self._begun = False
        self._why = ""
        self.stopped = ""
        self.goes_on_by: Sequence[str] | None = None
        self.late: Sequence[tuple[Request, Reply]] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the grader that is asked: how replies arrive makes no other one."""
        return self._inner.settings

    @property
    def unnumbered(self) -> str | None:
        """As that of the grader that is asked."""
        return self._inner.unnumbered

    @property
    def provenance(self) -> Mapping[str, Any]:
        """As that of the grader that is asked, and by whose batches."""
        return {**self._inner.provenance, "batches": self._outbox.service.name}

    @property
    def note(self) -> str:
        """What a user should know of how it is asked, and of what came."""
        return "\n".join(filter(None, (self._inner.note, *dict.fromkeys(self._outbox.notes))))

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests that were sent, and what the replies that came cost."""
        return self._budget.billed

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have, as far as it is known."""
        return self._inner.limit

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """As the grader that is asked counts them."""
        return self._inner.offsets(text)

    def length(self, user: str, system: str = "") -> int:
        """As the grader that is asked counts them."""
        return self._inner.length(user, system)

    def bind(self, identity: GraderIdentity) -> None:
        """Say who it is in the collection."""
        self._identity = identity

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield what has come, put the rest off, and send what is not out yet.

        A pass that has something to give out sends nothing: whether it is any good is seen first.
        """
        self.stopped = ""
        grader = self._key
        if not self._begun:
            self._begin(grader)
        self._claiming = not self._claiming and kept.has_replies(self._connection, grader)
        held = self._claiming or self._why or self._outbox.why
        sends = self._chosen.sends and not held
        pending, outbox, put_off = Pending(), self._outbox, False
        for ask in asks:
            reply = self._reply(ask, pending, sends=sends and bool(outbox.most))
            put_off |= reply.later
            yield ask, reply
            full = len(pending.requests) >= outbox.most
            if pending.requests and (full or pending.bytes > outbox.service.most_bytes):
                outbox.submit(grader, pending)
                pending = Pending()
                # a provider whose queue is full gets one batch after the other
                outbox.most *= outbox.most == outbox.service.most_requests
        if self._halted.is_set():
            return
        if pending.requests:
            outbox.submit(grader, pending)
        outbox.finish(grader)
        self.stopped = self._reason(grader) if put_off else ""

    def _begin(self, grader: int) -> None:
        self._begun = True
        self._outbox.begin(grader)
        if self._chosen.replies:
            self._outbox.take(check_path(self._chosen.replies), grader)
        if self._chosen.cancel:
            self._outbox.cancel(grader)

    def _reply(self, ask: Request, pending: Pending, *, sends: bool) -> Reply:
        body = self._adapter.body(ask)
        request = request_id(self._name, body)
        found = kept.stored_request(self._connection, request)
        if found is not None and found.reply is not None:
            return self._claim(ask, request, found.reply)
        if found is not None or request in pending.requests:
            return PUT_OFF
        tried = self._outbox.tried.get(request, FailedTries())
        if tried.times >= MOST_TRIES:
            return Reply("", fault=f"no reply in {tried.times} batches, the last: {tried.why}")
        mode = self._adapter.mode
        worst = self._budget.worst(mode.texts(ask), mode.max_written)
        if sends and not (self._budget.exhausted() or self._budget.reserve(worst)):
            pending.add(
                request, self._outbox.service.line(request, self._adapter.path, body), worst
            )
        return PUT_OFF

    def _claim(self, ask: Request, request: str, reply: Mapping[str, Any]) -> Reply:
        """What came, read; put off where it taught how to ask otherwise."""
        read = self._adapter.read(ask, BatchLine(request, reply["status"], reply["body"]))
        if read.changed:
            with self._connection, transaction(self._connection):
                kept.drop_requests(self._connection, [request])
            return PUT_OFF
        self._why = self._why or read.error
        self._given[ask.key] = request
        self._budget.settle(0.0, read.reply.usage)
        return read.reply

    def kept(self, keys: Iterable[int]) -> None:
        """What was given out for these asks is a grade now."""
        done = [self._given.pop(key) for key in keys if key in self._given]
        if done:
            with self._connection, transaction(self._connection):
                kept.drop_requests(self._connection, done)

    def stop(self, grace: float) -> None:
        """Send nothing more; what is out stays out."""
        del grace
        self._halted.set()

    def wait(self) -> Iterator[str]:
        """Look at the batches until one has ended; yields how they are doing, at every look."""
        pause = FIRST_POLL if self._chosen.poll is None else self._chosen.poll
        while not self._claiming and not self._halted.is_set():
            if not self._outbox.out(self._key) or self._outbox.look(self._key):
                break
            yield describe_batches(self._outbox.out(self._key))
            wait_until_halted(self._halted, pause)
            if self._chosen.poll is None:
                pause = min(pause * GROWTH, LONGEST_POLL)
        if self._halted.is_set() and (rows := self._outbox.out(self._key)):
            self.stopped = describe_open_batches(rows)

    def _reason(self, grader: int) -> str:
        """Why nothing more is asked although cells are put off; empty where something may come.

        Raises InputError where --max-cost allows no request.
        """
        service, chosen, rows = self._outbox.service, self._chosen, self._outbox.out(grader)
        running = describe_open_batches(rows)
        self.goes_on_by = _other_options(chosen, out=bool(rows))
        if self._claiming:
            # what came may have shown that nothing else should be sent
            return ""
        if isinstance(service, FileBatches) and chosen.file and rows:
            new = f"{counted(service.written, 'request')} in {chosen.file}"
            if not service.written:
                why = self._budget.exhausted() or "nothing new"
                new = f"{why}, so that {chosen.file} is not written; {running}"
            return f"{new}; --replies reads what comes back"
        why = self._why or self._outbox.why
        if why or chosen.replies:
            return "; ".join(filter(None, (why or "the file has no reply to them", running)))
        if rows:
            return ""
        if chosen.cancel:
            return "no batch is out any more"
        self._budget.check_possible()
        return self._budget.exhausted() or "what is left would cost more than --max-cost allows"

    @property
    def _key(self) -> int:
        key = None if self._identity is None else find_grader(self._connection, self._identity)
        if key is None:
            raise InputError("only a collection asks a grader by batches")
        return key

    @property
    def _name(self) -> str:
        return "" if self._identity is None else self._identity.key


def _other_options(chosen: Batches, *, out: bool) -> Sequence[str] | None:
    """See `BatchGrader.goes_on_by`."""
    if chosen.offline and out:
        return ("--replies", "FILE")
    if chosen.replies:
        return ("--batch-file", "FILE")
    return () if chosen.cancel and not out else None
