"""Rates and their intervals, against values of scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from exampp.stats.means import student_tail
from exampp.stats.rates import beta_below, by_luck, jeffreys, mean_difference


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # scipy.stats.beta(x + 0.5, n - x + 0.5).ppf([0.025, 0.975])
        (1, 10, 0.01101167, 0.38131477),
        (3, 10, 0.09269459, 0.60581832),
        (50, 1000, 0.03777013, 0.06482846),
    ],
)
def test_jeffreys(hits: int, of: int, low: float, high: float) -> None:
    found = jeffreys(hits, of)
    assert (found.value, found.low, found.high) == pytest.approx((hits / of, low, high), abs=1e-8)


def test_nothing_and_everything_reach_the_end() -> None:
    assert jeffreys(0, 10).low == 0.0
    assert jeffreys(0, 10).high == pytest.approx(0.217196, abs=1e-6)
    assert jeffreys(10, 10).high == 1.0
    assert jeffreys(10, 10).low == pytest.approx(1 - 0.217196, abs=1e-6)
    assert jeffreys(0, 0).reason == "nothing was tried"


def test_the_beta_of_whole_numbers_is_a_binomial_tail() -> None:
    # I_x(2, 3) is the chance of 2 or more hits in 4: 6 x^2 (1-x)^2 + 4 x^3 (1-x) + x^4
    x = 0.3
    tail = 6 * x**2 * (1 - x) ** 2 + 4 * x**3 * (1 - x) + x**4
    assert beta_below(x, 2, 3) == pytest.approx(tail, abs=1e-14)


def test_luck_grows_with_the_list() -> None:
    assert by_luck(0.05, 1) == pytest.approx(0.05)
    assert by_luck(0.05, 20) == pytest.approx(0.6415140775914581)


def test_a_mean_difference_has_students_interval() -> None:
    found = mean_difference(np.array([0.1, 0.2, 0.3, 0.4]))
    # t of 3 degrees of freedom is 3.182446; the standard error sqrt(5 / 3) / 20
    assert found.estimate.value == pytest.approx(0.25)
    assert found.estimate.low == pytest.approx(0.25 - 3.182446305 * (5 / 3) ** 0.5 / 20)
    assert found.p == pytest.approx(0.030466291662)
    assert student_tail(2.0, 2) == pytest.approx(1 - 2 / 6**0.5)


def test_differences_that_are_all_equal_have_no_interval() -> None:
    always = mean_difference(np.ones(8))
    assert (always.estimate.value, always.estimate.low, always.p) == (1.0, None, 2**-7)
    never = mean_difference(np.zeros(8))
    assert (never.estimate.value, never.p) == (0.0, 1.0)
    assert mean_difference(np.array([0.5])).p is None
    assert mean_difference(np.array([])).estimate.reason == "no query has both"
