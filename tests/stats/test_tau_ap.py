"""tau_AP by hand, as published, and against its definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.stats.estimate import Estimate
from exampp.stats.rank_correlation import (
    one_row,
    rank_statistic,
    tau_ap_rows,
)

CLOSE = 1e-9


def tau_ap(scores: Any, official: Any) -> Estimate:
    return one_row(tau_ap_rows, scores, official)


few = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


def orders(values: Sequence[float]) -> list[tuple[int, ...]]:
    """All rankings, best first, that values with ties allow."""
    return [
        order
        for order in itertools.permutations(range(len(values)))
        if all(values[a] >= values[b] for a, b in itertools.pairwise(order))
    ]


def tau_ap_of_orders(order: Sequence[int], official: Sequence[int]) -> float:
    """Yilmaz et al. 2008, equation 4: 2 / (n - 1) * sum of C(i) / (i - 1), less 1."""
    n = len(order)
    place = {system: rank for rank, system in enumerate(official)}
    right = [sum(place[a] < place[order[i]] for a in order[:i]) / i for i in range(1, n)]
    return 2 * sum(right) / (n - 1) - 1


def test_tau_ap_by_hand() -> None:
    # Ranked b a c d, officially a b c d: 0/1, 2/2, 3/3 are right; 2/3 * 2 - 1.
    assert tau_ap([3, 4, 2, 1], [4, 3, 2, 1]).value == pytest.approx(1 / 3)
    # The same swap at the bottom, a b d c: 1/1, 2/2, 2/3.
    assert tau_ap([4, 3, 1, 2], [4, 3, 2, 1]).value == pytest.approx(2 * (8 / 3) / 3 - 1)
    assert tau_ap([1, 2, 3], [3, 2, 1]).value == -1


def test_tau_ap_as_published() -> None:
    """The example of the package by the authors of the tie-aware variants (ircor)."""
    x = [0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94]
    y = [0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94]
    assert tau_ap(y, x).value == pytest.approx(0.7491182, abs=5e-8)
    assert tau_ap([round(value * 5) / 5 for value in y], x).value == pytest.approx(
        0.6074515, abs=5e-8
    )


@given(few)
def test_ties_are_the_mean_over_their_orders(values: Any) -> None:
    x, y = values
    found = tau_ap(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.value is None
        assert found.reason == "all values of one side are equal"
        return
    pairs = list(itertools.product(orders(x), orders(y)))
    wanted = math.fsum(tau_ap_of_orders(a, b) for a, b in pairs) / len(pairs)
    assert found.value == pytest.approx(wanted, abs=CLOSE)


def test_rows_equal_one_at_a_time() -> None:
    random = np.random.default_rng(3)
    scores = random.integers(0, 6, (40, 9)).astype(float)
    scores[7] = 2.0
    official = random.integers(0, 6, 9).astype(float)
    found = tau_ap_rows(scores, official)
    assert not found.defined[7]
    for line, value, defined in zip(scores, found.values, found.defined, strict=True):
        assert tau_ap(line, official).value == (pytest.approx(value) if defined else None)
    assert tau_ap([], []).value is None
    assert tau_ap([1], [1]).reason == "fewer than 2 systems to compare (1)"
    assert tau_ap([1, 1], [1, 2]).reason == "all values of one side are equal"


def test_statistics_by_name() -> None:
    for name in ("spearman", "kendall", "tau_ap"):
        assert rank_statistic(name).name == name
    with pytest.raises(InputError, match="no rank statistic"):
        rank_statistic("tau")


def test_tau_ap_depends_on_the_direction() -> None:
    """Order b, c, a, d against a, b, c, d: 2 (1 + 0 + 1) / 3 - 1, and 2 (0 + 1/2 + 1) / 3 - 1."""
    scores, official = [2, 4, 3, 1], [4, 3, 2, 1]
    assert tau_ap(scores, official).value == pytest.approx(1 / 3)
    assert tau_ap(official, scores).value == pytest.approx(0)
