"""Banks of the Autograding Workbench: JSON-lines, one per query or per subtopic of one.

The newer layout lists the items under `items`, the older under `questions`. Written lines say
what was read: unknown keys stay in `extra` under their own names, and where we would write a known
key in another way (null or left out, the older layout, an item repeated word for word), the
difference is kept in `extra` under `FORM`. It is honoured as long as the record still says the
same, so that an edited record is written as it now is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, brief, check_weight, duplicate_error
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import difference, restored, without
from exampp.formats.lines import OnError, decode_json, encode_json, parse_lines, raise_error
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import MODEL_KEYS, WEIGHTS

FORM = "exampp:form"
_KINDS = ("question", "nugget")
_LISTS = ("items", "questions")

Json = dict[str, Any]
T = TypeVar("T")


_KEYS = {"subtopic_id": "facet_id", "subtopic_text": "facet_text"}
"""The workbench calls subtopics facets."""


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


_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)
_ITEM_KEYS = frozenset(_ItemRow.__struct_encode_fields__)
_LINE_KEYS = frozenset(_LineRow.__struct_encode_fields__)


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield the lines of a bank in file order.

    An item without an id gets the one that its content has. An item that its line repeats word for
    word counts once. InputError for a line without a list of items, an item without text, with keys
    of both a question and a nugget or of another query than its line, a negative weight, and for a
    query (or subtopic), or an item id of one query, that occurs twice.

    Source: Autograding Workbench, phase 1, and the files published with it.
    """
    first_entry, first_item = FirstLines(), FirstLines()
    of_line = Keys(path, _LINE_KEYS, stored=True)
    of_item = Keys(path, _ITEM_KEYS | {"importance", *MODEL_KEYS}, "items[].", stored=True)

    def parse(line: bytes, number: int) -> BankEntry:
        value = decode_json(line, _OBJECT, path, number)
        entry = _entry(value)
        of_line.see(value, number)
        for row in (row for name in _LISTS for row in value.get(name) or ()):
            of_item.see(row, number)
        if earlier := first_entry.add((entry.query_id, entry.subtopic_id), number):
            subtopic = f" and subtopic {brief(entry.subtopic_id)}" if entry.subtopic_id else ""
            raise duplicate_error(
                f"query {brief(entry.query_id)}{subtopic}", earlier, path, number, "query_id"
            )
        for item in entry.items:
            name = item.query_id, item.kind, item.item_id
            if earlier := first_item.add(name, number):
                raise duplicate_error(f"item {brief(item.item_id)}", earlier, path, number, "items")
        return entry

    yield from parse_lines(path, on_error, parse)


def _converted(value: Json, kind: type[T]) -> T:
    if FORM in value:
        raise InputError(f"the key `{FORM}` is reserved", hint="Rename it")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `")
        raise InputError(what, field=place.rstrip("`").removeprefix("$").lstrip(".")) from None


def _entry(value: Json) -> BankEntry:
    entry = _head(value)
    listed = [name for name in _LISTS if value.get(name) is not None]
    if len(listed) != 1:
        fault = "both `items` and `questions`" if listed else "neither `items` nor `questions`"
        raise InputError(f"the line has {fault}", field=_LISTS[0])
    name = listed[0]
    items = _items(entry, value[name], name)
    form: Json = {}
    if line := difference(_written_head(entry, ""), without(value, name)):
        form["line"] = line
    if name != _LISTS[0]:
        form["list"] = name
    order = [item.item_id for item in items]
    unique = {(item.kind, item.item_id): item for item in items}
    if len(order) != len(unique):
        form["order"] = order
    extra = {**entry.extra, FORM: form} if form else entry.extra
    return replace(entry, items=tuple(unique.values()), extra=extra)


def _head(value: Json) -> BankEntry:
    """What a line says, leaving out its items."""
    row = _converted(value, _LineRow)
    if not row.query_id.strip():
        raise InputError("the query id is blank", field="query_id")
    return BankEntry(
        row.query_id,
        (),
        row.query_text or "",
        row.subtopic_id,
        row.subtopic_text or "",
        without(value, *_LINE_KEYS),
    )


def _items(entry: BankEntry, values: list[Json], name: str) -> list[Item]:
    items: list[Item] = []
    first: dict[tuple[str, str], int] = {}
    for index, value in enumerate(values):
        try:
            item = _item_with_form(entry, value)
        except InputError as error:
            error.field = ".".join(filter(None, (f"{name}[{index}]", error.field)))
            raise
        items.append(item)
        earlier = first.setdefault((item.kind, item.item_id), index)
        if item != items[earlier]:
            raise InputError(
                f"item {brief(item.item_id)} differs from the one of the same id at "
                f"{name}[{earlier}] of this line",
                field=f"{name}[{index}]",
                hint="Give each its own id",
            )
    return items


def _item_with_form(entry: BankEntry, value: Json) -> Item:
    item = _item(entry, value)
    form = difference(_written_item(item), value)
    return replace(item, extra={**item.extra, FORM: form}) if form else item


def _item(entry: BankEntry, value: Json) -> Item:
    row = _converted(value, _ItemRow)
    kind = _kind(row)
    text = getattr(row, f"{kind}_text")
    if text is None or not text.strip():
        raise InputError(f"the {kind} has no text", field=f"{kind}_text")
    _belongs("query", "query_id", row.query_id, entry.query_id)
    _belongs("subtopic", "facet_id", row.subtopic_id, entry.subtopic_id)
    if row.weight is not None:
        check_weight(row.weight)
    subtopic_id = row.subtopic_id if row.subtopic_id is not None else entry.subtopic_id
    answers = [row.gold_answers] if isinstance(row.gold_answers, str) else row.gold_answers
    own_id, extra = getattr(row, f"{kind}_id"), without(value, *_ITEM_KEYS)
    usual = WEIGHTS.get(str(extra.get("importance")).strip().lower(), 1.0)
    if own_id is not None and not own_id.strip():
        raise InputError("the id is blank", field=f"{kind}_id")
    return Item(
        own_id or item_id(entry.query_id, text, subtopic_id),
        entry.query_id,
        text,
        kind,
        subtopic_id,
        tuple(answers or ()),
        usual if row.weight is None else row.weight,
        extra,
    )


def _kind(row: _ItemRow) -> str:
    kinds = [
        kind
        for kind in _KINDS
        if getattr(row, f"{kind}_id") is not None or getattr(row, f"{kind}_text") is not None
    ]
    if len(kinds) > 1:
        raise InputError("the item has keys of both a question and a nugget")
    if not kinds:
        raise InputError("the item has neither question_text nor nugget_text")
    return kinds[0]


def _belongs(what: str, field: str, own: str | None, of_line: str | None) -> None:
    if own is not None and of_line is not None and own != of_line:
        raise InputError(
            f"the item is of {what} {brief(own)}, its line of {what} {brief(of_line)}",
            field=field,
        )


def write(path: str | Path, entries: Iterable[BankEntry], test_collection: str = "") -> None:
    """Write a bank; entries that come from a bank file as they were there, new ones in its layout.

    `test_collection` names the collection of entries that do not say (the workbench demands one).
    InputError for an item that is neither question nor nugget or belongs to another query.
    """
    with writing(path) as stream:
        for entry in entries:
            stream.write(encode_json(_line(entry, test_collection, path), path))


def _line(entry: BankEntry, test_collection: str, path: str | Path) -> Json:
    form = entry.extra.get(FORM, {})
    bare = replace(entry, items=(), extra=without(entry.extra, FORM))
    line = _as_read(_written_head(bare, test_collection), form.get("line"), _head, bare)
    for item in entry.items:
        is_here = item.query_id == entry.query_id and not (
            item.subtopic_id and entry.subtopic_id and item.subtopic_id != entry.subtopic_id
        )
        if item.kind not in _KINDS or not is_here:
            raise InputError(
                f"item {brief(item.item_id)} ({item.kind} of query {brief(item.query_id)}) cannot "
                f"stand in the bank line of query {brief(entry.query_id)}",
                file=path,
            )
    items = {(item.kind, item.item_id): _item_line(bare, item) for item in entry.items}
    if len(items) != len(entry.items):
        raise InputError(
            f"the bank of query {brief(entry.query_id)} holds an item id twice", file=path
        )
    by_id = {item_id: items[kind, item_id] for kind, item_id in items}
    order = form.get("order", ())
    is_order = set(order) == set(by_id) and len(by_id) == len(items)
    listed = [by_id[one] for one in order] if is_order else list(items.values())
    return line | {form.get("list", _LISTS[0]): listed}


def _item_line(entry: BankEntry, item: Item) -> Json:
    bare = replace(item, extra=without(item.extra, FORM))
    return _as_read(
        _written_item(bare), item.extra.get(FORM), lambda value: _item(entry, value), bare
    )


def _as_read(written: Json, form: Any, parse: Callable[[Json], T], record: T) -> Json:
    """Return the form in which the record was read, if that still says what the record says."""
    if not form:
        return written
    value: Json = restored(written, form)
    try:
        return value if parse(value) == record else written
    except InputError:
        return written


def _written_head(entry: BankEntry, test_collection: str) -> Json:
    subtopic = {"facet_id": entry.subtopic_id, "facet_text": entry.subtopic_text or None}
    return {
        "query_id": entry.query_id,
        **{key: text for key, text in subtopic.items() if text is not None},
        "test_collection": test_collection,
        "query_text": entry.query_text,
        **without(entry.extra, *_LINE_KEYS),
    }


def _written_item(item: Item) -> Json:
    line: Json = {"query_id": item.query_id}
    if item.subtopic_id is not None:
        line["facet_id"] = item.subtopic_id
    line |= {f"{item.kind}_id": item.item_id, f"{item.kind}_text": item.text}
    if item.answers:
        line["gold_answers"] = list(item.answers)
    if item.weight != 1:
        line["weight"] = item.weight
    return line | without(item.extra, *_ITEM_KEYS)


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    write,
    name="bank",
    shapes=(Shape((("query_id",), ("items", "questions"))),),
    looks="JSON-lines, a query or subtopic each, with `items` (newer) or `questions` (older)",
    source="Autograding Workbench",
    lossless="yes",
)
