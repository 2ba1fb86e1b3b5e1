"""Columns of a leaderboard: values per query, which of them count, and their means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.measures.names import Measure, heading
from exampp.stats.estimate import Estimate

if TYPE_CHECKING:
    from exampp.results.plots.figure import Spread


TIE_DECIMALS = 10
"""Means that are equal in this many decimals are tied: the last digit of a sum ranks no system."""


class Mean(NamedTuple):
    """A mean over queries: None if no query counts; a mean of one query has no standard error.

    For counts, such as NumRel, it is the total (see `Values`).
    """

    mean: float | None
    stderr: float | None
    queries: int


def spread_of(system: str, mean: Mean, *, share: bool) -> Spread:
    """Return a mean of a system with one standard error on both sides, for plots."""
    from exampp.results.plots.figure import Spread

    return Spread(system, mean.mean, *standard_error_bar(mean, share=share))


def standard_error_bar(mean: Mean, *, share: bool) -> tuple[float | None, float | None]:
    """Return an error bar of one standard error on both sides; for a `share` within 0 and 1."""
    if mean.mean is None or mean.stderr is None:
        return None, None
    low, high = mean.mean - mean.stderr, mean.mean + mean.stderr
    return (max(0.0, low), min(1.0, high)) if share else (low, high)


@dataclass(frozen=True, slots=True)
class Values:
    """One measure: `values` is systems x queries, `counts` marks the values that count.

    If `counts` is False the value is 0 and enters no mean; there is no NaN. Measures that are
    `added` have a total instead of a mean, as in trec_eval; a `clipped` mean is at least 0.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.bool_]
    added: bool = False
    clipped: bool = False

    def means(self) -> tuple[Mean, ...]:
        """Return one mean per system, or the total for counts, each with its standard error."""
        if not self.added:
            return self.averages()
        return tuple(
            mean._replace(
                mean=math.fsum(row.tolist()), stderr=mean.stderr and mean.stderr * mean.queries
            )
            if mean.queries
            else mean
            for row, mean in zip(self.values, self.averages(), strict=True)
        )

    def clip(self, mean: float | None) -> float | None:
        """Return a mean over queries, or 0 if it is below and the measure is `clipped`."""
        return max(0.0, mean) if mean is not None and self.clipped else mean

    def clip_estimate(self, one: Estimate) -> Estimate:
        """Return a mean over queries and its interval, each 0 where they are clipped."""
        value, low, high = map(self.clip, (one.value, one.low, one.high))
        return replace(one, value=value, low=low, high=high)

    def averages(self) -> tuple[Mean, ...]:
        """Return one mean per system; the standard error is the sample's (n - 1) over sqrt(n)."""
        return tuple(one._replace(mean=self.clip(one.mean)) for one in self._averages())

    def _averages(self) -> tuple[Mean, ...]:
        queries = self.values.shape[1]
        if queries < 2 or not self.counts.all():
            rows = zip(self.values, self.counts, strict=True)
            return tuple(mean_of(row[use]) for row, use in rows)
        deviations = np.ascontiguousarray(self.values).std(axis=1, ddof=1)
        errors = (deviations / math.sqrt(queries)).tolist()
        return tuple(
            Mean(math.fsum(row) / queries, error, queries)
            for row, error in zip(self.values.tolist(), errors, strict=True)
        )


def mean_of(values: NDArray[np.float64]) -> Mean:
    """Return mean and standard error of the values of one system."""
    n = len(values)
    if n == 0:
        return Mean(None, None, 0)
    # Summed exactly, so that the order of the queries breaks no tie between systems.
    mean = math.fsum(values.tolist()) / n
    if n == 1:
        return Mean(mean, None, 1)
    return Mean(mean, float(values.std(ddof=1)) / float(np.sqrt(n)), n)


def best_first(systems: Sequence[str], means: Sequence[Mean]) -> list[int]:
    """Return the indices of the systems from best to worst; undefined ones last, ties by name."""

    def key(at: int) -> tuple[bool, float, str]:
        mean = means[at].mean
        return mean is None, -round(mean or 0.0, TIE_DECIMALS), systems[at]

    return sorted(range(len(systems)), key=key)


def tied_ranks(means: Sequence[float | None]) -> list[int | None]:
    """Return ranks from 1 for the highest mean; equal means share a rank, None has none."""
    rounded = [None if one is None else round(one, TIE_DECIMALS) for one in means]
    first: dict[float, int] = {}
    for rank, one in enumerate(sorted((m for m in rounded if m is not None), reverse=True), 1):
        first.setdefault(one, rank)
    return [None if one is None else first[one] for one in rounded]


def masked(
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    *,
    added: bool = False,
    clipped: bool = False,
) -> Values:
    """Return the values with 0 wherever they do not count."""
    return Values(np.where(counts, values, 0.0), counts, added, clipped)


def ratio(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return numerator / denominator and where it is defined; broadcasts, 0 elsewhere.

    At most 1: sums of weights may differ in their last digit by the order of summation.
    """
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    defined = np.empty(quotient.shape, np.bool_)
    np.greater(denominator, 0, out=defined)
    np.divide(numerator, denominator, out=quotient, where=defined)
    return np.minimum(quotient, 1.0, out=quotient), defined


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """One measure at one threshold: values per system (in the gradebook's order) and query.

    Attributes:
        min_rating: None if the measure does not depend on it.
        ungraded: Per system, the share of ungraded passages among those that the measure reads.
        missing_cells: Per system, the share of missing cells (Cover, nCover and nugget scores).
        low: Lower bounds over all possible missing grades.
        high: Upper bounds over all possible missing grades.
        overall: Values of the whole pool as one system.
        overall_shares: Its shares of ungraded passages and missing cells.
        chance: Chance level of Cover (see `chance_floor`).
        corrected: Cover corrected for skipped cells, by system; empty if not corrected.
        without_relevant: Number of queries without a relevant passage.
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
    corrected: tuple[Estimate, ...] = ()
    without_relevant: int = 0

    def spreads(self, systems: Sequence[str]) -> list[Spread]:
        """Return mean and one standard error of every system; `systems` name the rows."""
        share = self.measure.kind.share
        means = zip(systems, self.values.means(), strict=True)
        return [spread_of(system, mean, share=share) for system, mean in means]

    @property
    def name(self) -> str:
        """The measure, and the threshold if it depends on one."""
        return heading(str(self.measure), self.min_rating)

    def bounds(self) -> list[tuple[float, float] | None]:
        """Return per system the lowest and highest possible mean; None where it is not bounded."""
        if self.low is None or self.high is None:
            return [None] * len(self.values.means())
        ends = zip(self.low.means(), self.high.means(), strict=True)
        return [
            None if low.mean is None or high.mean is None else (low.mean, high.mean)
            for low, high in ends
        ]

    def possible_ranks(self) -> list[tuple[int, int]] | None:
        """Return per system its best and worst rank over all possible missing grades.

        Equal scores share the better rank. None if missing grades have no bounds.
        """
        bounds = self.bounds()
        ends = [one for one in bounds if one is not None]
        if len(ends) < len(bounds) or not ends:
            return None
        return [
            (1 + sum(other > high for other, _ in ends), sum(other >= low for _, other in ends))
            for low, high in ends
        ]

    def of_pool(self) -> MeasureColumn | None:
        """Return the same measure with the whole pool as its only system; None without a pool."""
        if self.overall is None:
            return None
        ungraded, missing_cells = self.overall_shares
        return replace(
            self,
            values=self.overall,
            ungraded=(ungraded,),
            missing_cells=(missing_cells,),
            low=None,
            high=None,
            corrected=(),
        )

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The smallest and largest possible value of a query; None where unknown."""
        return (0.0, 1.0) if self.measure.kind.share else None

    @property
    def difference_range(self) -> tuple[float, float] | None:
        """The smallest and largest possible difference of two systems on a query."""
        return (-1.0, 1.0) if self.measure.kind.share else None


@dataclass(frozen=True, slots=True)
class MeasuredSystems:
    """Columns that were computed together, with their queries.

    `left_out` are the queries that never count, because they have no items or no labelled passage.
    `unanswered` is per system the number of queries without a passage of it, including
    `answered_by_none`, the queries without a passage of any system.
    """

    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    columns: tuple[MeasureColumn, ...]
    left_out: tuple[str, ...]
    unanswered: tuple[int, ...]
    answered_by_none: tuple[str, ...]

    def of(self, name: str) -> tuple[MeasureColumn, ...]:
        """Return the columns of a family of measures, such as Cover, threshold by threshold."""
        return tuple(column for column in self.columns if column.measure.name == name)


def answered_by_none(query_ids: Sequence[str], answered: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the queries that no system answers, if there are systems; `answered` is by system."""
    if not len(answered):
        return ()
    return tuple(query_ids[index] for index in np.flatnonzero(~answered.any(axis=0)).tolist())
