"""Files that are one JSON object, with the records in an array somewhere inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.lines import elements, expect_mark, read_text, skip_space, valid_json

_LARGEST_HEAD = 1 << 16
_VALUE = json.JSONDecoder()


def may_hold(head: str, place: str) -> bool:
    """Whether an object that starts so may have an array at `place`, a dotted path."""
    first = re.escape(place.partition(".")[0])
    after = r"\s*\{" if "." in place else r"\s*\["
    return re.search(rf'[{{,]\s*"{first}"\s*:{after}', head[:_LARGEST_HEAD]) is not None


def records(path: str | Path, place: str) -> Iterator[tuple[int, Any]]:
    """Yield (line where it begins, value) of the array at `place` of the object in a file.

    NaN and the infinities, which Python writes and JSON does not know, are null. Raises InputError
    with the line where the file is broken or cut off, and where there is no array.
    """
    text = valid_json(read_text(path).encode(), path, None).decode()
    line, counted = 1, 0
    try:
        json.loads(text)
        start = _place_of(text, skip_space(text, 0), place.split("."))
        if start is None or text[start : start + 1] != "[":
            raise InputError(f"no list `{place}`", file=path)
        for begin, end in elements(text, start):
            line += text.count("\n", counted, begin)
            counted = begin
            yield line, json.loads(text[begin:end], parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        raise InputError(f"broken JSON ({error.msg})", file=path, line=error.lineno) from None
    except (RecursionError, ValueError):
        what = "broken JSON (nested too deeply, or a number too long)"
        raise InputError(what, file=path, line=line) from None


def _place_of(text: str, place: int, keys: Sequence[str]) -> int | None:
    """Where the value of a path of keys starts in an object that starts at `place`."""
    if not keys:
        return place
    place, mark = expect_mark(text, place, "{"), ","
    while mark == "," and text[place : place + 1] != "}":
        key, place = _VALUE.raw_decode(text, place)
        place = expect_mark(text, place, ":")
        if key == keys[0]:
            return _place_of(text, place, keys[1:])
        _, place = _VALUE.raw_decode(text, place)
        place = skip_space(text, place)
        mark = text[place : place + 1]
        place = skip_space(text, place + 1)
    return None
