"""A leaderboard and its tables: wide for people, tidy (one row per value) for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.exams import Subtopics
from exampp.measures.names import Measure, parse_measure
from exampp.measures.nugget_scores import NUGGET_SCORES, describe_support
from exampp.measures.values import TIE_DECIMALS, MeasureColumn
from exampp.records import OVERALL
from exampp.records.gradebook import NO_OVERSIGHT, Gradebook, Oversight
from exampp.records.graders import GraderIdentity
from exampp.records.wording import counted
from exampp.results.notes import Note, about, labelled, merge_notes, note
from exampp.results.result import Result, Table
from exampp.results.view import ERROR, Cell, Column, Interval, Value

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

ONCE = "once"
"""Heading of the column with each group of duplicates as one item."""


def describe_oversight(oversight: Oversight) -> str:
    """Return a summary such as "12 cells decided by 3 people, 2 of them disputed"."""
    people = f"{oversight.people:,} {'person' if oversight.people == 1 else 'people'}"
    some = "" if oversight.cells == 1 else f"{oversight.disputed:,} of them "
    disputed = f", {some}disputed" if oversight.disputed else ""
    return f"{counted(oversight.cells, 'cell')} decided by {people}{disputed}"


def duplicate_notes(book: Gradebook, board: Leaderboard) -> Iterator[Note]:
    """Yield notes on duplicates that are counted once: their number and their effect."""
    if board.counted_once is None:
        return
    if not board.counted_once:
        yield note("once-no-groups")
        return
    from exampp.stats.rank_correlation import correlate

    sizes = [
        size for query in book.queries for size in Counter(query.item_groups).values() if size > 1
    ]
    pairs = [(board.column(*key), column) for key, column in board.counted_once.items()]
    for plain, once in pairs:
        change = _change(board.column_systems, plain, once)
        means = (
            dict(zip(board.column_systems, c.values.means(), strict=True)) for c in (plain, once)
        )
        scores, ranks = ({s: m.mean for s, m in one.items() if m.mean is not None} for one in means)
        tau = correlate(scores, {system: -score for system, score in ranks.items()}).kendall
        yield note(
            "counted-once",
            plain.name,
            groups=counted(len(sizes), "group"),
            items=sum(sizes),
            change=f"{change.largest:.3f}",
            system=change.system,
            tau=f"undefined ({tau.reason})" if tau.value is None else f"{tau.value:.3f}",
        )


def decision_notes(book: Gradebook, board: Leaderboard) -> Iterator[Note]:
    """Yield notes on human decisions: their number and their effect."""
    if book.left_out.cells:
        yield note("left-out", decisions=describe_oversight(book.left_out))
    if board.without_decisions is None:
        return
    yield note("decisions", decisions=describe_oversight(book.oversight))
    pairs = list(zip(board.without_decisions.columns, board.columns, strict=True))
    changes = [_change(board.column_systems, *columns) for columns in pairs]
    if not any(one.largest or one.swaps or one.gained for one in changes):
        yield note("decisions-change-nothing")
        return
    largest = max(changes, key=lambda one: one.largest)
    swapping = max(changes, key=lambda one: one.swaps)
    swaps = "no two systems change places"
    if swapping.swaps:
        swaps = f"{swapping.swaps} of {swapping.pairs} pairs of systems change places"
        if len(changes) > 1:
            swaps = f"up to {swaps} ({swapping.name})"
    where = f"{largest.system}, {largest.name}"
    yield note("decisions-change", change=f"{largest.largest:.3f}", where=where, swaps=swaps)


class _ColumnChange(NamedTuple):
    """The changes that human decisions made to one column.

    `largest` is the largest change of a mean, for `system`; `swaps` counts the pairs of systems,
    out of `pairs`, that changed their order; `gained` lists the systems that have a value only
    with, or only without, the decisions.
    """

    name: str
    largest: float
    system: str
    swaps: int
    pairs: int
    gained: int


def _change(systems: Sequence[str], before: MeasureColumn, after: MeasureColumn) -> _ColumnChange:
    old, new = (
        np.array([np.nan if mean.mean is None else mean.mean for mean in column.values.means()])
        for column in (before, after)
    )
    known = np.isfinite(old) & np.isfinite(new)
    change = np.where(known, np.abs(new - old).round(TIE_DECIMALS), 0.0)
    largest = int(change.argmax()) if len(change) else 0
    orders = [(one[:, None] - one[None, :]).round(TIE_DECIMALS) for one in (old[known], new[known])]
    count = int(known.sum())
    return _ColumnChange(
        name=after.name,
        largest=float(change[largest]) if len(change) else 0.0,
        system=systems[largest] if len(change) else "",
        swaps=int((orders[0] * orders[1] < 0).sum()) // 2,
        pairs=count * (count - 1) // 2,
        gained=int((np.isfinite(old) != np.isfinite(new)).sum()),
    )


class BoardRow(NamedTuple):
    """One system under one measure.

    Undefined values are None, and the notes give the reason. `min_rating` is None if the measure
    does not depend on it. `queries` counts the queries in the mean; `low` and `high` are the means
    of the bounds, if computed; `ungraded` is the share of ungraded passages among those that the
    measure reads, and `missing_cells` (Cover only) the share of missing cells. `chance` is the
    Cover of equally many random passages with judgment 0.
    """

    system: str
    measure: str
    min_rating: int | None
    mean: float | None
    stderr: float | None
    queries: int
    low: float | None
    high: float | None
    ungraded: float | None
    missing_cells: float | None
    chance: float | None = None


class QueryRow(NamedTuple):
    """One system under one measure on one query; the value is None if the query does not count.

    `ranking` is the hash of the passages that the measure reads (see `Gradebook.fingerprints`).
    """

    system: str
    measure: str
    min_rating: int | None
    query_id: str
    value: float | None
    ranking: str | None = None


Fingerprints = Callable[[int | None], Mapping[tuple[str, str], str]]
"""The hashes of the passages that (system, query) returned down to a depth."""


@dataclass(frozen=True, slots=True, repr=False)
class Leaderboard(Result):
    """The result of `evaluate`: columns of values per system and query, with notes.

    `systems` are sorted from best to worst by the first column (undefined ones last, ties by name);
    `columns` have the values per query, in the order of `column_systems`. `oversight` counts the
    human decisions; `without_decisions` is the leaderboard without them (None if there are none, or
    they were already ignored). `passages` is the mean number of passages per query of each system.
    `fingerprints` are those of the gradebook. `counted_once` has the columns of Cover and nCover
    with each group of duplicates as one item, by measure and threshold; None if not requested.
    """

    grader: GraderIdentity
    bank: str
    subtopics: Subtopics
    systems: tuple[str, ...]
    column_systems: tuple[str, ...]
    columns: tuple[MeasureColumn, ...]
    notes: tuple[str, ...]
    oversight: Oversight = NO_OVERSIGHT
    without_decisions: Leaderboard | None = None
    passages: Mapping[str, float] = field(default_factory=dict)
    fingerprints: Fingerprints = field(default=lambda _: {}, repr=False, compare=False)
    counted_once: Mapping[tuple[Measure, int | None], MeasureColumn] | None = None

    @property
    def rows(self) -> tuple[BoardRow, ...]:
        """Return a row per system, column by column, each from best to worst."""
        order = [self.column_systems.index(system) for system in self.systems]
        return tuple(
            row for column in self.columns for row in _rows(column, self.column_systems, order)
        )

    @property
    def overall(self) -> tuple[BoardRow, ...]:
        """Return the rows of `_overall_`, the whole pool as a system; Cover and nCover only."""
        pools = (column.of_pool() for column in self.columns)
        return tuple(row for pool in pools if pool for row in _rows(pool, [OVERALL], [0]))

    def per_query(self) -> Iterator[QueryRow]:
        """Yield the values per query, with `_overall_` last in each column."""
        for column in self.columns:
            rankings = self.fingerprints(column.measure.cutoff)
            yield from _query_rows(column, self.column_systems, rankings)
            if pool := column.of_pool():
                yield from _query_rows(pool, [OVERALL], rankings)

    def scores(self, measure: Measure | str, min_rating: int | None = None) -> dict[str, float]:
        """Map each system with a defined mean under one measure to that mean.

        Raises:
            InputError: That measure is not in the leaderboard at that threshold.
        """
        means = self.column(measure, min_rating).values.means()
        pairs = zip(self.column_systems, means, strict=True)
        return {system: mean.mean for system, mean in pairs if mean.mean is not None}

    def means_without_decisions(self) -> dict[tuple[str, str, int | None], float | None]:
        """Map (system, measure, threshold) to the mean without human decisions."""
        other = self.without_decisions or self
        return {
            (row.system, row.measure, row.min_rating): row.mean
            for row in (*other.rows, *other.overall)
        }

    def column(self, measure: Measure | str, min_rating: int | None = None) -> MeasureColumn:
        """Return the column of a measure; `min_rating` is optional if there is only one.

        A measure that does not depend on the minimum rating matches any.

        Raises:
            InputError: No column or several columns match.
        """
        wanted = measure if isinstance(measure, Measure) else parse_measure(measure)
        fitting = [
            column
            for column in self.columns
            if column.measure == wanted
            and (min_rating is None or column.min_rating in (None, min_rating))
        ]
        if len(fitting) != 1:
            known = ", ".join(dict.fromkeys(str(column.measure) for column in self.columns))
            raise InputError(
                f"{len(fitting)} columns match {wanted} at minimum rating {min_rating}",
                hint=f"Use one threshold and one of {known}",
            )
        return fitting[0]

    def plot(self, measure: Measure | str | None = None, min_rating: int | None = None) -> Figure:
        """Plot the mean of every system with one standard error, by default of the first measure.

        Raises:
            InputError: The measure is not in the leaderboard, or several thresholds fit.
        """
        return self.figure_of(
            self.columns[0] if measure is None else self.column(measure, min_rating)
        )

    def figure_of(
        self,
        column: MeasureColumn,
        letters: Mapping[str, str] | None = None,
        shown: Collection[str] | None = None,
    ) -> Figure:
        """Return the plot of a column; `letters` mark systems that do not differ significantly.

        By default all systems are shown.
        """
        from exampp.results.plots import dots

        systems = self.column_systems if shown is None else shown
        bars = [one for one in column.spreads(self.column_systems) if one.system in systems]
        numbers = column.values.counts.sum(axis=1).tolist()
        queries = dict(zip(self.column_systems, numbers, strict=True))
        figure = dots.leaderboard(bars, column.name, letters=letters, queries=queries)
        if len(bars) < len(self.column_systems):
            some = f"{len(bars)} of {len(self.column_systems)} systems"
            figure = replace(figure, subtitle=f"{some}; {figure.subtitle}")
        return replace(figure, draft=self.grader.is_draft)

    def tables(self) -> Mapping[str, Table]:
        """Return a row per system and a column per measure and threshold."""
        return {"leaderboard": wide_leaderboard(self)}

    def records(self) -> Mapping[str, Table]:
        """Return a row per system, measure and threshold with the grader, and a row per query."""
        return {"leaderboard": tidy(self), "per_query": per_query(self)}


def _rows(
    column: MeasureColumn, systems: Sequence[str], order: Iterable[int]
) -> Iterator[BoardRow]:
    means = column.values.means()
    low, high = (
        [mean.mean for mean in bound.means()] if bound else [None] * len(means)
        for bound in (column.low, column.high)
    )
    for at in order:
        yield BoardRow(
            system=systems[at],
            measure=str(column.measure),
            min_rating=column.min_rating,
            mean=means[at].mean,
            stderr=means[at].stderr,
            queries=means[at].queries,
            low=low[at],
            high=high[at],
            ungraded=column.ungraded[at],
            missing_cells=column.missing_cells[at],
            chance=column.chance,
        )


def _query_rows(
    column: MeasureColumn, systems: Sequence[str], rankings: Mapping[tuple[str, str], str]
) -> Iterator[QueryRow]:
    measure, tables = str(column.measure), column.values
    rows = zip(systems, tables.values.tolist(), tables.counts.tolist(), strict=True)
    for system, values, counts in rows:
        for query_id, value, count in zip(column.query_ids, values, counts, strict=True):
            whole = query_id.rpartition("/")[0]
            ranking = rankings.get((system, query_id)) or rankings.get((system, whole))
            counted = value if count else None
            yield QueryRow(system, measure, column.min_rating, query_id, counted, ranking)


Ranks = Mapping[str, float]
"""An official leaderboard: the rank of every system, 1 for the best."""
PROVENANCE = (
    "grader",
    "grader_key",
    "bank",
    "draft",
    "decided_cells",
    "deciders",
    "disputed_cells",
)
"""The provenance of the numbers: grader, bank, and number of cells decided by people."""
PROVENANCE_COLUMNS = tuple(Column(name, readers="programs") for name in PROVENANCE)


def provenance_values(board: Leaderboard) -> tuple[Value, ...]:
    """Return the values of `PROVENANCE`; ignored decisions are not counted."""
    people = board.oversight
    return (
        board.grader.name,
        board.grader.key,
        board.bank,
        board.grader.is_draft,
        people.cells,
        people.people,
        people.disputed,
    )


def caption(board: Leaderboard) -> str:
    """Return the caption: grader, bank and number of cells decided by people.

    Draft grades are marked as drafts, and nugget scores name the ratings that count as support.
    """
    scores = [one for one in board.columns if one.measure.name in NUGGET_SCORES]
    thresholds = dict.fromkeys(one.min_rating for one in scores if one.min_rating is not None)
    support = describe_support([one.measure for one in scores], thresholds, board.grader.lowest)
    return describe_source(board.grader, board.bank, board.oversight) + (support and f"; {support}")


def describe_source(grader: GraderIdentity, bank: str, oversight: Oversight) -> str:
    """Return the grader, the bank and the number of cells decided by people, as text."""
    of_bank = f", bank {bank}" if bank else ""
    people = f"; {describe_oversight(oversight)}" if oversight.cells else ""
    return labelled(f"graded by {grader.name}{of_bank}{people}", draft=grader.is_draft)


def official_columns(officials: Mapping[str, Ranks]) -> list[str]:
    """Return the headings of official ranks, with the leaderboard's name if there are several."""
    if len(officials) == 1:
        return ["official rank"]
    return [f"rank in {name}" for name in officials]


def official_rank(system: str, ranks: Ranks) -> Value:
    """Return the rank of a system, as int if it is whole; None if it has none."""
    rank = ranks.get(system)
    return int(rank) if rank is not None and float(rank).is_integer() else rank


def wide_leaderboard(board: Leaderboard, officials: Mapping[str, Ranks] | None = None) -> Table:
    """Return a row per system and a column per measure and threshold: mean and standard error.

    A column with ungraded passages is followed by their share. `passages`, the mean number of
    passages per query, is shown if systems differ in it; official ranks come last, under the name
    of their leaderboard.
    """
    officials = officials or {}
    columns: list[tuple[str | Column, Mapping[str, Cell]]] = []
    rows_of: dict[tuple[str, int | None], dict[str, BoardRow]] = {}
    for row in (*board.rows, *board.overall):
        rows_of.setdefault((row.measure, row.min_rating), {})[row.system] = row
    for column in board.columns:
        rows = rows_of.get((str(column.measure), column.min_rating), {})
        bounded = any(row.low is not None for row in rows.values())
        means = {system: _mean(row) for system, row in rows.items()}
        columns.append((Column(column.name, interval=bounded), means))
        columns.append((ERROR, {system: row.stderr for system, row in rows.items()}))
        if column.corrected:
            columns.append((Column("corrected", interval=True), _corrected(board, column)))
        if once := (board.counted_once or {}).get((column.measure, column.min_rating)):
            columns.append((ONCE, _means_of(once, board.column_systems)))
        shares = {system: rows[system].ungraded for system in board.systems}
        if any(shares.values()):
            columns.append(("ungraded", shares))
    # an answer of one passage and a ranking of twenty are not comparable
    if len(set(board.passages.values())) > 1:
        columns.append((Column("passages", 1), board.passages))
    for name, ranks in zip(official_columns(officials), officials.values(), strict=True):
        columns.append((name, {system: official_rank(system, ranks) for system in board.systems}))
    systems = [*board.systems, *([OVERALL] if board.overall else [])]
    return Table.of(
        ["system", *(name for name, _ in columns)],
        [[system, *(values.get(system) for _, values in columns)] for system in systems],
        caption(board),
        board.notes,
    )


def _corrected(board: Leaderboard, column: MeasureColumn) -> dict[str, Cell]:
    pairs = zip(board.column_systems, column.corrected, strict=True)
    return {system: Interval(one.value, one.low, one.high) for system, one in pairs}


def _means_of(column: MeasureColumn, systems: Sequence[str]) -> dict[str, float | None]:
    """Map each system, and the whole pool, to its mean."""
    means = zip(systems, (one.mean for one in column.values.means()), strict=True)
    pool = column.of_pool()
    return dict(means) | ({OVERALL: pool.values.means()[0].mean} if pool else {})


def _mean(row: BoardRow) -> Value | Interval:
    if row.low is None or row.high is None or row.low == row.high:
        return row.mean
    return Interval(row.mean, row.low, row.high)


def tidy(board: Leaderboard, officials: Mapping[str, Ranks] | None = None) -> Table:
    """Return a row per system, measure and threshold at full precision, with grader and bank.

    `mean_without_decisions` is the mean without human decisions; official ranks follow, and last
    the mean number of passages per query.
    """
    officials = officials or {}
    without = board.means_without_decisions()
    once = {
        (system, str(measure), threshold): mean
        for (measure, threshold), column in (board.counted_once or {}).items()
        for system, mean in _means_of(column, board.column_systems).items()
    }
    corrected = {
        (system, str(column.measure), column.min_rating): (one.value, one.low, one.high)
        for column in board.columns
        for system, one in zip(board.column_systems, column.corrected, strict=False)
    }
    rows = [
        [
            *row,
            without[row.system, row.measure, row.min_rating],
            *provenance_values(board),
            *(official_rank(row.system, ranks) for ranks in officials.values()),
            board.passages.get(row.system),
            *([once.get((row.system, row.measure, row.min_rating))] if once else ()),
            *(corrected.get(row[:3], (None,) * 3) if corrected else ()),
        ]
        for row in (*board.rows, *board.overall)
    ]
    ranked = [name.replace(" ", "_") for name in official_columns(officials)]
    columns = [*BoardRow._fields, "mean_without_decisions", *PROVENANCE, *ranked, "passages"]
    columns += ["mean_once"] * bool(once)
    columns += ["corrected", "corrected_low", "corrected_high"] if corrected else []
    return Table.of(columns, rows, caption(board), board.notes)


def per_query(board: Leaderboard) -> Table:
    """Return a row per system, measure, threshold and query."""
    *names, ranking = QueryRow._fields
    source = provenance_values(board)
    rows = [[*row[:-1], *source, row.ranking] for row in board.per_query()]
    columns: list[str | Column] = [*names]
    columns += (*PROVENANCE_COLUMNS, Column(ranking, readers="programs"))
    return Table.of(columns, rows, caption(board), board.notes)


def parts_table(public: Leaderboard, sealed: Leaderboard) -> Table:
    """Compare scores on the public and the sealed part: a row per system, best sealed score first.

    Both boards have one column, of the same measure. A system that was tuned to the public items
    gains more on them than other systems do. The notes give the rank correlation of the two parts.
    """
    from exampp.stats.rank_correlation import correlate

    (one,), (other,) = public.columns, sealed.columns
    means = dict(zip(public.column_systems, one.values.means(), strict=True))
    hidden = dict(zip(sealed.column_systems, other.values.means(), strict=True))
    rows: list[tuple[Value, ...]] = []
    for system in sealed.systems:
        a, b = means[system], hidden[system]
        gap = None if a.mean is None or b.mean is None else a.mean - b.mean
        rows.append((system, a.mean, a.stderr, b.mean, b.stderr, gap))
    parts = (f"{one.name} public", ERROR, f"{one.name} sealed", f"{ERROR} sealed")
    ranks = {system: -score for system, score in sealed.scores(other.measure).items()}
    agreement = correlate(public.scores(one.measure), ranks)
    tau = agreement.kendall
    value = tau.reason if tau.value is None else f"{tau.value:.3f}"
    verdict = f"Kendall's tau of the two parts over {agreement.systems} systems: {value}."
    notes = merge_notes(
        about(part, note)
        for part, board in (("public", public), ("sealed", sealed))
        for note in board.notes
    )
    columns = ["system", *parts, "difference"]
    title = caption(public).replace(", public part", "", 1)
    return Table.of(columns, rows, title, notes, verdict=verdict)
