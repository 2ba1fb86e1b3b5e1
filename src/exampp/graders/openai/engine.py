"""A thread with an event loop that answers asks, and the blocking side that feeds it.

The asks are pulled and the replies are given out on the caller's thread; requests live on the
thread of the loop, so that they go on while the caller stores replies, and so that this works
where the caller's thread runs an event loop already (notebooks, servers).

llama.cpp keeps what it has read in slots, and requests that are in flight together miss each
other's: there the asks about a passage take turns on one slot, and only passages go side by side.
Servers such as vLLM find what was read wherever it is, and get what comes next at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from exampp.graders.base import Reply, Request, Usage
from exampp.graders.openai.background_loop import run
from exampp.graders.openai.budget import Budget
from exampp.graders.openai.connection import ServerConnection
from exampp.graders.openai.failures import RequestFailure, RetryAction
from exampp.graders.openai.modes import Mode
from exampp.graders.openai.sender import SLOT, RetryPolicy, Sender, Server
from exampp.graders.openai.server_quirks import ServerQuirks
from exampp.stopping import LOOK_UP_SECONDS

JOIN_SECONDS = 1.0
"""After which a thread that does not end is left behind."""

Pairs = list[tuple[Request, Reply]]


class Unit(NamedTuple):
    """Asks about one passage that go into one request, and the most that it can cost."""

    asks: list[Request]
    worst: float


Turn = list[Unit]
"""Units that are sent one after another: all about one passage, or a single one."""


class AskSource:
    """Pulls asks and bundles them into units, as far as the budget goes.

    `stopped` says why nothing more is pulled although there may be more.
    """

    def __init__(self, asks: Iterable[Request], mode: Mode, budget: Budget) -> None:
        self.stopped = ""
        self._too_dear: Request | None = None
        self._ended = False
        self._asks = iter(asks)
        self._mode = mode
        self._budget = budget
        self._next: Unit | None = None

    def check(self) -> None:
        """Raise InputError where the next ask alone costs more than all may."""
        if self._too_dear is not None:
            self._budget.check_possible()

    def pull(self, *, whole: bool = False) -> Turn:
        """The next unit, or a `whole` passage; none at the end, or if the budget allows none."""
        turn: Turn = []
        while (unit := self._unit()) is not None:
            if turn and unit.asks[0].passage != turn[0].asks[0].passage:
                self._next = unit
                break
            turn.append(unit)
            if not whole:
                break
        return turn

    def _unit(self) -> Unit | None:
        unit, self._next = self._next or self._one(), None
        while unit is not None and len(unit.asks) < self._mode.most:
            following = self._one()
            if following is None:
                break
            if following.asks[0].passage != unit.asks[0].passage:
                self._next = following
                break
            self._budget.join()
            unit = Unit(unit.asks + following.asks, unit.worst + following.worst)
        return unit

    def _one(self) -> Unit | None:
        ask = self._too_dear
        if ask is None:
            self.stopped = "" if self._ended else self._budget.exhausted()
            ask = None if self._ended or self.stopped else next(self._asks, None)
            if ask is None:
                self._ended = not self.stopped
                return None
        worst = self._budget.worst(self._mode.texts(ask), self._mode.max_written)
        self.stopped = self._budget.hold(worst)
        self._too_dear = ask if self.stopped else None
        return None if self.stopped else Unit([ask], worst)


class Engine:
    """Answers units on a thread of its own, which ends with `close`.

    `stopping` tells that nothing new is sent any more, `slots` how many passages each server has
    read at a time, empty where it does not matter. Where it does not, and there are several
    servers, a passage goes to the one that has least to do. `whole` tells that turns are passages.
    """

    def __init__(
        self,
        connections: Sequence[ServerConnection],
        model: str,
        policy: RetryPolicy,
        mode: Mode,
        budget: Budget,
        dialect: ServerQuirks,
        slots: Sequence[int] = (),
    ) -> None:
        self.slots = slots
        self.whole = bool(slots) or len(connections) > 1
        self._connections = connections
        self._model = model
        self._policy = policy
        self._mode = mode
        self.stopping = False
        self._budget = budget
        self._dialect = dialect
        self._done: SimpleQueue[tuple[Pairs, bool] | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exampp-openai", daemon=True)
        self._thread.start()
        self._started.wait()

    def submit(self, turns: Sequence[Turn]) -> None:
        """Have these answered; `take` will give the replies, and the end of each turn once."""
        self._call(self._start, turns)

    def take(self) -> tuple[Pairs, bool]:
        """Wait for replies, and whether a turn ends; raises what the run must stop with."""
        while True:
            with suppress(Empty):
                done = self._done.get(timeout=LOOK_UP_SECONDS)
                break
        if isinstance(done, BaseException):
            raise done
        return done

    @property
    def silent(self) -> list[str]:
        """Servers that did not answer what they were asked last."""
        lanes = self._sender.lanes if self._loop is not None else ()
        return [lane.connection.server for lane in lanes if lane.in_vain]

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and give up in `grace` seconds what is in flight."""
        self.stopping = True
        self._call(self._stop, grace)

    def close(self) -> Pairs:
        """Give up what is in flight, and end the thread; returns the replies nobody has taken."""
        self._call(self._cancel)
        self._thread.join(JOIN_SECONDS)
        rest: Pairs = []
        with suppress(Empty):
            while True:
                done = self._done.get_nowait()
                rest += done[0] if isinstance(done, tuple) else ()
        return rest

    def _call(self, action: Callable[..., None], *arguments: object) -> None:
        # a loop that has ended by itself has left the reason for `take`
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(action, *arguments)

    def _run(self) -> None:
        try:
            run(self._main)
        except BaseException as error:
            self._done.put(error)
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._closing = asyncio.Event()
        self._free: asyncio.Queue[tuple[Server, int]] = asyncio.Queue()
        policy = self._policy
        most = policy.max_concurrency
        async with AsyncExitStack() as opened:
            lanes = [
                Server(one, await opened.enter_async_context(one.open(policy.timeout, most)), most)
                for one in self._connections
            ]
            for slot in range(max(self.slots, default=0)):
                for lane, slots in zip(lanes, self.slots, strict=True):
                    if slot < slots:
                        self._free.put_nowait((lane, slot))
            self._sender = Sender(lanes, self._model, policy, self._budget, self._dialect)
            self._loop = asyncio.get_running_loop()
            self._started.set()
            await self._closing.wait()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel(self) -> None:
        self._closing.set()
        self._give_up(self._tasks)

    def _stop(self, grace: float) -> None:
        self._sender.stopping = True
        self._give_up(self._tasks - self._sender.sending)
        asyncio.get_running_loop().call_later(grace, self._give_up, self._tasks)

    def _give_up(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        for task in tasks:
            if not task.cancelling():
                task.cancel()

    def _start(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            if self._closing.is_set() or self._sender.stopping:
                self._done.put(([], True))
                continue
            task = asyncio.create_task(self._answer(turn))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._done.put(([], True))

    async def _answer(self, turn: Turn) -> None:
        free = await self._free.get() if self.slots else None
        lane, slot = free or (self._sender.best(), None)
        try:
            for unit in turn:
                if self._sender.stopping:
                    break
                self._done.put((await self._replies(unit, lane, slot), False))
            self._done.put(([], True))
        except Exception as error:
            # here and not when the caller hears of it, so that nothing is sent in between
            self._cancel()
            self._done.put(error)
        finally:
            if free is not None:
                self._free.put_nowait(free)

    async def _replies(self, unit: Unit, lane: Server, slot: int | None) -> Pairs:
        mode, asks = self._mode, unit.asks
        pinned = {} if slot is None else {SLOT: slot}
        read, body = partial(mode.read, asks=asks), pinned | mode.body(asks)
        outcome = await self._sender.post(mode.path, body, read, unit.worst, lane)
        if not isinstance(outcome, RequestFailure):
            self._budget.settle(unit.worst, outcome.usage)
            without = self._dialect.left_out(body)
            return [
                (ask, replace(r, detail={**r.detail, "without": without}) if without else r)
                for ask, r in zip(asks, outcome.replies, strict=True)
            ]
        self._budget.settle(unit.worst, None if outcome.lost else Usage(), lost=outcome.lost)
        if outcome.error is not None:
            raise outcome.error
        reply = Reply("", fault=outcome.reason)
        if outcome.then is RetryAction.REFUSAL:
            reply = Reply("", detail={"refusal": True, "reason": outcome.reason})
        return [(ask, reply) for ask in asks]


def stream(engine: Engine, source: AskSource, look_ahead: int) -> Iterator[tuple[Request, Reply]]:
    """Feed the engine from the source, `look_ahead` turns at a time at most, and yield replies."""
    batch = max(1, look_ahead // 4)
    outstanding = 0
    while True:
        while outstanding <= look_ahead - batch:
            turns = _pull(source, batch, engine)
            engine.submit(turns)
            outstanding += len(turns)
            if len(turns) < batch:
                break
        if not outstanding:
            source.check()
            return
        pairs, ended = engine.take()
        outstanding -= ended
        yield from pairs


def _pull(source: AskSource, most: int, engine: Engine) -> list[Turn]:
    turns: list[Turn] = []
    stopping = engine.stopping
    while len(turns) < most and not stopping and (turn := source.pull(whole=engine.whole)):
        turns.append(turn)
    return turns
