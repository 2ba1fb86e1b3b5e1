"""Banks of one item a line: JSON objects with the id of a query and a question or nugget.

Source: the questions of the workbench's own loaders (`query_id`, `query_text`, `qid`, `question`,
`choices`, `correctKey`, `correct`, `facet_id`), where `qid` is the question's id. Where a line has
no `query_id`, `qid` is the query's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import brief, check_weight, nearly, number
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import Json, json_id, optional, without
from exampp.formats.lines import Key, OnError, decode_json, encode_json, parse_lines, raise_error
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import MODEL_KEYS, WEIGHTS

KINDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "question_text"),
    "nugget": ("nugget", "nugget_text"),
}
QUERY_KEYS = ("query_id", "topic_id", "narrative_id", "request_id", "qid")
_ID_KEYS = ("question_id", "nugget_id", "item_id", "id")
_QUERY_TEXT_KEYS = ("query_text", "query")
_SUBTOPIC_KEYS = ("facet_id", "subtopic_id")
_SUBTOPIC_TEXT_KEYS = ("facet_text", "subtopic_text")
KEY_KEYS = ("gold_answers", "answers", "correct")
"""Keys of known answers: no system's response has one of these."""
_ANSWER_KEYS = (*KEY_KEYS, "answer")
TEXT_KEYS = tuple(key for keys in KINDS.values() for key in keys)
_KNOWN = frozenset(
    (
        *TEXT_KEYS,
        *QUERY_KEYS,
        *_ID_KEYS,
        *_QUERY_TEXT_KEYS,
        *_SUBTOPIC_KEYS,
        *_SUBTOPIC_TEXT_KEYS,
        *_ANSWER_KEYS,
        "weight",
    )
)
_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield one entry per query, or per subtopic of one, in the order of their first items.

    Other keys of a line stay in `Item.extra`. InputError for an item without a query, without a
    text or with two, with a weight that is negative, and for one that its query has twice.
    """
    keys = Keys(path, _KNOWN | {"importance", *MODEL_KEYS}, stored=True)
    texts: dict[tuple[str, str | None], tuple[str, str]] = {}

    def parse(line: bytes, number: int) -> Item:
        row = decode_json(line, _OBJECT, path, number)
        keys.see(row, number)
        item = _item(row)
        place = item.query_id, item.subtopic_id
        query_text, subtopic_text = texts.get(place, ("", ""))
        texts[place] = (
            _same(query_text, row, _QUERY_TEXT_KEYS),
            _same(subtopic_text, row, _SUBTOPIC_TEXT_KEYS),
        )
        return item

    items: dict[tuple[str, str | None], list[Item]] = {}
    for item in parse_lines(path, on_error, parse, ITEM_KEY):
        items.setdefault((item.query_id, item.subtopic_id), []).append(item)
    for (query_id, subtopic_id), of_entry in items.items():
        query_text, subtopic_text = texts[query_id, subtopic_id]
        yield BankEntry(query_id, tuple(of_entry), query_text, subtopic_id, subtopic_text)


ITEM_KEY = Key(
    lambda item: (item.query_id, item.kind, item.item_id),
    lambda item: f"item {brief(item.item_id)}",
)


def _first(row: Json, keys: Iterable[str]) -> str | None:
    return next((key for key in keys if row.get(key) is not None), None)


def _same(known: str, row: Json, keys: tuple[str, ...]) -> str:
    key = _first(row, keys)
    text = (optional(row, key, str) or "") if key else ""
    if known and text and known != text:
        raise InputError(
            "differs from the one that an earlier line gives",
            field=key or "",
            hint="Give it once, or the same every time",
        )
    return known or text


def _item(row: Json) -> Item:
    key = _first(row, QUERY_KEYS)
    if key is None:
        raise _missing(f"no query id (any of {', '.join(QUERY_KEYS)})", QUERY_KEYS[0], row)
    query_id = json_id(row, key)
    found = [(kind, name) for kind, names in KINDS.items() if (name := _first(row, names))]
    if not found:
        raise _missing(f"no {' or '.join(KINDS)}", "question", row)
    if len(found) > 1:
        raise InputError("the item has both a question and a nugget", field=found[1][1])
    ((kind, name),) = found
    text = optional(row, name, str) or ""
    if not text.strip():
        raise InputError(f"the {kind} has no text", field=name)
    subtopic = _first(row, _SUBTOPIC_KEYS)
    subtopic_id = json_id(row, subtopic) if subtopic else None
    own = _first(row, _ID_KEYS if key == "qid" else (*_ID_KEYS, "qid"))
    usual = WEIGHTS.get(str(row.get("importance")).strip().lower(), 1.0)
    weight = check_weight(number(usual if row.get("weight") is None else row["weight"], "weight"))
    return Item(
        json_id(row, own) if own else item_id(query_id, text, subtopic_id),
        query_id,
        text,
        kind,
        subtopic_id,
        _answers(row),
        weight,
        without({key: value for key, value in row.items() if value is not None}, *_KNOWN),
    )


def _missing(what: str, field: str, row: Json) -> InputError:
    slips = nearly(row, _KNOWN)
    return InputError(what, field=field, hint=f"{slips}: correct it" if slips else "")


def _answers(row: Json) -> tuple[str, ...]:
    key = _first(row, _ANSWER_KEYS)
    value: Any = row[key] if key else []
    answers = [value] if isinstance(value, str) else value
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        raise InputError("must be a text or a list of texts", field=key or "")
    return tuple(dict.fromkeys(one for one in answers if one.strip()))


def write(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write every item as a line of its own, in the layout of the workbench's loaders.

    One known answer stands under `correct`, several under `gold_answers`.
    """
    with writing(path) as stream:
        for entry in entries:
            for item in entry.items:
                stream.write(encode_json(_row(entry, item), path))


def _row(entry: BankEntry, item: Item) -> Json:
    row: Json = {"query_id": item.query_id, "query_text": entry.query_text}
    row |= {"qid": item.item_id, item.kind: item.text}
    parts = {
        "facet_id": item.subtopic_id,
        "facet_text": entry.subtopic_text,
        "correct": item.answers[0] if len(item.answers) == 1 else None,
        "gold_answers": list(item.answers) if len(item.answers) > 1 else None,
    }
    row |= {key: value for key, value in parts.items() if value}
    row |= {} if item.weight == 1 else {"weight": item.weight or 0}
    return row | without(dict(item.extra), *_KNOWN)


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    write,
    name="questions",
    shapes=(
        Shape(
            (TEXT_KEYS, QUERY_KEYS),
            frozenset({"items", "questions", "nuggets"})
            | {"system", "run_id", "run_tag", "method"},
        ),
    ),
    file_name="question|nugget|bank",
    looks="JSON-lines, an item each: `query_id`, `query_text`, `qid`, `question`",
    source="Autograding Workbench",
    lossless="yes",
)
