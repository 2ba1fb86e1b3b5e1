"""The ladder: reports by hand, what no series of submissions can do, and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from exampp.stats.ladder import GRID, VALUES, Rung, climb, error_bound, first_rung, step


def test_reports_by_hand() -> None:
    rung = first_rung(4)
    # the differences 1, 1, 0, 0 have the standard error 0.577 / 2; the floor is 1 / (2 * 2)
    assert step(np.array([1.0, 1, 0, 0])) == pytest.approx(math.sqrt(1 / 3) / 2)
    assert step(np.array([0.5, 0.5, 0.5, 0.5])) == 0.25
    assert step(np.full(1_000_000, 0.5)) == GRID
    rung = climb(rung, np.array([1.0, 1, 0, 0]))
    assert (rung.report, rung.is_new) == (0.5, True)
    # another half of the queries: better on two, worse on two
    rung = climb(rung, np.array([0.0, 0, 1, 1]))
    assert (rung.report, rung.is_new, rung.best.tolist()) == (0.5, False, [1, 1, 0, 0])
    # 0.75 beats 0.5 by a difference of one query, which has the standard error 0.25
    rung = climb(rung, np.array([1.0, 1, 1, 0]))
    assert (rung.report, rung.is_new) == (0.75, True)
    # 0.8125 does not
    rung = climb(rung, np.array([1.0, 1, 1, 0.25]))
    assert (rung.report, rung.is_new, rung.best[3]) == (0.75, False, 0)


def test_a_report_is_rounded_down() -> None:
    rung = climb(first_rung(3), np.array([0.5, 0.5, 1.0]))
    assert rung.report == 0.66
    assert climb(first_rung(100), np.full(100, 0.29)).report == 0.29


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.01, 1.01])
def test_only_scores_from_0_to_1(bad: float) -> None:
    with pytest.raises(ValueError, match="not from 0 to 1"):
        climb(first_rung(2), np.array([0.5, bad]))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_only_scores_of_the_same_queries(count: int) -> None:
    with pytest.raises(ValueError, match="scores for"):
        climb(first_rung(2 if count != 1 else 1), np.zeros(count))


@given(arrays(np.float64, (30, 5), elements=st.integers(0, 4).map(lambda one: one / 4)))
def test_reports_rise_by_steps_and_never_exceed_a_mean(submissions: np.ndarray) -> None:
    rung: Rung = first_rung(5)
    for scores in submissions:
        before, rung = rung, climb(rung, scores)
        if not rung.is_new:
            assert (rung.report, rung.best is before.best) == (before.report, True)
            continue
        assert rung.report >= before.report + 0.5 / math.sqrt(5) - GRID - 1e-9
        assert scores.mean() - GRID < rung.report <= scores.mean() + 1e-9
        assert round(rung.report * VALUES) / VALUES == rung.report


def test_the_bound_by_hand() -> None:
    # one submission, made before any answer: log(2 * 1 * 2 * 1 * 2 / 0.05) / (2 n)
    assert error_bound(1, 0, 1000) == pytest.approx(math.sqrt(math.log(8 / 0.05) / 2000))
    # the reports of 2 of 10 submissions: (10 * 101)^2 / 2! sequences of answers
    answers = math.log(1010**2 / 2) + math.log(2 * 10 * 11 * 3 * 4 / 0.05)
    assert error_bound(10, 2, 1000) == pytest.approx(math.sqrt(answers / 2000))
    assert error_bound(0, 0, 10) == 0
    assert error_bound(10_000, 10, 50) == 1


@given(st.integers(1, 10_000), st.integers(0, 50), st.integers(1, 5000))
def test_the_bound_grows_with_what_was_seen(submissions: int, reports: int, queries: int) -> None:
    reports = min(reports, submissions - 1)
    bound = error_bound(submissions, reports, queries)
    assert 0 < bound <= error_bound(submissions, reports + 1, queries)
    assert bound <= error_bound(submissions + 1, reports, queries)
    assert bound >= error_bound(submissions, reports, queries + 1)


def test_a_client_that_climbs_by_a_query_at_a_time_learns_little() -> None:
    """Ten submissions a query learn everything of exact scores, and little of the ladder."""
    chance = np.random.default_rng(5)
    cover = chance.integers(0, 2, (100, 8)).astype(float)
    best = chance.integers(0, 8, 100)
    rung = climb(first_rung(100), cover[range(100), best])
    exact, exact_score = best.copy(), cover[range(100), best].mean()
    for number in range(3000):
        for answers, ladder in ((best, True), (exact, False)):
            tried = answers.copy()
            tried[number % 100] = chance.integers(0, 8)
            scores = cover[range(100), tried]
            if ladder:
                rung = climb(rung, scores)
                best = tried if rung.is_new else best
            elif scores.mean() > exact_score:
                exact, exact_score = tried, scores.mean()
    assert exact_score > 0.95
    # its expected score on new items is 0.5
    assert rung.report < 0.5 + 4 * 0.5 / math.sqrt(100)
