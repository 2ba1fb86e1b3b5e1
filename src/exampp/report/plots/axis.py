"""An axis that one outlier does not own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TICKS = 6
_FAR = 3.0
"""A mean further from the middle half than this many times its width is left off the axis."""


class Spread(NamedTuple):
    """A score and its spread, such as one standard error or an interval; None is undefined."""

    system: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Axis(NamedTuple):
    """Where an axis starts and ends, and its ticks."""

    start: float
    end: float
    ticks: tuple[float, ...]


def axis_of(found: Sequence[Spread]) -> Axis:
    """An axis with round numbers that hold nearly all bars.

    A system far from all others must not press them together; it is left beyond the edge.
    """
    means = sorted(one.value for one in found if one.value is not None)
    if not means:
        return Axis(0.0, 1.0, (0.0, 1.0))
    lower, upper = means[len(means) // 4], means[(3 * len(means)) // 4]
    reach = _FAR * (upper - lower)
    ends = [
        end
        for one in found
        if one.value is not None and lower - reach <= one.value <= upper + reach
        for end in (one.value, one.low, one.high)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    step = next((s for s in _STEPS if (high - low) / s <= _TICKS - 1), (high - low) / _TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    ticks = tuple(round(i * step, 6) for i in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)
