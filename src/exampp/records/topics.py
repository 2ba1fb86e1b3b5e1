"""Queries, passages, runs and judgments, as the field knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exampp.outside import check_whole


@dataclass(frozen=True, slots=True)
class Subtopic:
    """A subtopic of a query."""

    subtopic_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A query (topic) and its subtopics; `text` is empty where only the id is known."""

    query_id: str
    text: str = ""
    subtopics: tuple[Subtopic, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the judgment pool. `extra` keeps what else its file said of it, JSON-able."""

    passage_id: str
    text: str
    title: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """One line of a run: a system returned a passage for a query (or one of its subtopics).

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


DEFAULT_MIN_RELEVANT = 2
"""The lowest judgment of a relevant passage unless people say otherwise (TREC DL's convention)."""


def relevant_from(min_relevant: int | None, highest: int | None) -> int:
    """The lowest judgment of a relevant passage: `min_relevant`, or where it is None 2, or 1 where
    no judgment is higher.

    Raises:
        InputError: It is no whole number from 1 on.
    """
    if min_relevant is not None:
        return check_whole("min_relevant", min_relevant, 1)
    return max(1, min(DEFAULT_MIN_RELEVANT, DEFAULT_MIN_RELEVANT if highest is None else highest))
