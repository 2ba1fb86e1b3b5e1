"""Leaderboards that people's sample makes true: the grades corrected by a sample of verdicts.

The score of a system is that which the leaderboard would have if people had decided every unit of
the pool. Grades say what is to be expected of each unit, people what is so of a sample that was
drawn with known probabilities; see `stats.difference`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.population import Population
from exampp.outside import check_whole
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import Table
from exampp.stats.difference import Sample, Totals, calibrated, totals, tuned
from exampp.stats.means import FEWEST_QUERIES
from exampp.stats.rank_sets import (
    DECIMALS,
    DRAWS,
    PairTests,
    Resampling,
    pair_tests,
    student_reach,
)
from exampp.stats.resampling import MOST_DRAWS
from exampp.stats.sampling import folds

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Predictor = Literal["calibrated", "ppi", "grades"]
Scope = Literal["pool", "queries"]

FEWEST_UNITS = 20
"""Of units drawn by chance on which two systems differ: a small variance of fewer says nothing."""
FEWEST_DRAWN_ANEW = 18
"""The same in a sample drawn anew: with 20 all pairs held in .92 where few tell, with 15 in .98."""
FEWEST_QUERIES_APART = 10
"""On which two systems differ: of fewer, queries drawn anew may hold none."""
FEWEST_OF_SYSTEM = 10
"""Of sampled units that count for a system: with fewer its score has no interval."""

_EQUAL = 1e-12
"""What is nearer is the same but for rounding."""


@dataclass(frozen=True, slots=True)
class CorrectionSettings:
    """How a leaderboard is corrected.

    `predictor`: what grades predict of a unit. "calibrated": what people said of sampled units with
    such grades, cross-fitted; "ppi": the label that the grades give, times the lambda of PPI++;
    "grades": that label itself. `over`: what intervals speak of, the `pool` (these queries, these
    passages) or `queries` like these. `looks`: how often intervals are looked at while the sample
    grows; each time at alpha / looks.

    Raises:
        InputError: A value makes no sense.
    """

    predictor: Predictor = "calibrated"
    over: Scope = "pool"
    alpha: float = 0.05
    looks: int = 1
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        for what, value, known in (
            ("predictor", self.predictor, get_args(Predictor)),
            ("scope", self.over, get_args(Scope)),
        ):
            if value not in known:
                raise InputError(f"there is no {what} {value!r}", mend=f"Choose {_either(known)}")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        check_whole("looks", self.looks, 1, MOST_DRAWS)
        check_whole("draws", self.draws, 100, MOST_DRAWS)
        check_whole("the seed", self.seed, 0)

    @property
    def level(self) -> float:
        """The confidence of an interval."""
        return 1 - self.alpha / self.looks


def _either(known: Sequence[str]) -> str:
    return " or ".join(known)


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The sampled units of a population, what people say of them, and how they were drawn.

    `labels` is aligned with `sample.places`: [sampled], of items [systems, sampled]. `origin` says
    in a sentence what was drawn and who judged; `notes` what else is to be known of it. `design` is
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
    """One way to score the systems: scores, and the tests of all pairs, of the same systems.

    `errors` are standard errors of the scores, `half` half the width of their intervals (NaN where
    there is none).
    """

    scores: Floats
    errors: Floats
    half: Floats
    pairs: PairTests


@dataclass(frozen=True, slots=True, repr=False)
class Corrected(Result):
    """The leaderboard of one measure: by grades alone, corrected, and by people alone.

    Rows are `systems`, best first as corrected. `graded` are scores by the grades. `corrected` and
    `people` are by scope, "pool" and "queries" (where there are two queries or more).
    `shared` [systems, systems] is on how many sampled units two systems differ; `identical` tells
    that they return the same everywhere. `labels` is how many units people decided, of `units`;
    `without_grades` how many people alone would have needed for the same standard errors of pairs
    (None: not known). `said` are sentences about it all.
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
    without_grades: float | None
    settings: CorrectionSettings
    judged: JudgedSample
    source: str = ""

    @property
    def shown(self) -> Estimator:
        """The corrected scores in the scope asked for."""
        return self.corrected[self.settings.over]

    @property
    def outside(self) -> int:
        """How many systems have a score by the grades that is outside their interval."""
        return int((np.abs(self.graded - self.shown.scores) > self.shown.half).sum())

    def figure(self) -> Figure:
        """The three ways side by side, with the intervals of the corrected scores."""
        from exampp.analysis.corrected_tables import drawn

        return drawn(self)

    def tables(self) -> dict[str, Table]:
        """`scores`: a row a system, with the three ways side by side."""
        from exampp.analysis.corrected_tables import leaderboard_table

        return {"scores": leaderboard_table(self)}

    def compared(self) -> Table:
        """A row a pair of systems, with the intervals of the scope asked for."""
        from exampp.analysis.corrected_tables import compared_table

        return compared_table(self)

    def records(self) -> dict[str, Table]:
        """`scores`, a row a system and scope; `pairs`, a row a pair and scope."""
        from exampp.analysis.corrected_tables import pairs_table, scores_table

        return {"scores": scores_table(self), "pairs": pairs_table(self)}


def correct(
    population: Population,
    judged: JudgedSample,
    settings: CorrectionSettings,
    *,
    min_rating: int,
    systems: Sequence[str] = (),
    source: str = "",
) -> Corrected:
    """The corrected leaderboard of a population of which a sample is judged.

    `systems` are those to be compared, by default all. `source` says whose grades these are.

    Raises:
        InputError: Intervals over queries are asked for, and there is one query.
    """
    rows = population.of(tuple(systems) or population.systems)
    sample, groups = judged.sample, population.groups
    if settings.over == "queries" and len(population.query_ids) < 2:
        raise InputError(
            "there is one query, and nothing to be said of queries like it",
            mend="Leave out --over queries: intervals over its pool can be had",
        )
    at = _per_system(population.coefficients, rows)
    graded = _per_system(population.graded, rows)
    labels = _per_system(judged.labels, rows)

    def scored(predicted: Floats) -> Totals:
        count = len(population.query_ids)
        return totals(at, predicted, sample, labels, groups, count)

    found = scored(_predicted(population, judged, settings, rows))
    alone = scored(np.zeros_like(graded))
    order = np.lexsort(
        ([population.systems[row] for row in rows], -np.round(found.scores, DECIMALS))
    )
    rows, at, graded, labels = rows[order], at[order], _taken(graded, order), _taken(labels, order)
    found, alone = _ordered(found, order), _ordered(alone, order)
    evidence = _evidence(population, sample, labels, rows)
    queries = len(population.query_ids)

    def estimated(one: Totals) -> dict[Scope, Estimator]:
        found: dict[Scope, Estimator] = {"pool": _of_pool(one, sample.pi, evidence, settings)}
        if queries > 1:
            found["queries"] = _of_queries(one, evidence, settings)
        return found

    corrected, people = estimated(found), estimated(alone)
    return Corrected(
        measure=str(population.measure),
        min_rating=min_rating,
        systems=tuple(population.systems[row] for row in rows),
        queries=queries,
        units=len(population.names),
        labels=len(sample.places),
        unit=population.unit,
        graded=(at * graded).sum(axis=1),
        corrected=corrected,
        people=people,
        shared=evidence.shared,
        identical=evidence.identical,
        without_grades=_without_grades(
            corrected["pool"], people["pool"], len(sample.places), len(population.names)
        ),
        settings=settings,
        judged=replace(judged, notes=(*population.notes, *judged.notes)),
        source=source,
    )


def _per_system(values: Floats, rows: NDArray[np.intp]) -> Floats:
    return values[rows] if values.ndim > 1 else values


_taken = _per_system


def _ordered(one: Totals, order: NDArray[np.intp]) -> Totals:
    return Totals(
        one.scores[order],
        one.covariance[np.ix_(order, order)],
        one.residuals[order],
        one.parts[order],
    )


def _predicted(
    population: Population,
    judged: JudgedSample,
    settings: CorrectionSettings,
    rows: NDArray[np.intp],
) -> Floats:
    """What grades predict, learnt from the labels of all systems; [units] or [systems, units]."""
    if settings.predictor == "calibrated":
        fold = folds(judged.fold_seed, population.names)
        found = calibrated(population.bins, fold, judged.sample, judged.labels)
    elif settings.predictor == "ppi":
        found = tuned(population.graded, judged.sample, judged.labels) * population.graded
    else:
        found = population.graded
    return _per_system(found, rows)


class _Evidence(NamedTuple):
    """What the sample can tell of systems and of pairs of them.

    `own` [n] drawn units that count for a system, `sure` [n] whether all of its units are
    certain; `shared` and `exact` [n, n] the same of the units on which two systems differ: those
    whose `kinds` [n, drawn] differ; `identical` [n, n] that they return the same lists.
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
    """Of passages systems differ where one counts them more than the other.

    Of items they do where people or grades say that they are covered otherwise; what nobody looked
    at may differ, too. What was drawn with certainty tells nothing of the rest, and is not counted.
    """
    n, at = len(rows), sample.places
    certain = sample.pi >= 1
    whole = population.coefficients[rows]
    own = (whole[:, at] > 0)[:, ~certain].sum(axis=1)
    sure = (whole > 0).sum(axis=1) == (whole[:, at] > 0)[:, certain].sum(axis=1)
    lists = population.lists[rows]
    identical = (lists[:, None, :] == lists[None, :, :]).all(axis=2)
    shared, exact = np.zeros((n, n), np.int64), np.zeros((n, n), np.bool_)
    of_items = population.unit == "item"
    kinds = population.graded[rows][:, at] * 2 + labels if of_items else whole[:, at]
    for row in range(n):
        apart = kinds != kinds[row]
        shared[row] = apart[:, ~certain].sum(axis=1)
        known = apart[:, certain].sum(axis=1)
        exact[row] = sure.all() if of_items else (whole != whole[row]).sum(axis=1) == known
    return _Evidence(own.astype(np.int64), sure, kinds, shared, exact, identical)


def _of_pool(
    one: Totals, pi: Floats, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Scores and tests over these queries and this pool: what varies is who is in the sample.

    Where labels show no spread at all, that is no evidence of certainty either: there is no
    interval unless every unit that counts was drawn with certainty.
    """
    spread = np.diag(one.covariance)
    errors = np.sqrt(np.maximum(spread, 0.0))
    half = student_reach(settings.level, np.maximum(evidence.own - 1.0, 1.0)) * errors
    half[_unsure(one, evidence)] = np.nan
    tests = pair_tests(
        one.scores,
        one.covariance,
        evidence.identical | evidence.exact | _telling(one, evidence),
        evidence.shared.astype(np.float64) - 1,
        Resampling(
            one.residuals * pi, pi, evidence.kinds, FEWEST_DRAWN_ANEW, settings.draws, settings.seed
        ),
        level=settings.level,
    )
    return Estimator(one.scores, errors, half, tests)


def _of_queries(one: Totals, evidence: _Evidence, settings: CorrectionSettings) -> Estimator:
    """Scores and tests over queries like these: the draw of the sample and of the queries.

    A score is the mean over queries, of which each has a value of their number times its part.
    """
    queries = one.parts.shape[1]
    values = one.parts * queries
    covariance = np.atleast_2d(np.cov(values)) / queries
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    freedom = np.full(errors.shape, queries - 1.0)
    half = student_reach(settings.level, freedom) * errors
    # queries that all give the same tell nothing of others, were they judged to the end
    half[_unsure(one, evidence) | (errors <= _EQUAL) | (queries < FEWEST_QUERIES)] = np.nan
    kinds = np.round(values, DECIMALS)
    apart = np.array([(kinds != row).sum(axis=1) for row in kinds])
    seen = (evidence.exact | _telling(one, evidence)) & (apart >= FEWEST_QUERIES_APART)
    tests = pair_tests(
        one.scores,
        covariance,
        evidence.identical | seen,
        np.broadcast_to(freedom, covariance.shape),
        Resampling(values, None, kinds, FEWEST_QUERIES_APART, settings.draws, settings.seed),
        level=settings.level,
    )
    return Estimator(one.scores, errors, half, tests)


def _unsure(one: Totals, evidence: _Evidence) -> Bools:
    """Whose score has no interval: too few drawn units count for it, or they show no spread."""
    few = (evidence.own < FEWEST_OF_SYSTEM) | (np.diag(one.covariance) <= 1e-18)
    return few & ~evidence.sure


def _telling(one: Totals, evidence: _Evidence) -> Bools:
    """Which pairs enough drawn units tell apart, with some spread."""
    spread = np.diag(one.covariance)
    both = spread[:, None] + spread[None, :]
    return (both - 2 * one.covariance > 1e-14 * both) & (evidence.shared >= FEWEST_UNITS)


def _without_grades(one: Estimator, alone: Estimator, labels: int, units: int) -> float | None:
    """How many labels of people alone have the same mean squared error of pairs.

    By V(n) proportional to 1/n - 1/N, as in simple random sampling.
    """
    upper = np.triu(one.pairs.resolved & (alone.pairs.errors > 0), 1)
    if not upper.any() or not 0 < labels < units:
        return None
    ratio = float((one.pairs.errors[upper] ** 2).mean() / (alone.pairs.errors[upper] ** 2).mean())
    return 1 / (1 / units + (1 / labels - 1 / units) * ratio)
