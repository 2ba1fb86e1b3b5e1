"""Rates: how often something happens."""

from __future__ import annotations

import functools

import numpy as np

from exampp.stats.estimate import Estimate, undefined
from exampp.stats.means import SHARE, mean_test


@functools.lru_cache(maxsize=65536)
def rate(hits: int, of: int, level: float = 0.95) -> Estimate:
    """Return the rate of `hits` among `of` trials with the interval of Clopper and Pearson."""
    if of < 1:
        return undefined("nothing was tried")
    return mean_test((np.arange(of) < hits).astype(np.float64), SHARE, level).estimate


def by_luck(rate: float, k: int) -> float:
    """The chance that one of k passages covers an item that each covers at this rate."""
    return 1 - (1 - rate) ** k
