"""Samples drawn by permanent random numbers, and the chances to be drawn."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.stats.sampling import FLOOR, folds, inclusion, influence, random_numbers, uncertainty

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
    assert influence(third) == pytest.approx([0, np.sqrt(2 * (1 / 3) * (2 / 3)), 0], abs=1e-12)
    # of one system: how much the unit moves its score
    assert influence(third[:1]).tolist() == [1.0, 1.0, 0.1]


def test_nobody_is_certain() -> None:
    assert uncertainty(np.array([0.5, 0.0, 1.0])) == pytest.approx([0.5, 0.05**0.5, 0.05**0.5])
