"""Rankings for evaluation: order by score as in trec_eval, or replace them by other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.exams import Indices, PoolLayout, QueryExam, Subtopics, exams, lay_out
from exampp.measures.qrels import Labelling, Labels, graded_passages, label_passages
from exampp.records import check_system_names
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.wording import counted
from exampp.results.notes import listed

Scores = NDArray[np.float32]
Run = dict[str, dict[str, int]]
"""The passages that one system returned: exam -> passage -> score."""


@dataclass(frozen=True, slots=True)
class RankedExam:
    """One exam: which of its passages (rows of the ratings) have a label, and the rankings.

    `passage_ids` are those of the query as an array.
    """

    exam: QueryExam
    passage_ids: NDArray[np.object_]
    graded: NDArray[np.bool_]
    layout: PoolLayout


@dataclass(frozen=True, slots=True)
class RankedExams:
    """All exams with a label.

    `unlabelled` are the queries, or subtopics, excluded because none of their passages has one.
    """

    systems: tuple[str, ...]
    exams: tuple[RankedExam, ...]
    unlabelled: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the queries or subtopics that count."""
        return tuple(one.exam.exam_id for one in self.exams)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Return whether each system returned passages, exams x systems."""
        by_exam = [one.layout.answered for one in self.exams]
        return np.array(by_exam, np.bool_).reshape(len(by_exam), len(self.systems))

    def runs(self) -> Iterator[Run]:
        """Yield the run of every system over the exams, one at a time to save memory."""
        for system in range(len(self.systems)):
            yield {
                one.exam.exam_id: dict(
                    zip(
                        one.passage_ids[passages].tolist(),
                        range(len(passages), 0, -1),
                        strict=True,
                    )
                )
                for one in self.exams
                if (passages := one.exam.passages[system]) is not None
            }


def rank_exams(gradebook: Gradebook, subtopics: Subtopics) -> RankedExams:
    """Prepare the rankings of a gradebook.

    Rankings are ordered as in trec_eval: by score as a 32-bit number, then by passage id, both
    descending; the ranks written in a run are ignored. A ranking without scores is ordered by rank.
    The resulting scores are strictly decreasing whole numbers, so that later code has no ties to
    break.
    """
    ranked: list[RankedExam] = []
    unlabelled = [q.query_id for q in gradebook.queries if not (q.weights > 0).any()]
    names: tuple[str, NDArray[np.object_]] | None = None
    for exam in exams(gradebook, subtopics, by_score):
        graded = graded_passages(exam.query.ratings[:, exam.items])
        if not graded.any():
            unlabelled.append(exam.exam_id)
            continue
        if names is None or names[0] != exam.query.query_id:
            names = (exam.query.query_id, np.array(exam.query.passage_ids, np.object_))
        ranked.append(RankedExam(exam, names[1], graded, lay_out(exam.passages)))
    return RankedExams(gradebook.systems, tuple(ranked), tuple(unlabelled))


def by_score(query: QueryGrades) -> Callable[[Ranking], Indices]:
    """Read rankings in the order of trec_eval; one with a score of NaN is not sorted."""
    unsorted = {
        (one.system, one.subtopic)
        for one in _with_step(query, lambda later, before: ~(later < before))
        if not np.isnan(one.scores).any()
    }
    ids = query.passage_ids
    place = np.empty(len(ids), np.intp)
    if unsorted:
        place[sorted(range(len(ids)), key=ids.__getitem__)] = range(len(ids))

    def read(ranking: Ranking) -> Indices:
        if (ranking.system, ranking.subtopic) not in unsorted:
            return ranking.passages
        order = np.lexsort((place[ranking.passages], as_float32(ranking.scores)))
        return ranking.passages[order[::-1]]

    return read


def _with_step(query: QueryGrades, step: Callable[[Scores, Scores], Any]) -> Iterator[Ranking]:
    """Yield the rankings that have a step between two scores for which `step` holds."""
    if not query.rankings:
        return
    scores = as_float32(np.concatenate([ranking.scores for ranking in query.rankings]))
    lengths = [len(ranking.scores) for ranking in query.rankings]
    number = np.repeat(np.arange(len(lengths)), lengths)
    steps = (number[1:] == number[:-1]) & step(scores[1:], scores[:-1])
    for found in np.unique(number[1:][steps]).tolist():
        yield query.rankings[found]


def contradictions(gradebook: Gradebook) -> int:
    """Return the number of rankings with a passage that scores higher than the one before."""
    return sum(1 for query in gradebook.queries for _ in _with_step(query, np.greater))


def as_float32(scores: NDArray[np.float64]) -> Scores:
    """Convert scores to 32-bit floats, as trec_eval stores them."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def labels_of(
    ranked: RankedExams, labelling: Labelling, threshold: int | None, lowest: int
) -> tuple[Labels, ...]:
    """Return the labels of the passages of every exam; 0 without a label."""
    return tuple(
        np.where(
            one.graded,
            label_passages(one.exam.query.ratings[:, one.exam.items], labelling, threshold, lowest),
            np.int32(0),
        )
        for one in ranked.exams
    )


def qrels_of(ranked: RankedExams, labels: tuple[Labels, ...]) -> dict[str, dict[str, int]]:
    """Map exam -> passage -> label, graded passages only."""
    return {
        one.exam.exam_id: {
            one.exam.query.passage_ids[index]: label
            for index, label in zip(
                np.flatnonzero(one.graded).tolist(), of_exam[one.graded].tolist(), strict=True
            )
        }
        for one, of_exam in zip(ranked.exams, labels, strict=True)
    }


def unlabelled_shares(ranked: RankedExams, depth: int | None) -> tuple[float | None, ...]:
    """Return per system the unlabelled share of its first `depth` passages; None: no passages."""
    some = np.zeros(len(ranked.systems))
    of = np.zeros(len(ranked.systems))
    for one in ranked.exams:
        read = slice(None) if depth is None else one.layout.position < depth
        system = one.layout.system[read]
        without = ~one.graded[one.layout.passages[read]]
        some += np.bincount(system, without, len(some))
        of += np.bincount(system, minlength=len(of))
    return tuple(float(a / b) if b else None for a, b in zip(some, of, strict=True))


ScoredPassage = tuple[str, float] | tuple[str, float, int]
"""(passage, score) or (passage, score, rank as written in the run)."""
ScoredRun = Mapping[str, Sequence[ScoredPassage]]
"""One system: query, or `query/subtopic`, -> its results."""


def with_runs(gradebook: Gradebook, runs: Mapping[str, ScoredRun]) -> Gradebook:
    """Replace the rankings by these runs; bank and grades are unchanged.

    Passages outside the pool are added without grades. Rankings with ranks are ordered by them
    (ties by score descending, then passage id), others as in trec_eval. The gradebook's notes list
    unknown queries of the runs.

    Raises:
        InputError: A score is not a number, or a run returns a passage twice for a query.
    """
    places = _places(gradebook)
    check_system_names(runs)
    rankings: dict[str, dict[tuple[str, int], Sequence[ScoredPassage]]] = {}
    unknown: dict[str, None] = {}
    for system, run in runs.items():
        for written, scored in run.items():
            place = places.get(written)
            if place is None:
                unknown[written] = None
            elif scored:
                rankings.setdefault(place[0], {})[system, place[1]] = scored
    queries = tuple(_with_rankings(q, rankings.get(q.query_id, {})) for q in gradebook.queries)
    notes = gradebook.notes
    if unknown:
        count = counted(len(unknown), "unknown query")
        notes += (f"Skipped {count} of the runs: {listed(unknown)}.",)
    return replace(gradebook, queries=queries, systems=tuple(runs), notes=notes)


def _places(gradebook: Gradebook) -> dict[str, tuple[str, int]]:
    """Map query names in a run to (query, subtopic)."""
    places: dict[str, tuple[str, int]] = {}
    for query in gradebook.queries:
        for number, subtopic_id in enumerate(query.subtopic_ids, 1):
            places[f"{query.query_id}/{subtopic_id}"] = (query.query_id, number)
    # A query whose own id looks like another's subtopic has precedence.
    places.update({query.query_id: (query.query_id, 0) for query in gradebook.queries})
    return places


def _with_rankings(
    query: QueryGrades, by_system: Mapping[tuple[str, int], Sequence[ScoredPassage]]
) -> QueryGrades:
    rows = {passage_id: row for row, passage_id in enumerate(query.passage_ids)}
    rankings = tuple(
        _ranking(query, system, subtopic, scored, rows)
        for (system, subtopic), scored in by_system.items()
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
    scored: Sequence[ScoredPassage],
    rows: dict[str, int],
) -> Ranking:
    scores: NDArray[np.float64] = np.array([entry[1] for entry in scored], np.float64)
    where = f"run {system}, query {query.query_id}"
    if np.isnan(scores).any():
        raise InputError("a score is not a number", field=where)
    if len({entry[0] for entry in scored}) != len(scored):
        raise InputError("a passage is returned twice", field=where, hint="Remove one of them")
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


def _by_rank(scored: Sequence[ScoredPassage], ranks: Sequence[int]) -> list[int]:
    def key(index: int) -> tuple[int, float, str]:
        return ranks[index], -scored[index][1], scored[index][0]

    return sorted(range(len(scored)), key=key)


def _by_score(scored: Sequence[ScoredPassage], scores: NDArray[np.float64]) -> list[int]:
    """Sort by score, then by passage id, both descending, as in trec_eval."""
    single = as_float32(scores).tolist()
    return sorted(range(len(scored)), key=lambda at: (single[at], scored[at][0]), reverse=True)
