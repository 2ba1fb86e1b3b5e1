"""Confidence intervals of shares and of counts of disagreements.

Sources: Wilson 1927 (the score interval of a share); Newcombe 1998, method 10 (the difference of
two independent shares); Agresti 2013, section 11.1 (the difference of discordant counts, as in the
test by McNemar 1947); Cochran 1977 (a share of a finite population).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from exampp.stats.estimate import LEVEL, Estimate, Floats, undefined
from exampp.stats.means import student_quantile

Limits = tuple[float, float]

Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""The normal quantile of a 95 % interval."""

_UNSEEN = 1 / 3
"""Queries that may differ most from those seen, added to the variance of a mean of shares."""


def share_interval(count: int, of: int) -> Estimate:
    """Return a share with its Wilson interval; undefined `of` nothing."""
    if not of:
        return undefined("there are none")
    return Estimate(count / of, *_wilson(count / of, Z * Z / of))


def finite_share_limits(share: float, drawn: float, of: float) -> Limits:
    """Return Wilson limits of a share of a finite population, of which some units were drawn.

    The number of drawn units is divided by the share that was not drawn, by which the variance of a
    sample without replacement is smaller. Source: Cochran 1977, Sampling Techniques, section 2.6.
    """
    if drawn >= of:
        return share, share
    n = drawn * (of - 1) / (of - drawn)
    low, high = _wilson(share, Z * Z / n)
    return max(0.0, low), min(1.0, high)


def mean_share(values: Floats, level: float = LEVEL) -> Estimate:
    """Return the mean of shares, one per query, with a Wilson interval for all queries like these.

    The number of trials is the effective one, which a binomial share with the variance of the
    values would have, and at least the number of queries. `_UNSEEN` queries are added to this
    variance, with the value 0 for the lower limit and 1 for the upper one, because few queries may
    show no rare one that fails, or succeeds. The quantile is Student's.
    `benchmarks/bank_matches.py` measures the coverage. Sources: Korn and Graubard 1998 (the
    effective number of trials); Franco et al. 2019 (Wilson intervals with it).
    """
    n = len(values)
    if not n:
        return undefined("no query counts")
    value = math.fsum(values.tolist()) / n
    if n == 1:
        return Estimate(value, no_interval="only 1 query counts")
    squares = float(((values - value) ** 2).sum())
    square = student_quantile(level, n - 1) ** 2
    low = _wilson(value, square / _effective(n, value, squares, 0.0))[0]
    high = _wilson(value, square / _effective(n, value, squares, 1.0))[1]
    return Estimate(value, max(0.0, min(value, low)), min(1.0, max(value, high)))


def _effective(n: int, value: float, squares: float, end: float) -> float:
    """Return the effective number of trials, if `_UNSEEN` queries have the value `end`."""
    spread = (squares + _UNSEEN * n / (n + _UNSEEN) * (value - end) ** 2) / (n - 1 + _UNSEEN)
    return max(float(n), n * value * (1 - value) / spread) if spread else float(n)


def _wilson(value: float, spread: float) -> Limits:
    center = (value + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (value * (1 - value) + spread / 4)) / (1 + spread)
    return center - half, center + half


def share_difference(one: Estimate, other: Estimate) -> Estimate:
    """Return the difference of two shares with Newcombe's interval."""
    if one.value is None or other.value is None:
        return undefined(one.reason or other.reason)
    value = one.value - other.value
    return Estimate(
        value,
        value - math.hypot(_below(one), _above(other)),
        value + math.hypot(_above(one), _below(other)),
    )


def count_difference(more: int, less: int) -> Estimate:
    """Return the difference of two counts of disagreements with its interval."""
    half = Z * math.sqrt(more + less)
    return Estimate(more - less, more - less - half, more - less + half)


def _below(one: Estimate) -> float:
    return (one.value or 0.0) - (one.low or 0.0)


def _above(one: Estimate) -> float:
    return (one.high or 0.0) - (one.value or 0.0)
