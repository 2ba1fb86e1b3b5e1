"""Classical item analysis and item response theory: by hand, by an oracle, on LSAT7."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.measures.cover import miss_probability
from exampp.stats.item_analysis import (
    alpha_if_deleted,
    alpha_without_each,
    coefficient_alpha,
    draw_item_halves,
    draw_query_halves,
    item_rest,
    item_total,
    jackknife_error,
    kept_systems,
    order_changes,
    ranks_of_systems,
    select_items,
    split_halves,
)

HAND = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 0]], np.float64)
Rows = Sequence[Sequence[int]]
TABLES = st.integers(3, 7).flatmap(
    lambda items: st.lists(
        st.lists(st.integers(0, 1), min_size=items, max_size=items), min_size=3, max_size=8
    )
)


def test_by_hand() -> None:
    assert coefficient_alpha(HAND) == pytest.approx(4 / 9)
    rest, total = item_rest(HAND), item_total(HAND)
    assert rest.defined.tolist() == total.defined.tolist() == [True, True, False, False]
    assert rest.values[:2] == pytest.approx([0.5, 0.5])
    assert total.values[:2] == pytest.approx([0.8660254037844386] * 2)
    assert alpha_if_deleted(HAND).values == pytest.approx([0, 0, 0.5, 0.5], abs=1e-15)
    assert alpha_without_each(HAND) == pytest.approx((0, 2 / 3, 0), abs=1e-15)


def test_nothing_is_made_of_nothing() -> None:
    assert coefficient_alpha(np.ones((4, 3))) is None
    assert coefficient_alpha(HAND[:1]) is None
    assert coefficient_alpha(HAND[:, :1]) is None
    assert not item_rest(HAND[:2]).defined.any(), "of two systems every correlation is 1 or -1"
    assert not alpha_if_deleted(HAND[:, :2]).defined.any()
    assert not item_rest(np.zeros((0, 3))).defined.any()


def covariance(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.covariance(x, y) if len(x) > 1 else 0.0


def oracle_rest(rows: Rows, item: int) -> float | None:
    own = [row[item] for row in rows]
    rest = [sum(row) - row[item] for row in rows]
    if len(set(own)) == 1 or len(set(rest)) == 1:
        return None
    return statistics.correlation(own, rest)


def oracle_alpha(rows: Rows) -> float | None:
    """By the covariances of all pairs of items: k / (k - 1) * their share in the variance."""
    k = len(rows[0])
    columns = list(zip(*rows, strict=True))
    between = 2 * sum(covariance(a, b) for a, b in combinations(columns, 2))
    whole = statistics.variance([sum(row) for row in rows])
    return None if whole == 0 else k / (k - 1) * between / whole


@given(TABLES, st.sampled_from([1.0, 1 / 430, 7.3]))
def test_as_the_oracle_says(rows: Rows, scale: float) -> None:
    """Also where all items count by a fraction: no noise makes an undefined value defined."""
    table = np.array(rows, np.float64) * scale
    found = item_rest(table)
    for item in range(table.shape[1]):
        expected = oracle_rest(rows, item)
        assert found.defined[item] == (expected is not None)
        if expected is not None:
            assert found.values[item] == pytest.approx(expected, abs=1e-9)
            assert (found.values[item] < 0) == (expected < -1e-9)
        deleted = alpha_if_deleted(table)
        without = [[*row[:item], *row[item + 1 :]] for row in rows]
        expected = oracle_alpha(without)
        assert deleted.defined[item] == (expected is not None)
        if expected is not None:
            assert deleted.values[item] == pytest.approx(expected, abs=1e-9)
    expected = oracle_alpha(rows)
    assert (coefficient_alpha(table) is None) == (expected is None)
    if expected is not None:
        assert coefficient_alpha(table) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=8), st.data())
def test_order_changes_and_places(before: list[int], data: st.DataObject) -> None:
    after = data.draw(st.permutations(before))
    pairs = combinations(range(len(before)), 2)
    changed = sum(
        (before[a] > before[b], before[a] < before[b]) != (after[a] > after[b], after[a] < after[b])
        for a, b in pairs
    )
    noise = np.linspace(0, 1e-13, len(before))
    assert order_changes(np.array(before) / 10 + noise, np.array(after) / 10) == changed
    assert ranks_of_systems(np.array(before) / 10 + noise) == [
        1 + sum(other > one for other in before) for one in before
    ]


def test_the_worst_systems_are_dropped_and_ties_stay() -> None:
    scores = np.array([0.1, 0.2, 0.2 + 1e-15, 0.3, 0.9])
    assert kept_systems(scores, 0).all()
    assert kept_systems(scores, 0.03).tolist() == [False, True, True, True, True]
    assert kept_systems(scores, 0.5).tolist() == [False, True, True, True, True]
    assert kept_systems(scores, 0.75).tolist() == [False, False, False, True, True]
    # equal but for the order of summation
    thirds = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.9, 0.9, 0.9]])
    assert kept_systems(thirds.mean(axis=1), 0.25).all()


def test_jackknife_by_hand() -> None:
    # the error of a mean is the usual standard error
    values = [1.0, 2.0, 4.0, 7.0]
    without = [statistics.mean(values[:at] + values[at + 1 :]) for at in range(4)]
    assert jackknife_error(without) == pytest.approx(statistics.stdev(values) / 2)


def test_halves_hold_half_of_every_group() -> None:
    groups = [np.array([0, 2, 4]), np.array([], np.intp), np.array([1, 3]), np.array([5])]
    halves = draw_item_halves(groups, 50, 0)
    assert [set(halves[:, group].sum(axis=1)) for group in groups] == [{1}, {0}, {1}, {0}]
    assert (draw_item_halves(groups, 50, 0) == halves).all()
    one, other = draw_query_halves(5, 50, 0)
    assert set(one.sum(axis=1)) == set(other.sum(axis=1)) == {2}
    assert not (one & other).any()


def test_halves_that_agree_and_halves_that_do_not() -> None:
    same = np.array([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    turned = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    one = np.array([[True, False]])
    found = split_halves(same, one, ~one)
    assert (found.r, found.whole, found.tau) == pytest.approx((1, 1, 1))
    found = split_halves(turned, one, ~one)
    assert (found.r, found.tau) == pytest.approx((-1, -1))
    assert found.whole is None, "-1 cannot be stepped up"
    slightly = np.array([[1.0, 0.0], [0.0, 0.1], [0.5, 0.4]])
    found = split_halves(slightly, one, ~one)
    assert found.r is not None
    assert -1 < found.r < 0
    assert found.whole is None
    none = split_halves(np.ones((3, 2)), one, ~one)
    assert (none.r, none.tau) == (None, None)


def test_items_on_the_cut_are_kept() -> None:
    assert select_items(HAND / 430, 0.5).tolist() == [True, True, False, False]


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 15))
def test_chance_as_it_is_counted(passages: int, covering: int, k: int) -> None:
    covering = min(covering, passages)
    drawn = min(k, passages)
    expected = math.comb(passages - covering, drawn) / math.comb(passages, drawn)
    assert miss_probability(passages, np.array([covering]), k)[0] == pytest.approx(expected)
