"""Rank correlation by hand, against scipy and as published; how often its intervals hold."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.stats.estimate import Estimate, EstimateRows, undefined
from exampp.stats.rank_correlation import (
    NO_SPREAD,
    UNDEFINED,
    Draws,
    correlate,
    draw_resamples,
    interval,
    kendall,
    kendall_rows,
    one_row,
    rank_statistic,
    resample,
    spearman,
    spearman_rows,
    tau_ap_rows,
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
    with pytest.raises(ValueError, match="equal length"):
        measure([1, 2], [1, 2, 3])


def scipy_says(name: str, x: Sequence[float], y: Sequence[float]) -> float:
    import scipy.stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(getattr(scipy.stats, name)(x, y).statistic)


values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(math.inf))


# The first call imports scipy.
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


def test_correlate_takes_tied_and_fractional_ranks() -> None:
    found = correlate({"a": 3, "b": 2, "c": 1}, {"a": 1.5, "b": 1.5, "c": 3})
    assert found.kendall.value == pytest.approx(2 / math.sqrt(6))


def test_correlate_without_common_systems() -> None:
    found = correlate({"a": 1.0}, {"b": 1.0})
    assert found.spearman == undefined("fewer than 2 systems to compare (0)")
    assert found.systems == 0


# ---- tau_ap by hand, as published, and against its definition


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


def test_rows_equal_one_at_a_time_ap() -> None:
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
    with pytest.raises(InputError, match="unknown rank statistic"):
        rank_statistic("tau")


def test_tau_ap_depends_on_the_direction() -> None:
    """Order b, c, a, d against a, b, c, d: 2 (1 + 0 + 1) / 3 - 1, and 2 (0 + 1/2 + 1) / 3 - 1."""
    scores, official = [2, 4, 3, 1], [4, 3, 2, 1]
    assert tau_ap(scores, official).value == pytest.approx(1 / 3)
    assert tau_ap(official, scores).value == pytest.approx(0)


# ---- intervals of rank correlations


Floats = NDArray[np.float64]


def first(scores: Floats) -> EstimateRows:
    """A statistic that is the score of the first system, and undefined below -1."""
    return EstimateRows(scores[:, 0], scores[:, 0] >= -1)


def sampled(values: Floats, samples: int = 400, seed: int = 0) -> tuple[Floats, Draws]:
    draws = draw_resamples(values.shape[1], samples, seed=seed)
    return resample(values, np.ones(values.shape, np.bool_), draws), draws


def bounds(values: Floats, official: Floats, seed: int = 0) -> tuple[float, float]:
    value = float(kendall_rows(values.mean(axis=1)[None], official).values[0])
    scores, draws = sampled(values, seed=seed)
    found = interval(lambda x: kendall_rows(x, official), value, scores, draws, 0.95)
    assert not isinstance(found, str)
    low, high = found
    assert -1 <= low < value < high <= 1
    return found


def by_hand(
    resamples: Floats, apart: float, queries: int, value: float, level: float
) -> tuple[float, float] | str:
    """The interval where quarters have a variance of 1/15, and halves are `apart`."""
    quarters = np.repeat([0.0, 0.2, 0.4, 0.6], 10)
    halves = np.repeat([0.0, apart] * 3, 10)
    scores = np.concatenate([resamples, quarters, halves])[:, None]
    draws = Draws(np.zeros((len(scores), queries)), len(resamples), 10)
    return interval(first, value, scores, draws, level)


SHAPE = np.random.default_rng(0).exponential(0.1, 1000)


@pytest.mark.parametrize(
    ("apart", "queries", "variance"),
    [
        (0.3, 40, 0.045 * 0.675),
        (0.2, 40, 0.02 * 2**-1.25),  # halves have 0.3 of the variance of quarters
        (0.5, 40, 0.125),  # and here 1.875 of it
        (0.3, 43, 0.045 * 0.675 ** (np.log(43 / 21) / np.log(21 / 10))),
        (0.3, 41, 0.045 * 0.675 ** (np.log(41 / 20) / np.log(20 / 10))),
    ],
)
@pytest.mark.parametrize(("value", "level"), [(0.1, 0.95), (0.1, 0.8), (0.95, 0.95), (-0.95, 0.8)])
def test_place_size_and_shape_by_hand(
    apart: float, queries: int, variance: float, value: float, level: float
) -> None:
    found = by_hand(SHAPE, apart, queries, value, level)
    above = (1 + level) / 2
    wider = scipy.stats.t.ppf(above, queries / 2) / scipy.stats.norm.ppf(above)
    ends = (np.quantile(SHAPE, [1 - above, above]) - SHAPE.mean()) / SHAPE.std()
    wanted = np.clip(value + variance**0.5 * wider * ends, -1, 1)
    assert found == pytest.approx(wanted, abs=3e-4)


def test_samples_without_a_value_are_left_out() -> None:
    """With their split; half of the samples must be left."""
    whole = by_hand(SHAPE, 0.3, 40, 0.1, 0.95)
    assert by_hand(np.append(SHAPE, np.full(1000, -2.0)), 0.3, 40, 0.1, 0.95) == whole
    assert by_hand(np.append(SHAPE, np.full(1001, -2.0)), 0.3, 40, 0.1, 0.95) == UNDEFINED
    quarters, halves = np.repeat([0.0, 0.2, 0.4, 0.6], 10), np.repeat([0.0, 0.3] * 3, 10)
    for gone in (5, 6):
        quarters[:gone] = -2
        halves[:gone] = 0.9  # of the same splits
        scores = np.concatenate([SHAPE, quarters, halves])[:, None]
        draws = Draws(np.zeros((len(scores), 40)), 1000, 10)
        found = interval(first, 0.1, scores, draws, 0.95)
        assert found == (pytest.approx(whole) if gone == 5 else UNDEFINED)


def test_what_nearly_always_has_one_value_has_no_interval() -> None:
    mostly = np.where(np.arange(1000) < 800, 1.0, SHAPE)
    assert not isinstance(by_hand(mostly, 0.3, 40, 0.9, 0.95), str)
    mostly[800] = 1.0
    assert by_hand(mostly, 0.3, 40, 0.9, 0.95) == NO_SPREAD
    assert by_hand(SHAPE, 0.0, 40, 0.9, 0.95) == NO_SPREAD


@pytest.mark.parametrize("queries", [40, 43])
def test_of_a_statistic_that_is_a_mean_it_is_the_interval_of_that_mean(queries: int) -> None:
    """Student's t with half of the degrees of freedom; 20,000 samples leave 2 % of noise."""
    random = np.random.default_rng(0)
    values = random.standard_normal((2, queries)) / 10

    def difference(scores: Floats) -> EstimateRows:
        return EstimateRows(scores[:, 0] - scores[:, 1], np.ones(len(scores), np.bool_))

    apart = values[0] - values[1]
    found = interval(difference, float(apart.mean()), *sampled(values, 20_000), 0.9)
    known = scipy.stats.t.interval(0.9, queries / 2, apart.mean(), scipy.stats.sem(apart))
    assert found == pytest.approx(known, abs=0.03 * (known[1] - known[0]))


def test_about_95_percent_hold_what_exams_show_on_average() -> None:
    """Here where only noise orders the systems of three groups."""
    random = np.random.default_rng(4)
    held = 0
    for seed in range(40):
        true = np.sort(random.standard_normal(3))[np.arange(20) * 3 // 20]
        official = true + 0.3 * random.standard_normal(20)

        def exams(many: int, true: Floats = true) -> Floats:
            return true[:, None] + 2 * random.standard_normal((many, 20, 30))

        low, high = bounds(exams(1)[0], official, seed)
        truth = kendall_rows(exams(200).mean(axis=2), official).values.mean()
        held += int(low <= truth <= high)
    assert 35 <= held <= 40


@pytest.mark.parametrize("queries", [8, 9, 10, 11])
def test_quarters_and_halves_split_the_queries(queries: int) -> None:
    draws = draw_resamples(queries, 400)
    assert (draws.resamples, draws.splits) == (400, 100)
    assert draw_resamples(queries, 50).splits == 100
    assert (draws.weights[:400].sum(axis=1) == queries).all()
    quarters = draws.weights[400:800].reshape(4, 100, queries)
    halves = draws.weights[800:].reshape(3, 2, 100, queries)
    assert (quarters.sum(axis=2) == 2).all()
    assert quarters.sum(axis=0).max() == 1
    for pair in halves:
        assert pair.sum(axis=0).max() == 1
        assert (pair.sum(axis=2) == queries // 2).all()
    # every quarter is with every other one once
    assert (halves[:, 0] >= quarters[0] + quarters[1:]).all()
    assert len(np.unique(quarters[0], axis=0)) > 10
    assert draws.doublings() == pytest.approx(
        (np.log2(queries // 2 / 2), np.log2(queries / (queries // 2)))
    )


def test_where_no_query_counts_for_a_system_all_are_tied() -> None:
    values = np.arange(1.0, 41).reshape(4, 10)
    counts = np.ones((4, 10), np.bool_)
    counts[0, 8:] = False
    draws = draw_resamples(10, 200)
    scores = resample(values, counts, draws)
    without = draws.weights[:, :8].sum(axis=1) == 0
    assert 0 < without.sum() < len(scores)
    assert (scores[without] == 0).all()
    whole = draws.weights[~without]
    first_system = (whole[:, :8] @ values[0, :8]) / whole[:, :8].sum(axis=1)
    assert scores[~without, 0] == pytest.approx(first_system)
    assert scores[~without, 3] == pytest.approx(whole @ values[3] / whole.sum(axis=1))


def test_clear_scores_and_rare_ones_have_no_interval() -> None:
    official = np.arange(8.0)
    random = np.random.default_rng(0)

    def kendall(scores: Floats) -> EstimateRows:
        return kendall_rows(scores, official)

    clear = official[:, None] + 0.01 * random.standard_normal((8, 20))
    assert interval(kendall, 1.0, *sampled(clear), 0.95) == NO_SPREAD
    rare = np.zeros((8, 20))
    rare[:, 3] = official
    assert interval(kendall, 1.0, *sampled(rare), 0.95) == UNDEFINED
