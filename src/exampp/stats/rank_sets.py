"""Simultaneous comparison of estimates: significant differences and rank sets.

The distribution of the largest |difference - truth| / standard error is simulated by drawing
samples from a population made of the sample itself, each with its own standard error: normal
vectors would have too low coverage if few units differ between two estimates, or if nearly all
units are drawn. As in the observed sample, a pair with too little evidence in a simulated sample is
left out of it; otherwise intervals from small samples would be too wide.

Sources: Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks with applications to mobility
across neighbourhoods and academic achievement across countries (rank sets from simultaneous
intervals of all differences); Romano & Wolf (2005), Exact and approximate stepdown methods for
multiple hypothesis testing (the studentised maximum); Booth, Butler & Hall (1994), Bootstrap
methods for finite populations; Mashreghi, Haziza & Léger (2016), A survey of bootstrap methods in
finite population sampling (a population made of 1 / pi copies, for Poisson sampling).

The module also counts ranks, pairs and correlations of a leaderboard over many specifications. A
specification is one defensible way to compute the leaderboard. Specifications are not a sample, so
there are no probabilities and no p-values, only counts of agreeing specifications.

Source: Steegen, Tuerlinckx, Gelman and Vanpaemel, *Increasing Transparency Through a Multiverse
Analysis*, Perspectives on Psychological Science 11 (2016); Simonsohn, Simmons and Nelson,
*Specification curve analysis*, Nature Human Behaviour 4 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from exampp.stats.estimate import Bools, Floats, Ints
from exampp.stats.item_analysis import ranked
from exampp.stats.means import student_quantile
from exampp.stats.rank_correlation import kendall, kendall_rows


def competition_ranks(scores: Floats) -> Floats:
    """Return 1 + the number of strictly better systems, [specifications, systems]; NaN stays."""
    better = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)
    return np.where(np.isnan(scores), np.nan, 1.0 + better)


def shares_above(scores: Floats) -> tuple[Floats, Ints]:
    """Return the share of specifications with one system above another, and their number.

    [systems, systems] each, a tie being half; of those specifications in which both have a score.
    """
    known = ~np.isnan(scores)
    both = known.T.astype(np.int64) @ known.astype(np.int64)
    filled = np.where(known, scores, 0.0)
    above = np.zeros(both.shape)
    for row, has in zip(filled, known, strict=True):
        sign = np.sign(row[:, None] - row[None, :])
        above += np.where(has[:, None] & has[None, :], (sign + 1) / 2, 0.0)
    return np.divide(above, both, out=np.full(above.shape, np.nan), where=both > 0), both


def correlations(scores: Floats, other: Floats | None = None) -> Floats:
    """Return Kendall's tau-b between all specifications, or with one order; NaN: undefined.

    Systems without a score in one of the two are left out.
    """
    if other is not None:
        return np.array([_tau(row, other) for row in scores])
    n = len(scores)
    if not np.isnan(scores).any() and scores.shape[1] > 1:
        first, second = np.triu_indices(n, 1)
        table = np.full((n, n), np.nan)
        if len(first):
            taus = kendall_rows(scores[first], scores[second])
            table[first, second] = np.where(taus.defined, taus.values, np.nan)
    else:
        table = np.full((n, n), np.nan)
        for row in range(n):
            for column in range(row + 1, n):
                table[row, column] = _tau(scores[row], scores[column])
    return np.asarray(np.where(np.isnan(table), table.T, table), np.float64)


def _tau(x: Floats, y: Floats) -> float:
    both = ~(np.isnan(x) | np.isnan(y))
    tau = kendall(x[both], y[both]).value
    return np.nan if tau is None else tau


DRAWS = 2000
_FEW = 15.0
_LEAST_ERROR = 1e-3
"""Minimum standard error in a resample, as a share of the observed one."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """The parts that make up estimates, and how to resample them.

    `values` is [n, parts]. With `pi`, [parts], the parts are units drawn with these probabilities,
    and an estimate is the sum of values / pi. Otherwise the parts are queries, drawn with
    replacement, and an estimate is the mean of values. Two estimates differ on a part if its
    `kinds`, [n, parts], differ; a pair counts in a sample in which it differs on `fewest` parts or
    more.
    """

    values: Floats
    pi: Floats | None
    kinds: Floats
    fewest: int
    draws: int = DRAWS
    seed: int = 0

    def largest(self, counted: Bools, errors: Floats, level: float) -> float:
        """Return the quantile of the largest |difference| / error of counted pairs, [n, n].

        This is 0 without counted pairs, infinite if no resample has enough evidence. `errors` are
        the standard errors of the observed sample.
        """
        counted = np.triu(counted & (errors > 0), 1)
        if not counted.any():
            return 0.0
        values, kinds, times, moves, squares, off = self._drawn()
        moved = moves @ values.T
        largest = np.full(self.draws, -1.0)
        for row in np.flatnonzero(counted.any(axis=1)).tolist():
            others = np.flatnonzero(counted[row])
            apart = np.abs(moved[:, [row]] - moved[:, others])
            variance = squares @ np.square(values[row] - values[others]).T - off * apart**2
            least = (_LEAST_ERROR * errors[row, others]) ** 2
            apart /= np.sqrt(np.maximum(variance, least))
            telling = times @ (kinds[row] != kinds[others]).T.astype(np.float64)
            apart[telling < self.fewest] = -1.0
            np.maximum(largest, apart.max(axis=1), out=largest)
        largest = largest[largest >= 0]
        # of the draws plus the sample itself
        return float(np.quantile(largest, level, method="weibull")) if len(largest) else np.inf

    def _drawn(self) -> tuple[Floats, Floats, Floats, Floats, Floats, float]:
        """(values, kinds, times, moves, squares, off), the middle three [draws, parts].

        A draw has a part so many times; the error of an estimate in it is moves @ values, and the
        square of its standard error squares @ values^2 - off * error^2.
        """
        random = np.random.default_rng(self.seed)
        if self.pi is None:
            count = self.values.shape[1]
            times = random.multinomial(count, np.full(count, 1 / count), self.draws).astype(float)
            centred = self.values - self.values.mean(axis=1, keepdims=True)
            moves = times / count
            return centred, self.kinds, times, moves, moves / (count - 1), 1 / (count - 1)
        chance = self.pi < 1
        pi = self.pi[chance]
        copies = np.floor(1 / pi + random.random((self.draws, len(pi)))).astype(np.int64)
        times = random.binomial(copies, pi).astype(float)
        moves, squares = times / pi - copies, times * (1 - pi) / pi**2
        return self.values[:, chance], self.kinds[:, chance], times, moves, squares, 0.0


@dataclass(frozen=True)
class PairTests:
    """All pairs of estimates, [n, n] each: row minus column.

    `errors` are standard errors, `half` half the width of the interval of one pair (NaN where a
    pair is not `resolved`). The simultaneous intervals are computed on demand.
    """

    differences: Floats
    errors: Floats
    half: Floats
    resolved: Bools
    level: float
    resampling: Resampling

    @cached_property
    def quantile(self) -> float:
        """The ratio of `joint` to the standard error."""
        return self.resampling.largest(self.resolved, self.errors, self.level)

    @cached_property
    def joint(self) -> Floats:
        """Half the width of the simultaneous interval; NaN where a pair is not resolved.

        It is never shorter than the interval of the pair alone.
        """
        wide = np.where(self.errors > 0, self.quantile * self.errors, 0.0)
        return np.where(self.resolved, np.maximum(wide, self.half), np.nan)

    @cached_property
    def better(self) -> Bools:
        """The pairs whose row is better than the column, by simultaneous intervals."""
        is_better: Bools = self.differences > np.where(self.resolved, self.joint, np.inf)
        return is_better & (self.differences > 0)

    def rank_sets(self) -> tuple[Ints, Ints]:
        """Return the best and worst possible ranks: 1 + number of better, n - number of worse."""
        ahead, behind = self.better.sum(axis=0), self.better.sum(axis=1)
        return 1 + ahead, len(self.better) - behind


def pair_tests(
    scores: Floats,
    covariance: Floats,
    resolved: Bools,
    freedom: Floats,
    resampling: Resampling,
    *,
    level: float = 0.95,
) -> PairTests:
    """Return separate and simultaneous intervals of all differences.

    `covariance` is that of the scores, `freedom` [n, n] the degrees of freedom of the standard
    error of each difference, `resolved` [n, n] the pairs with enough evidence. Separate intervals
    use Student's t, simultaneous ones the quantile of the largest |t| over new samples.
    """
    variance = np.diag(covariance)
    squared = variance[:, None] + variance[None, :] - 2 * covariance
    # differences of equal numbers are rounding errors
    squared[squared < 1e-14 * (variance[:, None] + variance[None, :])] = 0.0
    errors = np.sqrt(np.maximum(squared, 0.0))
    rounded = ranked(scores)
    one = student_reach(level, np.maximum(freedom, 1.0)) * errors
    return PairTests(
        differences=rounded[:, None] - rounded[None, :],
        errors=errors,
        half=np.where(resolved, one, np.nan),
        resolved=resolved,
        level=level,
        resampling=resampling,
    )


def student_reach(level: float, freedom: Floats) -> Floats:
    """Return the two-sided t quantile at `level`, for many degrees of freedom."""
    return _as_student(NormalDist().inv_cdf((1 + level) / 2), freedom)


def _as_student(z: float, freedom: Floats) -> Floats:
    """Return the quantile of Student's t with the same probability as a normal z.

    Above `_FEW` degrees of freedom by the expansion of Cornish and Fisher (Abramowitz and Stegun
    26.7.5), which is right to 1 % even for z = 4.
    """
    n = np.maximum(freedom, _FEW)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    quantiles: Floats = np.asarray(sum(term / n**power for power, term in enumerate(terms)))
    level = 2 * NormalDist().cdf(z) - 1
    if 0 < level < 1:
        for few in sorted(set(freedom[freedom < _FEW].tolist())):
            quantiles = np.where(freedom == few, student_quantile(level, int(few)), quantiles)
    return quantiles
