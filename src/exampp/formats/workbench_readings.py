"""Which rules of reading made the grades of a workbench file, as far as its replies tell."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import decode_json, read_lines
from exampp.formats.workbench_cells import entries, grades, plain_cells
from exampp.formats.workbench_gradebook import RatedEntry
from exampp.formats.workbench_graders import OURS
from exampp.formats.workbench_json import DirectJson, SheetJson
from exampp.formats.workbench_rules import rule_of
from exampp.records import Grade, GraderIdentity, State
from exampp.records.graders import RatingScale
from exampp.records.readings import RuleCount, count_rules


class GradedPassageJson(msgspec.Struct):
    """The grades of a passage with their replies, and nothing else of it."""

    exam_grades: list[SheetJson] | None = None
    grades: list[DirectJson] | None = None


class RepliesLine(NamedTuple):
    """A line for counting, typed."""

    query_id: str | int
    passages: list[GradedPassageJson]


class _Replies(msgspec.Struct):
    """What an entry says beside its ratings."""

    answers: list[tuple[str, str]] = []
    llm_options: msgspec.Raw = msgspec.Raw(b"{}")
    llm_response_errors: dict[str, Any] | None = None


class _RepliedPassage(msgspec.Struct):
    exam_grades: list[_Replies]


class _RepliedLine(NamedTuple):
    """A line whose ratings are known."""

    query_id: str | int
    passages: list[_RepliedPassage]


def read_readings(
    path: str | Path,
    grader: GraderIdentity,
    scale: RatingScale | None = None,
    rated: Mapping[str, Iterable[RatedEntry]] = {},
) -> tuple[RuleCount, ...]:
    """The grades of one grader by rule; the file is read again, line by line.

    `rated` are the ratings of that grader by query, where they are known and all could be read:
    then only its replies are. What cannot be read is left out: whoever read the grades has told
    of it.
    """
    return count_rules(_grades(path, grader, scale, rated))


def _grades(
    path: str | Path,
    grader: GraderIdentity,
    scale: RatingScale | None,
    rated: Mapping[str, Iterable[RatedEntry]],
) -> Iterator[tuple[Grade, int]]:
    """Grades, each with how often it occurs there; equal cells of a line are read once."""
    decoder = msgspec.json.Decoder(RepliesLine)
    replies = msgspec.json.Decoder(_RepliedLine)
    for number, line in read_lines(path):
        counted = _replies_of(line, replies, rated)
        if counted is not None:
            yield from _read(grader, counted)
            continue
        with contextlib.suppress(InputError):
            yield from _grades_of(decode_json(line, decoder, path, number), grader, scale)


def _replies_of(
    line: bytes,
    decoder: msgspec.json.Decoder[_RepliedLine],
    rated: Mapping[str, Iterable[RatedEntry]],
) -> Counter[tuple[str | None, int]] | None:
    """(reply, rating) of a line whose ratings are known; None unless each has its reply."""
    try:
        typed = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    counted: Counter[tuple[str | None, int]] = Counter()
    if (known := rated.get(str(typed.query_id))) is None:
        return None
    for row, place, ratings in known:
        sheets = typed.passages[row].exam_grades
        if place >= len(sheets):
            return None  # a direct grade
        sheet = sheets[place]
        answers = dict(sheet.answers)
        more = sheet.llm_response_errors or _OURS in bytes(sheet.llm_options)
        if more or answers.keys() != ratings.keys():
            return None
        counted.update(zip(answers.values(), map(ratings.__getitem__, answers), strict=True))
    return counted


_OURS = b'"' + OURS.encode() + b'"'


def _grades_of(
    typed: RepliesLine, grader: GraderIdentity, scale: RatingScale | None
) -> Iterator[tuple[Grade, int]]:
    plain: Counter[tuple[str | None, int]] = Counter()
    of = grader
    try:
        for passage in typed.passages:
            for entry in entries(passage.exam_grades, passage.grades, scale):
                if entry.identity.key != grader.key:
                    continue
                cells = plain_cells(str(typed.query_id), entry)
                if cells is None or entry.identity is not of:
                    yield from _read(of, plain)
                    plain.clear()
                    of = entry.identity
                if cells is None:
                    yield from ((grade, 1) for grade in grades(str(typed.query_id), entry))
                else:
                    plain.update(cells)
    finally:
        yield from _read(of, plain)


def _read(
    grader: GraderIdentity, plain: Counter[tuple[str | None, int]]
) -> Iterator[tuple[Grade, int]]:
    for (reply, rating), count in plain.items():
        rule = rule_of(grader, reply, rating)
        yield Grade("", State.GRADED, rating, reply, rule), count
