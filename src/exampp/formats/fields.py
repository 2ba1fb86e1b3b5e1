"""What one field of a file may be, and how one that may not recur is found to recur."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Hashable
from pathlib import Path

from exampp.errors import InputError, Repeated

LARGEST_WEIGHT = 1e9
"""Of an item: sums of weights stay exact enough below it."""


def brief(value: object, limit: int = 60) -> str:
    """The value as it may stand in a message: quoted, on one line, cut where it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def digest(text: str) -> str:
    """Return the MD5 of a text without the spaces around it, in hexadecimal digits."""
    clean = text.strip().encode(errors="surrogatepass")
    return hashlib.md5(clean, usedforsecurity=False).hexdigest()


def _plain(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def integer(data: bytes, field: str, limit: int = 2**31 - 1) -> int:
    """The integer that the text spells; InputError if it is none or beyond +-`limit`."""
    # Python reads 1_000 as a number; no other tool of the field does.
    try:
        value = int(data) if b"_" not in data else None
    except ValueError:
        value = None
    if value is None:
        raise InputError(f"{brief(_plain(data))} is not an integer", field=field)
    if abs(value) > limit:
        raise InputError(f"{brief(value)} is beyond +-{limit}", field=field)
    return value


def real(text: str | bytes, field: str) -> float:
    """The finite number that the text spells; InputError if it is none, NaN or infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in _plain(text):
        raise InputError(f"{brief(_plain(text))} is not a finite number", field=field)
    return value


def number(value: object, field: str) -> float:
    """The finite number that a value of JSON is; InputError if it is none."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if isinstance(value, str) or not math.isfinite(found):
        raise InputError("is not a finite number", field=field)
    return found


def check_weight(weight: float) -> float:
    """The weight of an item; InputError if it is negative, or so large that sums lose digits."""
    if not 0 <= weight <= LARGEST_WEIGHT:
        what = f"the weight {weight:g} is not between 0 and {LARGEST_WEIGHT:g}"
        raise InputError(what, field="weight")
    return weight


class FirstLines:
    """Remembers on which line every key came first, in 18 to 36 bytes a key.

    Keys are kept as 64-bit hashes (two of 7 million differing keys are taken for equal with a
    probability of one in a million) in a table with open addressing, at most two thirds full.
    """

    def __init__(self) -> None:
        self._resize(1 << 10)
        self._count = 0

    def _resize(self, size: int) -> None:
        self._mask = size - 1
        self._hashes = array("q", bytes(8)) * size
        self._lines = array("I", bytes(4)) * size

    def add(self, key: Hashable, line: int) -> int:
        """The line on which the key came before, or 0 where it is new and is now remembered."""
        value = hash(key) or 1
        slot = self._slot(value)
        if self._hashes[slot]:
            return self._lines[slot]
        self._hashes[slot] = value
        self._lines[slot] = line
        self._count += 1
        if 3 * self._count > 2 * self._mask:
            self._grow()
        return 0

    def _slot(self, value: int) -> int:
        hashes, mask = self._hashes, self._mask
        slot = value & mask
        found = hashes[slot]
        while found and found != value:
            slot = (slot + 1) & mask
            found = hashes[slot]
        return slot

    def _grow(self) -> None:
        old = zip(self._hashes, self._lines, strict=True)
        self._resize(2 * (self._mask + 1))
        for value, line in old:
            if value:
                slot = self._slot(value)
                self._hashes[slot] = value
                self._lines[slot] = line


def duplicate_error(
    what: str, first: int, path: str | Path, line: int, field: str = ""
) -> Repeated:
    """The error for `what` (such as "the query '7'") that was on line `first` already."""
    place = "this line" if first == line else f"line {first}"
    return Repeated(
        f"{what} was on {place} already",
        file=path,
        line=line,
        field=field,
        mend="Remove one of the two",
    )
