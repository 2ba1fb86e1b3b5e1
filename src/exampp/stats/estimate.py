"""What every statistic returns: a number with its interval, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic; None where it is undefined, and `reason` then says why.

    `low` and `high` bound its confidence interval. They are None where there is none: because
    none was asked for, or for the reason that `no_interval` gives.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    no_interval: str = ""


def undefined(reason: str) -> Estimate:
    """A statistic that is undefined, because ..."""
    return Estimate(None, reason=reason)


def around(value: float, half: float, largest: float, why_none: str) -> Estimate:
    """value +- half, cut to what is possible: nothing beyond -largest and largest.

    Where it would hold all that is possible it says nothing: there is none, `why_none`.
    """
    low, high = value - half, value + half
    if math.isinf(half) or (low <= -largest and high >= largest):
        return Estimate(value, no_interval=why_none)
    return Estimate(value, max(-largest, low), min(largest, high))
