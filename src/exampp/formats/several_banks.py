"""Several banks in one file: the bank of each line, such as that of a team or a run.

A field `bank` names it. Otherwise the run of a line does, or its team, at the top of the line or in
its `metadata`, if the file has several of them. Lines of one query each are of several banks only
if a query occurs again: a single bank may have been written by several runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.json_values import JSON_OBJECT
from exampp.formats.lines import read_lines
from exampp.formats.read_warnings import add_warning
from exampp.records.wording import counted

RUN, TEAM = ("run_id", "run_tag", "run"), ("team_id", "team")
_QUERY = ("query_id", "qid", "topic_id", "request_id", "narrative_id")
_SUBTOPIC = ("facet_id", "subtopic_id")
_NAMES = (_QUERY, _SUBTOPIC, ("bank",), RUN, TEAM)


def names_of_banks(path: str | Path, *, whole_queries: bool) -> Mapping[int, str]:
    """Return the bank of each line of a JSON-lines file; empty if the lines are of one bank.

    `whole_queries`: a line has all items of a query, not a single one. Lines that cannot be read
    are left to the reader.
    """
    numbers: list[int] = []
    rows: list[tuple[str, ...]] = []
    with suppress(InputError):
        for number, line in read_lines(path):
            with suppress(ValueError, RecursionError):
                row = JSON_OBJECT.decode(line)
                rows.append(tuple(_value(row, names) for names in _NAMES))
                numbers.append(number)
    if not rows:
        return {}
    queries, subtopics, stated, runs, teams = zip(*rows, strict=True)
    may_differ = not whole_queries or len({*zip(queries, subtopics, strict=True)}) < len(rows)
    names = join_names(stated, runs, teams) if may_differ else stated
    if may_differ and not any(stated) and any(names):
        warn_of_banks(path, names)
    return {number: name for number, name in zip(numbers, names, strict=True) if name}


def join_names(
    stated: Sequence[str], runs: Sequence[str], teams: Sequence[str], least: int = 2
) -> list[str]:
    """Return the bank of each row: as stated, or else its run or team if there are `least` of them.

    If two teams have a run of one name, a bank is called `team/run`.
    """
    if any(stated):
        return [*stated]
    pairs = [*zip(teams, runs, strict=True)]
    if len({*pairs}) < least:
        return [""] * len(pairs)
    if all(runs) and len({*runs}) == len({*pairs}):
        return [*runs]
    return ["/".join(filter(None, pair)) for pair in pairs]


def warn_of_banks(path: str | Path, names: Iterable[str]) -> None:
    """Warn that runs or teams name the banks of a file."""
    banks = [*dict.fromkeys(filter(None, names))]
    shown = ", ".join(banks[:3]) + ", ..." * (len(banks) > 3)
    add_warning(path, None, f"read as {counted(len(banks), 'bank')}, one per run: {shown}")


def _value(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of the fields that has a text or a number, in the row or its metadata."""
    metadata = row.get("metadata")
    for holder in (row, metadata if isinstance(metadata, Mapping) else {}):
        for name in names:
            value = holder.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
    return ""
