"""Recall and precision of lists of items, by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from exampp.stats.item_matches import (
    DIFFERENT,
    PART,
    SAME,
    WIDER,
    asked_for,
    best_items,
    discounted_recall,
    fitting,
)
from exampp.stats.proportions import mean_share

D, P, W, S = DIFFERENT, PART, WIDER, SAME


def table(*rows: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return np.array(rows, np.int16)


def test_same_and_wider_ask_for_all_of_it_and_a_part_for_half() -> None:
    relations = table([S, D, D, D], [D, W, P, D])
    assert asked_for(relations, (0, 1)).tolist() == [1, 1, 0.5, 0]


def test_two_parts_ask_for_all_of_it_unless_they_repeat_each_other() -> None:
    relations = table([P], [P])
    assert asked_for(relations, (0, 1)).tolist() == [1]
    assert asked_for(relations, (0, 0)).tolist() == [0.5]


def test_an_item_fits_by_what_it_asks_for_in_the_reference_bank() -> None:
    relations = table([S, D], [P, D], [D, D], [W, D], [W, W])
    assert fitting(relations).tolist() == [1, 1, 0, 0.5, 1]


def test_discounted_recall_by_hand() -> None:
    # ranks 1 to 3 ask for nothing, the second item, the first one; the third item is missing
    relations = table([D, D, D], [D, S, D], [S, D, D])
    weights = np.array([1.0, 2.0, 1.0])
    gained = 2 / log2(3) + 1 / log2(4)
    ideal = 2 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert discounted_recall(relations, (0, 1, 2), weights, 3) == pytest.approx(gained / ideal)
    assert discounted_recall(relations, (0, 1, 2), weights, 1) == 0


def test_a_repetition_gains_nothing_and_a_wide_list_at_most_one() -> None:
    weights = np.ones(2)
    once, twice = table([S, D], [D, S]), table([S, D], [S, D])
    assert discounted_recall(once, (0, 1), weights, 2) == pytest.approx(1)
    assert discounted_recall(twice, (0, 0), weights, 2) < 0.7
    assert discounted_recall(table([W, W]), (0,), weights, 2) == 1


def test_greedy_choice_takes_the_heaviest_first_and_stops_where_nothing_is_gained() -> None:
    relations = table([S, D, D], [D, S, S], [D, D, S], [D, D, D])
    weights = np.array([1.0, 1.0, 2.0])
    assert best_items(relations, (0, 1, 2, 3), weights, 4) == [(1, 0.75), (0, 1.0)]
    assert best_items(relations, (0, 1, 2, 3), weights, 1) == [(1, 0.75)]


def test_the_interval_of_equal_shares_is_that_of_wilson() -> None:
    # 20 of 20: with Student's quantile 2.093 for 19 degrees of freedom
    found = mean_share(np.ones(20))
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1 / (1 + 2.093024**2 / 20), rel=1e-5)


def test_uneven_queries_widen_the_interval() -> None:
    even = mean_share(np.full(20, 0.5) + np.tile([0.1, -0.1], 10))
    uneven = mean_share(np.tile([1.0, 0.0], 10))
    assert even.value == uneven.value == 0.5
    assert even.low is not None
    assert uneven.low is not None
    assert uneven.low < even.low < 0.5
    assert mean_share(np.ones(1)).why
    assert mean_share(np.ones(0)).value is None


def test_the_limits_of_three_equal_shares_by_hand() -> None:
    """A third of a query of value 0 (or 1) adds 0.3 * 0.25 to the squares."""
    # of 7/3 freedoms: the variance 0.0321 gives 23.3 trials; Student's quantile is 4.302653
    found = mean_share(np.full(3, 0.5))
    assert found.low == pytest.approx(0.167433, abs=1e-6)
    assert found.high == pytest.approx(0.832567, abs=1e-6)


def test_good_queries_leave_room_for_one_that_fails() -> None:
    """The lower limit counts a query of value 0, the upper one of value 1, which is nearer."""
    # variance (0.025 + 10/31 * 0.85 ** 2) * 3/28, 46.1 trials; Student's quantile 2.262157
    found = mean_share(np.tile([0.8, 0.9], 5))
    assert found.low == pytest.approx(0.6968, abs=1e-4)
    # here the variance adds only 10/31 * 0.15 ** 2
    assert found.high == pytest.approx(0.8873, abs=1e-4)
