"""Grade only the cells that some measures need.

Need is a function of runs, bank and grades: nothing is stored for a cell. The target is stored with
the run, so that status and evaluation know which cells are not needed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.cover import check_partial
from exampp.measures.exams import default_subtopics
from exampp.measures.names import CUTOFF, Measure, as_measures, parse_measure
from exampp.measures.needs import QueryNeeds, query_needs
from exampp.records.gradebook import MISSING
from exampp.records.graders import GraderIdentity, GradingTarget
from exampp.store.cells import (
    Cell,
    GradingScope,
    PendingCells,
    cells_in_scope,
    count_pending,
    has_subtopics,
    pending_of_query,
    query_order,
)
from exampp.store.grades import StoredGrader
from exampp.store.read_model import QueryRows, query_gradebook
from exampp.store.runs import target_of


def grading_target(
    measures: Sequence[Measure | str],
    min_rating: int | Sequence[int] | None,
    grader: GraderIdentity,
    depth: int,
) -> GradingTarget | None:
    """Return the target of some measures, None without any; the default minimum rating is that of
    the grader. A requirement of a gate, such as `Cover@20>=0.7`, counts by its measure.

    Raises:
        InputError: A measure is unknown, a threshold is off the scale, the measures read passages
            beyond `depth`, or the grader has no items.
    """
    if not measures:
        if min_rating is not None:
            raise InputError("--min-rating has no effect without --for", hint="Remove it")
        return None
    if grader.kind == "query":
        raise InputError(
            "a grader of queries has one cell per passage, and all are needed", hint="Remove --for"
        )
    names = (re.split("[<>]", str(one))[0].strip() for one in measures)
    chosen = [one.cut(CUTOFF) if one.kind.cover else one for one in as_measures(names)]
    for one in chosen:
        check_partial(one, grader)
        if (one.cutoff or 0) > depth:
            raise InputError(
                f"{one} reads more than the {depth} passages of each ranking that are graded",
                hint=f"Set --depth {one.cutoff}",
            )
    thresholds = [min_rating] if min_rating is None or isinstance(min_rating, int) else min_rating
    return GradingTarget(
        tuple(dict.fromkeys(map(str, chosen))),
        tuple(sorted(set(map(grader.threshold, thresholds)))),
    )


class QueryPlan:
    """The pending requests of a query that a target still needs, in rounds."""

    def __init__(self, needs: QueryNeeds, requests: dict[tuple[int, int], PendingCells]) -> None:
        self._needs = needs
        self._requests = requests
        self._places: dict[tuple[Cell, ...], list[tuple[int, int]]] = {}
        for place, one in requests.items():
            self._places.setdefault(one.cells, []).append(place)
        several = (places for places in self._places.values() if len(places) > 1)
        needs.shared = {place: places for places in several for place in places}

    @property
    def at_least(self) -> int:
        """Return a lower bound on the requests; equal texts share one, and copies need none."""
        shared = max(map(len, self._places.values()), default=1)
        copies = {one.cells for one in self._requests.values() if one.twin is not None}
        return max(0, -(-self._needs.at_least // shared) - len(copies))

    @property
    def cells(self) -> int:
        """Return the number of pending cells."""
        return sum(map(len, self._places))

    @property
    def needed(self) -> list[PendingCells]:
        """Return the requests with a needed cell."""
        needed = self._needs.needed
        return self._at((passage, item) for passage, item in np.argwhere(needed).tolist())

    def next_round(self) -> list[PendingCells]:
        """Return the requests of the next round; they are returned once."""
        # requests about one passage are consecutive, so that they can be sent as one
        return sorted(self._at(self._needs.next_round()), key=lambda one: one.ids.passage)

    def is_needed(self, one: PendingCells) -> bool:
        """Return whether the grade of a request can still change a value."""
        return any(self._needs.is_needed(*place) for place in self._places.get(one.cells, ()))

    def _at(self, places: Iterable[tuple[int, int]]) -> list[PendingCells]:
        """Return the requests for these cells, each once."""
        return list({self._requests[at].cells: self._requests[at] for at in places}.values())

    def rate(self, one: PendingCells, rating: int) -> None:
        """Record the grade of a request."""
        for passage, item in self._places.get(one.cells, ()):
            self._needs.rate(passage, item, rating)


class NeedCount(NamedTuple):
    """Pending cells: those that a target needs at most, and those that it does not need."""

    needed: int
    not_needed: int


def count_needed(
    connection: sqlite3.Connection, grader: StoredGrader, exam: GradingScope
) -> NeedCount:
    """Count the pending cells of a grader, by the target of its newest run."""
    target = target_of(connection, grader.key, exam.bank)
    if target is None:
        needed = count_pending(connection, grader.key, exam)
        if exam.after is None:
            return NeedCount(needed, 0)
        every = count_pending(connection, grader.key, exam._replace(after=None))
        return NeedCount(needed, every - needed)
    return TargetCells(connection, grader, exam, target).count()


class TargetCells:
    """The cells of a grader on a bank that a target needs."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        grader: StoredGrader,
        exam: GradingScope,
        target: GradingTarget,
    ) -> None:
        self._connection = connection
        self._grader = grader
        self._exam = exam
        self._measures = [parse_measure(one) for one in target.measures]
        self._threshold = max(target.min_ratings)
        rankings, items = has_subtopics(connection, exam.bank, exam.kind)
        self._subtopics = default_subtopics(rankings=rankings, items=items)

    def plan(self, query: int, pending: Iterable[PendingCells]) -> QueryPlan:
        """Return the plan of a query, with the requests that are `pending`."""
        rows, needs = self._needs(query)
        row, column = rows.row, rows.column
        requests = {
            (row[passage], column[item]): one
            for one in pending
            for item, passage in one.cells
            if item in column and passage in row
        }
        if requests:
            needs.candidates[tuple(zip(*requests, strict=True))] = True
            needs.forget_candidates()
        return QueryPlan(needs, requests)

    def count(self) -> NeedCount:
        """Count the pending cells without reading texts."""
        pending = needed = 0
        for query in query_order(self._connection, self._exam):
            rows, needs = self._needs(query)
            places = [
                (rows.row[passage], rows.column[item])
                for item, passage in self._pending(query, rows, needs)
            ]
            if places:
                needs.candidates[tuple(zip(*places, strict=True))] = True
                needs.forget_candidates()
            pending += int(needs.candidates.sum())
            needed += int(needs.needed.sum())
        return NeedCount(needed, pending - needed)

    def _pending(self, query: int, rows: QueryRows, needs: QueryNeeds) -> Iterator[Cell]:
        """Yield the pending cells of a query, by the keys of their texts."""
        exam = self._exam
        if exam.answers_of is not None or exam.by_query or exam.shard is not None:
            key = self._grader.key
            for one in pending_of_query(self._connection, query, key, exam, "pending"):
                yield from (
                    one for one in one.cells if one[0] in rows.column and one[1] in rows.row
                )
            return
        items, passages = cells_in_scope(self._connection, query, exam)
        graded = needs.automatic != MISSING
        for item, _ in items:
            for passage in passages:
                if item in rows.column and not graded[rows.row[passage], rows.column[item]]:
                    yield item, passage

    def _needs(self, query: int) -> tuple[QueryRows, QueryNeeds]:
        rows, book = query_gradebook(self._connection, self._grader, self._exam.bank, query)
        candidates = np.zeros(book.queries[0].ratings.shape, np.bool_)
        needs = query_needs(book, self._measures, self._threshold, self._subtopics, candidates)
        return rows, needs
