"""Gaffke's limits: equal to known ones, to a simulation, and as limits of a mean must behave."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from exampp.stats import means as module
from exampp.stats.means import MeanLimits, bounded_means, queries_for, unseen_share

Floats = NDArray[np.float64]
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def limits(
    values: Floats | list[float], low: float = 0, high: float = 1, level: float = 0.95
) -> MeanLimits:
    rows = np.atleast_2d(np.array(values, np.float64))
    return bounded_means(rows, np.ones(rows.shape, np.bool_), (low, high), level)


def ends(
    values: Floats | list[float], low: float = 0, high: float = 1, level: float = 0.95
) -> list[float]:
    found = limits(values, low, high, level)
    return [float(found.low[0]), float(found.high[0])]


@pytest.mark.parametrize("queries", [1, 4, 13, 60])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_of_zeros_and_ones_they_are_those_of_clopper_and_pearson(
    queries: int, share: float, level: float
) -> None:
    hits = round(share * queries)
    found = scipy.stats.binomtest(hits, queries).proportion_ci(level)
    values = [1.0] * hits + [0.0] * (queries - hits)
    assert ends(values, level=level) == pytest.approx([found.low, found.high], abs=1e-9)


def test_by_hand() -> None:
    # unchanged queries: only w_0 counts, which is above x with chance (1 - x)^n
    share = 1 - 0.025 ** (1 / 20)
    assert ends([0.0] * 20, -1, 1) == pytest.approx([-share, share])
    assert unseen_share(20, 0.95) == pytest.approx(0.1684335)
    # two values 0 and 1, so 0, 0, 1 with weights: P(w <= t) = 1 - (1 - t)^2
    assert ends([0.0, 1.0])[0] == pytest.approx(1 - 0.975**0.5)


@pytest.mark.parametrize("shape", [(0.3, 3.0), (2.0, 2.0), (8.0, 0.5)])
@pytest.mark.parametrize("queries", [3, 11, 40])
def test_they_are_quantiles_of_dirichlet_weighted_means(
    shape: tuple[float, float], queries: int
) -> None:
    random = np.random.default_rng(queries)
    x = random.beta(*shape, queries)
    weights = random.dirichlet(np.ones(queries + 1), 200_000)
    low = np.quantile(weights @ np.append(x, 0.0), 0.025)
    high = np.quantile(weights @ np.append(x, 1.0), 0.975)
    assert ends(x) == pytest.approx([low, high], abs=0.004)


def test_the_p_value_is_where_the_interval_reaches_0() -> None:
    values = np.random.default_rng(1).normal(0.15, 0.3, (20, 25)).clip(-1, 1)
    for row, p in zip(values, limits(values, -1, 1).p.tolist(), strict=True):
        low, high = ends(row, -1, 1, 1 - p)
        assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-8)
    assert limits([0.0] * 9, -1, 1).p.tolist() == [1.0]


@pytest.mark.parametrize("queries", [60, 150])
@pytest.mark.parametrize("kind", ["beta", "rare", "ties", "equal"])
def test_the_approximation_is_close(
    monkeypatch: pytest.MonkeyPatch, queries: int, kind: str
) -> None:
    random = np.random.default_rng(queries)
    shape = (10, queries)
    values = {
        "beta": random.beta(0.3, 3, shape),
        "rare": np.where(random.random(shape) < 0.05, 0.0, 0.95),
        "ties": np.where(random.random(shape) < 0.9, 0.5, random.random(shape)),
        "equal": np.full(shape, 0.5),
    }[kind]
    exact = limits(values)
    monkeypatch.setattr(module, "EXACT", 0)
    found, mean = limits(values), values.mean(axis=1)
    assert np.all(np.abs(found.low - exact.low) < 0.01 * (mean - exact.low))
    assert np.all(np.abs(found.high - exact.high) < 0.01 * (exact.high - mean))


@given(SHARES, st.sampled_from([0.8, 0.95, 0.99]))
def test_they_hold_the_mean_and_are_never_degenerate(values: list[float], level: float) -> None:
    low, high = ends(values, level=level)
    mean = float(np.mean(values))
    assert -1e-12 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1 + 1e-12
    assert high - low > 1e-3


@given(SHARES, st.floats(-5, 5), st.floats(0.1, 10))
def test_they_follow_shift_and_scale(values: list[float], shift: float, scale: float) -> None:
    moved = [shift + scale * one for one in values]
    low, high = ends(moved, shift, shift + scale)
    assert [(low - shift) / scale, (high - shift) / scale] == pytest.approx(ends(values), abs=1e-8)


@given(SHARES, st.integers(0, 11), st.floats(0, 1))
def test_a_larger_value_lowers_no_limit(values: list[float], at: int, value: float) -> None:
    larger = list(values)
    larger[at % len(values)] = max(value, larger[at % len(values)])
    assert all(b >= a - 1e-9 for a, b in zip(ends(values), ends(larger), strict=True))


def test_how_many_queries_a_margin_takes() -> None:
    assert queries_for(0.02, 0.95) == 183
    assert unseen_share(183, 0.95) <= 0.02 < unseen_share(182, 0.95)


def test_no_rows() -> None:
    assert limits(np.zeros((0, 5))).low.shape == (0,)
