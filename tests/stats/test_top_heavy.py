"""Top-heavy rank correlation: by hand, as published, and against the definitions spelled out."""

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
    PERSISTENCE,
    at_the_top,
    kendall,
    kendall_at_rows,
    one_row,
    rank_statistic,
    rbo_rows,
    tau_ap_rows,
)

CLOSE = 1e-9


def tau_ap(scores: Any, official: Any) -> Estimate:
    return one_row(tau_ap_rows, scores, official)


def rbo(scores: Any, official: Any, p: float = PERSISTENCE) -> Estimate:
    return one_row(lambda x, y: rbo_rows(x, y, p), scores, official)


def kendall_at(scores: Any, official: Any, k: int) -> Estimate:
    return one_row(lambda x, y: kendall_at_rows(x, y, k), scores, official)


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


def rbo_of_orders(order: Sequence[int], official: Sequence[int], p: float) -> float:
    """Webber et al. 2010, equation 4, summed until nothing is left; beyond n all are common."""
    depths = range(1, 4000)
    n = len(order)
    common = [len(set(order[:d]) & set(official[:d])) / d if d < n else 1.0 for d in depths]
    return (1 - p) * math.fsum(p ** (d - 1) * a for d, a in zip(depths, common, strict=True))


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


def test_rbo_by_hand() -> None:
    # b a c against a b c: A is 0, 1, 1; with p = 0.5: 0.25 + 0.125 + 0.5 ** 3.
    assert rbo([2, 3, 1], [3, 2, 1], 0.5).value == pytest.approx(0.5)
    # a and b tied: half of each in the first place, so that A_1 is 1/2.
    assert rbo([3, 3, 1], [3, 2, 1], 0.5).value == pytest.approx(0.75)
    assert rbo([3, 2, 1], [30, 20, 10], 0.9).value == pytest.approx(1)


@given(few, st.sampled_from([0.3, 0.9]))
def test_ties_are_the_mean_over_their_orders(values: Any, p: float) -> None:
    x, y = values
    found_ap, found_rbo = tau_ap(x, y), rbo(x, y, p)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found_ap.value is found_rbo.value is None
        assert found_ap.reason == found_rbo.reason == "all values of one side are equal"
        return
    pairs = list(itertools.product(orders(x), orders(y)))
    wanted = math.fsum(tau_ap_of_orders(a, b) for a, b in pairs) / len(pairs)
    assert found_ap.value == pytest.approx(wanted, abs=CLOSE)
    if len(pairs) < 40:
        wanted = math.fsum(rbo_of_orders(a, b, p) for a, b in pairs) / len(pairs)
        assert found_rbo.value == pytest.approx(wanted, abs=CLOSE)


def test_kendall_at_the_top() -> None:
    official = [5, 4, 3, 3, 1]
    scores = [5, 4, 1, 2, 9]
    assert at_the_top(np.array(official, float), 3).tolist() == [True] * 4 + [False]
    # The third is tied with the fourth: five pairs that are not tied officially, all agree.
    assert kendall_at(scores, official, 3).value == pytest.approx(5 / math.sqrt(5 * 6))
    assert kendall_at(scores, official, 2).value == 1
    assert kendall_at(scores, official, 5) == kendall_at(scores, official, 50)
    assert kendall_at(scores, official, 5) == kendall(scores, official)


def test_rows_equal_one_at_a_time() -> None:
    random = np.random.default_rng(3)
    scores = random.integers(0, 6, (40, 9)).astype(float)
    scores[7] = 2.0
    official = random.integers(0, 6, 9).astype(float)
    for rows, single in (
        (tau_ap_rows, tau_ap),
        (rbo_rows, rbo),
        (lambda x, y: kendall_at_rows(x, y, 4), lambda x, y: kendall_at(x, y, 4)),
    ):
        found = rows(scores, official)
        assert not found.defined[7]
        for line, value, defined in zip(scores, found.values, found.defined, strict=True):
            assert single(line, official).value == (pytest.approx(value) if defined else None)


@pytest.mark.parametrize("single", [tau_ap, rbo, lambda x, y: kendall_at(x, y, 10)])
def test_nothing_to_compare(single: Any) -> None:
    assert single([], []).value is None
    assert single([1], [1]).reason == "fewer than 2 systems to compare (1)"
    assert single([1, 1], [1, 2]).reason == "all values of one side are equal"


def test_statistics_by_name() -> None:
    for name in ("spearman", "kendall", "tau_ap", "rbo", "rbo(p=0.8)", "kendall@10"):
        assert rank_statistic(name).name == name
    assert rank_statistic("rbo(p=0.9)").name == "rbo"
    for wrong in ("tau", "kendall@1", "rbo(p=1)", "rbo(p=0)", "rbo(p=0.5.5)", "kendall@"):
        with pytest.raises(InputError, match="no rank statistic"):
            rank_statistic(wrong)
    with pytest.raises(ValueError, match="between 0 and 1"):
        rbo([1, 2], [1, 2], 1.0)
    with pytest.raises(ValueError, match="one official leaderboard"):
        kendall_at_rows(np.ones((1, 3)), np.ones((2, 3)), 2)


def test_tau_ap_depends_on_the_direction() -> None:
    """Order b, c, a, d against a, b, c, d: 2 (1 + 0 + 1) / 3 - 1, and 2 (0 + 1/2 + 1) / 3 - 1."""
    scores, official = [2, 4, 3, 1], [4, 3, 2, 1]
    assert tau_ap(scores, official).value == pytest.approx(1 / 3)
    assert tau_ap(official, scores).value == pytest.approx(0)
