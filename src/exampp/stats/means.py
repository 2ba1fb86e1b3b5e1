"""Means over queries with their intervals: of systems, and of differences of two systems.

Values in a known range have Gaffke's limits (`bounded_means`): they assume nothing of the shape,
and exist for any number of queries. A measure without a known range has Student's interval, which
assumes that means of so many queries are nearly normal. A difference of two systems that returned
the same passages is 0, and so is the width of its interval.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.bounded_means import Range, bounded_means
from exampp.stats.estimate import Estimate, undefined

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SHARE: Range = (0.0, 1.0)
DIFFERENCE: Range = (-1.0, 1.0)
"""The range of a difference of two shares."""
NO_RANGE = "the measure has no known range, and its values are the same on every query"
ONE_QUERY = "the measure has no known range, and fewer than 2 queries count"

FEWEST_QUERIES = 4
"""Queries that intervals of corrected leaderboards need (`analysis.corrected`)."""

_ROUNDING = 1e-12
_HALVINGS = 60


class MeanTest(NamedTuple):
    """A mean over queries with its interval, and the two-sided p-value of 0 (None: it has none)."""

    estimate: Estimate
    p: float | None


def mean_tests(
    values: Floats, counts: Bools, within: Range | None, level: float
) -> tuple[MeanTest, ...]:
    """Return the mean of every row over the queries that count.

    Args:
        values: Rows x queries.
        counts: Which of them count.
        within: The smallest and largest possible value; None where these are not known.
        level: The level of the intervals, such as 0.95.
    """
    if within is None:
        return tuple(_student(row[use], level) for row, use in zip(values, counts, strict=True))
    return tuple(_bounded(values, counts, within, level))


def mean_test(values: Floats, within: Range | None, level: float = 0.95) -> MeanTest:
    """Return the mean of one row of values, all of which count."""
    (found,) = mean_tests(values[None], np.ones((1, len(values)), np.bool_), within, level)
    return found


def _bounded(values: Floats, counts: Bools, within: Range, level: float) -> Iterator[MeanTest]:
    limits = bounded_means(values, counts, within, level)
    ends = zip(limits.low.tolist(), limits.high.tolist(), limits.p.tolist(), strict=True)
    for row, use, (low, high, p) in zip(values, counts, ends, strict=True):
        n = int(use.sum())
        if n == 0:
            yield MeanTest(undefined("no query counts"), None)
            continue
        mean = math.fsum(row[use].tolist()) / n
        yield MeanTest(Estimate(mean, min(low, mean), max(high, mean)), p)


def _student(values: Floats, level: float) -> MeanTest:
    n = len(values)
    if n == 0:
        return MeanTest(undefined("no query counts"), None)
    mean = math.fsum(values.tolist()) / n
    if n == 1:
        return MeanTest(Estimate(mean, no_interval=ONE_QUERY), None)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    if error <= _ROUNDING * float(np.abs(values).max()):
        return MeanTest(Estimate(mean, no_interval=NO_RANGE), None)
    half = student_quantile(level, n - 1) * error
    return MeanTest(Estimate(mean, mean - half, mean + half), student_tail(mean / error, n - 1))


@functools.lru_cache(maxsize=256)
def student_quantile(level: float, freedom: int) -> float:
    """The t within which `level` of Student's distribution lies, on both sides of 0."""
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def student_tail(t: float, freedom: int) -> float:
    """The share of Student's distribution that is at least as far from 0 as t, on both sides."""
    return max(0.0, 1 - _within(math.atan(abs(t) / math.sqrt(freedom)), freedom))


def _within(angle: float, freedom: int) -> float:
    """P(|t| <= sqrt(freedom) tan(angle)), a finite sum (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
