"""Rates and their intervals, against values of scipy and by hand."""

from __future__ import annotations

import pytest
import scipy

from exampp.stats.means import chance_of_any, rate


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (1, 10), (3, 10), (10, 10)])
def test_a_rate_has_the_interval_of_clopper_and_pearson(hits: int, of: int) -> None:
    expected = scipy.stats.binomtest(hits, of).proportion_ci(0.95)
    found = rate(hits, of)
    wanted = (hits / of, expected.low, expected.high)
    assert (found.value, found.low, found.high) == pytest.approx(wanted, abs=1e-9)


def test_nothing_tried_has_no_rate() -> None:
    assert rate(0, 0).reason == "nothing was tried"


def test_luck_grows_with_the_list() -> None:
    assert chance_of_any(0.05, 1) == pytest.approx(0.05)
    assert chance_of_any(0.05, 20) == pytest.approx(0.6415140775914581)
