"""What is out at a provider: sent once, found again, looked at, collected, ended.

A batch is noted in the collection before it is sent, and its replies before they are read: whatever
ends the process, nothing is sent twice and nothing that came is lost.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError, Unfinished
from exampp.llm.base import Usage
from exampp.llm.batches import BatchLine, BatchService, BatchSight, CallFailed, TornResults
from exampp.llm.batches.files import read_replies
from exampp.llm.batches.form import BatchForm
from exampp.llm.openai.budget import Budget
from exampp.llm.openai.trouble import Then, Trouble
from exampp.records.wording import counted
from exampp.stopping import rest
from exampp.store import batches as kept
from exampp.store.batches import COLLECTED, ENDED, FILE, OPEN, PREPARED, BatchRow
from exampp.store.connection import transaction
from exampp.store.interning import batches as in_parts

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


class Tried(NamedTuple):
    """In how many batches of this run a request was without a reply, and why the last time."""

    times: int = 0
    why: str = ""


@dataclass(slots=True)
class _Download:
    """What results brought: answers that are kept, requests that another batch may answer and why.

    `torn` says why there may be more, and `passes` that it is the server's trouble; `strange`
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
        service: BatchService,
        form: BatchForm,
        budget: Budget,
        halted: threading.Event,
        *,
        pause: float | None,
        gives_up: bool,
    ) -> None:
        self.service = service
        self.why = ""
        self.notes: list[str] = []
        self.tried: dict[str, Tried] = {}
        self.most = service.most_requests
        self.gives_up = gives_up
        self._connection = connection
        self._form = form
        self._budget = budget
        self._halted = halted
        self._pause = pause
        self._strangers: set[str] = set()
        self._silent = self._torn = 0

    def out(self, grader: int) -> list[BatchRow]:
        """The batches that are noted, or known at the provider, and not collected."""
        rows = kept.batches_of(self._connection, grader, (PREPARED, OPEN))
        return [row for row in rows if row.provider == self.service.name]

    def begin(self, grader: int) -> None:
        """Find again what was sent and not noted; hold back what all that is out can cost."""
        for row in self.out(grader):
            self._budget.reserve(row.worst)
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
                kept.say_of_batch(self._connection, noted, f"{socket.gethostname()}:{os.getpid()}")
            row = next(one for one in self.out(grader) if one.batch == noted)
            mine = set(kept.requests_of(self._connection, noted))
            lines = [line for request, line in pending.requests.items() if request in mine]
            if not lines:
                self._close(row, ENDED, "sent by another process")
                return
            sight = self._send(row, lines)
            if sight is None:
                return
            if not self.service.deferred:
                for _ in lines:
                    self._budget.sent(retry=False, probe=False)
                self._opened(row, sight)
        finally:
            _SENDING.discard(key)

    def finish(self, grader: int) -> None:
        """Bring to its end what a service does not do at once."""
        if self.service.deferred:
            self.service.finish()
            for row in self.out(grader):
                if row.state == PREPARED:
                    self._opened(row, self.service.look(row.server))

    def _opened(self, row: BatchRow, sight: BatchSight) -> None:
        with self._connection, transaction(self._connection):
            kept.open_batch(self._connection, row.batch, sight.remote, sight.expires)
            kept.say_of_batch(self._connection, row.batch, sight.said)

    def _send(self, row: BatchRow, lines: Sequence[bytes]) -> BatchSight | None:
        """Have the provider take a batch; None where it takes none now and others are out.

        Where it is not known whether it did, it is looked for before it is sent again.
        """
        trouble = Trouble(Then.AGAIN, "")
        doubtful = False
        for attempt in range(SUBMISSIONS):
            try:
                return self.service.submit(row.key, self._form.path, lines)
            except CallFailed as failed:
                trouble = failed.trouble
            if trouble.then is not Then.AGAIN:
                break
            doubtful |= trouble.lost or trouble.status >= 500
            pause = BACKOFF * 2**attempt if trouble.wait is None else trouble.wait
            longest = LONGEST_BACKOFF if self._pause is None else self._pause
            rest(self._halted, min(pause, longest))
            if doubtful and (found := self._sought(row)):
                return found
            if self._halted.is_set():
                break
        if doubtful:
            raise Unfinished(
                f"{self.service.server}: whether a batch of {counted(row.requests, 'request')} "
                f"arrived there cannot be told ({trouble.reason}). Run it again later: it is "
                "looked for first"
            )
        self._close(row, ENDED, "not taken")
        others = self.out(row.grader)
        if trouble.then is Then.AGAIN and (others or self._halted.is_set()):
            self.most = 0
            return None
        what = f"{self.service.server} takes no batch ({trouble.reason})"
        raise trouble.error or Unfinished(f"{what}. Nothing was charged")

    def _find_again(self, row: BatchRow) -> None:
        """Note the id of a batch that had none; forget one that never arrived."""
        found = self._sought(row)
        if found is None:
            self._close(row, ENDED, "never sent")
        else:
            self._opened(row, found)

    def _sought(self, row: BatchRow) -> BatchSight | None:
        """The batch at the provider that was noted under a key; None where it never came there.

        Where the provider keeps no names it is one of as many requests, which nobody here knows:
        its results tell whether it is the one.
        """
        known = {one.remote for one in kept.batches_of(self._connection, None)} | self._strangers
        since = (datetime.fromisoformat(row.at) - SKEW).isoformat()
        try:
            for sight in self.service.recent(since):
                unknown = sight.size == row.requests and sight.remote not in known
                if sight.key == row.key if self.service.names else unknown:
                    return sight
            return None
        except CallFailed as failed:
            trouble = failed.trouble
        raise trouble.error or Unfinished(
            f"{self.service.server}: whether a batch of {counted(row.requests, 'request')} arrived "
            f"there cannot be told ({trouble.reason}). Run it again later: it is looked for first, "
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
            if sight := self._sight(row, row.remote):
                if sight.said != row.said:
                    with self._connection, transaction(self._connection):
                        kept.say_of_batch(self._connection, row.batch, sight.said)
                if sight.ended:
                    self._collect(row, sight)
                    self.most = self.most or self.service.most_requests
        return [row.batch for row in self.out(grader)] != [row.batch for row in before]

    def _sight(self, row: BatchRow, remote: str) -> BatchSight | None:
        """How a batch is doing; None where nobody says it now."""
        try:
            sight = self.service.look(remote)
            self._silent = 0
            return sight
        except CallFailed as failed:
            trouble = failed.trouble
        self._silent += 1
        if trouble.status == 404 and self.gives_up:
            self._close(row, ENDED, "not known any more")
            return None
        if trouble.status == 404:
            raise InputError(
                f"{self.service.server} does not know the batch {remote}",
                mend="Use the key that sent it; --cancel-batches forgets it, and what it was about "
                "is due again",
            )
        if trouble.then is not Then.AGAIN or self._silent >= MOST_SILENT:
            raise trouble.error or Unfinished(
                f"{self.service.server}: {trouble.reason}. The batch {remote} is not touched by "
                "that; the same command goes on with it"
            )
        return None

    def _collect(self, row: BatchRow, sight: BatchSight) -> None:
        """Keep what came to a batch that has ended; what has no reply is due again."""
        if sight.reason:
            self._refused(row, sight)
            return
        requests = kept.requests_of(self._connection, row.batch)
        found = self._download(row, sight, requests)
        torn, seen = found.torn, found.answered
        if found.strange and not (seen or found.passing) and not self.service.names:
            # a batch of somebody else that has as many requests
            self._strangers.add(sight.remote)
            self._find_again(row)
            return
        self._torn += bool(torn)
        if torn and self._torn < (MOST_SILENT if found.passes else DOWNLOADS):
            return
        if torn and not self.gives_up:
            raise Unfinished(
                f"{self.service.server}: the results of the batch {sight.remote} cannot be read "
                f"whole ({torn}). {len(seen)} of {counted(row.requests, 'reply')} are "
                "kept; the same command tries again, and --cancel-batches has the rest be due again"
            )
        lost = [request for request in requests if request not in seen]
        for request in lost:
            times = self.tried.get(request, Tried()).times
            self.tried[request] = Tried(times + 1, found.passing.get(request, sight.said))
        if found.strange:
            what = counted(found.strange, "result")
            self.notes.append(f"{sight.remote}: {what} of requests that were not sent")
        if found.repeated:
            self.notes.append(
                f"{sight.remote}: {counted(found.repeated, 'result')} came again; the first counts"
            )
        if sight.cancelled and lost and not self.gives_up:
            self.why = (
                f"the batch {sight.remote} was cancelled, not by this command: "
                f"{counted(len(lost), 'request')} of {row.requests} were not answered"
            )
        self._close(row, COLLECTED, sight.said)

    def _refused(self, row: BatchRow, sight: BatchSight) -> None:
        """A batch that was refused as a whole: smaller ones may be taken, or none."""
        self._close(row, ENDED, f"{sight.said}: {sight.reason}"[:500])
        if sight.later and row.requests > 1:
            self.most = max(1, row.requests // 2)
            self.notes.append(
                f"{self.service.server} took no batch of {counted(row.requests, 'request')} "
                f"({sight.reason}): smaller ones are sent, one after another"
            )
        else:
            self.why = (
                f"{self.service.server} refused the batch {sight.remote} ({sight.reason}); "
                "nothing was charged for it"
            )

    def _download(self, row: BatchRow, sight: BatchSight, requests: Sequence[str]) -> _Download:
        """Keep what can be read of the results."""
        wanted, found = set(requests), _Download()
        try:
            for some in in_parts(self.service.results(sight, requests)):
                ours = [line for line in some if line.request in wanted]
                found.strange += len(some) - len(ours)
                self._keep(row, ours, found)
        except TornResults as error:
            found.torn = str(error)
        except CallFailed as failed:
            found.torn, found.passes = failed.trouble.reason, failed.trouble.then is Then.AGAIN
        return found

    def _keep(self, row: BatchRow, lines: Iterable[BatchLine], found: _Download) -> None:
        """Keep the replies of lines; of those that another request may bring, only why."""
        replies: dict[str, dict[str, object]] = {}
        for line in lines:
            if line.request in found.answered or line.request in found.passing:
                found.repeated += 1
            elif why := self._form.passing(line):
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
            self.tried[request] = Tried(1, why)
        with self._connection, transaction(self._connection):
            kept.drop_requests(self._connection, found.passing)
        for row in rows.values():
            if not kept.unanswered(self._connection, row.batch):
                self._close(row, COLLECTED, "read")

    def _by_batch(self, lines: Iterable[BatchLine]) -> dict[int, list[BatchLine]]:
        """Lines by the batch that their request is in; -1 for those of none."""
        found: dict[int, list[BatchLine]] = {}
        for line in lines:
            known = kept.kept_request(self._connection, line.request)
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
            trouble: Trouble | None = None
            try:
                self.service.cancel(row.remote)
            except CallFailed as failed:
                trouble = failed.trouble
            if trouble is not None and trouble.error is not None and trouble.status != 404:
                raise trouble.error

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
