"""Which rules of reading made the grades of a workbench file, as far as its replies tell."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import decode_json, read_lines
from exampp.formats.workbench_cells import entries, grades, plain_cells
from exampp.formats.workbench_json import DirectJson, SheetJson
from exampp.formats.workbench_rules import rule_of
from exampp.records import Grade, GraderIdentity, State
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


def _grades(
    path: str | Path, grader: GraderIdentity, scale: RatingScale | None
) -> Iterator[tuple[Grade, int]]:
    """Grades, each with how often it occurs there; equal cells of a line are read once."""
    decoder = msgspec.json.Decoder(RepliesLine)
    for number, line in read_lines(path):
        plain: Counter[tuple[str | None, int]] = Counter()
        of = grader
        with contextlib.suppress(InputError):
            typed = decode_json(line, decoder, path, number)
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
        yield from _read(of, plain)


def _read(
    grader: GraderIdentity, plain: Counter[tuple[str | None, int]]
) -> Iterator[tuple[Grade, int]]:
    for (reply, rating), count in plain.items():
        rule = rule_of(grader, reply, rating)
        yield Grade("", State.GRADED, rating, reply, rule), count
