"""Read JSON objects, with alternative names for each key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import nearly
from exampp.formats.lines import read_text, valid_json

Json = dict[str, Any]
Fields = dict[str, msgspec.Raw]
JSON_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)
"""Decode one object."""
OBJECT: msgspec.json.Decoder[Fields] = msgspec.json.Decoder(Fields)
"""Decode one object; its values stay undecoded."""

_STRING = msgspec.json.Decoder(str)
_NULL = b"null"


def is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object, not columns whose first id starts with a brace."""
    try:
        OBJECT.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def key_of(fields: Fields, keys: Sequence[str]) -> str | None:
    """Return the first of `keys` that has a value in the object."""
    return next((key for key in keys if key in fields and bytes(fields[key]) != _NULL), None)


def identifier(fields: Fields, keys: Sequence[str]) -> str:
    """Return the id under the first of `keys`; a number is read as text.

    Raises:
        InputError: The id is missing, blank, or neither a string nor a number.
    """
    key = key_of(fields, keys)
    if key is None:
        raise _missing("id", fields, keys)
    value = bytes(fields[key])
    if value[:1] in b"-0123456789":
        return value.decode()
    text = _string(fields, key)
    if not text.strip():
        raise InputError("the id is blank", field=key)
    return text


def required_text(fields: Fields, keys: Sequence[str]) -> str:
    """Return the text under the first of `keys`; raise InputError if missing or not a string."""
    key = key_of(fields, keys)
    if key is None:
        raise _missing("text", fields, keys)
    return _string(fields, key)


def _missing(what: str, fields: Fields, keys: Sequence[str]) -> InputError:
    """Return the error for an object without any of the keys, with likely misspellings."""
    slips = nearly(fields, keys)
    return InputError(
        f"no {what} (any of {', '.join(keys)})",
        field=keys[0],
        hint=f"{slips}. Correct it" if slips else "",
    )


def optional_text(fields: Fields, keys: Sequence[str]) -> str:
    """Return the text under the first of `keys`, or ""; raise InputError if it is not a string."""
    key = key_of(fields, keys)
    return "" if key is None else _string(fields, key)


def _string(fields: Fields, key: str) -> str:
    try:
        return _STRING.decode(fields[key])
    except msgspec.ValidationError:
        raise InputError("must be a string", field=key) from None


# ---- json document -------------------------------------------------------------------------------


T = TypeVar("T")

_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def read_json_file(path: str | Path) -> Any:
    """Return the value of a file that has one JSON value; NaN and Infinity are invalid.

    Raises:
        InputError: The file is not valid JSON; the message has the line.
    """
    return parse_json(read_text(path), path)


def read_document(path: str | Path, name: str, what: str, hint: str) -> Json:
    """Return the object of a JSON file whose `format` is `name`, without this key.

    Raises:
        InputError: The file is not valid JSON, or not `what`.
    """
    value = read_json_file(path)
    if not isinstance(value, dict) or value.pop("format", None) != name:
        raise InputError(f"not {what}", file=path, hint=hint)
    return value


def parse_json(text: str, path: str | Path, line: int | None = None) -> Any:
    """Return the JSON value in a text; `line` is its line number, if it is a single line."""
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
    raise ValueError(f"{name} is not valid in JSON")


def member(value: Json, key: str, kind: type[T], place: str = "") -> T:
    """Return a required value; raise InputError if it is missing or has another type."""
    value_of_key = optional(value, key, kind, place)
    if value_of_key is None:
        raise InputError(f"no `{key}`", field=place_below(place, key))
    return value_of_key


def optional(value: Json, key: str, kind: type[T], place: str = "") -> T | None:
    """Return an optional value, None if missing or null; raise InputError for another type."""
    value_of_key = value.get(key)
    return None if value_of_key is None else expect(value_of_key, kind, place_below(place, key))


def expect(value: object, kind: type[T], place: str) -> T:
    """Return the value; raise InputError at `place` if it has another type."""
    if not isinstance(value, kind):
        raise InputError(f"must be {_NAMES[kind]}", field=place)
    return value


def spoken(value: Json, key: str, place: str = "") -> str:
    """Return the text of a key; raise InputError if it is missing, blank or not a string."""
    text = member(value, key, str, place)
    if not text.strip():
        raise InputError("the text is blank", field=place_below(place, key))
    return text


def json_id(value: Json, key: str, place: str = "") -> str:
    """Return the id of a key, a string or a whole number; raise InputError otherwise."""
    value_of_key = value.get(key)
    if isinstance(value_of_key, int) and not isinstance(value_of_key, bool):
        return str(value_of_key)
    return spoken(value, key, place)


def place_below(place: str, key: str) -> str:
    """Return the dotted path of a key below a place; either may be empty."""
    return f"{place}.{key}" if place and key else place or key


def without(value: Mapping[str, Any], *keys: str) -> Json:
    """Return the object without these keys."""
    return {key: part for key, part in value.items() if key not in keys}


# ---- lossless ------------------------------------------------------------------------------------


def difference(written: Any, original: Any) -> dict[str, Any] | None:
    """Return the changes that turn `written` into `original`; None if they are equal.

    Objects are compared key by key: `set` has changed and new values, `drop` the keys to remove,
    `in` the changes of nested objects. Other values are replaced (`is`).
    """
    if _same(written, original):
        return None
    if not (isinstance(written, dict) and isinstance(original, dict)):
        return {"is": original}
    changed: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for key, value in original.items():
        if isinstance(written.get(key), dict) and isinstance(value, dict):
            if inner := difference(written[key], value):
                inside[key] = inner
        elif key not in written or not _same(written[key], value):
            changed[key] = value
    dropped = [key for key in written if key not in original]
    parts = {"set": changed, "drop": dropped, "in": inside}
    return {name: part for name, part in parts.items() if part}


def differences(written: Iterable[Any], originals: Sequence[Any]) -> list[dict[str, Any] | None]:
    """Return the changes from each value to its original; fast if all are equal."""
    values = list(written)
    if _same(values, originals):
        return [None] * len(values)
    return [difference(*pair) for pair in zip(values, originals, strict=True)]


def restored(written: Any, residue: dict[str, Any] | None) -> Any:
    """Return the original of a written value, given the stored changes."""
    if residue is None:
        return written
    if "is" in residue:
        return residue["is"]
    dropped = set(residue.get("drop", ()))
    value = {key: item for key, item in written.items() if key not in dropped}
    value.update(residue.get("set", {}))
    for key, inner in residue.get("in", {}).items():
        value[key] = restored(value.get(key, {}), inner)
    return value


_SORTED = msgspec.json.Encoder(order="sorted")


def _same(a: Any, b: Any) -> bool:
    """Return whether JSON values are equal; unlike in Python, True differs from 1."""
    if not isinstance(a, dict | list):
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    return bool(a == b) and (_written_alike(a, b) or _same_parts(a, b))


def _written_alike(a: Any, b: Any) -> bool:
    """Return whether two values have the same JSON; a fast check without false positives."""
    try:
        return _SORTED.encode(a) == _SORTED.encode(b)
    except UnicodeEncodeError:
        # half of a surrogate pair
        return False


def _same_parts(a: Any, b: Any) -> bool:
    # Python-equal values with different JSON (True and 1, 1 and 1.0) somewhere inside
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    return all(map(_same, a, b))
