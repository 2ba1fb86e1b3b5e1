from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exampp.stats.estimate import Estimate, undefined
from exampp.stats.rank_correlation import (
    correlate,
    kendall,
    kendall_rows,
    spearman,
    spearman_rows,
    unite_ties,
)


def test_spearman_by_hand() -> None:
    # Ranks 1 2 3 4 and 2 1 4 3: 1 - 6 * 4 / (4 * 15).
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]).value == pytest.approx(0.6)
    # Ranks 1 2.5 2.5 and 1 2 3: deviations -1 .5 .5 and -1 0 1: 1.5 / sqrt(1.5 * 2).
    assert spearman([1, 5, 5], [1, 2, 3]).value == pytest.approx(1.5 / math.sqrt(3))


def test_kendall_by_hand() -> None:
    # Pairs: 4 agree, 2 do not, of 6.
    assert kendall([1, 2, 3, 4], [20, 10, 40, 30]).value == pytest.approx(2 / 6)
    # One of three pairs tied in x: 2 / sqrt(2 * 3).
    assert kendall([1, 5, 5], [1, 2, 3]).value == pytest.approx(2 / math.sqrt(6))


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_extremes_are_exact(measure: Callable[[Any, Any], Estimate]) -> None:
    for n in (2, 3, 10, 37, 200):
        assert measure(range(n), range(n)).value == 1.0
        assert measure(range(n), range(n, 0, -1)).value == -1.0


@pytest.mark.parametrize("measure", [spearman, kendall])
@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], "fewer than 2 systems to compare (0)"),
        ([1], [1], "fewer than 2 systems to compare (1)"),
        ([1, 1, 1], [1, 2, 3], "all values of one side are equal"),
        ([1, 2, 3], [7, 7, 7], "all values of one side are equal"),
        ([1, math.nan], [1, 2], "a value is not a number"),
    ],
)
def test_undefined(
    measure: Callable[[Any, Any], Estimate], x: list[float], y: list[float], reason: str
) -> None:
    assert measure(x, y) == undefined(reason)


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_lengths_must_agree(measure: Callable[[Any, Any], Estimate]) -> None:
    with pytest.raises(ValueError, match="one length"):
        measure([1, 2], [1, 2, 3])


def scipy_says(name: str, x: Sequence[float], y: Sequence[float]) -> float:
    import scipy.stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(getattr(scipy.stats, name)(x, y).statistic)


values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(math.inf))


# The first call imports scipy.
@settings(deadline=None)
@given(st.lists(st.tuples(values, values), min_size=2, max_size=30))
def test_against_scipy(pairs: list[tuple[float, float]]) -> None:
    x, y = zip(*pairs, strict=True)
    for ours, theirs in ((spearman(x, y), "spearmanr"), (kendall(x, y), "kendalltau")):
        if ours.value is None:
            assert math.isnan(scipy_says(theirs, x, y))
        else:
            assert ours.value == pytest.approx(scipy_says(theirs, x, y), abs=1e-12)


@pytest.mark.parametrize(("rows", "single"), [(spearman_rows, spearman), (kendall_rows, kendall)])
def test_rows_equal_one_at_a_time(rows: Any, single: Any) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 5, (23, 6)).astype(float), rng.integers(0, 5, (23, 6)).astype(float)
    x[4] = 1.0
    for a, b in ((x, y), (x, y[0]), (x[0], y)):
        found = rows(a, b)
        broadcast = np.broadcast_arrays(np.atleast_2d(a), np.atleast_2d(b))
        for one, other, value, defined in zip(*broadcast, found.values, found.defined, strict=True):
            assert single(one, other).value == (pytest.approx(value) if defined else None)
    assert rows(x[:0], y[:0]).values.shape == (0,)


@pytest.mark.parametrize("rows", [spearman_rows, kendall_rows])
def test_rows_must_fit(rows: Any) -> None:
    for x, y in (((3, 4), (3, 5)), ((3, 4), (2, 4)), ((2, 3, 4), (2, 3, 4))):
        with pytest.raises(ValueError, match="cannot be compared"):
            rows(np.zeros(x), np.zeros(y))


def test_ties_are_settled() -> None:
    third = 0.1 + 0.2
    assert unite_ties([[0.3, third, 1.0]]).tolist() == [[0.3, 0.3, 1.0]]
    assert unite_ties([[0.3, third, 1.0]], 0).tolist() == [[0.3, third, 1.0]]
    assert unite_ties([[1.0, 1.0 + 1e-9]]).tolist() == [[1.0, 1.0 + 1e-9]]
    assert unite_ties([[math.inf, 1.0, -math.inf]]).tolist() == [[math.inf, 1.0, -math.inf]]
    assert unite_ties([[0.0, -0.0, 0.0]]).tolist() == [[0.0] * 3]
    assert np.isnan(unite_ties([[math.nan, 1.0, 1.0]])).tolist() == [[True, False, False]]
    assert unite_ties(np.zeros((1, 0))).shape == (1, 0)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9))
def test_the_order_of_a_sum_decides_nothing(parts: list[int]) -> None:
    sums = {
        sum(p / 20 for p in order) for order in itertools.islice(itertools.permutations(parts), 50)
    }
    assert len(set(unite_ties([[*sums, 9.0]])[0].tolist()) - {9.0}) <= 1


def test_correlate_by_hand() -> None:
    found = correlate(
        {"best": 0.9, "extra": 0.5, "good": 0.7, "poor": 0.1},
        {"best": 1, "good": 2, "poor": 3, "absent": 4},
    )
    assert found.spearman == Estimate(1.0)
    assert found.kendall == Estimate(1.0)
    assert found.systems == 3
    assert found.only_in_scores == ("extra",)
    assert found.only_in_official == ("absent",)


def test_correlate_takes_tied_and_fractional_ranks() -> None:
    found = correlate({"a": 3, "b": 2, "c": 1}, {"a": 1.5, "b": 1.5, "c": 3})
    assert found.kendall.value == pytest.approx(2 / math.sqrt(6))


def test_correlate_without_common_systems() -> None:
    found = correlate({"a": 1.0}, {"b": 1.0})
    assert found.spearman == undefined("fewer than 2 systems to compare (0)")
    assert found.systems == 0
