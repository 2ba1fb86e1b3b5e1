"""Corrections of p-values for many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def holm(p: ArrayLike) -> Floats:
    """Adjusted p-values that control the chance of any false finding (Holm 1979)."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted p-values that control the share of false findings (Benjamini, Hochberg 1995)."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    scaled = values[order] * (len(values) / np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return adjusted
