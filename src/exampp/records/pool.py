"""The pool of a query: its passages with everything that is known of each.

Passages, judgments, rankings and grades come with their residue, what a file said of them beyond
the record (see `formats.residue`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exampp.records.grading import Grade, GraderIdentity
from exampp.records.topics import Judgment, RankedPassage

Residue = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PassageGrades:
    """One grader's grades of one passage: an entry of `exam_grades`, or of `grades` where the
    grader's kind is "query".

    `scale_unshown`: no rating of the grader shows its whole scale, so that a file must state it.
    `verified`: known answers played a part in the grades.
    """

    grader: GraderIdentity
    grades: tuple[Grade, ...]
    residue: Residue = None
    scale_unshown: bool = False
    verified: bool = False


@dataclass(frozen=True, slots=True)
class PooledPassage:
    """A passage in the pool of one query, with all that the file says of it."""

    passage_id: str
    text: str
    title: str = ""
    judgments: tuple[tuple[Judgment, Residue], ...] = ()
    rankings: tuple[tuple[RankedPassage, Residue], ...] = ()
    sheets: tuple[PassageGrades, ...] = ()
    residue: Residue = None


@dataclass(frozen=True, slots=True)
class QueryPool:
    """One line of a workbench file."""

    query_id: str
    passages: tuple[PooledPassage, ...]
