"""Bootstrap over queries: the same resamples for everything that is compared.

A resample draws as many queries as there are, with replacement, and is kept as the number of times
each query was drawn; all systems and measures see the same draws, so differences are paired.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SAMPLES = 2000
LEVEL = 0.95


def draw_queries(queries: int, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """How often each query was drawn, [samples, queries]; each row sums to `queries`."""
    random = np.random.default_rng(seed)
    return random.multinomial(queries, np.full(queries, 1 / queries), samples).astype(np.float64)


def resampled_means(values: Floats, counts: Bools, draws: Floats) -> tuple[Floats, Bools]:
    """Means of every system in every resample, and where they are defined: [samples, systems].

    `values` and `counts` are systems x queries (see `evaluate.values.Values`): a query that does
    not count for a system leaves its mean. A mean without queries is 0 and undefined.
    """
    sums = draws @ np.where(counts, values, 0.0).T
    used = draws @ counts.T.astype(np.float64)
    defined = used > 0
    return np.divide(sums, used, out=np.zeros(sums.shape), where=defined), defined
