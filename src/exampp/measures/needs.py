"""Cells that can still change the value of a measure, and the order in which to grade them.

Cover@k of a system needs one passage per item: once a passage among its first k reaches the minimum
rating, no other grade of these passages for the item changes the value. So an item is open for a
system while none of its first k passages covers it, and a cell is needed while its item is open for
some system that returned its passage. nCover also needs the whole pool, as one more system. Avoided
and Points read the items to avoid in the same way. Nugget scores are open below full support. All
other measures need all cells.

A round has a set of passages for each item, so that every system with the item open gets one: first
the passage that most of these systems returned, then the one that most of the others returned, and
so on. In this order each of these cells is needed whatever the grades of those before it are, and k
rounds end. In another order a grade of the round may close a cell: see `QueryNeeds.is_needed`.

If items of a passage share a request, a round has passages instead: first the passage with the most
pairs of a system and an open item, with all items that it can still cover, then the one with most
of the other pairs, and so on. So no passage is in two rounds.

Where cells are skipped because they hardly cover, an item is open by the grades of the other cells
alone, so that the value without skipped cells is known; a drawn item is open by all grades, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.cover import (
    AVOIDING,
    EXAM,
    CoverPolicy,
    cover_exams,
    items_read,
)
from exampp.measures.exams import Subtopics, lay_out, resolve_subtopics
from exampp.measures.names import CUTOFF, Measure, heading
from exampp.measures.nugget_scores import NUGGET_SCORES, shares_of
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
from exampp.stats.estimate import Bools

Counts = NDArray[np.intp]


class _Readers(NamedTuple):
    """Pairs of a passage and a system that reads it, by passage, and the items that count.

    The pairs of each passage start at `starts`.
    """

    passages: NDArray[np.intp]
    systems: NDArray[np.intp]
    starts: Sequence[int]
    system_count: int
    items: Bools

    def of(self, passage: int) -> NDArray[np.intp]:
        """Return the systems that read a passage."""
        return self.systems[self.starts[passage] : self.starts[passage + 1]]

    def reach(self, cells: Bools) -> Bools:
        """Return the items of each system with one of these cells, [systems, items]."""
        reached = np.zeros((self.system_count, cells.shape[1]), np.bool_)
        pair, item = cells[self.passages].nonzero()
        reached[self.systems[pair], item] = True
        return reached

    def votes(self, is_open: Bools, shape: tuple[int, int]) -> Counts:
        """Return the number of systems with the item open that read each passage."""
        pair, item = is_open[self.systems].nonzero()
        votes = np.bincount(self.passages[pair] * shape[1] + item, minlength=shape[0] * shape[1])
        return votes.reshape(shape)


class _Version(NamedTuple):
    """Ratings, and the cells that keep theirs: because of a human decision, or because their grades
    do not count.
    """

    ratings: Ratings
    decided: Bools


@dataclass(slots=True)
class QueryNeeds:
    """The needed cells of one query, [passages, items], while its cells are graded.

    `candidates` are the cells that may be graded: pending, and not yet requested. `shared` are the
    cells that one request grades, by each of them, if there are several.
    """

    candidates: Bools
    threshold: int
    readers: Sequence[_Readers]
    needs_all: bool
    versions: Sequence[_Version]
    shared: Mapping[Cell, Sequence[Cell]] = field(default_factory=dict)
    _is_open: list[Bools] = field(default_factory=list)

    @property
    def needed(self) -> Bools:
        """Return the candidates that can still change a value."""
        if self.needs_all:
            return self.candidates.copy()
        return self.candidates & (self._votes(self._open()) > 0)

    def is_needed(self, passage: int, item: int) -> bool:
        """Return whether the grade of a cell can still change a value."""
        return self.needs_all or any(
            is_open[systems, item].any()
            for is_open, systems in self._open_to(self._open(), passage, item)
        )

    def next_round(self, *, by_passage: bool = False) -> list[Cell]:
        """Return the next cells to grade, in order; they are no longer candidates.

        `by_passage`: with all needed items of a passage at once, because they share a request.
        """
        if self.needs_all:
            rest = [(passage, item) for passage, item in np.argwhere(self.candidates).tolist()]
            self.candidates[:] = False
            return rest
        chosen: list[Cell] = []
        left, needed = [is_open.copy() for is_open in self._open()], self.needed
        while True:
            votes = self._votes(left) * self.candidates
            if not votes.any():
                return chosen
            if by_passage:
                passage = int(votes.sum(axis=1).argmax())
                cells = self._with_equal_texts(passage, needed & self.candidates)
            else:
                items = votes.max(axis=0).nonzero()[0]
                best = votes[:, items].argmax(axis=0).tolist()
                cells = list(zip(best, items.tolist(), strict=True))
            chosen += cells
            # several passages may close one item
            for cell in cells:
                for passage, item in self.shared.get(cell, (cell,)):
                    self.candidates[passage, item] = False
                    self._close(left, passage, item)

    def _with_equal_texts(self, passage: int, cells: Bools) -> list[Cell]:
        """Return those of some cells that have this passage, or another one with its text."""
        shared = (self.shared.get((passage, item), ()) for item in range(cells.shape[1]))
        equal = {row for places in shared for row, _ in places} - {passage}
        rows = [passage, *sorted(equal)]
        return [(row, item) for row in rows for item in cells[row].nonzero()[0].tolist()]

    def forget_candidates(self) -> None:
        """Drop grades of candidates: they are for an earlier text of the query."""
        for version in self.versions:
            version.ratings[self.candidates & ~version.decided] = MISSING

    def rate(self, passage: int, item: int, rating: int) -> None:
        """Record the grade of a cell."""
        if rating >= self.threshold:
            self._close(self._open(), passage, item)

    def _parts(self) -> Iterator[tuple[_Version, _Readers]]:
        return product(self.versions, self.readers)

    def _open(self) -> list[Bools]:
        """Return the open items of each system, [systems, items], by version and readers."""
        self._is_open = self._is_open or [
            readers.items & ~readers.reach(version.ratings >= self.threshold)
            for version, readers in self._parts()
        ]
        return self._is_open

    def _open_to(
        self, is_open: Sequence[Bools], passage: int, item: int
    ) -> Iterator[tuple[Bools, NDArray[np.intp]]]:
        """Yield the open items and the systems that read a cell, where its grade counts."""
        for (version, readers), one in zip(self._parts(), is_open, strict=True):
            if not version.decided[passage, item]:
                yield one, readers.of(passage)

    def _close(self, is_open: Sequence[Bools], passage: int, item: int) -> None:
        for one, systems in self._open_to(is_open, passage, item):
            one[systems, item] = False

    def _votes(self, is_open: Sequence[Bools]) -> Counts:
        """Return the number of open systems that read each passage, [passages, items]."""
        votes = np.zeros(self.candidates.shape, np.intp)
        for (version, readers), one in zip(self._parts(), is_open, strict=True):
            votes += readers.votes(one, self.candidates.shape) * ~version.decided
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
    versions = [_Version(query.ratings.copy(), _decided(query))]
    if query.decided:
        (automatic,) = without_decisions(book).queries
        versions.append(_Version(automatic.ratings, np.zeros(query.ratings.shape, np.bool_)))
    if skips is not None:
        ignored = skips.cells, np.broadcast_to(~skips.drawn, candidates.shape)
        versions = [
            _Version(np.where(cells, MISSING, one.ratings), one.decided | cells)
            for one in versions
            for cells in ignored
        ]
    return QueryNeeds(candidates, threshold, readers, needs_all, versions)


def _readers(
    book: Gradebook, measure: Measure, subtopics: Subtopics, policy: CoverPolicy
) -> Iterator[_Readers]:
    k = measure.cutoff or 1
    for exam in cover_exams(book, subtopics, k, policy, avoided=measure.name in AVOIDING):
        passages, count = exam.query.ratings.shape
        items = np.zeros(count, np.bool_)
        items[exam.items] = items_read(measure, exam.query.weights[exam.items])
        if measure.name in NUGGET_SCORES and exam.query.importances:
            items &= shares_of(measure, exam.query.importances) > 0
        depth = None if policy.ranks_as_written else k
        layout = lay_out([one for one in exam.passages if one is not None], depth)
        pairs = (layout.passages, layout.system), len(layout.answered)
        yield _by_passage(*pairs, passages, items)
        if measure.name == "nCover":
            pool = np.arange(passages)
            yield _by_passage((pool, np.zeros_like(pool)), 1, passages, items)


def _by_passage(
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]], systems: int, passages: int, items: Bools
) -> _Readers:
    order = pairs[0].argsort(kind="stable")
    read = pairs[0][order]
    starts = read.searchsorted(np.arange(passages + 1)).tolist()
    return _Readers(read, pairs[1][order], starts, systems, items)


def _decided(query: QueryGrades) -> Bools:
    decided = np.zeros(query.ratings.shape, np.bool_)
    for _, place in query.decided_places():
        decided[place] = True
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
