"""Who is asked what, where several workers grade: batches, and what is asked again.

Nothing here knows where workers live. A pool tells that one has joined, answered or is lost, and
takes the next batch to it. All asks about a passage go to one worker, in their order. A worker has
two batches at a time, so that it never waits for the next one; what a lost worker had goes to the
others. The size of its batches follows its pace, so that a slow worker has little to lose and a
fast one is seldom written to.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from exampp.errors import ExamError, Unfinished
from exampp.llm.base import Ask, Reply
from exampp.prompts import Prompt

FIRST, MOST = 16, 512
"""Asks of a batch: of the first, and of any."""
SHORT, LONG = 0.25, 1.0
"""Seconds that a batch takes at least and at most, else the worker's next one is another size."""
AHEAD = 2
"""Batches that a worker has at a time."""
TRIES = 3
"""Workers that may be lost at a batch before its asks are given up."""
PATIENCE = 300.0
"""Seconds without any worker after which a run ends."""
GLANCE = 0.5
"""Seconds between two looks at what else is to be done."""


class WorkerFacts(NamedTuple):
    """What a worker says of itself: where it is, its exampp, and what its grader is."""

    node: str
    version: str
    settings: dict[str, Any]
    readings: frozenset[str]
    unnumbered: str | None
    called: str
    varies: bool
    note: str
    provenance: dict[str, Any] | None


class Joined(NamedTuple):
    """A worker is ready."""

    worker: str
    facts: WorkerFacts


class Answered(NamedTuple):
    """A worker has answered a batch: replies by the keys of the asks, or what the run ends with."""

    worker: str
    batch: int
    replies: Sequence[tuple[int, Reply]] | ExamError


class Lost(NamedTuple):
    """A worker answers no more, nor what it was given; `refused`: it was never of any use, and
    another one would not be.
    """

    worker: str
    reason: str
    refused: bool = False


class WorkerPool(Protocol):
    """Workers, wherever they live; it finds new ones by itself."""

    def wait(self, seconds: float) -> Joined | Answered | Lost | None:
        """What happens next; None if nothing does within the seconds."""
        ...

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Say how workers are asked, before anything is given."""
        ...

    def give(self, worker: str, batch: int, asks: Sequence[Ask]) -> None:
        """Have a worker that has joined answer a batch."""
        ...

    def dismiss(self, worker: str) -> None:
        """Let a worker go for good, and take no other from its node."""
        ...


class _Batch:
    """Asks that are given together, how often their workers were lost, and when they were given."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self.asks = {ask.key: ask for ask in asks}
        self.losses = 0
        self.given = 0.0


class _Member:
    """A worker at work: the numbers of its batches, and the size of the next."""

    def __init__(self) -> None:
        self.batches: dict[int, None] = {}
        self.size = FIRST
        self.since = 0.0

    def paced(self, batch: _Batch) -> None:
        """Take note that a batch was answered just now."""
        now = time.monotonic()
        took, self.since = now - max(batch.given, self.since), now
        if took < SHORT and len(batch.asks) >= self.size:
            self.size = min(MOST, self.size * 2)
        elif took > LONG:
            self.size = max(1, self.size // 2)


class Dispatcher:
    """Has asks answered by the workers of a pool, each once.

    `again` counts the asks that were given a second time, `lost` the workers that were. After
    `stop` nothing more is given.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self.again = 0
        self.lost: list[Lost] = []
        self._pool = pool
        self._members: dict[str, _Member] = {}
        self._batches: dict[int, _Batch] = {}
        self._orphans: deque[int] = deque()
        self._number = 0
        self._until = float("inf")

    def join(self, worker: str) -> None:
        """Count on a worker from now on."""
        self._members[worker] = _Member()

    def stop(self, grace: float) -> None:
        """Give nothing more, and end `answer` within so many seconds."""
        self._until = min(self._until, time.monotonic() + grace)

    def answer(
        self, asks: Iterable[Ask], arrived: deque[tuple[Ask, Reply]]
    ) -> Iterator[Joined | None]:
        """Put every ask with its reply into `arrived`; yields when there is something new.

        A worker that is ready is yielded; `join` takes it. Raises Unfinished where no worker is
        left, and what a worker says that the run is to end with.
        """
        source = _Passages(asks)
        self._until = float("inf")
        for member in self._members.values():
            member.batches.clear()
        self._batches.clear()
        self._orphans.clear()
        alone = time.monotonic()
        while True:
            self._give(source)
            if not self._batches:
                return
            if time.monotonic() > self._until:
                return
            event = self._pool.wait(max(0.0, min(GLANCE, self._until - time.monotonic())))
            if self._members:
                alone = time.monotonic()
            elif time.monotonic() - alone > PATIENCE:
                raise Unfinished(f"no worker for {PATIENCE:.0f} s{self._last_words()}")
            if isinstance(event, Joined):
                yield event
            elif isinstance(event, Answered):
                self._take(event, arrived)
                yield None
            elif isinstance(event, Lost):
                self.lose(event, arrived)
                yield None

    def lose(self, event: Lost, arrived: deque[tuple[Ask, Reply]]) -> None:
        """Have others answer what a worker had; asks at which several were lost are faults."""
        self.lost.append(event)
        member = self._members.pop(event.worker, None)
        for number in member.batches if member else ():
            batch = self._batches[number]
            batch.losses += 1
            if batch.losses < TRIES:
                self._orphans.append(number)
                continue
            fault = Reply("", fault=f"{TRIES} workers were lost at it, the last: {event.reason}")
            arrived.extend((ask, fault) for ask in batch.asks.values())
            del self._batches[number]

    def _give(self, source: _Passages) -> None:
        if self._until != float("inf"):
            # what has no worker will not be answered
            for number in self._orphans:
                del self._batches[number]
            self._orphans.clear()
            return
        for load in range(AHEAD):
            for worker, member in self._members.items():
                if len(member.batches) <= load and not self._give_one(worker, member, source):
                    return
        if not self._members and not self._batches:
            # so that there is something to wait for a worker with
            self._keep(source, FIRST)

    def _give_one(self, worker: str, member: _Member, source: _Passages) -> bool:
        if not self._orphans and not self._keep(source, member.size):
            return False
        number = self._orphans.popleft()
        batch = self._batches[number]
        self.again += len(batch.asks) if batch.losses else 0
        batch.given = time.monotonic()
        member.batches[number] = None
        self._pool.give(worker, number, list(batch.asks.values()))
        return True

    def _keep(self, source: _Passages, size: int) -> bool:
        """Whether there is another batch; it waits for a worker then."""
        if asks := source.pull(size):
            self._number += 1
            self._batches[self._number] = _Batch(asks)
            self._orphans.append(self._number)
        return bool(asks)

    def _take(self, event: Answered, arrived: deque[tuple[Ask, Reply]]) -> None:
        if isinstance(event.replies, ExamError):
            raise event.replies
        batch = self._batches.pop(event.batch, None)
        if batch is None:
            return  # of an answer that was given up
        member = self._members.get(event.worker)
        if member is not None:
            member.batches.pop(event.batch, None)
            member.paced(batch)
        replies = dict(event.replies)
        missing = Reply("", fault="the worker left it out")
        arrived.extend((ask, replies.get(key, missing)) for key, ask in batch.asks.items())

    def _last_words(self) -> str:
        return f"; the last was lost: {self.lost[-1].reason}" if self.lost else ""


class _Passages:
    """Pulls asks in batches that do not end within a passage, unless one has very many."""

    def __init__(self, asks: Iterable[Ask]) -> None:
        self._asks = iter(asks)
        self._next: Ask | None = None

    def pull(self, size: int) -> list[Ask]:
        """About as many asks; none at the end."""
        batch: list[Ask] = []
        while len(batch) < MOST:
            ask, self._next = self._next or next(self._asks, None), None
            if ask is None:
                break
            if len(batch) >= size and ask.passage != batch[-1].passage:
                self._next = ask
                break
            batch.append(ask)
        return batch
