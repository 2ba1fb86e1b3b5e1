"""Several banks in one file: the bank of each line, such as that of a team or a run.

A field `bank` names it. Otherwise the run of a line does, or its team, at the top of the line or in
its `metadata`, if the file has several of them. Lines of one query each are of several banks only
if a query occurs again, in the file or in another file of the import (`runs_name_banks`): a single
bank may have been written by several runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats.json_values import JSON_OBJECT
from exampp.formats.lines import read_lines

RUN, TEAM = ("run_id", "run_tag", "run"), ("team_id", "team")
_QUERY = ("query_id", "qid", "topic_id", "request_id", "narrative_id")
_SUBTOPIC = ("facet_id", "subtopic_id")
_NAMES = (_QUERY, _SUBTOPIC, ("bank",), RUN, TEAM)


class _Names(NamedTuple):
    """The names in a line, "" where it has none."""

    query: str
    subtopic: str
    bank: str
    run: str
    team: str


def names_of_banks(
    path: str | Path, *, whole_queries: bool, by_run: bool = False
) -> Mapping[int, str]:
    """Return the bank of each line of a JSON-lines file; empty if the lines are of one bank.

    `whole_queries`: a line has all items of a query, not a single one. `by_run`: the run names the
    bank, even if it is the only one. Lines that cannot be read are left to the reader.
    """
    numbered = [*_read_names(path)]
    rows = [names for _, names in numbered]
    may_differ = by_run or not whole_queries or len({one[:2] for one in rows}) < len(rows)
    stated, runs, teams = ([one[at] for one in rows] for at in (2, 3, 4))
    names = join_names(stated, runs, teams, 1 if by_run else 2) if may_differ else stated
    return {number: name for (number, _), name in zip(numbered, names, strict=True) if name}


def runs_name_banks(paths: Iterable[str | Path]) -> bool:
    """Return whether two of these files have items of different runs for one query."""
    runs_of: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for path in paths:
        runs: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for _, names in _read_names(path):
            if names.run or names.team:
                runs.setdefault(names[:2], set()).add(names[3:])
        for place, own in runs.items():
            if runs_of.setdefault(place, own) != own:
                return True
    return False


def _read_names(path: str | Path) -> Iterator[tuple[int, _Names]]:
    """Yield the names in each line of a JSON-lines file; nothing for other files."""
    with suppress(InputError):
        for number, line in read_lines(path):
            with suppress(ValueError, RecursionError):
                row = JSON_OBJECT.decode(line)
                yield number, _Names(*(_value(row, names) for names in _NAMES))


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


def _value(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of the fields that has a text or a number, in the row or its metadata."""
    metadata = row.get("metadata")
    for holder in (row, metadata if isinstance(metadata, Mapping) else {}):
        for name in names:
            value = holder.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
    return ""
