"""Isotonic regression of many rows against another implementation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from exampp.analyze.isotonic import isotonic_rows


@pytest.mark.parametrize("n", [1, 2, 36])
def test_rows_equal_scipy(n: int) -> None:
    random = np.random.default_rng(n)
    values = np.concatenate([random.standard_normal((20, n)), random.integers(0, 3, (20, n))])
    weights = random.exponential(1, n) + 0.01
    fit = isotonic_rows(values, weights)
    for row, fitted in zip(values, fit, strict=True):
        assert fitted == pytest.approx(isotonic_regression(row, weights=weights).x)
