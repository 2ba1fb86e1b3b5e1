"""Intervals of rank correlations: place, size, shape, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from exampp.stats.estimate import EstimateRows
from exampp.stats.rank_correlation import (
    NO_SPREAD,
    UNDEFINED,
    Draws,
    draw_resamples,
    interval,
    kendall_rows,
    resample,
)

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
    for undefined in (5, 6):
        quarters[:undefined] = -2
        halves[:undefined] = 0.9  # of the same splits
        scores = np.concatenate([SHAPE, quarters, halves])[:, None]
        draws = Draws(np.zeros((len(scores), 40)), 1000, 10)
        found = interval(first, 0.1, scores, draws, 0.95)
        assert found == (pytest.approx(whole) if undefined == 5 else UNDEFINED)


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
