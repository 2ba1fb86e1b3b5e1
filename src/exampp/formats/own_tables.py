"""Leaderboards that exampp itself printed, as lines of cells, the names of the columns first.

JSON is one table or several by name, of which the first holds the scores. In text and Markdown the
columns are found by the rule below their names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.results.result import UNLINKED
from exampp.results.text import width_of

Lines = list[tuple[int, list[str]]]
"""Number of the line, and its cells."""
_RULE = re.compile(r"-+(  -+)+")
_MARKDOWN_RULE = re.compile(r"\|(-+:?\|)+")
_CELL = re.compile(r"((?:\\.|[^\\|])*)\|")
_ESCAPED = re.compile(r"\\([\\|*`<\[_~&])")
_BESIDE = frozenset({"\u00b1", "ungraded", "passages", "official rank"})
"""Columns beside those of the measures; those of official ranks of several begin with `rank in`."""
_ELSE = re.compile(r"\\begin\{table\*?\}(\[\w+\])?|\\toprule|<(table|figure|div)\b.*>")
_HEAD = 10
"""Lines in which a table in LaTeX or HTML begins."""


def from_json(path: str | Path) -> Lines | None:
    """The first table with rows of a JSON document; None where there is none."""
    data = b"\n".join(line for _, line in read_lines(path))
    try:
        found: Any = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        # whoever reads something else there says what is wrong
        return None
    tables = [found, *found.values()] if isinstance(found, dict) else []
    for table in tables:
        rows = table.get("rows") if isinstance(table, dict) else None
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            names = list(dict.fromkeys(name for row in rows for name in row))
            return [(1, names), *((1, [cell(row.get(name)) for name in names]) for row in rows)]
    return None


def cell(value: object) -> str:
    """A value as a cell; empty where there is none."""
    return "" if value is None else str(value)


def from_text(path: str | Path) -> Lines | None:
    """The first table for people, text or Markdown; None where there is no rule.

    Raises InputError for LaTeX and HTML, and for graders side by side, whose names stand above the
    columns.
    """
    lines = [(number, data.decode(errors="replace")) for number, data in read_lines(path)]
    if any(_ELSE.fullmatch(line.strip()) for _, line in lines[:_HEAD]):
        raise _for_people(path)
    for (number, names), (_, rule) in pairwise(lines):
        for pattern, cells in ((_RULE, _between), (_MARKDOWN_RULE, _piped)):
            if pattern.fullmatch(rule.strip()):
                table = [(number, cells(names, rule)), *_below(lines, number + 1, rule, cells)]
                return _of_measures(table, path)
    return None


def _below(lines: Sequence[tuple[int, str]], rule: int, text: str, cells: Any) -> Iterator[Any]:
    """The rows right below the rule: an empty line or a note ends them."""
    for expected, (number, line) in enumerate((one for one in lines if one[0] > rule), rule + 1):
        if number != expected or line.startswith("* "):
            return
        yield number, cells(line, text)


def _between(line: str, rule: str) -> list[str]:
    starts = [one.start() for one in re.finditer("-+", rule)]
    # a character may take two columns of a terminal, or none
    ends = list(accumulate(map(width_of, line)))
    places = [bisect_right(ends, start) for start in starts[1:]]
    return [line[start:end].strip() for start, end in pairwise([0, *places, None])]


def _piped(line: str, _rule: str) -> list[str]:
    cells = _CELL.findall(line.strip())[1:]
    return [_ESCAPED.sub(r"\1", cell.replace(UNLINKED, "")).strip() for cell in cells]


def _of_measures(table: Lines, path: str | Path) -> Lines:
    """The columns of systems and measures; a hyphen is a measure without a value."""
    names = table[0][1]
    kept = [
        at
        for at, name in enumerate(names)
        if name not in _BESIDE and not name.startswith("rank in ")
    ]
    chosen = [names[at] for at in kept]
    if len(set(chosen)) < len(chosen) or any(name.startswith("\u2265") for name in chosen):
        raise _for_people(path)
    return [
        (number, ["" if at and cells[at] == "-" else cells[at] for at in kept])
        for number, cells in table
    ]


def _for_people(path: str | Path) -> InputError:
    return InputError(
        "is a table for people to look at",
        file=path,
        mend="Write it with --format tsv, csv or json, which hold all digits, too",
    )
