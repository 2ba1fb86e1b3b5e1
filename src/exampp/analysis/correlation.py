"""Rank correlation of methods with official leaderboards.

Only systems with a score and an official rank are compared; the notes list the others. Official
ranks may be tied or fractional, and scores that differ by no more than rounding are tied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from exampp.analysis.phrases import gaps, percent
from exampp.errors import InputError
from exampp.measures.board import (
    PROVENANCE_COLUMNS,
    Leaderboard,
    Ranks,
    provenance_values,
)
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import Measure, as_measures, heading
from exampp.measures.values import Values
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, untestable
from exampp.records.graders import GraderIdentity
from exampp.records.grouping import grouped
from exampp.records.wording import counted
from exampp.results.notes import DRAFT, Note, about, labelled, merge_notes, note, without_label
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, marked
from exampp.sanitize import check_choice, check_integer
from exampp.stats.estimate import (
    FEWEST_SAMPLES,
    LEVEL,
    SAMPLES,
    Estimate,
    Floats,
    check_draws,
    undefined,
)
from exampp.stats.rank_correlation import (
    DEFAULT_STATISTICS,
    FEWEST_QUERIES,
    FEWEST_SYSTEMS,
    Draws,
    RankStatistic,
    draw_resamples,
    interval,
    one_row,
    rank_statistic,
    resample,
    round_as_printed,
    unite_ties,
)

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

NOT_ASKED = "none was asked for"
NEAR = 0.05
POOR = 0.5
NO_THRESHOLD = "any"
"""Stands for the threshold of measures that do not depend on it."""


@dataclass(frozen=True, slots=True)
class MethodCorrelation:
    """One method at one threshold under one measure and statistic, against one leaderboard."""

    method: str
    grader_key: str | None
    official: str
    measure: str
    min_rating: int | None
    statistic: str
    estimate: Estimate
    systems: int
    queries: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Correlations(Result):
    """The result of `compare_methods`, by official leaderboard, then in the order of the methods.

    `samples` is 0 where no intervals were requested; `notes` belong to an official leaderboard, or
    with "" to all of them.
    """

    found: tuple[MethodCorrelation, ...]
    methods: tuple[str, ...]
    officials: tuple[str, ...]
    statistics: tuple[RankStatistic, ...]
    level: float
    samples: int
    notes: Mapping[str, tuple[str, ...]]

    def tables(self) -> dict[str, Table]:
        """Return for each official leaderboard the values as in the papers, then intervals."""
        found = {}
        for name in self.officials:
            found[f"{name}, wide"] = wide_correlations(self, name)
            if self.has_intervals(name):
                found[f"{name}, intervals"] = intervals(self, name)
        return found

    def records(self) -> dict[str, Table]:
        """Return a row per method, official leaderboard, measure, threshold and statistic.

        `reason` explains an undefined value, or else a missing interval.
        """
        columns: list[str | Column] = [
            *("method", "grader_key", "official", "measure", "min_rating", "statistic"),
            *(Column("value", interval=True), "systems", "queries", "reason"),
        ]
        rows = [
            [
                *(one.method, one.grader_key, one.official, one.measure, one.min_rating),
                *(one.statistic, one.estimate, one.systems, one.queries, one.estimate.why),
            ]
            for one in self.found
        ]
        notes = (text for name in ("", *self.officials) for text in self.notes[name])
        caption = "Rank correlation with official leaderboards"
        table = Table.of(columns, rows, caption, merge_notes(notes), verdict=self.headline)
        return {"correlation": table}

    def plot(self, official: str | None = None, statistic: str | None = None) -> Figure:
        """Plot the correlations with one leaderboard, by default the first, and their intervals.

        Args:
            official: The name of the leaderboard.
            statistic: The name of the statistic, by default the last.

        Raises:
            InputError: One of them is unknown.
        """
        from exampp.results.plots.dots import intervals_figure
        from exampp.results.plots.figure import Spread

        names = [one.name for one in self.statistics]
        name, chosen = official or self.officials[0], statistic or names[-1]
        check_choice("official", name, self.officials)
        check_choice("statistic", chosen, names)
        rows = [
            Spread(
                f"{without_label(one.method)}, {heading(one.measure, one.min_rating)}",
                *(one.estimate.value, one.estimate.low, one.estimate.high),
            )
            for one in self.against(name)
            if one.statistic == chosen
        ]
        spread = f"Bars: {percent(self.level)} interval" if self.has_intervals(name) else ""
        return intervals_figure(
            rows,
            self.statistics[names.index(chosen)].title,
            f"Correlation with {name}",
            spread,
            name="correlation",
            draft=any(DRAFT in one for one in self.methods),
            zero=True,
        )

    def all_notes(self) -> list[str]:
        """Return the notes on the official leaderboards and on rounding, each once."""
        return list(merge_notes(n for name in (*self.officials, "") for n in self.notes[name]))

    @property
    def headline(self) -> str:
        """The range of the last statistic with every leaderboard, in words."""
        return " ".join(map(self.headline_of, self.officials))

    def headline_of(self, official: str) -> str:
        """Return the range of the last statistic with one leaderboard, in words."""
        statistic = self.statistics[-1]
        known = [
            (one.estimate.value, one)
            for one in self.against(official)
            if one.statistic == statistic.name and one.estimate.value is not None
        ]
        if not known:
            return f"No correlation with {official} is defined."
        highest, best = max(known, key=lambda pair: pair[0])
        systems = counted(best.systems, "system")
        scores = f"{best.method}, {heading(best.measure, best.min_rating)}"
        lowest = min(value for value, _ in known)
        values = f"{highest:.3f}" if lowest == highest else f"{lowest:.3f} to {highest:.3f}"
        return f"{statistic.title} with {official} over {systems}: {values}, highest for {scores}."

    def against(self, official: str) -> list[MethodCorrelation]:
        """Return the correlations with one official leaderboard."""
        return [one for one in self.found if one.official == official]

    def has_intervals(self, official: str) -> bool:
        """Return whether any value against this leaderboard has an interval."""
        return any(one.estimate.low is not None for one in self.against(official))


def wide_correlations(comparison: Correlations, official: str) -> Table:
    """Return a table of methods and thresholds x measures and statistics.

    The layout of Table 3 of EXAM++: per statistic the best method is marked, and those within 0.05
    of it, and those below 0.5. It has no intervals, as they would make it too wide: see
    `intervals`.
    """
    against = comparison.against(official)
    values = {(o.method, o.min_rating, o.measure, o.statistic): o.estimate.value for o in against}
    lines = list(dict.fromkeys((one.method, one.min_rating) for one in against))
    lines.sort(key=lambda line: (comparison.methods.index(line[0]), line[1] is None, line[1] or 0))
    best: dict[str, float] = {}
    for one in against:
        if one.estimate.value is not None:
            best[one.statistic] = max(one.estimate.value, best.get(one.statistic, -1.0))

    def cell(key: tuple[str, int | None, str, str]) -> Cell:
        if key not in values:
            return ""
        return marked(values[key], _mark(values[key], best.get(key[-1])))

    meanings = "; ".join(f"{one.heading}: {one.meaning}" for one in comparison.statistics)
    notes = [
        *comparison.notes[official],
        *_gaps(against, intervals=not comparison.has_intervals(official)),
        *comparison.notes[""],
        note("statistics", meanings=meanings),
    ]
    return Table.wide(
        ["method", "min rating"],
        (
            (
                (line[0], NO_THRESHOLD if line[1] is None else line[1]),
                Column(statistic.heading, 2, measure),
                cell((*line, measure, statistic.name)),
            )
            for line in lines
            for measure in dict.fromkeys(one.measure for one in against)
            for statistic in comparison.statistics
        ),
        _caption(official, against),
        notes=notes,
        legend={"near": f"within {NEAR} of it", "weak": f"below {POOR}"},
        grouped=True,
        verdict=comparison.headline_of(official),
    )


def intervals(comparison: Correlations, official: str) -> Table:
    """Return a row per method, measure and threshold: the values with their intervals."""
    correlations = comparison.against(official)
    samples, level = f"{comparison.samples:,}", percent(comparison.level)
    notes = [
        note("correlation-intervals", level=level, samples=samples),
        *_gaps(correlations, intervals=True),
    ]
    headings = {one.name: Column(one.heading, 2, interval=True) for one in comparison.statistics}
    return Table.wide(
        ["method", "measure"],
        (
            ((o.method, heading(o.measure, o.min_rating)), headings[o.statistic], o.estimate)
            for o in correlations
        ),
        f"{_caption(official, correlations)}, with intervals",
        notes=notes,
        grouped=True,
    )


def of_board(comparison: Correlations, board: Leaderboard) -> Table:
    """Return a row per official leaderboard, measure and threshold; statistics as columns."""
    lines = grouped(comparison.found, lambda one: (one.official, one.measure, one.min_rating))
    rows = [
        [
            *(measure, min_rating, *(one.estimate.value for one in estimates)),
            *(estimates[0].systems, official, *provenance_values(board)),
        ]
        for (official, measure, min_rating), estimates in lines.items()
    ]
    columns = ["measure", "min_rating", *(one.name for one in comparison.statistics)]
    return Table.of(
        [*columns, "systems", "official", *PROVENANCE_COLUMNS],
        rows,
        "Rank correlation with the official leaderboard",
        [*_gaps(comparison.found, intervals=False), *comparison.all_notes()],
        verdict=comparison.headline,
    )


def _mark(value: float | None, best: float | None) -> str | None:
    if value is None or best is None:
        return "noted"
    if value >= best:
        return "best"
    # rounding must not decide whether a value is exactly as far
    if value >= best - NEAR - 1e-12:
        return "near"
    return "weak" if value < POOR else None


def _gaps(correlations: Iterable[MethodCorrelation], *, intervals: bool) -> Iterator[Note]:
    """Yield undefined values and, with `intervals`, values without a requested interval."""
    return gaps(
        (
            f"{heading(one.measure, one.min_rating)} of {one.method}",
            one.estimate
            if one.estimate.value is None or (intervals and one.estimate.no_interval != NOT_ASKED)
            else Estimate(one.estimate.value),
        )
        for one in correlations
    )


def _caption(official: str, correlations: Sequence[MethodCorrelation]) -> str:
    defined = [one for one in correlations if one.estimate.value is not None]
    systems = sorted({one.systems for one in defined or correlations}) or [0]
    few = "" if len(systems) == 1 else f"{systems[0]} to "
    return f"Rank correlation with {official} over {few}{counted(systems[-1], 'system')}"


DEFAULT_MEASURES = ("Cover@20", "nCover@20", "P@20", "nDCG@20")
AS_GIVEN = "as given"
"""Stands for the measure of a leaderboard that was made elsewhere."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """One measure at one threshold (None: it does not depend on it).

    `scores` maps systems to means, without undefined ones; higher is better. `values` holds those
    per query, systems x queries in the order of `systems`; None where only the totals are known.
    """

    measure: str
    min_rating: int | None
    scores: Mapping[str, float]
    systems: tuple[str, ...] = ()
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A way to score systems, with notes for the reader.

    `key` is the key of the grader, None for methods without grades; `untestable` is the error that
    intervals raise.

    A method is a grader, qrels made elsewhere, or a leaderboard made elsewhere. Each scores systems
    by one or several measures at one or several thresholds.
    """

    name: str
    scorings: tuple[Scoring, ...]
    notes: tuple[str, ...] = ()
    key: str | None = None
    untestable: InputError | None = None


def graded_method(
    book: Gradebook,
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_ratings: Sequence[int] = (),
    name: str = "",
) -> Method:
    """Return a grader's grades as a method, by default at all thresholds of its scale.

    `thresholds` off the scale are left out with a note.

    Raises:
        InputError: A measure cannot be computed, or no threshold is on the scale.
    """
    lowest, highest = book.grader.lowest, book.highest_threshold
    requested = (check_integer("min_rating", one) for one in min_ratings)
    thresholds = list(dict.fromkeys(requested)) or list(range(lowest + 1, highest + 1))
    fitting = [one for one in thresholds if lowest < one <= highest]
    board = evaluate(book, measures, fitting or thresholds)
    notes = list(board.notes)
    if len(fitting) < len(thresholds):
        off = ", ".join(str(one) for one in thresholds if one not in fitting)
        notes.insert(0, note("off-scale", ratings=off, lowest=lowest, highest=highest))
    title = labelled(name or book.grader.name, draft=book.grader.is_draft)
    return replace(board_method(board, title), notes=tuple(notes), untestable=untestable(book))


def qrels_method(
    name: str,
    book: Gradebook,
    judgments: Iterable[Judgment],
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_ratings: Sequence[int] = (),
) -> Method:
    """Return external qrels as a method: a gradebook's runs under the qrels measures.

    A threshold is the lowest label of a relevant passage, by default each above 0. Cover and
    nCover are left out: qrels have no items. Negative labels are 0.

    Raises:
        InputError: The qrels know no query of the gradebook, or no measure is one of qrels.
    """
    labels: dict[str, dict[str, int]] = {}
    for judgment in judgments:
        labels.setdefault(judgment.query_id, {})[judgment.passage_id] = max(0, judgment.relevance)
    known = [query for query in book.queries if query.query_id in labels]
    if not known:
        raise InputError("no query of the qrels is in the collection", file=name)
    of_qrels = [one for one in as_measures(measures) if not (one.kind.cover or one.kind.formula)]
    if not of_qrels:
        raise InputError(
            f"no measure applies to the qrels {name}", hint="Add a measure of qrels, such as P@20"
        )
    highest = max(1, *(max(labels[query.query_id].values()) for query in known))
    judged = Gradebook(
        grader=GraderIdentity(name, name, "query", 0, highest),
        bank="",
        queries=tuple(_judged(query, labels[query.query_id]) for query in known),
        systems=book.systems,
    )
    method = replace(graded_method(judged, of_qrels, min_ratings), key=None)
    if not (without := len(book.queries) - len(known)):
        return method
    left_out = note("queries-without-judgments", queries=counted(without, "query"))
    return replace(method, notes=(left_out, *method.notes))


def listed_method(name: str, ranks: Mapping[str, float]) -> Method:
    """Return an external leaderboard as a method; `ranks` start at 1, ties are preserved."""
    scores = {system: -rank for system, rank in ranks.items()}
    return Method(name, (Scoring(AS_GIVEN, None, scores),))


def board_method(board: Leaderboard, name: str) -> Method:
    """Return the columns of a leaderboard as a method, with its notes."""
    return Method(name, tuple(_scorings(board)), board.notes, board.grader.key)


def _scorings(board: Leaderboard) -> Iterable[Scoring]:
    for column in board.columns:
        means = zip(board.column_systems, column.values.means(), strict=True)
        yield Scoring(
            measure=str(column.measure),
            min_rating=column.min_rating,
            scores={system: mean.mean for system, mean in means if mean.mean is not None},
            systems=board.column_systems,
            values=column.values,
        )


def _judged(query: QueryGrades, labels: Mapping[str, int]) -> QueryGrades:
    """Return the query with its labels as grades of one item; judged passages join the pool."""
    rows = {passage_id: row for row, passage_id in enumerate(query.passage_ids)}
    for passage_id in labels:
        rows.setdefault(passage_id, len(rows))
    ratings = np.full((len(rows), 1), MISSING, np.int16)
    for passage_id, label in labels.items():
        ratings[rows[passage_id], 0] = label
    return QueryGrades(
        query_id=query.query_id,
        subtopic_ids=query.subtopic_ids,
        item_ids=(query.query_id,),
        item_subtopics=np.zeros(1, np.int32),
        weights=np.ones(1),
        passage_ids=tuple(rows),
        pool_size=len(rows),
        ratings=ratings,
        judgments=np.full((len(query.subtopic_ids) + 1, len(rows)), MISSING, np.int16),
        rankings=query.rankings,
    )


MOST_DECIMALS = 15
ONLY_TOTALS = "only the totals of its systems are known"


def correlation_of_board(
    board: Leaderboard, officials: Mapping[str, Ranks], decimals: int | None = None
) -> Table:
    """Return the rank correlations of every column of a board with official leaderboards."""
    method = replace(board_method(board, board.grader.name), notes=())
    return of_board(compare_methods([method], officials, samples=0, decimals=decimals), board)


def compare_methods(
    methods: Sequence[Method],
    officials: Mapping[str, Ranks],
    statistics: Sequence[str] = DEFAULT_STATISTICS,
    *,
    samples: int = SAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    decimals: int | None = None,
) -> Correlations:
    """Correlate every scoring of every method with every official leaderboard (rank 1 is best).

    The intervals, over queries, are for the mean over exams of this many queries (see
    `stats.rank_correlation`); with 0 samples there are none. With `decimals`, means are rounded
    before they are ranked, as trec_eval does with 4 decimals.

    Raises:
        InputError: The statistic is unknown, two methods have one name, too few samples for
            intervals, intervals of grades that left out cells or queries, or nothing to compare.
    """
    _check(samples, level, seed, decimals)
    wanted = tuple({one.name: one for one in map(rank_statistic, statistics)}.values())
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"two methods have the name {twice}", hint="Rename one of them or its file"
        )
    if not methods or not officials or not wanted:
        raise InputError("nothing to compare", hint="Give an official leaderboard and a statistic")
    if samples and (error := next(filter(None, (one.untestable for one in methods)), None)):
        raise error
    bootstrap = _Bootstrap(wanted, samples, level, seed, decimals)
    correlations: list[MethodCorrelation] = []
    notes: dict[str, tuple[str, ...]] = {
        "": merge_notes((about(m.name, one) for m in methods for one in m.notes), names)
    }
    if decimals is not None:
        notes[""] = (note("rounded", decimals=counted(decimals, "decimal")), *notes[""])
    for official, ranks in officials.items():
        for method in methods:
            for scoring in method.scorings:
                correlations += bootstrap.compare(method, scoring, official, ranks)
        notes[official] = tuple(
            _official_notes(methods, ranks, official if len(officials) > 1 else "")
        )
    return Correlations(
        tuple(correlations), tuple(names), tuple(officials), wanted, level, samples, notes
    )


def _check(samples: int, level: float, seed: int, decimals: int | None) -> None:
    check_draws(samples or FEWEST_SAMPLES, seed)
    if not 0 < level < 1:
        raise InputError(f"the level of the intervals must be between 0 and 1, not {level}")
    if decimals is not None and not 0 <= decimals <= MOST_DECIMALS:
        raise InputError(f"means are rounded to 0 to {MOST_DECIMALS} decimals, not {decimals}")


class _Bootstrap:
    """Compares scorings by bootstrap; queries are drawn once per number of queries."""

    def __init__(
        self,
        statistics: Sequence[RankStatistic],
        samples: int,
        level: float,
        seed: int,
        decimals: int | None,
    ) -> None:
        self.statistics = statistics
        self.decimals = decimals
        self.samples, self.level, self.seed = samples, level, seed
        self._draws: dict[int, Draws] = {}

    def compare(
        self, method: Method, scoring: Scoring, official: str, ranks: Ranks
    ) -> list[MethodCorrelation]:
        both = [system for system in scoring.scores if system in ranks]
        scores = self._ranked([[scoring.scores[system] for system in both]])[0]
        better = -np.array([ranks[system] for system in both], np.float64)
        known = len(both) if not scoring.systems else sum(s in ranks for s in scoring.systems)
        values = _counting(scoring, both)
        sample = self._sample(values, len(both))
        return [
            MethodCorrelation(
                method=method.name,
                grader_key=method.key,
                official=official,
                measure=scoring.measure,
                min_rating=scoring.min_rating,
                statistic=statistic.name,
                estimate=self._estimate(statistic, scores, better, known, sample),
                systems=len(both),
                queries=None if values is None else values.values.shape[1],
            )
            for statistic in self.statistics
        ]

    def _estimate(
        self,
        statistic: RankStatistic,
        scores: Floats,
        better: Floats,
        known: int,
        sample: tuple[Floats, Draws] | str,
    ) -> Estimate:
        value = one_row(lambda x, y: statistic.rows(np.asarray(x), np.asarray(y)), scores, better)
        if value.value is None:
            return undefined(_why(value.reason, scores, better, known))
        if isinstance(sample, str):
            return Estimate(value.value, no_interval=sample)
        bounds = interval(lambda x: statistic.rows(x, better), value.value, *sample, self.level)
        if isinstance(bounds, str):
            return Estimate(value.value, no_interval=bounds)
        return Estimate(value.value, *bounds)

    def _sample(self, values: Values | None, systems: int) -> tuple[Floats, Draws] | str:
        """Return scores in resamples of the queries with the draws, or the reason for none."""
        if not self.samples:
            return NOT_ASKED
        if values is None:
            return ONLY_TOTALS
        queries = values.values.shape[1]
        if systems < FEWEST_SYSTEMS:
            return f"there are fewer than {FEWEST_SYSTEMS} systems ({systems})"
        if queries < FEWEST_QUERIES:
            return f"there are fewer than {FEWEST_QUERIES} queries ({queries})"
        if queries not in self._draws:
            self._draws[queries] = draw_resamples(queries, self.samples, self.seed)
        draws = self._draws[queries]
        scores = resample(values.values, values.counts, draws)
        if values.clipped:
            scores = np.maximum(scores, 0.0)
        return scores if self.decimals is None else self._ranked(scores), draws

    def _ranked(self, means: ArrayLike) -> Floats:
        """Return the means for ranking: rounded as printed, with equal ones made exactly equal."""
        return unite_ties(
            means if self.decimals is None else round_as_printed(means, self.decimals)
        )


def _counting(scoring: Scoring, systems: Sequence[str]) -> Values | None:
    """Return these systems' values on the queries that count for any; None if unknown."""
    if scoring.values is None:
        return None
    place = {system: index for index, system in enumerate(scoring.systems)}
    rows = [place[system] for system in systems]
    counts = scoring.values.counts[rows]
    count = counts.any(axis=0)
    values = scoring.values.values[rows][:, count]
    return replace(scoring.values, values=values, counts=counts[:, count])


def _why(reason: str, scores: Floats, better: Floats, known: int) -> str:
    """Return the reason for an undefined value: missing scores, or a side with equal values."""
    if len(scores) < 2 <= known:
        return f"because no query counts for {counted(known - len(scores), 'system')}"
    if len(scores) < 2:
        return f"because fewer than 2 systems are in both leaderboards ({len(scores)})"
    if np.all(scores == scores[0]):
        return "because all systems have the same score"
    if np.all(better == better[0]):
        return "because all systems have the same official rank"
    return f"because {reason}"


def _official_notes(methods: Sequence[Method], ranks: Ranks, name: str) -> Iterator[Note]:
    """Yield notes on systems missing on either side, and on tied official ranks.

    `name` is the leaderboard's name if there are several.
    """
    where = name or "the official leaderboard"
    known = {method.name: _systems(method) for method in methods}
    for code, missing in (
        ("not-official", {m: known[m] - set(ranks) for m in known}),
        ("only-official", {m: set(ranks) - known[m] for m in known}),
    ):
        incomplete = [(method, sorted(systems)) for method, systems in missing.items() if systems]
        for left_out, of in grouped(incomplete, lambda pair: tuple(pair[1])).items():
            by = "" if len(of) == len(methods) else f" ({', '.join(method for method, _ in of)})"
            yield note(code, where=where, systems=list(left_out), by=by)
    compared = [rank for system, rank in ranks.items() if any(system in k for k in known.values())]
    tied = len(compared) - sum(compared.count(rank) == 1 for rank in set(compared))
    if tied:
        yield note("official-ties", systems=counted(tied, "system"), where=where)


def _systems(method: Method) -> set[str]:
    return {system for scoring in method.scorings for system in scoring.scores}
