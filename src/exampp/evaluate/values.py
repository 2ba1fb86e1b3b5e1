"""Values per query, which of them count, and their mean and standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Mean(NamedTuple):
    """A mean over queries: None where no query counts; a single one has no standard error."""

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

    Where `counts` is False the value is 0 and enters no mean; there is no NaN.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.bool_]

    def means(self) -> tuple[Mean, ...]:
        """One mean per system; the standard error is the sample's (n - 1) over sqrt(n)."""
        return tuple(mean_of(row[use]) for row, use in zip(self.values, self.counts, strict=True))


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


def masked(values: NDArray[np.float64], counts: NDArray[np.bool_]) -> Values:
    """Values with 0 wherever they do not count."""
    return Values(np.where(counts, values, 0.0), counts)


def ratio(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(numerator / denominator, where it is defined); broadcasts, 0 where the denominator is 0.

    At most 1: sums of weights may differ in their last digit by the order of summation.
    """
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    defined = denominator > 0
    quotient = np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=defined)
    return np.minimum(quotient, 1.0), defined
