"""A query of a RAG collection as a record: marked sentences, contexts, reference, items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exampp
from exampp import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.review.record import SystemRecord, marked_sentences

SKY, SEA, DUSK = "What does air scatter?", "What does water absorb?", "Why is dusk red?"
SCATTER, ABSORB = "Air scatters blue light.", "Water absorbs red light."
ANSWER = f"The sky is far. {SCATTER} {ABSORB}"
REFERENCE = "Blue light is scattered."
EVIDENCE = {SKY: "scatters blue", SEA: "absorbs red"}


def rate(request: Request) -> str:
    """Quote the evidence of an item where the passage has it, as a reply in JSON."""
    quote = EVIDENCE.get(request.item, "")
    found = bool(quote) and quote in request.passage
    reply = {"evidence": quote if found else "", "reason": "", "grade": 5 if found else 0}
    return json.dumps(reply)


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[exampp.Collection]:
    """Two systems: one retrieves what the sky does, the other nothing; both answer."""
    row = {"question": "Why is the sky blue?", "reference": REFERENCE}
    contexts = ["Birds fly.", f"As known: {SCATTER}"]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            [
                {**row, "system": "good", "answer": ANSWER, "contexts": contexts},
                {**row, "system": "poor", "answer": "I do not know.", "contexts": None},
            ],
        )
        (query_id,) = exam.query_texts()
        for item in (SKY, SEA, DUSK):
            exam.bank().add(query_id, item)
        yield exam


def graded(exam: exampp.Collection) -> exampp.Collection:
    exam.grade(ScriptedGrader(rate), prompt="question-rating-evidence")
    return exam


def of(exam: exampp.Collection, *systems: str) -> SystemRecord:
    return exam.record("Why is the sky blue?", systems).systems[0]


def test_sentences_are_marked_by_evidence_that_a_context_covers_too(
    exam: exampp.Collection,
) -> None:
    record = graded(exam).record("Why is the sky blue?")
    numbers = {one.text: one.number for one in record.items}
    good, poor = record.systems
    assert (good.system, good.source, poor.system) == ("good", "good:contexts", "poor")
    marks = [(one.text.strip(), one.items, one.shared) for one in good.answer[0].sentences]
    assert marks == [
        ("The sky is far.", (), ()),
        (SCATTER, (numbers[SKY],), (numbers[SKY],)),
        (ABSORB, (numbers[SEA],), ()),
    ]
    assert good.answer[0].text == ANSWER
    assert [(one.rank, one.name, one.covers) for one in good.contexts] == [
        (1, "Birds fly.", ()),
        (2, f"As known: {SCATTER}", ((numbers[SKY], 5),)),
    ]
    assert good.support == "no citation, 1 of 3 answer an item that a context covers"
    assert poor.support == "no citation, no quoted evidence"
    assert not poor.contexts
    assert record.references == (REFERENCE,)
    assert record.headline == (
        "good covers 2 of 4 items, its contexts 1 (1 in no context). poor covers 0 of 4 items."
    )
    ungraded = replace(
        record, items=tuple(one._replace(contexts=(None, None)) for one in record.items)
    )
    assert ungraded.headline == (
        "good covers 2 of 4 items; its contexts have no grades. poor covers 0 of 4 items."
    )
    some = tuple(one._replace(answers=(one.answers[0], None)) for one in record.items)
    assert replace(record, items=some).headline.endswith("poor has no grades.")
    some = tuple(one._replace(answers=(None, None)) for one in record.items)
    assert replace(record, items=some).headline == (
        "good retrieves 1 of 4 items; its answer has no grades. poor has no grades."
    )
    some = (record.items[0]._replace(answers=(None, None)), *record.items[1:])
    assert "poor covers 0 of 4 items (1 without a grade)." in replace(record, items=some).headline


def test_items_have_the_best_rating_of_each_part(exam: exampp.Collection) -> None:
    record = graded(exam).record("Why is the sky blue?")
    by_text = {one.text: one for one in record.items}
    sky, dusk = by_text[SKY], by_text[DUSK]
    assert [one and one.rating for one in (*sky.answers, *sky.contexts)] == [5, 0, 5, None]
    assert [one and one.rating for one in dusk.answers] == [0, 0]
    assert sky.reference is None
    rows = record.records()["items"].for_programs()[1]
    assert [row[2:] for row in rows if row[2] == SKY] == [(SKY, 5, 5, 0)]


def test_people_override_what_covers(exam: exampp.Collection) -> None:
    graded(exam)
    (query_id,) = exam.query_texts()
    sky = next(one for one in exam.record(query_id).items if one.text == SKY)
    assert sky.contexts[0] is not None
    place = (query_id, sky.item_id, sky.contexts[0].passage_id)
    exam.grades().decisions.decide(*place, 0, author="ann")
    answer = exam.record(query_id).systems[0].answer[0]
    assert [one.shared for one in answer.sentences] == [(), (), ()]


def test_without_grades_the_texts_are_shown(exam: exampp.Collection) -> None:
    record = exam.record("Why is the sky blue?")
    assert record.headline == "No grades yet."
    assert [one.system for one in record.systems] == ["good", "poor"]
    assert record.systems[0].answer[0].text == ANSWER
    assert [one.rank for one in record.systems[0].contexts] == [1, 2]
    assert of(exam, "poor").system == "poor"


def test_without_systems_it_says_so(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q": "Why?"})
        assert exam.record("q").headline == "No system answers this query."


spans = st.tuples(st.integers(0, 40), st.integers(1, 20)).map(lambda one: (one[0], sum(one)))


@given(st.text(alphabet="aB. !?\n\u3002", min_size=1, max_size=60), st.lists(spans, max_size=4))
def test_sentences_join_to_the_text_and_no_mark_is_lost(
    text: str, places: list[tuple[int, int]]
) -> None:
    inside = [(start, end) for start, end in places if end <= len(text)]
    citations = [(start, end, [n]) for n, (start, end) in enumerate(inside)]
    quotes = [(start, end, n) for n, (start, end) in enumerate(inside)]
    found = list(marked_sentences(text, citations, quotes, in_contexts=[0]))
    assert "".join(one.text for one in found) == text
    everywhere = set(range(len(inside)))
    assert {n for one in found for n in one.cites} == everywhere
    assert {n for one in found for n in one.items} == everywhere
    assert {n for one in found for n in one.shared} == everywhere & {0}
    at = 0
    for one in found:
        overlapping = [n for n, (start, end) in enumerate(inside) if start < at + len(one.text)]
        assert set(one.cites) <= set(overlapping)
        at += len(one.text)


def test_an_unknown_query_or_system_is_an_error(exam: exampp.Collection) -> None:
    with pytest.raises(InputError, match="no query 'q9'"):
        exam.record("q9")
    with pytest.raises(InputError, match="unknown system 'bad'"):
        exam.record("Why is the sky blue?", ["bad"])


def test_a_system_that_skips_the_query_returns_nothing(exam: exampp.Collection) -> None:
    other = {"question": "Why is dusk red?", "system": "late", "answer": "Light is scattered."}
    exam.add([other])
    graded(exam)
    assert exam.record("Why is the sky blue?", ["late"]).headline == "late returns nothing."
    both = exam.record("Why is the sky blue?", ["poor", "late"])
    assert both.headline == "poor covers 0 of 4 items. late returns nothing."


def test_a_system_named_twice_is_shown_once(exam: exampp.Collection) -> None:
    record = graded(exam).record("Why is the sky blue?", ["good", "good"])
    assert [one.system for one in record.systems] == ["good"]


def test_a_system_of_passages_has_no_answer(small_exam: exampp.Collection) -> None:
    record = small_exam.record("q1", ["alpha"])
    (alpha,) = record.systems
    assert not alpha.answer
    assert [one.passage_id for one in alpha.contexts] == ["p1", "p2"]


@pytest.mark.parametrize("cited", [False, True])
def test_sentences_keep_their_own_citations(tmp_path: Path, cited: bool) -> None:
    statements = [
        {"text": "Air scatters blue light.", "citations": ["D2"]},
        {"text": "Nobody cites this.", "citations": []},
        {"text": "Dusk is red.", "citations": ["D1", "D9"]},
    ]
    answer = {"query_id": "q1", "system": "rag", "answer": statements}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries=[{"query_id": "q1", "text": "Why is the sky blue?"}],
            passages=[
                {"id": "D1", "title": "Evening", "text": "Red."},
                {"id": "D2", "text": "Blue."},
                {"id": "D9", "text": "Black."},
            ],
        )
        exam.import_files(tmp_path / "answers.jsonl", cited=cited)
        record = of(exam)
        names = {one.number: one.passage_id for one in record.contexts}
        found = [
            (one.text.strip(), [names[number] for number in one.cites])
            for one in record.answer[0].sentences
        ]
        assert found == [
            ("Air scatters blue light.", ["D2"]),
            ("Nobody cites this.", []),
            ("Dusk is red.", ["D1", "D9"]),
        ]
        assert record.support == "2 of 3 sentences cite a context, no quoted evidence"
        # ranks are known only where the citations are stored as a ranking
        assert [one.rank for one in record.contexts] == ([1, 2, 3] if cited else [None] * 3)
        # the citations survive an export
        exam.export(tmp_path / "out.jsonl.gz")
    with exampp.create(tmp_path / "other.exam") as other:
        other.import_files(tmp_path / "out.jsonl.gz")
        assert [one.cites for one in other.record("q1").systems[0].answer[0].sentences] == [
            one.cites for one in record.answer[0].sentences
        ]
