"""Rank correlation where the top counts most: tau_AP, rank-biased overlap, Kendall's tau-b at k.

All of them compare scores with an official leaderboard; higher is better on both sides (turn
official ranks around). The `_rows` functions take scores [samples, n] and official values [n].
They are undefined, as Kendall's tau is, where one side has all values equal.

tau_AP is the AP correlation of Yilmaz et al. (2008): go through the systems as the scores rank
them; of the systems above each, what share is above it officially too? Its mean, stretched to
-1..1. Ties have no order, so the value is its expectation over all their orders: tau_AP,a of
Urbano and Marrero (2017) for tied scores, and the same expectation for tied official ranks.

RBO is rank-biased overlap (Webber et al. 2010), extrapolated: (1 - p) sum of p^(d-1) A_d, where
A_d is the share of systems that the first d of both rankings have in common. Both rank the same n
systems, so A_n is 1, and so is the agreement extrapolated beyond; RBO is 1 for equal rankings and
never 0. A tied system is in the first d to the share of its tie group that fits there: RBO^a of
Corsi and Urbano (2024), the mean over all orders of the ties.

Kendall's tau-b at k takes only the k best systems of the official leaderboard; all those tied
officially with the last of them are taken too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.stats.rank_correlation import (
    Correlation,
    CorrelationRows,
    Floats,
    Ints,
    agreement_above,
    kendall_rows,
    one_row,
    paired_rows,
    places,
)

PERSISTENCE = 0.9
"""The usual p of RBO: the first 10 ranks hold 86 % of the weight."""


def tau_ap(scores: ArrayLike, official: ArrayLike) -> Correlation:
    """tau_AP of scores with an official leaderboard; it is not symmetric."""
    return one_row(tau_ap_rows, scores, official)


def rbo(scores: ArrayLike, official: ArrayLike, p: float = PERSISTENCE) -> Correlation:
    """Extrapolated rank-biased overlap; p is how likely a reader goes on to the next rank."""
    return one_row(lambda x, y: rbo_rows(x, y, p), scores, official)


def kendall_at(scores: ArrayLike, official: ArrayLike, k: int) -> Correlation:
    """Kendall's tau-b of the k officially best systems."""
    return one_row(lambda x, y: kendall_at_rows(x, y, k), scores, official)


def tau_ap_rows(scores: ArrayLike, official: ArrayLike) -> CorrelationRows:
    """tau_AP row by row."""
    x, y = (places(side) for side in paired_rows(scores, official))
    n = x.below.shape[1]
    # The orders of a tie group put a member at any of its ranks alike, with those above the group
    # above it; what its fellows above it add is as often positive as negative, and sums to 0.
    above = n - x.below - x.size
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    first = np.maximum(above, 1)
    weight = (harmonic[first + x.size - 1] - harmonic[first - 1]) / x.size
    total = (agreement_above(y, x) * weight).sum(axis=1)
    return _defined(total / max(1, n - 1), x.size, y.size, -1.0)


def rbo_rows(scores: ArrayLike, official: ArrayLike, p: float = PERSISTENCE) -> CorrelationRows:
    """Extrapolated rank-biased overlap row by row.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"p of RBO must be between 0 and 1, not {p}")
    x, y = (places(side) for side in paired_rows(scores, official))
    if len(y.below) != 1:
        raise ValueError("RBO compares with one official leaderboard")
    n = x.below.shape[1]
    depth = np.arange(1, n + 1)
    official_above = (n - y.below - y.size)[0]
    inside = np.clip((depth - official_above[:, None]) / y.size[0][:, None], 0, 1)
    gain = inside * ((1 - p) * p ** (depth - 1) / depth)
    # A system enters at the depth `above`, is wholly in at `above + size`: sums of its gain, and
    # of its gain times the depth, over the ranks between and beyond.
    sums, moments = (
        np.concatenate([np.zeros((n, 1)), np.cumsum(part, axis=1)], axis=1)
        for part in (gain, gain * depth)
    )
    system = np.arange(n)
    start = n - x.below - x.size
    end = start + x.size
    within = sums[system, end] - sums[system, start]
    entering = (moments[system, end] - moments[system, start] - start * within) / x.size
    beyond = sums[system, n] - sums[system, end]
    return _defined((entering + beyond).sum(axis=1) + p**n, x.size, y.size, 0.0)


def kendall_at_rows(scores: ArrayLike, official: ArrayLike, k: int) -> CorrelationRows:
    """Kendall's tau-b of the k officially best systems, row by row.

    Raises:
        ValueError: There is not one official leaderboard.
    """
    x, y = paired_rows(scores, official)
    if len(y) != 1:
        raise ValueError("the best systems are those of one official leaderboard")
    best = at_the_top(y[0], k)
    return kendall_rows(x[:, best], y[:, best])


def at_the_top(official: Floats, k: int) -> NDArray[np.bool_]:
    """Which systems [n] are among the k best, or tied with the last of these."""
    last = np.sort(official)[-k] if k < len(official) else -np.inf
    return np.asarray(official >= last)


def _defined(values: Floats, x_ties: Ints, y_ties: Ints, lowest: float) -> CorrelationRows:
    n = x_ties.shape[1]
    defined = np.asarray((x_ties < n).any(axis=1) & (y_ties < n).any(axis=1))
    return CorrelationRows(np.where(defined, np.clip(values, lowest, 1), 0.0), defined)
