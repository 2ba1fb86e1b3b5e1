"""What the expected scores of systems may be, given how they scored on some queries.

The correlation of measured scores with an official leaderboard is on average lower than that of
the expected scores: the noise of the queries swaps systems. Resampled queries add the same noise
once more, so that the usual bootstrap intervals of rank correlations (percentile, basic, BCa, with
or without Fisher's z) miss the correlation of the expected scores in most samples.

So the resampled scores are drawn to where the expected scores are likely to be (a hierarchical
Bayes bootstrap). How the scores rise with the official leaderboard (a curve over normal scores of
the ranks) is kept as resampled. What remains of every system, r = u + e, is its own deviation u, of
variance t, and noise e, whose variance s the resamples show: u is k r, with k = t / (t + s), and
spreads by the share sqrt(k) of the noise.

The few systems that an exam ranks quite differently must not say how far the others deviate. So u
follows Student's t, as a mixture of normal deviations, with a scale and a tail (normal, 2 degrees
of freedom, 1) that are not known: every draw takes both from their posterior, and then a variance
t for every system from its own. The curve weights systems by the precision they are expected to
have.

A curve never fits quite, and where the scores follow the official order all but exactly its misfit
would be taken for disorder. So the order itself is tested as well, whatever the curve: how often
noise alone leaves more beside the best fit that never falls than was seen (isotonic regression). So
often, but in half of the draws at most, the draws are put in the official order.

How often the intervals hold the truth is measured by `benchmarks/interval_coverage.py`, and what
was found stands in `docs/definitions.md`.

Sources: Efron and Morris 1975; Laird and Louis 1987 (empirical Bayes intervals by bootstrap);
Tiao and Tan 1965 (the prior of the scale, 1 / (t + s)); Lange, Little and Taylor 1989 (weights
from Student's t); Stephens 2017 (a mixture of normals over a grid as prior);
Robertson, Wright and Dykstra 1988, ch. 2 (tests of an order).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from exampp.analyze.isotonic import isotonic_rows
from exampp.analyze.rank_correlation import Correlations, Floats, average_ranks

FEWEST_SYSTEMS = 4
FEWEST_QUERIES = 2
"""With fewer there is no interval: nothing tells deviations from noise."""

STEEPEST = 4
SYSTEMS_A_BEND = 8
"""The degree of the curve: one for every so many systems, up to the fourth."""

MOST_IN_ORDER = 0.5
"""Of the draws, what at most is put in the official order: no test shows that it is the true one.

It keeps the lower end of the interval free where few systems tell little.
"""

LEAST_NOISE = 1e-6
"""Of the mean variance of the noise, what a system has at least: a weight must be finite."""

LEAST_SHARE = 1e-9
"""Of the variance of the remainders, what is at least their own: an order must remain."""

LEAST_LEFT = 0.1
"""Of its own variance, what at least remains of a system beside the curve."""

FITS = 5
"""How often the curve is fitted, with the weights that the fit before gave."""

SCALES = np.geomspace(1e-3, 9, 24)
"""Variances of the deviations, in units of that of the remainders."""

STEPS = 12
_SHARES = (np.arange(STEPS) + 0.5) / STEPS
TAILS = np.stack(
    [
        [1 / NormalDist().inv_cdf((1 + share) / 2) ** 2 for share in _SHARES],
        [-1 / math.log(share) for share in _SHARES],
        np.ones(STEPS),
    ]
)
"""Variances of the normal deviations that each tail is a mixture of: [tails, steps].

Quantiles of the inverse of a chi-squared variable over its degrees of freedom: 1 (a squared
normal), 2 (exponential), endless.
"""


def expected_scores(
    scores: Floats, resampled: Floats, official: Floats, queries: int, seed: int = 0
) -> Floats:
    """Draws of the expected scores, as many as there are resamples: [samples, systems].

    `scores` [systems] are means over `queries` queries, `resampled` [samples, systems] those over
    resampled ones, `official` [systems] is higher for better systems.

    Raises:
        ValueError: Fewer systems or queries than an interval needs.
    """
    n = len(scores)
    if n < FEWEST_SYSTEMS or queries < FEWEST_QUERIES:
        raise ValueError(f"{n} systems and {queries} queries are too few for an interval")
    random = np.random.default_rng([seed, 1])  # other numbers than those of the resamples
    noise = resampled - resampled.mean(axis=0)
    # A resample has the variance of n queries about their own mean.
    noise *= np.sqrt(queries / random.chisquare(queries - 1, (len(noise), 1)))
    fit = _fit(scores, noise, official)
    along = noise @ fit.curve.T
    own = _own_variances(fit, len(noise), random)
    total = own + fit.noise
    kept = np.divide(own, total, out=np.ones(own.shape), where=total > 0)
    drawn: Floats = (scores - fit.remainder) + along
    drawn += kept * fit.remainder + np.sqrt(kept) * (noise - along)
    in_order = random.random(len(noise)) < min(_order_holds(scores, noise, official), MOST_IN_ORDER)
    order = np.argsort(official, kind="stable")
    drawn[np.ix_(in_order, order)] = np.sort(drawn[in_order], axis=1)
    return drawn


def interval(found: Correlations, level: float) -> tuple[float, float] | None:
    """The central share `level` of the draws; None if one is undefined."""
    if not len(found.values) or not found.defined.all():
        return None
    low, high = np.quantile(found.values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class _Fit(NamedTuple):
    """A curve, what remains beside it, and what its deviations may be."""

    curve: Floats
    """The projection onto the curve, [systems, systems]."""
    remainder: Floats
    noise: Floats
    """Per system; as `spread`, of the size that it has where no curve is taken out."""
    spread: float
    """The mean square of the remainders."""
    variances: Floats
    """Of the deviations: [scales, tails, steps]."""
    posterior: Floats
    """Of scale and tail; sums to 1."""
    steps: Floats
    """How likely every system is in each step, up to a factor: [systems, scales, tails, steps]."""


def _fit(scores: Floats, noise: Floats, official: Floats) -> _Fit:
    """The curve with weights that follow from what is known about the deviations, and those."""
    covariance = noise.T @ noise / len(noise)
    design = _design(official)
    weights = np.ones(len(scores))
    for _ in range(FITS):
        fit = _weighted(scores, covariance, design, weights)
        if not fit.spread:
            break
        # what a system's remainder says about the curve: the mean of 1 / (t + s)
        precision = 1 / (fit.variances + fit.noise[:, None, None, None])
        given = (fit.steps * precision).sum(axis=3) / fit.steps.sum(axis=3)
        weights = (given * fit.posterior).sum(axis=(1, 2))
        weights /= weights.mean()
    return fit


def _weighted(scores: Floats, covariance: Floats, design: Floats, weights: Floats) -> _Fit:
    root = np.sqrt(weights)
    curve = (design @ np.linalg.pinv(design * root[:, None])) * root
    beside = np.eye(len(scores)) - curve
    remainder = beside @ scores
    left = np.maximum((beside**2).sum(axis=1), LEAST_LEFT)
    noise = np.einsum("ij,jk,ik->i", beside, covariance, beside, optimize=True) / left
    noise = np.maximum(noise, 0)
    squares = remainder**2 / left
    spread = float(squares.mean())
    freedom = len(scores) - round(float(np.trace(curve)))
    variances = spread * SCALES[:, None, None] * TAILS
    if not spread:
        nothing = np.zeros(())
        return _Fit(curve, remainder, noise, spread, variances, nothing, nothing)
    total = variances + noise[:, None, None, None]
    logs = -0.5 * (squares[:, None, None, None] / total + np.log(total))
    highest = logs.max(axis=3, keepdims=True)
    steps = np.exp(logs - highest)
    # the remainders of n systems say as much as `freedom` independent ones
    likelihood = (np.log(steps.mean(axis=3)) + highest[..., 0]).sum(axis=0)
    likelihood *= freedom / len(scores)
    scales = spread * SCALES
    prior = np.log(scales / (scales + noise.mean()))  # of the logarithm of the scale
    posterior = likelihood + prior[:, None]
    posterior = np.exp(posterior - posterior.max())
    posterior /= posterior.sum()
    return _Fit(curve, remainder, noise, spread, variances, posterior, steps)


def _own_variances(fit: _Fit, samples: int, random: np.random.Generator) -> Floats:
    """Variances of the deviations, [samples, systems]."""
    n = len(fit.remainder)
    if not fit.spread:
        return np.zeros((samples, n))
    picked = random.choice(fit.posterior.size, samples, p=fit.posterior.ravel())
    scale, tail = np.unravel_index(picked, fit.posterior.shape)
    likely = fit.steps.cumsum(axis=3)
    likely /= likely[..., -1:]
    own = np.empty((samples, n))
    for system in range(n):
        below = likely[system, scale, tail] < random.random((samples, 1))
        own[:, system] = fit.variances[scale, tail, np.minimum(below.sum(axis=1), STEPS - 1)]
    return np.maximum(own, LEAST_SHARE * fit.spread)


def _order_holds(scores: Floats, noise: Floats, official: Floats) -> float:
    """How often noise alone leaves as much beside the best fit in official order as was seen."""
    variance = (noise**2).mean(axis=0)
    if not variance.any():
        return 0.0
    # any order of systems that share an official rank is as good: that of their scores
    order = np.lexsort((scores, official))
    tied = [np.flatnonzero(official[order] == value) for value in np.unique(official)]
    variance = np.concatenate([np.full(len(of), variance[order][of].mean()) for of in tied])
    weights = 1 / np.maximum(variance, LEAST_NOISE * variance.mean())
    fit = isotonic_rows(scores[None, order], weights)
    again = fit + noise[:, order]
    for of in tied:
        again[:, of] = np.sort(again[:, of], axis=1)
    seen = weights @ (scores[order] - fit[0]) ** 2
    left = (again - isotonic_rows(again, weights)) ** 2 @ weights
    return float((left >= seen).mean())


def _design(official: Floats) -> Floats:
    """Powers of the normal scores of the official ranks, [systems, powers].

    With many systems the curve bends: leaderboards have a long tail of poor systems.
    """
    n = len(official)
    degree = min(STEEPEST, max(1, n // SYSTEMS_A_BEND))
    shares = (average_ranks(official[None])[0] - 0.375) / (n + 0.25)
    normal = np.array([NormalDist().inv_cdf(float(share)) for share in shares])
    return np.stack([normal**power for power in range(degree + 1)], axis=1)
