"""Isotonic and logistic regression, cut points, scores of probabilities: against others' code."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.records.gradebook import MISSING
from exampp.stats.agreement import cohen_kappa, confusion
from exampp.stats.calibration import (
    ProbabilityScores,
    at_least,
    best_cut_points,
    equal_bins,
    expected_labels,
    fit_levels,
    fit_logistic,
    isotonic,
    labels_by,
    rating_vectors,
    reliability_curve,
)

RANDOM = np.random.default_rng(0)


def test_isotonic_by_hand() -> None:
    places, values = isotonic(np.array([1.0, 2, 3, 3, 4]), np.array([0.0, 1, 0, 1, 1]))
    # 1 and the mean of the two at 3 are pooled: (1 + 0 + 1) / 3
    assert places.tolist() == [1, 2, 3, 4]
    assert values.tolist() == pytest.approx([0, 2 / 3, 2 / 3, 1])


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40))
def test_isotonic_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    from sklearn.isotonic import IsotonicRegression

    x, y = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    places, values = isotonic(x, y)
    asked = np.linspace(-1, 10, 45)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(asked)
    assert np.interp(asked, places, values) == pytest.approx(theirs, abs=1e-9)


def test_logistic_is_that_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    x = np.array(RANDOM.integers(0, 6, (400, 5)) / 5, np.float64)
    y = (RANDOM.random(400) < 0.2 + 0.5 * x[:, 0]).astype(np.float64)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, y)
    assert fit_logistic(x, y) == pytest.approx([*theirs.intercept_, *theirs.coef_[0]], abs=1e-5)


@pytest.mark.parametrize("event", [0.0, 1.0])
def test_logistic_stays_finite(event: float) -> None:
    """Data in which all cells are alike, or a feature separates them all."""
    x = np.array(np.arange(20)[:, None] / 20, np.float64)
    assert np.isfinite(fit_logistic(x, np.full(20, event))).all()
    assert np.isfinite(fit_logistic(x, (x[:, 0] > 0.5).astype(np.float64))).all()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=3, max_size=25))
def test_no_cut_points_have_a_higher_kappa(pairs: list[tuple[int, int]]) -> None:
    scores, labels = (np.array(column) for column in zip(*pairs, strict=True))

    def kappa(cuts: object) -> float:
        made = labels_by(scores.astype(np.float64), np.asarray(cuts, np.float64))
        return cohen_kappa(confusion(labels, made, range(3), range(3))).value or 0.0

    best = kappa(best_cut_points(scores.astype(np.float64), labels, 3))
    every = combinations_with_replacement([*np.unique(scores).tolist(), np.inf], 2)
    assert best == pytest.approx(max(map(kappa, every)), abs=1e-9)


def test_scores_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    p = np.round(RANDOM.uniform(0.01, 0.99, 300), 2)
    y = (RANDOM.random(300) < p).astype(np.float64)
    group = RANDOM.integers(0, 4, 300)
    scorer = ProbabilityScores(p, y, group, 4)
    # a query drawn twice counts twice, one that was not drawn not at all
    weights = np.array([2.0, 1, 0, 1])
    each = weights[group]
    assert scorer.auc(weights) == pytest.approx(roc_auc_score(y, p, sample_weight=each))
    assert scorer.brier(weights) == pytest.approx(brier_score_loss(y, p, sample_weight=each))
    assert scorer.log_loss(weights) == pytest.approx(log_loss(y, p, sample_weight=each))


def test_reliability_and_ece_by_hand() -> None:
    p = np.array([0.1, 0.1, 0.1, 0.9])
    y = np.array([0.0, 0, 1, 1])
    # three that share a probability stay together
    assert equal_bins(p, 2).tolist() == [0, 0, 0, 1]
    low, high = reliability_curve(p, y, 2)
    assert (low.predicted, low.observed) == pytest.approx((0.1, 1 / 3))
    assert low.passages == 3
    assert (high.predicted, high.observed, high.passages) == (0.9, 1, 1)
    ece = ProbabilityScores(p, y, np.zeros(4, np.intp), 1).ece(np.ones(1))
    assert ece == pytest.approx(3 / 4 * abs(1 / 3 - 0.1) + 1 / 4 * 0.1)


def test_what_is_impossible_has_no_log_loss_and_one_class_no_auc() -> None:
    scorer = ProbabilityScores(np.array([0.0, 1.0]), np.ones(2), np.zeros(2, np.intp), 1)
    assert np.isnan(scorer.log_loss(np.ones(1)))
    assert np.isnan(scorer.auc(np.ones(1)))


def test_rating_vectors() -> None:
    ratings = np.array([[1, 5, MISSING], [MISSING, MISSING, MISSING]], np.int16)
    assert rating_vectors(ratings, 0, 5).tolist() == [[5, 1, 0, 0, 0, 2], [0] * 6]
    # of more items than there were the best count, in the mean all
    assert rating_vectors(ratings, 0, 2).tolist() == [[5, 1, 2], [0, 0, 0]]
    assert rating_vectors(np.array([[2, MISSING]], np.int16), 1, 3).tolist() == [[2, 1, 1, 1.5]]


def test_probabilities_fall_with_the_label() -> None:
    x = RANDOM.random((60, 3))
    labels = RANDOM.integers(0, 4, 60)
    for model in ("logistic", "isotonic"):
        levels = fit_levels(model, x, x.mean(axis=1), labels, [0, 1, 2, 3])
        reached = at_least(levels, x, x.mean(axis=1))
        assert (np.diff(reached, axis=1) <= 0).all()
        assert ((reached > 0) & (reached < 1)).all()
    # P(>= 1) = .5 and P(>= 3) = .25 of the labels 0, 1 and 3
    assert expected_labels(np.array([[0.5, 0.25]]), [0, 1, 3]).tolist() == [1.0]
