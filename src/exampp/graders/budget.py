"""Requests, tokens and cost so far, and whether another request may be sent.

The number of requests is exact. The cost of a request without a reply is estimated from above: a
text has at most as many tokens as bytes, and a reply is at most as long as allowed. This amount is
reserved until the server reports the tokens, so `max_cost` is never exceeded. The reserve of a lost
request counts as spent, because it may have been billed.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from exampp.errors import InputError, Unfinished
from exampp.graders.base import TEMPLATE_TOKENS, Usage
from exampp.graders.options import OpenAIOptions

MILLION = 1_000_000


class Price(NamedTuple):
    """Prices per million tokens, in any currency."""

    read: float
    written: float
    cached: float

    @classmethod
    def of_options(cls, options: OpenAIOptions, share: float = 1.0) -> Price | None:
        """Return a fraction of the price in the options; cached tokens cost the same by default."""
        read, written, cached = options.price_read, options.price_written, options.price_cached
        if read is None or written is None:
            return None
        return cls(read * share, written * share, (read if cached is None else cached) * share)

    def cost(self, read: float, written: float, cached: float) -> float:
        """Return the cost of tokens, of which some that were read were `cached`."""
        fresh = read - cached
        return (fresh * self.read + cached * self.cached + written * self.written) / MILLION


@dataclass(slots=True)
class BudgetSpent:
    """Counters since the grader was created.

    `requests` counts all sent requests, including `probes` (which test the server's features) and
    `retries`. `cost` is an upper bound if a server reported no tokens. `lost` is the upper bound
    for interrupted requests that may have been billed.
    """

    requests: int = 0
    retries: int = 0
    probes: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    cost: float = 0.0
    lost: float = 0.0


class BudgetUsedUp(Unfinished):
    """A server cannot be tested further, because no further request is allowed."""


class Budget:
    """Counters and limits, shared by the threads that create and send requests.

    `share` is the paid fraction of the usual price.
    """

    def __init__(self, options: OpenAIOptions, share: float = 1.0) -> None:
        self._max_requests = options.max_requests
        self._max_cost = options.max_cost
        self._price = Price.of_options(options, share)
        self._lock = threading.Lock()
        self._spent = BudgetSpent()
        self._granted = 0
        self._reserved = 0.0
        self._largest = 0.0

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests and their cost, with lost ones at their upper bound; None without a price."""
        spent = self.spent
        return spent.requests, None if self._price is None else spent.cost + spent.lost

    @property
    def spent(self) -> BudgetSpent:
        """A copy of the counters."""
        with self._lock:
            return dataclasses.replace(self._spent)

    def worst(self, texts: Iterable[str], max_written: int | None) -> float:
        """Return the maximum cost of a request with these texts; 0 without a price."""
        if self._price is None:
            return 0.0
        read = TEMPLATE_TOKENS + sum(len(text.encode(errors="replace")) for text in texts)
        dearest = max(self._price.read, self._price.cached)
        return (read * dearest + (max_written or 0) * self._price.written) / MILLION

    def exhausted(self) -> str:
        """Return the reason why no further request is allowed; "" if one is."""
        with self._lock:
            return self._over_requests() or self._over_cost(self._largest)

    def reserve(self, worst: float, *, sent: bool = False) -> str:
        """Grant a request and reserve its cost; return the reason if it exceeds a limit.

        Requests `sent` before are reserved regardless of the limit.
        """
        with self._lock:
            if sent:
                self._reserved += worst
                return ""
            self._largest = max(self._largest, worst)
            over = self._over_cost(worst)
            if not over:
                self._granted += 1
                self._reserved += worst
            return over

    def join(self) -> None:
        """Return the grant of a request that shares the request of another cell."""
        with self._lock:
            self._granted -= 1

    def check_possible(self) -> None:
        """Raise InputError if a single request exceeds the limit."""
        if self._max_cost is not None and self._largest > self._max_cost:
            raise InputError(
                f"a single request may cost {self._largest:.6g}, but max_cost is "
                f"{self._max_cost:g}",
                hint="Increase --max-cost or reduce --max-new-tokens",
            )

    def retry(self, worst: float, *, lost: bool) -> str:
        """Grant another request for a failed one; return the reason if a limit forbids it.

        `lost`: the failed request may have been billed; the reserve is for the next one.
        """
        with self._lock:
            cost = worst if lost else 0.0
            over = self._over_requests() or self._over_cost(cost)
            if not over:
                self._granted += 1
                self._spent.lost += cost
            return over

    def sent(self, *, retry: bool, probe: bool) -> None:
        """Count a request that is sent now."""
        with self._lock:
            self._spent.requests += 1
            self._spent.retries += retry and not probe
            self._spent.probes += probe
            self._granted += probe and not retry

    def lose(self, worst: float) -> None:
        """Count an abandoned request that was sent and may have been billed."""
        with self._lock:
            self._spent.lost += worst

    def release(self) -> None:
        """Return the grants and reserves of requests that will not be sent."""
        with self._lock:
            self._granted = self._spent.requests
            self._reserved = 0.0

    def settle(self, worst: float, usage: Usage | None = None, *, lost: bool = False) -> None:
        """Replace a reserve by the actual cost of a reply or a failure.

        Without reported tokens, the whole reserve counts as spent or lost.
        """
        with self._lock:
            self._reserved -= worst
            spent = self._spent
            if usage is None:
                spent.lost += worst if lost else 0.0
                spent.cost += 0.0 if lost else worst
                return
            spent.read += usage.read
            spent.cached += usage.cached
            spent.written += usage.written
            if self._price is not None:
                spent.cost += self._price.cost(usage.read, usage.written, usage.cached)

    def _over_requests(self) -> str:
        over = self._max_requests is not None and self._granted >= self._max_requests
        return f"max_requests: {self._max_requests} requests" if over else ""

    def _over_cost(self, worst: float) -> str:
        if self._max_cost is None:
            return ""
        sure = self._spent.cost + self._spent.lost + self._reserved
        if sure + worst <= self._max_cost and sure < self._max_cost:
            return ""
        return f"max_cost: {self._spent.cost + self._spent.lost:.6g} of {self._max_cost:g} spent"
