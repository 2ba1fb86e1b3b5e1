"""Rank correlation of two leaderboards: Spearman's rho and Kendall's tau-b.

Ties get average ranks (Spearman) and are taken out of the pairs (tau-b). Both are undefined where
one side has all values equal. The `_rows` functions do many samples at once, for resampling.

Means over queries are often equal in truth (P@20 is a multiple of 1/20) but differ in their last
digit as computed, by the order of summation. Ranking them as they are would break such ties at
random: Kendall's tau of P@20 moves by 0.01 on TREC DL 2019. `settle_ties` makes them equal again.

Sources: Spearman 1904; Kendall 1945 (tau-b).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIE_TOLERANCE = 1e-10
"""Relative to the largest score: above the rounding of sums, below any difference that matters."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation, or None and the reason why it is undefined."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CorrelationRows:
    """One correlation per row; `values` is 0 where `defined` is False."""

    values: Floats
    defined: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """How far two leaderboards agree on the `systems` that both have, and who is only in one."""

    spearman: Correlation
    kendall: Correlation
    systems: int
    only_in_scores: tuple[str, ...]
    only_in_official: tuple[str, ...]


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Spearman's rho of two aligned sequences."""
    return one_row(spearman_rows, x, y)


def kendall(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Kendall's tau-b of two aligned sequences."""
    return one_row(kendall_rows, x, y)


def spearman_rows(x: ArrayLike, y: ArrayLike) -> CorrelationRows:
    """Spearman's rho row by row; x and y are [samples, n], or [n] to go with every row.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = (average_ranks(side) for side in paired_rows(x, y))
    middle = (a.shape[1] + 1) / 2
    a, b = a - middle, b - middle
    return _quotient((a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1))


def kendall_rows(x: ArrayLike, y: ArrayLike) -> CorrelationRows:
    """Kendall's tau-b row by row; x and y are [samples, n], or [n] to go with every row.

    All pairs are compared: meant for up to some thousand values a row.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = (places(side) for side in paired_rows(x, y))
    together = agreement_above(a, b).sum(axis=1).astype(np.float64)
    return _quotient(together, _untied_pairs(a), _untied_pairs(b))


class RankPlaces(NamedTuple):
    """Where every value stands within its row, both [samples, n]."""

    below: Ints
    """How many values are smaller."""
    size: Ints
    """How many values are equal, itself among them."""


def places(values: ArrayLike) -> RankPlaces:
    """Where every value stands within its row of [samples, n]."""
    table = np.asarray(values, np.float64)
    samples, n = table.shape
    order = np.argsort(table, axis=1) + n * np.arange(samples)[:, np.newaxis]
    ordered = table.ravel()[order]
    begins = np.ones(table.shape, np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # the groups of equal values of all rows, end to end
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=table.size)
    below, size = np.empty(table.size, np.int64), np.empty(table.size, np.int64)
    below[order.ravel()] = np.repeat(starts % max(1, n), sizes)
    size[order.ravel()] = np.repeat(sizes, sizes)
    return RankPlaces(below.reshape(table.shape), size.reshape(table.shape))


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1 within every row of [samples, n], ties sharing the mean of their ranks."""
    found = places(values)
    return found.below + (found.size + 1) / 2


def agreement_above(x: RankPlaces, y: RankPlaces) -> NDArray[np.int32]:
    """For every value, those above it in y: how many are above it in x too, less those below.

    [samples, n]; values tied with it in x or in y count nothing. Its sum over a row is the number
    of concordant pairs less that of discordant ones.
    """
    # the numbers of smaller values order a row as its values do, in fewer bytes
    n = x.below.shape[1]
    narrow = np.int16 if n < 2**15 else np.int32
    # one column a sample, so that what is compared at once lies together in memory
    a, b = (np.ascontiguousarray(side.below.T.astype(narrow)) for side in (x, y))
    found = np.zeros((n, max(a.shape[1], b.shape[1])), np.int32)
    for apart in range(1, n):
        later_a, earlier_a = a[apart:], a[:-apart]
        later_b, earlier_b = b[apart:], b[:-apart]
        side = _less(later_a, earlier_a) - _less(earlier_a, later_a)
        found[apart:] += side * _less(later_b, earlier_b)
        found[:-apart] -= side * _less(earlier_b, later_b)
    return found.T


def settle_ties(values: ArrayLike, tolerance: float = TIE_TOLERANCE) -> Floats:
    """Make values equal that differ by no more than rounding, row by row of [samples, n].

    In ascending order, a value no further from the one before than `tolerance` times the largest
    magnitude of its row takes the value of the first of such a group. NaN stays.
    """
    table = np.asarray(values, np.float64)
    if table.shape[1] == 0:
        return table
    finite = np.where(np.isfinite(table), np.abs(table), 0)
    slack = tolerance * finite.max(axis=1, keepdims=True)
    ordered = np.sort(table, axis=1)
    with np.errstate(invalid="ignore"):
        gaps = ordered[:, 1:] - ordered[:, :-1]
    # few rows have values that nearly are equal
    rows = ((gaps <= slack) & (gaps > 0)).any(axis=1)
    settled = table.copy()
    if rows.any():
        settled[rows] = _settled(table[rows], slack[rows])
    return settled


def _settled(table: Floats, slack: Floats) -> Floats:
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    begins = np.ones(table.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        begins[:, 1:] = ~(ordered[:, 1:] - ordered[:, :-1] <= slack)
    first = np.maximum.accumulate(np.where(begins, np.arange(table.shape[1]), 0), axis=1)
    settled = np.empty(table.shape)
    np.put_along_axis(settled, order, np.take_along_axis(ordered, first, axis=1), axis=1)
    return settled


def correlate(
    scores: Mapping[str, float],
    official_ranks: Mapping[str, float],
    *,
    tolerance: float = TIE_TOLERANCE,
) -> RankCorrelation:
    """Correlate scores (higher is better) with official ranks (1 is best), by system.

    Ranks may be tied or fractional. Scores that differ by no more than rounding are tied (see
    `settle_ties`; a tolerance of 0 takes them as they are). A positive correlation is agreement.
    """
    both = [system for system in scores if system in official_ranks]
    x = settle_ties([[scores[system] for system in both]], tolerance)[0]
    y = [-official_ranks[system] for system in both]
    return RankCorrelation(
        spearman=spearman(x, y),
        kendall=kendall(x, y),
        systems=len(both),
        only_in_scores=tuple(system for system in scores if system not in official_ranks),
        only_in_official=tuple(system for system in official_ranks if system not in scores),
    )


def printed(values: ArrayLike, decimals: int) -> Floats:
    """Values as they are printed with so many decimals: trec_eval prints 4, which ties some."""
    table = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = table * 10.0**decimals
        whole = np.rint(product)
        # a product near a half, or a large one, may be off by more than what decides
        certain = (np.abs(np.abs(product - whole) - 0.5) > 1e-6) & (np.abs(product) < 2**30)
    rounded: Floats = whole / 10.0**decimals
    # correctly rounded, as printf does it
    rounded[~certain] = [round(value, decimals) for value in table[~certain].tolist()]
    return rounded


def one_row(
    rows: Callable[[ArrayLike, ArrayLike], CorrelationRows], x: ArrayLike, y: ArrayLike
) -> Correlation:
    """One of the `_rows` functions for two sequences, with the reason where it is undefined.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"two sequences of one length are needed, not {a.shape} and {b.shape}")
    if len(a) < 2:
        return Correlation(None, f"fewer than 2 systems to compare ({len(a)})")
    if np.isnan(a).any() or np.isnan(b).any():
        return Correlation(None, "a value is not a number")
    found = rows(a, b)
    if not found.defined[0]:
        return Correlation(None, "all values of one side are equal")
    return Correlation(float(found.values[0]))


def paired_rows(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Both sides as [samples, n]; a single row goes with every row of the other side.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = (np.atleast_2d(np.asarray(side, np.float64)) for side in (x, y))
    if (
        a.shape[1:] != b.shape[1:]
        or a.ndim != 2
        or (len(a) != len(b) and 1 not in (len(a), len(b)))
    ):
        raise ValueError(f"rows of {a.shape} and {b.shape} cannot be compared")
    return a, b


def _less(a: NDArray[np.signedinteger], b: NDArray[np.signedinteger]) -> NDArray[np.int8]:
    return (a < b).view(np.int8)


def _untied_pairs(of: RankPlaces) -> Floats:
    n = of.size.shape[1]
    pairs: Floats = (n * n - of.size.sum(axis=1)) / 2
    return pairs


def _quotient(together: Floats, own_a: Floats, own_b: Floats) -> CorrelationRows:
    size = np.sqrt(own_a * own_b)
    together, size = np.broadcast_arrays(together, size)
    defined = size > 0
    values = np.divide(together, size, out=np.zeros(size.shape), where=defined)
    # Rounding may carry a perfect correlation past 1 by its last digit.
    return CorrelationRows(np.clip(values, -1, 1), defined)
