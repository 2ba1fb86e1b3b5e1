"""Intervals of shares: within 0 and 1, by hand, and none where nothing is known of the spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from exampp.stats.estimate import around
from exampp.stats.means import ALL_EQUAL, FEW_QUERIES, share_mean, student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 42, 199, 1000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_quantile_is_that_of_scipy(level: float, freedom: int) -> None:
    expected = scipy.stats.t.ppf((1 + level) / 2, freedom)
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-8)


def test_by_hand() -> None:
    # mean 0.8, variance 0.04, so that the standard error is 0.1 and on the logit scale
    # 0.1 / 0.16 = 0.625; log(0.8 / 0.2) = 1.3863; t with 3 degrees of freedom reaches 3.1824
    found = share_mean(np.array([0.6, 0.7, 0.9, 1.0]), 0.95)
    error = math.sqrt((0.04 + 0.01 + 0.01 + 0.04) / 3) / 2
    reach = 3.182446 * error / 0.16
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(1 / (1 + math.exp(-(math.log(4) - reach))), abs=1e-6)
    assert found.high == pytest.approx(1 / (1 + math.exp(-(math.log(4) + reach))), abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.8, 0.95, 0.99]))
def test_never_beyond_what_is_possible(values: list[float], level: float) -> None:
    found = share_mean(np.array(values), level)
    assert found.value is not None
    if found.low is None or found.high is None:
        assert found.no_interval in (FEW_QUERIES, ALL_EQUAL)
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high


def test_none_where_the_spread_is_not_known() -> None:
    assert share_mean(np.array([]), 0.95).value is None
    assert share_mean(np.array([0.3]), 0.95).no_interval == FEW_QUERIES
    assert share_mean(np.array([0.3, 0.4, 0.8]), 0.95).no_interval == FEW_QUERIES
    assert share_mean(np.array([0.3, 0.4, 0.8, 0.2]), 0.95).low is not None
    assert share_mean(np.array([0.3] * 4), 0.95).no_interval == ALL_EQUAL


def test_differences_end_at_what_is_possible() -> None:
    cut = around(0.6, 0.9, 1.0, "why")
    assert cut.low == pytest.approx(-0.3)
    assert cut.high == 1.0
    assert around(0.6, 1.7, 1.0, "why").no_interval == "why"
    assert around(0.6, math.inf, math.inf, "why").low is None
    assert around(3.0, 2.0, math.inf, "why").high == 5.0
