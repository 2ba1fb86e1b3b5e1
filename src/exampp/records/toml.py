"""Files that people write in TOML: what every one of them must be, and where it is not."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.sanitize import LARGEST, check_path, sanitize

DEEPEST = 20
"""Levels of tables and lists: more than any declaration has."""
_LINE = re.compile(r"\(at line (\d+)")


def read_toml(path: str | Path, missing: str = "Check the path") -> dict[str, Any]:
    """The tables of a file; InputError where it cannot be read, with `missing` as the hint."""
    path = check_path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", file=path, hint=missing) from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", file=path, hint="Convert the file to UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None
    return parse_toml(text, path)


def parse_toml(text: str, file: str | Path | None = None, hint: str = "") -> dict[str, Any]:
    """The tables of a text.

    InputError, with the line, for broken TOML, and with the field for nesting that nobody needs, a
    number that is not finite or beyond 64 bits, and a text with a NUL.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) if found else None
        raise InputError(f"broken TOML ({error})", file=file, line=line, hint=hint) from None
    except (ValueError, OverflowError) as error:
        # a number of thousands of digits, a date that no calendar has
        raise InputError(f"broken TOML ({error})", file=file, hint=hint) from None
    except RecursionError:
        raise InputError("broken TOML (nested too deeply)", file=file, hint=hint) from None
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
        return "holds a NUL character"
    if isinstance(value, int) and abs(value) > LARGEST:
        return "is a number beyond 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    return ""
