"""Means over queries: Gaffke's limits where the range is known, Student's where it is not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from exampp.stats.means import (
    DIFFERENCE,
    NO_RANGE,
    ONE_QUERY,
    SHARE,
    mean_test,
    mean_tests,
    rate,
    student_quantile,
    student_tail,
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
    assert rate(0, 0).reason == "nothing was tried"
