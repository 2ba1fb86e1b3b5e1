"""The bootstrap over queries, against plain loops and scipy."""

from __future__ import annotations

import numpy as np

from exampp.stats.estimate import draw_queries, resampled_means


def test_draws_are_whole_resamples_that_a_seed_repeats() -> None:
    draws = draw_queries(7, 50, seed=3)
    assert draws.shape == (50, 7)
    assert (draws.sum(axis=1) == 7).all()
    assert np.array_equal(draws, draw_queries(7, 50, seed=3))
    assert not np.array_equal(draws, draw_queries(7, 50, seed=4))


def test_queries_that_do_not_count_leave_the_means() -> None:
    values, counts = np.array([[1.0, 9.0, 3.0]]), np.array([[True, False, True]])
    draws = np.array([[1.0, 1, 1], [2, 1, 0], [0, 3, 0]])
    means, defined = resampled_means(values, counts, draws)
    assert means[:, 0].tolist() == [2, 1, 0]
    assert defined[:, 0].tolist() == [True, True, False]
