"""Puts runs from elsewhere in the place of a gradebook's own rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.sheets import single
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking

ScoredRun = Mapping[str, Sequence[tuple[str, float]]]
"""One system: query, or `query/subtopic`, -> (passage, score)."""


@dataclass(frozen=True, slots=True)
class WithRuns:
    """The gradebook with the runs in it, and the queries of the runs that it does not know."""

    gradebook: Gradebook
    unknown_queries: tuple[str, ...]


def with_runs(gradebook: Gradebook, runs: Mapping[str, ScoredRun]) -> WithRuns:
    """Evaluate these runs instead: same bank, same grades, other rankings.

    Passages outside the pool are added without grades. Rankings are ordered as trec_eval does.

    Raises:
        InputError: A score is no number, or a run returns a passage twice for a query.
    """
    places = _places(gradebook)
    rankings: dict[str, dict[tuple[str, int], Sequence[tuple[str, float]]]] = {}
    unknown: dict[str, None] = {}
    for system, run in runs.items():
        for written, scored in run.items():
            place = places.get(written)
            if place is None:
                unknown[written] = None
            elif scored:
                rankings.setdefault(place[0], {})[system, place[1]] = scored
    queries = tuple(_with_rankings(q, rankings.get(q.query_id, {})) for q in gradebook.queries)
    return WithRuns(replace(gradebook, queries=queries, systems=tuple(runs)), tuple(unknown))


def _places(gradebook: Gradebook) -> dict[str, tuple[str, int]]:
    """What a query is called in a run -> (query, facet)."""
    places: dict[str, tuple[str, int]] = {}
    for query in gradebook.queries:
        for number, facet_id in enumerate(query.facet_ids, 1):
            places[f"{query.query_id}/{facet_id}"] = (query.query_id, number)
    # A query whose own id looks like another's subtopic wins.
    places.update({query.query_id: (query.query_id, 0) for query in gradebook.queries})
    return places


def _with_rankings(
    query: QueryGrades, found: Mapping[tuple[str, int], Sequence[tuple[str, float]]]
) -> QueryGrades:
    rows = {passage_id: row for row, passage_id in enumerate(query.passage_ids)}
    rankings = tuple(
        _ranking(query, system, facet, scored, rows) for (system, facet), scored in found.items()
    )
    more = len(rows) - len(query.passage_ids)
    if not more:
        return replace(query, rankings=rankings)
    return replace(
        query,
        rankings=rankings,
        passage_ids=tuple(rows),
        ratings=np.pad(query.ratings, ((0, more), (0, 0)), constant_values=MISSING),
        judgments=np.pad(query.judgments, ((0, 0), (0, more)), constant_values=MISSING),
    )


def _ranking(
    query: QueryGrades,
    system: str,
    facet: int,
    scored: Sequence[tuple[str, float]],
    rows: dict[str, int],
) -> Ranking:
    scores: NDArray[np.float64] = np.array([score for _, score in scored], np.float64)
    where = f"run {system}, query {query.query_id}"
    if np.isnan(scores).any():
        raise InputError("a score is not a number", field=where)
    if len({passage_id for passage_id, _ in scored}) != len(scored):
        raise InputError("a passage is returned twice", field=where, mend="Keep it once")
    # Two stable sorts: by passage id, then by score, both descending.
    order = sorted(range(len(scored)), key=lambda index: scored[index][0], reverse=True)
    by_id = np.array(order, np.intp)
    order_of = by_id[np.argsort(-single(scores[by_id]), kind="stable")]
    passages = [rows.setdefault(scored[index][0], len(rows)) for index in order_of.tolist()]
    return Ranking(system, facet, np.array(passages, np.int32), scores[order_of])
