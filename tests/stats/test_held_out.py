"""Agreement between queries, and halves of systems that share nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import kendalltau

from exampp.stats.held_out import (
    agreement,
    agreement_without_each,
    draw_halves,
    jackknifed,
    pair_orders,
    related_groups,
)

TABLES = st.integers(0, 10**6).map(
    lambda seed: np.random.default_rng(seed).integers(0, 4, (5, 6)).astype(np.float64)
)


def test_agreement_by_hand() -> None:
    """Three systems: two queries agree on 2 pairs and disagree on 1; a tie counts nothing."""
    orders = pair_orders(np.array([[3.0, 3.0, 1.0], [2.0, 1.0, 1.0], [1.0, 2.0, 1.0]]))
    products = orders @ orders.T
    assert products[0, 1] == pytest.approx(1 / 3)
    assert products[0, 2] == 0
    assert agreement(products) == pytest.approx(1 / 9)


@given(TABLES)
def test_agreement_of_two_queries_is_tau_a(table: np.ndarray) -> None:
    orders = pair_orders(table)
    products = orders @ orders.T
    for one, other in combinations(range(6), 2):
        tau = kendalltau(table[:, one], table[:, other]).statistic
        untied = [
            np.mean([row[a] != row[b] for a, b in combinations(range(5), 2)])
            for row in (table[:, one], table[:, other])
        ]
        expected = 0.0 if np.isnan(tau) else tau * np.sqrt(untied[0] * untied[1])
        assert products[one, other] == pytest.approx(expected, abs=1e-12)


@given(TABLES)
def test_agreement_without_each_query_is_that_of_the_others(table: np.ndarray) -> None:
    orders = pair_orders(table)
    products = orders @ orders.T
    found = agreement_without_each(products)
    for query in range(6):
        left = np.delete(orders, query, axis=0)
        assert found[query] == pytest.approx(agreement(left @ left.T))


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    values = np.array([0.1, 0.4, 0.2, 0.9, 0.3, 0.5])
    without = (values.sum() - values) / 5
    found = jackknifed(float(values.mean()), without)
    half = 2.570581835636314 * values.std(ddof=1) / np.sqrt(6)
    assert found.low == pytest.approx(values.mean() - half)
    assert found.high == pytest.approx(values.mean() + half)
    assert jackknifed(0.1, np.array([0.1, 0.2])).no_interval == "fewer than 5 queries"


@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.4, 0.6, 0.8]))
def test_groups_are_those_of_average_linkage(seed: int, least: float) -> None:
    random = np.random.default_rng(seed).random((8, 8))
    similarity = (random + random.T) / 2
    np.fill_diagonal(similarity, 1)
    distances = squareform(1 - similarity, checks=False)
    labels = fcluster(linkage(distances, "average"), 1 - least, "distance")
    expected = {frozenset(np.flatnonzero(labels == one).tolist()) for one in set(labels)}
    assert set(map(frozenset, related_groups(similarity, least))) == expected


@given(st.lists(st.integers(1, 4), min_size=2, max_size=8), st.integers(0, 100))
def test_halves_never_divide_a_group(sizes: list[int], seed: int) -> None:
    places = iter(range(sum(sizes)))
    groups = [[next(places) for _ in range(size)] for size in sizes]
    for half in draw_halves(groups, 3, seed):
        sides = [set(half.chosen_by.tolist()), set(half.held_out.tolist())]
        assert sorted(sides[0] | sides[1]) == list(range(sum(sizes)))
        assert not sides[0] & sides[1]
        assert all(any(set(group) <= side for side in sides) for group in groups)
    assert [len(one.chosen_by) for one in draw_halves(groups, 3, seed)[::2]] == [
        len(one.held_out) for one in draw_halves(groups, 3, seed)[1::2]
    ]
