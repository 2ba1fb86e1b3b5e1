"""Nugget banks of AutoARGUE and TREC AutoJudge: NuggetBank v3 and the RAGTIME 2026 layout.

A file has one bank (one query) as a JSON object, or one bank per line. It is read as follows:

- a question becomes an item of kind question, a claim an item of kind nugget; a sub-nugget becomes
  an item with the id of its parent in `extra["argue"]["parent"]`;
- ids are `query_id/question_id`; a missing `question_id` is the MD5 of the text;
- with OR (the default) each answer is a known answer; with AND all answers are joined by "and" to
  one known answer, because the item needs all of them; NOT and SUM are rejected;
- `importance` vital and okay give weights; items with any other importance weigh 1;
- all other keys (references, creators, quality, metadata ...) are stored in `extra["argue"]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.fields import brief, importance_word
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import (
    Json,
    expect,
    json_id,
    optional,
    parse_json,
    place_below,
    spoken,
    without,
)
from exampp.formats.lines import (
    OnError,
    encode_json,
    encode_text,
    placed,
    raise_error,
    read_lines,
    read_text,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.several_banks import names_of_banks
from exampp.records import BankEntry, Item
from exampp.records.items import WORD_WEIGHTS

_BANKS = {"nugget_bank": "question", "claim_bank": "claim"}
_KINDS = {"question": "question", "claim": "nugget"}
_BANK_KEYS = frozenset({"query_id", "title_query", "metadata", "bank", *_BANKS})
_NUGGET_KEYS = frozenset(
    {*_KINDS, *(f"{name}_id" for name in _KINDS), "answers", "answer", "references", "sub_nuggets"}
    | {"item_id", "query_id", "subtopic_id", "importance", "aggregator_type"}
)
_ALL, _ANY = "AND", ("OR", "Default")


def read(
    path: str | Path, on_error: OnError = raise_error, *, by_run: bool = False
) -> Iterator[BankEntry]:
    """Yield one entry per bank, in file order.

    With a skipping `on_error`, a bad nugget is skipped together with its sub-nuggets.

    Raises:
        InputError: A bank without query id or nuggets, a nugget without text, an unsupported
            aggregator, or a duplicate query or nugget.
    """
    seen: set[tuple[str, str]] = set()
    banks = names_of_banks(path, whole_queries=True, by_run=by_run)
    of_bank = Keys(path, _BANK_KEYS, stored=True)
    of_nugget = Keys(path, _NUGGET_KEYS, "nuggets[].", stored=True)
    for line, value in _values(path, on_error):
        try:
            bank = expect(value, dict, "")
            of_bank.see(bank, line)
            for name in _BANKS:
                for nugget in _with_sub_nuggets(bank.get(name)):
                    of_nugget.see(nugget, line)
            query_id = _query_id(bank)
            name = banks.get(line or 0, "")
            if (name, query_id) in seen:
                hint = "Several banks in one file need a field `bank` in each line"
                what = f"query {brief(query_id)} occurs twice"
                raise InputError(what, field="query_id", hint=hint)
            seen.add((name, query_id))
            yield replace(_entry(query_id, bank, placed(on_error, path, line)), bank=name)
        except InputError as error:
            on_error(error.at(path, line))


def _values(path: str | Path, on_error: OnError) -> Iterator[tuple[int | None, Any]]:
    """Yield (line, value) of every bank; the line is None for a bank that spans several lines."""
    lines = read_lines(path)
    number, head = next(lines)
    try:
        first = parse_json(text_of(head, path, number), path, number)
    except InputError:
        if next(lines, None) is None:
            raise
        text = read_text(path)
        encode_text(text, path)
        yield None, parse_json(text, path)
        return
    yield number, first
    for number, line in lines:
        try:
            yield number, parse_json(text_of(line, path, number), path, number)
        except InputError as error:
            on_error(error)


def _query_id(bank: Json) -> str:
    metadata = optional(bank, "metadata", dict) or {}
    for holder, key in ((bank, "query_id"), (metadata, "topic_id"), (metadata, "query_id")):
        if holder.get(key) is not None:
            return json_id(holder, key)
    raise InputError("the bank has no query id", field="query_id", hint="Add `query_id`")


def _entry(query_id: str, bank: Json, on_error: OnError) -> BankEntry:
    items: dict[str, Item] = {}
    if not any(bank.get(name) is not None for name in _BANKS):
        raise InputError(f"no {' or '.join(f'`{name}`' for name in _BANKS)}")
    for name in _BANKS:
        for place, nugget in _nuggets_of(bank.get(name), name):
            _collect(query_id, nugget, place, None, items, on_error)
    title = optional(bank, "title_query", str) or ""
    extra = without(bank, "query_id", "title_query", "bank", *_BANKS)
    return BankEntry(
        query_id, tuple(items.values()), title, extra={"argue": extra} if extra else {}
    )


def _nuggets_of(value: Any, place: str) -> Iterable[tuple[str, Any]]:
    """Return (place, nugget) of every nugget; a bank is a list, or an object keyed by text."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [(f"{place}[{brief(key, 30)}]", nugget) for key, nugget in value.items()]
    nuggets = expect(value, list, place)
    return [(f"{place}[{number}]", nugget) for number, nugget in enumerate(nuggets)]


def _with_sub_nuggets(value: Any) -> Iterator[Json]:
    """Yield all nuggets of a bank and their answers, as far as they are objects."""
    nuggets = value.values() if isinstance(value, dict) else value
    for nugget in nuggets if isinstance(value, dict | list) else ():
        if isinstance(nugget, dict):
            yield nugget
            for key in ("answers", "sub_nuggets"):
                yield from _with_sub_nuggets(nugget.get(key))


def _collect(
    query_id: str,
    value: Any,
    place: str,
    parent: str | None,
    items: dict[str, Item],
    on_error: OnError,
) -> None:
    """Add a nugget and its sub-nuggets to `items`."""
    try:
        nugget = expect(value, dict, place)
        item = _item(query_id, nugget, place, parent)
        if item.item_id in items:
            raise InputError(
                f"nugget {brief(item.item_id)} occurs twice",
                field=place,
                hint="Give each nugget its own id",
            )
    except InputError as error:
        on_error(error)
        return
    items[item.item_id] = item
    for below, sub in _nuggets_of(nugget.get("sub_nuggets"), f"{place}.sub_nuggets"):
        _collect(query_id, sub, below, item.item_id, items, on_error)


def _item(query_id: str, nugget: Json, place: str, parent: str | None) -> Item:
    name = next((name for name in _KINDS if nugget.get(name) is not None), "question")
    text = spoken(nugget, name, place)
    own = nugget.get(f"{name}_id")
    subtopic_id = optional(nugget, "subtopic_id", str, place) or None
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    own_id = digest if own is None else json_id(nugget, f"{name}_id", place)
    extra = without(nugget, name, f"{name}_id", "sub_nuggets", "item_id", "subtopic_id")
    if extra.get("query_id") == query_id:
        del extra["query_id"]
    if parent is not None:
        extra["parent"] = parent
    importance = nugget.get("importance")
    return Item(
        optional(nugget, "item_id", str, place) or f"{query_id}/{own_id}",
        query_id,
        text,
        _KINDS[name],
        subtopic_id,
        answers=_answers(nugget, place),
        weight=WORD_WEIGHTS.get(importance.lower(), 1.0) if isinstance(importance, str) else 1.0,
        extra={"argue": extra} if extra else {},
    )


def _answers(nugget: Json, place: str) -> tuple[str, ...]:
    aggregator = optional(nugget, "aggregator_type", str, place) or _ANY[0]
    if aggregator != _ALL and aggregator not in _ANY:
        raise InputError(
            f"unsupported aggregator {brief(aggregator)}",
            field=place_below(place, "aggregator_type"),
            hint="Use AND or OR, or skip such nuggets with --on-error skip",
        )
    texts: dict[str, None] = {}
    for where, answer in _nuggets_of(nugget.get("answers"), f"{place}.answers"):
        if isinstance(answer, str):
            texts[answer] = None
        else:
            texts[spoken(expect(answer, dict, where), "answer", where)] = None
    if aggregator == _ALL and len(texts) > 1:
        return (" and ".join(texts),)
    return tuple(texts)


# ---- writing -------------------------------------------------------------------------------------


def write(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write a bank as NuggetBank v3, one query per line; nuggets become claims.

    `item_id` and `subtopic_id`, which other programs ignore, are written only if reading could not
    restore them.

    Raises:
        InputError: A weight is neither 1 (vital) nor 0.5 (okay).
    """
    banks: dict[str, Json] = {}
    items: dict[str, list[Item]] = {}
    for entry in entries:
        head = {"query_id": entry.query_id, "title_query": "", "format_version": "v3"}
        bank = banks.setdefault(entry.query_id, head)
        bank["title_query"] = bank["title_query"] or entry.query_text
        bank |= entry.extra.get("argue", {})
        items.setdefault(entry.query_id, []).extend(entry.items)
    with writing(path) as stream:
        for query_id, bank in banks.items():
            below: dict[str | None, list[Item]] = {}
            for item in items[query_id]:
                below.setdefault(item.extra.get("argue", {}).get("parent"), []).append(item)
            top = below.pop(None, [])
            # an item without its parent is written at the top level
            known = {item.item_id for item in items[query_id]}
            top += [one for parent, some in below.items() if parent not in known for one in some]
            for name, text in _BANKS.items():
                rows = [_nugget(one, below, path) for one in top if _KINDS[text] == one.kind]
                by_text = {row[text]: row for row in rows}
                bank[name] = by_text if len(by_text) == len(rows) else rows
            filled = {key: value for key, value in bank.items() if key not in _BANKS or value}
            filled.setdefault("nugget_bank", {})
            stream.write(encode_json(filled, path))


def _nugget(item: Item, below: dict[str | None, list[Item]], path: str | Path) -> Json:
    name = next(name for name, kind in _KINDS.items() if kind == item.kind)
    extra = without(item.extra.get("argue", {}), "parent")
    own = item.item_id.removeprefix(f"{item.query_id}/")
    nugget: Json = {name: item.text, f"{name}_id": own, "query_id": item.query_id} | extra
    if own == item.item_id:
        nugget["item_id"] = item.item_id
    if item.subtopic_id:
        nugget["subtopic_id"] = item.subtopic_id
    if _answers(nugget, "") != item.answers:
        nugget |= {"aggregator_type": "OR", "answers": {a: {"answer": a} for a in item.answers}}
    nugget |= _importance(item, nugget.get("importance"), path)
    if subs := below.get(item.item_id):
        nugget["sub_nuggets"] = [_nugget(one, below, path) for one in subs]
    return nugget


def _importance(item: Item, known: Any, path: str | Path) -> Json:
    weight = WORD_WEIGHTS.get(known.lower(), 1.0) if isinstance(known, str) else 1.0
    if weight == item.weight:
        return {}
    return {"importance": importance_word(item, "a nugget bank", path)}


BANKS = Shape(({*_BANKS},))
"""Objects that are nugget banks."""
_START = re.compile(r'\s*\{[^\[]*?"(?:nugget_bank|claim_bank|format_version)"\s*:')


def is_spread(sample: FirstRecords) -> bool:
    """Return whether a file is one bank object that spans several lines."""
    return not sample.keys and _START.match(sample.start) is not None


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error, by_run=how.by_run),
    write,
    is_spread,
    sniffs_records=True,
    name="argue",
    shapes=(BANKS,),
    looks="NuggetBank v3: `query_id`, `nugget_bank`, `claim_bank`; the banks of RAGTIME 2026",
    source="AutoARGUE, AutoJudge, RAGTIME",
    lossless="yes; RAGTIME's layout is written as v3",
)
