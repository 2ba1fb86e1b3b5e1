"""All pairs at once, and the ranks that they leave."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from exampp.stats.rank_sets import PairTests, Resampling, pair_tests, student_reach

SURE = np.full((3, 3), 1000.0)


def test_student() -> None:
    freedom = np.array([1.0, 2, 9, 15, 19, 42, 400])
    assert student_reach(0.95, freedom) == pytest.approx(
        scipy.stats.t.ppf(0.975, freedom), rel=1e-4
    )


def of_queries(
    values: NDArray[np.float64], resolved: NDArray[np.bool_] | None = None, draws: int = 2000
) -> PairTests:
    n, queries = values.shape
    if resolved is None:
        resolved = np.ones((n, n), bool)
    covariance = np.cov(values) / queries
    resampling = Resampling(values, None, values, 0, draws=draws)
    return pair_tests(
        values.mean(axis=1), covariance, resolved, np.full((n, n), queries - 1.0), resampling
    )


def independent(means: list[float], queries: int = 400) -> NDArray[np.float64]:
    return np.array(means)[:, None] + np.random.default_rng(3).normal(
        0, 0.02, (len(means), queries)
    )


def test_one_pair_is_its_own_interval() -> None:
    found = of_queries(independent([0.5, 0.5]), draws=20_000)
    assert found.quantile == pytest.approx(1.96, abs=0.05)
    assert found.half[0, 1] == pytest.approx(scipy.stats.t.ppf(0.975, 399) * found.errors[0, 1])


def test_rank_sets_hold_what_is_undecided() -> None:
    """The first two are apart from the third, not from each other; errors are independent."""
    values = independent([0.9, 0.9, 0.1])
    found = of_queries(values)
    # the quantile of the studentised range of three over sqrt(2)
    wanted = scipy.stats.studentized_range.ppf(0.95, 3, np.inf) / 2**0.5
    assert found.quantile == pytest.approx(wanted, abs=0.1)
    assert [ranks.tolist() for ranks in found.rank_sets()] == [[1, 1, 3], [2, 2, 3]]


@pytest.mark.parametrize("fewest", [0, 10])
def test_the_largest_of_a_sample_drawn_anew(fewest: int) -> None:
    """By hand: every draw's sum and its own standard error, a unit being 1/pi copies of itself.

    The first two differ on eight units alone, of which most draws have fewer than ten.
    """
    random = np.random.default_rng(1)
    values, pi = random.normal(size=(3, 30)), np.full(30, 0.25)
    values[1, 8:] = values[0, 8:]
    resampling = Resampling(values, pi, values, fewest, draws=3000, seed=2)
    found = resampling.largest(np.ones((3, 3), bool), np.ones((3, 3)), 0.9)
    largest = []
    for _ in range(3000):
        drawn = random.binomial(4, 0.25, 30)
        of_pairs = []
        for one, other in ((0, 1), (0, 2), (1, 2)):
            apart = values[one] - values[other]
            if drawn[apart != 0].sum() < fewest:
                continue
            error = (drawn * apart).sum() / 0.25 - (4 * apart).sum()
            variance = (drawn * apart**2).sum() * 0.75 / 0.25**2
            of_pairs.append(abs(error) / variance**0.5)
        if of_pairs:
            largest.append(max(of_pairs))
    assert found == pytest.approx(np.quantile(largest, 0.9), rel=0.05)


def test_few_that_are_left_out_reach_further_than_normal_vectors_do() -> None:
    """Nearly all is drawn: the error hangs on the few that are not, of which some tell much."""
    values = np.zeros((2, 60))
    values[0] = np.repeat([1.0, -1.0, 12.0], [29, 29, 2])
    resampling = Resampling(values, np.full(60, 0.95), values, 0)
    assert resampling.largest(np.ones((2, 2), bool), np.ones((2, 2)), 0.95) > 2.5
    certain = Resampling(values, np.ones(60), values, 0)
    assert certain.largest(np.ones((2, 2), bool), np.zeros((2, 2)), 0.95) == 0


def test_what_is_unresolved_is_never_better() -> None:
    resolved = np.ones((2, 2), bool)
    resolved[0, 1] = resolved[1, 0] = False
    found = of_queries(independent([0.9, 0.1]), resolved)
    assert not found.better.any()
    assert np.isnan(found.half[0, 1])
    assert np.isnan(found.joint[0, 1])


def test_without_error_every_difference_counts_but_rounding() -> None:
    scores = np.array([0.3, 0.1 + 0.2, 0.2])
    ones = np.ones((3, 4))
    certain = Resampling(ones, np.ones(4), ones, 0)
    found = pair_tests(scores, np.zeros((3, 3)), np.ones((3, 3), bool), SURE, certain)
    assert [ranks.tolist() for ranks in found.rank_sets()] == [[1, 1, 3], [2, 2, 3]]


def test_of_all_pairs_no_interval_is_shorter_than_that_of_the_pair() -> None:
    """Nothing is decided if no drawn sample decides it."""
    values = independent([0.9, 0.1], queries=20)
    found = of_queries(values, draws=100)
    assert (found.joint >= found.half)[0, 1]
    blind = Resampling(values, None, np.zeros((2, 20)), 10)
    assert blind.largest(np.ones((2, 2), bool), np.ones((2, 2)), 0.95) == np.inf
