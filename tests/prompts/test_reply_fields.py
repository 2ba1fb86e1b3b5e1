"""Replies with a reason and evidence: the schema, what is read, and where evidence is found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exams
from support.commands import Commands
from support.declared_prompts import parse_prompt

import exampp
from exampp.errors import InputError
from exampp.graders.base import Reply
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.requests import ReplyRules
from exampp.prompts import Prompt, load_grading_prompt, prompt_content_hash, read_reply
from exampp.prompts.reply_fields import locate_evidence, reply_schema, reply_texts
from exampp.records import Grade, State
from exampp.store.cells import PendingCells

PASSAGE = (
    "Sky\nAir scatters blue light\n"
    "\u2014 it\u2019s 5.5 times \u201cstronger\u201d than red. Not more."
)
EVIDENCE = load_grading_prompt("question-rating-evidence")
DIGITS = tuple("012345")


def test_the_schema_has_the_declared_order() -> None:
    rating = {"type": "integer", "enum": [0, 1]}
    text = {"type": "string"}
    schema = reply_schema("grade", ("0", "1"), ("reason", "grade", "evidence"))
    assert list(schema.items()) == [("reason", text), ("grade", rating), ("evidence", text)]
    assert reply_schema("grade", ("0", "1")) == {"grade": rating}
    assert reply_schema("answer", ()) == {"answer": text}


@pytest.mark.parametrize(
    ("quoted", "found"),
    [
        ("air scatters  BLUE light", "Air scatters blue light"),
        (
            '"Air scatters blue light - it\'s 5.5 times."',
            "Air scatters blue light\n\u2014 it\u2019s 5.5 times",
        ),
        (
            'it\'s 5.5 times "stronger" than red.',
            "it\u2019s 5.5 times \u201cstronger\u201d than red",
        ),
        (
            "Air scatters ... than red",
            "Air scatters blue light\n\u2014 it\u2019s 5.5 times \u201cstronger\u201d than red",
        ),
        ("Air scatters [\u2026] Not more", PASSAGE[4:-1]),
        ("than red ... Air scatters", None),  # in another order
        ("5.6 times", None),
        ("55 times", None),
        ("scatter blue", None),  # half of a word
        ("more than red", None),
        ("Air scatters red", None),
        ("", None),
        ("...", None),
    ],
)
def test_evidence_is_found_as_it_stands_in_the_passage(quoted: str, found: str | None) -> None:
    span = locate_evidence(quoted, PASSAGE)
    assert (None if span is None else PASSAGE[slice(*span)]) == found


@given(st.text(max_size=60), st.data())
def test_any_words_of_a_passage_are_found_and_the_span_has_them(text: str, data: Any) -> None:
    words = text.split()
    start = data.draw(st.integers(0, max(0, len(words) - 1)))
    quoted = " ".join(words[start : start + 3])
    span = locate_evidence(quoted, text)
    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)
    elif quoted.isascii() and quoted.replace(" ", "").isalnum():
        raise AssertionError(f"{quoted!r} of {text!r} was not found")


def test_texts_of_a_reply() -> None:
    reply = '<think>{"evidence": "no"}</think>{"Evidence": " blue ", "reason": 5, "grade": 4}'
    assert reply_texts(reply, EVIDENCE.reply) == {"evidence": "blue"}
    listed = json.dumps({"evidence": ["a b", "", "c"], "reason": "x", "grade": 1})
    assert reply_texts(listed, EVIDENCE.reply) == {"evidence": "a b ... c", "reason": "x"}
    assert reply_texts(listed, ("grade", "reason")) == {"reason": "x"}
    assert reply_texts("4", EVIDENCE.reply) == {}


def grade_of(reply: str, *, prompt: Prompt = EVIDENCE, truncated: bool = False) -> Grade:
    cells = PendingCells("why is the sky blue", "What?", (), PASSAGE, ())
    return ReplyRules(prompt).read(cells, Reply(reply, truncated=truncated))


def said(evidence: str, grade: object, reason: str = "It says so.") -> str:
    return json.dumps({"evidence": evidence, "reason": reason, "grade": grade})


def test_found_evidence_is_stored_with_its_place() -> None:
    grade = grade_of(said("scatters blue light", 4))
    assert (grade.rating, grade.rule) == (4, "json")
    assert grade.detail == {
        "explanation": "It says so.",
        "evidence": "scatters blue light",
        "span": [8, 27],
    }
    assert PASSAGE[8:27] == "scatters blue light"


@pytest.mark.parametrize(
    ("reply", "rating", "rule"),
    [
        (said("red is stronger", 4), 4, "evidence not found"),
        (said("red is stronger", 0), 0, "evidence not found"),
        (said("", 4), 4, "without evidence"),
        (said("", 0), 0, "json"),  # no answer needs no evidence
        ("4", 4, "without evidence"),
        ('{"grade": 4}', 4, "without evidence"),
    ],
)
def test_evidence_that_is_not_there_is_a_rule_of_its_own(
    reply: str, rating: int, rule: str
) -> None:
    grade = grade_of(reply)
    assert (grade.state, grade.rating, grade.rule) == (State.GRADED, rating, rule)
    assert "span" not in (grade.detail or {})


def test_a_reply_without_a_rating_has_no_grade_whatever_its_evidence() -> None:
    for reply in (said("scatters blue light", None), said("scatters blue light", 9)):
        assert grade_of(reply).state is State.UNPARSED


WHOLE = said("scatters blue light", 4)


@pytest.mark.parametrize("end", range(1, len(WHOLE)))
def test_a_truncated_reply_is_read_only_if_its_object_is_complete(end: int) -> None:
    assert grade_of(WHOLE[:end], truncated=True).state is State.TRUNCATED
    first = {"grade": 4, "reason": "It says so.", "evidence": "light"}
    ordered = replace(EVIDENCE, reply=("grade", "reason", "evidence"))
    cut = json.dumps(first)[: min(end, len(json.dumps(first)) - 1)]
    assert grade_of(cut, prompt=ordered, truncated=True).state is State.TRUNCATED


@pytest.mark.parametrize(
    "text",
    [WHOLE, f"{WHOLE}\n\n   \n", *(f"```{name}\n{WHOLE}\n```" for name in ("json", "JSON", ""))],
)
def test_an_object_that_was_complete_when_the_model_was_stopped_is_read(text: str) -> None:
    assert grade_of(text, truncated=True).rating == 4
    assert read_reply("self-rating", '{"grade": 3}  ', truncated=True, field="grade").rating == 3


@pytest.mark.parametrize("text", [f"{WHOLE} {{", f"{WHOLE}\nBut", "4", "[4]", '"4"'])
def test_other_truncated_replies_stay_truncated(text: str) -> None:
    assert grade_of(text, truncated=True).state is State.TRUNCATED


PROMPT = """
name = "mine"
title = "Mine"
grades = "question"
reading = "rating"
scale = { lowest = 0, highest = 1 }
cut = "context"
labels = ["0", "1"]
field = "mark"
reply = %s
user = "{question} {context}"
"""


def test_a_prompt_declares_the_fields_of_its_reply() -> None:
    one, other, none = (
        parse_prompt(PROMPT % fields)
        for fields in ('["reason", "mark"]', '["mark", "reason"]', "[]")
    )
    assert one.reply == ("reason", "mark")
    assert len({prompt_content_hash(prompt) for prompt in (one, other, none)}) == 3
    assert (one.scored_labels, none.scored_labels) == ((), ("0", "1"))


@pytest.mark.parametrize(
    "fields", ['["reason"]', '["mark", "mark"]', '["mark", "why"]', '["mark", "reason", "reason"]']
)
def test_other_fields_are_refused_with_what_to_write(fields: str) -> None:
    with pytest.raises(
        InputError, match=r"the fields of the reply are .*List 'mark' once, and reaso"
    ):
        parse_prompt(PROMPT % fields)


def test_what_the_model_quotes_is_stored_counted_exported_and_read_again(
    tmp_path: Path, exampp_command: Commands
) -> None:
    exam = exams.make(tmp_path)
    replies = [said("Air scatters", 5), said("never said", 4), said("", 0)]
    script = ScriptedGrader(lambda request: replies[len(request.passage) % 3], name="quoting")
    exam.grade(script, prompt="question-rating-evidence", model="quoting")
    (grader,) = exam.graders
    path = exam.path
    rows = exam.connection.execute("SELECT reply, rule, detail FROM grade ORDER BY 1").fetchall()
    rules = {(json.loads(reply)["evidence"], rule) for reply, rule, _ in rows}
    assert ("never said", "evidence not found") in rules
    before = [tuple(row) for row in rows]
    exam.reparse(grader=grader.name)
    again = exam.connection.execute("SELECT reply, rule, detail FROM grade ORDER BY 1").fetchall()
    assert [tuple(row) for row in again] == before
    exam.export(tmp_path / "graded.jsonl.gz")
    exam.close()
    ran = exampp_command.line(f"exampp status {path} --notes")
    assert "whose evidence is not in the passage" in " ".join(ran.out.split()), ran.out
    with exampp.Collection.create(tmp_path / "copy.exam") as copy:
        copy.import_files(tmp_path / "graded.jsonl.gz")
        details = copy.connection.execute("SELECT detail FROM grade WHERE rule LIKE 'evid%'")
        assert {json.loads(row[0])["evidence"] for row in details} == {"never said"}
