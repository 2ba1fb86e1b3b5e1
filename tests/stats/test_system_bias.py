"""Bias of a grader by system: values by hand, what fair graders do, whom it names."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from exampp.stats.system_bias import JudgedPool, SystemBiases, system_biases

Floats = NDArray[np.float64]


def by_system(owner: NDArray[np.int64], systems: int) -> list[NDArray[np.intp]]:
    return [np.flatnonzero(owner == system) for system in range(systems)]


def pool(
    queries: int, systems: int, passages: int, seed: int = 0, skill: Floats | None = None
) -> JudgedPool:
    """Separate passages; the grader rates the judgment with noise."""
    random = np.random.default_rng(seed)
    owner = np.tile(np.repeat(np.arange(systems), passages), queries)
    query = np.repeat(np.arange(queries), systems * passages)
    quality = np.zeros(systems) if skill is None else skill
    judgment = np.digitize(random.normal(quality[owner]), [0, 0.8, 1.6]).astype(float)
    label = judgment + random.normal(0, 1, len(owner))
    return JudgedPool(label, judgment, query, query, by_system(owner, systems))


def changed(one: JudgedPool, label: Floats) -> JudgedPool:
    return JudgedPool(label, one.judgment, one.exam, one.query, one.returned)


def test_matched_by_hand() -> None:
    # query 0: judged 1: a has 4, b has 1 and 3 (mean 2): +2 by weight 1*2/3; judged 0: a 1, b 0:
    # +1 by weight 1/2. Query 1: judged 1: a 2, b 2: 0 by weight 1/2.
    found = system_biases(
        JudgedPool(
            np.array([4.0, 1.0, 3.0, 1.0, 0.0, 2.0, 2.0]),
            np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]),
            np.array([0, 0, 0, 0, 0, 1, 1]),
            np.array([0, 0, 0, 0, 0, 1, 1]),
            [np.array([0, 3, 5]), np.array([1, 2, 4, 6])],
        )
    )
    expected = (2 * 2 / 3 + 1 / 2) / (2 / 3 + 1 / 2 + 1 / 2)
    assert found.matched == pytest.approx([expected, -expected])
    assert found.found.tolist() == [0, 0]


def test_matched_is_the_regression_with_strata() -> None:
    one = pool(6, 4, 5)
    strata = one.exam * 4 + one.judgment.astype(int)
    dummies = (strata[:, None] == np.unique(strata)).astype(float)
    expected = [
        np.linalg.lstsq(
            np.column_stack([np.isin(np.arange(len(one.label)), mine), dummies]), one.label
        )[0][0]
        for mine in one.returned
    ]
    assert system_biases(one).matched == pytest.approx(expected)


def test_linked_of_labels_that_are_judgments_is_nothing() -> None:
    one = pool(10, 4, 5)
    found = system_biases(changed(one, 2 * one.judgment + 1))
    assert found.linked == pytest.approx(np.zeros(4), abs=1e-12)
    assert not found.found.any()


def named(found: SystemBiases) -> dict[int, int]:
    return {int(n): int(found.found[n]) for n in np.flatnonzero(found.found)}


@pytest.mark.parametrize("change", [{2: 5.0}, {2: 1.0}, {2: -1.0}, {2: 3.0, 5: 3.0}])
def test_favoured_systems_are_named_and_no_others(change: dict[int, float]) -> None:
    one = pool(25, 8, 10)
    label = one.label.copy()
    for system, size in change.items():
        label[one.returned[system]] += size
    found = system_biases(changed(one, label))
    assert named(found) == {system: int(np.sign(size)) for system, size in change.items()}
    for system, size in change.items():
        assert found.low[system] < size < found.high[system]


def test_a_better_system_is_not_favoured_by_noise() -> None:
    # plain label minus judgment of a grader that regresses to the mean differs by quality
    skill = np.linspace(-1.5, 1.5, 8)
    one = pool(25, 8, 10, skill=skill)
    flat = changed(one, 1.5 + 0.3 * (one.label - 1.5))
    plain = [(flat.label - flat.judgment)[mine].mean() for mine in flat.returned]
    assert plain[0] - plain[-1] > 0.8
    assert not system_biases(flat).found.any()


def test_noisy_judges_do_not_make_a_better_system_favoured() -> None:
    random = np.random.default_rng(3)
    skill = np.linspace(-1.5, 1.5, 8)
    owner = np.tile(np.repeat(np.arange(8), 10), 40)
    query = np.repeat(np.arange(40), 80)
    relevance = random.normal(skill[owner])
    judgment = (relevance + random.normal(0, 0.7, len(owner)) > 1.5).astype(float)
    label = relevance + random.normal(0, 1, len(owner))
    found = system_biases(JudgedPool(label, judgment, query, query, by_system(owner, 8)))
    assert (np.abs(found.matched) > found.matched_half).any()
    assert not found.found.any()


def test_one_query_has_no_interval() -> None:
    found = system_biases(pool(1, 3, 10))
    assert np.isnan(found.low).all()
    assert not found.found.any()
