"""Nuggets of castorini's nuggetizer: JSON-lines, one query a line, each nugget vital or okay.

`{"query": "...", "qid": "...", "nuggets": [{"text": "...", "importance": "vital"}]}`. The weights
are those of `importance`; a nugget without an importance is vital, as nuggetizer takes it.
Written nuggets carry what nuggetizer does not read (`item_id`, `subtopic_id`, `kind`,
`gold_answers`) only where reading would not supply it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import brief, weight_of
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import (
    Json,
    expect,
    json_id,
    member,
    optional,
    spoken,
    without,
)
from exampp.formats.lines import Key, OnError, decode_json, encode_json, parse_lines, raise_error
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import importance_of

_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)
_QUERY_KEYS = ("query", "qid", "nuggets")
_NUGGET_KEYS = ("text", "item_id", "subtopic_id", "kind", "gold_answers")
_KINDS = ("nugget", "question")


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield the bank in file order, one entry per query and subtopic.

    `extra` keeps what else a line says of its query or a nugget of itself (importance, reasoning
    ...). InputError for a line without qid or nuggets, a nugget without text or with another
    importance than vital and okay (nuggetizer writes `failed` where it could not tell), and a
    query or nugget that occurs twice; when skipping, such a nugget is left out alone.
    """
    of_line = Keys(path, _QUERY_KEYS, stored=True)
    of_nugget = Keys(path, (*_NUGGET_KEYS, "importance"), "nuggets[].", stored=True)

    def parse(line: bytes, number: int) -> tuple[str, str, list[Item], Json]:
        value = decode_json(line, _OBJECT, path, number)
        read = _QUERY_KEYS if value.get("query") else (*_QUERY_KEYS, "text")
        of_line.see(value, number, read)
        query_id, query_text = query_of(value)
        for nugget in value["nuggets"] if isinstance(value.get("nuggets"), list) else ():
            fields = nugget if isinstance(nugget, dict) else {}
            of_nugget.see(fields, number)
            if "assignment" in fields:
                raise InputError(
                    "the nuggets have assignments, and the line has no text that they are of",
                    field="nuggets[].assignment",
                    mend="Add answer_text and run_id, or candidate_text and docid",
                )
        items = items_of(query_id, value, lambda error: on_error(error.at(path, number)))
        return query_id, query_text, items, without(value, *read)

    key = Key(lambda one: one[0], lambda one: f"query {brief(one[0])}", "qid")
    for found in parse_lines(path, on_error, parse, key):
        yield from entries_of(*found)


def query_of(value: Json) -> tuple[str, str]:
    """Return (id, text) of a line's query, which may be an object of its own."""
    if isinstance(value.get("query"), dict):
        query = value["query"]
        return json_id(query, "qid", "query"), optional(query, "text", str, "query") or ""
    text = optional(value, "query", str) or optional(value, "text", str)
    return json_id(value, "qid"), text or ""


def items_of(
    query_id: str,
    value: Json,
    on_error: OnError,
    weigh: Callable[[str, str], float] = weight_of,
) -> list[Item]:
    """Return the nuggets of a line; a bad one goes to `on_error`.

    `weigh` gives the weight of an importance in a field, or raises InputError.
    """
    items: dict[tuple[str, str], Item] = {}
    for number, nugget in enumerate(member(value, "nuggets", list)):
        place = f"nuggets[{number}]"
        try:
            item = _item(query_id, expect(nugget, dict, place), place, weigh)
            if (item.kind, item.item_id) in items:
                raise InputError(
                    f"nugget {brief(item.text)} of query {brief(query_id)} occurs twice",
                    field=place,
                    mend="Remove one of the two",
                )
        except InputError as error:
            on_error(error)
        else:
            items[item.kind, item.item_id] = item
    return list(items.values())


def _item(query_id: str, nugget: Json, place: str, weigh: Callable[[str, str], float]) -> Item:
    text = spoken(nugget, "text", place)
    subtopic_id = optional(nugget, "subtopic_id", str, place) or None
    kind = optional(nugget, "kind", str, place) or "nugget"
    if kind not in _KINDS:
        raise InputError(f"the kind {brief(kind)} is unknown", field=f"{place}.kind")
    answers = optional(nugget, "gold_answers", list, place) or []
    importance = optional(nugget, "importance", str, place)
    return Item(
        optional(nugget, "item_id", str, place) or item_id(query_id, text, subtopic_id),
        query_id,
        text,
        kind,
        subtopic_id,
        tuple(expect(answer, str, f"{place}.gold_answers") for answer in answers),
        1.0 if importance is None else weigh(importance, f"{place}.importance"),
        without(nugget, *_NUGGET_KEYS),
    )


def entries_of(query_id: str, text: str, items: list[Item], extra: Json) -> Iterator[BankEntry]:
    """Yield the entries of a query, one for each of its subtopics; the first has the `extra`."""
    by_subtopic: dict[str | None, list[Item]] = {} if items else {None: []}
    for item in items:
        by_subtopic.setdefault(item.subtopic_id, []).append(item)
    for number, (subtopic_id, group) in enumerate(by_subtopic.items()):
        yield BankEntry(query_id, tuple(group), text, subtopic_id, extra={} if number else extra)


def write(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write a bank, the entries of one query as one line.

    InputError for a weight that is neither 1 (vital) nor 0.5 (okay).
    """
    lines: dict[str, Json] = {}
    for entry in entries:
        head = {"query": entry.query_text, "qid": entry.query_id, "nuggets": []}
        line = lines.setdefault(entry.query_id, head)
        line["query"] = line["query"] or entry.query_text
        line["nuggets"] += [_nugget(item, path) for item in entry.items]
        for key, value in without(dict(entry.extra), *_QUERY_KEYS).items():
            line.setdefault(key, value)
    with writing(path) as stream:
        for line in lines.values():
            stream.write(encode_json(line, path))


def _nugget(item: Item, path: str | Path) -> Json:
    word = importance_of(item.weight)
    if word is None:
        raise InputError(
            f"the weight {item.weight:g} of item {brief(item.item_id)} is neither vital (1) nor "
            "okay (0.5), which is all that a nuggetizer file can say",
            file=path,
            mend="Change the weight, or write the bank as JSON-lines or CSV",
        )
    own: Json = {"text": item.text, "importance": word}
    if item.item_id != item_id(item.query_id, item.text, item.subtopic_id):
        own["item_id"] = item.item_id
    if item.subtopic_id:
        own["subtopic_id"] = item.subtopic_id
    if item.kind != "nugget":
        own["kind"] = item.kind
    if item.answers:
        own["gold_answers"] = list(item.answers)
    return own | without(dict(item.extra), "importance", *_NUGGET_KEYS)


NUGGETS = Shape((("nuggets",), ("qid", "query")))
"""Objects with nuggets, with or without assignments."""
ASSIGNMENT_KEYS = frozenset({"answer_text", "candidate_text", "run_id"})
"""A line with one of them holds assignments."""

FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    write,
    name="nuggetizer",
    shapes=(NUGGETS._replace(without=ASSIGNMENT_KEYS),),
    looks="JSON-lines of `qid`, `query` and `nuggets` (`text`, `importance`)",
    source="castorini's nuggetizer",
    lossless="yes",
)
