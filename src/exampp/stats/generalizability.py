"""Generalizability theory: how much of the spread of scores is systems, queries, items, graders.

Scores are taken apart by a random-effects analysis of variance into components of variance: those
of systems (the signal) and those of queries, items, graders and their interactions (the noise of
an exam that draws other queries, other items). From them follow, for an exam of any size,

    Erho2 = var_s / (var_s + error of differences)    reliability of the order of systems
    Phi   = var_s / (var_s + error of levels)         reliability of the scores themselves

and the standard errors of measurement, the roots of these two errors, in units of the score.

A component that comes out negative is 0 in the coefficients; its raw value is kept.

Sources: Brennan, *Generalizability Theory* (2001), ch. 2-4; Urbano, Marrero and Martin, *On the
Measurement of Test Collection Reliability* (SIGIR 2013); Feldt, Psychometrika 30 (1965); Arteaga,
Jeyaratnam and Franklin, Psychometrika 47 (1982). Banks of unequal size: query means are what Cover
averages, so that the table of them is unweighted, with the harmonic mean of the bank sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Estimate, undefined
from exampp.stats.f_distribution import f_quantile

Floats = NDArray[np.float64]

ALL_ALIKE = "every system has the same score on every query"
NO_RESIDUAL = "systems differ by the same amount on every query"
FEW_SYSTEMS = "fewer than 2 systems are compared"
FEW_QUERIES = "fewer than 2 queries count for all systems"

_ROUNDING = 1e-12
"""Relative to the largest squared score: a mean square below it is rounding."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """Systems x queries: mean squares of systems, queries, and their interaction with error."""

    systems: int
    queries: int
    ms_s: float
    ms_q: float
    ms_e: float

    @property
    def raw_s(self) -> float:
        """The variance of systems as it comes out, perhaps negative."""
        return (self.ms_s - self.ms_e) / self.queries

    @property
    def raw_q(self) -> float:
        """The variance of queries as it comes out, perhaps negative."""
        return (self.ms_q - self.ms_e) / self.systems

    def relative(self, queries: float) -> float | None:
        """Erho2 with so many queries; None where nothing varies."""
        return _share(self.raw_s, self.ms_e / queries)

    def absolute(self, queries: float) -> float | None:
        """Phi with so many queries; None where nothing varies."""
        return _share(self.raw_s, (max(0.0, self.raw_q) + self.ms_e) / queries)

    def errors(self, queries: float) -> tuple[float, float]:
        """Standard errors of measurement with so many queries: of differences, of levels."""
        relative = self.ms_e / queries
        return math.sqrt(relative), math.sqrt(relative + max(0.0, self.raw_q) / queries)


@dataclass(frozen=True, slots=True)
class Nested:
    """Systems x (items in queries): mean squares within queries, and the table of query means.

    `items` is the harmonic mean of the sizes of the banks.
    """

    items: float
    ms_iq: float
    ms_siq: float
    means: Crossed

    @property
    def raw(self) -> dict[str, float]:
        """The five components as they come out: s, q, sq, iq (i:q), siq (si:q with error)."""
        iq = (self.ms_iq - self.ms_siq) / self.means.systems
        return {
            "s": self.means.raw_s,
            "q": self.means.raw_q - iq / self.items,
            "sq": self.means.ms_e - self.ms_siq / self.items,
            "iq": iq,
            "siq": self.ms_siq,
        }

    def relative(self, queries: float, items: float) -> float | None:
        """Erho2 with so many queries of so many items, which may be infinite."""
        return self._coefficient(queries, items, ("sq", "siq"))

    def absolute(self, queries: float, items: float) -> float | None:
        """Phi with so many queries of so many items."""
        return self._coefficient(queries, items, ("sq", "siq", "q", "iq"))

    def errors(self, queries: float, items: float) -> tuple[float, float]:
        """Standard errors of measurement with such an exam: of differences, of levels."""
        found = (self._error(queries, items, of) for of in (("sq", "siq"), ("q", "iq")))
        relative, level = found
        return math.sqrt(relative), math.sqrt(relative + level)

    def items_needed(self, target: float, queries: float) -> int | None:
        """Items per query for Erho2 of `target` with so many queries; None where none suffice."""
        var = _positive(self.raw)
        room = queries * var["s"] * (1 - target) / target - var["sq"]
        return max(1, _up(var["siq"] / room)) if room > 0 else None

    def queries_needed(self, target: float, items: float) -> int | None:
        """Queries of so many items for Erho2 of `target`; None where none suffice."""
        var = _positive(self.raw)
        error = var["sq"] + var["siq"] / items
        return _needed(target, var["s"], error)

    def _error(self, queries: float, items: float, of: Sequence[str]) -> float:
        var = _positive(self.raw)
        return sum(var[name] / (items if name in ("iq", "siq") else 1) for name in of) / queries

    def _coefficient(self, queries: float, items: float, of: Sequence[str]) -> float | None:
        return _share(self.raw["s"], self._error(queries, items, of))


@dataclass(frozen=True, slots=True)
class WithGraders:
    """Systems x queries x graders: the seven components as they come out, sqg with error."""

    systems: int
    queries: int
    graders: int
    raw: dict[str, float]

    def relative(self, queries: float, graders: float) -> float | None:
        """Erho2 with so many queries and graders, the mean of whose scores is taken."""
        var = _positive(self.raw)
        error = var["sq"] / queries + var["sg"] / graders + var["sqg"] / (queries * graders)
        return _share(var["s"], error)

    def absolute(self, queries: float, graders: float) -> float | None:
        """Phi with so many queries and graders."""
        var = _positive(self.raw)
        error = (var["q"] + var["sq"]) / queries + (var["g"] + var["sg"]) / graders
        return _share(var["s"], error + (var["qg"] + var["sqg"]) / (queries * graders))


class Needed(NamedTuple):
    """How many queries a target takes, and with the interval of the coefficient.

    None: no number suffices.
    """

    queries: int | None
    low: int | None
    high: int | None


# ---- taking scores apart -------------------------------------------------------------------------


def crossed(scores: Floats) -> Crossed:
    """The study of a table [systems, queries] of scores, 2 or more of both."""
    n_s, n_q = scores.shape
    centred = scores - scores.mean()
    of_system, of_query = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - of_system[:, None] - of_query
    return Crossed(
        systems=n_s,
        queries=n_q,
        ms_s=_settled(n_q * float((of_system**2).sum()) / (n_s - 1), scores),
        ms_q=_settled(n_s * float((of_query**2).sum()) / (n_q - 1), scores),
        ms_e=_settled(float((rest**2).sum()) / ((n_s - 1) * (n_q - 1)), scores),
    )


def nested(exams: Sequence[Floats]) -> Nested | None:
    """The study of exams, [systems, items] each; None where no query has two items.

    A query with one item counts in the table of query means alone.
    """
    found = within(exams)
    freedom = int(found.freedom.sum())
    if not freedom:
        return None
    systems = len(exams[0])
    scale = np.array([max(float(np.abs(exam).max()) for exam in exams)])
    return Nested(
        items=round(len(exams) / float((1 / found.items).sum()), 9),
        ms_iq=_settled(float(found.item.sum()) / freedom, scale),
        ms_siq=_settled(float(found.rest.sum()) / (freedom * (systems - 1)), scale),
        means=crossed(found.means),
    )


class Within(NamedTuple):
    """Queries apart: items, `freedom` (items - 1), sums of squares, and means [systems, queries].

    `item` is the sum of squares of the items of a query, `rest` that of systems x items.
    """

    items: Floats
    freedom: Floats
    item: Floats
    rest: Floats
    means: Floats


def within(exams: Sequence[Floats]) -> Within:
    """What every query says of its own items."""
    items = np.array([exam.shape[1] for exam in exams], np.float64)
    item, rest, means = [], [], []
    for exam in exams:
        of_system = exam.mean(axis=1)
        of_item = exam.mean(axis=0) - exam.mean()
        item.append(len(exam) * float((of_item**2).sum()))
        rest.append(float(((exam - of_system[:, None] - of_item) ** 2).sum()))
        means.append(of_system)
    return Within(items, items - 1, np.array(item), np.array(rest), np.stack(means, axis=1))


def with_graders(scores: Floats) -> WithGraders:
    """The study of a table [systems, queries, graders] of scores, 2 or more of each."""
    n_s, n_q, n_g = scores.shape
    effects = {"s": (1, 2), "q": (0, 2), "g": (0, 1), "sq": (2,), "sg": (1,), "qg": (0,)}
    left = scores - scores.mean()
    ms: dict[str, float] = {}
    for name, axes in effects.items():
        # each effect is what is left of the means over the other axes
        effect = left.mean(axis=axes, keepdims=True)
        times = scores.size / effect.size
        freedom = math.prod(size - 1 for size in effect.shape if size > 1)
        ms[name] = _settled(times * float((effect**2).sum()) / freedom, scores)
        left = left - effect
    ms["sqg"] = _settled(float((left**2).sum()) / ((n_s - 1) * (n_q - 1) * (n_g - 1)), scores)
    error = ms["sqg"]
    raw = {
        "s": (ms["s"] - ms["sq"] - ms["sg"] + error) / (n_q * n_g),
        "q": (ms["q"] - ms["sq"] - ms["qg"] + error) / (n_s * n_g),
        "g": (ms["g"] - ms["sg"] - ms["qg"] + error) / (n_s * n_q),
        "sq": (ms["sq"] - error) / n_g,
        "sg": (ms["sg"] - error) / n_q,
        "qg": (ms["qg"] - error) / n_s,
        "sqg": error,
    }
    return WithGraders(n_s, n_q, n_g, raw)


def kept_systems(scores: Floats, drop: float) -> NDArray[np.bool_]:
    """Which systems are left without the worst: mean at or above the `drop` quantile of the means.

    The quantile is interpolated (type 7); systems at it stay.
    """
    means = np.round(scores.mean(axis=1), 9)
    kept: NDArray[np.bool_] = means >= np.quantile(means, drop) - _ROUNDING
    return kept


# ---- coefficients with their intervals -----------------------------------------------------------


def erho2(study: Crossed, queries: float, level: float = 0.95) -> Estimate:
    """Erho2 with so many queries, with the interval of Feldt; limits below 0 are 0."""
    limits = (_feldt(study, side) for side in _sides(level))
    return _estimate(study, study.relative(queries), [_stepped(u, queries) for u in limits])


def phi(study: Crossed, queries: float, level: float = 0.95) -> Estimate:
    """Phi with so many queries, with the interval of Arteaga et al.; limits below 0 are 0."""
    limits = (_arteaga(study, side) for side in _sides(level))
    return _estimate(study, study.absolute(queries), [_stepped(u, queries) for u in limits])


def erho2_queries(study: Crossed, target: float, level: float = 0.95) -> Needed:
    """Queries for Erho2 of `target`; the upper limit of the coefficient gives the fewest."""
    lower, upper = (_inverse(_feldt(study, side), target) for side in _sides(level))
    return Needed(_needed(target, study.raw_s, study.ms_e), upper, lower)


def phi_queries(study: Crossed, target: float, level: float = 0.95) -> Needed:
    """Queries for Phi of `target`; the upper limit of the coefficient gives the fewest."""
    lower, upper = (_inverse(_arteaga(study, side), target) for side in _sides(level))
    error = max(0.0, study.raw_q) + study.ms_e
    return Needed(_needed(target, study.raw_s, error), upper, lower)


def bootstrap_erho2(
    exams: Within, draws: Floats, sizes: Sequence[tuple[float, float]], level: float = 0.95
) -> list[tuple[float, float] | None]:
    """Intervals of Erho2 for exams of (queries, items), by resampling whole queries.

    `draws` is [samples, queries], how often each query is drawn. Resampled queries differ less than
    queries do, and the means of systems over them more, which is taken out of the components as in
    Brennan (2007), *Unbiased estimates of variance components with bootstrap procedures*. None
    where the components are undefined in some resample.
    """
    n_s, n_q = exams.means.shape
    centred = exams.means - exams.means.mean()
    of_system = draws @ centred.T / n_q
    grand = of_system.mean(axis=1)
    of_query = centred.mean(axis=0)
    ss_s = n_q * ((of_system - grand[:, None]) ** 2).sum(axis=1)
    ss_q = n_s * (draws @ of_query**2 - n_q * grand**2)
    ss_e = draws @ (centred**2).sum(axis=0) - n_s * n_q * grand**2 - ss_s - ss_q
    ms_s, ms_e = ss_s / (n_s - 1), np.maximum(0.0, ss_e) / ((n_s - 1) * (n_q - 1))
    freedom = draws @ exams.freedom
    if not (freedom > 0).all():
        return [None for _ in sizes]
    ms_siq = draws @ exams.rest / (freedom * (n_s - 1))
    items = n_q / (draws @ (1 / exams.items))
    var_s = np.maximum(0.0, (ms_s - ms_e) / n_q - ms_e / (n_q - 1))
    var_sq = np.maximum(0.0, ms_e * n_q / (n_q - 1) - ms_siq / items)
    tails = [(1 - level) / 2, (1 + level) / 2]
    found: list[tuple[float, float] | None] = []
    for queries, of_query_items in sizes:
        error = (var_sq + ms_siq / of_query_items) / queries
        whole = var_s + error
        values = np.divide(var_s, whole, out=np.zeros(len(whole)), where=whole > 0)
        low, high = np.quantile(values, tails).tolist()
        found.append((low, high))
    return found


def _estimate(study: Crossed, value: float | None, limits: Sequence[float]) -> Estimate:
    if value is None:
        return undefined(ALL_ALIKE)
    if not study.ms_e:
        return Estimate(value, no_interval=NO_RESIDUAL)
    low, high = limits
    return Estimate(value, low, high)


def _sides(level: float) -> tuple[float, float]:
    """The probabilities of the quantiles of the lower and the upper limit."""
    return (1 + level) / 2, (1 - level) / 2


def _feldt(study: Crossed, p: float) -> float:
    """A limit of var_s / var_e: the reliability of one query over its unreliability."""
    if not study.ms_e:
        return math.inf
    freedom = study.systems - 1
    f = f_quantile(p, freedom, freedom * (study.queries - 1))
    return (study.ms_s / (study.ms_e * f) - 1) / study.queries


def _arteaga(study: Crossed, p: float) -> float:
    """The same for levels: a limit of var_s / (var_q + var_e)."""
    if not study.ms_e:
        return math.inf
    above, of_query = study.systems - 1, study.queries - 1
    chi = f_quantile(p, above, math.inf)
    f_e = f_quantile(p, above, above * of_query)
    f_q = f_quantile(p, above, of_query)
    s, q, e = study.ms_s, study.ms_q, study.ms_e
    over = s**2 - chi * s * e + (chi - f_e) * f_e * e**2
    under = above * chi * s * e + f_q * s * q
    if over <= 0:
        return 0.0
    r = over / under
    rho = study.systems * r / (study.systems * r + study.queries)
    return rho / (1 - rho)


def _stepped(ratio: float, queries: float) -> float:
    """The coefficient with so many queries, of the ratio of signal to error of one."""
    if ratio <= 0:
        return 0.0
    return 1.0 if math.isinf(ratio) else queries * ratio / (1 + queries * ratio)


def _inverse(ratio: float, target: float) -> int | None:
    if ratio <= 0:
        return None
    return max(1, _up(target / (ratio * (1 - target))))


def _needed(target: float, signal: float, error: float) -> int | None:
    if signal <= 0:
        return None
    return max(1, _up(target * error / (signal * (1 - target))))


def _up(number: float) -> int:
    """The next whole number, where rounding does not make it one more."""
    return math.ceil(number - 1e-9 * max(1.0, number))


def _share(signal: float, error: float) -> float | None:
    whole = max(0.0, signal) + error
    return max(0.0, signal) / whole if whole > 0 else None


def _positive(raw: dict[str, float]) -> dict[str, float]:
    return {name: max(0.0, value) for name, value in raw.items()}


def _settled(mean_square: float, scores: Floats) -> float:
    """The mean square, 0 where it is rounding alone."""
    return mean_square if mean_square > _ROUNDING * float(np.abs(scores).max()) ** 2 else 0.0
