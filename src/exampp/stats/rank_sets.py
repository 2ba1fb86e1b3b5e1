"""Which of many estimates differ, all pairs at once, and between which ranks each one lies.

Sources: Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks with applications to
mobility across neighbourhoods and academic achievement across countries (rank sets from
simultaneous intervals of all differences); Hothorn, Bretz & Westfall (2008), Simultaneous
inference in general parametric models (the maximum of correlated statistics).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from exampp.stats.means import student_quantile

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DRAWS = 4000
DECIMALS = 9
"""Scores that are equal in so many decimals are equal: the rest is rounding."""
_FEW = 15.0


@dataclass(frozen=True, slots=True)
class PairTests:
    """All pairs of estimates, [n, n] each: row minus column.

    `errors` are standard errors, `half` and `joint` half the widths of the interval of one pair and
    of those of all pairs at once (NaN where a pair is not `resolved`). `quantile` is how many
    standard errors `joint` is in large samples. `better` tells which row is better than which
    column, all at once.
    """

    differences: Floats
    errors: Floats
    half: Floats
    joint: Floats
    resolved: Bools
    quantile: float
    better: Bools

    def rank_sets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The best and the worst rank that each may have: 1 + those better, n - those worse."""
        ahead, behind = self.better.sum(axis=0), self.better.sum(axis=1)
        return 1 + ahead, len(self.better) - behind


def pair_tests(
    scores: Floats,
    covariance: Floats,
    resolved: Bools,
    freedom: Floats,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> PairTests:
    """Intervals of all differences, one by one and all at once.

    `covariance` is that of the scores, `freedom` [n, n] the degrees of freedom of the standard
    error of each difference, `resolved` [n, n] which pairs there is evidence about. Student's t
    for a pair; for all, the quantile of the largest of all |z| of normal vectors, and the same
    probability under each pair's t.
    """
    variance = np.diag(covariance)
    squared = variance[:, None] + variance[None, :] - 2 * covariance
    # what is left of equal numbers is rounding
    squared[squared < 1e-14 * (variance[:, None] + variance[None, :])] = 0.0
    errors = np.sqrt(np.maximum(squared, 0.0))
    freedom = np.maximum(freedom, 1.0)
    quantile = _largest_quantile(covariance, errors, resolved, level, draws, seed)
    one = student_reach(level, freedom) * errors
    every = _as_student(quantile, freedom) * errors
    rounded = np.round(scores, DECIMALS)
    differences = rounded[:, None] - rounded[None, :]
    return PairTests(
        differences=differences,
        errors=errors,
        half=np.where(resolved, one, np.nan),
        joint=np.where(resolved, every, np.nan),
        resolved=resolved,
        quantile=quantile,
        better=resolved & (differences > np.where(resolved, every, np.inf)) & (differences > 0),
    )


def student_reach(level: float, freedom: Floats) -> Floats:
    """The t within which `level` of Student's distribution lies, for many degrees of freedom."""
    return _as_student(NormalDist().inv_cdf((1 + level) / 2), freedom)


def _as_student(z: float, freedom: Floats) -> Floats:
    """What Student's t is where a normal variable is z, of the same probability.

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
    found: Floats = np.asarray(sum(term / n**power for power, term in enumerate(terms)))
    level = 2 * NormalDist().cdf(z) - 1
    if 0 < level < 1:
        for few in np.unique(freedom[freedom < _FEW]).tolist():
            found = np.where(freedom == few, student_quantile(level, int(few)), found)
    return found


def _largest_quantile(
    covariance: Floats, errors: Floats, resolved: Bools, level: float, draws: int, seed: int
) -> float:
    """The quantile of the largest |difference| / standard error over the resolved pairs."""
    counted = np.triu(resolved & (errors > 0), 1)
    if not counted.any():
        return 0.0
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(seed).standard_normal((draws, len(errors))) @ root.T
    largest = np.zeros(draws)
    for row in np.flatnonzero(counted.any(axis=1)).tolist():
        others = np.flatnonzero(counted[row])
        apart = np.abs(drawn[:, [row]] - drawn[:, others]) / errors[row, others]
        np.maximum(largest, apart.max(axis=1), out=largest)
    return float(np.quantile(largest, level))
