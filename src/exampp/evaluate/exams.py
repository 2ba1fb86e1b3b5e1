"""Which passages of which system are graded on which items: the facet modes.

An exam is a set of items that a ranking sits. In the mode

- `query` it is the whole bank of a query, and a system sits it with its ranking for the query;
- `subtopic` there is one exam per subtopic that has items, sat with the system's ranking for that
  subtopic or, where it has none, with its ranking for the query. Items that belong to no subtopic
  make an exam of their own, sat with the ranking for the query or else the pooled ones;
- `pool` it is the whole bank, and a system's subtopic rankings are interleaved: all their first
  passages in the order of the subtopics, then all their second ones, each passage once.

Without being told, the mode is `query` if no system has a ranking for a subtopic; otherwise
`subtopic` if items belong to subtopics, and `pool` if they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.gradebook import Gradebook, QueryGrades, Ranking

Facets = Literal["query", "subtopic", "pool"]
FacetChoice = Literal["auto", "query", "subtopic", "pool"]

Indices = NDArray[np.int32]
Order = Callable[[QueryGrades, Ranking], Indices]
"""Gives the passages of a ranking in the order in which they are read."""

Sitting = Callable[[Mapping[int, Indices], int], Indices | None]


@dataclass(frozen=True, slots=True)
class QueryExam:
    """Some items of a query and, per system of the gradebook, the passages that sit for them.

    `exam_id` is `query` or `query/subtopic`, `items` are columns of `query.ratings`; a system
    without such a ranking has None.
    """

    query: QueryGrades
    exam_id: str
    items: NDArray[np.intp]
    passages: tuple[Indices | None, ...]


@dataclass(frozen=True, slots=True)
class Sat:
    """The passages of all systems laid end to end.

    `passages`, `system` (its number) and `position` (from 0 within the system's ranking) are
    aligned; `answered` tells per system whether it returned anything.
    """

    passages: NDArray[np.intp]
    system: NDArray[np.intp]
    position: NDArray[np.intp]
    answered: NDArray[np.bool_]


def resolve_facets(gradebook: Gradebook, facets: FacetChoice) -> Facets:
    """The facet mode asked for, or the one that fits the data.

    Raises:
        InputError: No such mode.
    """
    if facets not in get_args(FacetChoice):
        raise InputError(
            f"there is no facet mode {facets!r}", mend=f"Modes: {', '.join(get_args(FacetChoice))}"
        )
    if facets != "auto":
        return facets
    if not any(ranking.facet for query in gradebook.queries for ranking in query.rankings):
        return "query"
    has_facets = any(query.item_facets.any() for query in gradebook.queries)
    return "subtopic" if has_facets else "pool"


def by_rank(query: QueryGrades, ranking: Ranking) -> Indices:  # noqa: ARG001
    """The order of the ranks."""
    return ranking.passages


def exams(
    gradebook: Gradebook,
    facets: Facets,
    order: Order = by_rank,
    sitting: Sitting | None = None,
) -> Iterator[QueryExam]:
    """The exams of a gradebook, query by query; those without items are left out.

    `sitting` chooses among a system's rankings for a facet, in place of the mode's own way.
    """
    number = {system: index for index, system in enumerate(gradebook.systems)}
    for query in gradebook.queries:
        sat: list[dict[int, Indices]] = [{} for _ in gradebook.systems]
        for ranking in query.rankings:
            if len(ranking.passages):
                sat[number[ranking.system]][ranking.facet] = order(query, ranking)
        for facet, items in _groups(query, facets):
            choose = sitting or _sitting(facets, facet)
            yield QueryExam(
                query=query,
                exam_id=_exam_id(query, facet),
                items=items,
                passages=tuple(choose(rankings, facet) for rankings in sat),
            )


def lay_out(passages: Sequence[Indices | None], depth: int | None = None) -> Sat:
    """The first `depth` passages of every system, laid end to end."""
    cut = [p[:depth] if p is not None else np.empty(0, np.int32) for p in passages]
    lengths = np.array([len(p) for p in cut], np.intp)
    total = int(lengths.sum())
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Sat(
        passages=np.concatenate(cut).astype(np.intp) if total else np.empty(0, np.intp),
        system=np.repeat(np.arange(len(cut)), lengths),
        position=np.arange(total) - starts,
        answered=lengths > 0,
    )


def interleave(rankings: Sequence[Indices]) -> Indices:
    """All first passages, then all second ones, and so on; each passage once."""
    passages = np.concatenate(rankings)
    position = np.concatenate([np.arange(len(ranking)) for ranking in rankings])
    # A stable sort by position keeps the order of the rankings within a round.
    passages = passages[np.argsort(position, kind="stable")]
    _, first = np.unique(passages, return_index=True)
    kept: Indices = passages[np.sort(first)]
    return kept


def _groups(query: QueryGrades, facets: Facets) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """(facet, its items); the whole bank goes as facet 0."""
    if not len(query.item_ids):
        return
    if facets != "subtopic":
        yield 0, np.arange(len(query.item_ids))
        return
    for facet in np.unique(query.item_facets):
        yield int(facet), np.flatnonzero(query.item_facets == facet)


def _exam_id(query: QueryGrades, facet: int) -> str:
    return f"{query.query_id}/{query.facet_ids[facet - 1]}" if facet else query.query_id


def _of_query(rankings: Mapping[int, Indices], facet: int) -> Indices | None:  # noqa: ARG001
    return rankings.get(0)


def _of_subtopic(rankings: Mapping[int, Indices], facet: int) -> Indices | None:
    return rankings.get(facet, rankings.get(0))


def _pooled(rankings: Mapping[int, Indices], facet: int) -> Indices | None:  # noqa: ARG001
    subtopics = [rankings[facet] for facet in sorted(rankings) if facet]
    return interleave(subtopics) if subtopics else rankings.get(0)


def _of_no_subtopic(rankings: Mapping[int, Indices], facet: int) -> Indices | None:
    return rankings[0] if 0 in rankings else _pooled(rankings, facet)


def _sitting(facets: Facets, facet: int) -> Sitting:
    if facets == "query":
        return _of_query
    if facets == "pool":
        return _pooled
    return _of_subtopic if facet else _of_no_subtopic


def all_together(rankings: Mapping[int, Indices], facet: int) -> Indices | None:  # noqa: ARG001
    """Whatever a system returned for a query and its subtopics, each passage once."""
    if not rankings:
        return None
    together: Indices = np.unique(np.concatenate(list(rankings.values())))
    return together
