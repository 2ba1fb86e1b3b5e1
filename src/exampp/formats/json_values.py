"""Objects of JSON-lines whose keys go by several names, as every collection has its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import nearly
from exampp.formats.lines import read_text, valid_json

Fields = dict[str, msgspec.Raw]
OBJECT: msgspec.json.Decoder[Fields] = msgspec.json.Decoder(Fields)
"""Decodes one object, its values still undecoded."""

_STRING = msgspec.json.Decoder(str)
_NULL = b"null"


def is_object(line: bytes) -> bool:
    """Return whether a line is an object, and not one of columns that an id with a brace starts."""
    try:
        OBJECT.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def key_of(fields: Fields, keys: Sequence[str]) -> str | None:
    """Return the first of `keys` that the object has a value for."""
    return next((key for key in keys if key in fields and bytes(fields[key]) != _NULL), None)


def identifier(fields: Fields, keys: Sequence[str]) -> str:
    """Return the id under the first of `keys`; a number is taken as it is written.

    InputError where there is none, or where it is blank or anything but a string or a number.
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
    """Return the text under the first of `keys`.

    InputError where there is none or it is no string.
    """
    key = key_of(fields, keys)
    if key is None:
        raise _missing("text", fields, keys)
    return _string(fields, key)


def _missing(what: str, fields: Fields, keys: Sequence[str]) -> InputError:
    """Return the error for an object that has none of the keys.

    With those that it may have meant.
    """
    slips = nearly(fields, keys)
    return InputError(
        f"no {what} (any of {', '.join(keys)})",
        field=keys[0],
        hint=f"{slips}: correct it" if slips else "",
    )


def optional_text(fields: Fields, keys: Sequence[str]) -> str:
    """Return the text under the first of `keys`, or an empty one; InputError if it is no string."""
    key = key_of(fields, keys)
    return "" if key is None else _string(fields, key)


def _string(fields: Fields, key: str) -> str:
    try:
        return _STRING.decode(fields[key])
    except msgspec.ValidationError:
        raise InputError("must be a string", field=key) from None


# ---- json document -------------------------------------------------------------------------------


Json = dict[str, Any]
T = TypeVar("T")

_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def read_json_file(path: str | Path) -> Any:
    """Return the value of a file that holds one JSON value.

    InputError, with the line, where it is none.

    A number that JSON does not know (NaN, Infinity) is refused.
    """
    return parse_json(read_text(path), path)


def parse_json(text: str, path: str | Path, line: int | None = None) -> Any:
    """Return the JSON value that the text spells.

    `line` is where the text stands, if it is one line.
    """
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
    """Return the value of a key that must be there.

    InputError if it is missing or of another type.
    """
    found = optional(value, key, kind, place)
    if found is None:
        raise InputError(f"no `{key}`", field=place_below(place, key))
    return found


def optional(value: Json, key: str, kind: type[T], place: str = "") -> T | None:
    """Return the value of a key, None where it is missing or null.

    InputError if of another type.
    """
    found = value.get(key)
    return None if found is None else expect(found, kind, place_below(place, key))


def expect(value: object, kind: type[T], place: str) -> T:
    """Return the value, if it is of that type; InputError at `place` otherwise."""
    if not isinstance(value, kind):
        raise InputError(f"must be {_NAMES[kind]}", field=place)
    return value


def spoken(value: Json, key: str, place: str = "") -> str:
    """Return the text of a key; InputError where it is missing, blank or no string."""
    text = member(value, key, str, place)
    if not text.strip():
        raise InputError("the text is blank", field=place_below(place, key))
    return text


def json_id(value: Json, key: str, place: str = "") -> str:
    """Return the id of a key: a string, or a whole number as it is written.

    InputError otherwise.
    """
    found = value.get(key)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return spoken(value, key, place)


def place_below(place: str, key: str) -> str:
    """Return the place of a key below a place."""
    return f"{place}.{key}" if place else key


def without(value: Mapping[str, Any], *keys: str) -> Json:
    """Return the object without these keys."""
    return {key: part for key, part in value.items() if key not in keys}


# ---- lossless ------------------------------------------------------------------------------------


def difference(written: Any, original: Any) -> dict[str, Any] | None:
    """Return what must be done to `written` to get `original`; None where they are equal.

    Objects are compared key by key: `set` holds values of other or new keys, `drop` the keys to
    remove, `in` the differences inside. Anything else is replaced whole (`is`).
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
    """Return the difference of each value from its original; quick where all are equal."""
    values = list(written)
    if _same(values, originals):
        return [None] * len(values)
    return [difference(*pair) for pair in zip(values, originals, strict=True)]


def restored(written: Any, residue: dict[str, Any] | None) -> Any:
    """Return the original value, from what we would write and the difference kept beside it."""
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
    """Equality of JSON values; unlike Python's, True is not 1."""
    if not isinstance(a, dict | list):
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    return _written_alike(a, b) or (a == b and _same_parts(a, b))


def _written_alike(a: Any, b: Any) -> bool:
    """Return whether two values are the same JSON, which tells True from 1.

    Quick, never wrongly so.
    """
    try:
        return _SORTED.encode(a) == _SORTED.encode(b)
    except UnicodeEncodeError:
        # half of a surrogate pair
        return False


def _same_parts(a: Any, b: Any) -> bool:
    # equal values that are written otherwise: True and 1, or 1 and 1.0, in places
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    return all(map(_same, a, b))
