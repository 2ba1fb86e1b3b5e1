"""Nugget scores of TREC RAG: credit for supported and partially supported nuggets.

The scores are those of castorini's nuggetizer. `measures.cover` computes them in the pass of Cover.

Every item is a nugget that the first k passages support (credit 1), partially support (credit 1/2;
0 if the measure is `strict`) or do not support (0). With B the bank of a query,

    NuggetAll       mean credit of B
    NuggetVital     mean credit of the vital items of B
    NuggetWeighted  (credit of the vital items + half the credit of the okay ones) /
        (number of vital items + half the number of okay ones)

A rating of at least `--min-rating` is support, one of at least `partial` is partial support.
`partial` is one below the min rating by default; if that is the lowest rating of the scale, nothing
is partial. Item weights are ignored, except that items of weight 0 and items to avoid are excluded.
An item whose importance is neither vital nor okay counts only in NuggetAll. Without vital items,
NuggetVital is undefined.

Source: Pradeep et al. (2024), arXiv:2411.09607; castorini/nuggetizer, scripts/calculate_metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.names import Measure
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity
from exampp.records.items import OKAY, VITAL
from exampp.stats.estimate import Floats

PARTIAL = 0.5
"""The credit of partial support."""

NUGGET_SCORES = {
    "NuggetAll": (1.0, 1.0, 1.0),
    "NuggetVital": (1.0, 0.0, 0.0),
    "NuggetWeighted": (1.0, 0.5, 0.0),
}
"""The scores by name: weights of vital, okay and other items."""


def partial_from(measure: Measure, threshold: int, lowest: int) -> int | None:
    """Return the lowest rating that is partial support, or None."""
    if measure.param("strict") is True:
        return None
    parameter = measure.param("partial")
    partial = parameter if isinstance(parameter, int) else threshold - 1
    return partial if lowest < partial < threshold else None


def check_partial(measure: Measure, grader: GraderIdentity) -> None:
    """Raise InputError if the parameters contradict each other or the grader's scale."""
    partial = measure.param("partial")
    if measure.name not in NUGGET_SCORES or partial is None:
        return
    if measure.param("strict") is True:
        raise InputError(
            f"the measure {measure} is strict, so partial has no effect",
            hint="Remove strict or partial",
        )
    if not (isinstance(partial, int) and grader.lowest < partial <= grader.highest):
        raise InputError(
            f"invalid partial rating {partial} for ratings from {grader.lowest} to "
            f"{grader.highest}",
            hint=f"Use {grader.lowest + 1} to {grader.highest}",
        )


def credits_of(
    measure: Measure, best: NDArray[np.int16], thresholds: NDArray[np.int32], lowest: int
) -> Floats:
    """Return the credit of every item, [thresholds, systems, items], from its best ratings."""
    levels = []
    for threshold in thresholds.tolist():
        partial = partial_from(measure, threshold, lowest)
        half = 0.0 if partial is None else PARTIAL * (best >= partial)
        levels.append(np.where(best >= threshold, 1.0, half))
    return np.stack(levels) if levels else np.zeros((0, *best.shape))


def shares_of(measure: Measure, importances: Sequence[str | None]) -> Floats:
    """Return the share of each item in the score."""
    vital, okay, other = NUGGET_SCORES[measure.name]
    share = {VITAL: vital, OKAY: okay}
    return np.array([share.get(word or "", other) for word in importances], np.float64)


def describe_support(measures: Iterable[Measure], thresholds: Iterable[int], lowest: int) -> str:
    """Return a description of the ratings that support a nugget; empty without nugget scores."""
    scores = [one for one in measures if one.name in NUGGET_SCORES]
    if not scores:
        return ""
    sentences: dict[str, None] = {}
    for threshold in thresholds:
        partly = {partial_from(one, threshold, lowest) for one in scores} - {None}
        some = " and ".join(str(one) for one in sorted(filter(None, partly)))
        sentences[f"from {threshold}" + (f", partial support from {some}" if some else "")] = None
    return f"support of nuggets {'; '.join(sentences)}"


def importances_of(gradebook: Gradebook) -> list[str | None]:
    """Return the importance of every item of all queries."""
    return [
        word
        for query in gradebook.queries
        for word in query.importances or (None,) * len(query.item_ids)
    ]
