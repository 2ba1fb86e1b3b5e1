"""Measures computed here.

Their provider is no part of an installation, or assumes a scale, or takes much longer (P).

P        relevant among the first k passages, over k, as trec_eval does
Judged   share of the first k passages that have a label
RBP      (1 - p) * sum of p^(i-1) over the ranks i of relevant passages; p = 0.8
ERR      expected reciprocal rank; a label g stops the reader with (2^g - 1) / 2^highest, the
         highest label of the scale (gdeval takes it to be 4 and refuses higher labels)
nDCG(dcg='exp-log2')   gains 2^g - 1 over log2(rank + 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.exam_sheets import ExamSheet
from exampp.evaluate.measure import Measure
from exampp.evaluate.qrels import Labels

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Labels along the rankings, systems x ranks (0 beyond the end of one).

    `judged` tells which passages have a label, `lengths` how many each system returned,
    `labels` are those of all passages that have one.
    """

    along: NDArray[np.float64]
    judged: NDArray[np.bool_]
    lengths: NDArray[np.intp]
    labels: NDArray[np.float64]


Formula = Callable[[Measure, _Ranked, int, int], Floats]


def own_formula(measure: Measure) -> Formula | None:
    """How it is computed here, None where it is not."""
    if measure.name == "nDCG":
        own = measure.param("dcg") == "exp-log2" and len(measure.params) == 1
        return _exponential_ndcg if own else None
    if measure.name == "P" and measure.param("judged_only"):
        return None
    return _FORMULAS.get(measure.name)


def own_scores(
    formula: Formula, measure: Measure, sheet: ExamSheet, labels: Labels, level: int, highest: int
) -> Floats:
    """The values of all systems on one query; 0 where a system returned nothing."""
    depth = measure.cutoff
    sat = sheet.sat
    read = slice(None) if depth is None else sat.position < depth
    system, position, passages = sat.system[read], sat.position[read], sat.passages[read]
    shape = (len(sat.answered), int(position.max(initial=-1)) + 1)
    along = np.zeros(shape)
    along[system, position] = labels[passages]
    judged = np.zeros(shape, np.bool_)
    judged[system, position] = sheet.graded[passages]
    lengths = np.bincount(system, minlength=shape[0])
    ranked = _Ranked(along, judged, lengths, labels[sheet.graded].astype(np.float64))
    return formula(measure, ranked, level, highest)


def _judged(_measure: Measure, ranked: _Ranked, _level: int, _highest: int) -> Floats:
    share: Floats = ranked.judged.sum(axis=1) / np.maximum(ranked.lengths, 1)
    return share


def _precision(measure: Measure, ranked: _Ranked, level: int, _highest: int) -> Floats:
    share: Floats = (ranked.judged & (ranked.along >= level)).sum(axis=1) / (measure.cutoff or 1)
    return share


def _rbp(measure: Measure, ranked: _Ranked, level: int, _highest: int) -> Floats:
    p = measure.param("p")
    p = p if isinstance(p, float) else 0.8
    relevant = ranked.judged & (ranked.along >= level)
    value: Floats = relevant @ ((1 - p) * p ** np.arange(relevant.shape[1]))
    return value


def _err(_measure: Measure, ranked: _Ranked, _level: int, highest: int) -> Floats:
    stops = (2 ** np.maximum(ranked.along, 0) - 1) / 2.0**highest
    reached = np.ones_like(stops)
    reached[:, 1:] = np.cumprod(1 - stops, axis=1)[:, :-1]
    value: Floats = (stops * reached) @ (1 / np.arange(1, stops.shape[1] + 1))
    return value


def _exponential_ndcg(measure: Measure, ranked: _Ranked, _level: int, _highest: int) -> Floats:
    ideal = np.sort(ranked.labels)[::-1][: measure.cutoff]
    best = _dcg(ideal[None, :])[0]
    return _dcg(ranked.along) / best if best > 0 else np.zeros(len(ranked.along))


def _dcg(labels: Floats) -> Floats:
    gains = 2 ** np.maximum(labels, 0) - 1
    total: Floats = gains @ (1 / np.log2(np.arange(2, labels.shape[1] + 2)))
    return total


_FORMULAS: Mapping[str, Formula] = {
    "Judged": _judged,
    "P": _precision,
    "RBP": _rbp,
    "ERR": _err,
}
