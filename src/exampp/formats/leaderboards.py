"""Official leaderboards: a JSON dictionary of system to rank, or lines of system and rank.

Tables of scores that other programs write are read too, see `score_tables`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.formats import score_tables
from exampp.formats.fields import MEASURE, VALUE, brief, real
from exampp.formats.format import FirstRecords, Format, Shape, is_number
from exampp.formats.lines import (
    Key,
    OnError,
    encode_text,
    parse_each,
    raise_error,
    read_lines,
    read_pairs,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.trec import SYSTEM_KEYS

R = TypeVar("R")
_RANKS = frozenset({"rank", "ranks", "ranking", "position", "place", "pos", "#"})
"""Headers of a column of ranks."""

_RANK_LIKE = ("rank", "position", "place")
"""Within any other header they leave open which end is the best: reciprocal rank, rank score."""

_NO_NUMBERS = frozenset({"", "null", "none", "na", "n/a", "-"})
"""Cells that stand where a number is missing; in the first line they do not make it a header."""


def read(path: str | Path, on_error: OnError = raise_error) -> dict[str, float]:
    """Return the rank of every system, sorted by name, 1 being the best.

    Ties and fractions are kept.

    Lines may be separated by tabs, commas or other whitespace. A header whose second column is
    not a rank (`score`, `nDCG@10` ...) says that higher is better: the scores are turned into
    ranks, equal ones sharing the average. Without a header, and in JSON, numbers are ranks.
    InputError for a system without a finite number, a rank below 1, a system that occurs twice,
    and a header that may mean either.

    A table of scores of another program (`score_tables`), or a folder of such, is ranked by its
    only measure, or by the one that is named behind the path: `FILE:MEASURE`.
    """
    values, is_score = _values(path, on_error)
    return _sorted(ranks_of(values) if is_score else values)


def read_scores(path: str | Path, on_error: OnError = raise_error) -> dict[str, float]:
    """Return the score of every system, higher being better.

    Ranks are negated. Raises as `read` does.
    """
    values, is_score = _values(path, on_error)
    return _sorted(values if is_score else {system: -rank for system, rank in values.items()})


def _sorted(values: Mapping[str, float]) -> dict[str, float]:
    """Sort by system: figures depend on the content of a file, not on the order of its lines."""
    return dict(sorted(values.items()))


def _values(path: str | Path, on_error: OnError) -> tuple[dict[str, float], bool]:
    """Return the number of every system, and whether these are scores, not ranks."""
    path, measure = score_tables.split_measure(path)
    if path.is_dir():
        return dict(score_tables.one_of(score_tables.read_folder(path), measure, path)), True
    if (scores := score_tables.read(path)) is not None:
        return dict(score_tables.one_of(scores, measure, path)), True
    if measure is not None:
        raise InputError("names no measures", file=path, mend=f"Leave :{measure} out")
    first, head = next(read_lines(path))
    is_score = False
    if head.lstrip().startswith((b"{", b"[")):
        pairs = ((number, (system, value)) for number, system, value in read_pairs(path))
        return dict(parse_each(pairs, path, on_error, _ranked(_from_pair), _KEY)), False
    header = _header(head, path)
    is_score = header is not None and _is_score(header[1], path, first)
    split = _splitter(text_of(head, path, first))
    parse = partial(_from_line, path, split, first if header else 0)
    lines = read_lines(path)
    found = parse_each(lines, path, on_error, parse if is_score else _ranked(parse), _KEY)
    return dict(found), is_score


_SystemValue = tuple[str, float]
_KEY = Key(lambda one: one[0], lambda one: f"system {brief(one[0])}", "system")


def _ranked(
    parse: Callable[[R, int], _SystemValue | None],
) -> Callable[[R, int], _SystemValue | None]:
    """Return `parse` with a check that numbers are ranks."""

    def checked(row: R, number: int) -> _SystemValue | None:
        found = parse(row, number)
        if found and found[1] < 1:
            raise InputError(
                f"the rank of system {brief(found[0])} is {found[1]:g}, but ranks start at 1",
                field="rank",
                mend="If these are scores, call the column `score`: in a header line of a file, or "
                'as in {"system": [...], "score": [...]}',
            )
        return found

    return checked


def of_rows(rows: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> dict[str, float]:
    """Return the rank of every system.

    1 being the best, out of rows of two columns, with their numbers.

    One column is the system, the other says by its name what it holds, as in a file (see `read`,
    also for what is raised); `name` is what messages call the leaderboard. Or the columns are
    those of a table of scores (`score_tables`) of one measure.
    """
    rows = list(rows)
    # a value that is missing is no column of its row
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    if (scores := score_tables.of_rows(names, rows, name)) is not None:
        return _sorted(ranks_of(_only(scores, name)))
    header = _columns_of(names, name)
    is_score = _is_score(header[1], name, None)
    parse = partial(_from_row, header)
    found = parse_each(rows, name, raise_error, parse if is_score else _ranked(parse), _KEY)
    values = dict(found)
    return _sorted(ranks_of(values) if is_score else values)


def _from_row(header: tuple[str, str], row: Mapping[str, Any], _: int) -> _SystemValue:
    system, value = map(row.get, header)
    if not isinstance(system, str) or not system.strip():
        raise InputError(f"{brief(system)} names no system", field=header[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("must be a number", field=header[1])
    return system, real(str(value), header[1])


def _only(scores: score_tables.Scores, name: str) -> Mapping[str, float]:
    """Return the scores by the only measure."""
    if len(scores) != 1:
        what = f"holds several measures: {', '.join(scores)}" if scores else "holds no score"
        mend = "Give the rows of one, as evaluate(['Cover@20'], min_rating=4) has them"
        raise InputError(what, file=name, mend=mend)
    return next(iter(scores.values()))


def _columns_of(names: Sequence[str], name: str) -> tuple[str, str]:
    """Return the names of the columns of systems and of their ranks or scores."""
    system = next((key for key in names if key.lower() in SYSTEM_KEYS), None)
    others = [key for key in names if key != system]
    if system is None or len(others) != 1:
        raise InputError(
            f"is no two columns, system and rank or score, but {', '.join(map(brief, names)) or 0}",
            file=name,
            mend="Choose two, as in frame[['system', 'nDCG@10']]",
        )
    return system, others[0]


def files_of(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files that are read, without the measures behind them; of a folder those in it."""
    for path, _ in map(score_tables.split_measure, paths):
        yield path
        yield from path.iterdir() if path.is_dir() else ()


def _is_score(name: str, path: str | Path, number: int | None) -> bool:
    """Return whether a column of this name holds scores; if not, it holds ranks."""
    lowered = name.lower()
    if lowered not in _RANKS and any(word in lowered for word in _RANK_LIKE):
        raise InputError(
            f"the header {brief(name)} may mean ranks or scores",
            file=path,
            line=number,
            field="column 2",
            mend="Call the column `rank` (1 is best) or `score` (higher is better)",
        )
    return lowered not in _RANKS


def ranks_of(scores: Mapping[str, float]) -> dict[str, float]:
    """Return ranks from 1 of the highest score on.

    Equal scores share the average of their ranks.
    """
    ranks: dict[str, float] = {}
    ordered = sorted(scores, key=lambda system: -scores[system])
    for _, group in groupby(ordered, key=lambda system: scores[system]):
        tied = list(group)
        ranks |= dict.fromkeys(tied, len(ranks) + (len(tied) + 1) / 2)
    return {system: ranks[system] for system in scores}


def _from_pair(pair: tuple[str, object], _: int) -> _SystemValue:
    system, value = pair
    if not system.strip():
        raise InputError("the name of a system is blank")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("the rank must be a number", field=system)
    return system, real(str(value), system)


def _splitter(head: str) -> Callable[[str], list[str]]:
    """How to split the lines of a file that starts with `head`."""
    if "\t" in head:
        return lambda line: line.split("\t")
    if "," in head:
        return lambda line: next(csv.reader([line], strict=True, skipinitialspace=True))
    return str.split


def _columns(line: str, split: Callable[[str], list[str]]) -> list[str]:
    try:
        columns = [column.strip() for column in split(line)]
    except csv.Error as error:
        raise InputError(f"broken CSV ({error})") from None
    if len(columns) != 2:
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2 (system, rank)"
        )
    return columns


def _header(head: bytes, path: str | Path) -> list[str] | None:
    """Return the names of the columns, if the first line gives them."""
    text = text_of(head, path, 1)
    try:
        columns = _columns(text, _splitter(text))
    except InputError:
        return None
    return None if is_number(columns[1]) or columns[1].lower() in _NO_NUMBERS else columns


def _from_line(
    path: str | Path, split: Callable[[str], list[str]], start: int, line: bytes, number: int
) -> _SystemValue | None:
    if number == start:
        return None
    system, value = _columns(text_of(line, path, number), split)
    if not system:
        raise InputError("the name of a system is blank", field="column 1")
    return system, real(value, "column 2")


def write(path: str | Path, ranks: Mapping[str, float]) -> None:
    """Write lines of system, tab, rank below a header; InputError for what would not read back."""
    with writing(path) as stream:
        stream.write(b"system\trank\n")
        for system, rank in ranks.items():
            if system != system.strip() or not system or system.splitlines() != [system]:
                raise InputError(f"system {brief(system)} cannot be written", file=path)
            if "\t" in system or not (math.isfinite(rank) and rank >= 1):
                raise InputError(f"system {brief(system)} cannot be written", file=path)
            stream.write(encode_text(f"{system}\t{float(rank)!r}\n", path))


def _sniff(sample: FirstRecords) -> bool:
    if sample.has_scores or sample.is_json:
        return sample.has_scores or sample.is_dictionary("-0123456789")
    separator = next((mark for mark in "\t," if mark in sample.head), None)
    if sample.widths(separator) != {2} or sample.is_plain_bank:
        return False
    first, *rest = sample.columns(separator)
    return all(is_number(row[1]) for row in ((first, *rest) if is_number(first[1]) else rest)) and (
        is_number(first[1]) or bool(rest)
    )


FORMAT = Format(
    "",
    sniff=_sniff,
    name="leaderboard",
    shapes=(Shape((MEASURE, VALUE)), Shape((("examScore",),))),
    header=r"(system|run|run_?id|method)\t|[^\t]*\t[^\t]*(rank|score)",
    file_name="leaderboard|rank",
    looks="JSON dictionary system → rank; two columns; tables of scores, see "
    "[analysis.md](analysis.md)",
    source="trec_eval, ir_measures, AutoJudge, Autograding Workbench",
)
