"""Evidence of relevance: judgments, or substitutes where there are none.

Missing and spurious items of a bank show in passages that are known to be relevant or not. Without
judgments, the agreement of the systems, graders of the query itself or human decisions on cells
give weaker evidence, for some of the passages only.
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

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]

DEPTH = 20
"""The number of passages of each ranking that count as returned."""
LEAST_SYSTEMS = 3
"""So many systems must have answered a query before they can agree on anything."""
FEW = 0.1
"""A passage that at most this share of the systems returned counts as not relevant."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The thresholds for an answer and for relevance.

    `min_rating` is the lowest rating that covers an item, `min_relevant` the lowest judgment of a
    relevant passage. `by` is one of `BASES`, or `auto`: for each query the first basis that has
    evidence. `depth` passages of each ranking count as returned. Lists of cells include only
    passages that cover `min_answers` items.
    """

    min_rating: int = 4
    min_relevant: int = 1
    by: str = "auto"
    depth: int = DEPTH
    min_answers: int = 0

    def __post_init__(self) -> None:
        if self.by not in ("auto", *BASES):
            known = ", ".join(("auto", *BASES))
            raise InputError(f"no evidence of relevance is called {self.by!r}", hint=f"Use {known}")
        check_integer("depth", self.depth, 1)
        check_integer("min_answers", self.min_answers, 0)


class Evidence(NamedTuple):
    """The known relevance of each passage; neither array is true where it is unknown.

    `strength` orders passages by the evidence, and `shown` describes it in a word.
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
    """Per passage: the number of systems that returned it and its best rank (0: none)."""

    counts: Counts
    best: Counts
    systems: int


def returned(grades: QueryGrades, depth: int | None = DEPTH) -> ReturnCounts:
    """Count what the systems returned for a query in their first `depth` passages, or in all.

    Ranks count from 1, whatever number a run starts at; a subtopic's ranking counts as well.
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
    """Return the systems that returned a passage with its best rank in each, best rank first."""
    best: dict[str, int] = {}
    for ranking in grades.rankings:
        for at in (ranking.passages == passage).nonzero()[0][:1].tolist():
            best[ranking.system] = min(at + 1, best.get(ranking.system, at + 1))
    return sorted(best.items(), key=lambda one: one[1])


def passage_order(grades: QueryGrades, order: str, min_rating: int) -> list[int]:
    """Return the passages of a query sorted by `order`, by agreement if it is unknown.

    `agreement` counts the systems that return a passage, `rating` the items that it covers,
    `judgment` adds its judged relevance, `rank` is the best rank, `pool` the order of ids. Ties are
    in the order of ids.
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
    """Count, for each item, the covering and the graded passages."""
    covered = (grades.ratings >= min_rating).sum(axis=0)
    graded = (grades.ratings != MISSING).sum(axis=0)
    return list(zip(covered.tolist(), graded.tolist(), strict=True))


def evidence(dossier: Dossier, criteria: Criteria) -> Evidence:
    """Return the evidence of relevance of a query's passages, on the requested basis."""
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
    """Return evidence from human judgments, the highest of those for several subtopics."""
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
    """Return evidence from rank agreement: relevant are passages that most systems return."""
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
    """Return the majority of the graders that grade passages for the query itself.

    Their grades replace judgments: relevant is `min_relevant`, or the highest of a shorter scale.
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

    Not relevant are passages in which people found no answer to any item. Relevant are those in
    which people or the grader found one, so that a passage may be both.
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
"""The bases of relevance, the best first."""
