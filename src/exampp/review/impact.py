"""Impact of a bank edit on the leaderboard, before it is saved.

A `Baseline` has the values of all systems on all queries. After an edit of one query, only this
query is evaluated again, by the same code as the leaderboard; means, swaps and intervals equal
those of a full evaluation. The edited query is read inside a transaction that is rolled back.

Two systems swap if the one that was ahead is now behind; ties are those of the leaderboard. A swap
is beyond noise if the 95 % interval of the new difference over queries (see `stats.means`) excludes
0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.formats.lines import error_counter, raise_error
from exampp.grading.regrade import reverify_answers
from exampp.grading.target import count_needed
from exampp.inputs.files import GivenFile
from exampp.inputs.importing import UNKNOWN_PASSAGES, ImportReport, import_files
from exampp.inputs.loading import Importer
from exampp.measures.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.measures.leaderboard import default_measures, default_min_rating, evaluate
from exampp.measures.names import Measure, as_measures
from exampp.measures.needs import check_needed_cells
from exampp.measures.qrels import Labelling, exam_labels
from exampp.measures.query_sample import query_sample
from exampp.measures.values import TIE_DECIMALS, MeasureColumn, Values, tied_ranks
from exampp.records import GraderIdentity
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, untestable
from exampp.records.graders import RatingScale, check_scale, grader_label
from exampp.results.result import Result, Table
from exampp.results.view import GRADER_KEY, Column, Value
from exampp.sanitize import check_choice, check_integer, or_default
from exampp.stats.estimate import LEVEL, Estimate
from exampp.stats.means import mean_tests
from exampp.store.bank import BeforeCommit, bank_names, edit_by
from exampp.store.cells import DEPTH, pending_of_query, scope_of
from exampp.store.grades import StoredGrader, graders
from exampp.store.inputs import query_keys
from exampp.store.read_model import read_dossiers, read_gradebook

MEASURES = ("Cover@20", "nDCG@20")


@dataclass(frozen=True, slots=True)
class Relabelled:
    """A passage with a changed label in the qrels; None: no label.

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
    """The mean of a system before and after; None if no query counts.

    Ranks count from 1; tied systems share a rank. `low` and `high` bound the mean after the edit
    for any values of the missing grades (Cover and nCover only).
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
        """Return after minus before; 0 if either is undefined."""
        return 0.0 if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Swap:
    """A swapped pair: the mean of `ahead` minus that of `behind`, before and after."""

    ahead: str
    behind: str
    before: Estimate
    after: Estimate

    @property
    def beyond_noise(self) -> bool:
        """Return whether the interval of the new difference excludes 0."""
        return self.after.low is not None and self.after.low > 0


@dataclass(frozen=True, slots=True)
class Shift:
    """Changes under one measure: all swaps, and systems by size of move."""

    measure: Measure
    min_rating: int | None
    moves: tuple[Move, ...]
    swaps: tuple[Swap, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """The effect of edits on labels, on every measure, and on pending cells.

    `missing_before` and `missing_after` count ungraded cells in the pools of the queries.
    """

    labels: tuple[Relabelled, ...]
    shifts: tuple[Shift, ...]
    missing_before: int
    missing_after: int

    @property
    def swaps_beyond_noise(self) -> int:
        """Number of pairs that swap beyond noise, over all measures."""
        return sum(swap.beyond_noise for shift in self.shifts for swap in shift.swaps)


@dataclass(frozen=True, eq=False)
class Baseline:
    """The current leaderboard, for comparison with edits; see `Baseline.of`."""

    gradebook: Gradebook
    measures: tuple[Measure, ...]
    min_rating: int
    labelling: Labelling
    subtopics: SubtopicChoice
    columns: tuple[MeasureColumn, ...]

    @classmethod
    def of(
        cls,
        gradebook: Gradebook,
        measures: Sequence[Measure | str] = (),
        *,
        min_rating: int | None = None,
        labelling: Labelling | None = None,
        subtopics: SubtopicChoice = "auto",
    ) -> Baseline:
        """Evaluate the unchanged gradebook; `min_rating` is by default 4 or the scale's highest.

        Raises:
            InputError: As `measures.leaderboard.evaluate`; a measure needs cells that are not
                graded, because others did not need them.
        """
        if min_rating is None:
            min_rating = default_min_rating(gradebook)
        min_rating = gradebook.grader.threshold(min_rating)
        parsed = as_measures(measures or default_measures(gradebook, MEASURES))
        labelling = or_default("labelling", labelling, Labelling)
        mode = resolve_subtopics(gradebook, subtopics)
        check_needed_cells(gradebook, parsed, [min_rating], mode)
        columns = _columns(gradebook, parsed, min_rating, labelling, mode)
        return cls(gradebook, parsed, min_rating, labelling, subtopics, columns)

    @cached_property
    def mode(self) -> Subtopics:
        """The reading of subtopics."""
        return resolve_subtopics(self.gradebook, self.subtopics)

    @cached_property
    def means(self) -> tuple[_Means, ...]:
        """The means of the columns, per system of the gradebook."""
        return tuple(_means(column.values) for column in self.columns)

    def query(self, query_id: str) -> QueryGrades:
        """Return an unchanged query. InputError for an unknown id."""
        for query in self.gradebook.queries:
            if query.query_id == query_id:
                return query
        raise InputError(f"unknown query {query_id!r}")

    def with_queries(self, after: Mapping[str, QueryGrades]) -> Baseline:
        """Return the baseline with these queries replaced.

        Raises:
            InputError: The query is not in the gradebook.
        """
        for query_id in after:
            self.query(query_id)
        queries = tuple(after.get(one.query_id, one) for one in self.gradebook.queries)
        book = replace(self.gradebook, queries=queries)
        mode = resolve_subtopics(book, self.subtopics)
        return replace(self, gradebook=book, columns=self._columns_with(book, mode, after))

    def _columns_with(
        self, book: Gradebook, mode: Subtopics, after: Mapping[str, QueryGrades]
    ) -> tuple[MeasureColumn, ...]:
        graded = next((one for one in book.queries if one.is_graded), None)
        if len(after) != 1 or mode != self.mode or not graded or not self.gradebook.is_graded:
            # the first or last item with a subtopic changes the reading of all queries, and
            # without any grades no query has a value
            return _columns(book, self.measures, self.min_rating, self.labelling, mode)
        (query,) = after.values()
        # a query without grades counts if others are graded
        few = replace(book, queries=(query,) if query.is_graded else (query, graded))
        columns = _columns(few, self.measures, self.min_rating, self.labelling, mode)
        exams = {
            f"{one.query_id}/{subtopic}": one.query_id
            for one in (*self.gradebook.queries, query)
            for subtopic in one.subtopic_ids
        }
        place = {one.query_id: number for number, one in enumerate(book.queries)}
        places = {**{exam: place[of] for exam, of in exams.items()}, **place}
        return tuple(
            _merged(old, new, places, place[query.query_id])
            for old, new in zip(self.columns, columns, strict=True)
        )

    def impact(self, after: Mapping[str, QueryGrades]) -> Impact:
        """Return the effect of replacing these queries together.

        Raises:
            InputError: The query is not in the gradebook.
        """
        new = self.with_queries(after)
        pairs = [(self.query(query_id), query) for query_id, query in after.items()]
        columns = zip(self.columns, self.means, new.columns, new.means, strict=True)
        return Impact(
            labels=tuple(one for pair in pairs for one in self._relabelled(*pair, new.mode)),
            shifts=tuple(starmap(self._shift, columns)),
            missing_before=sum(missing_cells(old) for old, _ in pairs),
            missing_after=sum(missing_cells(new) for _, new in pairs),
        )

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

    def _shift(
        self, before: MeasureColumn, old: _Means, after: MeasureColumn, new: _Means
    ) -> Shift:
        low, high = _means(after.low), _means(after.high)
        ranks = zip(tied_ranks(old), tied_ranks(new), strict=True)
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
        """Yield all swapped pairs, largest new difference first."""
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
        """Return the differences with their intervals over the queries."""
        if not len(ahead):
            return []
        mean = np.array([mean or 0.0 for mean in means])
        differences = (mean[ahead] - mean[behind]).tolist()
        if error := untestable(self.gradebook):
            return [Estimate(one, no_interval=error.what) for one in differences]
        values = column.values
        paired = values.values[ahead] - values.values[behind]
        counts = values.counts[ahead] & values.counts[behind]
        tests = mean_tests(paired, counts, column.difference_range, LEVEL)
        return [
            replace(test.estimate, value=difference)
            for test, difference in zip(tests, differences, strict=True)
        ]


_Means = tuple[float | None, ...]


def missing_cells(query: QueryGrades) -> int:
    """Count the ungraded cells in the pool of a query."""
    return int((query.ratings[: query.pool_size] == MISSING).sum())


def _columns(
    gradebook: Gradebook,
    measures: Sequence[Measure],
    min_rating: int,
    labelling: Labelling,
    mode: Subtopics,
) -> tuple[MeasureColumn, ...]:
    # values only, without those that ignore decisions
    queries = tuple(replace(one, decided=()) for one in gradebook.queries)
    return evaluate(
        replace(gradebook, queries=queries, target=None),
        measures,
        [min_rating],
        subtopics=mode,
        missing="bounds",
        labelling=labelling,
    ).columns


def _merged(
    old: MeasureColumn, new: MeasureColumn, places: Mapping[str, int], changed: int
) -> MeasureColumn:
    """Return a column with the values of some queries from another column.

    `places` are the indices of the queries by exam id.
    """
    of = [places[one] for one in (*old.query_ids, *new.query_ids)]
    count = len(old.query_ids)
    stays = [n for n, place in enumerate(of) if (place == changed) == (n >= count)]
    order = sorted(stays, key=of.__getitem__)
    ids = (*old.query_ids, *new.query_ids)

    def joined(first: Values, second: Values) -> Values:
        values = np.concatenate([first.values, second.values], axis=1)
        counts = np.concatenate([first.counts, second.counts], axis=1)
        return Values(values[:, order], counts[:, order])

    # no bounds if no query has a bank
    low, high = (
        joined(was or old.values, now or new.values) if order and (was or now) else None
        for was, now in ((old.low, new.low), (old.high, new.high))
    )
    return replace(
        old,
        query_ids=tuple(ids[n] for n in order),
        values=joined(old.values, new.values),
        low=low,
        high=high,
    )


def _means(values: Values | None) -> _Means:
    return () if values is None else tuple(mean.mean for mean in values.means())


def _order(means: _Means) -> NDArray[np.float64]:
    """Return 1 where the system of the row is ahead of that of the column, -1 behind, else 0."""
    rounded = np.array([np.nan if mean is None else round(mean, TIE_DECIMALS) for mean in means])
    with np.errstate(invalid="ignore"):
        order: NDArray[np.float64] = np.sign(rounded[:, None] - rounded)
    return np.nan_to_num(order)


# ---- previews of edits ----------------------------------------------------------------------

LISTED = 20
"""Maximum number of listed passages and systems."""


class GraderStanding(NamedTuple):
    """The leaderboard of a grader on a bank, with its number of pending cells."""

    book: Gradebook
    pending: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an edit on the leaderboard of one grader, with pending cells."""

    grader: GraderIdentity
    impact: Impact
    pending_before: int
    pending_after: int


@dataclass(frozen=True, slots=True, repr=False)
class DryRun(Result):
    """A previewed edit: its changes of the bank, and its effects by grader."""

    changes: Table
    effects: tuple[Effect, ...]

    def tables(self) -> Mapping[str, Table]:
        """Return `changes` and, for a graded bank, `effects`, `labels` and `scores`."""
        return {"changes": self.changes, **effect_tables(self.effects)}


def effect_tables(effects: Sequence[Effect]) -> Mapping[str, Table]:
    """Return the tables `effects`, `labels` and `scores`, if there are graders."""
    if not effects:
        return {}
    scores: list[str | Column] = [
        "grader",
        "measure",
        "system",
        Column("before", 4),
        Column("after", 4),
        "rank",
        "rank then",
        GRADER_KEY,
    ]
    return {
        "effects": _effects_table(effects),
        "labels": _listed(
            ["grader", "query", "passage", "before", "after", GRADER_KEY],
            list(_label_rows(effects)),
            "Passages with a new label",
        ),
        "scores": _listed(scores, list(_score_rows(effects)), "Systems that move"),
    }


Effects = Callable[..., tuple[Effect, ...]]
"""Effects of an edit on the leaderboard of every grader; takes `measures` and `min_rating`."""


def watch(
    connection: sqlite3.Connection, bank: str, settle: BeforeCommit
) -> tuple[Effects, BeforeCommit]:
    """Return the effects of an edit, and the `settle` function that computes them."""
    before, after = standings(connection, bank), dict[str, GraderStanding]()

    def look(edited: sqlite3.Connection) -> None:
        settle(edited)
        after.update(standings(edited, bank))

    return partial(edit_effects, before, after), look


@dataclass(frozen=True, slots=True)
class EditPreview:
    """Queries as they would be after an edit, for `Baseline.impact`.

    `to_grade` counts the additional requests to the grader.
    """

    queries: Mapping[str, QueryGrades]
    to_grade: int


def preview(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    query_ids: Sequence[str],
    edit: Callable[[BeforeCommit], object],
) -> EditPreview:
    """Apply an edit of some queries, read them for one grader, and roll back.

    Raises InputError for edits that the bank would refuse.
    """
    scope, keys = scope_of(connection, grader, bank), query_keys(connection)
    after: dict[str, QueryGrades] = {}
    requests: list[int] = []

    def count() -> None:
        pending = (
            pending_of_query(connection, keys[one], grader.key, scope, "pending")
            for one in query_ids
        )
        requests.append(sum(len(one.cells) for of in pending for one in of if one.twin is None))

    def look(edited: sqlite3.Connection) -> None:
        reverify_answers(edited)
        read = read_dossiers(edited, grader, bank, query_ids, ())
        after.update({one.query_id: one.grades for one in read})
        count()
        edited.rollback()

    count()
    edit(look)
    return EditPreview(after, max(0, requests[1] - requests[0]))


def import_or_dry_run(
    connection: sqlite3.Connection,
    files: Sequence[GivenFile],
    on_error: str,
    corpus: str | Path | None,
    author: str | None,
    *,
    scale: RatingScale | None = None,
    **how: Any,
) -> ImportReport:
    """Import files; a dry run reports the effect on labels and scores.

    `on_error="skip"` skips bad lines and counts them. With a corpus, ranked passages need no text
    in the files, and the default depth is that of the pool. `how` has the other options of
    Importer. Raises InputError as `import_files` does.
    """
    skipped = error_counter(on_error)
    edit = edit_by(author, "import")
    checked = None if scale is None else check_scale(scale)
    importer = Importer(connection, edit, on_error=skipped or raise_error, scale=checked, **how)
    _check(importer)
    if corpus:
        importer = replace(importer, unknown_passages="keep", depth=importer.depth or DEPTH)

    def take(settle: BeforeCommit) -> ImportReport:
        return import_files(replace(importer, settle=settle), files, str(corpus or "") or None)

    if importer.dry_run:
        seen, look = watch(importer.connection, importer.bank, reverify_answers)
        report = replace(take(look), impact=effect_tables(seen()))
    else:
        report = take(reverify_answers)
    return report if skipped is None else report.with_skipped(skipped.count, skipped.first)


def _check(importer: Importer) -> None:
    """Raise InputError for incompatible options."""
    check_choice("unknown_passages", importer.unknown_passages, UNKNOWN_PASSAGES)
    check_integer("passage_tokens", importer.passage_tokens, 0)
    if importer.depth is not None:
        check_integer("depth", importer.depth, 1)
    if not isinstance(importer.bank, str) or not importer.bank.strip():
        raise InputError(f"invalid bank name {importer.bank!r}", hint="Use a name such as main")


def standings(connection: sqlite3.Connection, bank: str) -> dict[str, GraderStanding]:
    """Return the standing of every grader of a bank, by key."""
    return {
        one.identity.key: GraderStanding(
            read_gradebook(connection, one, bank),
            count_needed(connection, one, scope_of(connection, one, bank)).needed,
        )
        for one in graders(connection)
        if bank in bank_names(connection, one.identity.kind)
    }


def edit_effects(
    before: Mapping[str, GraderStanding],
    after: Mapping[str, GraderStanding],
    measures: Sequence[Measure | str] = (),
    min_rating: int | None = None,
) -> tuple[Effect, ...]:
    """Return the changes between two states of a bank, for every grader.

    Graders are left out if their queries or systems changed: their leaderboards are not comparable.
    """
    effects = []
    for key, then in before.items():
        now = after.get(key, then)
        if _evaluated(then.book) != _evaluated(now.book):
            continue
        if then.book.is_graded or now.book.is_graded:
            highest = then.book.grader.highest
            threshold = None if min_rating is None else min(min_rating, highest)
            baseline = Baseline.of(query_sample(then.book), measures, min_rating=threshold)
            sampled = {one.query_id for one in baseline.gradebook.queries}
            changed = (one for one in now.book.queries if one.query_id in sampled)
            impact = baseline.impact({one.query_id: one for one in changed})
            effects.append(Effect(then.book.grader, impact, then.pending, now.pending))
    return tuple(effects)


def _evaluated(book: Gradebook) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return book.systems, tuple(query.query_id for query in book.queries)


def _effects_table(effects: Iterable[Effect]) -> Table:
    heads: list[str | Column] = ["grader", "measure", "labels", "systems", "swaps"]
    heads += ["beyond noise", Column("pending", key="due")]
    heads += [Column("pending then", key="due then"), GRADER_KEY]
    rows: list[tuple[Value, ...]] = []
    for one in effects:
        for shift in one.impact.shifts:
            moving = sum(bool(move.change) for move in shift.moves)
            beyond = sum(swap.beyond_noise for swap in shift.swaps)
            counts = (len(one.impact.labels), moving, len(shift.swaps), beyond)
            pending = (one.pending_before, one.pending_after)
            rows.append(
                (grader_label(one.grader), str(shift.measure), *counts, *pending, one.grader.key)
            )
    caption = "New labels, moved systems, swapped pairs, and pending cells before and after"
    return Table.of(heads, rows, caption)


def _label_rows(effects: Iterable[Effect]) -> Iterator[tuple[Value, ...]]:
    for one in effects:
        for label_ in one.impact.labels:
            passage = (label_.exam_id, label_.passage_id)
            yield (grader_label(one.grader), *passage, label_.before, label_.after, one.grader.key)


def _score_rows(effects: Iterable[Effect]) -> Iterator[tuple[Value, ...]]:
    for one in effects:
        for shift in one.impact.shifts:
            for move in filter(lambda move: move.change, shift.moves):
                ranks = (move.rank_before, move.rank_after)
                name = (grader_label(one.grader), str(shift.measure), move.system)
                yield (*name, move.before, move.after, *ranks, one.grader.key)


def _listed(heads: Sequence[str | Column], rows: list[tuple[Value, ...]], what: str) -> Table:
    more = [f"and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return Table.of(heads, rows[:LISTED], f"{what}: {len(rows)}", notes=more)
