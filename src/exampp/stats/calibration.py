"""From rating vectors to probabilities of ordinal labels: cumulative models, fitted and applied.

For every label c but the lowest a model says P(label >= c); a running minimum over c makes these
probabilities fall, and their differences are those of the labels. A label is given by cut points on
the expected label, apart from the probabilities: the most probable label would nearly always be the
most frequent one.

Sources: Frank and Hall, *A Simple Approach to Ordinal Classification* (ECML 2001); see `monotone`,
`logistic` and `cut_points`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exampp.records.calibration import CalibrationModel, LevelModel
from exampp.stats.logistic import fit_logistic, sigmoid
from exampp.stats.monotone import isotonic

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def fit_levels(
    model: CalibrationModel, vectors: Floats, means: Floats, labels: Labels, known: Sequence[int]
) -> tuple[LevelModel, ...]:
    """A model for every label of `known` (ascending) but the lowest.

    `vectors` are passages x features, for logistic models; `means` the mean ratings, for isotonic.
    """
    found = []
    for label in known[1:]:
        reached = (labels >= label).astype(np.float64)
        if model == "isotonic":
            places, values = isotonic(means, reached)
            # what never was in so many passages is rare, and not impossible
            values = np.clip(values, 1 / (len(means) + 2), 1 - 1 / (len(means) + 2))
            found.append(LevelModel(label, tuple(values.tolist()), tuple(places.tolist())))
        else:
            found.append(LevelModel(label, tuple(fit_logistic(vectors, reached).tolist())))
    return tuple(found)


def at_least(levels: Sequence[LevelModel], vectors: Floats, means: Floats) -> Floats:
    """P(label >= c), passages x levels, falling from left to right."""
    columns = [
        np.interp(means, level.places, level.values)
        if level.places
        else sigmoid(level.values[0] + vectors @ np.array(level.values[1:]))
        for level in levels
    ]
    found: Floats = np.minimum.accumulate(np.column_stack(columns), axis=1)
    return found


def expected_labels(reached: Floats, known: Sequence[int]) -> Floats:
    """The expected label of every passage, from P(label >= c)."""
    steps = np.diff(np.array(known, np.float64))
    found: Floats = known[0] + reached @ steps
    return found
