"""The difference between what was read and what would be written restores the original."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.formats.json_values import difference, restored

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(VALUES, VALUES)
def test_any_value_is_restored_from_any_other(written: Any, original: Any) -> None:
    residue = difference(written, original)
    through_json = None if residue is None else json.loads(json.dumps(residue))
    # 1 and 1.0 are one number in JSON; Python's equality says so too, True apart
    assert difference(restored(written, through_json), original) is None


@given(VALUES)
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
