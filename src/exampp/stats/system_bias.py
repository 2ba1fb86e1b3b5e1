"""Bias of a grader for a system, from labels and judgments.

A grader that is right on average within every level of relevance still rates a better system higher
and regresses to the mean; neither is a bias. Therefore each system is compared in two ways, within
queries, with passages returned only by other systems:

- `matched`: the label beyond that of passages with the same judgment (the within-stratum regression
of labels on the system, with the weights of Mantel and Haenszel). It is 0 for a fair grader if
judgments are exact. With coarse or noisy judgments it favours the better system, because its
passages are better than their judgments show.
- `linked`: label minus judgment, once labels are put on the scale of judgments by equal shares
(equipercentile linking), given in units of the label. It is 0 for a fair grader as noisy as the
judges, and counts against the better system where the judges are better than the grader.

The truth lies between the two, so a bias is reported only if both agree: its interval is the hull
of theirs. Queries are the sample (jackknife over queries, Student's t); Sidak's bound on the
largest |t| makes the intervals hold for all systems at once. A standard error is never smaller than
that of labels dealt out at random among the matched passages. A system with outlying labels is
removed from the reference of the others, which would otherwise look disfavoured.

Sources: Mantel and Haenszel, *Statistical Aspects of the Analysis of Data from Retrospective
Studies of Disease* (1959); Holland and Thayer, *Differential Item Performance and the
Mantel-Haenszel Procedure* (1988; matching, and leaving out what is found to be biased); Klepper and
Leamer, *Consistent Sets of Estimates for Regressions with Errors in All Variables* (1984; the truth
between two regressions); Kolen and Brennan, *Test Equating, Scaling, and Linking* (2014; equal
shares); Cameron and Miller, *A Practitioner's Guide to Cluster-Robust
Inference* (2015; jackknife and effective number of clusters); Sidak (1967). Levels and power:
`benchmarks/favoured_system.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from exampp.stats.estimate import LEVEL, Bools, Floats, Indices, Ints
from exampp.stats.rank_sets import student_reach

POWER = 0.8
"""Power: the probability to detect a bias of the detectable size."""
_FEWEST_CLUSTERS = 1.5
"""Minimum effective number of queries for a standard error."""
_ROUNDING = 1e-9
_UNKNOWN = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class JudgedPool:
    """Judged and labelled passages, and the systems that return them.

    `label` and `judgment` [passages] are numbers, `exam` [passages] is the ranking that a passage
    was returned for (a query or a subtopic), `query` [passages] the query that exam belongs to,
    both numbered from 0; `returned` has the passages of each system.
    """

    label: Floats
    judgment: Floats
    exam: Indices
    query: Indices
    returned: Sequence[Indices]


class SystemBiases(NamedTuple):
    """Bias of the grader by system, [systems] each, in units of the label; NaN: unknown.

    `matched` and `linked` are the two estimates, `low` and `high` bound the bias, simultaneously
    for all systems. `matched_half` is half the width of the interval of `matched` alone, and
    `detectable` the bias that is outside of it with probability `POWER`. `found` is 1 for a
    favoured system, -1 for a disfavoured one, where both estimates agree, else 0. `spread` is the
    standard deviation of labels within exams.
    """

    matched: Floats
    matched_half: Floats
    linked: Floats
    low: Floats
    high: Floats
    detectable: Floats
    found: Ints
    spread: float


def system_biases(pool: JudgedPool, level: float = LEVEL) -> SystemBiases:
    """Return the bias for every system, with simultaneous intervals."""
    _, levels = np.unique(pool.judgment, return_inverse=True)
    _, strata = np.unique(pool.exam * (levels.max(initial=0) + 1) + levels, return_inverse=True)
    level **= 1 / max(1, len(pool.returned))
    suspects = _suspects(pool, strata, level)
    matched = _view(pool, pool.label, strata, suspects, level)
    clean = _unreturned(pool, suspects)
    ratio = _spread(pool.label[clean], pool.exam[clean]) / (
        _spread(pool.judgment[clean], pool.exam[clean]) or np.inf
    )
    apart = _on_scale(pool.label, pool.label[clean], pool.judgment[clean]) - pool.judgment
    linked = _view(pool, ratio * apart, pool.exam, suspects, level)
    low = np.minimum(matched.estimate - matched.half, linked.estimate - linked.half)
    high = np.maximum(matched.estimate + matched.half, linked.estimate + linked.half)
    return SystemBiases(
        matched=matched.estimate,
        linked=linked.estimate,
        low=low,
        high=high,
        matched_half=matched.half,
        detectable=matched.half + NormalDist().inv_cdf(POWER) * matched.error,
        found=(low > _ROUNDING).astype(np.int64) - (high < -_ROUNDING),
        spread=_spread(pool.label, pool.exam),
    )


class _View(NamedTuple):
    """Estimates by system, with standard errors and half-widths of intervals."""

    estimate: Floats
    error: Floats
    half: Floats


def _suspects(pool: JudgedPool, stratum: Indices, level: float) -> list[int]:
    """Return the systems that are set apart, in order: each time the one that stands out most."""
    suspects: list[int] = []
    values, query, returned = pool.label, _query_of(stratum, pool.query), list(pool.returned)
    # keep at least two systems for a comparison
    while len(suspects) + 2 <= len(returned):
        reference = _Reference.of(values, stratum, query)
        estimates = [
            _UNKNOWN if system in suspects else reference.difference(mine)
            for system, mine in enumerate(returned)
        ]
        more = _suspect(_as_view(estimates, level))
        if more is None:
            break
        suspects.append(more)
        # keep the passages that the suspect does not return
        left = np.ones(len(values), np.bool_)
        left[returned[more]] = False
        values, stratum, number = values[left], stratum[left], np.cumsum(left) - 1
        returned = [number[mine[left[mine]]] for mine in returned]
    return suspects


def _view(
    pool: JudgedPool, values: Floats, stratum: Indices, suspects: Sequence[int], level: float
) -> _View:
    """Compare each system with passages that no suspect returns; NaN where that is undefined.

    Passages of an earlier suspect are ignored for a later one.
    """
    query = _query_of(stratum, pool.query)
    clean = _unreturned(pool, suspects)
    reference = _Reference.of(values, stratum, query, clean)
    estimates = [reference.difference(mine[clean[mine]]) for mine in pool.returned]
    unseen = np.ones(len(values), np.bool_)
    for system in suspects:
        mine = pool.returned[system]
        mine = mine[unseen[mine]]
        used = clean.copy()
        used[mine] = True
        estimates[system] = _Reference.of(values, stratum, query, used).difference(mine)
        unseen[mine] = False
    return _as_view(estimates, level)


def _as_view(estimates: Sequence[tuple[float, float, float]], level: float) -> _View:
    """Return (estimate, error, freedom) of each system with intervals."""
    estimate, error, freedom = np.array(estimates, np.float64).reshape(-1, 3).T
    reach = student_reach(level, np.where(np.isfinite(freedom), freedom, 1.0))
    return _View(estimate, error, reach * error)


def _query_of(stratum: Indices, query: Indices) -> Indices:
    """Return the query of each stratum."""
    query_of = np.zeros(int(stratum.max(initial=0)) + 1, np.intp)
    query_of[stratum] = query
    return query_of


def _unreturned(pool: JudgedPool, systems: Sequence[int]) -> Bools:
    """Return which passages none of these systems returns."""
    others = np.ones(len(pool.label), np.bool_)
    for system in systems:
        others[pool.returned[system]] = False
    return others


def _suspect(matched: _View) -> int | None:
    """Return the system with the largest significant estimate, if any."""
    size = np.where(np.abs(matched.estimate) > matched.half, matched.estimate, 0.0)
    if not size.any():
        return None
    # of two mirrored systems, the one with high labels
    return int(np.argmax(np.round(np.abs(size), 9) + _ROUNDING * np.sign(size)))


class _Reference(NamedTuple):
    """The passages that systems are compared on.

    `mean`, `size`, `variance` and `query` are by stratum.
    """

    values: Floats
    stratum: Indices
    mean: Floats
    size: Indices
    variance: Floats
    query: Indices

    @classmethod
    def of(
        cls, values: Floats, stratum: Indices, query: Indices, used: Bools | slice = slice(None)
    ) -> _Reference:
        where, those = stratum[used], values[used]
        size = np.maximum(np.bincount(where, minlength=len(query)), 1)
        mean = np.bincount(where, those, len(size)) / size
        squares = np.bincount(where, (those - mean[where]) ** 2, len(size))
        variance = squares / np.maximum(size - 1, 1)
        return cls(values, stratum, mean, size, variance, query)

    def difference(self, place: Indices) -> tuple[float, float, float]:
        """Return (estimate, error, freedom) of how much higher some are than others of a stratum.

        Only those at `place` are read: the differences from the mean of a stratum add up to 0.
        """
        where = self.stratum[place]
        off = self.values[place] - self.mean[where]
        own = np.bincount(where, minlength=len(self.size))
        weight = own * (1 - own / self.size)
        sums = np.bincount(self.query[where], off, int(self.query.max()) + 1)
        weights = np.bincount(self.query, weight)
        total = weights.sum()
        if total <= _ROUNDING:
            return _UNKNOWN
        estimate = float(sums.sum() / total)
        # a half that rounding errors move would round either way
        clusters = round(total**2 / (weights**2).sum(), 9)
        if clusters < _FEWEST_CLUSTERS:
            return estimate, np.nan, np.nan
        (there,) = np.nonzero(weights > _ROUNDING)
        moved = (sums - estimate * weights)[there] / (total - weights[there])
        jackknife = (moved**2).sum() * (1 - 1 / len(there))
        dealt = (self.variance * weight).sum() / total**2
        return estimate, float(np.sqrt(max(jackknife, dealt))), max(1.0, round(clusters) - 1.0)


def _on_scale(values: Floats, label: Floats, judgment: Floats) -> Floats:
    """Map `values` from the scale of labels to that of judgments, by quantiles."""
    levels, at = np.unique(label, return_inverse=True)
    mean = np.bincount(np.sort(at), np.sort(judgment)) / np.bincount(at)
    return np.interp(values, levels, mean)


def _spread(values: Floats, exam: Indices) -> float:
    """Return the standard deviation within exams; 0 if values differ only by rounding."""
    if not len(values):
        return 0.0
    means = np.bincount(exam, values) / np.maximum(np.bincount(exam), 1)
    spread = float(np.sqrt(((values - means[exam]) ** 2).mean()))
    return spread if spread > _ROUNDING else 0.0
