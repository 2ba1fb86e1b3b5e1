"""A search finds the same as reading every text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records.selection import SEARCH_KINDS
from exampp.store.search import SearchPage, excerpt_pieces, search_words

TEXTS = [
    "100% of apples \\ pears_and 'plums'",
    'He said "yes, so it is" to ÄPFEL und Straße',
    "مرحبا بالعالم \u202e and words",
    "日本語の文章です。",
    "a\nb\tc  ... cafe\u0301 CAFÉ naïve",
    "İstanbul, ISTANBUL; \u041c\u041e\u0421\u041a\u0412\u0410 \u043c\u043e\u0441\u043a\u0432\u0430",
    "",
]
VOCABULARY = [
    "apples",
    "100%",
    "pears_and",
    "äpfel",
    "yes,",
    "\u043c\u043e\u0441\u043a\u0432\u0430",
    "日本",
    "مرحبا",
    "café",
    "b",
    "\\",
    "'",
]


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as collection:
        yield collection


def one(found: list[SearchPage], kind: str) -> SearchPage:
    return next(of for of in found if of.kind == kind)


def test_every_kind_is_found_by_its_words_and_its_ids(exam: exampp.Collection) -> None:
    exam.grade(ScriptedGrader("Rating 4, because of ultramarine", record=False))
    item = exam.grades().gradebook.queries[0].item_ids[0]
    exam.grades().decisions.decide(
        "q1", item, "p1", 5, author="ada", reason="the Ultraviolet part says so"
    )
    exam.bank().edit("weight", item, "2", query_id="q1", author="bob", reason="ultra important")
    found = {of.kind: of.records for of in exam.search("ULTRA")}
    assert {kind for kind, records in found.items() if records} == {"replies", "decisions", "edits"}
    assert len(found["replies"]) == 8
    (decision,) = found["decisions"]
    assert (decision.query_ids, decision.item_id, decision.passage_id) == (("q1",), item, "p1")
    assert (decision.author, decision.note) == ("ada", "5")
    assert [(one.author, one.note) for one in found["edits"]] == [("bob", "weight")]
    assert one(exam.search("sky"), "queries").records[0].query_ids == ("q1",)
    assert [r.text for r in one(exam.search("air SCATTER"), "items").records] == [
        "What does air scatter?"
    ]
    assert [r.text for r in one(exam.search("ALPHA"), "systems").records] == ["alpha"]
    (passage,) = one(exam.search("p4"), "passages").records
    assert (passage.text, passage.query_ids) == ("Compasses point north.", ("q1", "q2"))


def test_words_are_found_as_reading_every_text_finds_them(tmp_path: Path) -> None:
    draw = random.Random(4)
    texts = {f"id{n}": " ".join(draw.choices([*TEXTS, *VOCABULARY], k=3)) for n in range(200)}
    with exampp.Collection.create(tmp_path / "texts.exam") as exam:
        exam.add(queries={"q": "what"}, passages=texts)
        for word in [*VOCABULARY, '"yes, so it"', "apples 100%", "%", "_", "*", "zebra"]:
            wanted = search_words(word)
            found = exam.search(word, kinds=["passages"], most=300)[0].records
            folded = {name: text.lower() for name, text in texts.items()}
            if word == "café":  # one letter, or two: the same word
                folded = {name: text.replace("e\u0301", "é") for name, text in folded.items()}
            assert [record.passage_id for record in found] == [
                name
                for name, text in folded.items()
                if all(w.lower() in text or w in name for w in wanted)
            ], word


def test_more_records_than_are_wanted_are_told(exam: exampp.Collection) -> None:
    exam.grade(ScriptedGrader("4", record=False))
    (whole,) = exam.search("4", kinds=["replies"])
    assert (len(whole.records), whole.more) == (8, False)
    (some,) = exam.search("4", kinds=["replies"], most=3)
    assert (some.records, some.more) == (whole.records[:3], True)


@pytest.mark.parametrize("text", ["", "   ", '"', '""', "\x00\x1b", "\ud800"])
def test_no_words_find_nothing(exam: exampp.Collection, text: str) -> None:
    assert [of.records for of in exam.search(text)] == [()] * len(SEARCH_KINDS)


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "zebra " * 2_000, "%" * 10_000, "\U0001f600" * 10_000]
)
def test_long_texts_are_searched_for_by_their_start(exam: exampp.Collection, text: str) -> None:
    assert exam.search(text, kinds=["passages"])[0].records == ()
    assert sum(map(len, search_words(text))) <= 300


@pytest.mark.parametrize(
    "options",
    [
        {"kinds": ["everything"]},
        {"most": 0},
        {"grader": "nobody"},
        {"bank": "none"},
    ],
)
def test_options_that_are_wrong_are_refused(
    exam: exampp.Collection, options: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        exam.search("air", **options)


def test_an_excerpt_has_the_first_word_in_sight() -> None:
    text = "filler " * 100 + "the Needle in it " + "straw " * 100
    found = excerpt_pieces(text, ["needle", "straw"])
    assert found[0].text == "\u2026 "
    assert [one.text for one in found if one.is_hit][:2] == ["Needle", "straw"]
    assert "".join(one.text for one in found[1:])[:-1] in text
    assert excerpt_pieces("nothing", []) == [("nothing", False)]
    assert excerpt_pieces("", ["x"]) == []
