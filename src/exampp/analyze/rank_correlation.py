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

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

TIE_TOLERANCE = 1e-10
"""Relative to the largest score: above the rounding of sums, below any difference that matters."""

_PAIRS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation, or None and the reason why it is undefined."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Correlations:
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
    return _one(spearman_rows, x, y)


def kendall(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Kendall's tau-b of two aligned sequences."""
    return _one(kendall_rows, x, y)


def spearman_rows(x: ArrayLike, y: ArrayLike) -> Correlations:
    """Spearman's rho row by row; x and y are [samples, n], or [n] to go with every row.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = (average_ranks(side) for side in _rows(x, y))
    middle = (a.shape[1] + 1) / 2
    a, b = a - middle, b - middle
    return _quotient((a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1))


def kendall_rows(x: ArrayLike, y: ArrayLike) -> Correlations:
    """Kendall's tau-b row by row; x and y are [samples, n], or [n] to go with every row.

    All pairs are compared: meant for up to some thousand values a row.

    Raises:
        ValueError: The shapes do not fit.
    """
    a, b = _rows(x, y)
    pairs = np.triu_indices(a.shape[1], 1)
    samples = max(len(a), len(b)) if len(a) and len(b) else 0
    step = max(1, _PAIRS_AT_ONCE // max(1, len(pairs[0])))
    concordance = np.zeros((3, samples))
    for start in range(0, samples, step):
        here = slice(start, start + step)
        signs_a, signs_b = (
            _signs(side if len(side) == 1 else side[here], pairs) for side in (a, b)
        )
        concordance[0, here] = (signs_a * signs_b).sum(axis=1, dtype=np.int64)
        concordance[1, here] = np.abs(signs_a).sum(axis=1, dtype=np.int64)
        concordance[2, here] = np.abs(signs_b).sum(axis=1, dtype=np.int64)
    return _quotient(*concordance)


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1 within every row of [samples, n], ties sharing the mean of their ranks."""
    table = np.asarray(values, np.float64)
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    samples, n = table.shape
    places = np.broadcast_to(np.arange(n), (samples, n))
    begins = np.ones((samples, n), np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.ones((samples, n), np.bool_)
    ends[:, :-1] = begins[:, 1:]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, places, n)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty((samples, n))
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def settle_ties(values: ArrayLike, tolerance: float = TIE_TOLERANCE) -> Floats:
    """Make values equal that differ by no more than rounding, row by row of [samples, n].

    In ascending order, a value no further from the one before than `tolerance` times the largest
    magnitude of its row takes the value of the first of such a group. NaN stays.
    """
    table = np.asarray(values, np.float64)
    if table.shape[1] == 0:
        return table
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    finite = np.where(np.isfinite(table), np.abs(table), 0)
    slack = tolerance * finite.max(axis=1, keepdims=True)
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


def _one(
    rows: Callable[[ArrayLike, ArrayLike], Correlations], x: ArrayLike, y: ArrayLike
) -> Correlation:
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


def _rows(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = (np.atleast_2d(np.asarray(side, np.float64)) for side in (x, y))
    if (
        a.shape[1:] != b.shape[1:]
        or a.ndim != 2
        or (len(a) != len(b) and 1 not in (len(a), len(b)))
    ):
        raise ValueError(f"rows of {a.shape} and {b.shape} cannot be compared")
    return a, b


def _signs(rows: Floats, pairs: tuple[NDArray[np.intp], ...]) -> NDArray[np.int8]:
    """Which of each pair is larger: -1, 0, 1; by comparison, as infinities have no difference."""
    first, second = rows[:, pairs[0]], rows[:, pairs[1]]
    return (first > second).astype(np.int8) - (first < second).astype(np.int8)


def _quotient(together: Floats, own_a: Floats, own_b: Floats) -> Correlations:
    size = np.sqrt(own_a * own_b)
    together, size = np.broadcast_arrays(together, size)
    defined = size > 0
    values = np.divide(together, size, out=np.zeros(size.shape), where=defined)
    # Rounding may carry a perfect correlation past 1 by its last digit.
    return Correlations(np.clip(values, -1, 1), defined)
