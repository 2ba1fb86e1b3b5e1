"""Leaderboards whose grades are corrected by a sample of human verdicts.

The score of a system estimates the one that it would have if people had decided every unit of the
pool. Grades predict the verdict on each unit, and human verdicts on a sample with known inclusion
probabilities correct the prediction; see `stats.sampling`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import percent
from exampp.errors import InputError
from exampp.measures.names import heading
from exampp.measures.population import Population
from exampp.records.wording import counted
from exampp.results.notes import Note, merge_notes, note
from exampp.results.page import Block, Notices, Section
from exampp.results.plots.dots import corrected_scores
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer
from exampp.stats.estimate import MOST_DRAWS, Bools, Floats
from exampp.stats.item_analysis import ranked, ranks_of_systems
from exampp.stats.means import FEWEST_QUERIES
from exampp.stats.rank_correlation import kendall
from exampp.stats.rank_sets import DRAWS, PairTests, Resampling, pair_tests
from exampp.stats.sampling import (
    DrawnUnits,
    Sample,
    ScoreLimits,
    Totals,
    calibrated_probabilities,
    drawn_units,
    folds,
    pool_limits,
    query_limits,
    totals,
)

Scope = Literal["pool", "queries"]
FEWEST_UNITS = 20
"""Least drawn units on which two systems differ; the variance of fewer is unreliable."""
FEWEST_QUERIES_APART = 10
"""Least queries on which two systems differ; resamples of fewer may miss them all."""
FEWEST_OF_SYSTEM = 10
"""Of sampled units that count for a system: with fewer its score has no interval."""


@dataclass(frozen=True, slots=True)
class CorrectionSettings:
    """Settings of a corrected leaderboard.

    `over` is the population of the intervals: the `pool` (these queries and passages) or `queries`
    like these. `alpha` is the maximum probability that an interval misses the truth.

    Raises:
        InputError: A value is out of range.
    """

    over: Scope = "pool"
    alpha: float = 0.05
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.over not in get_args(Scope):
            hint = f"Choose {' or '.join(get_args(Scope))}"
            raise InputError(f"unknown scope {self.over!r}", hint=hint)
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        check_integer("draws", self.draws, 100, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)

    @property
    def level(self) -> float:
        """The confidence of an interval."""
        return 1 - self.alpha


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The sampled units of a population, with their human labels and the design of the sample.

    `labels` is aligned with `sample.places`: [sampled], of items [systems, sampled]. `origin`
    describes in a sentence what was drawn and who judged; `notes` are further notes. `design` is
    "all" where every unit is judged and none was drawn.
    """

    sample: Sample
    labels: Floats
    fold_seed: int
    design: str
    origin: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to score the systems: scores, and tests of all pairs of systems.

    `errors` are standard errors of the scores, `low` and `high` the limits of their intervals,
    within 0 and 1 (NaN where there is none).
    """

    scores: Floats
    errors: Floats
    low: Floats
    high: Floats
    pairs: PairTests

    def bounds(self, row: int) -> tuple[float | None, float | None]:
        """Return the interval of a score; None where there is none."""
        low, high = float(self.low[row]), float(self.high[row])
        return (None, None) if math.isnan(low) else (low, high)


FEW_LABELS = 400
"""With fewer, the grades' own order was the better one on TREC DL 2019 (`benchmarks`)."""

_SCOPES: Mapping[Scope, str] = {
    "pool": "these queries and this pool",
    "queries": "queries like these",
}
"""The populations that intervals hold for."""


@dataclass(frozen=True, slots=True, repr=False)
class Corrected(Result):
    """The leaderboard of one measure: by grades alone, corrected, and by people alone.

    Rows are `systems`, best first as corrected. `graded` are scores by the grades. `corrected` and
    `people` are by scope, "pool" and, with two queries or more, "queries". `shared` [systems,
    systems] counts the sampled units on which two systems differ; `identical` systems return the
    same everywhere. People decided `labels` of `units`.
    """

    measure: str
    min_rating: int
    systems: tuple[str, ...]
    queries: int
    units: int
    labels: int
    unit: str
    graded: Floats
    corrected: Mapping[Scope, Estimator]
    people: Mapping[Scope, Estimator]
    shared: NDArray[np.int64]
    identical: Bools
    settings: CorrectionSettings
    judged: JudgedSample
    source: str = ""

    @property
    def shown(self) -> Estimator:
        """The corrected scores in the scope of the settings."""
        return self.corrected[self.settings.over]

    @property
    def outside(self) -> int:
        """The number of systems whose score by the grades is outside their interval."""
        return int(((self.graded < self.shown.low) | (self.graded > self.shown.high)).sum())

    @property
    def name(self) -> str:
        """The measure with its minimum rating."""
        return heading(self.measure, self.min_rating)

    def verdicts(self, one: Estimator) -> NDArray[np.str_]:
        """Return the simultaneous verdict on each pair, rows against columns."""
        better = one.pairs.better
        return np.select(
            [self.identical, ~one.pairs.resolved, better, better.T],
            ["identical", "unresolved", "better", "worse"],
            "undecided",
        )

    def _pairs(self, scope: Scope) -> Iterator[tuple[Value, ...]]:
        """Yield system, other, difference, error, both intervals, units apart, verdict."""
        one = self.corrected[scope]
        verdicts = self.verdicts(one)
        for at in combinations(range(len(self.systems)), 2):
            apart, verdict = float(one.pairs.differences[at]), str(verdicts[at])
            ends: list[float | None] = [None] * 4
            if verdict not in ("unresolved", "identical"):
                halves = float(one.pairs.half[at]), float(one.pairs.joint[at])
                ends = [apart + sign * half for half in halves for sign in (-1, 1)]
            systems = (self.systems[at[0]], self.systems[at[1]])
            yield *systems, apart, float(one.pairs.errors[at]), *ends, int(self.shared[at]), verdict

    def plot(self) -> Figure:
        """Return a plot of the three scores, with the intervals of the corrected ones."""
        people = self.people[self.settings.over]
        spread = f"Bars: {percent(self.settings.level)} interval for {_SCOPES[self.settings.over]}"
        if self.judged.design == "all" and self.settings.over == "pool":
            spread = "No bars: people judged the whole pool, so corrected scores are theirs"
        rows = [
            (system, graded, score, *self.shown.bounds(row), alone)
            for row, (system, graded, score, alone) in enumerate(
                zip(
                    self.systems,
                    self.graded.tolist(),
                    self.shown.scores.tolist(),
                    people.scores.tolist(),
                    strict=True,
                )
            )
        ]
        return corrected_scores(rows, self.name, spread, draft=self.source.startswith("DRAFT"))

    def tables(self) -> dict[str, Table]:
        """Return `scores`: a row per system with its three scores."""
        shown, people = self.shown, self.people[self.settings.over]
        ranks = shown.pairs.rank_sets()
        level = percent(self.settings.level)
        columns: list[str | Column] = [
            *("system", "grades alone", Column("score", group="corrected")),
            *(Column(f"{level} low", group="corrected"), Column("high", group="corrected")),
            "people alone",
            *(Column(name, group="place") for name in ("by grades", "corrected", "rank set")),
        ]
        by_grades, corrected = ranks_of_systems(self.graded), ranks_of_systems(shown.scores)
        rows: list[list[Value]] = [
            [
                *(system, float(self.graded[row]), float(shown.scores[row]), *shown.bounds(row)),
                *(float(people.scores[row]), by_grades[row], corrected[row]),
                f"{ranks[0][row]}-{ranks[1][row]}",
            ]
            for row, system in enumerate(self.systems)
        ]
        return {"scores": self._table(columns, rows)}

    def compared(self) -> Table:
        """Return a row per pair of systems, with the intervals of the selected scope."""
        low = f"{percent(self.settings.level)} low"
        columns: list[str | Column] = [
            *("system", "other", "difference"),
            *(Column(name, group="this pair") for name in (low, "high")),
            *(Column(name, group="all at once") for name in (low, "high")),
            "verdict",
        ]
        rows = [[*row[:3], *row[4:8], row[9]] for row in self._pairs(self.settings.over)]
        return self._table(columns, rows)

    def records(self) -> dict[str, Table]:
        """Return `scores`, by system, way and scope, and `pairs`, by pair and scope."""
        settings, notes, verdict = self.settings, self.notes(), self.headline
        design = self.judged.design
        origin = (self.labels, self.units, self.unit, design, settings.level)
        scores: list[list[Value]] = []
        for row, system in enumerate(self.systems):
            start: list[Value] = [system, self.measure, self.min_rating]
            alone: list[Value] = [None, "grades", float(self.graded[row]), *[None] * 5]
            scores.append([*start, *alone, *origin])
            for method, ways in (("corrected", self.corrected), ("people", self.people)):
                for scope, one in ways.items():
                    values = (float(one.scores[row]), float(one.errors[row]), *one.bounds(row))
                    ranks = (int(side[row]) for side in one.pairs.rank_sets())
                    scores.append([*start, scope, method, *values, *ranks, *origin])
        pairs = [
            [self.measure, self.min_rating, scope, *row, *origin]
            for scope in self.corrected
            for row in self._pairs(scope)
        ]
        last = ("labels", "units", "unit", "design", "level")
        of_scores = (
            *("system", "measure", "min_rating", "over", "method", "score", "se", "low", "high"),
            *("best_rank", "worst_rank"),
        )
        of_pairs = (
            *("measure", "min_rating", "over", "system", "other", "difference", "se", "low"),
            *("high", "joint_low", "joint_high", "units_apart", "verdict"),
        )
        return {
            "scores": Table.of((*of_scores, *last), scores, self.source, notes, verdict=verdict),
            "pairs": Table.of((*of_pairs, *last), pairs, self.source, notes, verdict=verdict),
        }

    def _table(self, columns: Sequence[str | Column], rows: Sequence[Sequence[Value]]) -> Table:
        return Table.of(columns, rows, self._caption(), self.notes(), verdict=self.headline)

    def _caption(self) -> str:
        source = f"{self.source}; " if self.source else ""
        return (
            f"{source}{self.name} corrected by people: {self.judged.origin}; intervals hold for "
            f"{_SCOPES[self.settings.over]}"
        )

    @property
    def headline(self) -> str:
        """The error of the scores by the grades, in words."""
        off = self.graded - self.shown.scores
        side = "high" if off.mean() > 0 else "low"
        systems = counted(len(self.systems), "system")
        known = len(self.systems) - int(np.isnan(self.shown.low).sum())
        those = f"all {systems}" if known == len(self.systems) else f"{known} of {systems}"
        if self.outside:
            shown = f"and outside the interval for {self.outside} of {systems}"
        elif known:
            shown = f"but within the intervals of {those}: it is not shown to be wrong"
        else:
            shown = "but no system has an interval: more labels show whether it is wrong"
        return (
            f"{self.name} by the grades is off by {np.abs(off).mean():.3f} on average, mostly too "
            f"{side}, {shown}."
        )

    # ---- notes -----------------------------------------------------------------------------------

    def notes(self) -> tuple[Note, ...]:
        """Return the notes: how to read the numbers, decided pairs, and caveats."""
        return merge_notes(self._notes())

    def _notes(self) -> Iterator[str]:
        every, unit = self.judged.design == "all", self.unit
        over = self.settings.over
        yield (
            note(f"all-judged-{over}")
            if every
            else note("corrected-method", units=f"{self.units:,}", unit=unit)
        )
        yield note(f"corrected-over-{over}", queries=f"{self.queries:,}")
        if none := int(np.isnan(self.shown.low).sum()):
            few = over == "queries" and self.queries < FEWEST_QUERIES
            yield note(
                "corrected-no-interval",
                scores=counted(none, "score"),
                least=FEWEST_OF_SYSTEM,
                unit=unit,
                few=f", fewer than {FEWEST_QUERIES} queries" * few,
            )
        yield from self.judged.notes
        if len(self.systems) < 2:
            yield note("one-system")
            return
        yield from self._decided()
        tau = kendall(ranked(self.graded), ranked(self.shown.scores)).value
        yield note("corrected-orders", tau="undefined" if tau is None else f"{tau:.3f}")
        if not every and self.labels < 0.9 * FEW_LABELS:
            yield note("corrected-few-labels", labels=FEW_LABELS)

    def _decided(self) -> Iterator[Note]:
        upper = np.triu_indices(len(self.systems), 1)
        found = Counter(self.verdicts(self.shown)[upper].tolist())
        yield note(
            "pairs-decided",
            decided=f"{found['better'] + found['worse']:,}",
            pairs=counted(len(upper[0]), "pair"),
            level=percent(self.settings.level),
        )
        if unresolved := found["unresolved"]:
            few = [f"{FEWEST_UNITS} drawn {self.unit}s"] * (self.judged.design != "all")
            few += [f"{FEWEST_QUERIES_APART} queries"] * (self.settings.over == "queries")
            yield note("pairs-unresolved", pairs=counted(unresolved, "pair"), few=" or ".join(few))
        if identical := found["identical"]:
            yield note("pairs-identical", pairs=counted(identical, "pair"))


def corrected_section(results: Sequence[Corrected | str]) -> Section:
    """Return the section of a report: a table per sample, or the reason why there is none."""
    blocks: list[Block] = []
    for one in results:
        if isinstance(one, str):
            blocks.append(Notices((f"{one}.",), "note"))
        else:
            blocks += [*one.tables().values(), one.plot()]
    return Section("corrected", "The leaderboard, corrected by people", tuple(blocks))


# ---- correcting ----------------------------------------------------------------------------------

FEWEST_DRAWN_ANEW = 18
"""`FEWEST_UNITS` of resamples: with 20 all pairs held in .92 where few tell, 15 in .98."""

_EQUAL = 1e-12
"""Smaller differences are due to rounding."""


def correct(
    population: Population,
    judged: JudgedSample,
    settings: CorrectionSettings,
    *,
    min_rating: int,
    systems: Sequence[str] = (),
    source: str = "",
) -> Corrected:
    """Correct the leaderboard of a population by a judged sample.

    `systems` are those to be compared, by default all. `source` names the grader of these grades.

    Raises:
        InputError: Intervals over queries are requested, and there is one query.
    """
    rows = population.of(tuple(systems) or population.systems)
    sample, groups = judged.sample, population.groups
    if settings.over == "queries" and len(population.query_ids) < 2:
        raise InputError(
            "intervals over queries need 2 queries or more, and there is 1",
            hint="Leave out --over queries: intervals over the pool need 1 query",
        )
    at = population.coefficients.rows(rows)
    graded = _per_system(population.graded, rows)
    labels = _per_system(judged.labels, rows)

    def scored(predicted: Floats) -> Totals:
        return totals(at, predicted, sample, labels, groups, len(population.query_ids))

    # learnt from the labels of all systems
    fold = folds(judged.fold_seed, population.names)
    learnt = calibrated_probabilities(population.bins, fold, sample, judged.labels)
    predicted = _per_system(learnt, rows)
    found, alone = scored(predicted), scored(np.zeros_like(graded))
    order = np.lexsort(([population.systems[row] for row in rows], -ranked(found.scores)))
    rows, at, graded, labels = (
        rows[order],
        at.rows(order),
        _per_system(graded, order),
        _per_system(labels, order),
    )
    predicted = _per_system(predicted, order)
    found, alone = _ordered(found, order), _ordered(alone, order)
    evidence = _evidence(population, sample, labels, rows)
    missed = sample.uncertain
    queries = len(population.query_ids)

    def estimated(one: Totals, by: Floats) -> dict[Scope, Estimator]:
        drawn = drawn_units(at, by, sample)
        found: dict[Scope, Estimator] = {
            "pool": _of_pool(one, missed.pi, drawn, evidence, settings)
        }
        if queries > 1:
            found["queries"] = _of_queries(one, drawn, evidence, settings)
        return found

    corrected, people = estimated(found, predicted), estimated(alone, np.zeros_like(graded))
    return Corrected(
        measure=str(population.measure),
        min_rating=min_rating,
        systems=tuple(population.systems[row] for row in rows),
        queries=queries,
        units=len(population.names),
        labels=len(sample.places),
        unit=population.unit,
        graded=at @ graded,
        corrected=corrected,
        people=people,
        shared=evidence.shared,
        identical=evidence.identical,
        settings=settings,
        judged=replace(judged, notes=(*population.notes, *judged.notes)),
        source=source,
    )


def _per_system(values: Floats, rows: NDArray[np.intp]) -> Floats:
    return values[rows] if values.ndim > 1 else values


def _ordered(one: Totals, order: NDArray[np.intp]) -> Totals:
    return Totals(
        one.scores[order],
        one.covariance[np.ix_(order, order)],
        one.residuals[order],
        one.parts[order],
    )


class _Evidence(NamedTuple):
    """The evidence of the sample about systems and pairs of systems.

    `own` [n] counts drawn units that count for a system, `sure` [n] is whether all of its units are
    certain; `shared` and `exact` [n, n] are the same for the units on which two systems differ:
    those whose `kinds` [n, uncertain] differ; `identical` [n, n] marks pairs that return the same
    lists.
    """

    own: NDArray[np.int64]
    sure: Bools
    kinds: Floats
    shared: NDArray[np.int64]
    exact: Bools
    identical: Bools


def _evidence(
    population: Population, sample: Sample, labels: Floats, rows: NDArray[np.intp]
) -> _Evidence:
    """Collect the evidence of the sample about some systems.

    Two systems differ on a passage if one counts it more than the other, and on an item if their
    coverage differs by people or by grades. Units that were drawn with certainty are not counted,
    as they give no evidence about the rest; unsampled items may differ.
    """
    n, missed, count = len(rows), sample.uncertain, population.coefficients.count
    coefficients = population.coefficients.rows(rows)
    own = (coefficients.columns(missed.places) > 0).sum(axis=1)
    known = np.zeros(count, np.bool_)
    known[sample.places[sample.pi >= 1]] = True
    rest = [np.flatnonzero(~known[units]) for units in coefficients.units]
    sure = np.array([not len(one) for one in rest])
    lists = population.lists[rows]
    identical = (lists[:, None, :] == lists[None, :, :]).all(axis=2)
    if population.unit == "item":
        kinds = population.graded[rows][:, missed.places] * 2 + labels[:, sample.pi < 1]
        exact = np.full((n, n), sure.all())
    else:
        kinds = coefficients.columns(missed.places)
        unknown = [
            (units[one].tobytes(), values[one].tobytes())
            for units, values, one in zip(
                coefficients.units, coefficients.values, rest, strict=True
            )
        ]
        exact = np.array([[one == other for other in unknown] for one in unknown])
    shared = np.array([(kinds != one).sum(axis=1) for one in kinds])
    return _Evidence(own.astype(np.int64), sure, kinds, shared, exact, identical)


def _of_pool(
    one: Totals, pi: Floats, drawn: DrawnUnits, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Return scores and tests over these queries and this pool; only the sample is random.

    Labels without any spread do not prove certainty: there is no interval unless every unit
    that counts was drawn with certainty.
    """
    errors = np.sqrt(np.maximum(np.diag(one.covariance), 0.0))
    limits = pool_limits(one, pi, drawn, settings.level)
    without_interval = _without_interval(one, evidence)
    tests = pair_tests(
        one.scores,
        one.covariance,
        evidence.identical | evidence.exact | _distinguished(one, evidence),
        evidence.shared.astype(np.float64) - 1,
        Resampling(
            one.residuals * pi, pi, evidence.kinds, FEWEST_DRAWN_ANEW, settings.draws, settings.seed
        ),
        level=settings.level,
    )
    return Estimator(one.scores, errors, *_bounded_limits(limits, without_interval), tests)


def _bounded_limits(limits: ScoreLimits, without_interval: Bools) -> ScoreLimits:
    """Return the limits within 0 and 1; NaN for systems whose score has no interval."""
    low, high = (np.where(without_interval, np.nan, np.clip(end, 0.0, 1.0)) for end in limits)
    return low, high


def _of_queries(
    one: Totals, drawn: DrawnUnits, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Return scores and tests over queries like these; the sample and the queries are random.

    A score is the mean over queries of (number of queries x the query's part).
    """
    queries = one.parts.shape[1]
    values = one.parts * queries
    covariance = np.atleast_2d(np.cov(values)) / queries
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    freedom = np.full(errors.shape, queries - 1.0)
    limits = query_limits(one, drawn, settings.level)
    # equal values of all queries say nothing about other queries, even fully judged
    without_interval = (
        _without_interval(one, evidence) | (errors <= _EQUAL) | (queries < FEWEST_QUERIES)
    )
    kinds = ranked(values)
    apart = np.array([(kinds != row).sum(axis=1) for row in kinds])
    seen = (evidence.exact | _distinguished(one, evidence)) & (apart >= FEWEST_QUERIES_APART)
    tests = pair_tests(
        one.scores,
        covariance,
        evidence.identical | seen,
        np.broadcast_to(freedom, covariance.shape),
        Resampling(values, None, kinds, FEWEST_QUERIES_APART, settings.draws, settings.seed),
        level=settings.level,
    )
    return Estimator(one.scores, errors, *_bounded_limits(limits, without_interval), tests)


def _without_interval(one: Totals, evidence: _Evidence) -> Bools:
    """Return which scores have no interval: too few drawn units count, or they show no spread."""
    few = (evidence.own < FEWEST_OF_SYSTEM) | (np.diag(one.covariance) <= 1e-18)
    return few & ~evidence.sure


def _distinguished(one: Totals, evidence: _Evidence) -> Bools:
    """Return which pairs differ on enough drawn units, with some spread."""
    spread = np.diag(one.covariance)
    both = spread[:, None] + spread[None, :]
    return (both - 2 * one.covariance > 1e-14 * both) & (evidence.shared >= FEWEST_UNITS)
