"""Compare two versions of an exam, and test whether they differ by more than noise.

The score of a system before and after is compared query by query, on the queries of both versions,
by the tests of two systems (`stats.significance`), with Holm's correction over the systems that
changed. A system is higher or lower if Gaffke's limits show it over all queries like these, and
different if only the randomisation test shows a change.

A difference has up to four causes: the responses of the system, the bank, the grades, and human
decisions. Exams that take some of these from one version and the rest from the other
(`analysis.versions`) show the effect of each: its mean over all orders in which the changes could
have been made (the Shapley value), so that the effects add up to the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from exampp.analysis.phrases import OVER_ALL, gaps, percent, share_shown
from exampp.analysis.significance import without_rounding
from exampp.analysis.versions import (
    CAUSES,
    CellChange,
    ContentChange,
    ExamVersion,
    VersionPair,
)
from exampp.errors import InputError
from exampp.formats.leaderboards import QueryScore
from exampp.items.edits import changes_table
from exampp.measures.board import Leaderboard, caption
from exampp.measures.exams import Subtopics
from exampp.measures.leaderboard import default_min_rating, evaluate
from exampp.measures.qrels import Labelling
from exampp.measures.values import TIE_DECIMALS, MeasureColumn, Values, mean_of, tied_ranks
from exampp.records.gradebook import Gradebook, untestable
from exampp.records.wording import counted
from exampp.results.notes import note
from exampp.results.plots.dots import intervals_figure
from exampp.results.plots.figure import Figure, Spread
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, programs_only
from exampp.stats.estimate import LEVEL, Bools, Estimate, Floats, undefined
from exampp.stats.significance import (
    Pair,
    compare_pairs,
    enough_permutations,
    paired_differences,
)
from exampp.store.bank import ItemChange

Outcome = Literal[
    "higher", "lower", "different", "not significant", "unchanged", "untested", "added", "removed"
]
ALPHA = 1 - LEVEL
LISTED = 20
"""Rows of changed items and cells that people see."""
_SAME, _INTERACTS = 1e-9, 0.0005
"""Means that differ by less are equal; effects that differ by less are shown as one number."""


class SystemChange(NamedTuple):
    """A system in both versions; None where it has no score.

    `before` and `after` are its scores on the leaderboards, `difference` is after minus before on
    the queries of both versions. `p` is of the randomisation test, which tests that nothing changed
    but by chance, `p_mean` tests that the mean is the same over all queries like these; both after
    Holm's correction. `causes` are the effects of the changed `CAUSES`, None where undefined.
    """

    system: str
    outcome: Outcome
    before: float | None
    after: float | None
    rank_before: int | None
    rank_after: int | None
    difference: Estimate
    p: float | None = None
    p_mean: float | None = None
    queries: int = 0
    causes: tuple[float | None, ...] = ()


class QueryChange(NamedTuple):
    """The score of a system for a query that differs between two versions."""

    system: str
    query_id: str
    before: float
    after: float
    difference: float


@dataclass(frozen=True, slots=True)
class VersionScores:
    """The scores of one version under one measure: systems x queries.

    `means` are those of the leaderboard. `rankings` are hashes of what a system returned for a
    query, by (system, query). `bounds` are the lowest and highest values for any missing grades, if
    grades are missing. Scores without queries have means alone.
    """

    name: str
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats
    counts: Bools
    means: tuple[float | None, ...]
    rankings: Mapping[tuple[str, str], str | None]
    grader: str | None = None
    bounds: tuple[Floats, Floats] | None = None

    @classmethod
    def of_board(cls, name: str, board: Leaderboard) -> VersionScores:
        """Return the scores of a leaderboard with one column."""
        (column,) = board.columns
        return cls(
            name,
            board.column_systems,
            column.query_ids,
            column.values.values,
            column.values.counts,
            tuple(one.mean for one in column.values.means()),
            {
                (row.system, row.query_id): row.ranking
                for row in board.per_query()
                if row.system in board.column_systems
            },
            board.grader.key,
            (column.low.values, column.high.values) if column.low and column.high else None,
        )

    @classmethod
    def of_file(
        cls, name: str, scores: Sequence[QueryScore], *, clipped: bool = False
    ) -> VersionScores:
        """Return stored scores of one measure; those of no query are means.

        Means of a `clipped` measure are at least 0.

        Raises:
            InputError: A system has two scores for a query.
        """
        systems = tuple(sorted({one.system for one in scores}))
        query_ids = tuple(sorted({one.query_id for one in scores} - {""}))
        known = {(one.system, one.query_id): one for one in scores}
        if len(known) < len(scores):
            raise InputError(f"{name} has two scores of a system for one query")
        found = [[known.get((system, query)) for query in query_ids] for system in systems]
        values = [[one and one.value for one in row] for row in found]
        counts = np.array([[one is not None for one in row] for row in values], np.bool_)
        numbers = np.array([[one or 0.0 for one in row] for row in values], np.float64)
        shape = len(systems), len(query_ids)
        numbers, counts = numbers.reshape(shape), counts.reshape(shape)
        by_query = Values(numbers, counts, clipped=clipped).averages()
        means = [
            mean.mean if query_ids else known[system, ""].value
            for system, mean in zip(systems, by_query, strict=True)
        ]
        rankings = {key: one.ranking for key, one in known.items()}
        key = next((one.grader_key for one in scores), None)
        return cls(name, systems, query_ids, numbers, counts, tuple(means), rankings, key)

    def on(self, systems: Sequence[str], query_ids: Sequence[str]) -> tuple[Floats, Bools]:
        """Return the values of some systems and queries, and which of them count."""
        places = {one: at for at, one in enumerate(self.query_ids)}
        rows = np.array([self.systems.index(one) for one in systems], np.intp)
        here = np.ix_(rows, np.array([places[query] for query in query_ids], np.intp))
        return self.values[here], self.counts[here]

    def at_bounds(self) -> tuple[VersionScores, VersionScores]:
        """Return the scores with the lowest and with the highest possible values."""
        low, high = self.bounds or (self.values, self.values)
        return replace(self, values=low), replace(self, values=high)


@dataclass(frozen=True, slots=True, repr=False)
class Changes(Result):
    """The differences between two versions of an exam under one measure.

    `systems` are those of both versions, best first, then the added and the removed ones. `queries`
    are their changed scores for single queries, largest first. `content` counts what differs,
    `edits` are the changed items and `cells` the changed ratings; they are empty if the earlier
    version is known by its scores alone. `swaps` are pairs of systems that changed their order, the
    one ahead now first.
    """

    since: str
    measure: str
    causes: tuple[str, ...]
    systems: tuple[SystemChange, ...]
    queries: tuple[QueryChange, ...]
    swaps: tuple[tuple[str, str], ...]
    content: tuple[ContentChange, ...]
    edits: Table | None
    cells: tuple[CellChange, ...]
    source: str
    is_draft: bool
    notes: tuple[str, ...] = ()

    def count(self, *outcomes: Outcome) -> int:
        """Count the systems with these outcomes."""
        return sum(one.outcome in outcomes for one in self.systems)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is known to differ."""
        differs = any(one.added or one.removed or one.changed for one in self.content)
        return not differs and self.count("unchanged") == len(self.systems) and not self.swaps

    @property
    def headline(self) -> str:
        """The systems that score significantly higher or lower, and the order, in words."""
        if self.is_empty:
            return f"Nothing changed since {self.since}."
        both = sum(one.difference.value is not None for one in self.systems)
        if not both:
            return f"No system has a score both now and in {self.since}."
        sizes = [abs(one.difference.value or 0.0) for one in self.systems]
        moved = sum(size > 0 for size in sizes)
        of = f"{both} systems" if both > 1 else "1 system"
        order = f" {self._order}." if both > 1 else ""
        if not moved:
            return f"No score under {self.measure} changed since {self.since}.{order}"
        size = f"by at most {max(sizes):.3f}"
        differ = (
            f"{moved} of {of} {'has' if moved == 1 else 'have'} a different {self.measure}, {size}"
        )
        if self.count("untested"):
            return f"{differ}, since {self.since}; this may be noise.{order}"
        otherwise = self.count("higher", "lower", "different")
        if not otherwise:
            return f"No significant change since {self.since}: {differ}.{order}"
        directions: tuple[Outcome, ...] = "higher", "lower"
        found = [f"{count} {one}" for one in directions if (count := self.count(one))]
        shown = " and ".join(found) or "none is shown to be higher or lower"
        verb = "scores" if otherwise == 1 else "score"
        return (
            f"Significant: {otherwise} of {of} {verb} differently since {self.since} under "
            f"{self.measure}, {size}; {shown} {OVER_ALL}.{order}"
        )

    @property
    def _order(self) -> str:
        if len(self.swaps) > 1:
            return f"{len(self.swaps)} pairs of systems changed order"
        names = (f"{ahead} is now ahead of {behind}" for ahead, behind in self.swaps)
        return next(names, "The order of the systems is unchanged")

    def plot(self) -> Figure:
        """Plot the difference of every system with its interval."""
        rows = [
            Spread(one.system, one.difference.value, one.difference.low, one.difference.high)
            for one in self.systems
        ]
        title = f"Change of {self.measure} since {self.since}"
        spread = f"Bars: {percent(LEVEL)} interval over queries"
        return intervals_figure(
            rows, self.measure, title, spread, name="changes", draft=self.is_draft, zero=True
        )

    def tables(self) -> Mapping[str, Table]:
        """Return scores and content; for people the first changed items and cells only."""
        return self._tables(LISTED)

    def records(self) -> Mapping[str, Table]:
        """Return all rows."""
        return self._tables(None)

    def _tables(self, most: int | None) -> dict[str, Table]:
        columns: list[str | Column] = [
            "system",
            Column("before", group="rank"),
            Column("now", group="rank"),
            Column("before", group=self.measure, key="before"),
            Column("now", group=self.measure, key="after"),
            Column("difference", interval=True),
            *(Column(one, group="due to", key=f"due_to_{one}") for one in self.causes),
            "change",
            *programs_only("p", "p_mean", "queries", "measure", "draft"),
        ]
        rows: list[list[Cell]] = [
            [
                *(one.system, one.rank_before, one.rank_after, one.before, one.after),
                *(one.difference, *one.causes, one.outcome, one.p, one.p_mean),
                *(one.queries, self.measure, self.is_draft),
            ]
            for one in self.systems
        ]
        found = {
            "scores": Table.of(columns, rows, self.source, self.notes, verdict=self.headline),
        }
        if self.queries:
            names: list[str | Column] = ["system", "query", "before", Column("now", key="after")]
            title = f"Queries with another {self.measure}: {len(self.queries):,}"
            found["queries"] = _first(Table.of([*names, "difference"], self.queries, title), most)
        if self.content:
            title = f"Differences to {self.since}"
            found["content"] = Table.of([*ContentChange._fields], self.content, title)
        if self.edits is not None and self.edits.rows:
            found["items"] = _first(self.edits, most)
        if self.cells:
            item = [Column("item", readers="programs"), Column("item", key="item_text")]
            named: list[str | Column] = ["query", "passage", *item, "before", "after", "by"]
            title = f"Other ratings of the same cells: {len(self.cells):,}"
            rows = [[*one[:3], one.text or one.item_id, *one[4:]] for one in self.cells]
            found["cells"] = _first(Table.of(named, rows, title), most)
        return found


def _first(table: Table, most: int | None) -> Table:
    """Return the first rows of a table, with a note on the others."""
    if most is None or len(table.rows) <= most:
        return table
    left = note("rows-left-out", rows=f"{len(table.rows) - most:,}")
    return replace(table, rows=table.rows[:most], notes=(*table.notes, left))


# ---- comparing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """The measure under which two versions are compared, and how ratings become scores."""

    measure: str
    min_rating: int
    subtopics: Subtopics = "query"
    labelling: Labelling = field(default_factory=Labelling)

    def board(self, book: Gradebook) -> Leaderboard:
        """Evaluate one version."""
        return evaluate(
            book,
            [self.measure],
            [self.min_rating],
            subtopics=self.subtopics,
            missing="bounds",
            labelling=self.labelling,
        )


def compare_versions(before: ExamVersion, after: ExamVersion, settings: ChangeSettings) -> Changes:
    """Compare two versions of an exam.

    Raises:
        InputError: They have no query in common, or the measure cannot be computed.
    """
    pair = VersionPair(before, after)
    old, new = before.book.grader, after.book.grader
    one_scale = (old.lowest, old.highest) == (new.lowest, new.highest)
    least = settings.min_rating if one_scale else default_min_rating(before.book)
    boards = replace(settings, min_rating=least).board(before.book), settings.board(after.book)
    earlier, later = map(VersionScores.of_board, (before.name, after.name), boards)
    exams = shared_exams(earlier, later)
    effects: Mapping[str, tuple[float | None, ...]] = {}
    notes: list[str] = []
    causes: tuple[int, ...] = ()
    if not one_scale:
        notes.append(note("changes-scale", before=old.name, after=new.name))
    elif pair.causes and pair.systems:
        causes, effects, notes = _effects(pair, settings, earlier, later, exams)
    if old.key != new.key:
        notes.insert(0, note("changes-grader", before=old.name, after=new.name))
    reason = untestable(before.book) or untestable(after.book) or ""
    # equal responses can only have other scores by another bank, grades or decisions
    same = not any(pair.causes)
    column = boards[1].columns[0]
    systems = system_changes(earlier, later, column, same_exam=same, untested=str(reason))
    missing = [
        max((s or 0.0 for s in board.columns[0].missing_cells), default=0) for board in boards
    ]
    if max(missing):
        shares = map(share_shown, missing)
        notes.append(note("changes-missing", before=next(shares), after=next(shares)))
    no_effect = (None,) * len(causes)
    systems = [one._replace(causes=effects.get(one.system, no_effect)) for one in systems]
    sealed = {one for version in (before, after) for one in version.texts.sealed or ()}
    changed = [one for one in pair.edits if _item_of(one) not in sealed]
    edits = changes_table(changed, f"Changed items: {len(changed):,}")
    cells = [one for of in pair.queries for one in of.changed_cells()] if one_scale else []
    shown = tuple(one for one in cells if (one.query_id, one.item_id) not in sealed)
    if hidden := len(pair.edits) - len(changed) + len(cells) - len(shown):
        notes.append(note("changes-sealed", count=hidden))
    return _result(
        earlier,
        later,
        boards[1],
        systems,
        notes,
        causes=tuple(CAUSES[at] for at in causes),
        content=tuple(pair.content()),
        edits=edits,
        cells=shown,
    )


def _item_of(change: ItemChange) -> tuple[str, str]:
    state = change.after or change.before
    return (state.query_id, state.item_id) if state else ("", "")


def compare_scores(earlier: VersionScores, after: ExamVersion, settings: ChangeSettings) -> Changes:
    """Compare stored scores of an earlier version with an exam.

    Raises:
        InputError: They have no query in common, or the measure cannot be computed.
    """
    board = settings.board(after.book)
    later = VersionScores.of_board(after.name, board)
    notes = [note("changes-scores-only", name=earlier.name)]
    reason = str(untestable(after.book) or "")
    if not earlier.query_ids:
        notes = [note("changes-means-only", name=earlier.name)]
        reason = "the earlier version has no scores of queries"
    else:
        shared_exams(earlier, later)
    if earlier.grader not in (None, later.grader):
        notes.insert(0, note("changes-grader", before="another one", after=after.book.grader.name))
    systems = system_changes(earlier, later, board.columns[0], same_exam=True, untested=reason)
    return _result(earlier, later, board, systems, notes)


def _result(
    earlier: VersionScores,
    later: VersionScores,
    board: Leaderboard,
    systems: Sequence[SystemChange],
    notes: Sequence[str],
    *,
    causes: tuple[str, ...] = (),
    content: tuple[ContentChange, ...] = (),
    edits: Table | None = None,
    cells: tuple[CellChange, ...] = (),
) -> Changes:
    draft = board.grader.is_draft
    before, after = {*earlier.query_ids}, {*later.query_ids}
    all_notes = [*([note("draft")] if draft else []), *notes]
    if before and before != after:
        added, removed = len(after - before), len(before - after)
        all_notes.append(note("changes-queries", added=added, removed=removed))
    all_notes += gaps((one.system, one.difference) for one in systems if one.outcome == "untested")
    if tested := sum(one.p_mean is not None for one in systems):
        alpha, level = f"{ALPHA:g}", percent(LEVEL)
        all_notes.append(
            note("changes-test", level=level, alpha=alpha, systems=counted(tested, "system"))
        )
    return Changes(
        since=earlier.name,
        measure=board.columns[0].name,
        causes=causes,
        systems=tuple(systems),
        queries=tuple(_query_changes(earlier, later)),
        swaps=tuple(_swaps(earlier, later)),
        content=content,
        edits=edits,
        cells=cells,
        source=caption(board),
        is_draft=draft,
        notes=tuple(all_notes),
    )


def _query_changes(earlier: VersionScores, later: VersionScores) -> list[QueryChange]:
    """Return the scores that differ, on systems and queries of both versions, largest first."""
    systems = [one for one in later.systems if one in earlier.systems]
    exams = _shared_queries(earlier, later)
    (first, counts_old), (second, counts_new) = earlier.on(systems, exams), later.on(systems, exams)
    differences = np.where(counts_old & counts_new, second - first, 0.0)
    changes = [
        QueryChange(systems[at], exams[query], *map(float, (old, new, size)))
        for (at, query), size in np.ndenumerate(differences)
        if abs(size) > _SAME
        for old, new in [(first[at, query], second[at, query])]
    ]
    return sorted(changes, key=lambda one: (-abs(one.difference), *one[:2]))


def shared_exams(earlier: VersionScores, later: VersionScores) -> list[str]:
    """Return the queries of both versions; InputError if there are none."""
    if found := _shared_queries(earlier, later):
        return found
    raise InputError(
        f"{earlier.name} is another exam: it has none of the "
        f"{counted(len(later.query_ids), 'query')} of {later.name}",
        hint="Name an earlier version of the same exam",
    )


def _shared_queries(earlier: VersionScores, later: VersionScores) -> list[str]:
    known = {*earlier.query_ids}
    return [one for one in later.query_ids if one in known]


def system_changes(
    earlier: VersionScores,
    later: VersionScores,
    column: MeasureColumn,
    *,
    same_exam: bool,
    untested: str,
) -> list[SystemChange]:
    """Return the changes of all systems: those of both versions best first, added, removed.

    With `same_exam`, the scores of equal responses can only be equal. `untested` is the reason why
    differences cannot be tested.
    """
    old, new = (dict(zip(one.systems, one.means, strict=True)) for one in (earlier, later))
    ranks = [dict(zip(one.systems, tied_ranks(one.means), strict=True)) for one in (earlier, later)]
    order = sorted(new, key=lambda one: (ranks[1][one] is None, ranks[1][one] or 0, one))
    shared, exams = [one for one in order if one in old], _shared_queries(earlier, later)
    (first, counts_old), (second, counts_new) = earlier.on(shared, exams), later.on(shared, exams)
    both = counts_old & counts_new
    differences = paired_differences(second, first, both)
    same = [
        same_exam
        and not differences[at].any()
        and (counts_old[at] == counts_new[at]).all()
        and _returned_the_same(system, exams, earlier, later)
        for at, system in enumerate(shared)
    ]
    tested = [] if untested else [at for at in range(len(shared)) if not same[at]]
    ends = [(second, first)]
    if tested and (earlier.bounds or later.bounds):
        # the missing grades that make the difference smallest, and largest
        (low_old, high_old), (low_new, high_new) = earlier.at_bounds(), later.at_bounds()
        ends += [
            (after.on(shared, exams)[0], before.on(shared, exams)[0])
            for after, before in ((low_new, high_old), (high_new, low_old))
        ]
    compared = [
        compare_pairs(
            np.vstack(end),
            np.vstack([both, both]),
            np.array([[at, len(shared) + at] for at in tested], np.intp).reshape(-1, 2),
            within=column.difference_range,
            permutations=enough_permutations(len(tested), ALPHA),
        )
        for end in ends
    ]
    by_row = dict(zip(tested, zip(*compared, strict=True), strict=True))

    gone = undefined("the system is in one version only")
    changes = []
    for system in dict.fromkeys((*shared, *order, *old)):
        outcome: Outcome = "added" if system not in old else "removed"
        scores = old.get(system), new.get(system)
        places = ranks[0].get(system), ranks[1].get(system)
        changes.append(SystemChange(system, outcome, *scores, *places, gone))
    for at, one in enumerate(changes[: len(shared)]):
        change = one._replace(outcome="untested", queries=int(both[at].sum()))
        if at in by_row:
            change = _tested(change, by_row[at])
        elif same[at]:
            change = change._replace(outcome="unchanged", difference=Estimate(0.0, 0.0, 0.0))
        else:
            size = mean_of(differences[at][both[at]]).mean
            if not exams and one.before is not None and one.after is not None:
                size = without_rounding(one.after - one.before)
            change = change._replace(difference=Estimate(size, no_interval=untested))
        changes[at] = change
    return changes


def _tested(change: SystemChange, pairs: Sequence[Pair]) -> SystemChange:
    """Return the change with its tests: of the grades, and at both ends of missing grades.

    What is not shown at both ends is not shown.
    """
    lows, highs = [p.difference.low for p in pairs], [p.difference.high for p in pairs]
    outcomes = {(_outcome(pair), (pair.difference.value or 0.0) > 0) for pair in pairs}
    return change._replace(
        outcome=outcomes.pop()[0] if len(outcomes) == 1 else "not significant",
        difference=replace(
            pairs[0].difference,
            low=None if None in lows else min(_known(lows)),
            high=None if None in highs else max(_known(highs)),
        ),
        p=max(_known(pair.holm for pair in pairs), default=None),
        p_mean=max(_known(pair.holm_mean for pair in pairs), default=None),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [one for one in values if one is not None]


def _outcome(pair: Pair) -> Outcome:
    if pair.p is None and pair.p_mean is None:
        return "untested"
    if pair.holm_mean is not None and pair.holm_mean <= ALPHA:
        return "higher" if (pair.difference.value or 0.0) > 0 else "lower"
    return "different" if pair.holm is not None and pair.holm <= ALPHA else "not significant"


def _returned_the_same(
    system: str, exams: Sequence[str], earlier: VersionScores, later: VersionScores
) -> bool:
    """Return whether a system is known to have returned the same passages for all queries.

    A query without a ranking is unanswered; without any ranking, nothing is known.
    """
    old, new = ([one.rankings.get((system, query)) for query in exams] for one in (earlier, later))
    return old == new and any(new)


def _swaps(earlier: VersionScores, later: VersionScores) -> Iterator[tuple[str, str]]:
    """Yield the pairs of systems that changed their order, the one ahead now first."""
    old, new = (
        {
            system: round(mean, TIE_DECIMALS)
            for system, mean in zip(one.systems, one.means, strict=True)
            if mean is not None
        }
        for one in (earlier, later)
    )
    shared = sorted(old.keys() & new.keys(), key=lambda one: (-new[one], one))
    for ahead, behind in combinations(shared, 2):
        if old[ahead] < old[behind] and new[ahead] > new[behind]:
            yield ahead, behind


# ---- causes ------------------------------------------------------------------------------------


def _effects(
    pair: VersionPair,
    settings: ChangeSettings,
    earlier: VersionScores,
    later: VersionScores,
    exams: Sequence[str],
) -> tuple[tuple[int, ...], dict[str, tuple[float | None, ...]], list[str]]:
    """Return the causes that move a score, their effects on every system, and notes.

    A cause moves a score if it does so after some of the other changes.
    """
    counts = [one.on(pair.systems, exams)[1] for one in (earlier, later)]
    both, present = counts[0] & counts[1], pair.causes
    worth = {
        later_causes: _worth(pair, settings, later_causes, exams, both)
        for size in range(len(present) + 1)
        for later_causes in combinations(present, size)
    }
    effects: dict[int, Floats] = {}
    spread = np.zeros(len(pair.systems))
    for cause in present:
        others = [one for one in worth if cause not in one]
        steps = np.array([worth[tuple(sorted((*one, cause)))] - worth[one] for one in others])
        orders = [math.comb(len(present) - 1, len(one)) for one in others]
        if not (np.abs(steps) < _SAME).all():
            effects[cause] = (steps / np.array(orders)[:, None]).sum(axis=0) / len(present)
            spread = np.maximum(spread, np.nan_to_num(steps.max(axis=0) - steps.min(axis=0)))
    rows = zip(*(of.tolist() for of in effects.values()), strict=True)
    found = {
        system: tuple(None if math.isnan(one) else without_rounding(one) for one in row)
        for system, row in zip(pair.systems, rows, strict=False)
    }
    notes: list[str] = [note("changes-causes")] if effects else []
    if unknown := [system for system, row in found.items() if None in row]:
        notes.append(note("changes-causes-unknown", systems=unknown))
    if spread.max() > _INTERACTS:
        largest = pair.systems[int(spread.argmax())]
        notes.append(note("changes-interact", system=largest, size=f"{spread.max():.3f}"))
    return tuple(effects), found, notes


def _worth(
    pair: VersionPair,
    settings: ChangeSettings,
    later_causes: Sequence[int],
    exams: Sequence[str],
    both: Bools,
) -> Floats:
    """Return the mean of every system if these causes are of the later version, the rest earlier.

    NaN where the mean depends on cells that neither version has.
    """
    chosen = [int(at in later_causes) for at in range(len(CAUSES))]
    ends = []
    # such a cell is of a passage and an item that are in no version together
    rounds = 2 if pair.is_partial or {0, 1} <= {*pair.causes} else 1
    for unknown in (False, True)[:rounds]:
        book = pair.mix(chosen, unknown=unknown)
        (column,) = settings.board(book).columns
        values = np.full((len(pair.systems), len(exams)), np.nan)
        places = {one: at for at, one in enumerate(column.query_ids)}
        has = [at for at, exam in enumerate(exams) if exam in places]
        at = [places[exams[one]] for one in has]
        values[:, has] = np.where(column.values.counts[:, at], column.values.values[:, at], np.nan)
        total = np.where(both, values, 0.0).sum(axis=1)
        ends.append(total / np.maximum(both.sum(axis=1), 1))
    return np.where(np.abs(ends[0] - ends[-1]) < _SAME, ends[0], np.nan)
