"""The named values of the JSON in a reply: fenced or bare, whole or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_OPENS = re.compile(r"[\s*]*+(?:\{|\[\{|```json)")
_FENCE = re.compile(r"(?is)```(?:json)?\s*+(.*?)(?:```|\Z)")
_ANSWERS = ("answer", "shortanswer", "extract", "response")
_MOST_OBJECTS = 200
_LONGEST_BROKEN = 20_000
_DEEPEST = 4


class Named(NamedTuple):
    """One name of a JSON object and its value."""

    name: str
    value: object


class _Object(tuple[tuple[str, object], ...]):
    """A JSON object as it stands, with names that occur twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def plain_name(name: str) -> str:
    """A name as it is compared: letters and digits, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


def looks_like_json(reply: str) -> bool:
    """Whether the reply as a whole is meant as JSON, so that its numbers are no free text."""
    return _OPENS.match(reply) is not None


def named_values(reply: str) -> tuple[list[Named], str]:
    """The named values of all whole JSON objects of a reply, and the text around the objects."""
    found: list[Named] = []
    around: list[str] = []
    start = end = 0
    for _ in range(_MOST_OBJECTS):
        start = reply.find("{", start)
        if start < 0:
            break
        try:
            data, stop = _DECODER.raw_decode(reply, start)
        except (ValueError, RecursionError):
            start += 1
            continue
        found += _named(data)
        around.append(reply[end:start])
        start = end = stop
    return found, "\n".join([*around, reply[end:]])


def _named(data: object, depth: int = 0) -> Iterator[Named]:
    if depth > _DEEPEST:
        return
    if isinstance(data, _Object):
        for name, value in data:
            if not isinstance(value, _Object):
                yield Named(name, value)
            yield from _named(value, depth + 1)
    elif isinstance(data, list):
        for value in data:
            yield from _named(value, depth + 1)


def find_answer(reply: str, field: str) -> str | None:
    """The text under `field`, or a usual name for an answer, in the last object that has one.

    Broken JSON is mended first, unless it is very long. None if there is no such text.
    """
    if "{" not in reply:
        return None
    values = named_values(reply)[0] or _repaired(reply)
    for name in (plain_name(field), *_ANSWERS):
        texts = [value for key, value in values if name and plain_name(key) == name]
        if texts:
            return texts[-1] if isinstance(texts[-1], str) else None
    return None


def _repaired(text: str) -> list[Named]:
    if text.count("{") > _MOST_OBJECTS or len(text) > _LONGEST_BROKEN:
        return []
    import json_repair

    fences = _FENCE.findall(text)
    try:
        data = json_repair.loads(fences[-1] if fences else text[text.find("{") :])
        return list(_named(json.loads(json.dumps(data), object_pairs_hook=_Object)))
    except (ValueError, RecursionError):
        return []
