"""Objects of JSON-lines whose keys go by several names, as every collection has its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exampp.errors import InputError
from exampp.formats.headers import nearly

Fields = dict[str, msgspec.Raw]
OBJECT: msgspec.json.Decoder[Fields] = msgspec.json.Decoder(Fields)
"""Decodes one object, its values still undecoded."""

_STRING = msgspec.json.Decoder(str)
_NULL = b"null"


def is_object(line: bytes) -> bool:
    """Whether a line is an object, and not one of columns that an id with a brace starts."""
    try:
        OBJECT.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def key_of(fields: Fields, keys: Sequence[str]) -> str | None:
    """The first of `keys` that the object has a value for."""
    return next((key for key in keys if key in fields and bytes(fields[key]) != _NULL), None)


def identifier(fields: Fields, keys: Sequence[str]) -> str:
    """The id under the first of `keys`; a number is taken as it is written.

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
    """The text under the first of `keys`; InputError where there is none or it is no string."""
    key = key_of(fields, keys)
    if key is None:
        raise _missing("text", fields, keys)
    return _string(fields, key)


def _missing(what: str, fields: Fields, keys: Sequence[str]) -> InputError:
    """The error for an object that has none of the keys, with those that it may have meant."""
    slips = nearly(fields, keys)
    mend = f"{slips}: correct it" if slips else ""
    return InputError(f"no {what} (any of {', '.join(keys)})", field=keys[0], mend=mend)


def optional_text(fields: Fields, keys: Sequence[str]) -> str:
    """The text under the first of `keys`, or an empty one; InputError if it is no string."""
    key = key_of(fields, keys)
    return "" if key is None else _string(fields, key)


def _string(fields: Fields, key: str) -> str:
    try:
        return _STRING.decode(fields[key])
    except msgspec.ValidationError:
        raise InputError("must be a string", field=key) from None
