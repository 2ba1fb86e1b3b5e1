"""Leaderboards: all systems, measures and thresholds, and what to know when reading them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.evaluate.chance import ChanceFloor, chance_floor
from exampp.evaluate.cover import OVERALL, CoverResult, Covers, Missing, cover, longest_sitting
from exampp.evaluate.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.evaluate.leaderboard_notes import Notes
from exampp.evaluate.measure import Measure, as_measures, parse_measure
from exampp.evaluate.nuggets import NUGGET_SCORES, check_partial
from exampp.evaluate.people import ColumnChange, changes, people_notes
from exampp.evaluate.policy import EXAM, POLICIES, CoverPolicy
from exampp.evaluate.qrels import Labelling
from exampp.evaluate.scores import Score, ScoreResult, score
from exampp.evaluate.values import Mean, Values
from exampp.evaluate.weighted_cover import WeightedCover, weighted_cover, with_plain
from exampp.records.gradebook import (
    NO_OVERSIGHT,
    Gradebook,
    Oversight,
    mean_passages,
    without_decisions,
)
from exampp.records.grading import GraderIdentity
from exampp.report.result import Result

if TYPE_CHECKING:
    from exampp.report.table import Table

DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One system under one measure. What is undefined is None, and the notes say why.

    `min_rating` is None where the measure does not depend on it. `queries` counts those in the
    mean; `low` and `high` are the means of the bounds, where asked for; `ungraded` is the share
    without a grade of the passages that the measure reads, `missing_cells` (Cover only) that of
    their cells. `chance` is what as many random passages cover that people judged 0.
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


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One system under one measure on one query; None where that query does not count."""

    system: str
    measure: str
    min_rating: int | None
    query_id: str
    value: float | None


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """One measure at one threshold: values per system (in the gradebook's order) and query.

    `chance` is the floor of Cover where people judged passages 0 (see `evaluate.chance`).
    """

    measure: Measure
    min_rating: int | None
    query_ids: tuple[str, ...]
    values: Values
    ungraded: tuple[float | None, ...]
    missing_cells: tuple[float | None, ...]
    low: Values | None = None
    high: Values | None = None
    overall: Values | None = None
    overall_shares: tuple[float | None, float | None] = (None, None)
    chance: float | None = None

    @property
    def largest_difference(self) -> float:
        """The largest difference that two values can have."""
        return 1.0 if self.measure.share else math.inf


@dataclass(frozen=True, slots=True, repr=False)
class Leaderboard(Result):
    """What `evaluate` found.

    `systems` go from best to worst by the first column (undefined ones last, ties by name);
    `columns` hold the values per query, in the order of `column_systems`. `oversight` counts what
    people decided; `without_decisions` is the leaderboard without that (None: nothing was
    decided, or it was left out already). `passages` are how many each system returned for a query,
    on average.
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

    @property
    def rows(self) -> tuple[BoardRow, ...]:
        """Tidy rows of the systems: column by column, each from best to worst of the first."""
        return tuple(row for column in self.columns for row in self._rows(column))

    @property
    def overall(self) -> tuple[BoardRow, ...]:
        """Rows of `_overall_`, the whole pool taken as a system; Cover and nCover only."""
        return tuple(
            _row(OVERALL, column, column.overall.means()[0], *column.overall_shares)
            for column in self.columns
            if column.overall is not None
        )

    def per_query(self) -> Iterator[QueryRow]:
        """The values behind the means, `_overall_` last in its columns."""
        for column in self.columns:
            tables = [(self.column_systems, column.values), ((OVERALL,), column.overall)]
            for systems, table in tables:
                if table is not None:
                    yield from _query_rows(column, systems, table)

    def scores(self, measure: Measure | str, min_rating: int | None = None) -> dict[str, float]:
        """System -> mean under one measure, undefined ones left out, to be correlated.

        Raises:
            InputError: That measure is not in the leaderboard at that threshold.
        """
        means = self.column(measure, min_rating).values.means()
        pairs = zip(self.column_systems, means, strict=True)
        return {system: mean.mean for system, mean in pairs if mean.mean is not None}

    def means_without_decisions(self) -> dict[tuple[str, str, int | None], float | None]:
        """(system, measure, threshold) -> the mean without what people decided."""
        other = self.without_decisions or self
        return {
            (row.system, row.measure, row.min_rating): row.mean
            for row in (*other.rows, *other.overall)
        }

    def changes(self) -> tuple[ColumnChange, ...]:
        """What people's decisions change in each column; nothing where they are in none."""
        if self.without_decisions is None:
            return ()
        return changes(self.column_systems, self.without_decisions.columns, self.columns)

    def column(self, measure: Measure | str, min_rating: int | None = None) -> MeasureColumn:
        """The column of a measure; the threshold may be left out where there is only one.

        A measure that does not depend on the threshold is found at any.

        Raises:
            InputError: There is none, or several fit.
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
                f"{len(fitting)} columns fit {wanted} at minimum rating {min_rating}",
                mend=f"Name one threshold and one of {known}",
            )
        return fitting[0]

    def tables(self) -> Mapping[str, Table]:
        """A row a system, a column a measure and threshold."""
        # these tables are made from this module's records
        from exampp.evaluate.tables import wide

        return {"leaderboard": wide(self)}

    def records(self) -> Mapping[str, Table]:
        """A row a system, measure and threshold, with who graded, and a row a query."""
        from exampp.evaluate.tables import per_query, tidy

        return {"leaderboard": tidy(self), "per_query": per_query(self)}

    def log_to(self, tracker: str, name: str = "") -> str:
        """Log the leaderboard to `mlflow` or `wandb`: to the open run, or to one of that name.

        Every mean is a metric `MEASURE/SYSTEM`; the tables are artifacts, with their notes. Returns
        the id of the run. Raises InputError where the tracker is not installed or refuses.
        """
        from exampp.evaluate.tables import tracked
        from exampp.report.tracking import track

        return track(tracker, tracked(self, name))

    def _rows(self, column: MeasureColumn) -> Iterator[BoardRow]:
        place = {system: index for index, system in enumerate(self.column_systems)}
        means = column.values.means()
        low = column.low.means() if column.low else None
        high = column.high.means() if column.high else None
        for system in self.systems:
            index = place[system]
            yield _row(
                system,
                column,
                means[index],
                column.ungraded[index],
                column.missing_cells[index],
                low=low[index].mean if low else None,
                high=high[index].mean if high else None,
            )


def evaluate(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    *,
    k: int = 20,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    policy: CoverPolicy = EXAM,
) -> Leaderboard:
    """Evaluate the systems of a gradebook by some measures at some thresholds.

    `k` is the cutoff of a Cover or nCover that has none; `missing` and `policy` concern these two,
    `labelling` all the others.

    Raises:
        InputError: A measure is unknown or cannot be computed, or a threshold is off the scale.
    """
    labelling, measures = labelling or Labelling(), tuple(measures)
    board = _evaluated(gradebook, measures, min_ratings, k, subtopics, missing, labelling, policy)
    if gradebook.oversight.cells:
        automatic = without_decisions(gradebook)
        other = _evaluated(
            automatic, measures, min_ratings, k, board.subtopics, missing, labelling, policy
        )
        board = replace(board, without_decisions=other)
    people = tuple(people_notes(gradebook, board.changes()))
    return replace(board, notes=(*people, *board.notes))


def evaluate_gradebook(
    book: Gradebook,
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_rating: int | Sequence[int] | None = None,
    *,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    compat: str = "exam",
) -> Leaderboard:
    """The leaderboard of a gradebook; see `Grades.evaluate`."""
    if compat not in POLICIES:
        raise InputError(f"no compatibility mode {compat!r}", mend=f"Known: {', '.join(POLICIES)}")
    if min_rating is None:
        min_rating = book.grader.default_min_rating
        book = replace(book, notes=(*book.notes, *filter(None, [book.grader.cut])))
    thresholds = list(min_rating) if isinstance(min_rating, Iterable) else [min_rating]
    return evaluate(
        book,
        measures,
        thresholds,
        subtopics=subtopics,
        missing=missing,
        labelling=labelling,
        policy=POLICIES[compat],
    )


def _ends(
    gradebook: Gradebook, depths: Sequence[int], subtopics: Subtopics, policy: CoverPolicy
) -> dict[int, int]:
    """Where each depth ends: with the longest ranking, at the latest, of several depths."""
    if len(depths) < 2 or policy.ranks_as_written:
        return dict(zip(depths, depths, strict=True))
    longest = longest_sitting(gradebook, subtopics)
    return {depth: min(depth, longest) for depth in depths}


def _evaluated(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    k: int,
    subtopics: SubtopicChoice,
    missing: Missing,
    labelling: Labelling,
    policy: CoverPolicy,
) -> Leaderboard:
    cut = (m.cut(k) if m.kind.cover else m for m in as_measures(measures))
    asked = as_measures(one for measure in cut for one in with_plain(measure))
    thresholds = tuple(dict.fromkeys(map(gradebook.grader.threshold, min_ratings)))
    for measure in asked:
        check_partial(measure, gradebook.grader)
    _check_enough(asked, thresholds, labelling)
    mode = resolve_subtopics(gradebook, subtopics)
    at_depth: dict[int, list[Measure]] = {}
    for measure in asked:
        if measure.kind.cover:
            of_depth = at_depth.setdefault(measure.cutoff or k, [])
            of_depth += [measure] if measure.name in NUGGET_SCORES else []
    ends = _ends(gradebook, list(at_depth), mode, policy)
    reached: dict[int, list[Measure]] = {}
    for depth, nuggets in at_depth.items():
        reached.setdefault(ends[depth], []).extend(nuggets)
    found = {
        end: cover(
            gradebook,
            thresholds,
            k=end,
            subtopics=mode,
            missing=missing,
            policy=policy,
            nuggets=nuggets,
        )
        for end, nuggets in reached.items()
    }
    covers = {depth: found[ends[depth]] for depth in at_depth}
    floors = {
        depth: chance_floor(gradebook, thresholds, depth, mode, policy)
        for depth in at_depth
        if Measure("Cover", depth) in asked
    }
    weighted = {
        m: weighted_cover(gradebook, m, thresholds, mode, missing, policy)
        for m in asked
        if m.weights
    }
    others = [m for m in asked if not m.kind.cover]
    scored = None
    if others:
        scored = score(gradebook, others, thresholds, subtopics=mode, labelling=labelling)
    columns = tuple(_columns(asked, covers, floors, weighted, scored))
    return Leaderboard(
        grader=gradebook.grader,
        bank=gradebook.bank_label,
        subtopics=mode,
        systems=_sorted(gradebook.systems, columns[0].values.means()),
        column_systems=gradebook.systems,
        columns=columns,
        notes=Notes(
            gradebook, asked, mode, covers, floors, weighted, scored, missing, policy
        ).all(),
        oversight=gradebook.oversight,
        passages=mean_passages(gradebook),
    )


def _check_enough(
    asked: Sequence[Measure], thresholds: Sequence[int], labelling: Labelling
) -> None:
    if not asked:
        raise InputError("no measure is asked for", mend="Name one, such as Cover@20")
    if not thresholds and (labelling.needs_threshold or any(m.takes_level for m in asked)):
        raise InputError("no minimum rating is given", mend="Say from which rating on one counts")


def _columns(
    asked: Sequence[Measure],
    covers: Mapping[int, CoverResult],
    floors: Mapping[int, ChanceFloor],
    weighted: Mapping[Measure, Sequence[WeightedCover]],
    scored: ScoreResult | None,
) -> Iterator[MeasureColumn]:
    """The columns in the order of the measures, then of the thresholds."""
    for measure in asked:
        if measure.kind.cover and measure.cutoff is not None:
            result = covers[measure.cutoff]
            plain = Measure("Cover", measure.cutoff) == measure
            floor = floors[measure.cutoff].values if plain else ()
            tables = zip_longest(result.thresholds, _tables(measure, result, weighted), floor)
            for threshold, table, chance in tables:
                yield _cover_column(measure, threshold, result, table, chance)
        elif scored is not None:
            for found in scored.scores:
                if found.measure == measure:
                    yield _score_column(found, scored)


def _tables(
    measure: Measure, result: CoverResult, weighted: Mapping[Measure, Sequence[WeightedCover]]
) -> Sequence[Covers]:
    """The values of one of our measures, threshold by threshold."""
    return [one.covers for one in weighted[measure]] if measure.weights else result.of(measure)


def _cover_column(
    measure: Measure, threshold: int, result: CoverResult, table: Covers, chance: float | None
) -> MeasureColumn:
    return MeasureColumn(
        measure=measure,
        min_rating=threshold,
        query_ids=result.query_ids,
        values=table.values,
        ungraded=result.ungraded,
        missing_cells=result.missing_cells,
        low=table.low,
        high=table.high,
        overall=table.overall,
        overall_shares=(result.overall_ungraded, result.overall_missing_cells),
        chance=chance,
    )


def _score_column(found: Score, scored: ScoreResult) -> MeasureColumn:
    return MeasureColumn(
        measure=found.measure,
        min_rating=found.min_rating,
        query_ids=scored.query_ids,
        values=found.values,
        ungraded=found.unjudged,
        missing_cells=(None,) * len(scored.systems),
    )


def _sorted(systems: Sequence[str], means: Sequence[Mean]) -> tuple[str, ...]:
    def key(pair: tuple[str, Mean]) -> tuple[bool, float, str]:
        system, (mean, _, _) = pair
        # Rounded, so that the last digit of a sum does not decide over equal systems.
        return mean is None, -round(mean or 0.0, 10), system

    return tuple(system for system, _ in sorted(zip(systems, means, strict=True), key=key))


def _row(
    system: str,
    column: MeasureColumn,
    mean: Mean,
    ungraded: float | None,
    missing_cells: float | None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> BoardRow:
    return BoardRow(
        system=system,
        measure=str(column.measure),
        min_rating=column.min_rating,
        mean=mean.mean,
        stderr=mean.stderr,
        queries=mean.queries,
        low=low,
        high=high,
        ungraded=ungraded,
        missing_cells=missing_cells,
        chance=column.chance,
    )


def _query_rows(column: MeasureColumn, systems: Sequence[str], table: Values) -> Iterator[QueryRow]:
    rows = zip(systems, table.values.tolist(), table.counts.tolist(), strict=True)
    for system, values, counts in rows:
        for query_id, value, count in zip(column.query_ids, values, counts, strict=True):
            yield QueryRow(
                system=system,
                measure=str(column.measure),
                min_rating=column.min_rating,
                query_id=query_id,
                value=value if count else None,
            )
