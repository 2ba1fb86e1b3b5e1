"""Bootstrap over queries: the same resamples for everything that is compared.

A resample draws as many queries as there are, with replacement, and is kept as the number of times
each query was drawn; all systems and measures see the same draws, so differences are paired.

The interval of a difference (and of a mean that is no share: see `means`) is the symmetric
studentised bootstrap: mean +- q * standard error, with q from how far the means of resamples are
from the mean, in their own standard errors. Its two-sided test is the paired bootstrap test of IR.
Unlike Student's t and the percentile bootstrap it keeps its coverage where values are skewed and
most differences are 0 (`benchmarks/coverage_significance.py`).

Sources: Hall, *The Bootstrap and Edgeworth Expansion* (1992), 3.6; Efron and Tibshirani, *An
Introduction to the Bootstrap* (1993), ch. 16; Sakai, *Evaluating Evaluation Metrics based on the
Bootstrap* (SIGIR 2006).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.outside import check_whole

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SAMPLES = 2000
FEWEST_SAMPLES = 50
"""An interval of 95 % takes the two or three most extreme of so many; of fewer, only noise."""
MOST_DRAWS = 1_000_000
"""Resamples, permutations or halves at most: something is kept of each, for every pair or query."""
LEVEL = 0.95

_NO_SPREAD = 1e-12
"""Relative to the largest squared deviation: what is left of a variance of 0 after rounding."""

_CELLS_AT_ONCE = 1_000_000


def check_draws(samples: int, seed: int) -> None:
    """Raise InputError for numbers that no bootstrap is made of."""
    check_whole("samples", samples, FEWEST_SAMPLES, MOST_DRAWS)
    check_whole("the seed", seed, 0)


@dataclass(frozen=True, slots=True)
class BootstrapMeans:
    """Mean, standard error, interval and two-sided p-value (that the mean is 0) per row.

    `defined` is False where fewer than 2 queries count or their values are all equal: standard
    error, interval and p-value have no meaning there. `half` is half the width of the interval,
    infinite where too many resamples have no spread, as when a single value differs.
    """

    mean: Floats
    stderr: Floats
    half: Floats
    p: Floats
    defined: Bools


@functools.lru_cache(maxsize=16)
def draw_queries(queries: int, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """How often each query was drawn, [samples, queries]; each row sums to `queries`.

    Only for reading: who asks again is given the same.
    """
    drawn = np.zeros((samples, 0))
    if queries:
        random = np.random.default_rng(seed)
        shares = np.full(queries, 1 / queries)
        drawn = random.multinomial(queries, shares, samples).astype(np.float64)
    drawn.flags.writeable = False
    return drawn


def resampled_means(values: Floats, counts: Bools, draws: Floats) -> tuple[Floats, Bools]:
    """Means of every system in every resample, and where they are defined: [samples, systems].

    `values` and `counts` are systems x queries (see `evaluate.values.Values`): a query that does
    not count for a system leaves its mean. A mean without queries is 0 and undefined.
    """
    sums = draws @ np.where(counts, values, 0.0).T
    used = draws @ counts.T.astype(np.float64)
    defined = used > 0
    return np.divide(sums, used, out=np.zeros(sums.shape), where=defined), defined


def bootstrap_means(
    values: Floats, counts: Bools, draws: Floats, level: float = LEVEL
) -> BootstrapMeans:
    """The mean of every row over the queries that count, with its studentised interval.

    `values` and `counts` are rows x queries, rows being systems or differences of two systems;
    `draws` come from `draw_queries`. The p-value is (b + 1) / (samples + 1), b counting the
    resamples that are as far from the mean as that is from 0.
    """
    n = counts.sum(axis=1)
    mean = np.where(counts, values, 0.0).sum(axis=1) / np.maximum(n, 1)
    centred = np.where(counts, values - mean[:, None], 0.0)
    squares = centred**2
    stderr = np.sqrt(squares.sum(axis=1) / np.maximum(n - 1, 1) / np.maximum(n, 1))
    # Values that are equal in truth may differ in their last digits.
    size = np.abs(np.where(counts, values, 0.0)).max(axis=1, initial=0.0)
    defined = (n > 1) & (stderr > _NO_SPREAD * size)
    half, p = np.zeros(len(values)), np.ones(len(values))
    rows = np.flatnonzero(defined)
    for block in np.array_split(rows, -(-len(rows) * len(draws) // _CELLS_AT_ONCE) or 1):
        distance = _distances(centred[block], squares[block], counts[block], draws)
        own = np.abs(mean[block]) / stderr[block]
        # Less its rounding, so that a resample exactly as far counts.
        p[block] = ((distance >= own * (1 - 1e-9)).sum(axis=0) + 1) / (len(draws) + 1)
        half[block] = _quantile(distance, level) * stderr[block]
    return BootstrapMeans(mean, np.where(defined, stderr, 0.0), half, p, defined)


def _distances(centred: Floats, squares: Floats, counts: Bools, draws: Floats) -> Floats:
    """How far the mean of each resample is from 0 in its standard errors, [samples, rows]."""
    # mostly the same queries count for all
    alike = bool((counts == counts[:1]).all())
    used = draws @ (counts[:1] if alike else counts).T.astype(np.float64)
    mean = np.abs(draws @ centred.T) / np.maximum(used, 1)
    variance = draws @ squares.T / np.maximum(used, 1) - mean**2
    largest = squares.max(axis=1, initial=0.0)
    spread = (used > 1) & (variance > _NO_SPREAD * largest)
    stderr = np.sqrt(np.where(spread, variance, 1) / np.maximum(used - 1, 1))
    still = mean <= np.sqrt(_NO_SPREAD * largest)
    return np.where(spread, mean / stderr, np.where(still & (used > 1), 0.0, np.inf))


def _quantile(distances: Floats, level: float) -> Floats:
    """The order statistic that `level` of the samples do not exceed, by column."""
    place = math.ceil(round(level * (len(distances) + 1), 9)) - 1
    if place >= len(distances):
        return np.full(distances.shape[1], np.inf)
    quantile: Floats = np.partition(distances, place, axis=0)[place]
    return quantile
