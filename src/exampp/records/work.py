"""The progress of grading or generation, as the terminal's bar and the pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exampp.records.wording import duration

LATEST = 5
"""Replies that a run remembers to show."""


class LatestReply(NamedTuple):
    """One of the newest replies: its query and item, its text or fault, and what was read."""

    query: str
    item: str
    text: str
    read: str


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """Progress of a run of a model, at its last commit.

    Attributes:
        unit: What is counted: cells, or requests.
        seconds: Duration so far.
        tokens_read: Input tokens; 0 if the backend does not count them.
        cost: Cost so far; None without prices.
        failed: Number of units without a result, by kind of failure.
        latest: The newest replies, newest first.
        ended: The run is over, so that no time remains.
    """

    unit: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    requests: int = 0
    tokens_read: int = 0
    tokens_written: int = 0
    cost: float | None = None
    failed: Mapping[str, int] = field(default_factory=dict)
    latest: Sequence[LatestReply] = ()
    ended: bool = False

    @property
    def all_failed(self) -> bool:
        """Return whether something was done, and all of it failed."""
        return 0 < self.done == sum(self.failed.values())

    @property
    def rate(self) -> float:
        """Return the units done per second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def remaining(self) -> float | None:
        """Return the expected seconds to the end; None before the first result and at the end."""
        return (self.total - self.done) / self.rate if self.rate and not self.ended else None

    @property
    def facts(self) -> list[str]:
        """Return the rate, the remaining time, tokens, cost and failures, as far as known."""
        facts = []
        if self.rate:
            per, rate = ("s", self.rate) if self.rate >= 1 else ("min", 60 * self.rate)
            facts.append(f"{rate:.{1 if rate < 10 else 0}f} {self.unit}/{per}")
        if self.remaining and self.done < self.total:
            facts.append(f"{duration(self.remaining)} left")
        if self.tokens_read:
            facts.append(f"{self.tokens_read:,} tokens read, {self.tokens_written:,} written")
        if self.cost is not None:
            facts.append(f"cost {self.cost:.4g}")
        return facts + [f"{count:,} {kind}" for kind, count in self.failed.items()]
