"""Measures that trec_eval computes, all of them over all systems in few passes.

pytrec_eval is called as ir_measures calls it, one evaluator per relevance level, but without the
bookkeeping per value, which would take most of the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.exam_sheets import Sheets
from exampp.evaluate.measure import Measure

Qrels = dict[str, dict[str, int]]

_PLAIN: Mapping[str, str] = {
    "AP": "map",
    "RR": "recip_rank",
    "nDCG": "ndcg",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetAP": "set_map",
    "infAP": "infAP",
    "NumQ": "num_q",
    "NumRet": "num_ret",
    "NumRel": "num_rel",
    "NumRelRet": "num_rel_ret",
}
_CUT: Mapping[str, str] = {
    "P": "P",
    "R": "recall",
    "AP": "map_cut",
    "nDCG": "ndcg_cut",
    "Success": "success",
}


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """One measure at one relevance level: `level` None if it has none.

    `labels` names the labels that it reads: the threshold that they were made with.
    """

    measure: Measure
    labels: int | None
    level: int | None


def trec_name(measure: Measure) -> str | None:
    """What trec_eval calls a measure, None where it does not compute it."""
    if measure.param("dcg") not in (None, "log2"):
        return None
    if measure.name == "IPrec":
        return f"iprec_at_recall_{measure.at:.2f}"
    if measure.name == "SetP" and measure.param("relative"):
        return "set_relative_P"
    if measure.name == "NumRet" and measure.param("rel") is not None:
        return "num_rel_ret"
    # The reciprocal rank is cut by ourselves, in _cut_rank.
    if measure.cutoff is not None and measure.name != "RR":
        cut = _CUT.get(measure.name)
        return None if cut is None else f"{cut}_{measure.cutoff}"
    return _PLAIN.get(measure.name)


def trec_scores(
    tasks: Sequence[MeasureTask], sheets: Sheets, qrels: Mapping[int | None, Qrels]
) -> list[NDArray[np.float64]]:
    """Values of all tasks, each systems x queries; 0 where a system returned nothing.

    `qrels` are the labels by their name.
    """
    import pytrec_eval

    query_ids = sheets.ids
    values = [np.zeros((len(sheets.systems), len(query_ids))) for _ in tasks]
    for key, members in _invocations(tasks).items():
        labels = qrels[key.labels]
        if key.gains is not None:
            labels = _with_gains(labels, dict(key.gains))
        names = {index: trec_name(tasks[index].measure) or "" for index in members}
        evaluator = pytrec_eval.RelevanceEvaluator(
            labels, set(names.values()), key.level, key.judged_only
        )
        for system, run in enumerate(sheets.runs()):
            found = evaluator.evaluate(run)
            for column, query_id in enumerate(query_ids):
                if query_id in found:
                    of_query = found[query_id]
                    for index, name in names.items():
                        values[index][system, column] = of_query[name]
    return [_cut_rank(task.measure, table) for task, table in zip(tasks, values, strict=True)]


@dataclass(frozen=True, slots=True)
class _Invocation:
    labels: int | None
    level: int
    judged_only: bool
    gains: tuple[tuple[int, int], ...] | None


def _invocations(tasks: Sequence[MeasureTask]) -> dict[_Invocation, list[int]]:
    """Tasks by the evaluator that computes them; those without a level join any that fits."""
    members: dict[_Invocation, list[int]] = defaultdict(list)
    levels: dict[tuple[object, ...], int] = {}
    for index in sorted(range(len(tasks)), key=lambda index: tasks[index].level is None):
        task = tasks[index]
        judged_only = bool(task.measure.param("judged_only"))
        gains = cast("tuple[tuple[int, int], ...] | None", task.measure.param("gains"))
        family = (task.labels, judged_only, gains)
        level = levels.get(family, 1) if task.level is None else task.level
        levels.setdefault(family, level)
        members[_Invocation(task.labels, level, judged_only, gains)].append(index)
    return members


def _with_gains(qrels: Qrels, gains: Mapping[int, int]) -> Qrels:
    return {
        query_id: {passage: gains.get(label, label) for passage, label in labels.items()}
        for query_id, labels in qrels.items()
    }


def _cut_rank(measure: Measure, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if measure.name != "RR" or measure.cutoff is None:
        return values
    return np.where(values >= 1 / measure.cutoff, values, 0.0)
