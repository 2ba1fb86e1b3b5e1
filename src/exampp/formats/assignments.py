"""Assignments of castorini's nuggetizer: which nuggets an answer or a passage supports.

A line is one of nuggetizer's nuggets files with an `assignment` of every nugget: support,
partial_support or not_support. It assigns them to the answer of a system (`answer_text`, `run_id`)
or to a retrieved passage (`candidate_text`, `docid`), which no system ranks. Assignments are grades
of one grader, on a separate scale: 2, 1 and 0, so that partial support is neither lost nor full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import brief, weight_or_one
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import Json, json_id, spoken, without
from exampp.formats.lines import Key, OnError, decode_json, encode_json, parse_lines, raise_error
from exampp.formats.nuggetizer import ASSIGNMENT_KEYS, NUGGETS, items_of, query_of
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys, add_warning
from exampp.records import Grade, GraderIdentity, Item, State
from exampp.records.items import WEIGHTS, importance, importance_of

RATINGS = {"not_support": 0, "partial_support": 1, "support": 2}
_LABELS = {rating: label for label, rating in RATINGS.items()}
GRADER = GraderIdentity("nuggetizer", "assignment", "nugget", 0, 2, {"format": "nuggetizer"})
"""Whose grades the assignments are; the files do not name the model."""
_OF_LINE = (*ASSIGNMENT_KEYS, "docid", "query", "text", "qid", "nuggets", "response_length")
_LISTED = 3
_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)


class Assigned(NamedTuple):
    """A text, the nuggets of the query, and which of them the text supports.

    The text is the answer of a system, or a passage with an id that no system (None) ranks.
    """

    query_id: str
    query_text: str
    system: str | None
    answer: str
    items: tuple[Item, ...]
    grades: tuple[Grade, ...]
    response_length: Any = None
    passage_id: str = ""


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[Assigned]:
    """Yield the lines of a file in file order.

    A label that is none of the three, as nuggetizer leaves it where it could not read a reply, is
    an unparsed grade that keeps it; a nugget without an assignment has no grade. An importance that
    is neither vital nor okay, left in the same way, stays in the nugget's `extra`. InputError for a
    line without a query, a text, a run or passage id, or nuggets, and for two of one run or passage
    and query.
    """
    keys = Keys(path, _OF_LINE)
    strange: Counter[str] = Counter()

    def parse(line: bytes, number: int) -> Assigned:
        value = decode_json(line, _OBJECT, path, number)
        keys.see(value, number)
        query_id, query_text = query_of(value)
        system, passage_id, answer = _assigned_text(value)
        found = items_of(
            query_id, value, lambda error: on_error(error.at(path, number)), weight_or_one
        )
        strange.update(filter(None, map(_strange_importance, found)))
        grades = tuple(_grade(item) for item in found if "assignment" in item.extra)
        items = tuple(replace(i, extra=without(dict(i.extra), "assignment")) for i in found)
        length = value.get("response_length")
        return Assigned(query_id, query_text, system, answer, items, grades, length, passage_id)

    key = Key(lambda one: (one.query_id, one.system, one.passage_id), _name)
    yield from parse_lines(path, on_error, parse, key)
    if strange:
        words = ", ".join(f"{brief(word, 30)} ({n})" for word, n in strange.most_common(_LISTED))
        add_warning(
            path,
            None,
            f"{strange.total()} importances are neither vital nor okay, such as {words}: these "
            "nuggets count in NuggetAll, but not in NuggetVital and NuggetWeighted",
        )


def _name(one: Assigned) -> str:
    named = f"run {brief(one.system)}" if one.system else f"passage {brief(one.passage_id)}"
    return f"{named} with query {brief(one.query_id)}"


def _assigned_text(value: Json) -> tuple[str | None, str, str]:
    """Return (system or None, passage id or empty, text) that a line assigns nuggets to."""
    if "candidate_text" in value:
        return None, json_id(value, "docid"), spoken(value, "candidate_text")
    return json_id(value, "run_id"), "", spoken(value, "answer_text")


def _strange_importance(item: Item) -> str | None:
    """Return a word that nuggetizer left as an importance and that is none.

    None where it is one.
    """
    word = importance(item.extra, item.weight)
    return None if word is None or word in WEIGHTS else word or "(empty)"


def _grade(item: Item) -> Grade:
    label = item.extra["assignment"]
    rating = RATINGS.get(label.strip().lower()) if isinstance(label, str) else None
    if rating is not None:
        return Grade(item.item_id, State.GRADED, rating, rule="imported")
    detail = {"reason": f"the assignment is {brief(label)}", "raw": label}
    return Grade(item.item_id, State.UNPARSED, rule="imported", detail=detail)


def write(path: str | Path, found: Iterable[Assigned]) -> None:
    """Write assignments, one line for every run and query.

    InputError for an item that is no nugget, or whose weight is neither vital (1) nor okay (0.5).
    """
    with writing(path) as stream:
        for one in found:
            grades = {grade.item_id: grade for grade in one.grades}
            length = one.response_length
            row = {
                "query": one.query_text,
                "qid": one.query_id,
                "answer_text": one.answer,
                "response_length": len(one.answer.split()) if length is None else length,
                "run_id": one.system,
                "nuggets": [_nugget(item, grades, path) for item in one.items],
            }
            stream.write(encode_json(row, path))


def _nugget(item: Item, grades: Mapping[str, Grade], path: str | Path) -> Json:
    said = importance(item.extra, item.weight)
    word = said if said is not None else importance_of(item.weight)
    if word is None or item.kind != "nugget":
        raise InputError(
            f"item {brief(item.item_id)} ({item.kind} of weight {item.weight:g}) is no nugget that "
            "is vital (1) or okay (0.5)",
            file=path,
            mend="Name another bank with --bank, or write the grades as a workbench file",
        )
    row: Json = {"text": item.text, "importance": word} | without(dict(item.extra), "importance")
    if grade := grades.get(item.item_id):
        kept = (grade.detail or {}).get("raw", "failed")
        row["assignment"] = kept if grade.rating is None else _LABELS[grade.rating]
    return row


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    write,
    name="assignments",
    shapes=(Shape((*NUGGETS.sets, ASSIGNMENT_KEYS)),),
    record=Assigned,
    looks="the same with `run_id`, `answer_text` and an `assignment` of every nugget; a bank, "
    "passages, rankings and grades",
    source="castorini's nuggetizer",
    lossless="yes",
)
