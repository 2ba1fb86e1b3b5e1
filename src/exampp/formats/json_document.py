"""Files that are one JSON value, and what their parts must be: faults name the part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.formats.lines import read_text, valid_json

Json = dict[str, Any]
T = TypeVar("T")

_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def load(path: str | Path) -> Any:
    """The value of a file that holds one JSON value; InputError, with the line, where it is none.

    A number that JSON does not know (NaN, Infinity) is refused.
    """
    return parse(read_text(path), path)


def parse(text: str, path: str | Path, line: int | None = None) -> Any:
    """The JSON value that the text spells; `line` is where the text stands, if it is one line."""
    text = valid_json(text.encode(), path, line).decode()
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InputError(
            f"broken JSON ({error.msg})", file=path, line=line or error.lineno
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"broken JSON ({error})", file=path, line=line) from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def member(value: Json, key: str, kind: type[T], place: str = "") -> T:
    """The value of a key that must be there; InputError if it is missing or of another type."""
    found = optional(value, key, kind, place)
    if found is None:
        raise InputError(f"no `{key}`", field=joined(place, key))
    return found


def optional(value: Json, key: str, kind: type[T], place: str = "") -> T | None:
    """The value of a key, None where it is missing or null; InputError if of another type."""
    found = value.get(key)
    return None if found is None else expect(found, kind, joined(place, key))


def expect(value: object, kind: type[T], place: str) -> T:
    """The value, if it is of that type; InputError at `place` otherwise."""
    if not isinstance(value, kind):
        raise InputError(f"must be {_NAMES[kind]}", field=place)
    return value


def spoken(value: Json, key: str, place: str = "") -> str:
    """The text of a key; InputError where it is missing, blank or no string."""
    text = member(value, key, str, place)
    if not text.strip():
        raise InputError("the text is blank", field=joined(place, key))
    return text


def identifier(value: Json, key: str, place: str = "") -> str:
    """The id of a key: a string, or a whole number as it is written; InputError otherwise."""
    found = value.get(key)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return spoken(value, key, place)


def joined(place: str, key: str) -> str:
    """The place of a key below a place."""
    return f"{place}.{key}" if place else key


def without(value: Mapping[str, Any], *keys: str) -> Json:
    """The object without these keys."""
    return {key: part for key, part in value.items() if key not in keys}
