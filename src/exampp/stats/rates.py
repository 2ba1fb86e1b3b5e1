"""Rates and their differences: how often something happens, and how much more often than beside it.

Sources: Brown, Cai and DasGupta, "Interval estimation for a binomial proportion" (Statistical
Science 2001) for Jeffreys' interval; the incomplete beta function by its continued fraction,
Abramowitz and Stegun 26.5.8, here in the form of Lentz.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Estimate, around, undefined
from exampp.stats.means import ALL_EQUAL, student_quantile, student_tail

_HALVINGS = 60
_TERMS = 500
_TINY = 1e-300
_EXACT = 1e-15


class MeanDifference(NamedTuple):
    """A mean over queries with its interval, and the p-value of 0 (None: it has none)."""

    estimate: Estimate
    p: float | None


def mean_difference(values: NDArray[np.float64], level: float = 0.95) -> MeanDifference:
    """The mean of differences, one a query, with Student's t on n - 1 degrees of freedom.

    Differences lie between -1 and 1, and so does the interval. There is none for one query, and
    where all differences are equal: nothing tells how far other queries are from them. The p-value
    is then that of the signs alone: all of them fall on one side by chance in 2 of 2^n draws.
    """
    n = len(values)
    if n == 0:
        return MeanDifference(undefined("no query has both"), None)
    mean = math.fsum(values.tolist()) / n
    if n < 2:
        return MeanDifference(Estimate(mean, no_interval="there is one query"), None)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    if error <= _EXACT:
        p = 2.0 ** (1 - n) if abs(mean) > _EXACT else 1.0
        return MeanDifference(Estimate(mean, no_interval=ALL_EQUAL), p)
    half = student_quantile(level, n - 1) * error
    found = around(mean, half, 1.0, "it holds all that is possible")
    return MeanDifference(found, student_tail(mean / error, n - 1))


@functools.lru_cache(maxsize=65536)
def jeffreys(hits: int, of: int, level: float = 0.95) -> Estimate:
    """The rate of `hits` among `of` trials, with Jeffreys' interval: Beta(hits + 1/2, rest + 1/2).

    It begins at 0 where nothing hit, and ends at 1 where everything did.
    """
    if of < 1:
        return undefined("nothing was tried")
    outside = (1 - level) / 2
    a, b = hits + 0.5, of - hits + 0.5
    low = 0.0 if hits == 0 else beta_quantile(outside, a, b)
    high = 1.0 if hits == of else beta_quantile(1 - outside, a, b)
    return Estimate(hits / of, low, high)


def by_luck(rate: float, k: int) -> float:
    """The chance that one of k passages covers an item that each covers at this rate."""
    return 1 - (1 - rate) ** k


def beta_quantile(share: float, a: float, b: float) -> float:
    """The x below which `share` of Beta(a, b) lies."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if beta_below(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_below(x: float, a: float, b: float) -> float:
    """The share of Beta(a, b) below x: the regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / a * _continued(x, a, b)


def _continued(x: float, a: float, b: float) -> float:
    c, d = 1.0, _away(1 - (a + b) * x / (a + 1))
    d = 1 / d
    found = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            found *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return found


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
