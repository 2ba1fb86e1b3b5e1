"""Reproducible sampling of units, and totals corrected by human labels.

Poisson sampling with permanent random numbers: name and seed determine a number in [0, 1) for each
unit, which is drawn if the number is below its inclusion probability. The sample does not depend on
the order of units, and a sample with larger probabilities contains the smaller one.

Sources: Brewer, Early & Joyce (1972), Selecting several samples from a single population;
Särndal, Swensson & Wretman (1992), Model assisted survey sampling, section 3.5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.stats.estimate import Floats, Indices, Ints
from exampp.stats.rank_sets import student_reach

FOLDS = 5
"""Folds for cross-fitting: predictions for a unit are learned from other folds."""
FLOOR = 0.2
"""Share of a sample that is uniform: every unit has a chance, and no weight exceeds 5 N/n."""
LEAST_VARIANCE = 0.05
"""Minimum uncertainty of a verdict, as an earlier calibration may be wrong."""

_PRN_DIGITS = 13
_FOLD_DIGITS = 8
_UNITS_AT_ONCE = 1 << 16
_NOTHING = 1e-12
"""Weights below this share of the largest count as 0."""

UnitName = tuple[str, str]
"""(query id, id of the passage or of the item)."""


def random_numbers(seed: int, units: Sequence[UnitName]) -> Floats:
    """Return the permanent random number of every unit, in [0, 1)."""
    scale = 16.0**_PRN_DIGITS
    names = (f"{seed}\t{query}\t{unit}" for query, unit in units)
    return np.array([_hash(name, _PRN_DIGITS) / scale for name in names], np.float64)


@lru_cache(maxsize=1)
def folds(seed: int, units: tuple[UnitName, ...]) -> Ints:
    """Return the fold of every unit, from 0 to FOLDS - 1; read-only.

    Cached for the current pool: another measure, or another call, reuses it.
    """
    names = (f"fold\t{seed}\t{query}\t{unit}" for query, unit in units)
    fold_of = np.array([_hash(name, _FOLD_DIGITS) % FOLDS for name in names], np.int64)
    fold_of.flags.writeable = False
    return fold_of


def _hash(text: str, digits: int) -> int:
    """Return the first hexadecimal digits of SHA-256, at most 16."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 64 - 4 * digits


def inclusion(weights: Floats | None, units: int, expected: float) -> Floats:
    """Return inclusion probabilities that add up to `expected`, or 1 each if that is all units.

    Without `weights` they are uniform. With non-negative `weights` they are min(1, (1 - FLOOR) c w
    + FLOOR n/N), with c such that they add up. They increase with `expected` for every unit.

    Raises:
        InputError: Less than one unit is expected, or there is none.
    """
    if units < 1:
        raise InputError("nothing to sample: no system returns a passage")
    if not expected >= 1:
        raise InputError(f"a sample needs 1 label or more, not {expected:g}")
    if expected >= units:
        return np.ones(units)
    even = np.full(units, expected / units)
    if weights is None or not (weights > 0).any():
        return even
    weights = weights / weights.max()
    weights[weights < _NOTHING] = 0.0

    def at(scale: float) -> Floats:
        return np.asarray(np.minimum(1.0, (1 - FLOOR) * scale * weights + FLOOR * even), np.float64)

    low, high = 0.0, 1.0
    moving = weights > 0
    still = int(np.count_nonzero(~moving))
    if expected - np.count_nonzero(moving) >= FLOOR * even[0] * still:
        # all units with weight are drawn, and the rest is spread evenly over the others
        rest = (expected - int(np.count_nonzero(moving))) / (still or 1)
        return np.where(moving, 1.0, rest)
    while at(high).sum() < expected:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if at(middle).sum() < expected else (low, middle)
    return at(high)


def influence(coefficients: Coefficients) -> Floats:
    """Return the effect of units on differences of systems: root mean square over pairs.

    For a single system, it is the effect on its score.
    """
    alone = len(coefficients.units) < 2
    effect = np.empty(coefficients.count)
    for start in range(0, coefficients.count, _UNITS_AT_ONCE):
        units = np.arange(start, min(start + _UNITS_AT_ONCE, coefficients.count))
        some = np.ascontiguousarray(coefficients.columns(units))
        effect[units] = np.abs(some).sum(axis=0) if alone else np.sqrt(2) * some.std(axis=0)
    return effect


def uncertainty(chances: Floats) -> Floats:
    """Return the standard deviation of verdicts with these probabilities, with a minimum."""
    return np.asarray(np.sqrt(np.maximum(chances * (1 - chances), LEAST_VARIANCE)), np.float64)


SHRINK = 5.0
"""Weight, in labels, of the overall mean when predicting for one bin."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Units drawn from a population: their indices and inclusion probabilities."""

    places: Indices
    pi: Floats

    @property
    def uncertain(self) -> Sample:
        """The units that could have been missed: only they tell of the error."""
        missed = self.pi < 1
        return Sample(self.places[missed], self.pi[missed])


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A, [systems, units]: the units of each system with a value other than 0, and these values.

    A system returns few of all units, so all values would take much more memory.
    """

    units: tuple[Indices, ...]
    values: tuple[Floats, ...]
    count: int

    @classmethod
    def of(cls, dense: Floats) -> Coefficients:
        """Return the coefficients of an array."""
        units = tuple(np.flatnonzero(row) for row in dense)
        values = tuple(row[at] for row, at in zip(dense, units, strict=True))
        return cls(units, values, dense.shape[1])

    def rows(self, rows: Indices) -> Coefficients:
        """Return the coefficients of some systems."""
        units = tuple(self.units[row] for row in rows)
        return Coefficients(units, tuple(self.values[row] for row in rows), self.count)

    def columns(self, units: Indices) -> Floats:
        """Return the coefficients of some units, [systems, units]."""
        # units first, which decides the order of additions
        dense = np.empty((len(self.units), len(units)), order="F")
        row = np.zeros(self.count)
        for number, (at, values) in enumerate(zip(self.units, self.values, strict=True)):
            row[at] = values
            dense[number] = row[units]
            row[at] = 0
        return dense

    def __matmul__(self, y: Floats) -> Floats:
        """Return the sum over units of A y, [systems]; y is [units] or [systems, units]."""
        sums, row = np.empty(len(self.units)), np.zeros(self.count)
        for number, (at, values) in enumerate(zip(self.units, self.values, strict=True)):
            row[at] = values * _row(y, number)[at]
            sums[number] = row.sum()
            row[at] = 0
        return sums


def _row(values: Floats, number: int) -> Floats:
    return values[number] if values.ndim > 1 else values


@dataclass(frozen=True, slots=True)
class Totals:
    """Scores of systems, [systems], and the covariance of their errors, [systems, systems].

    `residuals` are e_s / pi of the uncertain units of the sample, [systems, uncertain]; `parts`
    are theta by group of units (queries), [systems, groups].
    """

    scores: Floats
    covariance: Floats
    residuals: Floats
    parts: Floats


def totals(
    coefficients: Coefficients,
    predicted: Floats,
    sample: Sample,
    labels: Floats,
    groups: Indices,
    group_count: int,
) -> Totals:
    """Return the corrected totals.

    `predicted` is [units], or [systems, units]; `labels` the same of the sampled units. `groups`
    numbers the query of every unit.

    A score is a sum over units, sum_u A[s, u] y_u, with y known on a sample that was drawn with
    known inclusion probabilities pi, and predicted (f) everywhere:

        theta_s = sum_all A f + sum_sample A (y - f) / pi
        V[s, t] = sum_sample (1 - pi) / pi^2 e_s e_t        with e_s = A_s (y - f)

    It is unbiased for any f that does not use the label of the unit itself; f affects only the
    variance. If systems have separate verdicts on a unit (does any of its passages cover the
    item?), y and f are [systems, units].

    Sources: Särndal, Swensson & Wretman (1992), Model assisted survey sampling, sections 6.3 and
    3.5 (Poisson sampling); Chernozhukov et al. (2018), Double/debiased machine learning (cross-
    fitting); Carterette, Pavlu, Kanoulas, Aslam & Allan (2008), Evaluation over thousands of
    queries (pools).
    """
    sampled = np.full(coefficients.count, -1)
    sampled[sample.places] = np.arange(len(sample.places))
    uncertain = sample.pi < 1
    systems = len(coefficients.units)
    scores, parts = np.empty(systems), np.empty((systems, group_count))
    residuals = np.empty((systems, int(uncertain.sum())), order="F")
    weighed, drawn = np.zeros(coefficients.count), np.zeros(len(sample.places))
    for number, (at, values) in enumerate(
        zip(coefficients.units, coefficients.values, strict=True)
    ):
        f = _row(predicted, number)[at]
        place = sampled[at]
        own = np.flatnonzero(place >= 0)
        place = place[own]
        weighed[at] = values * f
        drawn[place] = values[own] * (_row(labels, number)[place] - f[own]) / sample.pi[place]
        # another order of additions would round some halves the other way
        scores[number] = weighed.sum() + drawn.cumsum()[-1:].sum()
        parts[number] = np.bincount(groups[at], weighed[at], group_count)
        parts[number] += np.bincount(groups[at[own]], drawn[place], group_count)
        residuals[number] = drawn[uncertain]
        weighed[at], drawn[place] = 0, 0
    spread = residuals * np.sqrt(1 - sample.pi[uncertain])
    return Totals(scores, spread @ spread.T, residuals, parts)


ScoreLimits = tuple[Floats, Floats]
"""Lower and upper confidence limits of scores, [systems]; NaN where there are none."""


class DrawnUnits(NamedTuple):
    """Evidence in a sample on the error of each score, [systems].

    `units` counts the drawn units with an effect on a system and a probability below 1. `low` and
    `high` are the variance added by one more such unit, judged not relevant and relevant: a small
    sample may contain only one kind.
    """

    units: Ints
    low: Floats
    high: Floats


def drawn_units(coefficients: Coefficients, predicted: Floats, sample: Sample) -> DrawnUnits:
    """Return the evidence of the drawn units on the error of each score.

    `predicted` is [units], or [systems, units].
    """
    missed = sample.uncertain
    values = coefficients.columns(missed.places)
    own = values > 0
    units = own.sum(axis=1)
    chance: Floats = np.where(own, (1 - missed.pi) / missed.pi**2, 0.0)
    variance = chance * values**2 / np.maximum(units, 1)[:, None]
    f = predicted[..., missed.places]
    return DrawnUnits(units, (variance * f**2).sum(axis=1), (variance * (1 - f) ** 2).sum(axis=1))


def pool_limits(one: Totals, pi: Floats, drawn: DrawnUnits, level: float) -> ScoreLimits:
    """Return limits of scores over a pool; `pi` are the probabilities of the uncertain units.

    Uses Student's t with the variance and degrees of freedom of one more drawn unit. The degrees of
    freedom are 2 (sum v)^2 / sum v^2 for unequal variances v, because few relevant units, or the
    first ranks of RBP, dominate the variance.
    """
    each = one.residuals**2 * (1 - pi)
    reaches = []
    for extra in (drawn.low, drawn.high):
        variance = each.sum(axis=1) + extra
        squares = (each**2).sum(axis=1) + extra**2
        most = drawn.units.astype(np.float64) - 1
        reaches.append(_reach(variance, squares, most, level) * np.sqrt(variance))
    return one.scores - reaches[0], one.scores + reaches[1]


def query_limits(one: Totals, drawn: DrawnUnits, level: float) -> ScoreLimits:
    """Return limits of scores for similar queries; NaN if a score is outside 0 and 1.

    Uses Student's t on the logit scale, with the variance added by one more drawn unit, and degrees
    of freedom reduced for unequal squares of the queries.
    """
    queries = one.parts.shape[1]
    values = one.parts * queries
    squares = (values - values.mean(axis=1, keepdims=True)) ** 2
    variance = squares.sum(axis=1) / (queries - 1) / queries
    most = np.full(len(values), queries - 1.0)
    t = _reach(squares.sum(axis=1), (squares**2).sum(axis=1), most, level)
    inside = (one.scores > 0) & (one.scores < 1)
    m = np.where(inside, one.scores, 0.5)
    ends = []
    for sign, extra in ((-1, drawn.low), (1, drawn.high)):
        reach = t * np.sqrt(variance + extra) / (m * (1 - m))
        end = (1 + np.tanh((np.log(m / (1 - m)) + sign * reach) / 2)) / 2
        ends.append(np.where(inside, end, np.nan))
    return ends[0], ends[1]


def _reach(sums: Floats, squares: Floats, most: Floats, level: float) -> Floats:
    """Return Student's t for 2 sums^2 / squares degrees of freedom, between 1 and `most`."""
    freedom = 2 * np.divide(sums**2, squares, out=np.ones(len(sums)), where=squares > 0)
    return student_reach(level, np.maximum(np.floor(np.minimum(freedom, most)), 1.0))


def calibrated_probabilities(bins: Ints, fold: Ints, sample: Sample, labels: Floats) -> Floats:
    """Predict human verdicts on every unit from its bin, with cross-fitting.

    f(x) = (n_x mean_x + 5 mean) / (n_x + 5), over labels in other folds, with weights 1/pi rescaled
    to add up to their number. `bins` is [units] or [systems, units] of whole numbers from 0 on;
    `labels` are aligned with it and with the sample. Without labels in other folds the prediction
    is 0.
    """
    bins = np.atleast_2d(bins)
    labels = np.atleast_2d(labels)
    size = int(bins.max(initial=0)) + 1
    predicted = np.zeros(bins.shape)
    of_sample = fold[sample.places]
    sampled_bins = bins[:, sample.places]
    for one in np.unique(fold).tolist():
        others = of_sample != one
        if not others.any():
            continue
        weights = 1 / sample.pi[others]
        weights *= len(weights) / weights.sum()
        # a unit counts once for several systems
        each = np.broadcast_to(weights / len(bins), (len(bins), len(weights)))
        known_labels = labels[:, others]
        here = sampled_bins[:, others]
        counts = np.bincount(here.ravel(), each.ravel(), size)
        sums = np.bincount(here.ravel(), (each * known_labels).ravel(), size)
        mean = float((each * known_labels).sum() / each.sum())
        table = (sums + SHRINK * mean) / (counts + SHRINK)
        inside = fold == one
        predicted[:, inside] = table[bins[:, inside]]
    return predicted if len(predicted) > 1 else predicted[0]
