"""What an edit of one query's bank does to the leaderboard, before it is saved.

A `Baseline` holds the values of all systems on all queries. An edit touches one query, so that only
this one is evaluated anew, by the code that evaluates everything, and takes its place among the
others: means, swaps and intervals are those of a full evaluation.

A pair of systems swaps if one was ahead of the other and is behind it now; scores are tied where
the leaderboard has them tied. A swap is beyond noise if the 95 % interval of the new difference
over queries (see `stats.means`) leaves out 0.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.formats.fields import check_weight, number
from exampp.items.edits import ItemKey, apply_change, item_key
from exampp.measures.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import Measure, as_measures
from exampp.measures.qrels import Labelling, exam_labels
from exampp.measures.values import MeasureColumn, Values
from exampp.records import subtopic_of_item
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ratings
from exampp.records.items import importance_of_word
from exampp.sanitize import or_default
from exampp.stats.estimate import LEVEL, Estimate
from exampp.stats.means import mean_tests
from exampp.store.bank import ItemChange, ItemState, states
from exampp.store.cells import DEPTH, cells_to_grade, known_ratings, scope_of
from exampp.store.grades import StoredGrader
from exampp.store.inputs import query_keys

# ---- a query after edits of its bank -------------------------------------------------------------

KnownRatings = Mapping[str, int]
"""The ratings that a text of an item has already, by passage id; others are missing."""


def add_item(
    query: QueryGrades,
    item_id: str,
    weight: float = 1.0,
    subtopic_id: str | None = None,
    ratings: KnownRatings = MappingProxyType({}),
) -> QueryGrades:
    """Return the query with another item. InputError if it is in the exam already."""
    if item_id in query.item_ids:
        raise InputError(f"item {item_id!r} is in the exam already")
    query, subtopic = _with_subtopic(query, subtopic_id)
    last = len(query.item_ids)
    order = np.insert(np.arange(last), bisect(query.item_ids, item_id), last)
    wider = replace(
        query,
        item_ids=(*query.item_ids, item_id),
        item_subtopics=np.append(query.item_subtopics, np.int32(subtopic)),
        weights=np.append(query.weights, check_weight(number(weight, "weight"))),
        importances=(*query.importances, None) if query.importances else (),
        ratings=np.column_stack([query.ratings, _column(query, ratings)]),
    )
    return _with_items(wider, order)


def retire_item(query: QueryGrades, item_id: str) -> QueryGrades:
    """Return the query without an item."""
    place = _place(query, item_id)
    query = _without_decisions_on(query, item_id)
    return _with_items(query, np.delete(np.arange(len(query.item_ids)), place))


def weigh_item(query: QueryGrades, item_id: str, weight: float) -> QueryGrades:
    """Return the query with another weight of an item."""
    weights, place = query.weights.copy(), _place(query, item_id)
    weights[place] = check_weight(number(weight, "weight"))
    words = tuple(
        importance_of_word(word, weight) if index == place else word
        for index, word in enumerate(query.importances)
    )
    return replace(query, weights=weights, importances=words)


def reword_item(query: QueryGrades, item_id: str, ratings: KnownRatings) -> QueryGrades:
    """Return the query with another text of an item, which has these ratings already."""
    table = query.ratings.copy()
    table[:, _place(query, item_id)] = _column(query, ratings)
    return replace(_without_decisions_on(query, item_id), ratings=table)


def missing_cells(query: QueryGrades) -> int:
    """Count the cells of the query's pool without a grade."""
    return int((query.ratings[: query.pool_size] == MISSING).sum())


def _column(query: QueryGrades, ratings: KnownRatings) -> Ratings:
    return np.array([ratings.get(passage, MISSING) for passage in query.passage_ids], np.int16)


def _without_decisions_on(query: QueryGrades, item_id: str) -> QueryGrades:
    """Leave out decisions about an item: they belong to the text that it had."""
    kept = tuple(cell for cell in query.decided if cell.item_id != item_id)
    return replace(query, decided=kept)


def _with_items(query: QueryGrades, columns: NDArray[np.intp]) -> QueryGrades:
    return replace(
        query,
        item_ids=tuple(query.item_ids[index] for index in columns.tolist()),
        item_subtopics=query.item_subtopics[columns],
        weights=query.weights[columns],
        importances=tuple(query.importances[i] for i in columns.tolist() if query.importances),
        ratings=np.ascontiguousarray(query.ratings[:, columns]),
    )


def _with_subtopic(query: QueryGrades, subtopic_id: str | None) -> tuple[QueryGrades, int]:
    """Return the query with a subtopic, and the number of that."""
    if subtopic_id is None:
        return query, 0
    if subtopic_id in query.subtopic_ids:
        return query, query.subtopic_ids.index(subtopic_id) + 1
    place = bisect(query.subtopic_ids, subtopic_id)
    known, of_items = query.subtopic_ids, query.item_subtopics
    wider = replace(
        query,
        subtopic_ids=(*known[:place], subtopic_id, *known[place:]),
        item_subtopics=of_items + (of_items > place).astype(np.int32),
        judgments=np.insert(query.judgments, place + 1, MISSING, axis=0),
        rankings=tuple(
            replace(one, subtopic=one.subtopic + (one.subtopic > place)) for one in query.rankings
        ),
    )
    return wider, place + 1


def _place(query: QueryGrades, item_id: str) -> int:
    if item_id not in query.item_ids:
        raise InputError(f"the exam of query {query.query_id!r} has no item {item_id!r}")
    return query.item_ids.index(item_id)


@dataclass(frozen=True, slots=True)
class EditPreview:
    """A query as it would be after some edits, for `Baseline.impact`.

    `to_grade` counts the cells of new and changed texts to be graded then; `states` are the items
    of the query, retired ones too.
    """

    query: QueryGrades
    to_grade: int
    states: tuple[ItemState, ...]


def preview(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    query: QueryGrades,
    changes: Sequence[ItemChange],
    depth: int = DEPTH,
) -> EditPreview:
    """Try out changes of items, one after the other; nothing is saved.

    `query` is the query as it is now (see `Dossier.grades`). A text that an item had before comes
    with its grades.
    Raises InputError for edits that the bank would refuse.
    """
    items = states(connection, bank, query_id=query.query_id)
    due: set[ItemKey] = set()
    for _, before, after in (one for change in changes for one in apply_change(items, change)):
        if after and after.kind == grader.identity.kind:
            known = partial(known_ratings, connection, grader, after.key, after.text)
            query = _changed(query, before, after, known)
            if before is None or after.text != before.text or after.active > before.active:
                due.add(item_key(after))
    scope = scope_of(connection, grader, bank, depth)
    key = query_keys(connection).get(query.query_id, 0)
    to_grade = sum(
        cells_to_grade(connection, grader.key, scope, key, one.key, one.text or "", one.answers)
        for one in items
        if item_key(one) in due and one.active
    )
    return EditPreview(query, to_grade, tuple(items))


def _changed(
    query: QueryGrades,
    before: ItemState | None,
    after: ItemState,
    known: Callable[[], KnownRatings],
) -> QueryGrades:
    name = after.item_id
    if before is None or after.active > before.active:
        subtopic = after.subtopic_id or subtopic_of_item(after.query_id, name)
        return add_item(query, name, after.weight, subtopic, known())
    if after.active < before.active:
        return retire_item(query, name)
    if after.active and after.text != before.text:
        return reword_item(query, name, known())
    if after.active and after.weight != before.weight:
        return weigh_item(query, name, after.weight)
    return query


# ---- the leaderboard after edits -----------------------------------------------------------------

MEASURES = ("Cover@20", "nDCG@20")
_DECIMALS = 10
"""Means that are equal in so many decimals are tied, as they are in a leaderboard."""


@dataclass(frozen=True, slots=True)
class Relabelled:
    """A passage whose label in the qrels changes; None: it has none.

    `exam_id` is the query, or `query/subtopic`.
    """

    query_id: str
    exam_id: str
    passage_id: str
    before: int | None
    after: int | None
    was_relevant: bool
    is_relevant: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A system's mean before and after; None where no query counts.

    Ranks count from 1, systems that are tied share theirs. `low` and `high` bound the mean after
    the edit, whatever the missing grades turn out to be (Cover and nCover only).
    """

    system: str
    before: float | None
    after: float | None
    rank_before: int | None
    rank_after: int | None
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        """After less before; 0 where either is undefined."""
        return 0.0 if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Swap:
    """A pair that swaps: the mean of `ahead` less that of `behind`, before and after the edit."""

    ahead: str
    behind: str
    before: Estimate
    after: Estimate

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval of the new difference leaves out 0."""
        return self.after.low is not None and self.after.low > 0


@dataclass(frozen=True, slots=True)
class Shift:
    """What becomes of one measure: all systems by the size of their moves, and all swaps."""

    measure: Measure
    min_rating: int | None
    moves: tuple[Move, ...]
    swaps: tuple[Swap, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """The effect of edits: on labels, on every measure, on what remains to be graded.

    `missing_before` and `missing_after` count the cells without a grade in the pools of queries.
    """

    labels: tuple[Relabelled, ...]
    shifts: tuple[Shift, ...]
    missing_before: int
    missing_after: int

    @property
    def swaps_beyond_noise(self) -> int:
        """How many pairs swap beyond noise, over all measures."""
        return sum(swap.beyond_noise for shift in self.shifts for swap in shift.swaps)


@dataclass(frozen=True, eq=False)
class Baseline:
    """The leaderboard as it is, to which edits are compared; make it with `Baseline.of`.

    `means` are those of the `columns`, per system of the gradebook.
    """

    gradebook: Gradebook
    measures: tuple[Measure, ...]
    min_rating: int
    labelling: Labelling
    subtopics: SubtopicChoice
    mode: Subtopics
    columns: tuple[MeasureColumn, ...]
    means: tuple[_Means, ...]
    _spans: tuple[tuple[slice, ...], ...]

    @classmethod
    def of(
        cls,
        gradebook: Gradebook,
        measures: Sequence[Measure | str] = MEASURES,
        *,
        min_rating: int | None = None,
        labelling: Labelling | None = None,
        subtopics: SubtopicChoice = "auto",
    ) -> Baseline:
        """Evaluate the gradebook as it is; `min_rating` is by default 4 or the scale's highest.

        Raises:
            InputError: As `measures.leaderboard.evaluate`.
        """
        min_rating = gradebook.grader.threshold(min_rating)
        asked, labelling = as_measures(measures), or_default("labelling", labelling, Labelling)
        mode = resolve_subtopics(gradebook, subtopics)
        columns = _columns(gradebook, asked, min_rating, labelling, mode)
        spans = tuple(_spans(gradebook.queries, column.query_ids) for column in columns)
        return cls(
            gradebook,
            asked,
            min_rating,
            labelling,
            subtopics,
            mode,
            columns,
            tuple(_means(column.values) for column in columns),
            spans,
        )

    def query(self, query_id: str) -> QueryGrades:
        """Return a query as it is. InputError if there is no query of that id."""
        return self.gradebook.queries[self._place(query_id)]

    def with_query(self, query: QueryGrades) -> Baseline:
        """Return the baseline once the query of that id has become `query`."""
        after = {query.query_id: query}
        book, columns = self._book_with(after), self.columns_with(after)
        return replace(
            self,
            gradebook=book,
            mode=resolve_subtopics(book, self.subtopics),
            columns=columns,
            means=tuple(_means(column.values) for column in columns),
            _spans=tuple(_spans(book.queries, column.query_ids) for column in columns),
        )

    def impact(self, after: Mapping[str, QueryGrades]) -> Impact:
        """Return the effect if the queries of these ids become others, all of them together.

        Raises:
            InputError: The gradebook has no such query.
        """
        columns = self.columns_with(after)
        mode = resolve_subtopics(self._book_with(after), self.subtopics)
        pairs = [(self.query(query_id), query) for query_id, query in after.items()]
        return Impact(
            labels=tuple(one for old, new in pairs for one in self._relabelled(old, new, mode)),
            shifts=tuple(starmap(self._shift, zip(self.columns, self.means, columns, strict=True))),
            missing_before=sum(missing_cells(old) for old, _ in pairs),
            missing_after=sum(missing_cells(new) for _, new in pairs),
        )

    def columns_with(self, after: Mapping[str, QueryGrades]) -> tuple[MeasureColumn, ...]:
        """Return the values of all systems on all queries, if some queries become others."""
        book = self._book_with(after)
        mode = resolve_subtopics(book, self.subtopics)
        graded = next((one for one in book.queries if one.is_graded), None)
        if len(after) > 1 or mode != self.mode or not graded or not self.gradebook.is_graded:
            # the first item with a subtopic, or the last one, changes how all queries are read, and
            # if nothing at all is graded no query has a value
            return _columns(book, self.measures, self.min_rating, self.labelling, mode)
        (query,) = after.values()
        place = self._place(query.query_id)
        # beside a graded query one without grades counts, as it does among all of them
        few = (query,) if query.is_graded else (query, graded)
        found = _columns(
            replace(book, queries=few), self.measures, self.min_rating, self.labelling, mode
        )
        return tuple(
            _with_part(column, spans[place], _part(own, _spans(few, own.query_ids)[0]))
            for column, spans, own in zip(self.columns, self._spans, found, strict=True)
        )

    def _book_with(self, after: Mapping[str, QueryGrades]) -> Gradebook:
        queries = list(self.gradebook.queries)
        for query_id, query in after.items():
            queries[self._place(query_id)] = query
        return replace(self.gradebook, queries=tuple(queries))

    def _place(self, query_id: str) -> int:
        for place, query in enumerate(self.gradebook.queries):
            if query.query_id == query_id:
                return place
        raise InputError(f"there is no query {query_id!r}")

    def _relabelled(
        self, before: QueryGrades, after: QueryGrades, mode: Subtopics
    ) -> Iterator[Relabelled]:
        level = self.labelling.level(self.min_rating)
        old, new = self._labels(before, self.mode), self._labels(after, mode)
        for key in dict.fromkeys((*old, *new)):
            was, now = old.get(key), new.get(key)
            if was != now:
                relevant = (label is not None and label >= level for label in (was, now))
                yield Relabelled(before.query_id, *key, was, now, *relevant)

    def _labels(self, query: QueryGrades, mode: Subtopics) -> dict[tuple[str, str], int]:
        rows = exam_labels(
            replace(self.gradebook, queries=(query,)),
            self.labelling,
            self.min_rating,
            by_subtopic=mode == "subtopic",
        )
        return {(row.query_id, row.passage_id): row.label for row in rows}

    def _shift(self, before: MeasureColumn, old: _Means, after: MeasureColumn) -> Shift:
        new = _means(after.values)
        low, high = _means(after.low), _means(after.high)
        ranks = zip(_ranks(old), _ranks(new), strict=True)
        moves = [
            Move(system, old[s], new[s], *pair, low[s] if low else None, high[s] if high else None)
            for s, (system, pair) in enumerate(zip(self.gradebook.systems, ranks, strict=True))
        ]
        return Shift(
            measure=before.measure,
            min_rating=before.min_rating,
            moves=tuple(sorted(moves, key=lambda move: (-abs(move.change), move.system))),
            swaps=tuple(self._swaps(before, after, old, new)),
        )

    def _swaps(
        self, before: MeasureColumn, after: MeasureColumn, old: _Means, new: _Means
    ) -> Iterator[Swap]:
        """All pairs that swap, the largest new differences first."""
        ahead, behind = np.nonzero((_order(old) < 0) & (_order(new) > 0))
        estimates = [
            self._estimates(column, means, ahead, behind)
            for column, means in ((before, old), (after, new))
        ]
        systems = self.gradebook.systems
        swaps = [
            Swap(systems[a], systems[b], was, now)
            for a, b, was, now in zip(ahead, behind, *estimates, strict=True)
        ]
        yield from sorted(swaps, key=lambda s: (-(s.after.value or 0.0), s.ahead, s.behind))

    def _estimates(
        self,
        column: MeasureColumn,
        means: _Means,
        ahead: NDArray[np.intp],
        behind: NDArray[np.intp],
    ) -> list[Estimate]:
        """The differences with their intervals over the queries."""
        if not len(ahead):
            return []
        mean = np.array([mean or 0.0 for mean in means])
        differences = (mean[ahead] - mean[behind]).tolist()
        values = column.values
        paired = values.values[ahead] - values.values[behind]
        counts = values.counts[ahead] & values.counts[behind]
        tests = mean_tests(paired, counts, column.difference_range, LEVEL)
        return [
            replace(test.estimate, value=difference)
            for test, difference in zip(tests, differences, strict=True)
        ]


_Means = tuple[float | None, ...]


def _columns(
    gradebook: Gradebook,
    measures: Sequence[Measure],
    min_rating: int,
    labelling: Labelling,
    mode: Subtopics,
) -> tuple[MeasureColumn, ...]:
    # the values alone: what they would be without decisions is not asked
    queries = tuple(replace(one, decided=()) for one in gradebook.queries)
    return evaluate(
        replace(gradebook, queries=queries),
        measures,
        [min_rating],
        subtopics=mode,
        missing="bounds",
        labelling=labelling,
    ).columns


def _spans(queries: Sequence[QueryGrades], ids: Sequence[str]) -> tuple[slice, ...]:
    """Where the values of each query are in a column: nowhere, at one place, or one a subtopic."""
    spans, at = [], 0
    for query in queries:
        own = {query.query_id, *(f"{query.query_id}/{subtopic}" for subtopic in query.subtopic_ids)}
        start = at
        while at < len(ids) and ids[at] in own:
            at += 1
        spans.append(slice(start, at))
    return tuple(spans)


def _part(column: MeasureColumn, span: slice) -> MeasureColumn:
    """A column of one query alone."""
    return replace(
        column,
        query_ids=column.query_ids[span],
        values=_cut(column.values, span),
        low=None if column.low is None else _cut(column.low, span),
        high=None if column.high is None else _cut(column.high, span),
    )


def _cut(values: Values, span: slice) -> Values:
    return replace(values, values=values.values[:, span], counts=values.counts[:, span])


def _with_part(column: MeasureColumn, span: slice, part: MeasureColumn) -> MeasureColumn:
    """A column with other values of one query."""
    ids = (*column.query_ids[: span.start], *part.query_ids, *column.query_ids[span.stop :])
    # where no query has a bank there are no bounds either, for no values
    low, high = (
        None
        if not ids or (of is None and new is None)
        else _with_values(of or column.values, span, new or part.values)
        for of, new in ((column.low, part.low), (column.high, part.high))
    )
    return replace(
        column,
        query_ids=ids,
        values=_with_values(column.values, span, part.values),
        low=low,
        high=high,
    )


def _with_values(values: Values, span: slice, part: Values) -> Values:
    pairs = ((values.values, part.values), (values.counts, part.counts))
    table, counts = (
        np.concatenate([whole[:, : span.start], new, whole[:, span.stop :]], axis=1)
        for whole, new in pairs
    )
    return Values(table, counts)


def _means(values: Values | None) -> _Means:
    return () if values is None else tuple(mean.mean for mean in values.means())


def _order(means: _Means) -> NDArray[np.float64]:
    """1 where the system of the row is ahead of that of the column, -1 behind, 0 if undefined."""
    rounded = np.array([np.nan if mean is None else round(mean, _DECIMALS) for mean in means])
    with np.errstate(invalid="ignore"):
        order: NDArray[np.float64] = np.sign(rounded[:, None] - rounded)
    return np.nan_to_num(order)


def _ranks(means: _Means) -> list[int | None]:
    better = (_order(means) < 0).sum(axis=1).tolist()
    return [None if m is None else int(n) + 1 for m, n in zip(means, better, strict=True)]
