"""What every system makes of every item: the matrix behind Cover, for whoever looks at items."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exampp.measures.cover import EXAM, CoverPolicy, cover_exams, per_system
from exampp.measures.exams import SubtopicChoice, Subtopics, lay_out, resolve_subtopics
from exampp.records.gradebook import MISSING, Gradebook
from exampp.sanitize import check_integer

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Systems x items of one exam, in the order of ids: `credit` is 1 where covered, else 0.

    Per item, `query` is its number among the `queries`, `exam` that of the query or subtopic whose
    exam it belongs to, `weights` its weight in the bank. A cell without a grade counts as below
    the minimum; `missing` is the share of such cells among what was read, `unanswered` how many
    queries each system did not answer, which count 0.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    item_ids: tuple[str, ...]
    query: NDArray[np.intp]
    exam: NDArray[np.intp]
    weights: Floats
    credit: Floats
    min_rating: int
    k: int
    subtopics: Subtopics
    missing: float
    unanswered: tuple[int, ...]

    @property
    def columns(self) -> Floats:
        """The credit times the share of each item in Cover, so that a row adds up to Cover."""
        found: Floats = self.credit * self.shares()
        return found

    @property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """The items of each query, by number."""
        return tuple(np.flatnonzero(self.query == one) for one in range(len(self.queries)))

    @property
    def equal(self) -> bool:
        """Whether all items count alike."""
        return bool(np.ptp(self.shares()) < _EQUAL) if len(self.item_ids) else True

    def shares(self, kept: Bools | None = None) -> Floats:
        """How much each item counts in Cover, 1 in all; of the `kept` ones alone, where given.

        Cover is the mean over the exams of a query, then over the queries that have items.
        """
        weights = self.weights if kept is None else self.weights * kept
        in_exam = np.bincount(self.exam, weights)
        query_of_exam = np.zeros(len(in_exam), np.intp)
        query_of_exam[self.exam] = self.query
        exams = np.bincount(query_of_exam, in_exam > 0)
        count = in_exam[self.exam] * exams[self.query] * (exams > 0).sum()
        found: Floats = np.divide(weights, count, out=np.zeros(len(weights)), where=count > 0)
        return found

    def cover(self, kept: Bools | None = None) -> Floats:
        """Cover of every system on the `kept` items, the mean over the queries that have some."""
        found: Floats = self.credit @ self.shares(kept)
        return found

    def only(self, kept: Bools) -> ItemScores:
        """Return the same systems and queries with the `kept` items."""
        return replace(
            self,
            item_ids=tuple(self.item_ids[at] for at in np.flatnonzero(kept)),
            query=self.query[kept],
            exam=self.exam[kept],
            weights=self.weights[kept],
            credit=self.credit[:, kept],
        )

    def emptied(self, kept: Bools) -> int:
        """How many queries have none of the `kept` items."""
        return len(self.queries) - len(np.unique(self.query[kept]))

    def of_queries(self, columns: Floats) -> Floats:
        """Columns of items added up within their query, systems x queries."""
        found = np.zeros((len(columns), len(self.queries)))
        np.add.at(found.T, self.query, columns.T)
        return found


_EQUAL = 1e-12


def item_scores(
    gradebook: Gradebook,
    min_rating: int,
    k: int = 20,
    *,
    subtopics: SubtopicChoice = "auto",
    policy: CoverPolicy = EXAM,
) -> ItemScores:
    """What the first k passages of every system make of every item.

    Raises:
        InputError: k is below 1, or there is no such subtopic mode.
    """
    check_integer("the cutoff", k, 1)
    mode = resolve_subtopics(gradebook, subtopics)
    order = sorted(range(len(gradebook.systems)), key=gradebook.systems.__getitem__)
    columns: list[Floats] = []
    keys: list[tuple[str, str, str, float]] = []
    lacking = cells = 0
    answered: dict[str, Bools] = {}
    for exam in cover_exams(gradebook, mode, k, policy):
        ratings = exam.query.ratings[:, exam.items]
        layout = lay_out(exam.passages, None if policy.ranks_as_written else k)
        seen = ratings[layout.passages]
        lacking, cells = lacking + int((seen == MISSING).sum()), cells + seen.size
        best = per_system(np.maximum, seen, layout, MISSING)
        columns.append((best >= min_rating).astype(np.float64))
        query = exam.query.query_id
        answered[query] = answered.get(query, False) | layout.answered
        ids = (exam.query.item_ids[item] for item in exam.items)
        weights = exam.query.weights[exam.items].tolist()
        keys += [(query, exam.exam_id, *one) for one in zip(ids, weights, strict=True)]
    credit_of = np.concatenate(columns, axis=1) if columns else np.zeros((len(order), 0))
    at = sorted(range(len(keys)), key=lambda one: (keys[one][0], keys[one][2]))
    queries = sorted(answered)
    exam_ids = sorted({key[1] for key in keys})
    silent = [sum(not found[system] for found in answered.values()) for system in order]
    return ItemScores(
        systems=tuple(gradebook.systems[system] for system in order),
        queries=tuple(queries),
        item_ids=tuple(keys[one][2] for one in at),
        query=np.array([queries.index(keys[one][0]) for one in at], np.intp),
        exam=np.array([exam_ids.index(keys[one][1]) for one in at], np.intp),
        weights=np.array([keys[one][3] for one in at], np.float64),
        credit=credit_of[order][:, at],
        min_rating=min_rating,
        k=k,
        subtopics=mode,
        missing=lacking / cells if cells else 0.0,
        unanswered=tuple(silent),
    )
