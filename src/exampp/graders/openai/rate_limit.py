"""How many requests may be in flight, and when none may be sent.

The limit starts small and grows by one for every reply, so that it doubles in each round, until
the server shows strain; from then on by one a round. It does not grow while replies take
`TOLERANCE` times as long as they did at their best, because then they only wait in the server's
queue. It is halved, once a round, when the server says that it is overloaded or does not answer in
time. Source: additive increase, multiplicative decrease, as in TCP (RFC 5681); latency as a sign
of a queue as in TCP Vegas (Brakmo and Peterson, 1995).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

START = 8
"""Requests in flight at first."""

TOLERANCE = 4.0
"""A server that batches answers a full batch slower than a single request, and rightly so."""

SMOOTHING = 0.1
FORGETTING = 1.0005
"""By which the best latency is raised at every reply, so that another kind of asks can set it."""

EARLY = 0.002
"""Seconds by which a timer of the event loop may be early."""


class TurnedAway(Exception):
    """Somebody need not wait here: another server has room."""


class RateLimit:
    """Slots for requests; belongs to one server and one event loop.

    `limit` is the number of requests that may be in flight now, at most `most`.
    """

    def __init__(self, most: int) -> None:
        self.limit = float(min(START, most))
        self._most = most
        self._active = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._resume_at = -math.inf
        self._halved_at = -math.inf
        self._doubling = True
        self._recent = self._best = math.inf

    async def enter(self) -> float:
        """Wait for a slot; returns when it was given, in seconds of the event loop's clock.

        Raises TurnedAway once there is no use in waiting.
        """
        loop = asyncio.get_running_loop()
        if self._waiting or not self._free():
            future = loop.create_future()
            self._waiting.append(future)
            try:
                if not await future:
                    raise TurnedAway
            except asyncio.CancelledError:
                if future.done() and not future.cancelled() and future.result():
                    self._give_back()
                raise
        else:
            self._active += 1
        return loop.time()

    def leave(self, entered: float, *, answered: bool, overload: bool) -> None:
        """Give the slot back; tells whether the server answered, or was overloaded."""
        now = asyncio.get_running_loop().time()
        if overload:
            self._halve(entered, now)
        elif answered:
            self._grow(now - entered)
        self._give_back()

    def pause(self, seconds: float) -> None:
        """Give out no slot before the seconds have passed; a longer pause stays."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if until > self._resume_at:
            self._resume_at = until
            loop.call_at(until, self._wake)

    def turn_away(self) -> None:
        """Let nobody wait any longer: there is another server."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(False)

    def _free(self) -> bool:
        now = asyncio.get_running_loop().time()
        return now + EARLY >= self._resume_at and self._active < int(self.limit)

    def _give_back(self) -> None:
        self._active -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._free():
            future = self._waiting.popleft()
            if not future.done():
                # the slot is the waiter's from now on: nobody can take it before it runs
                self._active += 1
                future.set_result(True)

    def _halve(self, entered: float, now: float) -> None:
        if entered > self._halved_at:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = now
            self._doubling = False

    def _grow(self, latency: float) -> None:
        if math.isinf(self._recent):
            self._recent = latency
        self._recent += SMOOTHING * (latency - self._recent)
        self._best = min(self._best * FORGETTING, self._recent)
        used = self._active >= int(self.limit)
        if used and self._recent <= TOLERANCE * self._best:
            step = 1.0 if self._doubling else 1.0 / self.limit
            self.limit = min(float(self._most), self.limit + step)
