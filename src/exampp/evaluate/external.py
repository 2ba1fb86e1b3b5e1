"""Puts runs from elsewhere in the place of a gradebook's own rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.exam_sheets import single
from exampp.records import check_system_names
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking

Returned = tuple[str, float] | tuple[str, float, int]
"""(passage, score) or (passage, score, rank as the run wrote it)."""
ScoredRun = Mapping[str, Sequence[Returned]]
"""One system: query, or `query/subtopic`, -> what it returned."""


@dataclass(frozen=True, slots=True)
class WithRuns:
    """The gradebook with the runs in it, and the queries of the runs that it does not know."""

    gradebook: Gradebook
    unknown_queries: tuple[str, ...]


def with_runs(gradebook: Gradebook, runs: Mapping[str, ScoredRun]) -> WithRuns:
    """Evaluate these runs instead: same bank, same grades, other rankings.

    Passages outside the pool are added without grades. Rankings with ranks are ordered by them
    (ties by score descending, then passage id), others as trec_eval does. The gradebook's notes
    say which queries of the runs are unknown.

    Raises:
        InputError: A score is no number, or a run returns a passage twice for a query.
    """
    places = _places(gradebook)
    check_system_names(runs)
    rankings: dict[str, dict[tuple[str, int], Sequence[Returned]]] = {}
    unknown: dict[str, None] = {}
    for system, run in runs.items():
        for written, scored in run.items():
            place = places.get(written)
            if place is None:
                unknown[written] = None
            elif scored:
                rankings.setdefault(place[0], {})[system, place[1]] = scored
    queries = tuple(_with_rankings(q, rankings.get(q.query_id, {})) for q in gradebook.queries)
    notes = (*gradebook.notes, *_unknown_note(tuple(unknown)))
    found = replace(gradebook, queries=queries, systems=tuple(runs), notes=notes)
    return WithRuns(found, tuple(unknown))


def _unknown_note(unknown: tuple[str, ...]) -> tuple[str, ...]:
    if not unknown:
        return ()
    shown = ", ".join(unknown[:3]) + (" and others" if len(unknown) > 3 else "")
    return (f"{len(unknown)} queries of the runs are unknown and left out: {shown}.",)


def _places(gradebook: Gradebook) -> dict[str, tuple[str, int]]:
    """What a query is called in a run -> (query, subtopic)."""
    places: dict[str, tuple[str, int]] = {}
    for query in gradebook.queries:
        for number, subtopic_id in enumerate(query.subtopic_ids, 1):
            places[f"{query.query_id}/{subtopic_id}"] = (query.query_id, number)
    # A query whose own id looks like another's subtopic wins.
    places.update({query.query_id: (query.query_id, 0) for query in gradebook.queries})
    return places


def _with_rankings(
    query: QueryGrades, found: Mapping[tuple[str, int], Sequence[Returned]]
) -> QueryGrades:
    rows = {passage_id: row for row, passage_id in enumerate(query.passage_ids)}
    rankings = tuple(
        _ranking(query, system, subtopic, scored, rows)
        for (system, subtopic), scored in found.items()
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
    subtopic: int,
    scored: Sequence[Returned],
    rows: dict[str, int],
) -> Ranking:
    scores: NDArray[np.float64] = np.array([entry[1] for entry in scored], np.float64)
    where = f"run {system}, query {query.query_id}"
    if np.isnan(scores).any():
        raise InputError("a score is not a number", field=where)
    if len({entry[0] for entry in scored}) != len(scored):
        raise InputError("a passage is returned twice", field=where, mend="Keep it once")
    written = [entry[2] for entry in scored if len(entry) == 3]
    ranked = len(written) == len(scored)
    order = _by_rank(scored, written) if ranked else _by_score(scored, scores)
    passages = [rows.setdefault(scored[index][0], len(rows)) for index in order]
    return Ranking(
        system,
        subtopic,
        np.array(passages, np.int32),
        scores[order],
        np.array([written[index] for index in order], np.int32) if ranked else None,
    )


def _by_rank(scored: Sequence[Returned], ranks: Sequence[int]) -> list[int]:
    def key(index: int) -> tuple[int, float, str]:
        return ranks[index], -scored[index][1], scored[index][0]

    return sorted(range(len(scored)), key=key)


def _by_score(scored: Sequence[Returned], scores: NDArray[np.float64]) -> list[int]:
    """Two stable sorts: by passage id, then by score, both descending, as trec_eval does."""
    order = sorted(range(len(scored)), key=lambda index: scored[index][0], reverse=True)
    by_id = np.array(order, np.intp)
    return [int(index) for index in by_id[np.argsort(-single(scores[by_id]), kind="stable")]]
