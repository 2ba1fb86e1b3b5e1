"""Finding the value that counts in a JSON reply: fenced or bare, whole or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"(?s)```(?:json)?\s*(.*?)(?:```|\Z)", re.IGNORECASE)
_RATING_FIELDS = ("grade", "rating", "selfrating", "score", "relevance", "label", "verdict")
_ANSWER_FIELDS = ("answer", "shortanswer", "extract", "response")
_MOST_OBJECTS = 200
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Value:
    """The value found, and the rule: `json` as it stood, `repaired` after mending."""

    value: object
    rule: str


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _pick(data: object, fields: tuple[str, ...], depth: int = 0) -> tuple[object] | None:
    if depth > _DEEPEST or not isinstance(data, dict | list):
        return None
    if isinstance(data, list):
        inner = list(data)
    else:
        named = {_key(str(name)): value for name, value in data.items()}
        for name in fields:
            if name in named:
                return (named[name],)
        inner = list(data.values())
    found = (_pick(value, fields, depth + 1) for value in reversed(inner))
    return next((value for value in found if value is not None), None)


def _objects(text: str) -> Iterator[object]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            data, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield data
        start = text.find("{", end)


def _repaired(text: str) -> object:
    if text.count("{") > _MOST_OBJECTS:
        return None
    import json_repair

    fences = _FENCE.findall(text)
    try:
        return json_repair.loads(fences[-1] if fences else text[text.find("{") :])
    except (ValueError, RecursionError):
        return None


def looks_like_json(reply: str) -> bool:
    """Whether the reply as a whole is meant as JSON, so that its numbers are no free text."""
    return reply.lstrip().startswith(("{", "[{", "```json"))


def find_value(reply: str, field: str, *, answers: bool = False) -> Value | None:
    """The value of `field` in the last JSON object of the reply that has it.

    Where no object has the declared field, the usual names for a rating (or, with `answers`, for
    an answer) are looked for. Broken JSON is mended first. None if there is no such value.
    """
    if "{" not in reply:
        return None
    usual = _ANSWER_FIELDS if answers else (*_RATING_FIELDS, *_ANSWER_FIELDS)
    fields = (*((_key(field),) if field else ()), *usual)
    whole = [found for data in _objects(reply) if (found := _pick(data, fields))]
    if whole:
        return Value(whole[-1][0], "json")
    found = _pick(_repaired(reply), fields)
    return Value(found[0], "repaired") if found else None
