"""What was spent, and whether the next request may still be sent.

The number of requests is exact. Of a request that has not been answered only an upper bound of its
cost is known: no tokenizer makes more tokens than a text has bytes, and no reply is longer than it
may be. That much is held back until the server tells the tokens, so that `max_cost` is kept. A
request that was lost on the way may have been billed: it keeps what was held back for it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.graders.base import Usage

MILLION = 1_000_000
TEMPLATE_TOKENS = 64
"""Allowed for the chat template of a request, beyond the bytes of its texts."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices per million tokens, in any one currency; cached ones cost as others if not given."""

    read: float
    written: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """What these tokens cost, in that currency."""
        cached = self.read if self.cached is None else self.cached
        fresh = usage.read - usage.cached
        total = fresh * self.read + usage.cached * cached + usage.written * self.written
        return total / MILLION


@dataclass(slots=True)
class BudgetSpent:
    """Counters since the grader was made.

    `requests` counts all that were sent; among them `probes` were sent to find out what the server
    can do, and `retries` because the same had failed before. Tokens are those that servers told;
    `cost` is in the currency of the price, with an upper bound where a server told no tokens.
    `lost` is the upper bound for requests that were cut off and may have been billed.
    """

    requests: int = 0
    retries: int = 0
    probes: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    cost: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a grader may spend; `max_cost` in the currency of the price.

    Raises:
        InputError: `max_cost` without a price.

    """

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.max_cost is not None and self.price is None:
            raise InputError("max_cost needs a price", mend="Give the price per million tokens")


class Budget:
    """Counters and limits, shared by the thread that pulls asks and the one that sends requests."""

    def __init__(self, limits: Limits) -> None:
        self._max_requests = limits.max_requests
        self._max_cost = limits.max_cost
        self._price = limits.price
        self._lock = threading.Lock()
        self._spent = BudgetSpent()
        self._granted = 0
        self._held = 0.0
        self._largest = 0.0

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests, and what they cost, lost ones at their upper bound; None without a price."""
        spent = self.spent
        return spent.requests, None if self._price is None else spent.cost + spent.lost

    @property
    def spent(self) -> BudgetSpent:
        """A copy of the counters."""
        with self._lock:
            return dataclasses.replace(self._spent)

    def worst(self, texts: Iterable[str], max_written: int | None) -> float:
        """The most that a request with these texts can cost; 0 without a price."""
        if self._price is None:
            return 0.0
        read = TEMPLATE_TOKENS + sum(len(text.encode(errors="replace")) for text in texts)
        dearest = max(self._price.read, self._price.cached or 0.0)
        return (read * dearest + (max_written or 0) * self._price.written) / MILLION

    def exhausted(self) -> str:
        """Why no further ask may be pulled now; empty if one may."""
        with self._lock:
            return self._over_requests() or self._over_cost(self._largest)

    def hold(self, worst: float) -> str:
        """Grant the request of an ask, and hold back its cost; the reason if that is too much."""
        with self._lock:
            self._largest = max(self._largest, worst)
            over = self._over_cost(worst)
            if not over:
                self._granted += 1
                self._held += worst
            return over

    def check_possible(self) -> None:
        """Raise InputError where a request that was to be sent costs more than all may."""
        if self._max_cost is not None and self._largest > self._max_cost:
            raise InputError(
                f"one request alone could cost {self._largest:.6g}, and max_cost is "
                f"{self._max_cost:g}",
                mend="Give a greater --max-cost, or a smaller --max-new-tokens",
            )

    def reserve(self, worst: float) -> None:
        """Hold back the cost of what was sent before: it is on its way, whatever the limit is."""
        with self._lock:
            self._held += worst

    def join(self) -> None:
        """Take back the grant of a request whose ask goes into another one."""
        with self._lock:
            self._granted -= 1

    def retry(self, worst: float, *, lost: bool) -> str:
        """Grant another request for what failed; the reason if it may not be sent.

        `lost` tells that the failed one may have been billed; what is still held is for the next.
        """
        with self._lock:
            gone = worst if lost else 0.0
            over = self._over_requests() or self._over_cost(gone)
            if not over:
                self._granted += 1
                self._spent.lost += gone
            return over

    def sent(self, *, retry: bool, probe: bool) -> None:
        """Count a request that goes out now."""
        with self._lock:
            self._spent.requests += 1
            self._spent.retries += retry and not probe
            self._spent.probes += probe
            self._granted += probe and not retry

    def lose(self, worst: float) -> None:
        """Count a request that was given up after it was sent: it may have been billed."""
        with self._lock:
            self._spent.lost += worst

    def forget(self) -> None:
        """Take back all that was granted and held for requests that will not be sent any more."""
        with self._lock:
            self._granted = self._spent.requests
            self._held = 0.0

    def settle(self, worst: float, usage: Usage | None = None, *, lost: bool = False) -> None:
        """Take back what was held, and count the tokens that a reply or a failure did cost.

        Where the server told none, the whole that was held counts as spent, or as lost.
        """
        with self._lock:
            self._held -= worst
            spent = self._spent
            if usage is None:
                spent.lost += worst if lost else 0.0
                spent.cost += 0.0 if lost else worst
                return
            spent.read += usage.read
            spent.cached += usage.cached
            spent.written += usage.written
            spent.cost += self._price.of(usage) if self._price else 0.0

    def _over_requests(self) -> str:
        over = self._max_requests is not None and self._granted >= self._max_requests
        return f"max_requests: {self._max_requests} requests" if over else ""

    def _over_cost(self, next_one: float) -> str:
        if self._max_cost is None:
            return ""
        sure = self._spent.cost + self._spent.lost + self._held
        if sure + next_one <= self._max_cost and sure < self._max_cost:
            return ""
        return f"max_cost: {self._spent.cost + self._spent.lost:.6g} of {self._max_cost:g} spent"
