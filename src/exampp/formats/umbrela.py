"""Relevance that castorini's umbrela judged: one JSON line for every query and passage.

A line has the texts of the query and the passage, no ids, and a `judgment` of 0 to 3. With
`result_status` 0 umbrela could not read the reply and wrote a 0: such a cell has no grade.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats import plain_bank
from exampp.formats.fields import brief
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import spoken
from exampp.formats.lines import Key, OnError, decode_json, parse_lines, raise_error
from exampp.formats.read_warnings import Keys
from exampp.records import Grade, GraderIdentity, State

KEYS = frozenset({"query", "passage", "judgment"})
"""A line of such a file has all of them."""
HIGHEST = 3
_STORED = ("result_status", "reasoning")
_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class Judged(NamedTuple):
    """How relevant a passage is for a query; the grade's item is for the importer to name."""

    query: str
    passage: str
    grader: GraderIdentity
    grade: Grade


def grader_of(model: str) -> GraderIdentity:
    """Whose judgments they are: umbrela with this model, which its files name with a trace only."""
    return GraderIdentity(model, "umbrela", "query", 0, HIGHEST, {"format": "umbrela"})


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[Judged]:
    """Yield the judgments in file order.

    A judgment that is no whole number from 0 to 3 is an unparsed grade that keeps it. InputError
    for a line without a query, a passage or a judgment, and for a pair that a model judged twice.
    """
    keys = Keys(path, (*KEYS, *_STORED, "model", "prediction"))

    def parse(line: bytes, number: int) -> Judged:
        value = decode_json(line, _OBJECT, path, number)
        keys.see(value, number)
        if "judgment" not in value:
            raise InputError("no `judgment`", field="judgment")
        query, passage = _query(value), spoken(value, "passage")
        model = spoken(value, "model") if value.get("model") is not None else "umbrela"
        return Judged(query, passage, grader_of(model), _grade(value))

    yield from parse_lines(path, on_error, parse, _KEY)


_KEY = Key(
    lambda one: (one.query, one.passage, one.grader.model),
    lambda one: f"passage {brief(one.passage)}",
    "passage",
)


def _query(value: dict[str, Any]) -> str:
    found = value.get("query")
    return spoken(found, "text", "query") if isinstance(found, dict) else spoken(value, "query")


def _grade(value: dict[str, Any]) -> Grade:
    judgment, reply = value["judgment"], value.get("prediction")
    said = reply if isinstance(reply, str) else None
    detail = {key: value[key] for key in _STORED if key in value}
    is_rating = isinstance(judgment, int) and not isinstance(judgment, bool)
    if value.get("result_status") == 0:
        reason = "umbrela could not read the reply"
    elif is_rating and 0 <= judgment <= HIGHEST:
        return Grade("", State.GRADED, judgment, said, "imported", detail=detail or None)
    else:
        reason = f"the judgment is {brief(judgment)}"
    kept = {"reason": reason, "raw": judgment, **detail}
    return Grade("", State.UNPARSED, None, said, "imported", detail=kept)


FORMAT = Format(
    "",
    lambda path, how: read(path, how.on_error),
    name="umbrela",
    shapes=(Shape((("query",), ("passage",), ("judgment",)), frozenset(plain_bank.QUERY_KEYS)),),
    record=Judged,
    looks="JSON-lines of `query`, `passage` and `judgment` (0 to 3), perhaps `model`, "
    "`prediction`, `result_status`; grades of the query and the passage that have these texts",
    source="castorini's umbrela",
)
