"""Systems by name: patterns, groups, and the part of a list that is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.records.systems import BEST, SystemFilter, group_of, systems_like

TRACK = ["idst_bert_p1", "TUW19-p1-f", "idst_bert_p2", "bm25", "TUW19-p1-re", "p_bert"]
"""Best first."""


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("idst_bert_p1", "idst_bert_"),
        ("TUW19-p1-f", "TUW19-p1-"),
        ("bm25", ""),
        ("team-", ""),
        ("-x", "-"),
        ("a.b/c", "a.b/"),
        ("line\nbreak-1", "line\nbreak-"),
    ],
)
def test_the_group_is_the_name_up_to_its_last_separator(name: str, group: str) -> None:
    assert group_of(name) == group


def test_names_and_patterns_select_systems() -> None:
    assert systems_like(["idst_*", "bm2?"], TRACK) == {"idst_bert_p1", "idst_bert_p2", "bm25"}
    assert systems_like(["p_bert"], TRACK) == {"p_bert"}
    # case and brackets mean themselves
    assert systems_like(["[ab]*"], ["[ab]1", "a1"]) == {"[ab]1"}
    with pytest.raises(InputError, match=r"no system matches 'IDST_\*'"):
        systems_like(["IDST_*"], TRACK)
    with pytest.raises(InputError, match=r"unknown system 'bm24'\. Did you mean 'bm25'\?"):
        systems_like(["bm24"], TRACK)


def test_a_known_name_is_never_a_pattern() -> None:
    assert systems_like(["run*"], ["run*", "run1"]) == {"run*"}


def test_pinned_systems_come_first_whatever_the_filter() -> None:
    shown = SystemFilter(find="BERT p", pin=("bm25", "gone", "p_bert")).of(TRACK)
    assert shown.pinned == ["bm25", "p_bert"]
    assert shown.rest == ["idst_bert_p1", "idst_bert_p2"]
    assert shown.unknown == ["gone"]
    assert shown.groups == {"TUW19-p1-": 2, "idst_bert_": 2}


def test_a_group_and_the_best_of_each_group() -> None:
    assert SystemFilter(group="TUW19-p1-").of(TRACK).rest == ["TUW19-p1-f", "TUW19-p1-re"]
    best = SystemFilter(group=BEST).of(TRACK)
    assert best.rest == ["idst_bert_p1", "TUW19-p1-f", "bm25", "p_bert"]
    assert SystemFilter(group=BEST, find="2").of(TRACK).rest == ["idst_bert_p2", "bm25"]


@given(
    st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=12),
    st.text(max_size=4),
    st.lists(st.text(min_size=1, max_size=8), max_size=3),
)
def test_every_shown_system_is_shown_once(names: list[str], find: str, pin: list[str]) -> None:
    shown = SystemFilter(find, BEST, tuple(pin)).of(names)
    every = [*shown.pinned, *shown.rest]
    assert len(set(every)) == len(every)
    assert set(every) <= set(names)
    assert SystemFilter().of(names).rest == names
