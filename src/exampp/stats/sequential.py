"""Statements about a mean over all queries while their values arrive in random order.

The queries are a finite population: a statement is about their mean, as if all were known. Wealth
is the capital of bets against a claimed mean. If the claim holds, it reaches 1 / error at any time
with a probability of at most `error` (Ville's inequality), so that one may look after every query
and stop at any time.

Sources: Waudby-Smith and Ramdas (2020), Confidence sequences for sampling without replacement;
(2024), Estimating means of bounded random variables by betting, section 5.
"""

from __future__ import annotations

import math

import numpy as np

from exampp.stats.estimate import Bools, Floats
from exampp.stats.means import Range, bounded_means

_BETS = (0.25, 0.5, 1.0)
"""Shares of the capital that are bet, each by a third of it."""
_BETS_ON_RISE = (0.1, 0.25, 0.5, 1.0)
_ROUNDING = 1e-9
_HALVINGS = 40


def largest_wealth(values: Floats, of: int, lowest: float, mean: Floats) -> Floats:
    """Return the logarithm of the largest wealth so far against a claimed mean of at most `mean`.

    Args:
        values: Rows x queries with a value, in random order.
        of: The number of all queries.
        lowest: The smallest possible value.
        mean: The claimed largest mean over all queries of every row.

    If the claim holds, the next value is expected to be at most the mean of what is left of the
    claimed sum. A bet pays the value in units of that, both counted from `lowest`.
    """
    gains = values - lowest
    left = of - np.arange(values.shape[1])
    claimed = (mean[:, None] - lowest) * of - (np.cumsum(gains, axis=1) - gains)
    with np.errstate(divide="ignore", invalid="ignore"):
        pays = gains * left / claimed
    pays = np.where(claimed > _ROUNDING, pays, 1.0)
    pays[gains - claimed > _ROUNDING] = np.inf  # more than what is left of the claimed sum
    capital = [
        np.cumsum(np.log(np.maximum((1 - bet) + bet * pays, 1e-300)), axis=1) for bet in _BETS
    ]
    wealth = np.logaddexp.reduce(capital) - math.log(len(_BETS))
    return np.asarray(wealth.max(axis=1, initial=0.0), np.float64)


def decided_pairs(
    scores: Floats, of: int, within: Range, margin: float, error: float, equal: Bools | None = None
) -> Bools:
    """Return which pairs of systems are decided, by `numpy.triu_indices`.

    Args:
        scores: Systems x queries with a value, in random order.
        of: The number of all queries.
        within: The range of a difference of two scores.
        margin: Differences of means up to this need no order.
        error: Limit of the probability that any decision is wrong.
        equal: Pairs that are known to have equal scores on all queries.

    A pair is decided if one system has the higher mean over all queries, or if their means differ
    by at most the margin. A pair has two true claims if its means are equal, otherwise one.
    """
    first, second = np.triu_indices(len(scores), 1)
    differences = scores[first] - scores[second]
    known = np.zeros(len(first), np.bool_) if equal is None else equal
    enough = math.log(2 * max(1, int((~known).sum())) / error)

    def refuted(differences: Floats, mean: float) -> Bools:
        claimed = np.full(len(differences), mean)
        return largest_wealth(differences, of, within[0], claimed) >= enough

    ordered = refuted(differences, 0.0) | refuted(-differences, 0.0)
    close = refuted(differences, -margin) & refuted(-differences, -margin) if margin else False
    return np.asarray(known | ordered | close, np.bool_)


def full_limits(
    values: Floats, of: int, within: Range, level: float, error: float
) -> tuple[Floats, Floats]:
    """Bound the interval of the mean that all queries will give, from below and above, by row.

    Args:
        values: Rows x some queries, in random order.
        of: The number of all queries.
        within: The smallest and the largest possible value.
        level: The level of the interval over all queries.
        error: Limit of the probability that an interval over all queries exceeds its bounds.

    The sum over the other queries is bounded by betting. Of all values with that sum, those at the
    ends of the range give the widest interval.
    """
    lowest, highest = within
    total, left = values.sum(axis=1), of - values.shape[1]
    bounds = (
        _lowest_mean(values, of, lowest, highest, error / 2),
        -_lowest_mean(-values, of, -highest, -lowest, error / 2),
    )
    ends = [np.hstack([values, _extreme(one * of - total, left, within)]) for one in bounds]
    low, high = (bounded_means(one, np.ones(one.shape, np.bool_), within, level) for one in ends)
    return low.low, high.high


def _lowest_mean(values: Floats, of: int, lowest: float, highest: float, error: float) -> Floats:
    """Return the largest means over all queries that are refuted as too low, by bisection."""
    total, left = values.sum(axis=1), of - values.shape[1]
    low, high = (total + left * lowest) / of, (total + left * highest) / of
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = largest_wealth(values, of, lowest, middle) >= -math.log(error)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(low, np.float64)


def _extreme(total: Floats, count: int, within: Range) -> Floats:
    """Return rows of `count` values with a sum, all but one at an end of the range."""
    lowest, highest = within
    width = highest - lowest
    above = np.clip((total - count * lowest)[:, None] - width * np.arange(count), 0, width)
    return np.asarray(lowest + above, np.float64)


class RisingMeans:
    """Capital of bets that the means of arriving values exceed claimed largest means.

    If each value is expected to be at most its mean, given all before it, its wealth reaches
    1 / error at any time with a probability of at most `error`. A share of 1 / (t (t + 1)) of the
    capital is first bet on value t, so that a late rise is found, too.

    Args:
        lowest: The smallest possible values.
        means: The claimed means, larger than these.
    """

    def __init__(self, lowest: Floats, means: Floats) -> None:
        self._lowest, self._span, self._count = lowest, means - lowest, 0
        self._capital = np.full((len(_BETS_ON_RISE), len(lowest)), -np.inf)

    def add(self, values: Floats) -> Floats:
        """Add a value for each mean; return the logarithms of the wealth."""
        self._count += 1
        bets = np.array(_BETS_ON_RISE)[:, None]
        pays = 1 - bets + bets * (values - self._lowest) / self._span
        share = math.log(1 / (self._count * (self._count + 1) * len(bets)))
        self._capital = np.logaddexp(self._capital, share) + np.log(np.maximum(pays, 1e-300))
        left = -math.log(self._count + 1)
        return np.asarray(np.logaddexp(np.logaddexp.reduce(self._capital), left), np.float64)
