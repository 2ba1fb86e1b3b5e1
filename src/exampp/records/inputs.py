"""Queries, passages, judgments, rankings and pools.

Passages, judgments, rankings and grades keep the additional fields of their file (see
`formats.residue`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from exampp.records.graders import Grade, GraderIdentity, GradingTarget
from exampp.sanitize import check_integer, parse_digits


@dataclass(frozen=True, slots=True)
class Subtopic:
    """A subtopic of a query."""

    subtopic_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A query (topic) and its subtopics; `text` is empty if only the id is known.

    The right response to a query that is not `answerable` is to abstain; None: not stated.
    """

    query_id: str
    text: str = ""
    subtopics: tuple[Subtopic, ...] = ()
    answerable: bool | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage. `extra` has the other fields of its file as JSON data."""

    passage_id: str
    text: str
    title: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A line of a run: a passage returned by a system for a query or subtopic.

    `query_id` is as written in the run, `query` or `query/subtopic`.
    """

    query_id: str
    passage_id: str
    rank: int
    score: float
    system: str


@dataclass(frozen=True, slots=True)
class Judgment:
    """A human relevance judgment; `query_id` is as written in the file."""

    query_id: str
    passage_id: str
    relevance: int
    subtopic_id: str | None = None


PASSAGE_TOKENS = 400
"""Default maximum tokens of a passage, to fit a FLAN-T5 (512 tokens) with a question (paper 000,
section 5.1).
"""
CACHED_CELLS = 100_000
"""Default number of grades that a scorer caches, about 50 MB."""
DEFAULT_MIN_RELEVANT = 2
"""Default of the lowest judgment of a relevant passage (convention of TREC DL)."""


def relevance_threshold(min_relevant: int | None, highest: int | None) -> int:
    """Return the lowest judgment of a relevant passage.

    This is `min_relevant`; the default is 2, or 1 if no judgment is higher.

    Raises:
        InputError: It is not a whole number from 1 on.
    """
    if min_relevant is not None:
        return check_integer("min_relevant", min_relevant, 1)
    return max(1, min(DEFAULT_MIN_RELEVANT, DEFAULT_MIN_RELEVANT if highest is None else highest))


_MARK = "#"


class CitedSentence(NamedTuple):
    """The position of a sentence: query, system, and number in the answer, from 1."""

    query_id: str
    system: str
    number: int

    @property
    def key(self) -> str:
        """Return the id without spaces: `query#system#number`, quoted as in a URL."""
        parts = (quote(self.query_id, safe=":"), quote(self.system, safe=":"), str(self.number))
        return _MARK.join(parts)


def read_sentence(key: str) -> CitedSentence | None:
    """Parse the id of a sentence; None for other ids."""
    parts = key.split(_MARK)
    place = parse_digits(parts[2]) if len(parts) == 3 else None
    return None if place is None else CitedSentence(unquote(parts[0]), unquote(parts[1]), place)


class SystemCount(NamedTuple):
    """A system, the number of its rankings, and its mean number of passages per query."""

    system: str
    rankings: int
    passages: float


Residue = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PassageGrades:
    """One grader's grades of one passage.

    An entry of `exam_grades`, or of `grades` if the grader's kind is "query". `scale_unshown`: the
    ratings do not show the whole scale, so a file must state it. `verified`: answer keys affected
    the grades. `target`: the grader grades only cells that these measures need.
    """

    grader: GraderIdentity
    grades: tuple[Grade, ...]
    residue: Residue = None
    scale_unshown: bool = False
    verified: bool = False
    target: GradingTarget | None = None


@dataclass(frozen=True, slots=True)
class PooledPassage:
    """A passage in the pool of a query, with all fields of its file."""

    passage_id: str
    text: str
    title: str = ""
    judgments: tuple[tuple[Judgment, Residue], ...] = ()
    rankings: tuple[tuple[RankedPassage, Residue], ...] = ()
    sheets: tuple[PassageGrades, ...] = ()
    residue: Residue = None


@dataclass(frozen=True, slots=True)
class QueryPool:
    """A line of a Workbench file."""

    query_id: str
    passages: tuple[PooledPassage, ...]
