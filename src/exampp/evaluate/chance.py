"""The chance floor of Cover: what as many random passages cover that people judged not relevant.

With n graded passages of a query judged 0 (or less), c of which cover an item, k of them drawn at
random cover it with probability 1 - C(n - c, k) / C(n, k). The floor is Cover with these in the
place of 0 and 1: exact, no simulation. It is a floor for the pool of these queries, and no proof
of guessing: a passage judged 0 may well answer one item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.cover import cover_exams
from exampp.evaluate.exams import QueryExam, Subtopics
from exampp.evaluate.policy import EXAM, CoverPolicy
from exampp.records.gradebook import MISSING, Gradebook

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChanceFloor:
    """The floor of Cover@k per threshold, on `judged` of `queries`: those with passages judged 0.

    Empty where there are none. On `short` of them fewer than k are judged 0, and all were taken.
    """

    k: int
    values: tuple[float, ...]
    judged: int
    queries: int
    short: int = 0

    @property
    def drawn(self) -> str:
        """What is drawn, in words."""
        limits = [f"of {self.judged} of {self.queries} queries"] * (self.judged < self.queries)
        limits += [f"all of them on {self.short} with fewer"] * bool(self.short)
        some = f" ({', '.join(limits)})" if limits else ""
        passages = "1 random passage" if self.k == 1 else f"{self.k} random passages"
        return f"{passages} that people judged 0{some}"


def chance_floor(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    k: int,
    subtopics: Subtopics,
    policy: CoverPolicy = EXAM,
) -> ChanceFloor:
    """The floor of Cover@k: the mean over the exams of a query, then over queries."""
    of_query: dict[str, list[Floats]] = defaultdict(list)
    queries, short = set(), set()
    for exam in cover_exams(gradebook, subtopics, k, policy):
        queries.add(exam.query.query_id)
        ratings = judged_ratings(exam, lowest=None, below=1)
        if len(ratings):
            weights = exam.query.weights[exam.items]
            covering = np.stack([(ratings >= one).sum(axis=0) for one in thresholds])
            found = (1 - missed(len(ratings), covering, k)) @ weights / weights.sum()
            of_query[exam.query.query_id].append(found)
            if len(ratings) < k:
                short.add(exam.query.query_id)
    if not of_query:
        return ChanceFloor(k, (), 0, len(queries))
    means = np.mean([np.mean(found, axis=0) for found in of_query.values()], axis=0)
    return ChanceFloor(k, tuple(means.tolist()), len(of_query), len(queries), len(short))


def judged_ratings(exam: QueryExam, *, lowest: int | None, below: int | None) -> NDArray[np.int16]:
    """The ratings, passages x items of an exam, of graded passages that people judged so.

    From `lowest` to less than `below`. The judgments are those for the subtopic where there are
    any, else for the query.
    """
    ratings = exam.query.ratings[:, exam.items]
    judgments = _judgments(exam)
    wanted = (judgments != MISSING) & (ratings != MISSING).any(axis=1)
    if lowest is not None:
        wanted &= judgments >= lowest
    if below is not None:
        wanted &= judgments < below
    found: NDArray[np.int16] = ratings[wanted]
    return found


def missed(passages: int, covering: NDArray[np.int64], k: int) -> Floats:
    """The probability that k of so many passages, drawn at random, hold none of the `covering`.

    Hypergeometric; all of them are drawn where there are no more than k.
    """
    drawn = np.arange(min(k, passages))
    left = np.maximum(passages - covering[..., None] - drawn, 0)
    found: Floats = (left / (passages - drawn)).prod(axis=-1)
    return found


def _judgments(exam: QueryExam) -> NDArray[np.int16]:
    query = exam.query
    subtopic = exam.exam_id[len(query.query_id) + 1 :]
    place = query.subtopic_ids.index(subtopic) + 1 if subtopic else 0
    own: NDArray[np.int16] = query.judgments[place]
    of_query: NDArray[np.int16] = query.judgments[0]
    return own if (own != MISSING).any() else of_query
