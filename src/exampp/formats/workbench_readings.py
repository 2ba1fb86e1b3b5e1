"""Which rules of reading made the grades of a workbench file, as far as its replies tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import decode_json, read_lines
from exampp.formats.workbench import (
    direct_grade,
    direct_identity,
    exam_grades,
    exam_identity,
    repeated,
)
from exampp.formats.workbench_json import DirectJson, SheetJson
from exampp.records import Grade, GraderIdentity
from exampp.records.readings import RuleCount, count_rules


class GradedPassageJson(msgspec.Struct):
    """The grades of a passage with their replies, and nothing else of it."""

    exam_grades: list[SheetJson] | None = None
    grades: list[DirectJson] | None = None


class RepliesLine(NamedTuple):
    """A line for counting, typed."""

    query_id: str | int
    passages: list[GradedPassageJson]


def read_readings(path: str | Path, grader: GraderIdentity) -> tuple[RuleCount, ...]:
    """The grades of one grader by rule; the file is read again, line by line.

    What cannot be read is left out: whoever read the grades has told of it.
    """
    return count_rules(_grades(path, grader))


def _grades(path: str | Path, grader: GraderIdentity) -> Iterator[Grade]:
    decoder = msgspec.json.Decoder(RepliesLine)
    for number, line in read_lines(path):
        with contextlib.suppress(InputError):
            typed = decode_json(line, decoder, path, number)
            for passage in typed.passages:
                yield from _of_passage(str(typed.query_id), passage, grader.key)


def _of_passage(query_id: str, passage: GradedPassageJson, key: str) -> Iterator[Grade]:
    taken: dict[str, int] = {}
    for entry in passage.exam_grades or ():
        identity = repeated(exam_identity(entry), taken)
        if identity.key == key:
            yield from exam_grades(entry, identity)
    for single in passage.grades or ():
        identity = repeated(direct_identity(single), taken)
        if identity.key == key:
            yield direct_grade(query_id, single, identity)
