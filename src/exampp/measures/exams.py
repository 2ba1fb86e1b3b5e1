"""Subtopic modes: which passages of a system are evaluated on which items.

An exam is a set of items that a ranking is evaluated on. The modes are

- `query`: the whole bank of a query, with the system's ranking for the query;
- `subtopic`: one exam per subtopic that has items, with the system's ranking for that subtopic or
  else for the query; items without a subtopic are a separate exam, with the ranking for the query
  or else the pooled ones;
- `pool`: the whole bank, with the system's subtopic rankings interleaved: all their first passages
  in the order of the subtopics, then all their second ones, each passage once.

The default is `query` if no system has a ranking for a subtopic; otherwise `subtopic` if items have
subtopics, and `pool` if not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.gradebook import Gradebook, QueryGrades, Ranking

Subtopics = Literal["query", "subtopic", "pool"]
SubtopicChoice = Literal["auto", "query", "subtopic", "pool"]

Indices = NDArray[np.int32]
Order = Callable[[QueryGrades], Callable[[Ranking], Indices]]
"""Return how the rankings of a query are read: a function from a ranking to its passages."""

_NO_PASSAGES: Indices = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class QueryExam:
    """Some items of a query and, per system, the passages that are evaluated on them.

    `subtopic` is the number of the subtopic, 0 for the whole query; `items` are columns of
    `query.ratings`; the entry of a system without such a ranking is None.
    """

    query: QueryGrades
    subtopic: int
    items: NDArray[np.intp]
    passages: tuple[Indices | None, ...]

    @property
    def subtopic_id(self) -> str:
        """The id of the subtopic, empty for the whole query."""
        return self.query.subtopic_ids[self.subtopic - 1] if self.subtopic else ""

    @property
    def exam_id(self) -> str:
        """`query` or `query/subtopic`."""
        query_id = self.query.query_id
        return f"{query_id}/{self.subtopic_id}" if self.subtopic else query_id


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """The concatenated passages of all systems.

    `passages`, `system` (its number) and `position` (from 0 within the system's ranking) are
    aligned; `answered` is whether each system returned anything.
    """

    passages: NDArray[np.intp]
    system: NDArray[np.intp]
    position: NDArray[np.intp]
    answered: NDArray[np.bool_]


def resolve_subtopics(gradebook: Gradebook, subtopics: SubtopicChoice) -> Subtopics:
    """Return the requested subtopic mode, or the default mode for the data.

    Raises:
        InputError: The mode is unknown.
    """
    if subtopics not in get_args(SubtopicChoice):
        raise InputError(
            f"unknown subtopic mode {subtopics!r}",
            hint=f"Use one of {', '.join(get_args(SubtopicChoice))}",
        )
    if subtopics != "auto":
        return subtopics
    return default_subtopics(
        rankings=any(one.subtopic for query in gradebook.queries for one in query.rankings),
        items=any(query.item_subtopics.any() for query in gradebook.queries),
    )


def default_subtopics(*, rankings: bool, items: bool) -> Subtopics:
    """Return the default mode, if any `rankings` and `items` are for subtopics."""
    if not rankings:
        return "query"
    return "subtopic" if items else "pool"


def by_rank(_: QueryGrades) -> Callable[[Ranking], Indices]:
    """Read rankings in the order of their ranks."""
    return attrgetter("passages")


def exams(
    gradebook: Gradebook,
    subtopics: Subtopics,
    order: Order = by_rank,
    merge: Callable[[Mapping[int, Indices]], Indices | None] | None = None,
    *,
    avoided: bool = False,
) -> Iterator[QueryExam]:
    """Yield the exams of a gradebook, query by query; exams without items are skipped.

    `merge` makes one ranking of those of a system, by subtopic, instead of the mode's own rule.
    Items of weight 0 do not count. With `avoided`, the items to avoid are included.
    """
    number = {system: index for index, system in enumerate(gradebook.systems)}
    for query in gradebook.queries:
        in_order = order(query)
        by_system: list[dict[int, Indices]] = [{} for _ in gradebook.systems]
        for ranking in query.rankings:
            if len(ranking.passages):
                by_system[number[ranking.system]][ranking.subtopic] = in_order(ranking)
        for subtopic, all_items in _groups(query, subtopics):
            weights = query.weights[all_items]
            items = all_items[weights != 0 if avoided else weights > 0]
            if not len(items):
                continue
            yield QueryExam(
                query=query,
                subtopic=subtopic,
                items=items,
                passages=tuple(
                    merge(rankings) if merge else _passages_of(rankings, subtopics, subtopic)
                    for rankings in by_system
                ),
            )


def lay_out(passages: Sequence[Indices | None], depth: int | None = None) -> PoolLayout:
    """Return the first `depth` passages of every system, concatenated."""
    cut = [p[:depth] if p is not None else _NO_PASSAGES for p in passages]
    sizes = [len(p) for p in cut]
    lengths, total = np.array(sizes, np.intp), sum(sizes)
    starts = (lengths.cumsum() - lengths).repeat(lengths)
    return PoolLayout(
        passages=np.concatenate(cut, dtype=np.intp) if cut else np.empty(0, np.intp),
        system=np.arange(len(cut)).repeat(lengths),
        position=np.arange(total) - starts,
        answered=lengths > 0,
    )


def interleave(rankings: Sequence[Indices]) -> Indices:
    """Interleave rankings: all first passages, then all second ones, each passage once."""
    passages = np.concatenate(rankings)
    position = np.concatenate([np.arange(len(ranking)) for ranking in rankings])
    # A stable sort by position preserves the order of the rankings within a round.
    passages = passages[np.argsort(position, kind="stable")]
    _, first = np.unique(passages, return_index=True)
    return passages[np.sort(first)]


def _groups(query: QueryGrades, subtopics: Subtopics) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield (subtopic, its items); the whole bank has subtopic 0."""
    if not len(query.item_ids):
        return
    if subtopics != "subtopic":
        yield 0, np.arange(len(query.item_ids))
        return
    yield from _by_subtopic(query.item_subtopics.astype(np.int32).tobytes())


@functools.lru_cache(maxsize=1024)
def _by_subtopic(item_subtopics: bytes) -> tuple[tuple[int, NDArray[np.intp]], ...]:
    """Yield (subtopic, its items), used by every measure, threshold and cutoff."""
    numbers = np.frombuffer(item_subtopics, np.int32)
    groups = tuple((int(one), np.flatnonzero(numbers == one)) for one in np.unique(numbers))
    for _, items in groups:
        items.flags.writeable = False
    return groups


def _passages_of(
    rankings: Mapping[int, Indices], subtopics: Subtopics, subtopic: int
) -> Indices | None:
    """Return the passages of a system that a mode evaluates on the items of a subtopic."""
    if subtopics == "query":
        return rankings.get(0)
    if subtopics == "subtopic" and subtopic:
        return rankings.get(subtopic, rankings.get(0))
    if subtopics == "subtopic" and 0 in rankings:
        return rankings[0]
    pooled = [rankings[one] for one in sorted(rankings) if one]
    return interleave(pooled) if pooled else rankings.get(0)


def all_together(rankings: Mapping[int, Indices]) -> Indices | None:
    """Return all passages of a system for a query and its subtopics, each once."""
    if not rankings:
        return None
    return np.unique(np.concatenate(list(rankings.values())))
