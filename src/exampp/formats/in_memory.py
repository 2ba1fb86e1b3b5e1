"""Rows that stand where a file could: readers take them for the JSON-lines of a file of that name.

So what comes out of memory, or of a table whose columns go by names of its own, passes the same
readers, checks and messages as a file; the number of a line is that of a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError

HeldLines = Sequence[tuple[int, bytes]]
"""The rows that a name stands for: the number of each, and the row as a line of JSON."""

_HELD: ContextVar[Mapping[Path, HeldLines] | None] = ContextVar("held", default=None)


@contextmanager
def holding(lines: Mapping[Path, HeldLines]) -> Iterator[None]:
    """Let these names stand for their rows meanwhile, whatever files there are of such names."""
    token = _HELD.set(lines)
    try:
        yield
    finally:
        _HELD.reset(token)


def held(path: str | Path) -> HeldLines | None:
    """The rows that a name stands for; None where it is that of a file.

    Raises InputError where there are none.
    """
    lines = (_HELD.get() or {}).get(Path(path))
    if lines is not None and not lines:
        raise InputError("there are no rows", file=path)
    return lines


def as_lines(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, bytes]]:
    """Numbered rows of JSON-able values, each as a line of JSON."""
    for number, row in rows:
        try:
            yield number, msgspec.json.encode(row)
        except (UnicodeEncodeError, OverflowError):
            # what is no text is for the reader to tell, and so is a number beyond 64 bits
            yield number, json.dumps(row).encode()
