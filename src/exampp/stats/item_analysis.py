"""Classical item analysis: statistics of items over systems, and exams of selected items.

A matrix is systems x items: 1 where a system covers an item, or its credit for it, times the weight
that the item has in the score; the sum of a row is the score of a system. What is undefined has a
mask beside it, never a NaN.

Sources: Cronbach 1951 (alpha); Kuder and Richardson 1937 (formula 20: alpha of 0/1 items);
Henrysson 1963 (the correlation of an item with the rest); Spearman 1910 and Brown 1910 (the
correlation of halves stepped up to the whole); Efron and Stein 1981 (jackknife).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Bools, EstimateRows, Floats
from exampp.stats.rank_correlation import kendall_rows

DECIMALS = 9
"""Scores are rational: rounded to so many decimals, equal ones are equal in any summation order."""
_EQUAL = 1e-12


def ranked(scores: Floats) -> Floats:
    """Return scores for ranking: equal where they differ only by rounding."""
    return np.asarray(np.round(scores, DECIMALS), np.float64)


def is_constant(columns: Floats) -> Bools:
    """Return which columns have one value for all systems."""
    if not len(columns):
        return np.ones(columns.shape[1], np.bool_)
    return np.asarray(np.ptp(columns, axis=0) <= _EQUAL, np.bool_)


def item_total(matrix: Floats) -> EstimateRows:
    """Return Pearson's correlation of every item with the total."""
    return _correlations(matrix, matrix.sum(axis=1, keepdims=True))


def item_rest(matrix: Floats) -> EstimateRows:
    """Return Pearson's correlation of every item with the rest (point-biserial for 0/1).

    Undefined where the item or the rest is the same for all systems, and with fewer than three
    systems, of which any two lie on a line.
    """
    return _correlations(matrix, matrix.sum(axis=1, keepdims=True) - matrix)


def coefficient_alpha(matrix: Floats) -> float | None:
    """Return Cronbach's alpha, which is KR-20 for 0/1 items; constant items count in k.

    None with fewer than two items or systems, or if all totals are equal.
    """
    items = matrix.shape[1]
    total = matrix.sum(axis=1, keepdims=True)
    if items < 2 or len(matrix) < 2 or is_constant(total)[0]:
        return None
    return float(_alpha(items, _variances(matrix).sum(), _variances(total)[0]))


def alpha_if_deleted(matrix: Floats) -> EstimateRows:
    """Return alpha without each item in turn."""
    items = matrix.shape[1]
    rest = matrix.sum(axis=1, keepdims=True) - matrix
    defined = ~is_constant(rest) if items > 2 and len(matrix) > 1 else np.zeros(items, np.bool_)
    alphas = np.zeros(items)
    if defined.any():
        each = _variances(matrix)
        left = each.sum() - each[defined]
        alphas[defined] = _alpha(items - 1, left, _variances(rest)[defined])
    return EstimateRows(alphas, defined)


def alpha_without_each(matrix: Floats) -> tuple[float | None, ...]:
    """Return alpha without each system in turn."""
    return tuple(coefficient_alpha(np.delete(matrix, one, axis=0)) for one in range(len(matrix)))


def jackknife_error(values: Sequence[float]) -> float:
    """Return the standard error of a statistic from its values without each of n systems."""
    each = np.asarray(values, np.float64)
    return float(np.sqrt((len(each) - 1) / len(each) * ((each - each.mean()) ** 2).sum()))


def kept_systems(scores: Floats, drop: float) -> Bools:
    """Return the systems with at least the `drop` quantile of the scores (type 7), with ties."""
    if not len(scores):
        return np.zeros(0, np.bool_)
    rounded = ranked(scores)
    return np.asarray(rounded >= np.quantile(rounded, drop) - _EQUAL, np.bool_)


def _alpha(items: int, single: Floats | float, whole: Floats | float) -> Floats | float:
    return items / (items - 1) * (1 - single / whole)


def _variances(columns: Floats) -> Floats:
    return np.asarray(columns.var(axis=0, ddof=1), np.float64)


def _correlations(columns: Floats, others: Floats) -> EstimateRows:
    items = columns.shape[1]
    defined = ~is_constant(columns) & ~is_constant(others)
    if len(columns) < FEWEST_SYSTEMS:
        defined = np.zeros(items, np.bool_)
    if not defined.any():
        return EstimateRows(np.zeros(items), defined)
    x = columns - columns.mean(axis=0)
    y = others - others.mean(axis=0)
    size = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
    values = np.divide((x * y).sum(axis=0), size, out=np.zeros(items), where=defined)
    values[np.abs(values) < _EQUAL] = 0
    return EstimateRows(np.clip(values, -1, 1), defined)


FEWEST_SYSTEMS = 3
"""Of two systems every correlation is 1 or -1."""


# ---- halves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitHalves:
    """Agreement of random halves of an exam, on average over splits.

    `r` is the correlation of their scores over systems, `whole` that stepped up to the whole exam
    (Spearman-Brown of the mean), `tau` Kendall's tau-b of their leaderboards; `r_error` and
    `tau_error` are the Monte Carlo standard errors. None: undefined in every split.
    """

    r: float | None
    whole: float | None
    tau: float | None
    r_error: float | None
    tau_error: float | None


def draw_item_halves(groups: Sequence[NDArray[np.intp]], splits: int, seed: int) -> Bools:
    """Draw [splits, items]: a random half of each group of items, rounded down, group by group.

    Read-only: equal calls return the same array.
    """
    return _item_halves(tuple(tuple(group.tolist()) for group in groups), splits, seed)


@functools.lru_cache(maxsize=16)
def _item_halves(groups: tuple[tuple[int, ...], ...], splits: int, seed: int) -> Bools:
    rng = np.random.default_rng(seed)
    half = np.zeros((splits, sum(map(len, groups))), np.bool_)
    for split in range(splits):
        for group in filter(None, groups):
            half[split, rng.permutation(group)[: len(group) // 2]] = True
    half.flags.writeable = False
    return half


@functools.lru_cache(maxsize=16)
def draw_query_halves(queries: int, splits: int, seed: int) -> tuple[Bools, Bools]:
    """Draw two [splits, queries]: a random half of the queries, rounded down, and another.

    Read-only: equal calls return the same array.
    """
    rng = np.random.default_rng(seed)
    half = queries // 2
    halves = np.zeros((2, splits, queries), np.bool_)
    for split in range(splits):
        order = rng.permutation(queries)
        halves[0, split, order[:half]] = True
        halves[1, split, order[half : 2 * half]] = True
    halves.flags.writeable = False
    return halves[0], halves[1]


def split_halves(columns: Floats, one: Bools, other: Bools) -> SplitHalves:
    """Return the agreement of some columns' sums with those of others, in every split.

    The Spearman-Brown formula does not apply to halves that contradict each other.
    """
    a, b = one @ columns.T, other @ columns.T
    r, tau = _mean_of(pearson_rows(a, b)), _mean_of(kendall_rows(ranked(a), ranked(b)))
    mean = r[0]
    whole = None if mean is None or mean < 0 else 2 * mean / (1 + mean)
    return SplitHalves(mean, whole, tau[0], r[1], tau[1])


def pearson_rows(x: Floats, y: Floats) -> EstimateRows:
    """Return Pearson's correlation row by row of [samples, n]."""
    return _correlations(x.T, y.T)


def _mean_of(rows: EstimateRows) -> tuple[float | None, float | None]:
    values = rows.values[rows.defined]
    if not len(values):
        return None, None
    error = float(values.std() / np.sqrt(len(values)))
    return float(values.mean()), error


def order_changes(before: Floats, after: Floats) -> int:
    """Count the pairs of systems whose order changes: before, behind, or equal."""
    a, b = ranked(before), ranked(after)
    changed = np.sign(a[:, None] - a) != np.sign(b[:, None] - b)
    return int(changed.sum()) // 2


def ranks_of_systems(scores: Floats) -> list[int]:
    """Return the rank of every system: 1 plus the number of systems with a higher score."""
    rounded = ranked(scores)
    above: list[int] = (1 + (rounded[None, :] > rounded[:, None]).sum(axis=1)).tolist()
    return above


CUT = 0.2
"""The lowest item-rest correlation of a selected item if a single cut is requested."""
SPLITS = 500
SEED = 1
_EQUAL_TAU = 1e-12

Score = Callable[[Bools], Floats]
"""The scores of all systems on the items that are kept."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Kendall's tau-b of systems not used for choosing the items, over random splits.

    `better` is the share of splits in which it beats that of the whole exam.
    """

    tau: float
    error: float | None
    better: float


def select_items(columns: Floats, cut: float) -> Bools:
    """Return the items with an item-rest correlation of at least `cut`; undefined ones are out."""
    correlations = item_rest(columns)
    return np.asarray(correlations.defined & (correlations.values >= cut - _EQUAL_TAU), np.bool_)


def cross_validate(
    columns: Floats,
    better: Floats,
    cuts: Sequence[float],
    scores: Sequence[Score],
    control: float,
    *,
    splits: int = SPLITS,
    seed: int = SEED,
) -> dict[tuple[float | str, int], HeldOut]:
    """Cross-validate item selections: how exams of fewer items rank systems held out.

    The result maps (cut, "all" or "random"; which of the `scores`) to the correlations. `columns`
    is systems x items, `better` the official values of the systems. The control has as many random
    items as the cut `control` selects.

    Items are chosen by their item-rest correlation on half of the systems, which takes no human
    label, and the exam of the chosen items ranks the other half. The control is as many random
    items.
    """
    rng = np.random.default_rng(seed)
    half = len(columns) // 2
    results: dict[tuple[float | str, int], list[Floats]] = {}
    official = []
    for _ in range(splits):
        order = rng.permutation(len(columns))
        learnt, rest = order[:half], order[half:]
        official.append(better[rest])
        correlations = item_rest(columns[learnt])
        selections: dict[float | str, Bools] = {"all": np.ones(columns.shape[1], np.bool_)}
        for cut in cuts:
            selections[cut] = correlations.defined & (correlations.values >= cut - _EQUAL_TAU)
        selections["random"] = _random(
            rng, ~is_constant(columns[learnt]), int(selections[control].sum())
        )
        for name, selected in selections.items():
            for number, score in enumerate(scores):
                results.setdefault((name, number), []).append(score(selected)[rest])
    taus = {
        key: kendall_rows(ranked(np.array(rows)), np.array(official))
        for key, rows in results.items()
    }
    whole = {number: taus["all", number] for number in range(len(scores))}
    held_out = {}
    for (name, number), one in taus.items():
        both = one.defined & whole[number].defined
        if both.any():
            values, base = one.values[both], whole[number].values[both]
            error = float(values.std() / np.sqrt(len(values)))
            held_out[name, number] = HeldOut(
                float(values.mean()), error, float((values > base + _EQUAL_TAU).mean())
            )
    return held_out


def _random(rng: np.random.Generator, among: Bools, count: int) -> Bools:
    selected = np.zeros(len(among), np.bool_)
    selected[rng.permutation(np.flatnonzero(among))[:count]] = True
    return selected
