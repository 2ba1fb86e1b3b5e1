"""Rankings and labels in the shape in which ranking measures want them.

The order of a ranking is that of trec_eval: by score, compared as the 32-bit numbers that it
keeps, then by passage id, both descending; the ranks written in a run play no part. A ranking
without scores keeps its ranks. What is handed on are whole numbers that strictly decrease, so
that nobody further down has a tie to break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.exams import Indices, Order, QueryExam, Sat, Subtopics, exams, lay_out
from exampp.evaluate.qrels import Labelling, Labels, graded_passages, label_passages
from exampp.records.gradebook import Gradebook, QueryGrades, Ranking

Scores = NDArray[np.float32]
Run = dict[str, dict[str, int]]
"""What one system returned: exam -> passage -> score."""


@dataclass(frozen=True, slots=True)
class ExamSheet:
    """One exam: which of its passages (rows of the ratings) have a label, who returned which.

    `passage_ids` are those of the query as an array.
    """

    exam: QueryExam
    passage_ids: NDArray[np.object_]
    graded: NDArray[np.bool_]
    sat: Sat


@dataclass(frozen=True, slots=True)
class Sheets:
    """All exams with a label.

    `unlabelled` are the queries, or subtopics, left out because none of their passages has one.
    """

    systems: tuple[str, ...]
    sheets: tuple[ExamSheet, ...]
    unlabelled: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The queries, or subtopics of queries, that count."""
        return tuple(sheet.exam.exam_id for sheet in self.sheets)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Who returned anything, exams x systems."""
        found = [sheet.sat.answered for sheet in self.sheets]
        return np.array(found, np.bool_).reshape(len(found), len(self.systems))

    def runs(self) -> Iterator[Run]:
        """The run of every system over the exams, made one at a time: all would fill the memory."""
        for system in range(len(self.systems)):
            yield {
                sheet.exam.exam_id: dict(
                    zip(
                        sheet.passage_ids[passages].tolist(),
                        range(len(passages), 0, -1),
                        strict=True,
                    )
                )
                for sheet in self.sheets
                if (passages := sheet.exam.passages[system]) is not None
            }


def lay_sheets(gradebook: Gradebook, subtopics: Subtopics) -> Sheets:
    """Prepare the rankings of a gradebook."""
    sheets: list[ExamSheet] = []
    unlabelled = [q.query_id for q in gradebook.queries if not q.item_ids]
    names: tuple[str, NDArray[np.object_]] | None = None
    for exam in exams(gradebook, subtopics, by_score()):
        graded = graded_passages(exam.query.ratings[:, exam.items])
        if not graded.any():
            unlabelled.append(exam.exam_id)
            continue
        if names is None or names[0] != exam.query.query_id:
            names = (exam.query.query_id, np.array(exam.query.passage_ids, np.object_))
        sheets.append(ExamSheet(exam, names[1], graded, lay_out(exam.passages)))
    return Sheets(gradebook.systems, tuple(sheets), tuple(unlabelled))


def by_score() -> Order:
    """The order of trec_eval; the order of the ids is found once per query."""
    places: dict[str, NDArray[np.intp]] = {}
    sorted_otherwise: dict[str, set[tuple[str, int]]] = {}

    def place(query: QueryGrades) -> NDArray[np.intp]:
        if query.query_id not in places:
            places.clear()
            order = np.empty(len(query.passage_ids), np.intp)
            order[sorted(range(len(order)), key=query.passage_ids.__getitem__)] = range(len(order))
            places[query.query_id] = order
        return places[query.query_id]

    def order(query: QueryGrades, ranking: Ranking) -> Indices:
        if query.query_id not in sorted_otherwise:
            sorted_otherwise.clear()
            found = _with_step(query, lambda later, before: ~(later < before))
            sorted_otherwise[query.query_id] = {(one.system, one.subtopic) for one in found}
        if (ranking.system, ranking.subtopic) not in sorted_otherwise[query.query_id]:
            return ranking.passages
        return ranking.passages[_descending(ranking, lambda: place(query))]

    return order


def _with_step(query: QueryGrades, step: Callable[[Scores, Scores], Any]) -> Iterator[Ranking]:
    """The rankings with a score and the one before it of which `step` holds, all seen at once."""
    if not query.rankings:
        return
    scores = single(np.concatenate([ranking.scores for ranking in query.rankings]))
    lengths = [len(ranking.scores) for ranking in query.rankings]
    number = np.repeat(np.arange(len(lengths)), lengths)
    taken = (number[1:] == number[:-1]) & step(scores[1:], scores[:-1])
    for found in np.unique(number[1:][taken]).tolist():
        yield query.rankings[found]


def contradictions(gradebook: Gradebook) -> int:
    """How many rankings have a passage with a higher score than the one ranked before it."""
    return sum(1 for query in gradebook.queries for _ in _with_step(query, np.greater))


def single(scores: NDArray[np.float64]) -> Scores:
    """Scores as trec_eval keeps them."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def labels_of(
    sheets: Sheets, labelling: Labelling, threshold: int | None, lowest: int
) -> tuple[Labels, ...]:
    """The labels of every sheet's passages; 0 where there is none."""
    return tuple(
        np.where(
            sheet.graded,
            label_passages(
                sheet.exam.query.ratings[:, sheet.exam.items], labelling, threshold, lowest
            ),
            np.int32(0),
        )
        for sheet in sheets.sheets
    )


def qrels_of(sheets: Sheets, labels: tuple[Labels, ...]) -> dict[str, dict[str, int]]:
    """The labels as exam -> passage -> label, graded passages only."""
    return {
        sheet.exam.exam_id: {
            sheet.exam.query.passage_ids[index]: label
            for index, label in zip(
                np.flatnonzero(sheet.graded).tolist(), of_sheet[sheet.graded].tolist(), strict=True
            )
        }
        for sheet, of_sheet in zip(sheets.sheets, labels, strict=True)
    }


def unlabelled_shares(sheets: Sheets, depth: int | None) -> tuple[float | None, ...]:
    """Per system, the share of its first `depth` passages without a label; None: no passages."""
    some = np.zeros(len(sheets.systems))
    of = np.zeros(len(sheets.systems))
    for sheet in sheets.sheets:
        read = slice(None) if depth is None else sheet.sat.position < depth
        system = sheet.sat.system[read]
        without = ~sheet.graded[sheet.sat.passages[read]]
        some += np.bincount(system, without, len(some))
        of += np.bincount(system, minlength=len(of))
    return tuple(float(a / b) if b else None for a, b in zip(some, of, strict=True))


def _descending(ranking: Ranking, place: Callable[[], NDArray[np.intp]]) -> slice | Indices:
    scores = single(ranking.scores)
    if np.isnan(scores).any():
        return slice(None)
    order: Indices = np.lexsort((place()[ranking.passages], scores))[::-1].astype(np.int32)
    return order
