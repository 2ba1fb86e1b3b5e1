"""All pairs at once, and the ranks that they leave."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from exampp.stats.rank_sets import pair_tests, student_reach

SURE = np.full((3, 3), 1000.0)


def test_student() -> None:
    freedom = np.array([1.0, 2, 9, 15, 19, 42, 400])
    assert student_reach(0.95, freedom) == pytest.approx(
        scipy.stats.t.ppf(0.975, freedom), rel=1e-4
    )


def test_one_pair_is_its_own_interval() -> None:
    two = pair_tests(
        np.array([0.5, 0.4]), np.eye(2) * 0.01, np.ones((2, 2), bool), SURE[:2, :2], draws=40_000
    )
    assert two.quantile == pytest.approx(1.96, abs=0.03)
    assert two.half[0, 1] == pytest.approx(1.9623 * 0.02**0.5, rel=1e-3)
    assert not two.better.any()
    assert [ranks.tolist() for ranks in two.rank_sets()] == [[1, 1], [2, 2]]


def test_rank_sets_hold_what_is_undecided() -> None:
    """The first two are apart from the third, not from each other; errors are independent."""
    found = pair_tests(
        np.array([0.9, 0.88, 0.1]), np.eye(3) * 1e-4, np.ones((3, 3), bool), SURE, seed=1
    )
    # the quantile of the studentised range of three over sqrt(2)
    wanted = scipy.stats.studentized_range.ppf(0.95, 3, np.inf) / 2**0.5
    assert found.quantile == pytest.approx(wanted, abs=0.06)
    assert [ranks.tolist() for ranks in found.rank_sets()] == [[1, 1, 3], [2, 2, 3]]


def test_what_is_unresolved_is_never_better() -> None:
    resolved = np.ones((2, 2), bool)
    resolved[0, 1] = resolved[1, 0] = False
    found = pair_tests(np.array([0.9, 0.1]), np.zeros((2, 2)), resolved, SURE[:2, :2])
    assert not found.better.any()
    assert np.isnan(found.half[0, 1])


def test_without_error_every_difference_counts_but_rounding() -> None:
    scores = np.array([0.3, 0.1 + 0.2, 0.2])
    found = pair_tests(scores, np.zeros((3, 3)), np.ones((3, 3), bool), SURE)
    assert [ranks.tolist() for ranks in found.rank_sets()] == [[1, 1, 3], [2, 2, 3]]
