"""Evidence of relevance: judgments, or substitutes for them.

Missing and spurious items are detected on passages with known relevance. Without judgments, the
agreement of systems, graders of the query itself, or human decisions on cells give weaker evidence
for some of the passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.decisions import effective_decision
from exampp.records.gradebook import MISSING, Dossier, QueryGrades
from exampp.sanitize import check_integer
from exampp.stats.estimate import Bools

Counts = NDArray[np.int64]

DEPTH = 20
"""Depth of each ranking: deeper passages do not count as returned."""
LEAST_SYSTEMS = 3
"""Minimum number of systems per query for evidence from their agreement."""
FEW = 0.1
"""Passages returned by at most this share of the systems count as not relevant."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """Thresholds of an answer and of relevance.

    `min_rating` is the lowest rating that covers an item, `min_relevant` the lowest judgment of a
    relevant passage. `by` is one of `BASES`, or `auto`: for each query the first basis with
    evidence. The top `depth` passages of each ranking count as returned. Lists of cells include
    only passages that cover `min_answers` items.
    """

    min_rating: int = 4
    min_relevant: int = 1
    by: str = "auto"
    depth: int = DEPTH
    min_answers: int = 0

    def __post_init__(self) -> None:
        if self.by not in ("auto", *BASES):
            known = ", ".join(("auto", *BASES))
            raise InputError(f"unknown source of relevance {self.by!r}", hint=f"Use {known}")
        check_integer("depth", self.depth, 1)
        check_integer("min_answers", self.min_answers, 0)


class Evidence(NamedTuple):
    """Known relevance of each passage; both arrays are false where it is unknown.

    `strength` orders passages by the evidence; `shown` describes it briefly.
    """

    by: str
    relevant: Bools
    irrelevant: Bools
    strength: NDArray[np.float64]
    shown: tuple[str, ...]

    @property
    def speaks(self) -> bool:
        """Return whether there is evidence for any passage."""
        return bool(self.relevant.any() or self.irrelevant.any())


class ReturnCounts(NamedTuple):
    """Number of systems that returned each passage, and its best rank (0: none)."""

    counts: Counts
    best: Counts
    systems: int


def returned(grades: QueryGrades, depth: int | None = DEPTH) -> ReturnCounts:
    """Count the returned passages of a query, in the top `depth` or in all.

    Ranks count from 1, whatever the run file says; rankings of subtopics are included.
    """
    names = {name: index for index, name in enumerate({r.system: None for r in grades.rankings})}
    passages = len(grades.passage_ids)
    seen = np.zeros((len(names), passages), bool)
    best = np.full(passages, np.iinfo(np.int64).max, np.int64)
    for ranking in grades.rankings:
        top = ranking.passages[:depth]
        seen[names[ranking.system], top] = True
        np.minimum.at(best, top, np.arange(1, len(top) + 1))
    counts = seen.sum(axis=0, dtype=np.int64)
    return ReturnCounts(counts, np.where(counts > 0, best, 0), len(names))


def returned_by(grades: QueryGrades, passage: int) -> list[tuple[str, int]]:
    """Return the systems that returned a passage, with the best rank in each, best first."""
    best: dict[str, int] = {}
    for ranking in grades.rankings:
        for at in (ranking.passages == passage).nonzero()[0][:1].tolist():
            best[ranking.system] = min(at + 1, best.get(ranking.system, at + 1))
    return sorted(best.items(), key=lambda one: one[1])


def passage_order(grades: QueryGrades, order: str, min_rating: int) -> list[int]:
    """Return the passages of a query in an order; unknown names mean `agreement`.

    `agreement` sorts by the number of systems that return a passage, `rating` by the number of
    covered items, `judgment` by judged relevance, `rank` by best rank, `pool` by id. Ties are
    sorted by id.
    """
    counts, ratings = returned(grades, None), grades.ratings
    rank = np.where(counts.best == 0, np.iinfo(np.int64).max, counts.best)
    keys: dict[str, tuple[Counts, ...]] = {
        "agreement": (rank, -counts.counts),
        "rating": (
            rank,
            -(ratings >= min_rating).sum(axis=1),
            -ratings.max(axis=1, initial=MISSING).astype(np.int64),
        ),
        "judgment": (
            rank,
            -counts.counts,
            -grades.judgments.max(axis=0, initial=MISSING).astype(np.int64),
        ),
        "rank": (-counts.counts, rank),
        "pool": (),
    }
    index = np.arange(len(ratings))
    ordered: list[int] = np.lexsort((index, *keys.get(order, keys["agreement"]))).tolist()
    return ordered


def item_coverage(grades: QueryGrades, min_rating: int) -> list[tuple[int, int]]:
    """Count the covering and the graded passages of each item."""
    covered = (grades.ratings >= min_rating).sum(axis=0)
    graded = (grades.ratings != MISSING).sum(axis=0)
    return list(zip(covered.tolist(), graded.tolist(), strict=True))


def evidence(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return the evidence of relevance for a query, on the requested basis."""
    if criteria.by != "auto":
        return BASES[criteria.by](dossier, criteria)
    result = None
    for basis in BASES.values():
        result = basis(dossier, criteria)
        if result.speaks:
            return result
    return _nothing(dossier)


def _nothing(dossier: Dossier) -> Evidence:
    count = len(dossier.grades.passage_ids)
    none = np.zeros(count, bool)
    return Evidence("nothing", none, none, np.zeros(count), ("",) * count)


def by_judgments(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return evidence from human judgments; the highest counts for several subtopics."""
    best = dossier.grades.judgments.max(axis=0)
    judged = best != MISSING
    return Evidence(
        "judgments",
        judged & (best >= criteria.min_relevant),
        judged & (best < criteria.min_relevant),
        np.where(judged, best, -1).astype(np.float64),
        tuple(
            f"judged {value}" if known else "" for value, known in zip(best, judged, strict=True)
        ),
    )


def by_systems(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return evidence from agreement: most systems return relevant passages."""
    counts = returned(dossier.grades, criteria.depth)
    if counts.systems < LEAST_SYSTEMS:
        return _nothing(dossier)._replace(by="systems")
    return Evidence(
        "systems",
        counts.counts * 2 > counts.systems,
        counts.counts <= counts.systems * FEW,
        counts.counts.astype(np.float64),
        tuple(f"{count} of {counts.systems} systems" for count in counts.counts),
    )


def by_graders(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return evidence from the majority of graders of the query itself.

    Their grades serve as judgments; the threshold is `min_relevant`, or the highest rating of a
    shorter scale.
    """
    ids = dossier.grades.passage_ids
    row = {passage_id: at for at, passage_id in enumerate(ids)}
    votes, of = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for grader, query in dossier.direct_grades():
        least = min(criteria.min_relevant, grader.highest)
        best = query.ratings.max(axis=1, initial=MISSING).tolist()
        for passage_id, rating in zip(query.passage_ids, best, strict=True):
            if rating != MISSING and passage_id in row:
                of[row[passage_id]] += 1
                votes[row[passage_id]] += rating >= least
    return Evidence(
        "graders",
        votes * 2 > of,
        votes * 2 < of,
        np.divide(votes, of, out=np.zeros(len(ids)), where=of > 0),
        tuple(_describe_votes(n, m) for n, m in zip(votes.tolist(), of.tolist(), strict=True)),
    )


def _describe_votes(count: int, of: int) -> str:
    if of == 1:
        return "graded relevant" if count else "graded not relevant"
    return f"{count} of {of} graders" if of else ""


def by_decisions(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return evidence from human decisions on cells.

    Passages in which people found no answer are not relevant. Passages in which people or the
    grader found an answer are relevant. A passage may be both.
    """
    count = len(dossier.grades.passage_ids)
    decided, answered = np.zeros(count, bool), np.zeros(count, bool)
    seen = np.zeros(count, bool)
    for (row, column), decisions in dossier.decisions.items():
        effective = effective_decision(decisions)
        if effective is None or effective.rating is None:
            continue
        decided[row] = True
        answered[row] |= effective.rating >= criteria.min_rating
        grade = dossier.automatic.get((row, column))
        seen[row] |= grade is not None and (grade.rating or 0) >= criteria.min_rating
    labels = np.where(decided, np.where(answered, "an answer", "no answer"), "")
    return Evidence(
        "decisions", decided & (answered | seen), decided & ~answered, answered * 1.0, (*labels,)
    )


BASES: Mapping[str, Callable[[Dossier, Criteria], Evidence]] = {
    "judgments": by_judgments,
    "systems": by_systems,
    "graders": by_graders,
    "decisions": by_decisions,
}
"""Sources of relevance, best first."""
