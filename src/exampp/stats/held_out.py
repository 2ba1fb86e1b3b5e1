"""Agreement between queries about the order of systems that had no part in a choice.

Two queries agree about a pair of systems if the same one is ahead on both, and disagree if the
other one is; a tie is neither. The agreement of two queries is (pairs with agreement - pairs with
disagreement) / pairs, which is Kendall's tau-a of their orders, and that of an exam the mean over
all pairs of queries: how far one query orders systems as another one does. It is 0 where systems do
not differ.

What is chosen by some systems counts for the others. Systems that return the same passages share
their errors, so they are in the same half: a group joins those with the largest mean similarity
(average linkage). Intervals are for other queries: the jackknife over queries with Student's t.

Sources: Kendall 1938 (tau-a); Sokal and Michener 1958 (average linkage); Arvesen 1969 (jackknife of
U-statistics). `benchmarks/improve.py` measures how often a gain is claimed where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exampp.stats.estimate import LEVEL, Estimate, Floats, Indices
from exampp.stats.item_analysis import jackknife_error, ranked
from exampp.stats.means import student_quantile

FEWEST_QUERIES = 5
"""Fewer queries have no interval."""


class Halves(NamedTuple):
    """Systems to choose by, and held-out systems, by their places."""

    chosen_by: Indices
    held_out: Indices


def related_groups(similarity: Floats, least: float) -> list[list[int]]:
    """Return groups of systems: the two with the largest mean similarity join until it is below.

    `similarity` is symmetric, systems x systems.
    """
    groups = [[one] for one in range(len(similarity))]
    mean = np.array(similarity, np.float64)
    np.fill_diagonal(mean, -np.inf)
    while len(groups) > 1:
        at, other = sorted(divmod(int(mean.argmax()), len(groups)))
        if mean[at, other] < least:
            break
        sizes = len(groups[at]), len(groups[other])
        mean[at] = mean[:, at] = np.average(mean[[at, other]], axis=0, weights=sizes)
        mean[at, at] = -np.inf
        mean = np.delete(np.delete(mean, other, axis=0), other, axis=1)
        groups[at] += groups.pop(other)
    return groups


def draw_halves(groups: Sequence[Sequence[int]], splits: int, seed: int) -> list[Halves]:
    """Draw random halves of systems without splitting a group; each half is held out once.

    The groups come in random order, each to the smaller half.
    """
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(splits):
        halves: tuple[list[int], list[int]] = ([], [])
        for number in random.permutation(len(groups)).tolist():
            min(halves, key=len).extend(groups[number])
        one, other = (np.array(sorted(half), np.intp) for half in halves)
        drawn += [Halves(one, other), Halves(other, one)]
    return drawn


def pair_orders(scores: Floats) -> Floats:
    """Return the order of every pair of systems, [queries, pairs], from [systems, queries].

    Rows are scaled so that the product of two is the agreement of their queries.
    """
    one, other = np.triu_indices(len(scores), 1)
    rounded = ranked(scores)
    orders: Floats = np.sign(rounded[one] - rounded[other]).T / np.sqrt(max(1, len(one)))
    return orders


def agreement(products: Floats) -> float:
    """Return the mean agreement of two queries from that of all, [queries, queries]."""
    number = len(products)
    return float((products.sum() - np.trace(products)) / (number * (number - 1)))


def agreement_without_each(products: Floats) -> Floats:
    """Return the mean agreement of two queries without each query."""
    number = len(products)
    others = products - np.diag(np.diag(products))
    left: Floats = others.sum() - 2 * others.sum(axis=1)
    return left / ((number - 1) * (number - 2))


def jackknifed(value: float, without_each: Floats, level: float = LEVEL) -> Estimate:
    """Return a statistic with its interval from its values without each query."""
    number = len(without_each)
    if number < FEWEST_QUERIES:
        return Estimate(value, no_interval=f"fewer than {FEWEST_QUERIES} queries")
    half = student_quantile(level, number - 1) * jackknife_error(without_each.tolist())
    return Estimate(value, value - half, value + half)
