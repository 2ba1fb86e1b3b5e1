"""Means, rates and their limits: known values, simulations, and how limits must behave."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from exampp.stats import means as module
from exampp.stats.estimate import draw_queries, resampled_means
from exampp.stats.means import (
    DIFFERENCE,
    NO_RANGE,
    ONE_QUERY,
    SHARE,
    MeanLimits,
    bounded_means,
    mean_test,
    mean_tests,
    queries_for,
    rate,
    student_quantile,
    student_tail,
    unseen_share,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 42, 199, 1000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_quantile_is_that_of_scipy(level: float, freedom: int) -> None:
    expected = scipy.stats.t.ppf((1 + level) / 2, freedom)
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-8)


def test_one_query_has_an_interval() -> None:
    # w_0 * 0 + w_1 * 0.6 with a uniform w_1, and 0.6 w_1 + 1 - w_1
    found = mean_test(np.array([0.6]), SHARE).estimate
    assert (found.value, found.low, found.high) == pytest.approx((0.6, 0.015, 0.99))


def test_equal_values_have_an_interval() -> None:
    # 8 of 8 queries with the same difference d: d - (1 + d) (1 - 0.025 ** (1 / 8)) and likewise up
    found = mean_test(np.full(8, 0.1), DIFFERENCE).estimate
    share = 1 - 0.025 ** (1 / 8)
    assert (found.low, found.high) == pytest.approx((0.1 - 1.1 * share, 0.1 + 0.9 * share))


def test_queries_that_do_not_count_leave_the_mean() -> None:
    values = np.array([[0.1, 0.9, 0.4], [0.1, 0.9, 0.4], [0.1, 0.9, 0.4]])
    counts = np.array([[True, True, True], [True, False, True], [False, False, False]])
    whole, some, none = mean_tests(values, counts, SHARE, 0.95)
    assert whole == mean_test(values[0], SHARE)
    assert some == mean_test(np.array([0.1, 0.4]), SHARE)
    assert none.estimate.reason == "no query counts"
    assert none.p is None


def test_without_a_range_the_interval_is_students() -> None:
    found = mean_test(np.array([0.1, 0.2, 0.3, 0.4]), None)
    # t of 3 degrees of freedom is 3.182446; the standard error sqrt(5 / 3) / 20
    assert found.estimate.value == pytest.approx(0.25)
    assert found.estimate.low == pytest.approx(0.25 - 3.182446305 * (5 / 3) ** 0.5 / 20)
    assert found.p == pytest.approx(0.030466291662)
    assert student_tail(2.0, 2) == pytest.approx(1 - 2 / 6**0.5)


def test_without_a_range_equal_values_have_no_interval() -> None:
    assert mean_test(np.full(5, 3.0), None).estimate.no_interval == NO_RANGE
    assert mean_test(np.array([3.0]), None).estimate.no_interval == ONE_QUERY
    assert mean_test(np.array([]), None).estimate.reason == "no query counts"


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (1, 10), (3, 10), (10, 10)])
def test_a_rate_has_the_interval_of_clopper_and_pearson(hits: int, of: int) -> None:
    expected = scipy.stats.binomtest(hits, of).proportion_ci(0.95)
    found = rate(hits, of)
    wanted = (hits / of, expected.low, expected.high)
    assert (found.value, found.low, found.high) == pytest.approx(wanted, abs=1e-9)


def test_nothing_tried_has_no_rate() -> None:
    assert rate(0, 0).reason == "there were no trials"


# ---- gaffke's limits


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


# ---- the bootstrap over queries, against plain loops and scipy


def test_draws_are_whole_resamples_that_a_seed_repeats() -> None:
    draws = draw_queries(7, 50, seed=3)
    assert draws.shape == (50, 7)
    assert (draws.sum(axis=1) == 7).all()
    assert np.array_equal(draws, draw_queries(7, 50, seed=3))
    assert not np.array_equal(draws, draw_queries(7, 50, seed=4))


def test_queries_that_do_not_count_leave_the_means() -> None:
    values, counts = np.array([[1.0, 9.0, 3.0]]), np.array([[True, False, True]])
    draws = np.array([[1.0, 1, 1], [2, 1, 0], [0, 3, 0]])
    means, defined = resampled_means(values, counts, draws)
    assert means[:, 0].tolist() == [2, 1, 0]
    assert defined[:, 0].tolist() == [True, True, False]
