"""Scores of systems on every topic: a matrix, or a table of other programs that has the topics.

A matrix is a CSV or TSV file with the names of the systems in its first line and one line a topic;
a first column of topics is taken for that where its header is the name of such (`topic`, `qid`) or
empty. Tables of other programs are those of `score_tables`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import score_tables
from exampp.formats.fields import brief, real
from exampp.formats.headers import plain
from exampp.formats.leaderboards import split_measure
from exampp.formats.lines import read_lines, text_of


class ScoreMatrix(NamedTuple):
    """The scores by one measure ("" where its name is not known), [systems][topics]."""

    measure: str
    systems: tuple[str, ...]
    topics: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


def is_table(path: str | Path) -> bool:
    """Whether a file may be such a table: neither graded passages nor a collection."""
    file, _ = split_measure(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(16)
    packed = file.suffix in (".gz", ".xz", ".zst")
    return not packed and not start.startswith((b"SQLite", b"[")) and bool(start.strip())


def read(path: str | Path) -> ScoreMatrix:
    """The scores of FILE or FILE:MEASURE.

    Raises:
        InputError: A score is missing or no number, a name occurs twice, or there are several
            measures and none is named.
    """
    file, measure = split_measure(path)
    matrix = _matrix(file)
    if matrix is None:
        return _of_table(file, measure)
    if measure is not None:
        raise InputError("names no measures", file=file, mend=f"Leave :{measure} out")
    return matrix


def _of_table(file: Path, measure: str | None) -> ScoreMatrix:
    found = score_tables.read_by_topic(file)
    if not found:
        raise InputError(
            "holds no scores of topics",
            file=file,
            mend="Give a line of systems and then a line of scores a topic, or rows of run, topic, "
            "measure, value",
        )
    names = ", ".join(found)
    if measure is None and len(found) > 1:
        mend = f"Choose one: {file.name}:{next(iter(found))}"
        raise InputError(f"holds several measures: {names}", file=file, mend=mend)
    name = next(iter(found)) if measure is None else measure
    if name not in found:
        raise InputError(f"has no measure {brief(name)}", file=file, mend=f"It has {names}")
    by_system = found[name]
    topics = tuple(dict.fromkeys(topic for of in by_system.values() for topic in of))
    for system, of_system in by_system.items():
        if left := [topic for topic in topics if topic not in of_system]:
            raise InputError(
                f"system {brief(system)} has no {name} of topic {brief(left[0])}, which others "
                "have",
                file=file,
                mend="Give every system all topics",
            )
    values = tuple(tuple(of[topic] for topic in topics) for of in by_system.values())
    return ScoreMatrix(name, tuple(by_system), topics, values)


def _matrix(file: Path) -> ScoreMatrix | None:
    """The matrix of a file; None where its first line holds no names alone, or its second one."""
    lines = _cells(file)
    _, names = next(lines)
    lead = plain(names[0]) in {*score_tables.TOPIC, ""}
    systems = names[lead:]
    second = next(lines, None)
    if second is None or len(systems) < 2 or plain(names[0]) in score_tables.SYSTEM:
        return None
    if len(second[1]) != len(names) or any(_is_number(name) for name in systems):
        return None
    if not all(_is_number(cell) for cell in second[1][lead:]):
        return None
    if len(set(systems)) < len(systems):
        twice = next(name for name in systems if systems.count(name) > 1)
        raise InputError(f"system {brief(twice)} has two columns", file=file, line=1)
    topics: dict[str, list[float]] = {}
    for line, cells in (second, *lines):
        if len(cells) != len(names):
            what = f"{len(cells)} columns, but the header has {len(names)}"
            raise InputError(what, file=file, line=line)
        topic = cells[0] if lead else str(len(topics) + 1)
        if topic in topics:
            raise InputError(f"topic {brief(topic)} has two lines", file=file, line=line)
        try:
            scores = zip(systems, cells[lead:], strict=True)
            topics[topic] = [real(cell, name) for name, cell in scores]
        except InputError as error:
            raise error.at(file, line) from None
    return ScoreMatrix("", tuple(systems), tuple(topics), tuple(zip(*topics.values(), strict=True)))


def _cells(file: Path) -> Iterator[tuple[int, list[str]]]:
    separator = ""
    for line, data in read_lines(file):
        text = text_of(data, file, line)
        separator = separator or ("\t" if "\t" in text else ",")
        yield line, [cell.strip() for cell in next(csv.reader([text], delimiter=separator))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
