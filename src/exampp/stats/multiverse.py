"""One leaderboard under many specifications: ranks, pairs and correlations between them.

A specification is one way to make the leaderboard among those that could be defended. They are no
sample, so that nothing here is a probability and there are no p-values: what is counted is how many
of the ways that were declared agree.

Source: Steegen, Tuerlinckx, Gelman and Vanpaemel, *Increasing Transparency Through a Multiverse
Analysis*, Perspectives on Psychological Science 11 (2016); Simonsohn, Simmons and Nelson,
*Specification curve analysis*, Nature Human Behaviour 4 (2020).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exampp.stats.rank_correlation import kendall_rows

Floats = NDArray[np.float64]

DECIMALS = 9
"""Scores that are equal in these are equal: the order of a sum decides no rank."""


def settled(scores: Floats) -> Floats:
    """Scores without the rounding noise of their sums; NaN stays."""
    rounded: Floats = np.round(scores, DECIMALS) + 0.0
    return rounded


def competition_ranks(scores: Floats) -> Floats:
    """1 + the number of systems that are strictly better, [specifications, systems]; NaN stays."""
    better = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)
    return np.where(np.isnan(scores), np.nan, 1.0 + better)


def shares_above(scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The share of specifications in which one system is above another, and of how many.

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
    """Kendall's tau-b between all specifications, or of each with one order; NaN: undefined.

    Systems without a score in one of the two are left out of theirs.
    """
    if other is not None:
        return np.array([_tau(row, other) for row in scores])
    n = len(scores)
    if not np.isnan(scores).any() and scores.shape[1] > 1:
        first, second = np.triu_indices(n, 1)
        table = np.full((n, n), np.nan)
        if len(first):
            found = kendall_rows(scores[first], scores[second])
            table[first, second] = np.where(found.defined, found.values, np.nan)
    else:
        table = np.full((n, n), np.nan)
        for row in range(n):
            for column in range(row + 1, n):
                table[row, column] = _tau(scores[row], scores[column])
    lower: Floats = np.where(np.isnan(table), table.T, table)
    return lower


def _tau(x: Floats, y: Floats) -> float:
    both = ~(np.isnan(x) | np.isnan(y))
    if both.sum() < 2:
        return float("nan")
    found = kendall_rows(x[both][None], y[both][None])
    return float(found.values[0]) if found.defined[0] else float("nan")
