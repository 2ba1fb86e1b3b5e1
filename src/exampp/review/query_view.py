"""One query with its evidence of relevance: the items, passages and cells of all review lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.records.decisions import Decision, effective_decision
from exampp.records.gradebook import MISSING, Dossier
from exampp.records.graders import State
from exampp.review.evidence import Criteria, Evidence, ReturnCounts, evidence, returned


class QueryItem(NamedTuple):
    """An item and its query."""

    query_id: str
    query_text: str
    item_id: str
    text: str


class PassageEvidence(NamedTuple):
    """A passage with the evidence of its relevance.

    `evidence` describes it briefly (empty: unknown), `by` is its basis; `systems` counts the
    systems that returned the passage, `rank` is the best rank (None: not returned).
    """

    passage_id: str
    title: str
    text: str
    evidence: str
    by: str
    judgment: int | None
    systems: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell: rating and answer of the grader, human decisions, and the rating in force.

    `rating` is the rating in force and `automatic` the grader's, None if missing; `state` is None
    if the cell was never tried. `decision` is the one that overrides the grade.
    """

    item: QueryItem
    passage: PassageEvidence
    rating: int | None
    automatic: int | None
    state: State | None
    reply: str | None
    confidence: float | None
    answer: str
    decision: Decision | None


class QueryView:
    """The dossier of a query with criteria; the source of all lists."""

    def __init__(self, dossier: Dossier, criteria: Criteria) -> None:
        self.dossier = dossier
        self.grades = dossier.grades
        self.evidence: Evidence = evidence(dossier, criteria)
        self.returned: ReturnCounts = returned(self.grades, criteria.depth)
        self.judged = self.grades.judgments.max(axis=0)
        self.is_graded = self.grades.ratings != MISSING
        self.covers = self.grades.ratings >= criteria.min_rating
        self.covers_wanted = self.covers & (self.grades.weights > 0)
        self.looked_at = self.covers.sum(axis=1) >= criteria.min_answers
        self.min_rating = criteria.min_rating

    def item(self, column: int) -> QueryItem:
        """Return the item of a column."""
        item, query = self.dossier.items[column], self.dossier
        return QueryItem(query.query_id, query.query_text, item.item_id, item.text)

    def passage(self, row: int) -> PassageEvidence:
        """Return the passage of a row."""
        text = self.dossier.texts[row]
        judgment = int(self.judged[row])
        return PassageEvidence(
            self.grades.passage_ids[row],
            text.title if text else "",
            text.text if text else "",
            self.evidence.shown[row],
            self.evidence.by,
            None if judgment == MISSING else judgment,
            int(self.returned.counts[row]),
            int(self.returned.best[row]) or None,
        )

    def cell(
        self, item: QueryItem, passage: PassageEvidence, row: int, column: int, answer: str
    ) -> CellRecord:
        """Return the cell of an item and a passage."""
        grade = self.dossier.automatic.get((row, column))
        rating = int(self.grades.ratings[row, column])
        return CellRecord(
            item,
            passage,
            None if rating == MISSING else rating,
            grade.rating if grade else None,
            grade.state if grade else None,
            grade.reply if grade else None,
            grade.confidence if grade else None,
            answer,
            effective_decision(self.dossier.decisions.get((row, column), ())),
        )

    def by_relevance(self) -> NDArray[np.intp]:
        """Return the rows by relevance, then by number of systems."""
        return np.lexsort((-self.returned.counts, -self.evidence.strength))
