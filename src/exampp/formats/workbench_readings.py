"""Which rules of reading made the grades of a workbench file, as far as its replies tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import decode_json, read_lines
from exampp.formats.workbench_cells import entries, grades
from exampp.formats.workbench_json import DirectJson, SheetJson
from exampp.records import Grade, GraderIdentity
from exampp.records.grading import RatingScale
from exampp.records.readings import RuleCount, count_rules


class GradedPassageJson(msgspec.Struct):
    """The grades of a passage with their replies, and nothing else of it."""

    exam_grades: list[SheetJson] | None = None
    grades: list[DirectJson] | None = None


class RepliesLine(NamedTuple):
    """A line for counting, typed."""

    query_id: str | int
    passages: list[GradedPassageJson]


def read_readings(
    path: str | Path, grader: GraderIdentity, scale: RatingScale | None = None
) -> tuple[RuleCount, ...]:
    """The grades of one grader by rule; the file is read again, line by line.

    What cannot be read is left out: whoever read the grades has told of it.
    """
    return count_rules(_grades(path, grader, scale))


def _grades(path: str | Path, grader: GraderIdentity, scale: RatingScale | None) -> Iterator[Grade]:
    decoder = msgspec.json.Decoder(RepliesLine)
    for number, line in read_lines(path):
        with contextlib.suppress(InputError):
            typed = decode_json(line, decoder, path, number)
            for passage in typed.passages:
                for entry in entries(passage.exam_grades, passage.grades, scale):
                    if entry.identity.key == grader.key:
                        yield from grades(str(typed.query_id), entry)
