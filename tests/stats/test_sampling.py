"""Samples drawn by permanent random numbers, and totals that they correct."""

from __future__ import annotations

import hashlib
import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exampp
from exampp.errors import InputError
from exampp.measures.names import parse_measure
from exampp.measures.population import Population, population
from exampp.records.gradebook import Gradebook
from exampp.stats.sampling import (
    FLOOR,
    Coefficients,
    DrawnUnits,
    Sample,
    Totals,
    calibrated_probabilities,
    drawn_units,
    folds,
    inclusion,
    influence,
    pool_limits,
    query_limits,
    random_numbers,
    totals,
    uncertainty,
)

UNITS = (("q1", "p1"), ("q1", "p2"), ("q2", "p1"))


def test_the_numbers_are_those_of_the_names() -> None:
    digest = hashlib.sha256(b"7\tq1\tp2").hexdigest()
    assert random_numbers(7, UNITS)[1] == int(digest[:13], 16) / 16**13
    fold = hashlib.sha256(b"fold\t7\tq1\tp2").hexdigest()
    assert folds(7, UNITS)[1] == int(fold[:8], 16) % 5
    assert random_numbers(7, UNITS[::-1]).tolist() == random_numbers(7, UNITS)[::-1].tolist()


weights = st.lists(st.floats(0, 10), min_size=1, max_size=30).map(np.array)


@given(weights, st.floats(1, 40), st.floats(0, 20))
def test_chances_add_up_and_grow(w: np.ndarray, expected: float, more: float) -> None:
    pi = inclusion(w, len(w), expected)
    assert pi.sum() == pytest.approx(min(expected, len(w)), rel=1e-9)
    assert (pi >= min(1.0, FLOOR * expected / len(w)) - 1e-12).all()
    assert (pi <= 1).all()
    # the larger sample holds the smaller one
    assert (inclusion(w, len(w), expected + more) >= pi - 1e-9).all()


def test_without_weights_all_chances_are_equal() -> None:
    assert inclusion(None, 4, 2).tolist() == [0.5] * 4
    assert inclusion(np.zeros(4), 4, 2).tolist() == [0.5] * 4
    assert inclusion(None, 4, 9).tolist() == [1.0] * 4


@pytest.mark.parametrize(("units", "expected"), [(0, 1.0), (3, 0.5), (3, float("nan"))])
def test_nothing_to_draw(units: int, expected: float) -> None:
    with pytest.raises(InputError):
        inclusion(None, units, expected)


def test_influence_is_that_on_differences() -> None:
    """sqrt of the mean over ordered pairs of (A_s - A_t)^2, itself included: sqrt(2 m (1 - m))."""
    third = np.array([[1.0, 1.0, 0.1], [1.0, 0.0, 0.1], [1.0, 0.0, 0.1]])
    assert influence(Coefficients.of(third)) == pytest.approx(
        [0, np.sqrt(2 * (1 / 3) * (2 / 3)), 0], abs=1e-12
    )
    # of one system: how much the unit moves its score
    assert influence(Coefficients.of(third[:1])).tolist() == [1.0, 1.0, 0.1]


def test_nobody_is_certain() -> None:
    assert uncertainty(np.array([0.5, 0.0, 1.0])) == pytest.approx([0.5, 0.05**0.5, 0.05**0.5])


# ---- the difference estimator against published values, against ppi-python, and by en


# ---- the golden numbers of TREC DL 2019 ----------------------------------------------------------


@pytest.fixture(scope="module")
def golden(shared_data: Path) -> dict[str, Any]:
    path = shared_data / "science" / "dl19-corrected.json"
    if not path.exists():
        pytest.skip("no golden numbers beside the project")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def book(golden: dict[str, Any], shared_data: Path) -> Gradebook:
    return exampp.open(shared_data / "dl19" / "graded.jsonl.gz").grades().gradebook


@pytest.fixture(scope="module")
def units(book: Gradebook) -> Population:
    return population(book, parse_measure("P@20"), min_rating=4, min_relevant=2)


@pytest.fixture(scope="module")
def best_is_five(book: Gradebook) -> np.ndarray:
    return population(book, parse_measure("P@20"), min_rating=5, min_relevant=2).graded


def test_the_truth_of_dl19(
    units: Population, golden: dict[str, Any], best_is_five: np.ndarray
) -> None:
    assert len(units.names) == golden["units"]
    assert units.judged.mean() == pytest.approx(golden["share_relevant"], abs=1e-12)
    for said, y in (
        ("truth", units.judged),
        ("grades_only_f0", best_is_five),
    ):
        scores = dict(zip(units.systems, units.coefficients @ y, strict=True))
        assert scores == pytest.approx(golden[said], abs=1e-11)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("design", ["uniform", "influence"])
def test_estimates_of_dl19(
    seed: int, design: str, units: Population, golden: dict[str, Any], best_is_five: np.ndarray
) -> None:
    said = golden[f"seed {seed}, {design}, expected 400"]
    weights = None if design == "uniform" else influence(units.coefficients)
    pi = inclusion(weights, len(units.names), 400)
    at = np.flatnonzero(random_numbers(seed, units.names) < pi)
    assert len(at) == said["sampled"]
    drawn = [" ".join(units.names[one]) for one in at.tolist()]
    assert drawn[:5] == said["first_sampled"]
    assert [pi.sum(), pi.min(), pi.max()] == pytest.approx(
        [said["sum_pi"], said["pi_min"], said["pi_max"]], abs=1e-10
    )
    sample, y = Sample(at, pi[at]), units.judged[at]
    ways = {
        "people_only": 0 * best_is_five,
        "difference_f0": best_is_five,
        "ppi_lambda": said["lambda"] * best_is_five,
        "binned_cross_fitted": calibrated_probabilities(
            units.bins, folds(seed, units.names), sample, y
        ),
    }
    place = {system: row for row, system in enumerate(units.systems)}
    for way, f in ways.items():
        found = totals(units.coefficients, f, sample, y, units.groups, len(units.query_ids))
        errors = np.sqrt(np.diag(found.covariance))
        named = dict(zip(units.systems, found.scores, strict=True))
        assert named == pytest.approx(said[way]["estimate"], abs=1e-9)
        assert dict(zip(units.systems, errors, strict=True)) == pytest.approx(
            said[way]["se"], abs=1e-9
        )
        assert found.parts.sum(axis=1) == pytest.approx(found.scores, abs=1e-12)
        for pair, values in said[way]["pair_examples"].items():
            one, other = (place[name] for name in pair.split(" - "))
            v = found.covariance
            se = np.sqrt(max(0.0, v[one, one] + v[other, other] - 2 * v[one, other]))
            difference = found.scores[one] - found.scores[other]
            assert difference == pytest.approx(values["difference"], abs=1e-9)
            assert se == pytest.approx(values["se"], abs=1e-8)


# ---- all samples there are -----------------------------------------------------------------------


def test_it_is_unbiased_and_so_is_its_variance() -> None:
    """Over all 2^6 Poisson samples, each with its probability: any f, verdicts of each system."""
    random = np.random.default_rng(3)
    n, systems = 6, 2
    a, pi = random.random((systems, n)), random.uniform(0.2, 0.9, n)
    for y, f in (
        (random.integers(0, 2, n).astype(float), random.random(n)),
        (random.integers(0, 2, (systems, n)).astype(float), random.random((systems, n))),
    ):
        truth = (a * y).sum(axis=1)
        chances, scores, variances = [], [], []
        for drawn in product((False, True), repeat=n):
            at = np.flatnonzero(drawn)
            chances.append(np.where(drawn, pi, 1 - pi).prod())
            found = totals(
                Coefficients.of(a), f, Sample(at, pi[at]), y[..., at], np.zeros(n, np.intp), 1
            )
            scores.append(found.scores)
            variances.append(found.covariance)
        weights = np.array(chances)
        mean = weights @ np.array(scores)
        assert mean == pytest.approx(truth, abs=1e-12)
        off = np.array(scores) - truth
        spread = np.einsum("n,ns,nt->st", weights, off, off)
        assert np.einsum("n,nst->st", weights, np.array(variances)) == pytest.approx(spread)


def test_calibration_never_sees_the_units_own_label() -> None:
    bins, fold = np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 2])
    sample = Sample(np.array([0, 1, 2, 4]), np.array([0.5, 0.5, 0.25, 0.5]))
    y = np.array([1.0, 0.0, 1.0, 1.0])
    f = calibrated_probabilities(bins, fold, sample, y)
    # fold 0: units 2 and 4 of bin 1, weights 4 and 2 rescaled to 4/3 and 2/3, all relevant
    assert f[:2].tolist() == pytest.approx([1.0, 1.0])
    # fold 1: units 0, 1, 4 weigh 1 each: mean 2/3; bin 0: (1 + 5 * 2/3) / 6, bin 1: (1 + 10/3) / 7
    assert f[2:4].tolist() == pytest.approx([(1 + 10 / 3) / 7, (1 + 10 / 3) / 6])
    for place in range(4):
        other = y.copy()
        other[place] = 1 - other[place]
        own = sample.places[place]
        assert calibrated_probabilities(bins, fold, sample, other)[own] == f[own]


def test_calibration_of_one_fold_predicts_nothing() -> None:
    sample = Sample(np.array([0]), np.array([0.5]))
    assert calibrated_probabilities(
        np.array([0, 1]), np.array([3, 3]), sample, np.array([1.0])
    ).tolist() == [
        0,
        0,
    ]


# ---- ppi-python ----------------------------------------------------------------------------------

# ppi-python 0.2.3 on: rng = numpy.random.default_rng(1); f = rng.random(60).round(3);
# y = rng.random(60) < 0.1 + 0.8 f; at = sort(rng.choice(60, 20, replace=False));
# ppi_mean_pointestimate(y[at], f[at], f, lam=...), ppi_mean_ci(..., alpha=0.05, lam=...)
PPI = {
    0.0: 0.55,
    0.5: 0.5712666666666668,
    1.0: 0.5925333333333334,
}


def ppi_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    f = np.round(rng.random(60), 3)
    y = (rng.random(60) < 0.1 + 0.8 * f).astype(float)
    return y, f, np.sort(rng.choice(60, 20, replace=False))


def test_ppi_is_the_case_of_equal_chances_and_a_given_prediction() -> None:
    y, f, at = ppi_data()
    sample = Sample(at, np.full(20, 20 / 60))
    even = Coefficients.of(np.full((1, 60), 1 / 60))
    for lam, published in PPI.items():
        found = totals(even, lam * f, sample, y[at], np.zeros(60, np.intp), 1)
        assert found.scores[0] == pytest.approx(published, abs=1e-8)


# ---- limits of scores ----------------------------------------------------------------------------


def score(residuals: list[float], parts: list[float]) -> Totals:
    value = np.array([sum(parts)])
    return Totals(value, np.zeros((1, 1)), np.array([residuals]), np.array([parts]))


def test_limits_over_a_pool_by_hand() -> None:
    # two units of variance .1^2 / 2 each; 2 * .01^2 / (2 * .005^2) = 4 degrees of freedom below;
    # above another .01, so 2 * .02^2 / (2 * .005^2 + .01^2) = 5.3 of them
    drawn = DrawnUnits(np.array([10]), np.array([0.0]), np.array([0.01]))
    one = score([0.1, 0.1], [0.25, 0.25])
    low, high = pool_limits(one, np.array([0.5, 0.5]), drawn, 0.95)
    assert low == pytest.approx(0.5 - 2.776445 * 0.1, rel=1e-6)
    assert high == pytest.approx(0.5 + 2.570582 * math.sqrt(0.02), rel=1e-6)


def test_limits_over_queries_by_hand() -> None:
    # values .2 .4 .6 .8: standard error sqrt(.2 / 3 / 4); on the logit scale over .25; t with 3
    drawn = DrawnUnits(np.array([10]), np.array([0.0]), np.array([0.0]))
    low, high = query_limits(score([0.1], [0.05, 0.1, 0.15, 0.2]), drawn, 0.95)
    reach = 3.182446 * math.sqrt(0.2 / 12) / 0.25
    assert low == pytest.approx(1 / (1 + math.exp(reach)), rel=1e-6)
    assert high == pytest.approx(1 - low)
    outside = query_limits(score([0.1], [-0.2, 0.1, 0.0, 0.0]), drawn, 0.95)
    assert np.isnan(outside).all()


def test_one_more_unit_of_either_kind() -> None:
    coefficients = Coefficients.of(np.array([[0.5, 0.5, 0.0]]))
    sample = Sample(np.array([0, 2]), np.array([0.5, 0.5]))
    units, low, high = drawn_units(coefficients, np.array([0.2, 0.9, 0.9]), sample)
    # .5 / .25 * .5^2 = .5 times the squares of .2 and of .8
    assert units.tolist() == [1]
    assert (low[0], high[0]) == pytest.approx((0.02, 0.32))
    certain = Sample(np.array([0, 1, 2]), np.ones(3))
    assert drawn_units(coefficients, np.zeros(3), certain).high.tolist() == [0]
