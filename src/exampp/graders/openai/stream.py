"""Requests in, replies out: the blocking side that feeds a client on a background loop.

Requests are pulled and replies are yielded on the caller's thread; the client works on the loop.

llama.cpp keeps what it has read in slots, and requests that are in flight together miss each
other's: there the requests about a passage take turns on one slot, and only passages go side by
side. Servers such as vLLM find what was read wherever it is, and get what comes next at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from exampp.graders.background import BackgroundLoop
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.budget import Budget
from exampp.graders.openai.client import SLOT, Client, Server, ServerAddress, open_session
from exampp.graders.openai.failures import RequestFailure, RetryAction, ServerQuirks
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions
from exampp.stopping import LOOK_UP_SECONDS

LOOK_AHEAD = 2
"""Turns that are prepared for each that may be in flight."""
THREAD = "exampp-openai"
Pairs = list[tuple[Request, Reply]]


class Bundle(NamedTuple):
    """Requests about one passage that are sent as one, and the most that it can cost."""

    requests: list[Request]
    worst: float


Turn = list[Bundle]
"""Bundles that are sent one after another: all about one passage, or a single one."""


class TurnSource:
    """Pulls requests and bundles them, as far as the budget goes.

    `stopped` says why nothing more is pulled although there may be more.
    """

    def __init__(
        self, requests: Iterable[Request], mode: Mode, budget: Budget, *, whole: bool
    ) -> None:
        self.stopped = ""
        self._too_expensive = False
        self._requests = requests
        self._mode = mode
        self._budget = budget
        self._turns = self._all_turns(whole)

    def check(self) -> None:
        """Raise InputError where the next request alone costs more than all may."""
        if self._too_expensive:
            self._budget.check_possible()

    def pull(self, most: int) -> list[Turn]:
        """Return the next turns; fewer at the end, or as long as the budget allows no more."""
        turns: list[Turn] = []
        while len(turns) < most and (turn := next(self._turns, None)):
            turns.append(turn)
        return turns

    def _all_turns(self, whole: bool) -> Iterator[Turn]:
        """Yield turns; an empty one means that the budget allows no more now."""
        for passage, group in groupby(self._affordable(), key=lambda one: one and one[0].passage):
            if passage is None:
                for _ in group:
                    yield []
                continue
            bundles = self._bundles(filter(None, group))
            if whole:
                yield list(bundles)
            else:
                yield from ([bundle] for bundle in bundles)

    def _bundles(self, same: Iterator[tuple[Request, float]]) -> Iterator[Bundle]:
        for first, worst in same:
            requests = [first]
            for request, more in islice(same, self._mode.most - 1):
                self._budget.join()
                requests.append(request)
                worst += more
            yield Bundle(requests, worst)

    def _affordable(self) -> Iterator[tuple[Request, float] | None]:
        """Yield requests with their cost; None as long as the budget allows no more."""
        requests = iter(self._requests)
        while True:
            while stopped := self._budget.exhausted():
                self.stopped = stopped
                yield None
            self.stopped = ""
            request = next(requests, None)
            if request is None:
                return
            worst = self._budget.worst(self._mode.texts(request), self._mode.max_written)
            while stopped := self._budget.reserve(worst):
                self.stopped, self._too_expensive = stopped, True
                yield None
            self.stopped, self._too_expensive = "", False
            yield request, worst


class RequestStream:
    """Answers the requests of one run; `late` are replies that nobody had taken at its end.

    `slots` is how many passages each server has read at a time, empty where it does not matter.
    Where it does not, and there are several servers, a passage goes to the one that is least busy.
    """

    def __init__(
        self,
        addresses: Sequence[ServerAddress],
        options: OpenAIOptions,
        mode: Mode,
        budget: Budget,
        quirks: ServerQuirks,
        slots: Sequence[int] = (),
    ) -> None:
        self.late: Pairs = []
        self.stopped = ""
        self._stopping = False
        self._addresses = addresses
        self._options = options
        self._mode = mode
        self._budget = budget
        self._quirks = quirks
        self._slots = slots
        self._loop = BackgroundLoop(THREAD)
        self._done: SimpleQueue[tuple[Pairs, bool] | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def silent(self) -> list[str]:
        """Servers that did not answer their last request."""
        return [one.address.name for one in self._client.servers if one.consecutive_failures]

    def answer(self, requests: Iterable[Request], most: int) -> Iterator[tuple[Request, Reply]]:
        """Yield requests with their replies, pulling at most `most` turns ahead."""
        whole = bool(self._slots) or len(self._addresses) > 1
        source = TurnSource(requests, self._mode, self._budget, whole=whole)
        batch = max(1, most // 4)
        outstanding = 0
        with self._loop:
            try:
                self._loop.run(self._open())
                while True:
                    while outstanding <= most - batch:
                        turns = [] if self._stopping else source.pull(batch)
                        self._loop.call(self._start, turns)
                        outstanding += len(turns)
                        if len(turns) < batch:
                            break
                    if not outstanding:
                        source.check()
                        return
                    pairs, ended = self._take()
                    outstanding -= ended
                    yield from pairs
            finally:
                self.stopped = source.stopped
                self._loop.finish(self._close())
                with suppress(Empty):
                    while True:
                        done = self._done.get_nowait()
                        self.late += done[0] if isinstance(done, tuple) else ()

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and cancel what is in flight after `grace` seconds."""
        self._stopping = True
        self._loop.call(self._stop, grace)

    def _take(self) -> tuple[Pairs, bool]:
        """Wait for replies, and whether a turn ends; raises what stops the run."""
        while True:
            with suppress(Empty):
                # with a timeout, because a signal may not end a wait
                done = self._done.get(timeout=LOOK_UP_SECONDS)
                break
        if isinstance(done, BaseException):
            raise done
        return done

    async def _open(self) -> None:
        self._session = open_session()
        self._client = Client(
            self._session, self._addresses, self._options, self._budget, self._quirks
        )
        self._free: asyncio.Queue[tuple[Server, int]] = asyncio.Queue()
        for slot in range(max(self._slots, default=0)):
            for server, slots in zip(self._client.servers, self._slots, strict=True):
                if slot < slots:
                    self._free.put_nowait((server, slot))

    async def _close(self) -> None:
        self._stopping = True
        self._cancel(self._tasks)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    def _stop(self, grace: float) -> None:
        self._client.stopping = True
        self._cancel(self._tasks - self._client.sending)
        asyncio.get_running_loop().call_later(grace, self._cancel, self._tasks)

    def _cancel(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        for task in tasks:
            if not task.cancelling():
                task.cancel()

    def _start(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            if self._stopping:
                self._done.put(([], True))
                continue
            task = asyncio.create_task(self._answer_turn(turn))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._done.put(([], True))

    async def _answer_turn(self, turn: Turn) -> None:
        free = await self._free.get() if self._slots else None
        server, slot = free or (self._client.best_server(), None)
        try:
            for bundle in turn:
                if self._client.stopping:
                    break
                self._done.put((await self._answer_bundle(bundle, server, slot), False))
        except Exception as error:
            # cancelled here, and not when the caller takes the error: nothing is sent in between
            self._stopping = True
            self._cancel(self._tasks - {asyncio.current_task()})
            self._done.put(error)
        finally:
            if free is not None:
                self._free.put_nowait(free)

    async def _answer_bundle(self, bundle: Bundle, server: Server, slot: int | None) -> Pairs:
        requests, worst = bundle
        body = ({} if slot is None else {SLOT: slot}) | self._mode.body(requests)
        read = partial(self._mode.read, requests=requests)
        outcome = await self._client.post(self._mode.path, body, read, worst, server)
        if not isinstance(outcome, RequestFailure):
            self._budget.settle(worst, outcome.usage)
            without = self._quirks.missing(body)
            return [
                (one, replace(r, detail={**r.detail, "without": without}) if without else r)
                for one, r in zip(requests, outcome.replies, strict=True)
            ]
        self._budget.settle(worst, None if outcome.lost else Usage(), lost=outcome.lost)
        if outcome.error is not None:
            raise outcome.error
        reply = Reply("", fault=outcome.reason)
        if outcome.action is RetryAction.REFUSAL:
            reply = Reply("", detail={"refusal": True, "reason": outcome.reason})
        return [(one, reply) for one in requests]
