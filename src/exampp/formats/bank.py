"""Banks of the Autograding Workbench: JSON-lines, one line per query or subtopic.

The newer layout lists the items under `items`, the older one under `questions`; exampp writes the
newer one. Unknown keys of lines and items are stored in `extra`.

This module also reads the multiple-choice lessons from which EXAM++ builds its exams for TREC CAR
Y3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import BANK_KINDS, FirstLines, brief, check_weight, duplicate_error
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import (
    JSON_OBJECT,
    Json,
    expect,
    json_id,
    member,
    optional,
    read_json_file,
    spoken,
    without,
)
from exampp.formats.lines import OnError, decode_json, encode_json, parse_lines, placed, raise_error
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.several_banks import names_of_banks
from exampp.prompts.answers import key_text, spell_out
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import MODEL_KEYS, WORD_WEIGHTS

_LISTS = ("items", "questions")
_KEYS = {"subtopic_id": "facet_id", "subtopic_text": "facet_text"}
"""The Workbench calls subtopics facets."""


class _ItemRow(msgspec.Struct, rename=_KEYS):
    query_id: str | None = None
    subtopic_id: str | None = None
    question_id: str | None = None
    question_text: str | None = None
    nugget_id: str | None = None
    nugget_text: str | None = None
    gold_answers: list[str] | str | None = None
    weight: float | None = None


class _LineRow(msgspec.Struct, rename=_KEYS):
    query_id: str
    query_text: str | None = None
    subtopic_id: str | None = None
    subtopic_text: str | None = None
    items: list[_ItemRow] | None = None
    questions: list[_ItemRow] | None = None


_LINE = msgspec.json.Decoder(_LineRow)
_ITEM_KEYS = frozenset(_ItemRow.__struct_encode_fields__)
_LINE_KEYS = frozenset(_LineRow.__struct_encode_fields__)


def read(
    path: str | Path, on_error: OnError = raise_error, *, by_run: bool = False
) -> Iterator[BankEntry]:
    """Yield the lines of a bank in file order.

    An item without an id gets a hash of its content as id. Exact duplicates within a line count
    once.

    Source: Autograding Workbench, phase 1, and the files published with it.

    Raises:
        InputError: A line without a list of items, an item without text, with keys of both a
            question and a nugget or with another query than its line, a weight that is too large,
            or a duplicate query, subtopic or item id.
    """
    first_entry, first_item = FirstLines(), FirstLines()
    banks = names_of_banks(path, whole_queries=True, by_run=by_run)
    of_line = Keys(path, _LINE_KEYS | {"bank"}, stored=True)
    of_item = Keys(path, _ITEM_KEYS | {"importance", *MODEL_KEYS}, "items[].", stored=True)

    def parse(line: bytes, number: int) -> BankEntry:
        typed = decode_json(line, _LINE, path, number)
        value = decode_json(line, JSON_OBJECT, path, number)
        of_line.see(value, number)
        entry = replace(_entry(typed, value), bank=(bank := banks.get(number, "")))
        for row in (row for name in _LISTS for row in value.get(name) or ()):
            of_item.see(row, number)
        if earlier := first_entry.add((bank, entry.query_id, entry.subtopic_id), number):
            what = f"query {brief(entry.query_id)}"
            raise duplicate_error(what, earlier, path, number, "query_id")
        for item in entry.items:
            key = bank, item.query_id, item.kind, item.item_id
            if earlier := first_item.add(key, number):
                raise duplicate_error(f"item {brief(item.item_id)}", earlier, path, number, "items")
        return entry

    yield from parse_lines(path, on_error, parse)


def _entry(row: _LineRow, value: Json) -> BankEntry:
    if not row.query_id.strip():
        raise InputError("the query id is blank", field="query_id")
    lists = [name for name in _LISTS if value.get(name) is not None]
    if len(lists) != 1:
        fault = "both `items` and `questions`" if lists else "neither `items` nor `questions`"
        raise InputError(f"the line has {fault}", field=_LISTS[0])
    items: dict[tuple[str, str], tuple[int, Item]] = {}
    for index, (typed, fields) in enumerate(
        zip(getattr(row, lists[0]), value[lists[0]], strict=True)
    ):
        place = f"{lists[0]}[{index}]"
        try:
            item = _item(row, typed, fields)
        except InputError as error:
            error.field = ".".join(filter(None, (place, error.field)))
            raise
        earlier, known = items.setdefault((item.kind, item.item_id), (index, item))
        if item != known:
            raise InputError(
                f"item {brief(item.item_id)} differs from {lists[0]}[{earlier}], which has "
                "the same id",
                field=place,
                hint="Give each item its own id",
            )
    extra = without(value, *_LINE_KEYS, "bank")
    if extra.get("test_collection") == "":
        # written if no collection is named, because the Workbench requires the key
        del extra["test_collection"]
    unique = tuple(item for _, item in items.values())
    texts = row.query_text or "", row.subtopic_id, row.subtopic_text or ""
    return BankEntry(row.query_id, unique, *texts, extra)


def _item(line: _LineRow, row: _ItemRow, value: Json) -> Item:
    kind = _kind(row)
    text, own_id = getattr(row, f"{kind}_text"), getattr(row, f"{kind}_id")
    if text is None or not text.strip():
        raise InputError(f"the {kind} has no text", field=f"{kind}_text")
    _check_same("query", "query_id", row.query_id, line.query_id)
    _check_same("subtopic", "facet_id", row.subtopic_id, line.subtopic_id)
    if own_id is not None and not own_id.strip():
        raise InputError("the id is blank", field=f"{kind}_id")
    subtopic_id = row.subtopic_id if row.subtopic_id is not None else line.subtopic_id
    answers = [row.gold_answers] if isinstance(row.gold_answers, str) else row.gold_answers
    extra = without(value, *_ITEM_KEYS)
    return Item(
        own_id or item_id(line.query_id, text, subtopic_id),
        line.query_id,
        text,
        kind,
        subtopic_id,
        tuple(answers or ()),
        _usual_weight(extra) if row.weight is None else check_weight(row.weight),
        extra,
    )


def _kind(row: _ItemRow) -> str:
    kinds = [
        kind
        for kind in BANK_KINDS
        if getattr(row, f"{kind}_id") is not None or getattr(row, f"{kind}_text") is not None
    ]
    if len(kinds) > 1:
        raise InputError("the item has keys of both a question and a nugget")
    if not kinds:
        raise InputError("the item has neither question_text nor nugget_text")
    return kinds[0]


def _check_same(what: str, field: str, own: str | None, of_line: str | None) -> None:
    if own is not None and of_line is not None and own != of_line:
        raise InputError(
            f"the item belongs to {what} {brief(own)}, its line to {what} {brief(of_line)}",
            field=field,
        )


def write(path: str | Path, entries: Iterable[BankEntry], test_collection: str = "") -> None:
    """Write a bank in the newer layout.

    Args:
        path: The file.
        entries: The lines of the bank.
        test_collection: Collection name for entries that have none (the Workbench requires one).

    Raises:
        InputError: An item is neither question nor nugget, or belongs to another query.
    """
    with writing(path) as stream:
        for entry in entries:
            stream.write(encode_json(_line(entry, test_collection, path), path))


def _line(entry: BankEntry, test_collection: str, path: str | Path) -> Json:
    for item in entry.items:
        is_here = item.query_id == entry.query_id and not (
            item.subtopic_id and entry.subtopic_id and item.subtopic_id != entry.subtopic_id
        )
        if item.kind not in BANK_KINDS or not is_here:
            raise InputError(
                f"item {brief(item.item_id)} ({item.kind} of query {brief(item.query_id)}) "
                f"does not belong to the bank of query {brief(entry.query_id)}",
                file=path,
            )
    if len({(item.kind, item.item_id) for item in entry.items}) != len(entry.items):
        raise InputError(
            f"the bank of query {brief(entry.query_id)} has a duplicate item id", file=path
        )
    subtopic = {"facet_id": entry.subtopic_id, "facet_text": entry.subtopic_text or None}
    return {
        "query_id": entry.query_id,
        **{key: text for key, text in subtopic.items() if text is not None},
        "test_collection": test_collection,
        "query_text": entry.query_text,
        **without(entry.extra, *_LINE_KEYS),
        "items": [_item_line(item) for item in entry.items],
    }


def _item_line(item: Item) -> Json:
    line: Json = {"query_id": item.query_id}
    if item.subtopic_id is not None:
        line["facet_id"] = item.subtopic_id
    line |= {f"{item.kind}_id": item.item_id, f"{item.kind}_text": item.text}
    if item.answers:
        line["gold_answers"] = list(item.answers)
    if not item.weight == _usual_weight(item.extra) == 1:
        line["weight"] = item.weight
    return line | without(item.extra, *_ITEM_KEYS)


def _usual_weight(extra: Mapping[str, Any]) -> float:
    return WORD_WEIGHTS.get(str(extra.get("importance")).strip().lower(), 1.0)


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error, by_run=how.by_run),
    write,
    name="bank",
    shapes=(Shape((("query_id",), ("items", "questions"))),),
    looks=(
        "JSON-lines, one query or subtopic per line, with `items` (newer) or `questions` (older)"
    ),
    source="Autograding Workbench",
    lossless="yes; the older layout is written as the newer one",
)


# ---- textbook question answering -----------------------------------------------------------------


TQA_PREFIX = "tqa2:"
"""Prefix of lesson ids in TREC CAR Y3."""


def read_tqa(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield one entry per lesson that has questions, in file order.

    `Item.extra` has `choices` (letter to text), `correct` (the letter) and `question_type`. With a
    skipping `on_error`, a bad question is skipped alone.

    Raises:
        InputError: A question without text, a key that is not among the choices, or a duplicate id.
    """
    lessons = read_json_file(path)
    if not isinstance(lessons, list):
        raise InputError("must be a list of lessons", file=path)
    seen: set[str] = set()
    for number, value in enumerate(lessons):
        try:
            lesson = expect(value, dict, f"[{number}]")
            yield from _lesson(lesson, f"[{number}]", seen, placed(on_error, path))
        except InputError as error:
            on_error(error.at(path))


def _lesson(lesson: Json, place: str, seen: set[str], on_error: OnError) -> Iterator[BankEntry]:
    lesson_id = json_id(lesson, "globalID", place)
    if lesson_id in seen:
        raise InputError(f"lesson {brief(lesson_id)} occurs twice", field=f"{place}.globalID")
    seen.add(lesson_id)
    query_id = lesson_id if lesson_id.startswith(TQA_PREFIX) else TQA_PREFIX + lesson_id
    questions = member(
        member(lesson, "questions", dict, place), "nonDiagramQuestions", dict, f"{place}.questions"
    )
    items = []
    for question_id, question in questions.items():
        try:
            items.append(_tqa_item(query_id, question_id, expect(question, dict, "")))
        except InputError as error:
            error.what = f"lesson {lesson_id}, question {question_id}: {error.what}"
            error.field = ".".join(filter(None, (place, question_id, error.field)))
            on_error(error)
    if items:
        name = optional(lesson, "lessonName", str, place) or ""
        yield BankEntry(query_id, tuple(items), name)


def _tqa_item(query_id: str, question_id: str, question: Json) -> Item:
    if not question_id.strip():
        raise InputError("the question id is blank")
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
    """Return the letter of the key: a letter, with or without punctuation, or a choice's text."""
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


TQA = Format(
    "bank",
    lambda path, how: read_tqa(path, how.on_error),
    name="tqa",
    shapes=(Shape((("adjunctTopics", "globalID", "lessonName", "metaLessonID"),)),),
    looks="lessons of Textbook Question Answering, JSON",
    source="TQA",
)
