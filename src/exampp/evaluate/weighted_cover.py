"""Cover with items weighted by what they tell of the systems at hand, and not as in the bank.

    Cover(weights='discrimination')   items with an item-rest correlation of 0.2 or more, no others
    Cover(weights='2pl')              every item by its discrimination in the two-parameter model,
                                      which orders systems as their abilities do

Items are pooled over queries: score = sum_i w_i X_i / sum_i w_i. The value of a query is its part
of that sum, times the number of queries, so that the mean over queries is the score. A query may
have more than 1.
Sources: `stats.item_analysis`, `stats.item_response`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.cover import Covers, Missing
from exampp.evaluate.exams import Subtopics
from exampp.evaluate.item_scores import ItemScores, item_scores
from exampp.evaluate.measure import Measure
from exampp.evaluate.policy import CoverPolicy
from exampp.evaluate.values import masked
from exampp.records.gradebook import Gradebook
from exampp.stats import item_response
from exampp.stats.item_analysis import is_constant
from exampp.stats.item_selection import CUT, kept_items

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightedCover:
    """The values at one threshold, and what is `said` of the weights."""

    threshold: int
    covers: Covers
    said: str


def with_plain(measure: Measure) -> Iterator[Measure]:
    """The measure, and the plain Cover beside it where its items are weighted otherwise."""
    yield measure
    if measure.weights:
        yield Measure("Cover", measure.at)


def weighted_cover(
    gradebook: Gradebook,
    measure: Measure,
    thresholds: Sequence[int],
    subtopics: Subtopics,
    missing: Missing,
    policy: CoverPolicy,
) -> tuple[WeightedCover, ...]:
    """The values of a weighted Cover at several thresholds.

    Raises:
        InputError: Cells that are missing are to be left out, or the policy is not ours, or the
            systems are too few for a model.
    """
    if missing != "zero" or policy.name != "exam":
        raise InputError(
            f"{measure} needs a value of every system on every item",
            mend="Leave out --missing and --compat",
        )
    k = measure.cutoff or 20
    return tuple(
        _weighted(gradebook, measure, item_scores(gradebook, one, k, subtopics=subtopics))
        for one in thresholds
    )


def _weighted(gradebook: Gradebook, measure: Measure, scores: ItemScores) -> WeightedCover:
    weights = _weights(measure, scores)
    total = float(weights.sum())
    queries = len(scores.queries)
    found = scores.of_queries(scores.credit * weights) * (queries / total if total else 0.0)
    rows = [scores.systems.index(system) for system in gradebook.systems]
    known = {query.query_id for query in gradebook.queries} & set(scores.queries)
    order = [scores.queries.index(q.query_id) for q in gradebook.queries if q.query_id in known]
    values = found[rows][:, order]
    counts = np.full(values.shape, total > 0 and gradebook.is_graded)
    none = np.zeros((1, len(order)))
    covers = Covers(masked(values, counts), masked(none, np.zeros(none.shape, np.bool_)))
    return WeightedCover(scores.min_rating, covers, _said(measure, weights))


def _weights(measure: Measure, scores: ItemScores) -> Floats:
    if measure.weights == "discrimination":
        return scores.shares() * kept_items(scores.columns, CUT)
    systems = len(scores.systems)
    if systems < item_response.FEWEST_SYSTEMS:
        raise InputError(
            f"{measure} needs {item_response.FEWEST_SYSTEMS} systems or more, not {systems}",
            mend="Leave it out, or take weights='discrimination'",
        )
    varying = ~is_constant(scores.credit)
    weights = np.zeros(len(scores.item_ids))
    if varying.any():
        weights[varying] = item_response.fit(scores.credit[:, varying]).discrimination
    return weights


def _said(measure: Measure, weights: Floats) -> str:
    kept = f"{int((weights > 0).sum())} of {len(weights)} items count"
    if not weights.any():
        return "undefined, because no item tells the systems apart as the rest of the exam does"
    if measure.weights == "discrimination":
        return f"{kept}, those with an item-rest correlation of {CUT:g} or more"
    return f"{kept}, each by its discrimination; the others are the same for all systems"
