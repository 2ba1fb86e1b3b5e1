"""Decisions about a mean over all queries: their level over all orders of small populations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from exampp.stats.means import DIFFERENCE, SHARE, bounded_means
from exampp.stats.sequential import decided_pairs, full_limits, largest_wealth

POPULATIONS = (
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    [0.1, 0.4, 0.5, 0.5, 0.9, 1.0],
    [0.3, 0.3, 0.3, 0.3, 0.3, 0.3],
)


def test_wealth_by_hand() -> None:
    # two of three values are known, and all three are claimed to sum to 1.5 at most. The first, 1,
    # pays 1 / .5 = 2: 1.25, 1.5 and 2 by bets of .25, .5 and 1. Then .5 is left for two values: 0.5
    # pays .5 / .25 = 2 again. The capitals are 1.25 ** 2, 1.5 ** 2 and 4
    values, mean = np.array([[1.0, 0.5]]), np.array([0.5])
    expected = np.log((1.25**2 + 1.5**2 + 4) / 3)
    assert largest_wealth(values, 3, 0.0, mean) == pytest.approx(expected)


def test_a_claim_that_the_values_exclude_is_refuted_at_once() -> None:
    values = np.array([[1.0, 1.0]])
    assert np.isinf(largest_wealth(values, 3, 0.0, np.array([0.6])))
    assert np.isfinite(largest_wealth(values, 3, 0.0, np.array([0.7])))


@pytest.mark.parametrize("population", POPULATIONS)
def test_a_true_claim_rarely_makes_rich(population: list[float]) -> None:
    orders = np.array(list(permutations(population)))
    mean = np.full(len(orders), np.mean(population))
    for error in (0.5, 0.25, 0.05):
        rich = largest_wealth(orders, orders.shape[1], 0.0, mean) >= -np.log(error) + 1e-9
        assert rich.mean() <= error


def test_orders_are_wrong_in_at_most_the_stated_share() -> None:
    scores = np.array([[0.9, 0.2, 0.3, 1.0, 0.1], [0.5, 0.3, 0.4, 0.9, 0.4]])
    # both means are .5, so that neither order is right
    wrong = 0
    orders = list(permutations(range(5)))
    for order in orders:
        shuffled = scores[:, order]
        wrong += any(
            decided_pairs(shuffled[:, :n], 5, DIFFERENCE, 0.0, 0.5).any() for n in range(1, 6)
        )
    assert wrong / len(orders) <= 0.5


def test_pairs_are_decided_by_order_margin_or_equality() -> None:
    scores = np.array([[1.0] * 30, [0.0] * 30, [0.0] * 30])
    # of pairs (0, 1), (0, 2) and (1, 2) the last one has no order
    assert decided_pairs(scores, 60, DIFFERENCE, 0.0, 0.05).tolist() == [True, True, False]
    close = decided_pairs(scores, 60, DIFFERENCE, 0.6, 0.05)
    assert close.tolist() == [True, True, True]
    equal = np.array([False, False, True])
    assert decided_pairs(scores, 60, DIFFERENCE, 0.0, 0.05, equal).all()
    # more may follow in the other 58 queries
    assert not decided_pairs(scores[:, :2], 60, DIFFERENCE, 0.6, 0.05).any()


def test_limits_include_those_of_all_queries() -> None:
    random = np.random.default_rng(5)
    for population in (random.random(40), random.random(40) < 0.3, random.beta(5, 1, 40)):
        values = population.astype(np.float64)
        whole = bounded_means(values[None], np.ones((1, 40), np.bool_), SHARE, 0.95)
        outside = 0
        for _ in range(15):
            shuffled = random.permutation(values)
            for known in (5, 20, 35):
                (low,), (high,) = full_limits(shuffled[None, :known], 40, SHARE, 0.95, 0.1)
                outside += low > whole.low[0] + 1e-9 or high < whole.high[0] - 1e-9
        assert outside <= 4
        (low,), (high,) = full_limits(values[None], 40, SHARE, 0.95, 0.1)
        assert (low, high) == pytest.approx((float(whole.low[0]), float(whole.high[0])))


def test_limits_of_a_row_do_not_depend_on_others() -> None:
    values = np.random.default_rng(2).random((3, 12))
    together = np.stack(full_limits(values, 40, SHARE, 0.95, 0.1))
    alone = [np.stack(full_limits(row[None], 40, SHARE, 0.95, 0.1)) for row in values]
    assert np.hstack(alone) == pytest.approx(together, abs=1e-12)


def test_limits_of_few_queries_are_wide() -> None:
    (low,), _ = full_limits(np.array([[1.0, 1.0]]), 40, SHARE, 0.95, 0.05)
    assert low < 0.05
