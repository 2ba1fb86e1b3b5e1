"""Textbook Question Answering (TQA): lessons with multiple choice questions, as a bank.

The file is a JSON list of lessons. A lesson becomes a query, `tqa2:` and its id, as TREC CAR Y3
names them; its questions without a diagram become items, with the text of the correct choice as
the answer key. The choices stay beside the question (`extra`), never in its text: a passage that
repeats a choice would otherwise seem to answer.

Source: Kembhavi et al., Are You Smarter Than a Sixth Grader? (CVPR 2017); EXAM++, section 4.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import (
    Json,
    expect,
    json_id,
    member,
    optional,
    read_json_file,
    spoken,
)
from exampp.formats.lines import OnError, placed, raise_error
from exampp.prompts.answers import key_text, spell_out
from exampp.records import BankEntry, Item

PREFIX = "tqa2:"
"""What TREC CAR Y3 puts before the id of a lesson."""


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield one entry per lesson that has questions, in file order.

    `Item.extra` holds `choices` (letter to text), `correct` (the letter) and `question_type`.
    InputError, with lesson and question, for a question without text, a key that is not among the
    choices, and an id that occurs twice; with `on_error` skipping, only that question is left out.
    """
    lessons = read_json_file(path)
    if not isinstance(lessons, list):
        raise InputError("must be a list of lessons", file=path)
    seen: set[str] = set()
    for number, value in enumerate(lessons):
        try:
            lesson = expect(value, dict, f"[{number}]")
            yield from _entry(lesson, f"[{number}]", seen, placed(on_error, path))
        except InputError as error:
            on_error(error.at(path))


def _entry(lesson: Json, place: str, seen: set[str], on_error: OnError) -> Iterator[BankEntry]:
    lesson_id = json_id(lesson, "globalID", place)
    if lesson_id in seen:
        raise InputError(f"lesson {brief(lesson_id)} occurs twice", field=f"{place}.globalID")
    seen.add(lesson_id)
    query_id = lesson_id if lesson_id.startswith(PREFIX) else PREFIX + lesson_id
    questions = member(
        member(lesson, "questions", dict, place), "nonDiagramQuestions", dict, f"{place}.questions"
    )
    items = []
    for question_id, question in questions.items():
        try:
            items.append(_item(query_id, question_id, expect(question, dict, "")))
        except InputError as error:
            error.what = f"lesson {lesson_id}, question {question_id}: {error.what}"
            error.field = ".".join(filter(None, (place, question_id, error.field)))
            on_error(error)
    if items:
        name = optional(lesson, "lessonName", str, place) or ""
        yield BankEntry(query_id, tuple(items), name)


def _item(query_id: str, question_id: str, question: Json) -> Item:
    if not question_id.strip():
        raise InputError("the id of a question is blank")
    text = spoken(member(question, "beingAsked", dict), "processedText", "beingAsked")
    choices = {
        letter: spoken(expect(choice, dict, f"answerChoices.{letter}"), "processedText", letter)
        for letter, choice in (optional(question, "answerChoices", dict) or {}).items()
    }
    answer = member(question, "correctAnswer", dict)
    letter = _letter(spoken(answer, "processedText", "correctAnswer"), choices)
    try:
        key = key_text(letter, choices)
    except InputError as error:
        raise InputError(error.what, field="correctAnswer", hint=error.hint) from None
    extra: Json = {"choices": choices, "correct": letter}
    if kind := optional(question, "questionType", str):
        extra["question_type"] = kind
    return Item(question_id, query_id, text, answers=(key,), extra=extra)


def _letter(key: str, choices: Json) -> str:
    """Return the letter that the key means.

    As it stands, without its marks, or by the choice's text.
    """
    bare = key.strip().rstrip(".)").lower()
    if key in choices or bare in choices:
        return key if key in choices else bare
    texts = list(choices.values())
    same = [
        letter
        for letter, text in choices.items()
        if text.strip().lower() == bare or spell_out(text, texts) == key
    ]
    return same[0] if len(same) == 1 else key


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    name="tqa",
    shapes=(Shape((("adjunctTopics", "globalID", "lessonName", "metaLessonID"),)),),
    looks="lessons of Textbook Question Answering, JSON",
    source="TQA",
)
