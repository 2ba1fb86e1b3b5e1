"""Estimates: numbers with intervals, or with the reason why there is none.

Also the bootstrap over queries, with the same resamples for all compared values.
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
Indices = NDArray[np.intp]
Ints = NDArray[np.int64]

SAMPLES = 2000
FEWEST_SAMPLES = 50
"""Minimum number of samples: a 95 % interval of fewer is mostly noise."""
MOST_DRAWS = 1_000_000
"""Maximum number of resamples, permutations or halves, to limit memory."""
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
    """Return the mean of every system in every resample, [samples, systems], and where it is
    defined.

    `values` and `counts` are systems x queries (see `measures.values.Values`): a query that does
    not count for a system is left out of its mean. A mean without queries is 0 and undefined.
    """
    sums = draws @ np.where(counts, values, 0.0).T
    used = draws @ counts.T.astype(np.float64)
    defined = used > 0
    return np.divide(sums, used, out=np.zeros(sums.shape), where=defined), defined


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic; None where it is undefined, with the `reason`.

    `low` and `high` bound the confidence interval. They are None if none was requested, or for the
    reason in `no_interval`.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    no_interval: str = ""

    @property
    def why(self) -> str:
        """The reason why it is undefined or has no interval; "" if it has both."""
        return self.reason or self.no_interval


class EstimateRows(NamedTuple):
    """Values by row, table or sample; 0 where `defined` is False."""

    values: Floats
    defined: Bools

    def at(self, row: int) -> float | None:
        """Return the value of one row; None where it is undefined."""
        return float(self.values[row]) if self.defined[row] else None


def undefined(reason: str) -> Estimate:
    """Return an undefined statistic with a reason."""
    return Estimate(None, reason=reason)
