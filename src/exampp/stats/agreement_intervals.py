"""Confidence intervals of agreement, clustered by query.

Passages of one query are judged by one person against one text, so they are no independent sample;
the queries are. Every statistic is a function of the sum of the queries' tables. Its standard error
comes from leaving out one query at a time, and the reach of the interval, in standard errors, from
resampling the queries: the value that |t| stays within in 95 % of the resamples (the symmetric
bootstrap-t). Student's t in its place covers too rarely, because the standard error of a kappa
falls with the kappa. Observed coverage: `benchmarks/coverage_agreement.py`.

Sources: Efron and Stein 1981 (jackknife); Hall 1988 (symmetric bootstrap-t).
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.stats.agreement import AgreementRows, Floats, Statistic, agreements, one
from exampp.stats.estimate import Estimate
from exampp.stats.resampling import LEVEL, draw_queries

ONE_QUERY = "there is only one query"
TOO_FEW_QUERIES = "too few queries differ"
NO_SPREAD = "the value stays the same whichever query is left out"
HANGS_ON_ONE = "without one of the queries the value is undefined"

SAMPLES = 1000
_STEP = 1e-5
"""Of the numerical derivative, relative to the count of a table."""
_ROUNDING = 1e-8
"""Standard errors below this are 0 but for rounding."""


def clustered(
    tables: ArrayLike, statistic: Statistic, *, level: float = LEVEL, samples: int = SAMPLES
) -> Estimate:
    """A statistic of the sum of the tables [queries, categories, categories], with its interval.

    Queries without a count do not count. The bounds stay within -1 and 1; an interval that holds
    all of that is none.
    """
    stack = np.asarray(tables, np.float64)
    total = stack.sum(axis=0)
    found = one(statistic, total)
    if found.value is None:
        return found
    stack = stack[stack.sum(axis=(1, 2)) > 0]
    if len(stack) == 1:
        return Estimate(found.value, no_interval=ONE_QUERY)
    without = agreements(statistic, total - stack)
    if not without.defined.all():
        return Estimate(found.value, no_interval=HANGS_ON_ONE)
    error = np.sqrt(np.square(without.values - without.values.mean()).sum() * _share(len(stack)))
    if error < _ROUNDING:
        return Estimate(found.value, no_interval=NO_SPREAD)
    ratios = _resampled_ratios(stack, statistic, found.value, samples)
    reach = float(np.quantile(ratios, level, method="higher") * error)
    low, high = found.value - reach, found.value + reach
    if low <= -1 and high >= 1:
        return Estimate(found.value, no_interval=TOO_FEW_QUERIES)
    return Estimate(found.value, max(-1.0, low), min(1.0, high))


def _resampled_ratios(stack: Floats, statistic: Statistic, value: float, samples: int) -> Floats:
    """|value of a resample - value| in standard errors of the resample; infinite if undefined."""
    queries, size, _ = stack.shape
    draws, back = _distinct_draws(queries, samples)
    tables = (draws @ stack.reshape(queries, -1)).reshape(-1, size, size)
    found = agreements(statistic, tables)
    influence = _influence(tables, stack, statistic, found)
    errors = np.sqrt((draws * influence**2).sum(axis=1) / _share(queries))
    usable = found.defined & (errors > _ROUNDING)
    apart = np.abs(found.values - value)
    ratios: Floats = np.divide(apart, errors, out=np.full(len(tables), np.inf), where=usable)
    return ratios[back]


def _influence(tables: Floats, stack: Floats, statistic: Statistic, found: AgreementRows) -> Floats:
    """How a statistic of each table changes with the weight of each query, [tables, queries]."""
    cells = stack.reshape(len(stack), -1)
    counts = cells.sum(axis=1)
    units = np.eye(cells.shape[1])[cells.any(axis=0)]
    # one derivative by each query, or by each cell that counts: whichever are fewer
    if len(cells) < len(units):
        ways, parts = cells / counts[:, np.newaxis], np.diag(counts)
    else:
        ways, parts = units, cells @ units.T
    slopes = _slopes(tables, ways.reshape(-1, *stack.shape[1:]), statistic, found)
    influence: Floats = slopes @ parts.T
    return influence


def _slopes(tables: Floats, ways: Floats, statistic: Statistic, found: AgreementRows) -> Floats:
    """The derivative of a statistic, one count more in each of some ways, [tables, ways]."""
    steps = _STEP * tables.sum(axis=(1, 2))
    shifts = steps[:, np.newaxis, np.newaxis, np.newaxis] * ways
    centre = tables[:, np.newaxis]
    above, below = (agreements(statistic, centre + way * shifts).values for way in (1, -1))
    slopes: Floats = (above - below) / (2 * steps[:, np.newaxis])
    slopes[~found.defined] = 0
    return slopes


@functools.lru_cache(maxsize=16)
def _distinct_draws(queries: int, samples: int) -> tuple[Floats, NDArray[np.intp]]:
    """Each resample once, and which of them every sample is: of few queries many are alike."""
    draws, back = np.unique(draw_queries(queries, samples), axis=0, return_inverse=True)
    return draws, back.ravel()


def _share(queries: int) -> float:
    return (queries - 1) / queries
