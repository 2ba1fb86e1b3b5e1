"""Nugget scores of TREC RAG, as castorini's nuggetizer computes them: strict, vital, weighted, all.

Every item is a nugget that the first k passages support (credit 1), support in part (one half;
nothing where the measure is `strict`) or do not support (0). With B the bank of a query,

    NuggetAll       mean credit of B
    NuggetVital     mean credit of the vital items of B
    NuggetWeighted  (credit of the vital items + half the credit of the okay ones) /
                    (number of vital items + half the number of okay ones)

A rating of at least `--min-rating` is support, one of at least `partial` partial support: by
default one below the former, and where that is the lowest of the scale nothing is partial. Weights
of items play no part, but those of weight 0 are left out. An item whose importance is neither vital
nor okay counts in NuggetAll alone. Where nothing is vital, NuggetVital has no value.

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

Floats = NDArray[np.float64]
PARTIAL = 0.5
"""The credit of partial support."""

NUGGET_SCORES = {
    "NuggetAll": (1.0, 1.0, 1.0),
    "NuggetVital": (1.0, 0.0, 0.0),
    "NuggetWeighted": (1.0, 0.5, 0.0),
}
"""The scores by name: how much vital, okay and other items count."""


def partial_from(measure: Measure, threshold: int, lowest: int) -> int | None:
    """From which rating on support is partial; None where none is."""
    if measure.param("strict") is True:
        return None
    given = measure.param("partial")
    partial = given if isinstance(given, int) else threshold - 1
    return partial if lowest < partial < threshold else None


def check_partial(measure: Measure, grader: GraderIdentity) -> None:
    """Raise InputError where the parameters contradict each other, or the grader's scale."""
    given = measure.param("partial")
    if measure.name not in NUGGET_SCORES or given is None:
        return
    if measure.param("strict") is True:
        raise InputError(
            f"the measure {measure} is strict, so that partial support counts nothing",
            hint="Leave out strict or partial",
        )
    if not (isinstance(given, int) and grader.lowest < given <= grader.highest):
        raise InputError(
            f"the partial rating {given} makes no sense for ratings from {grader.lowest} to "
            f"{grader.highest}",
            hint=f"Choose from {grader.lowest + 1} to {grader.highest}",
        )


def credits_of(
    measure: Measure, best: NDArray[np.int16], thresholds: NDArray[np.int32], lowest: int
) -> Floats:
    """The credit of every item, [thresholds, systems, items], from `best`, systems x items."""
    found = []
    for threshold in thresholds.tolist():
        partial = partial_from(measure, threshold, lowest)
        half = 0.0 if partial is None else PARTIAL * (best >= partial)
        found.append(np.where(best >= threshold, 1.0, half))
    return np.stack(found) if found else np.zeros((0, *best.shape))


def shares_of(measure: Measure, importances: Sequence[str | None]) -> Floats:
    """How much each item counts."""
    vital, okay, other = NUGGET_SCORES[measure.name]
    share = {VITAL: vital, OKAY: okay}
    return np.array([share.get(word or "", other) for word in importances], np.float64)


def describe_support(measures: Iterable[Measure], thresholds: Iterable[int], lowest: int) -> str:
    """From which ratings on nuggets are supported, in words; empty where no score is of nuggets."""
    scores = [one for one in measures if one.name in NUGGET_SCORES]
    if not scores:
        return ""
    said: dict[str, None] = {}
    for threshold in thresholds:
        partly = {partial_from(one, threshold, lowest) for one in scores} - {None}
        some = " and ".join(str(one) for one in sorted(filter(None, partly)))
        said[f"from {threshold}" + (f", partial support from {some}" if some else "")] = None
    return f"support of nuggets {'; '.join(said)}"


def importances_of(gradebook: Gradebook) -> list[str | None]:
    """The importance of every item of all queries."""
    return [
        word
        for query in gradebook.queries
        for word in query.importances or (None,) * len(query.item_ids)
    ]
