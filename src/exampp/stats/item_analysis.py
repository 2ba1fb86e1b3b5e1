"""Classical item analysis: statistics of items over systems, and exams of selected items.

A matrix is [systems, items]: 1 (or the credit) if a system covers an item, times the weight of the
item in the score, so row sums are scores. Undefined values have a mask, never NaN.

Sources: Cronbach 1951 (alpha); Kuder and Richardson 1937 (formula 20: alpha of 0/1 items);
Henrysson 1963 (the correlation of an item with the rest); Spearman 1910 and Brown 1910 (the
correlation of halves stepped up to the whole); Efron and Stein 1981 (jackknife).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.stats.estimate import Bools, EstimateRows, Floats, Indices
from exampp.stats.rank_correlation import kendall_rows

DECIMALS = 9
"""Decimals for comparing scores: equal scores stay equal in any order of summation."""
_EQUAL = 1e-12


def ranked(scores: Floats) -> Floats:
    """Round scores for ranking, so that equal ones are tied; NaN stays."""
    return np.asarray(np.round(scores, DECIMALS) + 0.0, np.float64)


def is_constant(columns: Floats) -> Bools:
    """Return which columns are constant over systems."""
    if not len(columns):
        return np.ones(columns.shape[1], np.bool_)
    return np.asarray(np.ptp(columns, axis=0) <= _EQUAL, np.bool_)


def item_total(matrix: Floats) -> EstimateRows:
    """Return Pearson's correlation of every item with the total."""
    return _correlations(matrix, matrix.sum(axis=1, keepdims=True))


def item_rest(matrix: Floats) -> EstimateRows:
    """Return Pearson's correlation of every item with the rest score.

    This is the point-biserial correlation for 0/1 items. Undefined if the item or the rest is
    constant over systems, or with fewer than three systems.
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
    """Return alpha without each item."""
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
    """Return alpha without each system."""
    return tuple(coefficient_alpha(np.delete(matrix, one, axis=0)) for one in range(len(matrix)))


def jackknife_error(values: Sequence[float]) -> float:
    """Return the standard error of a statistic from its values without each of n systems."""
    each = np.asarray(values, np.float64)
    return float(np.sqrt((len(each) - 1) / len(each) * ((each - each.mean()) ** 2).sum()))


def kept_systems(scores: Floats, drop: float) -> Bools:
    """Return the systems at or above the `drop` quantile of the scores (type 7), including ties."""
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
"""Minimum systems: with two, every correlation is 1 or -1."""


# ---- halves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitHalves:
    """Mean agreement of random halves of an exam.

    `r` is the correlation of their scores over systems, `whole` that stepped up to the whole exam
    (Spearman-Brown of the mean), `tau` Kendall's tau-b of their leaderboards; `r_error` and
    `tau_error` are the Monte Carlo standard errors. None: undefined in every split.
    """

    r: float | None
    whole: float | None
    tau: float | None
    r_error: float | None
    tau_error: float | None


def draw_item_halves(groups: Sequence[Indices], splits: int, seed: int) -> Bools:
    """Draw a random half (rounded down) of each group of items, [splits, items].

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
    """Draw two disjoint random halves (rounded down) of the queries, each [splits, queries].

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
    """Return the agreement of sums over two sets of columns, over all splits.

    The Spearman-Brown formula does not apply to negatively correlated halves.
    """
    a, b = one @ columns.T, other @ columns.T
    r, tau = _mean_of(pearson_rows(a, b)), _mean_of(kendall_rows(ranked(a), ranked(b)))
    mean = r[0]
    whole = None if mean is None or mean < 0 else 2 * mean / (1 + mean)
    return SplitHalves(mean, whole, tau[0], r[1], tau[1])


def pearson_rows(x: Floats, y: Floats) -> EstimateRows:
    """Return Pearson's correlation of every row of [samples, n]."""
    return _correlations(x.T, y.T)


def _mean_of(rows: EstimateRows) -> tuple[float | None, float | None]:
    values = rows.values[rows.defined]
    if not len(values):
        return None, None
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


def order_changes(before: Floats, after: Floats) -> int:
    """Count the pairs of systems that change order (ahead, behind, tied)."""
    a, b = ranked(before), ranked(after)
    changed = np.sign(a[:, None] - a) != np.sign(b[:, None] - b)
    return int(changed.sum()) // 2


def ranks_of_systems(scores: Floats) -> list[int]:
    """Return the rank of every system: 1 plus the number of systems with a higher score."""
    rounded = ranked(scores)
    above: list[int] = (1 + (rounded[None, :] > rounded[:, None]).sum(axis=1)).tolist()
    return above


CUT = 0.2
"""Default cut: the lowest item-rest correlation of a selected item."""
SPLITS = 500
SEED = 1
_EQUAL_TAU = 1e-12

Score = Callable[[Bools], Floats]
"""Computes the scores of all systems on selected items."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Kendall's tau-b on held-out systems, over random splits.

    `better` is the share of splits with a higher tau than the whole exam.
    """

    tau: float
    error: float | None
    better: float


def select_items(columns: Floats, cut: float) -> Bools:
    """Select items with an item-rest correlation of at least `cut`; undefined ones are left out."""
    correlations = item_rest(columns)
    return np.asarray(correlations.defined & (correlations.values >= cut - _EQUAL_TAU), np.bool_)


def cross_validate(
    columns: Floats,
    better: Floats,
    cuts: Sequence[float],
    scores: Sequence[Score],
    control: float,
) -> dict[tuple[float | str, int], HeldOut]:
    """Cross-validate item selections on held-out systems.

    The result maps (cut, "all" or "random"; which of the `scores`) to the correlations. `columns`
    is systems x items, `better` the official values of the systems. The control has as many random
    items as the cut `control` selects.

    Items are selected by their item-rest correlation on half of the systems, without human labels;
    the selected exam ranks the other half.
    """
    rng = np.random.default_rng(SEED)
    half = len(columns) // 2
    results: dict[tuple[float | str, int], list[Floats]] = {}
    official = []
    for _ in range(SPLITS):
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
