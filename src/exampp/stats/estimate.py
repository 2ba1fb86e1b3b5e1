"""Estimates: the result of every statistic, a number with its interval or a reason for none.

Also the bootstrap over queries, whose resamples are the same for everything that is compared.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.sanitize import check_integer

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SAMPLES = 2000
FEWEST_SAMPLES = 50
"""An interval of 95 % takes the two or three most extreme of so many; of fewer, only noise."""
MOST_DRAWS = 1_000_000
"""Resamples, permutations or halves at most: something is kept of each, for every pair or query."""
LEVEL = 0.95


def check_draws(samples: int, seed: int) -> None:
    """Raise InputError for invalid bootstrap settings."""
    check_integer("samples", samples, FEWEST_SAMPLES, MOST_DRAWS)
    check_integer("the seed", seed, 0)


@functools.lru_cache(maxsize=16)
def draw_queries(queries: int, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """Return how often each query was drawn, [samples, queries]; each row sums to `queries`.

    Read-only: equal calls return the same array.

    A resample draws as many queries as there are, with replacement, and is kept as the number of
    times each query was drawn; all systems and measures see the same draws, so differences are
    paired.

    Source: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993).
    """
    counts = np.zeros((samples, 0))
    if queries:
        random = np.random.default_rng(seed)
        shares = np.full(queries, 1 / queries)
        counts = random.multinomial(queries, shares, samples).astype(np.float64)
    counts.flags.writeable = False
    return counts


def resampled_means(values: Floats, counts: Bools, draws: Floats) -> tuple[Floats, Bools]:
    """Return the mean of every system in every resample, and where defined: [samples, systems].

    `values` and `counts` are systems x queries (see `measures.values.Values`): a query that does
    not count for a system leaves its mean. A mean without queries is 0 and undefined.
    """
    sums = draws @ np.where(counts, values, 0.0).T
    used = draws @ counts.T.astype(np.float64)
    defined = used > 0
    return np.divide(sums, used, out=np.zeros(sums.shape), where=defined), defined


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic; None where it is undefined, with the `reason`.

    `low` and `high` bound its confidence interval. They are None if there is none: because none was
    requested, or for the reason in `no_interval`.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    no_interval: str = ""

    @property
    def why(self) -> str:
        """The reason why it is undefined or else has no interval; empty where it has both."""
        return self.reason or self.no_interval


class EstimateRows(NamedTuple):
    """One value per row, table or sample; it is 0 where `defined` is False."""

    values: Floats
    defined: Bools


def undefined(reason: str) -> Estimate:
    """Return an undefined statistic with its reason."""
    return Estimate(None, reason=reason)
