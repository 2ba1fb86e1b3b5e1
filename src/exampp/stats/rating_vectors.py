"""The ratings of a passage as numbers of one length, whatever the number of items of its query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exampp.records.gradebook import MISSING, Ratings

Floats = NDArray[np.float64]


def rating_vectors(ratings: Ratings, lowest: int, width: int) -> Floats:
    """Passages x (width + 1): the ratings of a passage best first, then their mean over all items.

    Missing ratings are the lowest. Fewer than `width` are filled up with that, of more the best
    count (in the mean all do).
    """
    known = np.where(ratings == MISSING, lowest, ratings).astype(np.float64)
    best = -np.sort(-known, axis=1)[:, :width]
    filled = np.full((len(known), width), float(lowest))
    filled[:, : best.shape[1]] = best
    mean = known.mean(axis=1) if known.shape[1] else np.full(len(known), float(lowest))
    return np.column_stack([filled, mean])
