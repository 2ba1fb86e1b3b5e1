"""Decisions made in an interactive report, as the JSON file that the report saves.

The object has `format`, `author`, `grader` (key), `bank`, `decisions` on cells, and items to
`retire`. The texts that the author saw are named by the item's text and the hash of the passage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import place_below, read_document
from exampp.formats.lines import OnError, raise_error
from exampp.records.decisions import CellDecision, Decision, ReportDecision

NAME = "exampp report decisions 1"


class _Item(msgspec.Struct):
    query: str
    item: str
    item_text: str
    at: str
    reason: str = ""


class _Cell(_Item):
    passage: str = ""
    passage_hash: str = ""
    rating: int = 0


class _File(msgspec.Struct):
    author: str
    grader: str
    bank: str
    decisions: list[Any]
    retire: list[Any]


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[ReportDecision]:
    """Yield the decisions of a file, cells before retired items.

    A malformed decision raises InputError (through `on_error`) with its field.
    """
    hint = 'Save it in the report again: "Save the decisions"'
    value = read_document(path, NAME, "a file of decisions made in a report", hint)
    try:
        file = msgspec.convert(value, _File)
    except msgspec.ValidationError as error:
        raise InputError(f"the file cannot be read: {error}", file=path) from None
    if not file.author.strip():
        raise InputError("the author is blank", file=path, field="author")
    for name, record in (("decisions", _Cell), ("retire", _Item)):
        for number, one in enumerate(getattr(file, name)):
            place = f"{name}[{number}]"
            try:
                yield _decision(file, msgspec.convert(one, record), place)
            except (InputError, msgspec.ValidationError) as error:
                bad = error if isinstance(error, InputError) else InputError(str(error))
                bad.field = place_below(place, bad.field)
                on_error(bad.at(path))


def _decision(file: _File, one: _Item, place: str) -> ReportDecision:
    try:
        at = datetime.fromisoformat(one.at).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        raise InputError(f"{one.at!r} is not a time", field="at") from None
    passage, passage_hash, rating = "", "", None
    if isinstance(one, _Cell):
        passage, passage_hash, rating = one.passage, one.passage_hash, one.rating
        if not passage:
            raise InputError("the id is missing", field="passage")
        try:
            bytes.fromhex(passage_hash)
        except ValueError:
            raise InputError("is not hexadecimal", field="passage_hash") from None
    return ReportDecision(
        CellDecision(
            Decision(0, file.author.strip(), rating, one.reason, at),
            *(one.query, one.item, passage, one.item_text),
            kind="",
            bank=file.bank,
            verdict=False,
            passage_hash=passage_hash,
        ),
        file.grader,
        place,
    )


FORMAT = Format(
    "",
    lambda path, how: read(path, how.on_error),
    name="report-decisions",
    shapes=(Shape(({"format"}, {"grader"}, {"decisions"}, {"retire"})),),
    record=ReportDecision,
    looks="decisions made in an interactive report: one JSON object",
    source="exampp report --interactive",
)
