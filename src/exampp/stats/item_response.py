"""Item response theory: the two-parameter logistic model, by marginal maximum likelihood.

P(X = 1) = 1 / (1 + exp(-a (theta - b))), theta ~ N(0, 1): a is how sharply an item tells systems
apart, b the ability at which half of them cover it. EM over a grid of abilities. Ten systems say
too little of hundreds of items for their likelihood alone to settle a and b: without priors the
answer is whatever bounds the program has.

Sources: Birnbaum 1968 (the model); Bock and Aitkin 1981 (EM); Mislevy 1986 (priors); Liu, Rubin and
Wu 1998 (the scale as a parameter of a step).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exampp.stats.calibration import sigmoid
from exampp.stats.estimate import Floats

FEWEST_SYSTEMS = 10
"""With fewer systems no model of items is fitted."""
GRID = np.linspace(-6, 6, 241)
"""Abilities: posteriors are narrow with hundreds of items, and a coarser rule misses them."""
LOG_A_VARIANCE = 0.25
"""a is lognormal: log a ~ N(0, 0.5 squared)."""
B_VARIANCE = 4.0
"""b ~ N(0, 2 squared)."""
_PLACINGS = 5
_HALVINGS = 5
_GAIN = 0.25
"""The share of what a step promises at its start that it must keep; half is kept at the top."""
_LARGEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class ItemResponseModel:
    """A fitted model; `discrimination` (a) and `difficulty` (b) are per item.

    `log_likelihood` is the marginal one, without the priors.
    """

    discrimination: Floats
    difficulty: Floats
    log_likelihood: float
    converged: bool
    iterations: int


@dataclass(frozen=True, slots=True)
class Abilities:
    """Per system: the mode of its posterior with its standard error, and mean and deviation."""

    mode: Floats
    error: Floats
    mean: Floats
    deviation: Floats


def fit_item_response(
    responses: ArrayLike,
    persons: ArrayLike | None = None,
    *,
    priors: bool = True,
    common: bool = False,
    tolerance: float = 1e-5,
    most: int = 5000,
) -> ItemResponseModel:
    """Fit the model to responses of 0 and 1, systems x items, none of the items constant.

    `persons` counts how many gave each row; `common` gives all items one a. Items with the same
    responses have the same a and b, and are fitted once.

    Raises:
        ValueError: An item is constant, or there are none.
    """
    table = np.asarray(responses, np.float64)
    counts = np.ones(len(table)) if persons is None else np.asarray(persons, np.float64)
    if not table.size or (table == table[0]).all(axis=0).any():
        raise ValueError("an item that all or none cover has no place on the scale")
    unique, first, size = np.unique(table, axis=1, return_inverse=True, return_counts=True)
    em = _Expectation(unique, counts, size.astype(np.float64), priors, common)
    parameters = em.start()
    converged = False
    iterations = 0
    while iterations < most and not converged:
        # Varadhan and Roland 2008: two steps of EM tell where many would lead
        one = em.step(parameters)
        two = em.step(one)
        moved, turned = one - parameters, (two - one) - (one - parameters)
        iterations += 2
        converged = bool(np.abs(two - one).max() < tolerance)
        parameters = two if converged else em.leap(parameters, moved, turned, two)
    log_a, b = parameters[:, first.ravel()]
    return ItemResponseModel(np.exp(log_a), b, em.log_likelihood(parameters), converged, iterations)


def abilities(responses: ArrayLike, model: ItemResponseModel) -> Abilities:
    """The abilities of systems, responses as in `fit`; new systems need no new fit."""
    table = np.asarray(responses, np.float64)
    a, b = model.discrimination, model.difficulty
    posterior = _posterior(table, np.log(a), b)[0]
    mean = posterior @ GRID
    deviation = np.sqrt(np.maximum(posterior @ GRID**2 - mean**2, 0))
    mode = mean.copy()
    for _ in range(50):
        p = sigmoid(a * (mode[:, None] - b))
        slope = (table - p) @ a - mode
        mode += np.clip(slope / (1 + (p * (1 - p)) @ a**2), -1, 1)
    p = sigmoid(a * (mode[:, None] - b))
    return Abilities(mode, 1 / np.sqrt(1 + (p * (1 - p)) @ a**2), mean, deviation)


@dataclass(frozen=True, slots=True)
class _Expectation:
    """EM on the distinct items: `size` tells how many share each column."""

    table: Floats
    counts: Floats
    size: Floats
    priors: bool
    common: bool

    def start(self) -> Floats:
        """log a = 0, and b where as many systems as did would pass: [2, items]."""
        share = (self.counts @ self.table + 0.5) / (self.counts.sum() + 1)
        return np.stack([np.zeros(len(share)), -1.2 * np.log(share / (1 - share))])

    def step(self, parameters: Floats) -> Floats:
        """One iteration: where systems stand, then the items that fit it best."""
        log_a, b = parameters
        weights = _posterior(self.table, log_a, b, self.size)[0] * self.counts[:, None]
        passed, there = self.table.T @ weights, weights.sum(axis=0)
        log_a, b = self._scored(log_a, b, passed, there)
        return self._placed(log_a, b, there)

    def _placed(self, log_a: Floats, b: Floats, there: Floats) -> Floats:
        """The same items on the scale on which systems and priors are likeliest, [2, items].

        Where all systems stand moves by a crumb in an ordinary step where there are many items;
        it is a parameter of its own here (Liu, Rubin and Wu 1998).
        """
        systems, first, second = there.sum(), there @ GRID, there @ GRID**2
        items = self.size.sum() if self.priors else 0.0
        shift = log_scale = 0.0
        for _ in range(_PLACINGS):
            narrow = np.exp(-2 * log_scale)
            spread = second - 2 * shift * first + shift**2 * systems
            by_shift, of_shift = narrow * (first - shift * systems), narrow * systems
            by_scale, of_scale = narrow * spread - systems, 2 * narrow * spread
            across = 2 * by_shift
            if self.priors:
                far = narrow / B_VARIANCE * ((b - shift) ** 2 @ self.size)
                pull = narrow / B_VARIANCE * ((b - shift) @ self.size)
                sharp = (log_a @ self.size + items * log_scale) / LOG_A_VARIANCE
                by_shift, of_shift = by_shift + pull, of_shift + narrow * items / B_VARIANCE
                by_scale += far - items - sharp
                of_scale += 2 * far + items / LOG_A_VARIANCE
                across += 2 * pull
            determinant = of_shift * of_scale - across**2
            if determinant <= 0:
                break
            shift += float(_short((of_scale * by_shift - across * by_scale) / determinant))
            log_scale += float(_short((of_shift * by_scale - across * by_shift) / determinant))
        return np.stack([log_a + log_scale, (b - shift) * np.exp(-log_scale)])

    def leap(self, before: Floats, moved: Floats, turned: Floats, after: Floats) -> Floats:
        """Where many steps would lead, if that is no worse than two."""
        size = float(np.sqrt((moved**2).sum() / max((turned**2).sum(), 1e-300)))
        least = self.goal(after)
        for _ in range(_HALVINGS):
            if size <= 1:
                break
            far: Floats = before + 2 * size * moved + size**2 * turned
            if np.abs(far).max() <= _FAR and self.goal(far) >= least:
                return far
            size /= 2
        return after

    def goal(self, parameters: Floats) -> float:
        """What EM makes as large as it can: the likelihood with the priors, on the log scale."""
        log_a, b = parameters
        found = self.log_likelihood(parameters)
        if self.priors:
            prior = -log_a - log_a**2 / (2 * LOG_A_VARIANCE) - b**2 / (2 * B_VARIANCE)
            found += float(prior @ self.size)
        return found

    def log_likelihood(self, parameters: Floats) -> float:
        """The marginal log likelihood of all systems."""
        log_a, b = parameters
        return float(_posterior(self.table, log_a, b, self.size)[1] @ self.counts)

    def _scored(
        self, log_a: Floats, b: Floats, passed: Floats, there: Floats
    ) -> tuple[Floats, Floats]:
        """One step of Fisher scoring of every item."""
        a = np.exp(log_a)
        eta = a[:, None] * (GRID - b[:, None])
        p = sigmoid(eta)
        apart = passed - there * p
        weight = there * p * (1 - p)
        by_a, by_b = (apart * eta).sum(axis=1), -a * apart.sum(axis=1)
        of_a = (weight * eta**2).sum(axis=1)
        of_b = a**2 * weight.sum(axis=1)
        across = -a * (weight * eta).sum(axis=1)
        if self.priors:
            by_a, of_a = by_a - 1 - log_a / LOG_A_VARIANCE, of_a + 1 / LOG_A_VARIANCE
            by_b, of_b = by_b - b / B_VARIANCE, of_b + 1 / B_VARIANCE
        if self.common:
            shared = np.full_like(by_a, (by_a @ self.size) / (of_a @ self.size))
            return log_a + _short(shared), b + _short(by_b / of_b)
        determinant = np.maximum(of_a * of_b - across**2, 1e-12)
        to_a = _short((of_b * by_a - across * by_b) / determinant)
        to_b = _short((of_a * by_b - across * by_a) / determinant)
        # a whole step may leap over the top, and the next one back, without end (Armijo 1966)
        promised = by_a * to_a + by_b * to_b
        now, share = self._expected(log_a, b, passed, there), np.ones_like(b)
        for _ in range(_HALVINGS):
            then = self._expected(log_a + share * to_a, b + share * to_b, passed, there)
            worse = then < now + _GAIN * share * promised - 1e-12 * np.abs(now)
            if not worse.any():
                break
            share[worse] /= 2
        return log_a + share * to_a, b + share * to_b

    def _expected(self, log_a: Floats, b: Floats, passed: Floats, there: Floats) -> Floats:
        """What a step of an item makes larger, [items]: its expected log likelihood with priors."""
        eta = np.exp(log_a)[:, None] * (GRID - b[:, None])
        found: Floats = (passed * eta - there * np.logaddexp(0, eta)).sum(axis=1)
        if self.priors:
            found -= log_a + log_a**2 / (2 * LOG_A_VARIANCE) + b**2 / (2 * B_VARIANCE)
        return found


_FAR = 20.0
"""No a or b of use lies beyond."""


def _short(step: Floats) -> Floats:
    return np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)


def _posterior(
    table: Floats, log_a: Floats, b: Floats, size: Floats | None = None
) -> tuple[Floats, Floats]:
    """([systems, grid] weights that sum to 1, the marginal log likelihood of every system)."""
    eta = np.exp(log_a)[:, None] * (GRID - b[:, None])
    none = np.logaddexp(0, eta)
    if size is not None:
        eta, none = eta * size[:, None], none * size[:, None]
    prior = -(GRID**2) / 2
    prior = prior - np.log(np.exp(prior).sum())
    joint = table @ eta - none.sum(axis=0) + prior
    most = joint.max(axis=1, keepdims=True)
    found = np.exp(joint - most)
    whole = found.sum(axis=1, keepdims=True)
    return found / whole, (most + np.log(whole))[:, 0]
