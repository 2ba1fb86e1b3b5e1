"""The bootstrap over queries, against plain loops and scipy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy

from exampp.stats.resampling import (
    Bools,
    Floats,
    bootstrap_means,
    draw_queries,
    resampled_means,
)


def everywhere(values: Floats) -> Bools:
    return np.ones(values.shape, np.bool_)


def drawn(draws: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """The same resamples as indices, [samples, queries]."""
    counts = draws.astype(np.intp)
    return np.stack([np.repeat(np.arange(len(row)), row) for row in counts])


class Fixed(np.random.Generator):
    """A generator that draws what it was told, so that scipy sees our resamples."""

    def __init__(self, indices: Any) -> None:
        super().__init__(np.random.PCG64(0))
        self.left = list(indices)

    def integers(self, *_: Any, size: Any = None, **__: Any) -> Any:
        rows = [self.left.pop(0) for _ in range(size[0])]
        return np.array(rows).reshape(size)


def test_draws_are_whole_resamples_that_a_seed_repeats() -> None:
    draws = draw_queries(7, 50, seed=3)
    assert draws.shape == (50, 7)
    assert (draws.sum(axis=1) == 7).all()
    assert np.array_equal(draws, draw_queries(7, 50, seed=3))
    assert not np.array_equal(draws, draw_queries(7, 50, seed=4))


def test_resampled_means_are_those_of_scipy() -> None:
    values = np.random.default_rng(1).beta(0.5, 2, (3, 12))
    draws = draw_queries(12, 200)
    means, defined = resampled_means(values, everywhere(values), draws)
    assert defined.all()
    for row, ours in zip(values, means.T, strict=True):
        theirs = scipy.stats.bootstrap(
            (row,), np.mean, n_resamples=200, method="percentile", rng=Fixed(drawn(draws))
        )
        assert ours == pytest.approx(theirs.bootstrap_distribution, abs=1e-12)
        low, high = np.quantile(ours, [0.025, 0.975])
        assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


def test_queries_that_do_not_count_leave_the_means() -> None:
    values, counts = np.array([[1.0, 9.0, 3.0]]), np.array([[True, False, True]])
    draws = np.array([[1.0, 1, 1], [2, 1, 0], [0, 3, 0]])
    means, defined = resampled_means(values, counts, draws)
    assert means[:, 0].tolist() == [2, 1, 0]
    assert defined[:, 0].tolist() == [True, True, False]


def naive(row: Floats, counts: Bools, draws: Floats, level: float) -> tuple[float, float]:
    """Half width and p-value, one resample at a time."""
    kept = row[counts]
    mean, stderr = kept.mean(), kept.std(ddof=1) / math.sqrt(len(kept))
    distances = []
    for indices in drawn(draws):
        again = row[indices][counts[indices]]
        if len(again) < 2 or np.ptp(again) == 0:
            moved = len(again) < 2 or not math.isclose(again[0], mean, abs_tol=1e-12)
            distances.append(math.inf if moved else 0.0)
        else:
            own = again.std(ddof=1) / math.sqrt(len(again))
            distances.append(abs(again.mean() - mean) / own)
    reached = sum(distance >= abs(mean) / stderr - 1e-9 for distance in distances)
    place = math.ceil(level * (len(draws) + 1) - 1e-9)
    return sorted(distances)[place - 1] * stderr, (reached + 1) / (len(draws) + 1)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("queries", [4, 25])
def test_studentised_intervals_equal_a_plain_loop(queries: int, level: float) -> None:
    random = np.random.default_rng(queries)
    values = np.round(random.beta(0.5, 2, (8, queries)) - 0.3, 1)
    counts = random.random(values.shape) < 0.8
    counts[:4] = True
    draws = draw_queries(queries, 399, seed=5)
    found = bootstrap_means(values, counts, draws, level)
    assert found.defined.any()
    for i in np.flatnonzero(found.defined).tolist():
        half, p = naive(values[i], counts[i], draws, level)
        assert found.half[i] == pytest.approx(half, abs=1e-9)
        assert found.p[i] == pytest.approx(p, abs=1e-12)
        assert found.mean[i] == pytest.approx(values[i][counts[i]].mean(), abs=1e-12)
        sem = scipy.stats.sem(values[i][counts[i]])
        assert found.stderr[i] == pytest.approx(sem, abs=1e-12)


def test_the_test_rejects_where_the_interval_excludes_0() -> None:
    values = np.random.default_rng(2).normal(0.3, 1, (200, 20))
    found = bootstrap_means(values, everywhere(values), draw_queries(20, 999), 0.95)
    excluded = np.abs(found.mean) > found.half
    assert np.array_equal(excluded, found.p <= 0.05)
    assert 20 < excluded.sum() < 180


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((1, 1)),
        np.full((1, 5), 0.3),
        # equal in truth, but not in their last digit
        np.array([[0.1 + 0.2, 0.3, 0.3]]),
        np.zeros((1, 0)),
    ],
)
def test_without_spread_there_is_no_interval(values: Floats) -> None:
    found = bootstrap_means(values, everywhere(values), draw_queries(values.shape[1], 50))
    assert found.defined.tolist() == [False]
    assert np.isfinite([found.mean, found.stderr, found.half, found.p]).all()


def test_one_value_that_differs_bounds_nothing() -> None:
    # A third of the resamples miss it: nothing tells how far the mean may be off.
    values = np.array([[1.0] + [0.0] * 24])
    found = bootstrap_means(values, everywhere(values), draw_queries(25, 500))
    assert found.defined.tolist() == [True]
    assert found.half.tolist() == [math.inf]


def test_no_rows() -> None:
    found = bootstrap_means(np.zeros((0, 5)), np.zeros((0, 5), np.bool_), draw_queries(5, 10))
    assert found.mean.shape == (0,)


def test_coverage_of_skewed_values() -> None:
    """95 % intervals hold in 93 to 97 of 100 samples where Student's t holds in fewer than 91."""
    random = np.random.default_rng(11)
    values = random.exponential(1, (3000, 15)) * (random.random((3000, 15)) < 0.4)
    found = bootstrap_means(values, everywhere(values), draw_queries(15, 600), 0.95)
    kept = np.isfinite(found.half) & found.defined
    assert kept.mean() > 0.95
    inside = np.abs(found.mean - 0.4)[kept] <= found.half[kept]
    student = np.abs(found.mean - 0.4) <= scipy.stats.t.ppf(0.975, 14) * found.stderr
    assert student[kept].mean() < 0.91
    assert 0.93 <= inside.mean() <= 0.97
