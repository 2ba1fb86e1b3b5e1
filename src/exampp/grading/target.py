"""Grade only the cells that some measures need.

Need is a function of runs, bank and grades: nothing is stored for a cell. The target is stored with
the run, so that status and evaluation know which cells are not needed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.grading.chances import drawn_items, learn_models, skipped_cells
from exampp.measures.exams import default_subtopics
from exampp.measures.names import CUTOFF, Measure, as_measures, parse_measure
from exampp.measures.needs import QueryNeeds, query_needs
from exampp.measures.nugget_scores import check_partial
from exampp.measures.query_sample import is_decided, outcome, random_order
from exampp.measures.requirements import parse_requirement
from exampp.records.gradebook import MISSING, Gradebook, SkippedCells, without_decisions
from exampp.records.graders import GraderIdentity, GradingTarget
from exampp.sanitize import check_choice, check_integer
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
from exampp.store.inputs import query_keys
from exampp.store.read_model import QueryRows, query_gradebook, read_gradebook
from exampp.store.runs import models_of, put_models, target_of

AUDIT = 0.2
"""Default share of the items that are drawn."""


class CellDraw(NamedTuple):
    """The chance below which cells are skipped, None for no cell; the share of drawn items, and the
    seed of the draw.
    """

    may_miss: float | None = None
    audit: float | None = None
    seed: int = 0

    def checked(self, measures: Sequence[Measure]) -> tuple[float, float, int]:
        """Return the three numbers, 0 if no cell is skipped.

        Raises:
            InputError: A number is out of range, or a measure cannot be corrected.
        """
        if self.may_miss is None:
            if self.audit is not None:
                raise InputError("--audit has no effect without --may-miss", hint="Remove it")
            return 0.0, 0.0, 0
        share = AUDIT if self.audit is None else self.audit
        for name, value in (("--may-miss", self.may_miss), ("--audit", share)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise InputError(f"{name} must be between 0 and 1, not {value}")
        for one in measures:
            if one.name != "Cover":
                raise InputError(
                    f"--may-miss corrects Cover only, not {one}", hint="Remove --may-miss"
                )
        return float(self.may_miss), float(share), check_integer("seed", self.seed, 0)


def grading_target(
    measures: Sequence[Measure | str],
    min_rating: int | Sequence[int] | None,
    grader: GraderIdentity,
    depth: int,
    draw: CellDraw,
    until: Stop | None = None,
) -> GradingTarget | None:
    """Return the target of some measures, None without any; the default minimum rating is that of
    the grader. A requirement of a gate, such as `Cover@20>=0.7`, counts by its measure.

    Raises:
        InputError: A measure is unknown, a threshold is off the scale, the measures read passages
            beyond `depth`, or the grader has no items.
    """
    if not measures:
        given = {"--min-rating": min_rating, "--may-miss": draw.may_miss, "--audit": draw.audit}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} has no effect without --for", hint="Remove it")
        if until is not None:
            raise InputError("--until needs a measure", hint="Add one, such as --for Cover@20")
        return None
    if grader.kind == "query":
        raise InputError(
            "a grader of queries has one cell per passage, and all are needed", hint="Remove --for"
        )
    names = (re.split("[<>\u2264\u2265]", str(one))[0].strip() for one in measures)
    chosen = [one.cut(CUTOFF) if one.kind.cover else one for one in as_measures(names)]
    for one in chosen:
        check_partial(one, grader)
        if (one.cutoff or 0) > depth:
            raise InputError(
                f"{one} reads more than the {depth} passages of each ranking that are graded",
                hint=f"Set --depth {one.cutoff}",
            )
    thresholds = [min_rating] if min_rating is None or isinstance(min_rating, int) else min_rating
    target = GradingTarget(
        tuple(dict.fromkeys(map(str, chosen))),
        tuple(sorted(set(map(grader.threshold, thresholds)))),
        *draw.checked(chosen),
    )
    return target if until is None else _stopping(target, measures, until)


class Stop(NamedTuple):
    """The goal that ends grading before all queries are graded.

    `until` is "order" or "gate". The order of two systems may stay open if their means differ by at
    most `margin`. Requirements of the gate may be relative to the system `baseline`.
    """

    until: str
    margin: float | None = None
    baseline: str | None = None


def _stopping(
    target: GradingTarget, measures: Sequence[Measure | str], stop: Stop
) -> GradingTarget:
    """Return the target with what ends grading.

    Raises:
        InputError: The order or gate is not about means of Cover, or an option has no effect.
    """
    check_choice("until", stop.until, ("order", "gate"))
    for name in target.measures:
        kind = parse_measure(name).kind
        if not kind.cover or not kind.share or name.startswith(("nCover", "Avoided")):
            raise InputError(
                f"--until does not support {name}, which is not a mean over all queries of a "
                "share of items",
                hint="Use Cover or a nugget score",
            )
    if stop.until == "order":
        if stop.baseline is not None:
            raise InputError(
                "--baseline-system has no effect: only a gate has a baseline", hint="Remove it"
            )
        margin = stop.margin or 0.0
        if not 0 <= margin < 1:
            raise InputError(f"the margin must be at least 0 and less than 1, not {margin}")
        return target._replace(until="order", margin=margin)
    if stop.margin is not None:
        raise InputError(
            "--margin has no effect: each requirement has its own margin", hint="Leave it out"
        )
    if len(target.min_ratings) > 1:
        raise InputError("a gate has one minimum rating", hint="Give one --min-rating")
    try:
        found = [parse_requirement(str(one)) for one in measures]
    except InputError as error:
        raise InputError(
            f"--until gate needs requirements: {error}",
            hint="Write --for 'Cover@20>=0.7', or --for 'Cover@20>=baseline-0.02'",
        ) from None
    relative = any(one.relative for one in found)
    if relative != (stop.baseline is not None):
        raise InputError(
            "a requirement relative to a baseline needs the name of that system"
            if relative
            else "--baseline-system has no effect: no requirement is relative to it",
            hint="Add --baseline-system NAME" if relative else "Remove it",
        )
    names = (str(parse_measure(one.measure).cut(CUTOFF)) for one in found)
    texts = (str(replace(one, measure=name)) for one, name in zip(found, names, strict=True))
    return target._replace(
        until="gate", requirements=tuple(dict.fromkeys(texts)), baseline=stop.baseline or ""
    )


class QueryPlan:
    """The pending requests of a query that a target still needs, in rounds.

    To count them, `exact` are the needs without skipped cells.
    """

    def __init__(
        self,
        needs: QueryNeeds,
        requests: dict[tuple[int, int], PendingCells],
        exact: QueryNeeds | None = None,
    ) -> None:
        self._needs, self._exact = needs, exact or needs
        self._requests = requests
        self._places: dict[tuple[Cell, ...], list[tuple[int, int]]] = {}
        for place, one in requests.items():
            self._places.setdefault(one.cells, []).append(place)
        several = (places for places in self._places.values() if len(places) > 1)
        needs.shared = {place: places for places in several for place in places}

    @property
    def skipped(self) -> int:
        """Return the number of pending cells that are skipped."""
        needed = {one.cells for one in self.needed}
        exact = {one.cells for one in self._at_cells(self._exact.needed)}
        return sum(map(len, exact - needed))

    @property
    def needed(self) -> list[PendingCells]:
        """Return the requests with a needed cell."""
        return self._at_cells(self._needs.needed)

    def _at_cells(self, cells: NDArray[np.bool_]) -> list[PendingCells]:
        return self._at((passage, item) for passage, item in np.argwhere(cells).tolist())

    def next_round(self, most_items: int) -> list[PendingCells]:
        """Return the requests of the next round; up to `most_items` of a passage are sent as one.

        They are returned once, and those about one passage are consecutive.
        """
        by_passage = most_items > 1
        requests = self._at(self._needs.next_round(by_passage=by_passage))
        return requests if by_passage else sorted(requests, key=lambda one: one.ids.passage)

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
    """Pending cells: those that a target needs at most, does not need, and skips."""

    needed: int
    not_needed: int
    skipped: int = 0


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
        self._target = target
        self._models = (
            models_of(connection, grader.key, exam.bank, target) if target.may_miss else None
        )
        self._measures = [parse_measure(one) for one in target.measures]
        self._threshold = max(target.min_ratings)
        rankings, items = has_subtopics(connection, exam.bank, exam.kind)
        self._subtopics = default_subtopics(rankings=rankings, items=items)
        if target.until and self._subtopics == "subtopic":
            raise InputError(
                "--until does not support rankings of subtopics", hint="Grade without --until"
            )

    @property
    def ends_early(self) -> bool:
        """Return whether grading may end before all queries are graded."""
        return bool(self._target.until)

    def query_order(self) -> list[int]:
        """Return the keys of the queries in the random order of the sample."""
        keys = query_keys(self._connection)
        names = list(keys)
        return [keys[names[at]] for at in random_order(names).tolist()]

    @cached_property
    def is_decided(self) -> bool:
        """Return whether the graded queries decide what ends the grading."""
        return self.ends_early and self._grader.key > 0 and is_decided(self._book)

    @property
    def outcome(self) -> str:
        """Return a sentence on what ended the grading early; "" if it cannot."""
        return outcome(self._book) if self.ends_early else ""

    @cached_property
    def _book(self) -> Gradebook:
        book = read_gradebook(self._connection, self._grader, self._exam.bank)
        return replace(book, target=self._target)

    @property
    def is_drawing(self) -> bool:
        """Return whether only cells of drawn items can be graded: no cell has a chance yet."""
        return bool(self._target.may_miss) and self._models is None

    def learn(self, run: int) -> None:
        """Store the models by which cells are skipped with a run, unless another process has."""
        where = self._connection, self._grader.key, self._exam.bank
        if models_of(*where, self._target) is None:
            models = learn_models(self._connection, self._grader, self._exam.bank, self._target)
            put_models(self._connection, run, models)

    def plan(
        self, query: int, pending: Iterable[PendingCells], *, counting: bool = False
    ) -> QueryPlan:
        """Return the plan of a query, with the requests that are `pending`.

        It does not depend on what ends the grading early: see `is_decided`. While drawing, only
        cells of drawn items are graded; a plan for `counting` has all of them.
        """
        rows, book = query_gradebook(self._connection, self._grader, self._exam.bank, query)
        row, column = rows.row, rows.column
        requests = {
            (row[passage], column[item]): one
            for one in pending
            for item, passage in one.cells
            if item in column and passage in row
        }
        needs = partial(self._needs, book, requests)
        skips = self._skips(book)
        if not counting or skips is None:
            return QueryPlan(needs(skips), requests)
        exact = needs(None)
        return QueryPlan(exact if self.is_drawing else needs(skips), requests, exact)

    def count(self) -> NeedCount:
        """Count the pending cells without reading their texts, except to skip cells."""
        pending = needed = skipped = 0
        for query in query_order(self._connection, self._exam):
            rows, book = query_gradebook(self._connection, self._grader, self._exam.bank, query)
            places = [
                (rows.row[passage], rows.column[item])
                for item, passage in self._pending(query, rows, book)
            ]
            exact = self._needs(book, places, None).needed
            skips = None if self.is_drawing else self._skips(book)
            now = exact if skips is None else self._needs(book, places, skips).needed
            pending += len(set(places))
            needed += 0 if self.is_decided else int(now.sum())
            skipped += int((exact & ~now).sum())
        return NeedCount(needed, pending - needed - skipped, skipped)

    def _pending(self, query: int, rows: QueryRows, book: Gradebook) -> Iterator[Cell]:
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
        graded = without_decisions(book).queries[0].ratings != MISSING
        for item, _ in items:
            for passage in passages.tolist():
                if item in rows.column and not graded[rows.row[passage], rows.column[item]]:
                    yield item, passage

    def _skips(self, book: Gradebook) -> SkippedCells | None:
        """Return the cells of a query to skip; while drawing, all of items that are not drawn."""
        if not self._target.may_miss:
            return None
        (query,) = book.queries
        if self._models is None:
            return SkippedCells(np.zeros(query.ratings.shape), drawn_items(query, self._target))
        where = self._connection, self._grader, self._exam.bank
        return skipped_cells(*where, query, self._target, self._models)

    def _needs(
        self, book: Gradebook, places: Iterable[tuple[int, int]], skips: SkippedCells | None
    ) -> QueryNeeds:
        candidates = np.zeros(book.queries[0].ratings.shape, np.bool_)
        if some := list(places):
            candidates[tuple(zip(*some, strict=True))] = True
        needs = query_needs(
            book, self._measures, self._threshold, self._subtopics, candidates, skips=skips
        )
        needs.forget_candidates()
        return needs
