"""Isotonic regression, many rows at once: the closest values that never fall."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def isotonic_rows(values: Floats, weights: Floats) -> Floats:
    """The rows that never fall and are closest to those of `values` [rows, n], by least squares.

    `weights` [n] are positive. The fit at i is the largest, over all beginnings up to i, of the
    smallest, over all ends from i, of the weighted means between (the max-min formula of Barlow,
    Bartholomew, Bremner and Brunk 1972). It takes rows x n^2 steps: meant for some hundred values.
    """
    rows, n = values.shape
    size = np.zeros(n + 1)
    size[1:] = weights.cumsum()
    sums = np.zeros((rows, n + 1))
    sums[:, 1:] = (values * weights).cumsum(axis=1)
    fit = np.full(values.shape, -np.inf)
    for begin in range(n):
        means = (sums[:, begin + 1 :] - sums[:, begin, None]) / (size[begin + 1 :] - size[begin])
        lowest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(fit[:, begin:], lowest, out=fit[:, begin:])
    return fit
