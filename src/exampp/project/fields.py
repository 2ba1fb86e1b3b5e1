"""Tables of TOML whose keys are fields of dataclasses: known keys only, of the right types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from exampp.errors import InputError
from exampp.records.wording import suggest

_NAMES: Mapping[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "a table of names and columns",
    list: "a list",
}


def toml_types(record: type, names: Iterable[str] = ()) -> dict[str, Any]:
    """Return the keys of a dataclass, or some of them, each with the type of its value."""
    hints = get_type_hints(record)
    chosen = names or [one.name for one in fields(record)]
    return {name.replace("_", "-"): hints[name] for name in chosen}


def check_table(
    table: Mapping[str, Any], types: Mapping[str, Any], path: Path, where: str = ""
) -> None:
    """Check that a table has known keys only, with values of the right types.

    A type of `object` is checked by whoever reads the value. Where several types are given, as in
    `str | list[str]`, one must fit.

    Raises:
        InputError: It has another key (the nearest known one is named), or another value.
    """
    for key, value in table.items():
        if key not in types:
            fix = suggest(key, types) or f"Known: {', '.join(types)}"
            raise InputError(f"unknown key {key!r}", file=path, field=where, hint=fix)
        if not _fits(value, types[key]):
            field = f"{where}.{key}" if where else key
            raise InputError(f"must be {_name(types[key])}", file=path, field=field)


def _fits(value: Any, wanted: Any) -> bool:
    if wanted is object:
        return True
    if wanted is Path or get_origin(wanted) is Literal:
        wanted = str
    if get_origin(wanted) is list:
        (item,) = get_args(wanted)
        return isinstance(value, list) and bool(value) and all(_fits(one, item) for one in value)
    if get_origin(wanted) is dict:
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if not isinstance(wanted, type):
        return any(_fits(value, one) for one in get_args(wanted) if one is not NoneType)
    if wanted is float:
        wanted = (int, float)
    return isinstance(value, wanted) and isinstance(value, bool) <= (wanted is bool)


def _name(wanted: Any) -> str:
    if wanted is Path or get_origin(wanted) is Literal:
        return _NAMES[str]
    if get_origin(wanted) is list:
        (item,) = get_args(wanted)
        return f"a list of {'whole numbers' if item is int else 'texts'}"
    if get_origin(wanted) is dict:
        return _NAMES[dict]
    if not isinstance(wanted, type):
        return " or ".join(_name(one) for one in get_args(wanted) if one is not NoneType)
    return _NAMES[wanted]
