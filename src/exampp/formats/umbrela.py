"""Relevance that castorini's umbrela judged: one JSON line for every query and passage.

A line has the texts of the query and the passage, no ids, and a `judgment` of 0 to 3. With
`result_status` 0 umbrela could not read the reply and wrote a 0: such a cell has no grade.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, brief, duplicate_error
from exampp.formats.json_document import spoken
from exampp.formats.lines import OnError, decode_json, raise_error, read_lines
from exampp.formats.read_warnings import Keys
from exampp.records import Grade, GraderIdentity, State

KEYS = frozenset({"query", "passage", "judgment"})
"""A line of such a file has all of them."""
HIGHEST = 3
_KEPT = ("result_status", "reasoning")
_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Judged:
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
    first = FirstLines()
    keys = Keys(path, (*KEYS, *_KEPT, "model", "prediction"))
    for number, line in read_lines(path):
        try:
            value = decode_json(line, _OBJECT, path, number)
            keys.see(value, number)
            if "judgment" not in value:
                raise InputError("no `judgment`", field="judgment")
            query, passage = _query(value), spoken(value, "passage")
            model = spoken(value, "model") if value.get("model") is not None else "umbrela"
            if earlier := first.add((query, passage, model), number):
                raise duplicate_error(f"passage {brief(passage)}", earlier, path, number, "passage")
        except InputError as error:
            on_error(error.at(path, number))
            continue
        yield Judged(query, passage, grader_of(model), _grade(value))


def _query(value: dict[str, Any]) -> str:
    found = value.get("query")
    return spoken(found, "text", "query") if isinstance(found, dict) else spoken(value, "query")


def _grade(value: dict[str, Any]) -> Grade:
    judgment, reply = value["judgment"], value.get("prediction")
    said = reply if isinstance(reply, str) else None
    detail = {key: value[key] for key in _KEPT if key in value}
    is_rating = isinstance(judgment, int) and not isinstance(judgment, bool)
    if value.get("result_status") == 0:
        reason = "umbrela could not read the reply"
    elif is_rating and 0 <= judgment <= HIGHEST:
        return Grade("", State.GRADED, judgment, said, "imported", detail=detail or None)
    else:
        reason = f"the judgment is {brief(judgment)}"
    kept = {"reason": reason, "raw": judgment, **detail}
    return Grade("", State.UNPARSED, None, said, "imported", detail=kept)
