"""Values stored beside the records of a file: compared with the definition of JSON values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.formats.json_values import difference, differences, restored

SCALARS = st.sampled_from([True, False, 0, 1, 1.0, 0.0, -0.0, None, "", "a", "\ud800", 2**70])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


def alike(a: Any, b: Any) -> bool:
    """The definition: equal, part by part, and True is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


@given(VALUES, VALUES)
def test_only_equal_values_have_no_difference(a: Any, b: Any) -> None:
    assert (difference(a, b) is None) == alike(a, b)
    assert alike(restored(a, difference(a, b)), b)


@given(st.lists(st.tuples(VALUES, VALUES | st.none()), max_size=4))
def test_many_differences_are_those_of_each(pairs: list[tuple[Any, Any]]) -> None:
    pairs = [(a, a if b is None else b) for a, b in pairs]
    originals = [b for _, b in pairs]
    assert differences((a for a, _ in pairs), originals) == [difference(*pair) for pair in pairs]


def test_a_truth_is_no_number_where_a_text_is_no_unicode() -> None:
    assert difference(["\ud800", True], ["\ud800", 1]) == {"is": ["\ud800", 1]}


# ---- residue -------------------------------------------------------------------------------------


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(ANYTHING, ANYTHING)
def test_any_value_is_restored_from_any_other(written: Any, original: Any) -> None:
    residue = difference(written, original)
    through_json = None if residue is None else json.loads(json.dumps(residue))
    # 1 and 1.0 are one number in JSON; Python's equality says so too, True apart
    assert difference(restored(written, through_json), original) is None


@given(ANYTHING)
def test_equal_values_leave_nothing(value: Any) -> None:
    assert difference(value, json.loads(json.dumps(value))) is None


@pytest.mark.parametrize(
    ("written", "original", "residue"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, {"set": {"b": 2}}),
        ({"a": 1, "b": 2}, {"b": 2}, {"drop": ["a"]}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, {"in": {"a": {"set": {"b": 3}}}}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"set": {"a": [2, 1]}}),
        ({"a": True}, {"a": 1}, {"set": {"a": 1}}),
        ({"a": None}, {}, {"drop": ["a"]}),
        ([1], {"a": 1}, {"is": {"a": 1}}),
    ],
)
def test_differences_are_small(written: Any, original: Any, residue: Any) -> None:
    assert difference(written, original) == residue
