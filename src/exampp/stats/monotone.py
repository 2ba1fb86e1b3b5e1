"""Isotonic regression: the non-decreasing function of least squares, by pooling adjacent violators.

Source: Barlow, Bartholomew, Bremner and Brunk, *Statistical Inference under Order Restrictions*
(1972); for probabilities Zadrozny and Elkan, *Transforming Classifier Scores into Accurate
Multiclass Probability Estimates* (KDD 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The places of x, ascending, and the fitted values there; equal x share a value.

    Between two places the function is their straight line, beyond the ends it stays as it is
    (`numpy.interp`). Only the places where the line turns are given.
    """
    places, group = np.unique(x, return_inverse=True)
    weight = np.bincount(group).astype(np.float64)
    mean = np.bincount(group, y) / weight
    sums: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for value, w in zip(mean.tolist(), weight.tolist(), strict=True):
        total, size = value * w, 1
        while sums and sums[-1] * w >= total * weights[-1]:
            total += sums.pop()
            w += weights.pop()
            size += sizes.pop()
        sums.append(total)
        weights.append(w)
        sizes.append(size)
    levels = np.array(sums) / np.array(weights)
    fitted = np.repeat(levels, sizes)
    turns = np.ones(len(places), np.bool_)
    turns[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return places[turns], fitted[turns]
