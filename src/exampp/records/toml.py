"""Read TOML files, with the location of every fault."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from exampp.errors import InputError
from exampp.records.wording import suggest
from exampp.sanitize import LARGEST, check_path, sanitize

DEEPEST = 20
"""Maximum nesting of tables and lists."""
_LINE = re.compile(r"\(at line (\d+)")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read the tables of a file."""
    path = check_path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", file=path, hint="Check the path") from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", file=path, hint="Convert the file to UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None
    return parse_toml(text, path)


def parse_toml(text: str, file: str | Path | None = None, hint: str = "") -> dict[str, Any]:
    """Parse the tables of a text.

    Raises InputError with the line for invalid TOML, and with the field for excessive nesting,
    non-finite numbers, integers beyond 64 bits, and texts with NUL.
    """
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        line = int(match[1]) if match else None
        raise InputError(f"invalid TOML ({error})", file=file, line=line, hint=hint) from None
    except (ValueError, OverflowError) as error:
        # a number with thousands of digits, an impossible date
        raise InputError(f"invalid TOML ({error})", file=file, hint=hint) from None
    except RecursionError:
        raise InputError("invalid TOML (nested too deeply)", file=file, hint=hint) from None
    _check(data, file)
    return data


def _check(data: dict[str, Any], file: str | Path | None) -> None:
    waiting: list[tuple[str, Any, int]] = [("", data, 0)]
    while waiting:
        place, value, depth = waiting.pop()
        what = _fault(value, depth)
        if what:
            raise InputError(what, file=file, field=place[:80])
        if isinstance(value, dict):
            inside = value.items()
        elif isinstance(value, list):
            inside = {f"[{number}]": part for number, part in enumerate(value)}.items()
        else:
            continue
        waiting += [(f"{place}.{key}".lstrip("."), part, depth + 1) for key, part in inside]


def _fault(value: Any, depth: int) -> str:
    if depth > DEEPEST:
        return "nested too deeply"
    if isinstance(value, str) and sanitize(value)[1]:
        return "contains a NUL character"
    if isinstance(value, int) and abs(value) > LARGEST:
        return "is a number beyond 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    return ""


# ---- tables as dataclasses --------------------------------------------------------------------

_NAMES: Mapping[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
}


def toml_types(record: type) -> dict[str, Any]:
    """Return the keys of a dataclass with the types of their values."""
    hints = get_type_hints(record)
    return {one.name.replace("_", "-"): hints[one.name] for one in fields(record)}


def check_table(table: Mapping[str, Any], types: Mapping[str, Any], path: Path) -> None:
    """Check that a table has only known keys and values of the right types.

    If several types are given, as in `str | list[str]`, one must match.

    Raises:
        InputError: A key is unknown (the closest one is suggested), or a value has another type.
    """
    for key, value in table.items():
        if key not in types:
            fix = suggest(key, types) or f"Known: {', '.join(types)}"
            raise InputError(f"unknown key {key!r}", file=path, hint=fix)
        if not _fits(value, types[key]):
            raise InputError(f"must be {_name(types[key])}", file=path, field=key)


def _fits(value: Any, expected: Any) -> bool:
    if expected is Path or get_origin(expected) is Literal:
        expected = str
    if get_origin(expected) is list:
        (item,) = get_args(expected)
        return isinstance(value, list) and bool(value) and all(_fits(one, item) for one in value)
    if not isinstance(expected, type):
        return any(_fits(value, one) for one in get_args(expected) if one is not NoneType)
    if expected is float:
        expected = (int, float)
    return isinstance(value, expected) and isinstance(value, bool) <= (expected is bool)


def _name(type_: Any) -> str:
    if type_ is Path or get_origin(type_) is Literal:
        return _NAMES[str]
    if get_origin(type_) is list:
        (item,) = get_args(type_)
        return f"a list of {'whole numbers' if item is int else 'texts'}"
    if not isinstance(type_, type):
        return " or ".join(_name(one) for one in get_args(type_) if one is not NoneType)
    return _NAMES[type_]
