"""What every statistic returns: a number with its interval, or the reason why there is none."""

from __future__ import annotations

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
