"""Rank correlation of two leaderboards: Spearman's rho, Kendall's tau-b and tau_AP, with intervals.

Ties get average ranks (Spearman) or are left out of the pairs (tau-b). Both are undefined if all
values of one side are equal. The `_rows` functions process many samples at once.

Means over queries are often exactly equal (P@20 is a multiple of 1/20) but differ in the last
computed digit, depending on the order of summation. Without correction, such ties would be broken
at random: Kendall's tau of P@20 changes by 0.01 on TREC DL 2019. `unite_ties` makes them equal.

Sources: Spearman 1904; Kendall 1945 (tau-b).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.errors import InputError
from exampp.stats.estimate import (
    Estimate,
    EstimateRows,
    Floats,
    Ints,
    draw_queries,
    resampled_means,
    undefined,
)

TIE_TOLERANCE = 1e-10
"""Tolerance relative to the largest score: above rounding errors, below relevant differences."""


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """The correlation of two leaderboards on shared `systems`."""

    spearman: Estimate
    kendall: Estimate
    systems: int


def spearman(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Spearman's rho of two aligned sequences."""
    return one_row(spearman_rows, x, y)


def kendall(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Kendall's tau-b of two aligned sequences."""
    return one_row(kendall_rows, x, y)


def spearman_rows(x: ArrayLike, y: ArrayLike) -> EstimateRows:
    """Return Spearman's rho of every row; x and y are [samples, n] or [n].

    Raises:
        ValueError: The shapes do not match.
    """
    a, b = (average_ranks(side) for side in paired_rows(x, y))
    middle = (a.shape[1] + 1) / 2
    a, b = a - middle, b - middle
    return _quotient((a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1))


def kendall_rows(x: ArrayLike, y: ArrayLike) -> EstimateRows:
    """Return Kendall's tau-b of every row; x and y are [samples, n] or [n].

    Compares all pairs, so rows should have at most a few thousand values.

    Raises:
        ValueError: The shapes do not match.
    """
    a, b = (ranks_within_rows(side) for side in paired_rows(x, y))
    together = agreement_above(a, b).sum(axis=1).astype(np.float64)
    return _quotient(together, _untied_pairs(a), _untied_pairs(b))


class RankPlaces(NamedTuple):
    """Ranks of values within rows, [samples, n]."""

    below: Ints
    """The number of smaller values."""
    size: Ints
    """The number of equal values, including itself."""


def ranks_within_rows(values: ArrayLike) -> RankPlaces:
    """Return the ranks of values within the rows of [samples, n]."""
    table = np.asarray(values, np.float64)
    samples, n = table.shape
    order = np.argsort(table, axis=1) + n * np.arange(samples)[:, np.newaxis]
    ordered = table.ravel()[order]
    begins = np.ones(table.shape, np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # groups of equal values in the flattened rows
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=table.size)
    below, size = np.empty(table.size, np.int64), np.empty(table.size, np.int64)
    below[order.ravel()] = np.repeat(starts % max(1, n), sizes)
    size[order.ravel()] = np.repeat(sizes, sizes)
    return RankPlaces(below.reshape(table.shape), size.reshape(table.shape))


def average_ranks(values: ArrayLike) -> Floats:
    """Return average ranks, from 1, within every row of [samples, n]."""
    places = ranks_within_rows(values)
    return places.below + (places.size + 1) / 2


def agreement_above(x: RankPlaces, y: RankPlaces) -> NDArray[np.int32]:
    """Return, for every value, concordant minus discordant pairs with the values above it in y.

    [samples, n]; values tied with it in x or in y count nothing. Its sum over a row is the number
    of concordant pairs less that of discordant ones.
    """
    # counts of smaller values have the order of the values, in fewer bytes
    n = x.below.shape[1]
    narrow = np.int16 if n < 2**15 else np.int32
    # one column per sample, for contiguous memory access
    a, b = (np.ascontiguousarray(side.below.T.astype(narrow)) for side in (x, y))
    counts = np.zeros((n, max(a.shape[1], b.shape[1])), np.int32)
    for apart in range(1, n):
        later_a, earlier_a = a[apart:], a[:-apart]
        later_b, earlier_b = b[apart:], b[:-apart]
        side = _less(later_a, earlier_a) - _less(earlier_a, later_a)
        counts[apart:] += side * _less(later_b, earlier_b)
        counts[:-apart] -= side * _less(earlier_b, later_b)
    return counts.T


def unite_ties(values: ArrayLike, tolerance: float = TIE_TOLERANCE) -> Floats:
    """Make values that differ only by rounding equal, within rows of [samples, n].

    In ascending order, values within `tolerance` times the largest magnitude of the row of their
    predecessor form a group and take its first value. NaN stays.
    """
    table = np.asarray(values, np.float64)
    if table.shape[1] == 0:
        return table
    finite = np.where(np.isfinite(table), np.abs(table), 0)
    slack = tolerance * finite.max(axis=1, keepdims=True)
    ordered = np.sort(table, axis=1)
    with np.errstate(invalid="ignore"):
        gaps = ordered[:, 1:] - ordered[:, :-1]
    # few rows have nearly equal values
    rows = ((gaps <= slack) & (gaps > 0)).any(axis=1)
    united = table.copy()
    if rows.any():
        united[rows] = _united(table[rows], slack[rows])
    return united


def _united(table: Floats, slack: Floats) -> Floats:
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    begins = np.ones(table.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        begins[:, 1:] = ~(ordered[:, 1:] - ordered[:, :-1] <= slack)
    first = np.maximum.accumulate(np.where(begins, np.arange(table.shape[1]), 0), axis=1)
    united = np.empty(table.shape)
    np.put_along_axis(united, order, np.take_along_axis(ordered, first, axis=1), axis=1)
    return united


def correlate(
    scores: Mapping[str, float],
    official_ranks: Mapping[str, float],
    *,
    tolerance: float = TIE_TOLERANCE,
) -> RankCorrelation:
    """Correlate scores (higher is better) with official ranks (1 is best), by system.

    Ranks may be tied or fractional. Scores that differ by no more than rounding are tied (see
    `unite_ties`; a tolerance of 0 disables this). A positive correlation means agreement.
    """
    both = [system for system in scores if system in official_ranks]
    x = unite_ties([[scores[system] for system in both]], tolerance)[0]
    y = [-official_ranks[system] for system in both]
    return RankCorrelation(spearman(x, y), kendall(x, y), len(both))


def round_as_printed(values: ArrayLike, decimals: int) -> Floats:
    """Round values as printed; trec_eval prints 4 decimals, which creates ties."""
    table = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = table * 10.0**decimals
        whole = np.rint(product)
        # products near a half, and large ones, may be rounded wrongly
        certain = (np.abs(np.abs(product - whole) - 0.5) > 1e-6) & (np.abs(product) < 2**30)
    rounded: Floats = whole / 10.0**decimals
    # correct rounding, like printf
    rounded[~certain] = [round(value, decimals) for value in table[~certain].tolist()]
    return rounded


def one_row(
    rows: Callable[[ArrayLike, ArrayLike], EstimateRows], x: ArrayLike, y: ArrayLike
) -> Estimate:
    """Apply one of the `_rows` functions to two sequences, with a reason if undefined.

    Raises:
        ValueError: The shapes do not match.
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"the sequences must have equal length, not {a.shape} and {b.shape}")
    if len(a) < 2:
        return undefined(f"fewer than 2 systems to compare ({len(a)})")
    if np.isnan(a).any() or np.isnan(b).any():
        return undefined("a value is not a number")
    value = rows(a, b).at(0)
    return undefined("all values of one side are equal") if value is None else Estimate(value)


def paired_rows(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Broadcast both sides to [samples, n].

    Raises:
        ValueError: The shapes do not match.
    """
    a, b = (np.atleast_2d(np.asarray(side, np.float64)) for side in (x, y))
    if (
        a.shape[1:] != b.shape[1:]
        or a.ndim != 2
        or (len(a) != len(b) and 1 not in (len(a), len(b)))
    ):
        raise ValueError(f"rows of {a.shape} and {b.shape} cannot be compared")
    return a, b


def _less(a: NDArray[np.signedinteger], b: NDArray[np.signedinteger]) -> NDArray[np.int8]:
    return (a < b).view(np.int8)


def _untied_pairs(of: RankPlaces) -> Floats:
    n = of.size.shape[1]
    return np.asarray((n * n - of.size.sum(axis=1)) / 2, np.float64)


def _quotient(together: Floats, own_a: Floats, own_b: Floats) -> EstimateRows:
    size = np.sqrt(own_a * own_b)
    together, size = np.broadcast_arrays(together, size)
    defined = size > 0
    values = np.divide(together, size, out=np.zeros(size.shape), where=defined)
    # rounding may push a perfect correlation slightly above 1
    return EstimateRows(np.clip(values, -1, 1), defined)


FEWEST_SYSTEMS = 8
FEWEST_QUERIES = 8
"""Minimum number of queries for an interval."""

PAIRED = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
"""All ways to pair four quarters as two halves."""

RESAMPLES_A_SPLIT = 4
FEWEST_SPLITS = 100
FASTEST = 2**-1.25
"""Minimum ratio of variances when the number of queries doubles; for a mean it is one half.

It is smaller near a correlation of 1, but using that made intervals too narrow in simulations.
"""

ENOUGH = 0.5
"""Minimum share of resamples and of splits with a defined value."""

UNDEFINED = "it is undefined in too many resamples"
NO_SPREAD = "it is the same in nearly all resamples"
COMMONEST = 0.8
"""Maximum share of resamples with equal values."""


class Draws(NamedTuple):
    """Resamples, as `weights` [samples, queries]: how often each query is drawn.

    First come `resamples` of as many queries, with replacement; then the four quarters of `splits`
    splits, [4, splits]; then the two halves of every way to pair the quarters, [3, 2, splits].
    """

    weights: Floats
    resamples: int
    splits: int

    def doublings(self) -> tuple[float, float]:
        """Return the doublings from quarter to half, and from half to whole."""
        queries = self.weights.shape[1]
        half = queries // 2
        return math.log2(half / (queries // 4)), math.log2(queries / half)


def draw_resamples(queries: int, samples: int, seed: int = 0) -> Draws:
    """Draw resamples of 4 or more queries, and splits into quarters and halves.

    If 4 does not divide the number of queries, each split leaves some out: quarters and halves have
    the same sizes throughout.
    """
    random = np.random.default_rng([seed, 1])  # independent of the resamples
    splits = max(FEWEST_SPLITS, -(-samples // RESAMPLES_A_SPLIT))
    order = random.permuted(np.tile(np.arange(queries), (splits, 1)), axis=1)

    def drawn(begin: int, end: int) -> Floats:
        weights = np.zeros((splits, queries))
        np.put_along_axis(weights, order[:, begin:end], 1, axis=1)
        return weights

    size = queries // 4
    quarters = [drawn(part * size, (part + 1) * size) for part in range(4)]
    more = queries // 2 - 2 * size  # 0 or 1
    spare = [drawn(4 * size + side * more, 4 * size + (side + 1) * more) for side in range(2)]
    halves = [
        quarters[a] + quarters[b] + spare[side]
        for pair in PAIRED
        for side, (a, b) in enumerate(pair)
    ]
    every = np.concatenate([draw_queries(queries, samples, seed), *quarters, *halves])
    return Draws(every, samples, splits)


def resample(values: Floats, counts: NDArray[np.bool_], draws: Draws) -> Floats:
    """Return system scores in all samples, [samples, systems].

    `values` and `counts` are systems x queries (see `resampled_means`). If a system has no counted
    query, all scores are tied, which makes correlations undefined.
    """
    means, defined = resampled_means(values, counts, draws.weights)
    means[~defined.all(axis=1)] = 0
    return unite_ties(means)


def interval(
    statistic: Callable[[Floats], EstimateRows],
    value: float,
    scores: Floats,
    draws: Draws,
    level: float,
) -> tuple[float, float] | str:
    """Return the interval around `value`, within -1 and 1, or the reason for none.

    `statistic` takes scores [samples, systems]; `value` is that of all queries, `scores` come from
    `resample`. Samples in which it is undefined are left out, with all parts of their split.

    Its interval is for the mean of the correlation over exams of as many queries, drawn from where
    these were: what such an exam shows on average. A measured correlation is without bias for it.
    It is not for the correlation that endless queries would show: that is mostly higher, because
    the noise of queries swaps systems, but it depends on differences between systems that no sample
    of queries shows.

    Bootstrap resamples contain the noise of the queries twice. They are too low on average, and
    their spread is too large or, for nearly tied systems, too small. Therefore they determine only
    the shape of the interval; its location and size come from elsewhere:

    - The location is the measured correlation.
    - Disjoint halves of the queries are independent exams, and so are quarters. Their differences
    over many random splits give the variance for a half and for a quarter of the queries. The ratio
    from quarters to halves is extrapolated to the ratio from halves to the whole, limited to at
    most 1 and to not much less than that of a mean.
    - The size is widened like Student's t with half as many degrees of freedom as queries.

    `benchmarks/interval_coverage.py` measures the coverage; `docs/reference/definitions.md` reports
    it.

    Sources: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13; Politis,
    Romano and Wolf, *Subsampling* (1999), ch. 8 (the rate from subsamples of two sizes); Abramowitz
    and Stegun (1964), 26.7.5 (Student's t).
    """
    resampled = statistic(scores)
    resamples = resampled.values[: draws.resamples][resampled.defined[: draws.resamples]]
    splits, whole = (
        part[draws.resamples :].reshape(10, draws.splits)
        for part in (resampled.values, resampled.defined)
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
    """Return the ratio of Student's t quantile to the normal one."""
    square = NormalDist().inv_cdf((1 + level) / 2) ** 2
    second = 5 * square**2 + 16 * square + 3
    return 1 + (square + 1) / (4 * freedom) + second / (96 * freedom**2)


def tau_ap_rows(scores: ArrayLike, official: ArrayLike) -> EstimateRows:
    """Return tau_AP of every row.

    tau_AP, the top-weighted AP correlation of Yilmaz et al. (2008), is the mean, over the systems
    ranked by score, of the share of systems above each one that are also above it officially,
    rescaled to -1..1. For ties it is the expectation over all their orders: tau_AP,a of Urbano and
    Marrero (2017) for tied scores, and the same for tied official ranks. Like Kendall's tau, it is
    undefined if all values of one side are equal.
    """
    x, y = (ranks_within_rows(side) for side in paired_rows(scores, official))
    n = x.below.shape[1]
    # All ranks within a tie group are equally likely, with those above the group above it;
    # contributions from within the group cancel out.
    above = n - x.below - x.size
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    first = np.maximum(above, 1)
    weight = (harmonic[first + x.size - 1] - harmonic[first - 1]) / x.size
    total = (agreement_above(y, x) * weight).sum(axis=1)
    defined = np.asarray((x.size < n).any(axis=1) & (y.size < n).any(axis=1))
    return EstimateRows(np.where(defined, np.clip(total / max(1, n - 1), -1, 1), 0.0), defined)


Rows = Callable[[Floats, Floats], EstimateRows]


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """A statistic of scores [samples, n] and official values [n]; higher is better.

    `name` is accepted by `rank_statistic`, `heading` is short, and `meaning` explains it.
    """

    name: str
    heading: str
    meaning: str
    rows: Rows

    @property
    def title(self) -> str:
        """The usual name, such as "Spearman's rho"."""
        return self.meaning.partition(",")[0]


_STATISTICS = {
    "spearman": RankStatistic("spearman", "S", "Spearman's rho", spearman_rows),
    "kendall": RankStatistic("kendall", "K", "Kendall's tau-b", kendall_rows),
    "tau_ap": RankStatistic(
        "tau_ap", "AP", "tau_AP, its expectation over all orders of tied systems", tau_ap_rows
    ),
}
DEFAULT_STATISTICS = ("spearman", "kendall")


def rank_statistic(text: str) -> RankStatistic:
    """Return the statistic `spearman`, `kendall` or `tau_ap`.

    Raises:
        InputError: The name is unknown.
    """
    statistic = _STATISTICS.get(text.strip().lower())
    if statistic is None:
        raise InputError(
            f"unknown rank statistic {text!r}", hint=f"Statistics: {', '.join(_STATISTICS)}"
        )
    return statistic
