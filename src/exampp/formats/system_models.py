"""What systems were made with, as people say it: a table with the columns `system` and `uses`.

    system,uses
    dense,google/flan-t5-large
    dense,question-self-rating
    bm25,nothing

A cell of `uses` names a model, a grader, a prompt or a bank; a system may have several rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats.fields import brief, normalize_name
from exampp.formats.lines import read_text
from exampp.formats.tables import check_width, table_rows

_COLUMNS = ["system", "uses"]
_SEPARATORS = "\t,;"


class SystemUse(NamedTuple):
    """A system uses something; `place` is where that is said, as in uses.csv:3."""

    system: str
    uses: str
    place: str


def read(path: str | Path) -> list[SystemUse]:
    """Return the rows of a file.

    Each once. Raises InputError for other columns and for empty cells.
    """
    text = read_text(path)
    head = next(line for line in text.splitlines() if line.strip())
    separator = next((mark for mark in _SEPARATORS if mark in head), ",")
    rows = table_rows(text, separator, path)
    number, names = next(rows)
    columns = [normalize_name(name) for name in names]
    if columns != _COLUMNS:
        raise InputError(
            f"the columns are {', '.join(map(brief, names))}",
            file=path,
            line=number,
            hint="Name them system and uses; a system that uses several things has several rows",
        )
    found: dict[tuple[str, str], SystemUse] = {}
    for number, cells in rows:
        check_width(cells, _COLUMNS, path, number)
        system, uses = (cell.strip() for cell in cells)
        for name, value in zip(_COLUMNS, (system, uses), strict=True):
            if not value:
                raise InputError("is empty", file=path, line=number, field=name)
        found.setdefault((system, uses), SystemUse(system, uses, f"{Path(path).name}:{number}"))
    return list(found.values())
