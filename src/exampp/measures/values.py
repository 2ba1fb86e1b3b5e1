"""Values per query, which of them count, and their mean or total with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Mean(NamedTuple):
    """A mean over queries: None where no query counts; a single one has no standard error.

    Of counts, such as NumRel, it is the total (see `Values`).
    """

    mean: float | None
    stderr: float | None
    queries: int


def error_bar(mean: Mean, *, share: bool) -> tuple[float | None, float | None]:
    """One standard error to both sides; of a `share` it ends at 0 and 1."""
    if mean.mean is None or mean.stderr is None:
        return None, None
    low, high = mean.mean - mean.stderr, mean.mean + mean.stderr
    return (max(0.0, low), min(1.0, high)) if share else (low, high)


@dataclass(frozen=True, slots=True)
class Values:
    """One measure: `values` is systems x queries, `counts` tells which of them have a meaning.

    Where `counts` is False the value is 0 and enters no mean; there is no NaN. What is `added` up
    over queries, as trec_eval adds up what it counts, has a total in place of a mean.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.bool_]
    added: bool = False

    def means(self) -> tuple[Mean, ...]:
        """One mean per system, or the total of what is added up, each with its standard error."""
        if not self.added:
            return self.averages()
        return tuple(
            mean._replace(mean=math.fsum(row.tolist()), stderr=_times(mean.stderr, mean.queries))
            if mean.queries
            else mean
            for row, mean in zip(self.values, self.averages(), strict=True)
        )

    def averages(self) -> tuple[Mean, ...]:
        """One mean per system; the standard error is the sample's (n - 1) over sqrt(n)."""
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


def _times(stderr: float | None, queries: int) -> float | None:
    return None if stderr is None else stderr * queries


def mean_of(values: NDArray[np.float64]) -> Mean:
    """Mean and standard error of the values of one system."""
    n = len(values)
    if n == 0:
        return Mean(None, None, 0)
    # Summed exactly, so that the order of the queries breaks no tie between systems.
    mean = math.fsum(values.tolist()) / n
    if n == 1:
        return Mean(mean, None, 1)
    return Mean(mean, float(values.std(ddof=1)) / float(np.sqrt(n)), n)


def masked(
    values: NDArray[np.float64], counts: NDArray[np.bool_], *, added: bool = False
) -> Values:
    """Values with 0 wherever they do not count."""
    return Values(np.where(counts, values, 0.0), counts, added)


def ratio(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(numerator / denominator, where it is defined); broadcasts, 0 where the denominator is 0.

    At most 1: sums of weights may differ in their last digit by the order of summation.
    """
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    defined = np.empty(quotient.shape, np.bool_)
    np.greater(denominator, 0, out=defined)
    np.divide(numerator, denominator, out=quotient, where=defined)
    return np.minimum(quotient, 1.0, out=quotient), defined
