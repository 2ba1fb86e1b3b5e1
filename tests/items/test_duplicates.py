"""When two questions ask the same: pairs that people told apart, and what holds for all texts."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.same_questions import DISTINCT, SAME

from exampp.errors import InputError
from exampp.graders import draft
from exampp.items import duplicates
from exampp.items.duplicates import (
    duplicate_groups,
    duplicate_pairs,
    duplicates_table,
    near_duplicates,
    text_difference,
)
from exampp.records import BankEntry, Item
from exampp.records import items as records

ROOT = Path(__file__).parents[2]


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


def planted() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Pairs written by hand, by set and kind; the set `fresh` was written after the rules."""
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    with (ROOT / "benchmarks/labels/planted_duplicates.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            pairs.setdefault((row["set"], row["kind"]), []).append((row["one"], row["other"]))
    return pairs


def test_planted_paraphrases_are_found_and_others_kept_apart() -> None:
    pairs = planted()
    for name in ("chosen", "fresh"):
        same = [bool(duplicate_pairs(pair)) for pair in pairs[name, "same"]]
        assert sum(same) >= 0.7 * len(same)
        different = [
            bool(duplicate_pairs(pair))
            for (of, kind), some in pairs.items()
            for pair in some
            if of == name and kind != "same"
        ]
        assert len(different) >= 60
        assert sum(different) <= 0.03 * len(different)


A, B, C = "What causes floods?", "What are the causes of floods?", "Why do floods happen?"


def test_a_group_has_only_items_that_are_all_duplicates() -> None:
    items = [Item(str(n), "q", text) for n, text in enumerate([A, B, C, "What is a flood?"])]
    (group,) = duplicate_groups(items)
    assert {item.item_id for item in group.items} == {"0", "1", "2"}
    assert group.reason == "paraphrase"
    # B and C differ, so that A can be with one of them only
    apart = [items[0], replace(items[1], extra={records.DIFFERENT: ["2"]}), *items[2:]]
    (group,) = duplicate_groups(apart)
    assert len(group.items) == 2
    assert "0" in {item.item_id for item in group.items}


def test_marks_join_items_in_any_words() -> None:
    first = Item("0", "q", A, extra={records.SAME: ["1", "gone"]})
    (group,) = duplicate_groups([first, Item("1", "q", "How is steel made?")])
    assert group.reason == "marked"
    assert len(group.items) == 2


def test_contradictory_marks_are_reported() -> None:
    first = Item("0", "q", A, extra={records.SAME: ["1"], records.DIFFERENT: ["2"]})
    second = Item("1", "q", "How is steel made?", extra={records.SAME: ["2"]})
    items = (first, second, Item("2", "q", "How is iron made?"))
    table = duplicates_table([BankEntry("q", items)])
    (note,) = table.notes
    assert "0 and 2 are marked as different, and as the same through other items" in note
    # without the mark through another item, they are apart
    apart = (first, replace(second, extra={}), items[2])
    assert not duplicates_table([BankEntry("q", apart)]).notes


def test_without_the_model_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise InputError("a file of the draft grader is missing")

    monkeypatch.setattr(draft, "load_encoder", missing)
    caches = (duplicates._encoder, duplicates._synonyms, duplicates.vector_of)
    for one in caches:
        one.cache_clear()
    try:
        table = duplicates_table([BankEntry("q", (Item("0", "q", A), Item("1", "q", C)))])
        assert [row[5] for row in table.rows] == ["paraphrase", "paraphrase"]
        assert "compared by words alone" in table.notes[0]
        # the two verbs are known to mean the same by their vectors alone
        assert not duplicate_pairs(["How do bees communicate?", "How do bees talk?"])
    finally:
        for one in caches:
            one.cache_clear()


def test_items_without_a_text_are_compared_with_none() -> None:
    assert duplicate_groups([Item("0", "q", ""), Item("1", "q", ""), Item("2", "q", A)]) == []
