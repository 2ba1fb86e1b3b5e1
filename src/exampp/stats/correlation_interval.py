"""How far a rank correlation depends on the choice of queries.

Its interval is for the mean of the correlation over exams of as many queries, drawn from where
these were: what such an exam shows on average. A measured correlation is without bias for it. It is
not for the correlation that endless queries would show: that is mostly higher, because the noise of
queries swaps systems, but it depends on differences between systems that no sample of queries
shows.

The resamples of a bootstrap hold the noise of the queries twice. So they are on average too low,
and spread too much or, where systems are nearly tied, too little. Their distribution gives the
shape of the interval alone; place and size are found without that noise:

- The place is the measured correlation.
- Two disjoint halves of the queries are two independent exams, and so are four quarters. How much
  they differ, over many random splits, gives the variance for a half and for a quarter of the
  queries. To what share it falls from quarters to halves, to that it is taken to fall from halves
  to the whole, though not much faster than that of a mean, and never to more.
- The size is widened as by Student's t with half as many degrees of freedom as there are queries.

How often such intervals hold the truth is measured by `benchmarks/interval_coverage.py`, and what
was found stands in `docs/definitions.md`.

Sources: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13; Politis, Romano
and Wolf, *Subsampling* (1999), ch. 8 (the rate from subsamples of two sizes); Abramowitz and Stegun
(1964), 26.7.5 (Student's t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.rank_correlation import CorrelationRows, Floats, settle_ties
from exampp.stats.resampling import draw_queries, resampled_means

FEWEST_SYSTEMS = 8
FEWEST_QUERIES = 8
"""With fewer there is no interval: they are too few to tell how far queries differ."""

PAIRED = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
"""The quarters of both halves, in every way."""

RESAMPLES_A_SPLIT = 4
FEWEST_SPLITS = 100
FASTEST = 2**-1.25
"""What the variance may fall to with twice the queries; that of a mean falls to a half.

It falls faster near a correlation of 1, but to take it so made intervals too narrow in simulations.
"""

ENOUGH = 0.5
"""Of the resamples, and of the splits, what at least must have a value."""

UNDEFINED = "it is undefined in too many resamples of the queries"
NO_SPREAD = "it is the same in nearly all resamples of the queries"
COMMONEST = 0.8
"""Of the resamples, what at most may have one value: the others say too little about the rest."""


class Draws(NamedTuple):
    """How often every query is taken in every sample: `weights`, samples x queries.

    First come `resamples` of as many queries, with replacement; then the four quarters of `splits`
    splits, [4, splits]; then the two halves of every way to pair the quarters, [3, 2, splits].
    """

    weights: Floats
    resamples: int
    splits: int

    def doublings(self) -> tuple[float, float]:
        """How often a quarter is to be doubled to give a half, and a half to give the whole."""
        queries = self.weights.shape[1]
        half = queries // 2
        return math.log2(half / (queries // 4)), math.log2(queries / half)


def draw(queries: int, samples: int, seed: int = 0) -> Draws:
    """Resamples of the queries, and splits into quarters and halves, of 4 queries or more.

    Of a number of queries that 4 does not divide each split leaves some out: quarters and halves
    have the same sizes throughout.
    """
    random = np.random.default_rng([seed, 1])  # other numbers than those of the resamples
    splits = max(FEWEST_SPLITS, -(-samples // RESAMPLES_A_SPLIT))
    order = random.permuted(np.tile(np.arange(queries), (splits, 1)), axis=1)

    def taken(begin: int, end: int) -> Floats:
        weights = np.zeros((splits, queries))
        np.put_along_axis(weights, order[:, begin:end], 1, axis=1)
        return weights

    size = queries // 4
    quarters = [taken(part * size, (part + 1) * size) for part in range(4)]
    more = queries // 2 - 2 * size  # 0 or 1
    spare = [taken(4 * size + side * more, 4 * size + (side + 1) * more) for side in range(2)]
    halves = [
        quarters[a] + quarters[b] + spare[side]
        for pair in PAIRED
        for side, (a, b) in enumerate(pair)
    ]
    every = np.concatenate([draw_queries(queries, samples, seed), *quarters, *halves])
    return Draws(every, samples, splits)


def resample(values: Floats, counts: NDArray[np.bool_], draws: Draws) -> Floats:
    """Scores of the systems in all samples, [rows of the draws, systems].

    `values` and `counts` are systems x queries (see `resampling.resampled_means`). Where no query
    counts for some system all scores are tied, so that no correlation is defined.
    """
    means, defined = resampled_means(values, counts, draws.weights)
    means[~defined.all(axis=1)] = 0
    return settle_ties(means)


def interval(
    statistic: Callable[[Floats], CorrelationRows],
    value: float,
    scores: Floats,
    draws: Draws,
    level: float,
) -> tuple[float, float] | str:
    """The interval around `value`, within -1 and 1, or why there is none.

    `statistic` takes scores [samples, systems]; `value` is that of all queries, `scores` come from
    `resample`. Samples in which it is undefined are left out, with all parts of their split.
    """
    found = statistic(scores)
    resamples = found.values[: draws.resamples][found.defined[: draws.resamples]]
    splits, whole = (
        part[draws.resamples :].reshape(10, draws.splits) for part in (found.values, found.defined)
    )
    splits = splits[:, whole.all(axis=0)]
    if len(resamples) < ENOUGH * draws.resamples or splits.shape[1] < ENOUGH * draws.splits:
        return UNDEFINED
    quarters, halves = splits[:4], splits[4:].reshape(3, 2, -1)
    of_quarters = float(quarters.var(axis=0, ddof=1).mean())
    of_halves = float(np.square(halves[:, 0] - halves[:, 1]).mean() / 2)
    commonest = np.unique(resamples, return_counts=True)[1].max()
    if commonest > COMMONEST * len(resamples) or not of_quarters or not of_halves:
        return NO_SPREAD
    to_half, to_whole = draws.doublings()
    share = min(max((of_halves / of_quarters) ** (1 / to_half), FASTEST), 1.0)
    variance = of_halves * share**to_whole
    size = math.sqrt(variance) * _widening(level, draws.weights.shape[1] / 2)
    ends = np.quantile(resamples, [(1 - level) / 2, (1 + level) / 2]) - resamples.mean()
    low, high = (float(value + size * end / resamples.std()) for end in ends)
    return max(-1.0, low), min(1.0, high)


def _widening(level: float, freedom: float) -> float:
    """How far Student's t reaches beyond a normal variable."""
    square = NormalDist().inv_cdf((1 + level) / 2) ** 2
    second = 5 * square**2 + 16 * square + 3
    return 1 + (square + 1) / (4 * freedom) + second / (96 * freedom**2)
