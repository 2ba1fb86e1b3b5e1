"""Cells that can still change the value of a measure, and the order in which to grade them.

Cover@k of a system needs one passage per item: once a passage among its first k reaches the minimum
rating, no other grade of these passages for the item changes the value. So an item is open for a
system while none of its first k passages covers it, and a cell is needed while its item is open for
some system that returned its passage. nCover also needs the whole pool, as one more system. Nugget
scores are open below full support. All other measures need all cells.

A round has a set of passages for each item, so that every system with the item open gets one: first
the passage that most of these systems returned, then the one that most of the others returned, and
so on. Each of these cells is needed whatever the grades of those before it are, and k rounds end.

Where cells are skipped because they hardly cover, an item is open by the grades of the other cells
alone, so that the value without skipped cells is known; a drawn item is open by all grades, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.cover import EXAM, NUGGET_SCORES, CoverPolicy, cover_exams, shares_of
from exampp.measures.exams import Subtopics, resolve_subtopics
from exampp.measures.names import CUTOFF, Measure, heading
from exampp.records.gradebook import (
    MISSING,
    Cell,
    Gradebook,
    QueryGrades,
    Ratings,
    SkippedCells,
    without_decisions,
)
from exampp.records.wording import counted

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


class _Readers(NamedTuple):
    """Systems by the passages that they read ([systems, passages], 0 or 1), and the items that
    count.
    """

    reads: Floats
    items: Bools


class _Version(NamedTuple):
    """Ratings, the cells that keep theirs because of a human decision, and the cells that count."""

    ratings: Ratings
    decided: Bools
    counted: Bools


@dataclass(slots=True)
class QueryNeeds:
    """The needed cells of one query, [passages, items], while its cells are graded.

    `candidates` are the cells that may be graded: pending, and not yet requested. `shared` are the
    cells that one request grades, by each of them, if there are several. Only cells of `certain`
    items are needed for sure. `skips` are the skipped cells.
    """

    candidates: Bools
    threshold: int
    readers: Sequence[_Readers]
    needs_all: bool
    versions: Sequence[_Version]
    shared: Mapping[Cell, Sequence[Cell]] = field(default_factory=dict)
    certain: Bools | None = None
    skips: SkippedCells | None = None

    @property
    def needed(self) -> Bools:
        """Return the candidates that can still change a value."""
        if self.needs_all:
            return self.candidates.copy()
        needed: Bools = self.candidates & (self._votes(self._open()) > 0)
        return needed

    @property
    def at_least(self) -> int:
        """Return a lower bound on the cells that end the grading of the query."""
        if self.needs_all:
            return int(self.candidates.sum())
        certain, least = True if self.certain is None else self.certain, 0
        for (version, readers), is_open in zip(self._views(), self._open(), strict=True):
            candidates = (self.candidates & version.counted & certain).astype(np.float32)
            gradable = is_open & (readers.reads @ candidates > 0)
            votes = readers.reads.T @ gradable.astype(np.float32)
            most, systems = (candidates * votes).max(axis=0, initial=0), gradable.sum(axis=0)
            least = max(least, int(np.ceil(systems / np.maximum(most, 1)).sum()))
        return least

    def next_round(self) -> list[Cell]:
        """Return the next cells to grade, in order; they are no longer candidates."""
        if self.needs_all:
            rest = [(passage, item) for passage, item in np.argwhere(self.candidates).tolist()]
            self.candidates[:] = False
            return rest
        chosen: list[Cell] = []
        left = self._open()
        while True:
            votes = np.where(self.candidates, self._votes(left), 0)
            if not votes.size or not votes.any():
                return chosen
            items = np.flatnonzero(votes.max(axis=0))
            passages = votes[:, items].argmax(axis=0)
            cells = list(zip(passages.tolist(), items.tolist(), strict=True))
            chosen += cells
            if more := [other for one in cells for other in self.shared.get(one, ())]:
                passages, items = np.array([*cells, *more]).T
            self.candidates[passages, items] = False
            for (version, readers), is_open in zip(self._views(), left, strict=True):
                closing = (readers.reads[:, passages] > 0) & version.counted[passages, items]
                # several passages may close one item
                np.logical_and.at(is_open.T, items, ~closing.T)

    @property
    def skipped(self) -> Bools:
        """Return the candidates that could change a value, but are skipped."""
        if self.skips is None:
            return np.zeros(self.candidates.shape, np.bool_)
        every = np.broadcast_to(np.True_, self.candidates.shape)
        # of each pair of versions, either counts all cells
        versions = [one._replace(counted=every) for one in self.versions[::2]]
        left: Bools = replace(self, versions=versions, skips=None).needed & ~self.needed
        return left

    @property
    def automatic(self) -> Ratings:
        """Return the ratings without human decisions."""
        return self.versions[-1].ratings

    def forget_candidates(self) -> None:
        """Drop grades of candidates: they are for an earlier text of the query."""
        for version in self.versions:
            version.ratings[self.candidates & ~version.decided] = MISSING

    def rate(self, passage: int, item: int, rating: int) -> None:
        """Record the grade of a cell."""
        for version in self.versions:
            if not version.decided[passage, item]:
                version.ratings[passage, item] = rating

    def _views(self) -> Iterator[tuple[_Version, _Readers]]:
        return ((version, readers) for version in self.versions for readers in self.readers)

    def _open(self) -> list[Bools]:
        """Return the open items of each system, [systems, items], by version and readers."""
        covering = [
            ((one.ratings >= self.threshold) & one.counted).astype(np.float32)
            for one in self.versions
        ]
        return [
            (readers.reads @ cells == 0) & readers.items
            for cells in covering
            for readers in self.readers
        ]

    def _votes(self, is_open: Sequence[Bools]) -> Floats:
        """Return the number of open systems that read each passage, [passages, items]."""
        votes = np.zeros(self.candidates.shape, np.float32)
        for (version, readers), systems in zip(self._views(), is_open, strict=True):
            votes += readers.reads.T @ systems.astype(np.float32) * version.counted
        return votes


def query_needs(
    book: Gradebook,
    measures: Iterable[Measure],
    threshold: int,
    subtopics: Subtopics,
    candidates: Bools,
    policy: CoverPolicy = EXAM,
    skips: SkippedCells | None = None,
) -> QueryNeeds:
    """Return the needs of the only query of a gradebook, for measures with a cutoff.

    `threshold` is the highest of the minimum ratings: an item covered there is covered at lower
    ones. Grades that human decisions override are needed, too, because leaderboards show both.
    `skips` are the cells to skip.
    """
    (query,) = book.queries
    readers: list[_Readers] = []
    needs_all = False
    for measure in measures:
        if measure.kind.cover:
            readers += _readers(book, measure, subtopics, policy)
        else:
            needs_all = True
    graded = [(query.ratings.copy(), _decided(query))]
    if query.decided:
        (automatic,) = without_decisions(book).queries
        graded.append((automatic.ratings, np.zeros(query.ratings.shape, np.bool_)))
    shape = query.ratings.shape
    counted: list[Bools] = [np.broadcast_to(np.True_, shape)]
    if skips is not None:
        counted = [~skips.cells, np.broadcast_to(skips.drawn, shape)]
    versions = [_Version(*one, cells) for one in graded for cells in counted]
    return QueryNeeds(candidates, threshold, readers, needs_all, versions, skips=skips)


def _readers(
    book: Gradebook, measure: Measure, subtopics: Subtopics, policy: CoverPolicy
) -> Iterator[_Readers]:
    k = measure.cutoff or 1
    for exam in cover_exams(book, subtopics, k, policy):
        passages, count = exam.query.ratings.shape
        items = np.zeros(count, np.bool_)
        items[exam.items] = True
        if measure.name in NUGGET_SCORES and exam.query.importances:
            items &= shares_of(measure, exam.query.importances) > 0
        ranked = [one for one in exam.passages if one is not None]
        reads = np.zeros((len(ranked), passages), np.float32)
        for row, one in zip(reads, ranked, strict=True):
            row[one if policy.ranks_as_written else one[:k]] = 1
        yield _Readers(reads, items)
        if measure.name == "nCover":
            yield _Readers(np.ones((1, passages), np.float32), items)


def _decided(query: QueryGrades) -> Bools:
    decided = np.zeros(query.ratings.shape, np.bool_)
    row = {passage_id: index for index, passage_id in enumerate(query.passage_ids)}
    column = {item_id: index for index, item_id in enumerate(query.item_ids)}
    for cell in query.decided:
        decided[row[cell.passage_id], column[cell.item_id]] = True
    return decided


def count_missing_needed(
    book: Gradebook,
    measure: Measure,
    threshold: int,
    subtopics: Subtopics,
    k: int,
    policy: CoverPolicy = EXAM,
    *,
    skipping: bool = False,
) -> int:
    """Count the cells without a grade that a measure needs, without skipped ones if `skipping`.

    Counts passages with a text that are among the first k of a ranking or have another grade, or
    all for nCover.
    """
    missing = 0
    for query in book.queries:
        graded = query.ratings != MISSING
        reads = graded.any(axis=1) | (measure.name == "nCover")
        for ranking in query.rankings:
            reads[ranking.passages[:k]] = True
        reads[query.pool_size :] = False
        alone = replace(book, queries=(query,))
        candidates = ~graded & reads[:, None]
        skips = query.skips if skipping else None
        needs = query_needs(alone, [measure], threshold, subtopics, candidates, policy, skips)
        missing += int(needs.needed.sum())
    return missing


def check_needed_cells(
    book: Gradebook,
    measures: Iterable[Measure],
    thresholds: Sequence[int],
    subtopics: Subtopics,
    policy: CoverPolicy = EXAM,
) -> None:
    """Reject measures that need cells that other measures did not need when they were graded.

    Cells that are pending for the same measures are noted instead.
    """
    if book.target is None:
        return
    measures = tuple(measures)
    threshold = max(thresholds, default=book.grader.highest)
    same = (
        subtopics == resolve_subtopics(book, "auto")
        and policy is EXAM
        and threshold <= book.highest_threshold
    )
    k = max(one.cutoff or CUTOFF for one in measures)
    for measure in measures:
        if same and str(measure) in book.target.measures:
            continue
        missing = count_missing_needed(book, measure, threshold, subtopics, k, policy)
        if missing:
            every = dict.fromkeys((*book.target.measures, str(measure)))
            wanted = " ".join(f"--for '{one}'" for one in every)
            what = heading(str(measure), threshold if measure.takes_level else None)
            raise InputError(
                f"{what} needs {counted(missing, 'cell')} without a grade: only cells that "
                f"{book.target} needs are graded",
                hint=f"Run exampp grade again with {wanted} --min-rating {threshold}, or without "
                "--for to grade all cells",
            )
