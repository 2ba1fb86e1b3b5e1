"""The bootstrap over queries, against plain loops and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from exampp.stats.estimate import Floats, draw_queries, resampled_means


def everywhere(values: Floats) -> NDArray[np.bool_]:
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
