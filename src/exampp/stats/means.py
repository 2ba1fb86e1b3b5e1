"""Intervals of means over queries of values between 0 and 1: Cover, nDCG, P@k, AP, RR ...

mean +- t * standard error leaves the range where queries are few, and holds the true mean too
rarely where values are skewed. So the interval is made on the scale of log(m / (1 - m)), on which
the standard error is that of the mean over m (1 - m), and is taken back: it stays between 0 and 1,
is longer on the side where there is room, and has Student's t with n - 1 degrees of freedom. These
are the logit limits that survey statistics gives for proportions (SUDAAN, SAS SURVEYFREQ, `xlogit`
of R's `survey`). How often they hold: `benchmarks/coverage_means.py`.

Source: Korn and Graubard, *Analysis of Health Surveys* (Wiley 1999).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Estimate

FEWEST_QUERIES = 4
"""With 3, 95 % intervals of some measures held in 92.6 %, with 4 and more in 93.8 % or more."""
FEW_QUERIES = f"fewer than {FEWEST_QUERIES} queries count"
ALL_EQUAL = "its values are the same on every query"

_ROUNDING = 1e-12
_HALVINGS = 60


def share_mean(
    values: NDArray[np.float64], level: float, *, fewest: int = FEWEST_QUERIES
) -> Estimate:
    """The mean of values between 0 and 1, one a query, with its interval.

    There is none where queries are so few that it would not hold as often as it says, and where all
    values are equal: nothing tells how far other queries are from them.
    """
    n = len(values)
    if n == 0:
        return Estimate(None, reason="no query counts", no_interval=FEW_QUERIES)
    mean = math.fsum(values.tolist()) / n
    if n < max(2, fewest):
        return Estimate(mean, no_interval=FEW_QUERIES)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    if error <= _ROUNDING or not 0 < mean < 1:
        return Estimate(mean, no_interval=ALL_EQUAL)
    middle = math.log(mean / (1 - mean))
    reach = student_quantile(level, n - 1) * error / (mean * (1 - mean))
    return Estimate(mean, _logistic(middle - reach), _logistic(middle + reach))


def _logistic(x: float) -> float:
    # of all forms the one that no x overflows
    return (1 + math.tanh(x / 2)) / 2


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
