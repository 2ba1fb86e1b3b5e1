"""Leaderboards that people's sample makes true: the grades corrected by a sample of verdicts.

The score of a system is that which the leaderboard would have if people had decided every unit of
the pool. Grades say what is to be expected of each unit, people what is so of a sample that was
drawn with known probabilities; see `stats.difference`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.corrected_records import (
    FEWEST_OF_SYSTEM,
    FEWEST_QUERIES_APART,
    FEWEST_UNITS,
    Bools,
    CorrectionSettings,
    Estimator,
    Floats,
    JudgedSample,
    Scope,
)
from exampp.analysis.corrected_tables import Corrected
from exampp.errors import InputError
from exampp.evaluate.population import Population
from exampp.stats.difference import (
    Drawn,
    Sample,
    ScoreLimits,
    Totals,
    calibrated,
    drawn_units,
    pool_limits,
    query_limits,
    totals,
    tuned,
)
from exampp.stats.means import FEWEST_QUERIES
from exampp.stats.rank_sets import DECIMALS, Resampling, pair_tests
from exampp.stats.sampling import folds

FEWEST_DRAWN_ANEW = 18
"""`FEWEST_UNITS` of samples drawn anew: with 20 all pairs held in .92 where few tell, 15 in .98."""

_EQUAL = 1e-12
"""What is nearer is the same but for rounding."""


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

    predicted = _predicted(population, judged, settings, rows)
    found, alone = scored(predicted), scored(np.zeros_like(graded))
    order = np.lexsort(
        ([population.systems[row] for row in rows], -np.round(found.scores, DECIMALS))
    )
    rows, at, graded, labels = (
        rows[order],
        at[order],
        _per_system(graded, order),
        _per_system(labels, order),
    )
    predicted = _per_system(predicted, order)
    found, alone = _ordered(found, order), _ordered(alone, order)
    evidence = _evidence(population, sample, labels, rows)
    queries = len(population.query_ids)

    def estimated(one: Totals, by: Floats) -> dict[Scope, Estimator]:
        drawn = drawn_units(at, by, sample)
        found: dict[Scope, Estimator] = {
            "pool": _of_pool(one, sample.pi, drawn, evidence, settings)
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
    one: Totals, pi: Floats, drawn: Drawn, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Scores and tests over these queries and this pool: what varies is who is in the sample.

    Where labels show no spread at all, that is no evidence of certainty either: there is no
    interval unless every unit that counts was drawn with certainty.
    """
    spread = np.diag(one.covariance)
    errors = np.sqrt(np.maximum(spread, 0.0))
    limits = pool_limits(one, pi, drawn, settings.level)
    unsure = _unsure(one, evidence)
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
    return Estimator(one.scores, errors, *_where_sure(limits, unsure), tests)


def _where_sure(limits: ScoreLimits, unsure: Bools) -> ScoreLimits:
    """The limits within 0 and 1; NaN for the systems whose score has no interval."""
    return ScoreLimits(*(np.where(unsure, np.nan, np.clip(end, 0.0, 1.0)) for end in limits))


def _of_queries(
    one: Totals, drawn: Drawn, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Scores and tests over queries like these: the draw of the sample and of the queries.

    A score is the mean over queries, of which each has a value of their number times its part.
    """
    queries = one.parts.shape[1]
    values = one.parts * queries
    covariance = np.atleast_2d(np.cov(values)) / queries
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    freedom = np.full(errors.shape, queries - 1.0)
    limits = query_limits(one, drawn, settings.level)
    # queries that all give the same tell nothing of others, were they judged to the end
    unsure = _unsure(one, evidence) | (errors <= _EQUAL) | (queries < FEWEST_QUERIES)
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
    return Estimator(one.scores, errors, *_where_sure(limits, unsure), tests)


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
