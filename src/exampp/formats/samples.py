"""The first lines of a file, split in the ways that formats split them."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from exampp.formats.fields import brief
from exampp.formats.headers import names_of, plain
from exampp.formats.in_memory import held
from exampp.formats.json_objects import OBJECT
from exampp.formats.lines import plain_name, valid_json
from exampp.formats.runs import lines_of

_SAMPLE = 5
_LONGEST = 1 << 20
"""Bytes of a line that are split into columns."""
_FIRST_PAIR = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(\S)')
_START = 4000
_KEY = re.compile(r'\s*\{?\s*"((?:[^"\\]|\\.)*)"\s*:')


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """What is known of a file: its first lines, split in ways that formats split them."""

    name: str
    lines: tuple[str, ...]
    keys: frozenset[str]
    first_value: str
    fields: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The plain names of the keys with which the lines start."""
        found = (match[1] for line in self.lines for match in [_KEY.match(line)] if match)
        return frozenset(map(plain, (*self.keys, *found)))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns, if the first line names them."""
        separator = "\t" if "\t" in self.head else None
        return () if is_json(self) else names_of(self.head.split(separator))

    @property
    def found(self) -> str:
        """The fields, columns or first line, for messages."""
        if self.fields:
            return f"fields found: {', '.join(self.fields)}"
        if self.header:
            return f"columns found: {', '.join(self.head.split())}"
        count = len(self.head.split("\t"))
        start = f"first line: {brief(self.head)}"
        return f"{count} columns without names, {start}" if count > 1 else start

    @property
    def head(self) -> str:
        """The first line."""
        return self.lines[0]

    @property
    def start(self) -> str:
        """The first characters."""
        return "\n".join(self.lines)[:_START]

    def columns(self, separator: str | None) -> list[list[str]]:
        """Return the columns of each line."""
        return [line.split(separator) for line in self.lines]

    def widths(self, separator: str | None) -> set[int]:
        """Return the numbers of columns that lines have."""
        return {len(columns) for columns in self.columns(separator)}


def sample_of(path: str | Path) -> FirstRecords:
    """Return the first lines of a file, or of the rows that stand for it."""
    data = [line for _, line in islice(lines_of(path), _SAMPLE)]
    fields: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    with suppress(ValueError, RecursionError):
        decoded = OBJECT.decode(valid_json(data[0], path, None))
        fields = tuple(decoded)
        values = tuple(bytes(value)[:8].decode(errors="replace") for value in decoded.values())
    lines = tuple(line[:_LONGEST].decode(errors="replace") for line in data)
    pair = _FIRST_PAIR.match("\n".join(lines))
    # rows out of memory or of a table are no dictionary
    first = "?" if pair is None or held(path) else pair[2]
    return FirstRecords(plain_name(path), lines, frozenset(fields), first, fields, values)


def is_json(sample: FirstRecords) -> bool:
    """Tell whether the first line starts as JSON."""
    return sample.head.lstrip().startswith(("{", "["))
