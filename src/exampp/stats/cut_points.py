"""Cut points that make labels out of a score so that Cohen's kappa with people's labels is highest.

kappa = 1 - (1 - po) / (1 - pe). For a given value of kappa the sum po - (1 - kappa) pe is one of
the bands between cut points, so that the best bands are found by going through the scores once
(dynamic programming); kappa is then raised until nothing is better.

Source: Dinkelbach, *On Nonlinear Fractional Programming* (Management Science 13, 1967).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def best_cut_points(scores: Floats, labels: NDArray[np.intp], size: int) -> Floats:
    """size - 1 ascending cut points: a score of at least the c-th has at least the label c.

    `labels` are 0 to size - 1. A label that only lowers kappa gets no scores: its cut point is that
    of the next one; where there is none left it is infinite.
    """
    places, group = np.unique(scores, return_inverse=True)
    counts = np.zeros((len(places), size))
    np.add.at(counts, (group, labels), 1)
    total = counts.sum()
    below = np.vstack([np.zeros(size), np.cumsum(counts, axis=0)]) / total
    known, below_all = below[-1], below.sum(axis=1)
    value, best = -np.inf, np.zeros(size - 1, np.intp)
    tried = 0.0
    while tried > value + 1e-12:
        value = tried
        best = _bands(below - (1 - value) * known * below_all[:, None])
        tried = _kappa(below, known, below_all, best)
    # between two scores, so that a score which differs by rounding stays on its side
    edges = np.concatenate([[-np.inf], (places[1:] + places[:-1]) / 2, [np.inf]])
    found: Floats = edges[best]
    return found


def labels_by(scores: Floats, cut_points: Floats) -> NDArray[np.intp]:
    """The label of every score: how many cut points it reaches."""
    found: NDArray[np.intp] = np.searchsorted(np.asarray(cut_points), scores, side="right")
    return found


def _bands(gains: Floats) -> NDArray[np.intp]:
    """Where to cut, so that the sum over c of gains[end of c, c] - gains[start of c, c] is most."""
    rows, size = gains.shape
    # value[i]: the best of bands 0 .. c - 1, band c beginning at i
    value = gains[:, 0] - gains[0, 0]
    back: list[NDArray[np.intp]] = []
    for c in range(1, size):
        start = value - gains[:, c]
        best = np.maximum.accumulate(start)
        first = np.where(np.append(True, start[1:] > best[:-1]), np.arange(rows), 0)
        back.append(np.maximum.accumulate(first))
        value = best + gains[:, c]
    end = rows - 1
    cuts: list[int] = []
    for places in reversed(back):
        end = int(places[end])
        cuts.append(end)
    return np.array(cuts[::-1], np.intp)


def _kappa(below: Floats, known: Floats, below_all: Floats, cuts: NDArray[np.intp]) -> float:
    ends = np.concatenate([[0], cuts, [len(below) - 1]])
    labels = np.arange(below.shape[1])
    agreed = float((below[ends[1:], labels] - below[ends[:-1], labels]).sum())
    chance = float((known * (below_all[ends[1:]] - below_all[ends[:-1]])).sum())
    return 0.0 if chance >= 1 else (agreed - chance) / (1 - chance)
