"""Agreement of raters: Cohen's kappa, weighted kappa, Gwet's AC1, Krippendorff's alpha.

Each of them is 1 - observed / expected disagreement, and undefined where no disagreement is
expected. They are computed for stacks of tables [..., categories, categories], so that leaving out
queries one by one, for intervals, costs one call (see `clustered`).

Categories are in ascending order. Where an order matters they are one step apart from each other.

Sources: Cohen 1960; Cohen 1968 (weights); Gwet 2008 (AC1); Krippendorff 2011, "Computing
Krippendorff's alpha-reliability".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.records.gradebook import MISSING
from exampp.stats.estimate import (
    LEVEL,
    Estimate,
    EstimateRows,
    Floats,
    Indices,
    Ints,
    draw_queries,
    undefined,
)

Weights = Literal["linear", "quadratic"]
Metric = Literal["nominal", "ordinal"]

NOTHING_COMPARED = "both sides rated no common item"
NO_VARIATION = "all ratings of both sides are in one category"
TWO_SCALES = "the two sides have different scales"
ONE_CATEGORY = "there is only one category"


class Disagreement(NamedTuple):
    """Observed and expected disagreement of a stack of tables, in the same unit."""

    observed: Floats
    expected: Floats


Statistic = Callable[[Floats], Disagreement]
"""Takes a stack of tables, rows one rater's categories, columns the other's."""


def confusion(
    rows: ArrayLike,
    columns: ArrayLike,
    row_labels: Sequence[Hashable],
    column_labels: Sequence[Hashable],
) -> Ints:
    """Return the confusion table [row labels, column labels].

    `rows` and `columns` are aligned; pairs with a value outside the labels are not counted.

    Raises:
        ValueError: The lengths differ.
    """
    groups = np.zeros(np.size(rows), np.intp)
    (counts,) = confusions(groups, 1, rows, columns, row_labels, column_labels)
    return np.asarray(counts, np.int64)


def confusions(
    groups: Indices,
    group_count: int,
    rows: ArrayLike,
    columns: ArrayLike,
    row_labels: Sequence[Hashable],
    column_labels: Sequence[Hashable],
) -> Ints:
    """Return `confusion` for every group (query), [groups, row labels, column labels].

    `groups` is aligned with `rows` and counts from 0.

    Raises:
        ValueError: The lengths differ.
    """
    a, b = np.ravel(np.asarray(rows)), np.ravel(np.asarray(columns))
    if not len(a) == len(b) == len(groups):
        raise ValueError(f"{len(a)} rows cannot be compared with {len(b)} columns")
    x, y = _codes(a, row_labels), _codes(b, column_labels)
    known = (x >= 0) & (y >= 0)
    shape = (group_count, len(row_labels), len(column_labels))
    cells = (groups[known] * shape[1] + x[known]) * shape[2] + y[known]
    return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64).reshape(shape)


def cohen_kappa(counts: ArrayLike) -> Estimate:
    """Return Cohen's kappa of a square table of counts; 2 x 2 included."""
    return statistic_of(kappa, counts)


def weighted_kappa(counts: ArrayLike, weights: Weights = "linear") -> Estimate:
    """Return Cohen's weighted kappa, with linear or squared distances."""
    return statistic_of({"linear": linear_kappa, "quadratic": quadratic_kappa}[weights], counts)


def krippendorff_alpha(
    ratings: ArrayLike,
    metric: Metric = "nominal",
    *,
    values: Sequence[int] | None = None,
) -> Estimate:
    """Return Krippendorff's alpha of integers [raters, units]; `MISSING` marks gaps.

    `values` lists the categories (default: those that occur). Units with fewer than two ratings do
    not count.
    """
    table = np.atleast_2d(np.asarray(ratings))
    known = np.unique(table[table != MISSING]).tolist() if values is None else sorted(values)
    together = coincidences(table, known)
    if not together.sum():
        return undefined(NOTHING_COMPARED)
    return _estimate(agreements(coincidence_alpha(metric), together[np.newaxis]))


def coincidences(ratings: ArrayLike, values: Sequence[int]) -> Floats:
    """Return Krippendorff's coincidence matrix [values, values] of ratings [raters, units].

    Each pair of ratings of a unit counts 1 / (ratings of the unit - 1).
    """
    table = np.atleast_2d(np.asarray(ratings))
    size = len(values)
    codes = np.where(table == MISSING, -1, _codes(table, values))
    units = np.broadcast_to(np.arange(table.shape[1]), table.shape)
    cells = (units * size + codes)[codes >= 0]
    counts = np.bincount(cells, minlength=table.shape[1] * size)
    unit_counts = counts.reshape(table.shape[1], size).astype(np.float64)
    raters = unit_counts.sum(axis=1, keepdims=True)
    paired = raters[:, 0] > 1
    unit_counts, raters = unit_counts[paired], raters[paired]
    shares = unit_counts / (raters - 1)
    return np.asarray(shares.T @ unit_counts - np.diag(shares.sum(axis=0)), np.float64)


# ---- statistics of stacks of tables --------------------------------------------------------------


def kappa(tables: Floats) -> Disagreement:
    """Return Cohen's kappa."""
    return _weighted(tables, (_distance(tables) > 0).astype(np.float64))


def linear_kappa(tables: Floats) -> Disagreement:
    """Return Cohen's kappa with disagreement weighted by the distance."""
    return _weighted(tables, _distance(tables))


def quadratic_kappa(tables: Floats) -> Disagreement:
    """Return Cohen's kappa with disagreement weighted by the squared distance."""
    return _weighted(tables, _distance(tables) ** 2)


def ac1(tables: Floats) -> Disagreement:
    """Return Gwet's AC1."""
    total = tables.sum(axis=(-2, -1))
    both = tables.sum(axis=-1) + tables.sum(axis=-2)
    agreed = np.trace(tables, axis1=-2, axis2=-1)
    others = max(1, tables.shape[-1] - 1)
    chance = (both * (2 * total[..., np.newaxis] - both)).sum(axis=-1) / others
    return Disagreement(4 * total * (total - agreed), 4 * total**2 - chance)


def coincidence_alpha(metric: Metric) -> Statistic:
    """Return Krippendorff's alpha of coincidence matrices."""

    def of_coincidences(tables: Floats) -> Disagreement:
        totals = tables.sum(axis=-1)
        places: Floats = np.arange(tables.shape[-1], dtype=np.float64)
        if metric == "ordinal":
            places = np.cumsum(totals, axis=-1) - totals / 2
        apart = places[..., :, np.newaxis] - places[..., np.newaxis, :]
        if metric == "nominal":
            apart = (apart != 0).astype(np.float64)
        expected = totals[..., :, np.newaxis] * totals[..., np.newaxis, :]
        total = totals.sum(axis=-1)
        return Disagreement(
            (total - 1) * (tables * apart**2).sum(axis=(-2, -1)),
            (expected * apart**2).sum(axis=(-2, -1)),
        )

    return of_coincidences


def alpha_of_two(metric: Metric) -> Statistic:
    """Return Krippendorff's alpha of two raters, from their table of counts."""
    statistic = coincidence_alpha(metric)
    return lambda tables: statistic(tables + np.swapaxes(tables, -2, -1))


STATISTICS: Mapping[str, Statistic] = {
    "kappa": kappa,
    "kappa_linear": linear_kappa,
    "kappa_quadratic": quadratic_kappa,
    "alpha": alpha_of_two("nominal"),
    "alpha_ordinal": alpha_of_two("ordinal"),
    "ac1": ac1,
}
"""The statistics of two raters, by name."""


def agreements(statistic: Statistic, tables: Floats) -> EstimateRows:
    """Return a statistic for every table of a stack."""
    observed, expected = statistic(tables)
    defined = expected > 0
    share = np.divide(observed, expected, out=np.ones_like(expected), where=defined)
    return EstimateRows(1 - share, defined)


def statistic_of(statistic: Statistic, counts: ArrayLike) -> Estimate:
    """Return a statistic of one table of counts, with a reason if undefined."""
    table = np.asarray(counts, np.float64)
    reason = why_undefined(table)
    return undefined(reason) if reason else _estimate(agreements(statistic, table[np.newaxis]))


def why_undefined(table: Floats) -> str:
    """Return why the statistics of a table are undefined; "" if they may be defined."""
    if table.shape[0] != table.shape[1]:
        return TWO_SCALES
    if not table.sum():
        return NOTHING_COMPARED
    return ONE_CATEGORY if len(table) == 1 else ""


def _estimate(row: EstimateRows) -> Estimate:
    return Estimate(float(row.values[0])) if row.defined[0] else undefined(NO_VARIATION)


def _weighted(tables: Floats, weights: Floats) -> Disagreement:
    expected = tables.sum(axis=-1)[..., :, np.newaxis] * tables.sum(axis=-2)[..., np.newaxis, :]
    total = tables.sum(axis=(-2, -1))
    return Disagreement(
        total * (weights * tables).sum(axis=(-2, -1)), (weights * expected).sum(axis=(-2, -1))
    )


def _distance(tables: Floats) -> Floats:
    places = np.arange(tables.shape[-1], dtype=np.float64)
    return np.abs(places[:, np.newaxis] - places)


def _codes(values: NDArray[np.generic], labels: Sequence[Hashable]) -> Indices:
    """Return the index of every value in the labels; -1 for other values."""
    if not len(labels):
        return np.full(values.shape, -1, np.intp)
    categories = np.asarray(labels)
    order = np.argsort(categories, kind="stable")
    places = np.searchsorted(categories[order], values).clip(max=len(categories) - 1)
    return np.asarray(np.where(categories[order][places] == values, order[places], -1), np.intp)


ONE_QUERY = "there is only one query"
TOO_FEW_QUERIES = "too few queries differ"
NO_SPREAD = "the value is the same without any one query"
HANGS_ON_ONE = "the value is undefined without one of the queries"

SAMPLES = 1000
_STEP = 1e-5
"""Step of the numerical derivative, relative to the count of a table."""
_ROUNDING = 1e-8
"""Standard errors below this are rounding errors."""


def clustered(tables: ArrayLike, statistic: Statistic, *, samples: int = SAMPLES) -> Estimate:
    """Return a statistic of the summed tables [queries, categories, categories] with its interval.

    Queries without a count do not count. The bounds stay within -1 and 1; an interval that covers
    all of that range is dropped.

    Passages of one query are judged by one person against one text, so they are not an independent
    sample; the queries are. Every statistic is a function of the sum of the queries' tables. Its
    standard error comes from leaving out one query at a time, and the reach of the interval, in
    standard errors, from resampling the queries: the value that |t| stays within in 95 % of the
    resamples (the symmetric bootstrap-t). Student's t in its place covers too rarely, because the
    standard error of a kappa falls with the kappa. Observed coverage:
    `benchmarks/coverage_agreement.py`.

    Sources: Efron and Stein 1981 (jackknife); Hall 1988 (symmetric bootstrap-t).
    """
    stack = np.asarray(tables, np.float64)
    total = stack.sum(axis=0)
    value = statistic_of(statistic, total)
    if value.value is None:
        return value
    stack = stack[stack.sum(axis=(1, 2)) > 0]
    if len(stack) == 1:
        return Estimate(value.value, no_interval=ONE_QUERY)
    without = agreements(statistic, total - stack)
    if not without.defined.all():
        return Estimate(value.value, no_interval=HANGS_ON_ONE)
    error = np.sqrt(np.square(without.values - without.values.mean()).sum() * _share(len(stack)))
    if error < _ROUNDING:
        return Estimate(value.value, no_interval=NO_SPREAD)
    ratios = _resampled_ratios(stack, statistic, value.value, samples)
    reach = float(np.quantile(ratios, LEVEL, method="higher") * error)
    low, high = value.value - reach, value.value + reach
    if low <= -1 and high >= 1:
        return Estimate(value.value, no_interval=TOO_FEW_QUERIES)
    return Estimate(value.value, max(-1.0, low), min(1.0, high))


def _resampled_ratios(stack: Floats, statistic: Statistic, value: float, samples: int) -> Floats:
    """Return |resampled value - value| / its standard error; infinite if undefined."""
    queries, size, _ = stack.shape
    draws, back = _distinct_draws(queries, samples)
    tables = (draws @ stack.reshape(queries, -1)).reshape(-1, size, size)
    values = agreements(statistic, tables)
    influence = _influence(tables, stack, statistic, values)
    errors = np.sqrt((draws * influence**2).sum(axis=1) / _share(queries))
    usable = values.defined & (errors > _ROUNDING)
    apart = np.abs(values.values - value)
    ratios: Floats = np.divide(apart, errors, out=np.full(len(tables), np.inf), where=usable)
    return ratios[back]


def _influence(tables: Floats, stack: Floats, statistic: Statistic, values: EstimateRows) -> Floats:
    """Return the derivative of a statistic by the weight of each query, [tables, queries]."""
    cells = stack.reshape(len(stack), -1)
    counts = cells.sum(axis=1)
    units = np.eye(cells.shape[1])[cells.any(axis=0)]
    # derivatives by query or by non-empty cell, whichever are fewer
    if len(cells) < len(units):
        ways, parts = cells / counts[:, np.newaxis], np.diag(counts)
    else:
        ways, parts = units, cells @ units.T
    slopes = _slopes(tables, ways.reshape(-1, *stack.shape[1:]), statistic, values)
    return np.asarray(slopes @ parts.T, np.float64)


def _slopes(tables: Floats, ways: Floats, statistic: Statistic, values: EstimateRows) -> Floats:
    """Return the derivative of a statistic by the counts of some cells, [tables, cells]."""
    steps = _STEP * tables.sum(axis=(1, 2))
    shifts = steps[:, np.newaxis, np.newaxis, np.newaxis] * ways
    centre = tables[:, np.newaxis]
    above, below = (agreements(statistic, centre + way * shifts).values for way in (1, -1))
    slopes: Floats = (above - below) / (2 * steps[:, np.newaxis])
    slopes[~values.defined] = 0
    return slopes


@functools.lru_cache(maxsize=16)
def _distinct_draws(queries: int, samples: int) -> tuple[Floats, Indices]:
    """Return the distinct resamples, and the index of each sample's resample."""
    draws, back = np.unique(draw_queries(queries, samples), axis=0, return_inverse=True)
    return draws, back.ravel()


def _share(queries: int) -> float:
    return (queries - 1) / queries
