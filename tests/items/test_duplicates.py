"""When two questions ask the same: pairs that people told apart, and what holds for all texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.same_questions import DISTINCT, SAME

from exampp.items.duplicates import near_duplicates, text_difference
from exampp.records import Item


def same(one: str, other: str) -> bool:
    found = near_duplicates([Item("1", "q", one), Item("2", "q", other)])
    return [like.differs for like in found] == [""]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_asks_the_same(one: str, other: str) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_what_asks_something_else(one: str, other: str) -> None:
    assert not same(one, other)
    assert not same(other, one)


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("Who was king of France?", "Who was king of Spain?", "a name"),
        ("What happened in 1914?", "What happened in 1941?", "a number"),
        ("How do two magnets act?", "How do three magnets act?", "a number"),
        ("Which metals are magnetic?", "Which metals are not magnetic?", "a negation"),
        ("Is it constitutional?", "Is it unconstitutional?", "an opposite"),
        ("Which animals eat plants?", "Which plants eat animals?", "the order"),
        ("What came before the war?", "What came after the war?", "an opposite"),
        ("When did the war end?", "Why did the war end?", "the question word"),
        ("What causes floods?", "What causes droughts?", "a word"),
        ("What is an exon?", "What's the definition of exons?", "the wording"),
    ],
)
def test_what_tells_two_apart(one: str, other: str, what: str) -> None:
    assert text_difference(one, other) == text_difference(other, one) == what


WORDS = st.lists(
    st.sampled_from(["What", "is", "the", "a", "Reef", "reefs", "2", "not", "Why", "do", "coast"]),
    max_size=6,
)


@given(WORDS, WORDS)
def test_to_be_the_same_is_mutual(one: list[str], other: list[str]) -> None:
    first, second = " ".join(one), " ".join(other)
    assert text_difference(first, second) == text_difference(second, first)
    assert text_difference(first, first) == ""
    if text_difference(first, second) == "":
        assert same(first, second) or not first.strip()


def test_of_three_that_ask_the_same_one_is_left() -> None:
    items = [Item(str(n), "q", t) for n, t in enumerate(["A reef?", "a reef", "The reefs?"])]
    found = list(near_duplicates(items))
    assert [(one.item.item_id, one.like.item_id) for one in found] == [("1", "0"), ("2", "0")]
