"""Paired significance tests of systems over queries, and letter displays.

The randomisation test: if two systems are equivalent, their values on each query are exchangeable,
which flips the sign of the difference. The two-sided p-value is the share of sign patterns with a
mean difference at least as large: of all patterns if there are few enough ("exact"), else (b + 1) /
(m + 1) for b of m random patterns, the same for every pair. Queries with equal values do not affect
the result and are not enumerated.

Sources: Fisher 1935; Smucker, Allan, Carterette, *A Comparison of Statistical Significance Tests
for IR Evaluation* (CIKM 2007); Phipson and Smyth 2010 (why + 1); Cohen 1988 (d_z).
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.stats.estimate import LEVEL, Bools, Estimate, Floats, Indices, Ints, undefined
from exampp.stats.means import MeanTest, Range, mean_tests

MOST_GROUPS = 500
"""Maximum number of groups; inconsistent differences would need exponentially many."""

_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def letter_display(differs: Bools) -> tuple[str, ...] | None:
    """Return the letters of every system; `differs` is symmetric, best system first.

    The letter a goes to the group of the best system, and so on; after z come the capitals, then
    a1, b1 ... None where it takes more than `MOST_GROUPS` groups.

    Two systems share a letter exactly if they do not differ significantly.

    Source: Piepho, *An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons*,
    Journal of Computational and Graphical Statistics 13 (2004): insert and absorb. Redundant groups
    are then removed.
    """
    n = len(differs)
    groups = [(1 << n) - 1] if n else []
    for first, second in np.argwhere(np.triu(differs, 1)).tolist():
        groups = _split(groups, 1 << first, 1 << second)
        if len(groups) > MOST_GROUPS:
            return None
    needed = _needed(sorted([i for i in range(n) if group >> i & 1] for group in groups), n)
    return tuple(
        "".join(_letter(number) for number, group in enumerate(needed) if system in group)
        for system in range(n)
    )


def _needed(groups: list[list[int]], systems: int) -> list[list[int]]:
    """Remove groups if each pair of members also shares another group, small ones first."""
    shared = np.zeros((systems, systems), np.int64)
    for group in groups:
        shared[np.ix_(group, group)] += 1
    remaining = list(groups)
    for group in sorted(groups, key=len):
        here = np.ix_(group, group)
        if (shared[here] > 1).all():
            shared[here] -= 1
            remaining.remove(group)
    return remaining


def _split(groups: list[int], one: int, other: int) -> list[int]:
    """Split groups that contain both systems, then absorb subsets of other groups."""
    both = one | other
    remaining = [group for group in groups if group & both != both]
    halves = (
        group & ~member for group in groups if group & both == both for member in (one, other)
    )
    for half in sorted(set(halves), key=int.bit_count, reverse=True):
        if not _within(half, remaining):
            remaining.append(half)
    return remaining


def _within(part: int, groups: Iterable[int]) -> bool:
    return any(part & group == part for group in groups)


def _letter(number: int) -> str:
    turn, place = divmod(number, len(_LETTERS))
    return _LETTERS[place] + (str(turn) if turn else "")


def holm(p: ArrayLike) -> Floats:
    """Return p-values adjusted for the family-wise error rate (Holm 1979)."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return p-values adjusted for the false discovery rate (Benjamini, Hochberg 1995)."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    scaled = values[order] * (len(values) / np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return adjusted


def fewest_differing(alpha: float) -> int:
    """Return on how many queries systems must differ for the exact test to reach `alpha`."""
    return math.ceil(math.log2(2 / alpha))


AnyFloats = NDArray[np.float64] | NDArray[np.float32]

PERMUTATIONS = 10_000

TOO_FEW_SHARED_QUERIES = "fewer than 2 queries count for both systems"
NO_SPREAD = "the two systems differ by the same amount on every query"
NONE_SHARED = "no query counts for both systems"

_NO_SPREAD = 1e-12
_TIED = 1e-10
"""Differences below this share of the largest value are ties."""

_REACHED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
"""Tolerance of a sum relative to the sum of magnitudes: above the rounding error of 1000 terms, so
that patterns tied with the observed one count.
"""

_SIGNS_AT_ONCE = 8192
_SIGNS_IN_CACHE = 1024
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison of two systems (rows) on the queries that count for both.

    `difference` is the mean of first minus second, with its paired interval; `won`, `lost` are the
    shares of queries on which the first is better, or worse. `effect` is Cohen's d_z, the mean
    difference over the standard deviation of the differences. `p` is of the randomisation test
    (`exact`: over all sign patterns), which tests that the two behave the same; `holm` and `bh` are
    `p` corrected for all pairs. They are None where fewer than 2 queries count. `p_mean` tests that
    the mean difference over all queries like these is 0, by the interval of `difference`;
    `holm_mean` is `p_mean` corrected for all pairs.
    """

    first: int
    second: int
    queries: int
    difference: Estimate
    won: float | None
    lost: float | None
    effect: Estimate
    p: float | None
    exact: bool
    holm: float | None
    bh: float | None
    p_mean: float | None
    holm_mean: float | None


def compare_pairs(
    values: Floats,
    counts: Bools,
    pairs: Indices | None = None,
    *,
    within: Range | None,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
    seed: int = 0,
) -> tuple[Pair, ...]:
    """Compare systems two by two; `values` and `counts` are systems x queries.

    `pairs` is [pairs, 2], by default every pair once, the earlier system first. `within` is the
    smallest and the largest possible difference: (-1, 1) for values between 0 and 1, None where
    the range is not known.
    """
    if pairs is None:
        pairs = np.stack(np.triu_indices(len(values), 1), axis=1)
    both = counts[pairs[:, 0]] & counts[pairs[:, 1]]
    differences = paired_differences(values[pairs[:, 0]], values[pairs[:, 1]], both)
    # where the same queries count for all, a difference of sums is the sum of differences
    alike = bool((counts == counts[:1]).all())
    rows = Rows(np.where(counts, values, 0.0), pairs) if alike else None
    p, exact = randomisation_tests(differences, permutations, seed, rows)
    tests = mean_tests(differences, both, within, level)
    tested = both.sum(axis=1) > 1
    corrected = np.ones((3, len(pairs)))
    corrected[:2, tested] = holm(p[tested]), benjamini_hochberg(p[tested])
    of_mean = np.array([np.nan if one.p is None else one.p for one in tests])
    defined = ~np.isnan(of_mean)
    corrected[2, defined] = holm(of_mean[defined])
    return tuple(_pairs(pairs, differences, both, tests, p, exact, corrected))


def paired_differences(first: Floats, second: Floats, both: Bools) -> Floats:
    """Return first - second if both count, else 0; 0 if they differ only by rounding."""
    size = np.maximum(np.abs(first), np.abs(second))
    largest = np.where(both, size, 0.0).max(axis=1, initial=0.0, keepdims=True)
    difference = np.where(both, first - second, 0.0)
    return np.where(np.abs(difference) > _TIED * largest, difference, 0.0)


def enough_permutations(pairs: int, alpha: float) -> int:
    """Return the number of sign patterns needed for significance after Holm's correction.

    The smallest p-value of m random patterns is 1 / (m + 1), so with too few of them no pair can be
    significant. The result is twice the minimum, to allow for one equally extreme pattern.
    """
    return max(PERMUTATIONS, math.ceil(2 * pairs / alpha))


class Rows(NamedTuple):
    """The values [systems, queries] behind differences, and the two rows of each."""

    values: Floats
    pairs: Indices


def randomisation_tests(
    differences: Floats,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    rows_of: Rows | None = None,
) -> tuple[Floats, Bools]:
    """Return the two-sided p-value of every row of [pairs, queries], and whether it is exact.

    With `rows_of`, sums under random patterns are computed by system instead of by pair, which is
    much faster.
    """
    size = np.abs(differences).sum(axis=1, keepdims=True)
    scaled = np.divide(differences, size, out=np.zeros(differences.shape), where=size > 0)
    untied = (scaled != 0).sum(axis=1)
    exact = untied <= math.log2(max(permutations, 1))
    p = np.ones(len(scaled))
    for n in np.unique(untied[exact]).tolist():
        rows = np.flatnonzero(exact & (untied == n))
        if n:
            packed = scaled[rows][scaled[rows] != 0].reshape(-1, n)
            p[rows] = _as_extreme(packed, _all_signs(n)) / 2 ** (n - 1)
    rows = np.flatnonzero(~exact)
    if len(rows):
        reached = np.zeros(len(rows))
        # half the precision takes a fifth of the time
        single = scaled[rows].astype(np.float32)
        for signs in _random_signs(differences.shape[1], permutations, seed):
            if rows_of is None:
                reached += _as_extreme(single, signs)
            else:
                some = Rows(rows_of.values, rows_of.pairs[rows])
                reached += _as_extreme_by_row(differences[rows], size[rows, 0], some, signs)
        p[rows] = (reached + 1) / (permutations + 1)
    return p, exact


def _as_extreme_by_row(
    differences: Floats, size: Floats, rows_of: Rows, signs: AnyFloats
) -> Floats:
    """Like `_as_extreme`, computed by system for differences of two rows."""
    observed = np.abs(differences.sum(axis=1)) - size * _REACHED[np.dtype(np.float64)]
    # subtract what all systems share: it cancels, and sums become more precise
    values = rows_of.values - rows_of.values.mean(axis=0)
    reached = np.zeros(len(differences))
    first, second = rows_of.pairs.T
    begins = [np.flatnonzero(first == one) for one in np.unique(first)]
    sums = values @ signs.T.astype(np.float64)
    for start in range(0, len(signs), _SIGNS_IN_CACHE):
        some = sums[:, start : start + _SIGNS_IN_CACHE]
        for here in begins:
            apart = some[second[here]]
            np.subtract(some[first[here[0]]], apart, out=apart)
            np.abs(apart, out=apart)
            extreme = apart >= observed[here, None]
            # counts of a block fit into 16 bits, which is fast
            reached[here] += extreme.view(np.uint8).sum(axis=1, dtype=np.uint16)
    return reached


def _as_extreme(scaled: AnyFloats, signs: AnyFloats) -> Floats:
    """Count the sign patterns that reach the sum of each row; magnitudes sum to 1."""
    observed = np.abs(scaled.sum(axis=1)) - scaled.dtype.type(_REACHED[scaled.dtype])
    reached = np.zeros(len(scaled))
    step = max(1, _CELLS_AT_ONCE // len(signs))
    for start in range(0, len(scaled), step):
        here = slice(start, start + step)
        sums = scaled[here] @ signs.T
        np.abs(sums, out=sums)
        reached[here] = np.count_nonzero(sums >= observed[here, None], axis=1)
    return reached


def _all_signs(n: int) -> Floats:
    """Return all sign patterns of n differences with first sign +; the others mirror them."""
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    return (1 - 2 * bits).astype(np.float64)


def _random_signs(n: int, permutations: int, seed: int) -> Iterator[NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    for start in range(0, permutations, _SIGNS_AT_ONCE):
        rows = min(_SIGNS_AT_ONCE, permutations - start)
        yield (1 - 2 * random.integers(0, 2, (rows, n), np.int8)).astype(np.float32)


def _pairs(
    pairs: Indices,
    differences: Floats,
    both: Bools,
    means: tuple[MeanTest, ...],
    p: Floats,
    exact: Bools,
    corrected: Floats,
) -> Iterator[Pair]:
    counted = both.sum(axis=1)
    effects = _effects(differences, both, counted)
    queries = counted.tolist()
    won = (differences > 0).sum(axis=1).tolist()
    lost = (differences < 0).sum(axis=1).tolist()
    for index, (first, second) in enumerate(pairs.tolist()):
        n = queries[index]
        tested = n > 1
        of_mean = means[index]
        yield Pair(
            first=first,
            second=second,
            queries=n,
            difference=of_mean.estimate if n else undefined(NONE_SHARED),
            won=won[index] / n if n else None,
            lost=lost[index] / n if n else None,
            effect=effects[index],
            p=float(p[index]) if tested else None,
            exact=bool(exact[index]),
            holm=float(corrected[0, index]) if tested else None,
            bh=float(corrected[1, index]) if tested else None,
            p_mean=of_mean.p,
            holm_mean=None if of_mean.p is None else float(corrected[2, index]),
        )


def _effects(differences: Floats, both: Bools, counted: Ints) -> list[Estimate]:
    """Return Cohen's d_z of every row over the queries that count."""
    means, spreads = np.zeros((2, len(differences)))
    for n in np.unique(counted[counted > 1]).tolist():
        rows = counted == n
        some = differences[rows][both[rows]].reshape(-1, n)
        means[rows], spreads[rows] = some.mean(axis=1), some.std(axis=1, ddof=1)
    sizes = np.abs(differences).max(axis=1, initial=0.0, where=both)
    known = spreads > _NO_SPREAD * sizes
    effects = np.divide(means, spreads, out=means, where=known)
    same, few = undefined(NO_SPREAD), undefined(TOO_FEW_SHARED_QUERIES)
    rows = zip(effects.tolist(), known.tolist(), (counted > 1).tolist(), strict=True)
    return [Estimate(of) if defined else same if enough else few for of, defined, enough in rows]
