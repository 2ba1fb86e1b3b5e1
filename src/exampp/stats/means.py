"""Means over queries with intervals, for systems and differences of systems.

Values in a known range get Gaffke's limits (`bounded_means`), which need no assumption about the
distribution and exist for any number of queries. Measures without a known range get Student's
interval, which assumes nearly normal means. The difference of two systems with identical rankings
is 0, with an interval of width 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from exampp.stats.estimate import Bools, Estimate, Floats, Indices, undefined

Range = tuple[float, float]

EXACT = 200
"""Maximum number of values for the exact distribution."""
_NEUTRAL = 1e-200
"""Coefficients below this are negligible."""
_NEAR = 1e-3
_FARTHEST = 40.0
_STEPS = 60
_CLOSE = 1e-10
_CELLS_AT_ONCE = 2_000_000
_COLUMNS = 256
"""Columns of which the recursion stays in the cache of a processor."""


class MeanLimits(NamedTuple):
    """Interval bounds of means, and two-sided p-values for a mean of 0, by row."""

    low: Floats
    high: Floats
    p: Floats


def bounded_means(values: Floats, counts: Bools, within: Range, level: float) -> MeanLimits:
    """Return Gaffke's limits of the mean of every row, at (1 - level) / 2 on either side.

    Args:
        values: Rows x queries.
        counts: Which of them count. A row without values gets the whole range.
        within: The smallest and the largest possible value.
        level: The level of the interval, such as 0.95.

    Gaffke's limits: with the values x_1 ... x_n in [a, b] and weights (w_0 ... w_n) that are
    uniform on the simplex, the lower limit is the alpha / 2 quantile of w_0 a + sum w_i x_i, and
    the upper one the 1 - alpha / 2 quantile of w_0 b + sum w_i x_i. They need no distribution and
    no resampling. For values 0 and 1 they equal the limits of Clopper and Pearson, so n values of 1
    have the lower limit (alpha / 2)^(1 / n). Their validity for every distribution is conjectured;
    `benchmarks/statements.py` measures it.

    The distribution of such a mean is that of a sum of exponential variables with coefficients c_i
    = x_i - t. The probability that J positive and K negative ones sum to at most 0 follows from a
    lattice recursion of positive terms. Above `EXACT` values, the saddlepoint approximation of
    Barndorff-Nielsen (r*) is used; its limits differ from the exact ones by less than 1 % of their
    distance to the mean.

    Sources: Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the
    mean of a nonnegative variable; Learned-Miller and Thomas (2019), A new confidence interval for
    the mean of a bounded random variable; Phan, Thomas and Learned-Miller (ICML 2021), Towards
    practical mean bounds for small samples; Varsi (1973) and Ali (1973) for the recursion; Butler
    (2007), Saddlepoint Approximations with Applications.
    """
    lowest, highest = within
    low, high, p = np.empty((3, len(values)))
    for start in range(0, len(values), step := max(1, _CELLS_AT_ONCE // (values.shape[1] + 1))):
        rows = slice(start, start + step)
        scaled = np.where(counts[rows], (values[rows] - lowest) / (highest - lowest), np.nan)
        zero = -lowest / (highest - lowest)
        lower, below = _lower(scaled, (1 - level) / 2, zero)
        upper, above = _lower(1 - scaled, (1 - level) / 2, 1 - zero)
        low[rows] = lowest + (highest - lowest) * lower
        high[rows] = highest - (highest - lowest) * upper
        p[rows] = np.minimum(1.0, 2 * np.minimum(below, above))
    return MeanLimits(low, high, p)


def unseen_share(queries: int, level: float) -> float:
    """Return the upper limit of a share after `queries` observations without the event."""
    return 1 - math.pow((1 - level) / 2, 1 / queries)


def queries_for(margin: float, level: float) -> int:
    """Return the number of unchanged queries that excludes a maximum loss on a share `margin`."""
    return math.ceil(math.log((1 - level) / 2) / math.log1p(-margin))


def _lower(scaled: Floats, tail: float, zero: float) -> tuple[Floats, Floats]:
    """Return lower limits of values in [0, 1], and P(weighted mean <= `zero`).

    NaN marks values that do not count.
    """
    x = np.sort(np.hstack([np.zeros((len(scaled), 1)), np.clip(scaled, 0, 1)]), axis=1).T.copy()
    top = np.nanmax(x, axis=0)
    spread = top > 0
    limits, below = np.zeros(len(scaled)), np.ones(len(scaled))
    if spread.any():
        of = _exact if len(x) - 1 <= EXACT else _saddlepoint
        limits[spread], below[spread] = of(x[:, spread], top[spread], tail, zero)
    return limits, below


def _exact(x: Floats, top: Floats, tail: float, zero: float) -> tuple[Floats, Floats]:
    def excess(y: Floats, rows: Indices) -> Floats:
        chance = _chance_below(x[:, rows], top[rows] * np.exp(y))
        return np.log(np.maximum(chance, _NEUTRAL) / tail)

    below = np.zeros(len(top))
    if zero > 0:
        below = _chance_below(x, np.full(len(top), zero))
    limits = top * np.exp(_roots(excess, np.full(len(top), -_FARTHEST), np.zeros(len(top))))
    return limits, below


def _chance_below(x: Floats, t: Floats) -> Floats:
    """Return P(sum w_i x_i <= t) of every column of x; the weights are uniform on the simplex.

    x is ascending, NaN last; t > 0 = x[0].
    """
    c = x - t
    negative = np.fmax(-c[: (c < 0).sum(axis=0).max()], 0.0)[::-1]
    positive = np.fmax(c[(c <= 0).sum(axis=0).min() :], _NEUTRAL)
    blocks = (slice(start, start + _COLUMNS) for start in range(0, len(t), _COLUMNS))
    return np.concatenate(
        [_recursion(positive[:, one].copy(), negative[:, one].copy()) for one in blocks]
    )


def _recursion(positive: Floats, negative: Floats) -> Floats:
    """Return the probability that the terms of each column sum to at most 0."""
    n, m = len(positive), len(negative)
    # chances[j] is the probability for the first j positive and k negative terms, on diagonal j + k
    chances = np.zeros((n + 1, positive.shape[1]))
    chances[0] = 1.0
    for diagonal in range(2, n + m + 1):
        low, high = max(1, diagonal - m), min(n, diagonal - 1) + 1
        p, q = positive[low - 1 : high - 1], negative[m - diagonal + low : m - diagonal + high]
        chances[low:high] = (q * chances[low - 1 : high - 1] + p * chances[low:high]) / (p + q)
    return np.asarray(chances[n], np.float64)


def _saddlepoint(x: Floats, top: Floats, tail: float, zero: float) -> tuple[Floats, Floats]:
    """Approximate `_exact` by the saddlepoint u = -exp(-y); t is an explicit function of it."""
    low, high = np.full(len(top), -_FARTHEST), np.full(len(top), _FARTHEST)
    normal = NormalDist()
    z = normal.inv_cdf(tail)

    def excess(y: Floats, rows: Indices) -> Floats:
        return _tilted(x[:, rows], y)[1] - z

    def beyond_zero(y: Floats, rows: Indices) -> Floats:
        return np.log(_tilted(x[:, rows], y)[0] / zero)

    limits = _tilted(x, _roots(excess, low, high))[0]
    below = np.full(len(top), float(zero > 0))
    if zero > 0 and (rows := np.flatnonzero(np.nanmean(x, axis=0) > zero)).size:
        at = _roots(lambda y, some: beyond_zero(y, rows[some]), low[rows], high[rows])
        below[rows] = [normal.cdf(r) for r in _tilted(x[:, rows], at)[1].tolist()]
    return limits, below


def _tilted(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return (t, r*) of every column at the saddlepoint: P(sum w_i x_i <= t) = P(normal <= r*)."""
    u = -np.exp(-y)
    scale = 1 / (1 - x * u)
    t = np.nansum(x * scale, axis=0) / np.nansum(scale, axis=0)
    # cumulant function and its second derivative at s = u / (1 - t u)
    cumulant = np.isfinite(x).sum(axis=0) * np.log1p(-t * u) + np.nansum(np.log(scale), axis=0)
    curvature = np.nansum(((x - t) * scale) ** 2, axis=0) * (1 - t * u) ** 2
    r = -np.sqrt(np.maximum(-2 * cumulant, _NEUTRAL))
    q = u / (1 - t * u) * np.sqrt(curvature)
    return t, np.where(r < -_NEAR, r + np.log(q / r) / r, r)


def _roots(excess: Callable[[Floats, Indices], Floats], low: Floats, high: Floats) -> Floats:
    """Find the root of an increasing function in every row (Ridders 1979)."""
    low, high, zero = low.copy(), high.copy(), (low + high) / 2
    rows = np.arange(len(low))
    at_low, at_high = excess(low, rows), excess(high, rows)
    for _ in range(_STEPS):
        middle = (low[rows] + high[rows]) / 2
        here = excess(middle, rows)
        root = np.sqrt(here**2 - at_low[rows] * at_high[rows])
        zero[rows] = middle - (middle - low[rows]) * here / root
        there = excess(zero[rows], rows)
        for at, value in ((middle, here), (zero[rows], there)):
            up, down = rows[value >= 0], rows[value < 0]
            closer = at[value >= 0] < high[up]
            high[up[closer]], at_high[up[closer]] = (
                at[value >= 0][closer],
                value[value >= 0][closer],
            )
            closer = at[value < 0] > low[down]
            low[down[closer]], at_low[down[closer]] = (
                at[value < 0][closer],
                value[value < 0][closer],
            )
        rows = rows[np.abs(there) > _CLOSE]
        if not len(rows):
            break
    return zero


SHARE: Range = (0.0, 1.0)
DIFFERENCE: Range = (-1.0, 1.0)
"""The range of a difference of two shares."""
NO_RANGE = "the measure has no known range, and all queries have the same value"
ONE_QUERY = "the measure has no known range, and fewer than 2 queries count"

FEWEST_QUERIES = 4
"""Queries that intervals of corrected leaderboards need (`analysis.corrected`)."""

_ROUNDING = 1e-12
_HALVINGS = 60


class MeanTest(NamedTuple):
    """A mean over queries with its interval and the two-sided p-value for 0 (None: unavailable)."""

    estimate: Estimate
    p: float | None


def mean_tests(
    values: Floats, counts: Bools, within: Range | None, level: float
) -> tuple[MeanTest, ...]:
    """Return the mean of every row over the counted queries, with intervals.

    Args:
        values: Rows x queries.
        counts: Which of them count.
        within: The smallest and largest possible value; None if unknown.
        level: The level of the intervals, such as 0.95.
    """
    if within is None:
        return tuple(_student(row[use], level) for row, use in zip(values, counts, strict=True))
    return tuple(_bounded(values, counts, within, level))


def mean_test(values: Floats, within: Range | None, level: float = 0.95) -> MeanTest:
    """Return the mean of values, with its interval."""
    (test,) = mean_tests(values[None], np.ones((1, len(values)), np.bool_), within, level)
    return test


def _bounded(values: Floats, counts: Bools, within: Range, level: float) -> Iterator[MeanTest]:
    limits = bounded_means(values, counts, within, level)
    ends = zip(limits.low.tolist(), limits.high.tolist(), limits.p.tolist(), strict=True)
    counted = counts.sum(axis=1).tolist()
    for row, use, n, (low, high, p) in zip(values, counts, counted, ends, strict=True):
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
    """Return the two-sided quantile of Student's distribution at `level`."""
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def student_tail(t: float, freedom: int) -> float:
    """Return the two-sided tail probability of Student's distribution at t."""
    return max(0.0, 1 - _within(math.atan(abs(t) / math.sqrt(freedom)), freedom))


def _within(angle: float, freedom: int) -> float:
    """Return P(|t| <= sqrt(freedom) tan(angle)) (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@functools.lru_cache(maxsize=65536)
def rate(hits: int, of: int, level: float = 0.95) -> Estimate:
    """Return the rate of `hits` among `of` trials, with the Clopper-Pearson interval."""
    if of < 1:
        return undefined("there were no trials")
    return mean_test((np.arange(of) < hits).astype(np.float64), SHARE, level).estimate
