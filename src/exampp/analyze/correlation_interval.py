"""What the expected scores of systems may be, given how they scored on some queries.

The correlation of measured scores with an official leaderboard is on average lower than that of
the expected scores: the noise of the queries swaps systems. Resampled queries add the same noise
once more, so that the usual bootstrap intervals of rank correlations (percentile, basic, BCa, with
or without Fisher's z) miss the correlation of the expected scores in most samples.

So the resampled scores are drawn to where the expected scores are likely to be (an empirical Bayes
bootstrap). How the scores rise with the official leaderboard (a curve over normal scores of
the ranks) is kept as resampled. What remains of every system, r = u + e, is its own deviation u, of
variance t, and noise e, whose variance s the resamples show: t is the variance of the remainders
less that of the noise; u is k r, with k = t / (t + s), and spreads by the share sqrt(k) of the
noise. That t is itself estimated enters as the chi-squared distribution of the variance of the
remainders, and that the noise is, as that of n - 1 queries.

How often the intervals hold the truth is measured by `benchmarks/interval_coverage.py`.

Sources: Efron and Morris 1975; Laird and Louis 1987 (empirical Bayes intervals by bootstrap).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from exampp.analyze.rank_correlation import Correlations, Floats, average_ranks

FEWEST_SYSTEMS = 4
FEWEST_QUERIES = 2
"""With fewer there is no interval: nothing tells deviations from noise."""

STEEPEST = 2
SYSTEMS_A_BEND = 8
"""The degree of the curve: one for every so many systems, up to a parabola."""

LEAST_SHARE = 1e-9
"""Of the variance of the remainders, what is at least their own: an order must remain."""


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
    curve = _curve(official)
    remainder = scores - curve @ scores
    noise = resampled - resampled.mean(axis=0)
    # A resample has the variance of n queries about their own mean.
    noise *= np.sqrt(queries / random.chisquare(queries - 1, (len(noise), 1)))
    along = noise @ curve.T
    noise -= along
    variances = noise.var(axis=0)
    freedom = n - round(float(np.trace(curve)))
    total = float(remainder @ remainder)
    least = LEAST_SHARE * total / freedom
    own = total / random.chisquare(freedom, len(noise)) - variances.sum() / freedom
    own = np.maximum(own, least)[:, None]
    kept = np.divide(own, own + variances, out=np.ones(noise.shape), where=own + variances > 0)
    drawn: Floats = (scores - remainder) + along + kept * remainder + np.sqrt(kept) * noise
    return drawn


def interval(found: Correlations, level: float) -> tuple[float, float] | None:
    """The central share `level` of the draws; None if one is undefined."""
    if not len(found.values) or not found.defined.all():
        return None
    low, high = np.quantile(found.values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _curve(official: Floats) -> Floats:
    """The projection onto a curve over the normal scores of the official ranks.

    With many systems it bends (a parabola): leaderboards have a long tail of poor systems.
    """
    n = len(official)
    degree = min(STEEPEST, max(1, n // SYSTEMS_A_BEND))
    shares = (average_ranks(official[None])[0] - 0.375) / (n + 0.25)
    normal = np.array([NormalDist().inv_cdf(float(share)) for share in shares])
    design = np.stack([normal**power for power in range(degree + 1)], axis=1)
    projection: Floats = design @ np.linalg.pinv(design)
    return projection
