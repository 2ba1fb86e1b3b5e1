"""How good probabilities are: Brier score, log loss, AUC, reliability in bins, and their ECE.

All are of predicted probabilities p of an event and y, 1 where it was and 0 where it was not, with
a weight per observation: the number of times that its query was drawn.

Sources: Brier, *Verification of Forecasts Expressed in Terms of Probability* (1950); Bradley, *The
Use of the Area under the ROC Curve* (1997); DeGroot and Fienberg, *The Comparison and Evaluation of
Forecasters* (1983), for reliability; Naeini, Cooper and Hauskrecht, *Obtaining Well Calibrated
Probabilities Using Bayesian Binning* (AAAI 2015), for the expected calibration error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Observations of similar probability: their mean prediction, and how often the event was."""

    predicted: float
    observed: float
    size: int


def equal_bins(p: Floats, bins: int = BINS) -> Indices:
    """The bin of every observation, from 0: as equal in size as may be, equal p together."""
    _, group = np.unique(p, return_inverse=True)
    counts = np.bincount(group)
    # by the middle of the observations that share a probability
    middle = np.cumsum(counts) - counts / 2
    own = np.minimum((middle * bins / len(p)).astype(np.intp), bins - 1)
    return np.unique(own, return_inverse=True)[1].astype(np.intp)[group]


def reliability(p: Floats, y: Floats, bins: int = BINS) -> tuple[Bin, ...]:
    """The reliability curve, bins in ascending order."""
    own = equal_bins(p, bins)
    size = np.bincount(own)
    predicted, observed = np.bincount(own, p) / size, np.bincount(own, y) / size
    return tuple(
        Bin(a, b, n)
        for a, b, n in zip(predicted.tolist(), observed.tolist(), size.tolist(), strict=True)
    )


class Scorer:
    """Scores of one set of predictions, for any weights of its queries.

    `groups` is the query of every observation, from 0. A score of weights [queries] is NaN where
    it is undefined: the AUC of one class, the log loss of an impossible event that happened.
    """

    def __init__(self, p: Floats, y: Floats, groups: Indices, queries: int) -> None:
        self._queries, self._groups, self._y = queries, groups, y
        self._sizes = self._sum(np.ones(len(p)))
        self._brier = self._sum((p - y) ** 2)
        with np.errstate(divide="ignore"):
            loss = -np.log(np.where(y > 0, p, 1 - p))
        self._loss = self._sum(loss)
        own = equal_bins(p)
        cells = groups * (own.max() + 1) + own
        gap = np.bincount(cells, p - y, queries * (int(own.max()) + 1))
        self._gaps = gap.reshape(queries, -1)
        order = np.argsort(p, kind="stable")
        self._order, ordered = order, p[order]
        self._ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))

    def _sum(self, values: Floats) -> Floats:
        found: Floats = np.bincount(self._groups, values, self._queries).astype(np.float64)
        return found

    def brier(self, weights: Floats) -> float:
        """Mean squared difference of probability and event."""
        return float(weights @ self._brier / (weights @ self._sizes))

    def log_loss(self, weights: Floats) -> float:
        """Mean negative logarithm of the probability of what was."""
        drawn = weights > 0
        total = float(weights[drawn] @ self._loss[drawn])
        return total / float(weights @ self._sizes) if np.isfinite(total) else np.nan

    def ece(self, weights: Floats) -> float:
        """Expected calibration error: mean over bins of |predicted - observed|, by size."""
        return float(np.abs(weights @ self._gaps).sum() / (weights @ self._sizes))

    def auc(self, weights: Floats) -> float:
        """The probability that an event has a higher p than a non-event; ties are one half."""
        w = weights[self._groups][self._order]
        event = w * self._y[self._order]
        events, all_ = np.cumsum(event)[self._ends], np.cumsum(w)[self._ends]
        others = all_ - events
        if not events[-1] or not others[-1]:
            return np.nan
        # twice the area, by trapezoids over the groups of equal p
        before = np.append(0.0, others[:-1])
        own = np.diff(np.append(0.0, events))
        return float((own * (others + before)).sum() / (2 * events[-1] * others[-1]))


SCORES = {
    "log loss": Scorer.log_loss,
    "Brier": Scorer.brier,
    "AUC": Scorer.auc,
    "ECE": Scorer.ece,
}
