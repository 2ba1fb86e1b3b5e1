"""Requests in, replies out: the blocking side that feeds a client on a background loop.

Requests are pulled and replies are yielded on the caller's thread; the client works on the loop."""

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
from exampp.graders.openai.client import Client, ServerAddress, open_session
from exampp.graders.openai.failures import RequestFailure, RetryAction, ServerQuirks
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions
from exampp.stopping import LOOK_UP_SECONDS

LOOK_AHEAD = 2
"""Bundles that are prepared for each that may be in flight."""
THREAD = "exampp-openai"
Pairs = list[tuple[Request, Reply]]


class Bundle(NamedTuple):
    """Requests about one passage that are sent as one, and the most that it can cost."""

    requests: list[Request]
    worst: float


class BundleSource:
    """Pulls requests and bundles them, as far as the budget goes.

    `stopped` says why nothing more is pulled although there may be more.
    """

    def __init__(self, requests: Iterable[Request], mode: Mode, budget: Budget) -> None:
        self.stopped = ""
        self._too_expensive = False
        self._requests = requests
        self._mode = mode
        self._budget = budget
        self._bundles = self._all_bundles()

    def check(self) -> None:
        """Raise InputError where the next request alone costs more than all may."""
        if self._too_expensive:
            self._budget.check_possible()

    def pull(self, most: int) -> list[Bundle]:
        """Return the next bundles; fewer at the end, or as long as the budget allows no more."""
        bundles: list[Bundle] = []
        while len(bundles) < most and (bundle := next(self._bundles, None)):
            bundles.append(bundle)
        return bundles

    def _all_bundles(self) -> Iterator[Bundle | None]:
        """Yield bundles about one passage each; None where the budget allows no more now."""
        for passage, group in groupby(self._affordable(), key=lambda one: one and one[0].passage):
            if passage is None:
                yield from (None for _ in group)
                continue
            same = filter(None, group)
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
    """Answers the requests of one run; `late` are replies that nobody had taken at its end."""

    def __init__(
        self,
        address: ServerAddress,
        options: OpenAIOptions,
        mode: Mode,
        budget: Budget,
        quirks: ServerQuirks,
    ) -> None:
        self.late: Pairs = []
        self.stopped = ""
        self._stopping = False
        self._address = address
        self._options = options
        self._mode = mode
        self._budget = budget
        self._quirks = quirks
        self._loop = BackgroundLoop(THREAD)
        self._done: SimpleQueue[Pairs | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[Pairs]] = set()

    def answer(self, requests: Iterable[Request], most: int) -> Iterator[tuple[Request, Reply]]:
        """Yield requests with their replies, pulling at most `most` bundles ahead."""
        source = BundleSource(requests, self._mode, self._budget)
        batch = max(1, most // 4)
        outstanding = 0
        with self._loop:
            try:
                self._loop.run(self._open())
                while True:
                    while outstanding <= most - batch:
                        bundles = [] if self._stopping else source.pull(batch)
                        self._loop.call(self._start, bundles)
                        outstanding += len(bundles)
                        if len(bundles) < batch:
                            break
                    if not outstanding:
                        source.check()
                        return
                    pairs = self._take()
                    outstanding -= 1
                    yield from pairs
            finally:
                self.stopped = source.stopped
                self._loop.finish(self._close())
                with suppress(Empty):
                    while True:
                        done = self._done.get_nowait()
                        self.late += done if isinstance(done, list) else ()

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and cancel what is in flight after `grace` seconds."""
        self._stopping = True
        self._loop.call(self._stop, grace)

    def _take(self) -> Pairs:
        """Wait for the replies of a bundle; raises what stops the run."""
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
            self._session, self._address, self._options, self._budget, self._quirks
        )

    async def _close(self) -> None:
        self._stopping = True
        self._cancel(self._tasks)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    def _stop(self, grace: float) -> None:
        self._client.stopping = True
        self._cancel(self._tasks - self._client.sending)
        asyncio.get_running_loop().call_later(grace, self._cancel, self._tasks)

    def _cancel(self, tasks: Iterable[asyncio.Task[Pairs]]) -> None:
        for task in tasks:
            if not task.cancelling():
                task.cancel()

    def _start(self, bundles: Sequence[Bundle]) -> None:
        for bundle in bundles:
            if self._stopping:
                self._done.put([])
                continue
            task = asyncio.create_task(self._answer(bundle))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Pairs]) -> None:
        self._tasks.discard(task)
        self._done.put([] if task.cancelled() else task.exception() or task.result())

    async def _answer(self, bundle: Bundle) -> Pairs:
        try:
            return [] if self._client.stopping else await self._replies(bundle)
        except Exception:
            # cancelled here, and not when the caller takes the error: nothing is sent in between
            self._stopping = True
            self._cancel(self._tasks - {asyncio.current_task()})
            raise

    async def _replies(self, bundle: Bundle) -> Pairs:
        requests, worst = bundle
        body = self._mode.body(requests)
        read = partial(self._mode.read, requests=requests)
        outcome = await self._client.post(self._mode.path, body, read, worst)
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
