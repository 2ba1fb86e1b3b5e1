"""How far apart two systems can be by Cover, whatever the grades of missing cells are.

Both systems read the same grades: a missing cell of a passage that both return covers for both, or
for neither. So the bounds of a difference are set jointly, and are tighter than the difference of
the systems' own bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.exams import QueryExam, SubtopicChoice, exams, lay_out, resolve_subtopics
from exampp.records.gradebook import MISSING, Gradebook

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CoverBounds:
    """The least and the most that systems can have, over all grades of missing cells.

    `low` and `high` are [thresholds, systems]; `least` and `most` bound the score of the first
    less that of the second, [thresholds, systems, systems].
    """

    low: Floats
    high: Floats
    least: Floats
    most: Floats


def has_missing_cells(book: Gradebook) -> bool:
    """Whether any passage that a system returned lacks a grade."""
    for query in book.queries:
        if query.ratings.size and query.rankings and (query.ratings == MISSING).any():
            read = np.unique(np.concatenate([ranking.passages for ranking in query.rankings]))
            if (query.ratings[read] == MISSING).any():
                return True
    return False


def missing_share(book: Gradebook) -> float:
    """Return the share of missing cells among passages that are ranked and have some grade.

    Their labels rest on fewer items than those of others. Passages without any grade have no label.
    """
    missing = cells = 0
    for query in book.queries:
        if query.ratings.size and query.rankings:
            read = np.unique(np.concatenate([ranking.passages for ranking in query.rankings]))
            lacks = query.ratings[read] == MISSING
            lacks = lacks[~lacks.all(axis=1)]
            missing, cells = missing + int(lacks.sum()), cells + lacks.size
    return missing / cells if cells else 0.0


def cover_bounds(
    book: Gradebook, thresholds: Sequence[int], *, k: int = 20, subtopics: SubtopicChoice = "auto"
) -> CoverBounds:
    """The bounds of Cover@k at several thresholds, all missing cells below or at the threshold."""
    n, mode = len(book.systems), resolve_subtopics(book, subtopics)
    shape = (len(thresholds), n)
    low, high = np.zeros(shape), np.zeros(shape)
    least, most = np.zeros((*shape, n)), np.zeros((*shape, n))
    by_query: dict[str, list[QueryExam]] = {}
    for exam in exams(book, mode):
        if (exam.query.weights[exam.items] > 0).any():
            by_query.setdefault(exam.query.query_id, []).append(exam)
    for of_query in by_query.values():
        share = 1 / (len(by_query) * len(of_query))
        for exam in of_query:
            _add(exam, thresholds, k, share, (low, high, least, most))
    return CoverBounds(low, high, least, most)


def _add(
    exam: QueryExam,
    thresholds: Sequence[int],
    k: int,
    share: float,
    sums: tuple[Floats, Floats, Floats, Floats],
) -> None:
    low, high, least, most = sums
    sat = lay_out(exam.passages, k)
    returns = np.zeros((len(exam.passages), len(exam.query.passage_ids)), np.float32)
    returns[sat.system, sat.passages] = 1
    weights = exam.query.weights[exam.items]
    weights = weights / weights.sum() * share
    ratings = exam.query.ratings[:, exam.items]
    tau = np.array(thresholds, np.int32)
    for item, weight in enumerate(weights.tolist()):
        missing = returns[:, ratings[:, item] == MISSING]
        unknown = missing.sum(axis=1)
        # passages without a grade that the first returns and the second does not
        alone = (unknown[:, None] - missing @ missing.T) > 0
        reached = (ratings[:, item, None] >= tau).astype(np.float32)
        covered = (returns @ reached).T > 0
        may = covered | (unknown > 0)
        low += weight * covered
        high += weight * may
        apart = weight * _most(covered, may, alone)
        most += apart
        least -= apart.swapaxes(1, 2)


def _most(covered: NDArray[np.bool_], may: NDArray[np.bool_], alone: NDArray[np.bool_]) -> Floats:
    """The most that an item can give the first system beyond the second.

    [thresholds, systems, systems].
    """
    first, second = covered[:, :, None], covered[:, None, :]
    gains = ~second & (first | alone)
    # what the second surely covers the first may cover too
    loses = second & ~may[:, :, None]
    return gains.astype(np.float64) - loses.astype(np.float64)
