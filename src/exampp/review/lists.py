"""The four lists of the workbench paper (003, section 4.4), as plain records of one query each.

Verify grading: what the grader said, item by item. Grid: passages by items. Missing: relevant
passages that no item covers. Spurious: items that passages cover which are not relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from exampp.records.decisions import Decision, effective
from exampp.records.dossier import Cell, Dossier
from exampp.records.gradebook import MISSING
from exampp.records.grading import State
from exampp.review.evidence import Criteria, Evidence, ReturnCounts, evidence, returned

T = TypeVar("T")
Answers = Mapping[Cell, str]
"""What another grader extracted as the answer, by cell."""
EXAMPLES = 3


class AskedItem(NamedTuple):
    """An item, and the query that it belongs to."""

    query_id: str
    query_text: str
    item_id: str
    text: str
    subtopic_id: str | None


class ReadPassage(NamedTuple):
    """A passage, and what is known of its relevance.

    `evidence` says it in a word (empty: nothing is known), `by` on which basis; `systems` returned
    it, at best at `rank` (None: no system did).
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
    """One cell: what the grader said, what was extracted, what people decided, what holds.

    `rating` is what holds and `automatic` the grader's, None where there is none; `state` is None
    where the grader never tried. `decision` is the one that stands over the grade.
    """

    item: AskedItem
    passage: ReadPassage
    rating: int | None
    automatic: int | None
    state: State | None
    reply: str | None
    confidence: float | None
    answer: str
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A passage of a grid: its best rating and its cells, in the order of the items."""

    passage: ReadPassage
    best: int | None
    cells: tuple[CellRecord, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Passages by items, the most relevant passages first."""

    query_id: str
    query_text: str
    items: tuple[AskedItem, ...]
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """A relevant passage that covers no item; `item` comes closest, with the rating `best`."""

    query_id: str
    query_text: str
    passage: ReadPassage
    best: int
    item: AskedItem


@dataclass(frozen=True, slots=True)
class SpuriousEntry:
    """An item that `count` passages cover which are not relevant.

    There are `irrelevant` such passages with a grade; `relevant` ones cover it `relevant_count`
    times. `overturned` counts cells where the grader saw an answer and people none. `examples` are
    the first few of the passages counted.
    """

    item: AskedItem
    count: int
    irrelevant: int
    relevant_count: int
    relevant: int
    overturned: int
    by: str
    examples: tuple[ReadPassage, ...]


# ---- one query, looked at once -------------------------------------------------------------------


class Sight:
    """A query's dossier under some criteria: what all lists are made from."""

    def __init__(self, dossier: Dossier, criteria: Criteria) -> None:
        self.dossier = dossier
        self.grades = dossier.grades
        self.evidence: Evidence = evidence(dossier, criteria)
        self.returned: ReturnCounts = returned(self.grades, criteria.depth)
        self.judged = self.grades.judgments.max(axis=0)
        self.is_graded = self.grades.ratings != MISSING
        self.covers = self.grades.ratings >= criteria.min_rating
        self.looked_at = self.covers.sum(axis=1) >= criteria.min_answers
        self.min_rating = criteria.min_rating

    def item(self, column: int) -> AskedItem:
        """The item of a column."""
        item, query = self.dossier.items[column], self.dossier
        return AskedItem(
            query.query_id, query.query_text, item.item_id, item.text, item.subtopic_id
        )

    def passage(self, row: int) -> ReadPassage:
        """The passage of a row."""
        text = self.dossier.texts[row]
        judgment = int(self.judged[row])
        return ReadPassage(
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
        self, item: AskedItem, passage: ReadPassage, row: int, column: int, answer: str
    ) -> CellRecord:
        """The cell of an item and a passage."""
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
            effective(self.dossier.decisions.get((row, column), ())),
        )

    def by_relevance(self) -> NDArray[np.intp]:
        """Rows, the most relevant first; then those that most systems returned."""
        return np.lexsort((-self.returned.counts, -self.evidence.strength))


# ---- the lists -----------------------------------------------------------------------------------


def verify(
    sight: Sight,
    *,
    answers: Answers | None = None,
    item_id: str | None = None,
    limit: int | None = None,
) -> Iterator[CellRecord]:
    """Every cell that was tried or decided, item by item, from both ends: best, worst, next best.

    The best has the highest rating and, of several, the passage least likely to be relevant; the
    worst is the other end. So what is likely wrong comes first. Cells without a rating come last.
    `limit` leaves so many cells of each item.
    """
    for column in chosen_items(sight.dossier, item_id):
        yield from item_cells(sight, column, cell_order(sight, column)[:limit], answers or {})


def cell_order(sight: Sight, column: int) -> list[int]:
    """The passages of an item that were tried or decided, in the order of `verify`."""
    ratings = sight.grades.ratings[:, column]
    found = np.lexsort((sight.evidence.strength, -ratings.astype(np.int64)))
    order = found[sight.looked_at[found]]
    graded = [int(row) for row in order if ratings[row] != MISSING]
    untold = (int(row) for row in order if ratings[row] == MISSING)
    tried = sight.dossier.automatic
    return [*from_both_ends(graded), *(row for row in untold if (row, column) in tried)]


def item_cells(
    sight: Sight, column: int, rows: Iterable[int], answers: Answers
) -> Iterator[CellRecord]:
    """The cells of an item and these passages."""
    item = sight.item(column)
    for row in rows:
        yield sight.cell(item, sight.passage(row), row, column, answers.get((row, column), ""))


def chosen_items(dossier: Dossier, item_id: str | None) -> list[int]:
    """The columns of all items; of the one with this id; or of those whose ids start so."""
    ids = dossier.grades.item_ids
    if item_id is None:
        return list(dossier.bank_order)
    if item_id in ids:
        return [ids.index(item_id)]
    return [column for column, known in enumerate(ids) if known.startswith(item_id)]


def from_both_ends(things: Sequence[T]) -> list[T]:
    """The first, the last, the second, the second to last, and so on."""
    half = (len(things) + 1) // 2
    mixed = list(things)
    mixed[::2], mixed[1::2] = things[:half], things[half:][::-1]
    return mixed


def grid(
    sight: Sight,
    *,
    answers: Answers | None = None,
    item_id: str | None = None,
    limit: int | None = None,
) -> Grid:
    """All passages with a text by all items, or by one; `limit` leaves so many passages."""
    dossier = sight.dossier
    columns = chosen_items(dossier, item_id)
    items = [sight.item(column) for column in columns]
    pool = dossier.grades.pool_size
    order = sight.by_relevance()
    rows = [int(row) for row in order[sight.looked_at[order]] if row < pool][:limit]
    found = []
    for row in rows:
        passage = sight.passage(row)
        cells = tuple(
            sight.cell(item, passage, row, column, (answers or {}).get((row, column), ""))
            for item, column in zip(items, columns, strict=True)
        )
        best = max((cell.rating for cell in cells if cell.rating is not None), default=None)
        found.append(GridRow(passage, best, cells))
    return Grid(dossier.query_id, dossier.query_text, tuple(items), tuple(found))


def missing(sight: Sight) -> Iterator[MissingEntry]:
    """Relevant passages with grades, all of them below the threshold; the most relevant first."""
    dossier = sight.dossier
    if not dossier.items:
        return
    uncovered = sight.evidence.relevant & sight.is_graded.any(axis=1) & ~sight.covers.any(axis=1)
    for row in sight.by_relevance():
        if uncovered[row]:
            column = int(dossier.grades.ratings[row].argmax())
            best = int(dossier.grades.ratings[row, column])
            item, passage = sight.item(column), sight.passage(int(row))
            yield MissingEntry(dossier.query_id, dossier.query_text, passage, best, item)


def ungraded_relevant(sight: Sight) -> int:
    """How many relevant passages have no grade at all, so that nobody knows what they cover."""
    return int((sight.evidence.relevant & ~sight.is_graded.any(axis=1)).sum())


def spurious(sight: Sight) -> list[SpuriousEntry]:
    """Items that passages cover which are not relevant, the most frequent first."""
    dossier, known = sight.dossier, sight.evidence
    wrong = sight.covers & known.irrelevant[:, None]
    right = sight.covers & known.relevant[:, None]
    overturned = _overturned(dossier, sight.min_rating)
    found = []
    for column in range(len(dossier.items)):
        rows = np.flatnonzero(wrong[:, column])
        if len(rows) or overturned[column]:
            graded = sight.is_graded[:, column]
            first = rows[np.argsort(known.strength[rows], kind="stable")][:EXAMPLES]
            entry = SpuriousEntry(
                sight.item(column),
                len(rows),
                int((graded & known.irrelevant).sum()),
                int(right[:, column].sum()),
                int((graded & known.relevant).sum()),
                int(overturned[column]),
                known.by,
                tuple(sight.passage(int(row)) for row in first),
            )
            found.append(entry)
    return sorted(found, key=lambda entry: (-entry.count, -entry.overturned))


def item_errors(
    sight: Sight, item_id: str, most: int = EXAMPLES
) -> tuple[list[CellRecord], list[CellRecord]]:
    """What is likely wrong with an item: passages that cover it in vain, and those it misses.

    The first are not relevant and cover it, the best rated first; the others are relevant, graded
    and do not cover it, the most relevant first. Nothing of an item that is not known.
    """
    if item_id not in sight.grades.item_ids:
        return [], []
    column = sight.grades.item_ids.index(item_id)
    known, ratings = sight.evidence, sight.grades.ratings[:, column].astype(np.int64)
    covers = sight.covers[:, column]
    in_vain = np.flatnonzero(covers & known.irrelevant)
    missed = np.flatnonzero(~covers & sight.is_graded[:, column] & known.relevant)
    in_vain = in_vain[np.lexsort((known.strength[in_vain], -ratings[in_vain]))]
    missed = missed[np.lexsort((ratings[missed], -known.strength[missed]))]
    return (
        list(item_cells(sight, column, in_vain[:most].tolist(), {})),
        list(item_cells(sight, column, missed[:most].tolist(), {})),
    )


def _overturned(dossier: Dossier, min_rating: int) -> NDArray[np.int64]:
    """Per item, the cells where the grader saw an answer and people do not."""
    found = np.zeros(len(dossier.items), np.int64)
    for (row, column), made in dossier.decisions.items():
        stands, grade = effective(made), dossier.automatic.get((row, column))
        if stands is None or stands.rating is None or grade is None or grade.rating is None:
            continue
        found[column] += stands.rating < min_rating <= grade.rating
    return found
