"""Generalizability theory: the variance of scores by systems, queries, items and graders.

A random-effects analysis of variance splits scores into variance components: those of systems (the
signal), and those of queries, items, graders and interactions (the noise of an exam with other
queries and items). For an exam of any size they give

    Erho2 = var_s / (var_s + error of differences)    reliability of the order of systems
    Phi   = var_s / (var_s + error of levels)         reliability of the scores themselves

and the standard errors of measurement, the roots of these two errors, in units of the score.

A component that comes out negative is 0 in the coefficients; its raw value is kept.

Intervals hold for the compared systems, which are fixed; the queries are a sample. The coefficient
for a population of systems differs, and cannot be estimated well from a few dozen systems.

Sources: Brennan, *Generalizability Theory* (2001), ch. 2-4; Urbano, Marrero and Martin, *On the
Measurement of Test Collection Reliability* (SIGIR 2013). For banks of unequal size, the table of
query means, which Cover averages, is unweighted, with the harmonic mean of the bank sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exampp.stats.estimate import Estimate, Floats, undefined

ALL_ALIKE = "every system has the same score on every query"
NO_RESIDUAL = "systems differ by the same amount on every query"
TOO_FEW_SYSTEMS = "fewer than 2 systems are compared"
TOO_FEW_COMMON_QUERIES = "fewer than 2 queries count for all systems"
FEWEST_QUERIES = 4
"""Minimum queries for an interval:

`benchmarks/coverage_reliability.py` measures no smaller exam.
"""
NO_SAMPLE = f"fewer than {FEWEST_QUERIES} queries count for all systems"

_ROUNDING = 1e-12
"""Mean squares below this share of the largest squared score are rounding errors."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """A systems x queries study: mean squares of systems, queries, and residual."""

    systems: int
    queries: int
    ms_s: float
    ms_q: float
    ms_e: float

    @property
    def raw_s(self) -> float:
        """The variance of systems, without setting negative values to 0."""
        return (self.ms_s - self.ms_e) / self.queries

    @property
    def raw_q(self) -> float:
        """The variance of queries, without setting negative values to 0."""
        return (self.ms_q - self.ms_e) / self.systems

    def relative(self, queries: float) -> float | None:
        """Return Erho2 for a number of queries; None without variance."""
        return _share(self.raw_s, self.ms_e / queries)

    def absolute(self, queries: float) -> float | None:
        """Return Phi for a number of queries; None without variance."""
        return _share(self.raw_s, (max(0.0, self.raw_q) + self.ms_e) / queries)

    def errors(self, queries: float) -> tuple[float, float]:
        """Return standard errors of measurement for a number of queries:

        of differences, of levels.
        """
        relative = self.ms_e / queries
        return math.sqrt(relative), math.sqrt(relative + max(0.0, self.raw_q) / queries)


@dataclass(frozen=True, slots=True)
class Nested:
    """A systems x (items in queries) study: mean squares within queries, and of query means.

    `items` is the harmonic mean of the sizes of the banks.
    """

    items: float
    ms_iq: float
    ms_siq: float
    means: Crossed

    @property
    def raw(self) -> dict[str, float]:
        """The five components, possibly negative: s, q, sq, iq (i:q), siq (si:q with error)."""
        iq = (self.ms_iq - self.ms_siq) / self.means.systems
        return {
            "s": self.means.raw_s,
            "q": self.means.raw_q - iq / self.items,
            "sq": self.means.ms_e - self.ms_siq / self.items,
            "iq": iq,
            "siq": self.ms_siq,
        }

    def relative(self, queries: float, items: float) -> float | None:
        """Return Erho2 for numbers of queries and items per query, which may be infinite."""
        return self._coefficient(queries, items, ("sq", "siq"))

    def absolute(self, queries: float, items: float) -> float | None:
        """Return Phi for numbers of queries and items per query."""
        return self._coefficient(queries, items, ("sq", "siq", "q", "iq"))

    def errors(self, queries: float, items: float) -> tuple[float, float]:
        """Return standard errors of measurement of such an exam: of differences, of levels."""
        errors = (self._error(queries, items, of) for of in (("sq", "siq"), ("q", "iq")))
        relative, level = errors
        return math.sqrt(relative), math.sqrt(relative + level)

    @property
    def _counted(self) -> dict[str, float]:
        """Return the components, with negative ones set to 0.

        If systems x queries is negative, all of the error is assigned to items: an exam of this
        size then has its observed error, and more items never raise it.
        """
        var = {name: max(0.0, value) for name, value in self.raw.items()}
        if not var["sq"]:
            var["siq"] = self.means.ms_e * self.items
        return var

    def _error(self, queries: float, items: float, of: Sequence[str]) -> float:
        var = self._counted
        return sum(var[name] / (items if name in ("iq", "siq") else 1) for name in of) / queries

    def _coefficient(self, queries: float, items: float, of: Sequence[str]) -> float | None:
        return _share(self.raw["s"], self._error(queries, items, of))


Ratio = tuple[float, float]
"""Limits of the variance of systems over the error variance of one query."""


class Needed(NamedTuple):
    """The number of queries needed for a target, with its limits.

    None: unknown.
    """

    queries: int | None
    low: int | None
    high: int | None


# ---- taking scores apart -------------------------------------------------------------------------


def crossed(scores: Floats) -> Crossed:
    """Return the study of a table [systems, queries] of scores, at least 2 x 2."""
    n_s, n_q = scores.shape
    centred = scores - scores.mean()
    of_system, of_query = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - of_system[:, None] - of_query
    return Crossed(
        systems=n_s,
        queries=n_q,
        ms_s=_without_rounding(n_q * float((of_system**2).sum()) / (n_s - 1), scores),
        ms_q=_without_rounding(n_s * float((of_query**2).sum()) / (n_q - 1), scores),
        ms_e=_without_rounding(float((rest**2).sum()) / ((n_s - 1) * (n_q - 1)), scores),
    )


def nested(exams: Sequence[Floats]) -> Nested | None:
    """Return the study of exams, each [systems, items]; None if no query has two items.

    Queries with one item count only in the table of query means.
    """
    items = np.array([exam.shape[1] for exam in exams], np.float64)
    freedom = int((items - 1).sum())
    if not freedom:
        return None
    means = np.stack([exam.mean(axis=1) for exam in exams], axis=1)
    of_item = [exam.mean(axis=0) - exam.mean() for exam in exams]
    rest = [
        float(((exam - mean[:, None] - item) ** 2).sum())
        for exam, mean, item in zip(exams, means.T, of_item, strict=True)
    ]
    between = [len(exam) * float((one**2).sum()) for exam, one in zip(exams, of_item, strict=True)]
    systems = len(exams[0])
    scale = np.array([max(float(np.abs(exam).max()) for exam in exams)])
    return Nested(
        items=round(len(exams) / float((1 / items).sum()), 9),
        ms_iq=_without_rounding(float(np.sum(between)) / freedom, scale),
        ms_siq=_without_rounding(float(np.sum(rest)) / (freedom * (systems - 1)), scale),
        means=crossed(means),
    )


# ---- coefficients with their intervals -----------------------------------------------------------


class Ratios(NamedTuple):
    """Limits for the order of systems (Erho2) and for the levels of their scores (Phi)."""

    order: Ratio
    levels: Ratio


def ratios(scores: Floats, draws: Floats, level: float = 0.95) -> Ratios:
    """Return the limits for similar queries and exactly these systems.

    A limit is the ratio for which (1 - level) / 2 of the resamples have a ratio as extreme as the
    observed one. Samples include one additional query, on which a share of the systems has the
    lowest or highest possible score; the share with the widest limit counts. This allows for
    failures that no observed query shows. Possible scores are 0 to 1, or the observed range if
    wider.

    Args:
        scores: [systems, queries], 2 or more of both, with some residual.
        draws: [samples, queries + 1], how often a sample draws each query (`draw_queries`).
        level: Confidence level.

    Source: Carpenter, *Test inversion bootstrap confidence intervals*, JRSS B 61 (1999). Coverage:
    `benchmarks/coverage_reliability.py`.
    """
    together, apart = _added_queries(scores)
    tail = (1 - level) / 2
    limits = []
    for levels in (False, True):
        samples = _Drawn.of(scores, draws, levels=levels)
        low = min(samples.limits(extra, tail)[0] for extra in together)
        high = max(samples.limits(extra, 1 - tail)[1] for extra in apart)
        limits.append((low, high))
    return Ratios(*limits)


def _added_queries(scores: Floats) -> tuple[list[Floats], list[Floats]]:
    """Return the scores [systems] of added queries, which unite or separate the systems."""
    means = scores.mean(axis=1)
    order = np.argsort(-np.round(means, 9), kind="stable")
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    lowest, highest = min(0.0, float(scores.min())), max(1.0, float(scores.max()))
    n = len(order)
    together, apart = [], [means]
    for some in sorted({1, -(-n // 4), -(-n // 2), -(-3 * n // 4)} - {n}):
        best, worst = place < some, place >= n - some
        together += [np.where(best, lowest, means), np.where(worst, highest, means)]
        apart += [np.where(worst, lowest, means), np.where(best, highest, means)]
    return together, apart


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Samples of the queries: sums of `scores` and of their squares, without the added query.

    The error of `levels` is that of each score, the other one that of differences of systems.
    """

    scores: Floats
    middle: float
    levels: bool
    draws: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, scores: Floats, draws: Floats, *, levels: bool) -> _Drawn:
        middle = float(scores.mean())
        scores = scores - (middle if levels else scores.mean(axis=0))
        observed = draws[:, :-1]
        squares = observed @ (scores**2).sum(axis=0)
        return cls(scores, middle, levels, draws, observed @ scores.T, squares)

    def limits(self, extra: Floats, share: float) -> tuple[float, float]:
        """Return the lower and upper ratio that `share` of the samples do not exceed.

        If systems were t times as far apart as observed, a sample would have the ratio |t mean +
        error|^2 over its error variance. It equals the observed ratio at a root of a quadratic in
        t.
        """
        n = self.draws.shape[1]
        extra = extra - (self.middle if self.levels else extra.mean())
        of_extra = float(extra @ extra)
        means = (self.scores.sum(axis=1) + extra) / n
        present = (float((self.scores**2).sum()) + of_extra) / n - float(means @ means)
        sample_means = (self.sums + self.draws[:, -1:] * extra) / n
        spread = (self.squares + self.draws[:, -1] * of_extra) / n - (sample_means**2).sum(axis=1)
        # residuals are smaller than errors by this factor
        errors = (sample_means - means) * math.sqrt(n / (n - 1))
        if self.levels:
            means, errors = means - means.mean(), errors - errors.mean(axis=1, keepdims=True)
        a, b = float(means @ means), errors @ means
        if a <= 0 or present <= 0:
            return 0.0, 0.0
        c = (errors**2).sum(axis=1) - a * spread / present * n / (n - 1)
        root = np.maximum(0.0, np.sqrt(np.maximum(0.0, b**2 - a * c)) - b)
        low = np.quantile(np.where(c >= 0, 0.0, root), share, method="lower")
        high = np.quantile(root, share, method="higher")
        systems = len(self.scores)
        scale = a * present * n / (n - 1) * ((systems - 1) / systems if self.levels else 1.0)
        return float(low) ** 2 / scale, float(high) ** 2 / scale


def erho2(study: Crossed, queries: float, limits: Ratios | None = None) -> Estimate:
    """Return Erho2 for a number of queries, with an interval if there are limits."""
    return _estimate(study, study.relative(queries), queries, limits and limits.order)


def phi(study: Crossed, queries: float, limits: Ratios | None = None) -> Estimate:
    """Return Phi for a number of queries, with an interval if there are limits."""
    return _estimate(study, study.absolute(queries), queries, limits and limits.levels)


def erho2_queries(study: Crossed, target: float, limits: Ratios | None = None) -> Needed:
    """Return the number of queries for an Erho2 of `target`."""
    return _all_needed(target, study.raw_s, study.ms_e, limits and limits.order)


def phi_queries(study: Crossed, target: float, limits: Ratios | None = None) -> Needed:
    """Return the number of queries for a Phi of `target`."""
    error = max(0.0, study.raw_q) + study.ms_e
    return _all_needed(target, study.raw_s, error, limits and limits.levels)


def _estimate(
    study: Crossed, value: float | None, queries: float, limits: Ratio | None
) -> Estimate:
    if value is None:
        return undefined(ALL_ALIKE)
    if limits is None:
        return Estimate(value, no_interval=NO_RESIDUAL if not study.ms_e else NO_SAMPLE)
    low, high = (queries * ratio / (1 + queries * ratio) for ratio in limits)
    return Estimate(value, min(low, value), max(high, value))


def _all_needed(target: float, signal: float, error: float, limits: Ratio | None) -> Needed:
    needed = _needed(target, signal, error)
    if limits is None:
        return Needed(needed, needed, needed)
    fewest, most = (_needed(target, ratio, 1.0) for ratio in reversed(limits))
    if needed is None:
        return Needed(None, fewest, None)
    return Needed(
        needed, min(needed, fewest or needed), None if most is None else max(needed, most)
    )


def _needed(target: float, signal: float, error: float) -> int | None:
    if signal <= 0:
        return None
    return max(1, _up(target * error / (signal * (1 - target))))


def _up(number: float) -> int:
    """Round up, ignoring rounding errors."""
    return math.ceil(number - 1e-9 * max(1.0, number))


def _share(signal: float, error: float) -> float | None:
    whole = max(0.0, signal) + error
    return max(0.0, signal) / whole if whole > 0 else None


def _without_rounding(mean_square: float, scores: Floats) -> float:
    """Return the mean square, 0 where it is only rounding."""
    return mean_square if mean_square > _ROUNDING * float(np.abs(scores).max()) ** 2 else 0.0
