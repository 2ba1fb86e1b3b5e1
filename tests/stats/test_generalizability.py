"""Generalizability: by hand, against published values, and against a plain analysis of variance."""

from __future__ import annotations

import csv
import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.gradebooks import dl19

from exampp.measures.cover import item_scores
from exampp.stats.estimate import draw_queries
from exampp.stats.generalizability import (
    ALL_ALIKE,
    NO_RESIDUAL,
    NO_SAMPLE,
    _Drawn,
    crossed,
    erho2,
    erho2_queries,
    nested,
    phi,
    phi_queries,
    ratios,
)
from exampp.stats.item_analysis import kept_systems

Floats = NDArray[np.float64]


# ---- by hand -------------------------------------------------------------------------------------

HAND = [
    np.array([[1.0, 1], [1, 0], [0, 0]]),
    np.array([[1.0, 0], [1, 0], [1, 0]]),
]
"""Three systems, two queries of two items; query means 1 .5 0 and .5 .5 .5, so .75 .5 .25."""


def test_by_hand() -> None:
    found = nested(HAND)
    assert found is not None
    # twice the mean squares of the query means: .25, 0, .25
    assert found.items == 2
    assert (found.means.ms_s, found.means.ms_q, found.means.ms_e) == (0.125, 0, 0.125)
    assert found.ms_iq == pytest.approx(5 / 6)
    assert found.ms_siq == pytest.approx(1 / 12)
    expected = {"siq": 1 / 12, "iq": 1 / 4, "sq": 1 / 12, "s": 0.0, "q": -1 / 6}
    assert found.raw == pytest.approx(expected, abs=1e-12)
    assert found.relative(2, 2) == 0


def test_sizes_by_hand() -> None:
    # means of three systems with variance 1/4 (raw_s = (.25 * 4 - .25) / 4), error 1/4
    study = crossed(np.array([[1.0, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]))
    assert study.ms_s == pytest.approx(1)
    assert study.ms_e == pytest.approx(1 / 9)
    assert study.raw_s == pytest.approx((1 - 1 / 9) / 4)
    assert study.relative(4) == pytest.approx(1 - 1 / 9)
    assert study.errors(4)[0] == pytest.approx(1 / 6)
    # .9 wants an error of a ninth of the signal: 1/9 / n <= (2/9) / 9
    assert erho2_queries(study, 0.9).queries == math.ceil(9 * (1 / 9) / (2 / 9))


def test_what_is_undefined_says_why() -> None:
    constant = crossed(np.full((3, 4), 0.1 + 0.2))
    assert constant.relative(4) is None
    assert erho2(constant, 4).reason == ALL_ALIKE
    apart = crossed(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]))
    assert erho2(apart, 3).value == 1
    assert erho2(apart, 3).no_interval == NO_RESIDUAL
    assert phi(apart, 3).no_interval == NO_RESIDUAL
    assert erho2(crossed(np.array([[0.1, 0.2], [0.4, 0.3]])), 2).no_interval == NO_SAMPLE
    assert nested([np.ones((3, 1)), np.zeros((3, 1))]) is None


def test_systems_that_scores_do_not_tell_apart_have_a_limit_of_0() -> None:
    scores = np.array([[1.0, 0, 0, 1], [0, 1.0, 1, 0], [0, 0, 0.9, 1]])
    alike = crossed(scores)
    assert alike.raw_s < 0
    limits = ratios(scores, draw_queries(5, 500))
    for found, needed in (
        (erho2(alike, 4, limits), erho2_queries(alike, 0.95, limits)),
        (phi(alike, 4, limits), phi_queries(alike, 0.95, limits)),
    ):
        assert (found.value, found.low) == (0, 0)
        assert found.high is not None
        assert 0 < found.high < 1
        assert (needed.queries, needed.high) == (None, None)
        # at the upper limit, n queries have the coefficient n r / (1 + n r)
        ratio = found.high / (1 - found.high) / 4
        assert needed.low == math.ceil(0.95 / 0.05 / ratio - 1e-9)


def test_limits_by_resampling_queries_one_by_one() -> None:
    """The closed form equals sums over resampled tables: a sample at a limit has the observed F."""
    random = np.random.default_rng(4)
    scores = random.random((4, 6)) * 0.2 + np.array([[0.6], [0.5], [0.4], [0.3]])
    table = np.column_stack([scores, scores.mean(axis=1)])
    n = 7

    def f_ratio(x: Floats) -> float:
        centred = x - x.mean(axis=0)
        means = centred.mean(axis=1)
        error = ((centred - means[:, None]) ** 2).sum() / (x.shape[1] - 1)
        return float(means @ means / error)

    observed = f_ratio(table)
    centred = table - table.mean(axis=0)
    means = centred.mean(axis=1, keepdims=True)
    residuals = (centred - means) * math.sqrt(n / (n - 1))
    times = np.array([2, 0, 1, 1, 0, 2, 1])
    drawn = _Drawn.of(scores, times[None, :].astype(float), levels=False)
    _, limit = drawn.limits(table[:, -1], 0.5)
    # the ratio belongs to systems t times as far apart
    t = math.sqrt(limit * (residuals**2).sum() / n / float((means**2).sum()))
    sample = np.repeat(t * means + residuals, times, axis=1)
    assert f_ratio(sample) == pytest.approx(observed)


def test_an_interval_allows_for_a_failure_that_no_query_shows() -> None:
    random = np.random.default_rng(2)
    scores = np.linspace(0.7, 0.9, 8)[:, None] + random.normal(0, 0.01, (8, 10))
    found = crossed(scores)
    limits = ratios(scores, draw_queries(11, 1000))
    one = erho2(found, 10, limits)
    assert one.value is not None
    assert one.low is not None
    assert one.value > 0.99
    assert one.low < 0.5
    # ten times as many queries without a failure exclude more
    many = np.tile(scores, (1, 10))
    again = erho2(crossed(many), 10, ratios(many, draw_queries(101, 1000)))
    assert again.low is not None
    assert again.low > one.low + 0.2


# ---- published values ----------------------------------------------------------------------------


def close(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def check_sizes(scores: Floats, expected: dict[str, Any]) -> None:
    """The D-study of a golden file."""
    study = crossed(scores)
    for key, value in expected["g"].items():
        name = {"n_s": "systems", "n_q": "queries", "raw_var_s": "raw_s", "raw_var_q": "raw_q"}
        name |= {"MS_s": "ms_s", "MS_q": "ms_q", "MS_e": "ms_e", "var_e": "ms_e"}
        if key in name:
            assert close(getattr(study, name[key]), value), key
    for key, values in expected["d"].items():
        queries = int(key.removeprefix("queries=").partition(",")[0])
        found = {
            "Erho2": erho2(study, queries).value,
            "Phi": phi(study, queries).value,
            "n_q_Erho2": erho2_queries(study, 0.95).queries,
            "n_q_Phi": phi_queries(study, 0.95).queries,
        }
        for name in found.keys() & values:
            assert close(found[name], values[name]), (key, name)


def test_gt4ireval(shared_data: Path) -> None:
    folder = shared_data / "science"
    expected = json.loads((folder / "gt4ireval-adhoc3.expected.json").read_text())
    with (folder / "gt4ireval-adhoc3.csv").open() as stream:
        rows = list(csv.reader(stream))[1:]
    scores = np.array(rows, np.float64).T
    for drop in (0.0, 0.25):
        check_sizes(scores[kept_systems(scores.mean(axis=1), drop)], expected[f"drop={drop:g}"])


@pytest.mark.parametrize("min_rating", [4, 5])
def test_dl19(shared_data: Path, min_rating: int) -> None:
    path = shared_data / "science" / f"dl19-generalizability-min{min_rating}.json"
    expected = json.loads(path.read_text())
    found = item_scores(dl19(), min_rating)
    exams = [found.credit[:, items] for items in found.groups]
    scores = np.stack([exam.mean(axis=1) for exam in exams], axis=1)
    alpha = expected.pop("alpha_over_queries", None)
    if alpha is not None:
        assert crossed(scores).relative(scores.shape[1]) == pytest.approx(alpha)
    for key, one in expected.items():
        kept = kept_systems(scores.mean(axis=1), float(key.removeprefix("drop=")))
        check_sizes(scores[kept], one["s_x_q"])
        check_items([exam[kept] for exam in exams], one["s_x_(i:q)"])


def check_items(exams: list[Floats], expected: dict[str, Any]) -> None:
    found = nested(exams)
    assert found is not None
    assert close(found.ms_iq, expected["g"]["MS_iq"])
    assert close(found.ms_siq, expected["g"]["MS_siq"])
    # the classic mean squares of a balanced table
    assert close(found.means.ms_s * found.items, expected["g"]["MS_s"])
    for name, value in expected["g"]["raw"].items():
        assert found.raw[name] == pytest.approx(value, rel=1e-8, abs=1e-11)
    for key, values in expected["d"].items():
        queries, items = map(int, key.split("x"))
        assert found.relative(queries, items) == pytest.approx(values["Erho2"], rel=1e-9)
        assert found.absolute(queries, items) == pytest.approx(values["Phi"], rel=1e-9)
        errors = (values["sem_rel"], values["sem_abs"])
        assert found.errors(queries, items) == pytest.approx(errors, rel=1e-9)
    ceiling = next(value for key, value in expected.items() if "infinitely" in key)
    assert found.relative(43, math.inf) == pytest.approx(ceiling, rel=1e-9)


# ---- a plain analysis of variance ----------------------------------------------------------------


def mean_squares(table: Floats, formula: str) -> dict[str, float]:
    """By least squares: every factor and interaction of a formula of x0, x1 ..."""

    import statsmodels.api
    import statsmodels.formula.api

    rows = [[*place, table[place]] for place in product(*map(range, table.shape))]
    names = [f"x{axis}" for axis in range(table.ndim)]
    frame = pandas.DataFrame(rows, columns=[*names, "y"])
    fitted = statsmodels.formula.api.ols(f"y ~ {formula}", frame).fit()
    found = statsmodels.api.stats.anova_lm(fitted)
    return {
        str(name).replace("C(", "").replace(")", ""): row["sum_sq"] / row["df"]
        for name, row in found.iterrows()
    }


tables = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed))


@settings(max_examples=8)
@given(tables)
def test_crossed_is_the_anova_of_two_factors(random: np.random.Generator) -> None:
    scores = random.random(tuple(random.integers(2, 6, 2)))
    expected = mean_squares(scores, "C(x0) + C(x1)")
    found = crossed(scores)
    assert found.ms_s == pytest.approx(expected["x0"])
    assert found.ms_q == pytest.approx(expected["x1"])
    assert found.ms_e == pytest.approx(expected["Residual"], abs=1e-12)
    alpha = scores.sum(axis=1).var(ddof=1), scores.var(axis=0, ddof=1).sum()
    n = scores.shape[1]
    if found.raw_s > 0:
        assert found.relative(n) == pytest.approx(n / (n - 1) * (1 - alpha[1] / alpha[0]))


@settings(max_examples=5)
@given(tables)
def test_nested_is_the_anova_of_items_in_queries(random: np.random.Generator) -> None:
    s, q, i = random.integers(2, 5, 3)
    table = random.random((s, q, i))
    expected = mean_squares(table, "C(x0) + C(x1) + C(x0):C(x1) + C(x1):C(x2)")
    found = nested([table[:, query] for query in range(q)])
    assert found is not None
    assert found.ms_iq == pytest.approx(expected["x1:x2"])
    assert found.ms_siq == pytest.approx(expected["Residual"])
    # those of query means, of i items each
    assert i * found.means.ms_s == pytest.approx(expected["x0"])
    assert i * found.means.ms_q == pytest.approx(expected["x1"])
    assert i * found.means.ms_e == pytest.approx(expected["x0:x1"])
    assert found.raw["q"] == pytest.approx(
        (expected["x1"] - expected["x1:x2"] - expected["x0:x1"] + expected["Residual"]) / (s * i)
    )


@settings(max_examples=10)
@given(tables)
def test_one_item_a_query_counts_in_the_means_alone(random: np.random.Generator) -> None:
    exams = [random.random((4, size)) for size in (3, 2, 4)]
    alone = random.random((4, 1))
    without, found = nested(exams), nested([*exams, alone])
    assert without is not None
    assert found is not None
    assert (found.ms_siq, found.ms_iq) == pytest.approx((without.ms_siq, without.ms_iq))
    assert found.means == crossed(
        np.hstack([*(e.mean(axis=1, keepdims=True) for e in exams), alone])
    )
    assert found.items == pytest.approx(4 / (1 / 3 + 1 / 2 + 1 / 4 + 1))
