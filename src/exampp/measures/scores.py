"""Ranking measures on EXAM-Qrels, all systems, measures and thresholds in one pass.

A threshold is the relevance level of every measure that has one and leaves it open; measures
without one (nDCG, ERR, Judged) are computed once. A system that misses a query has 0 there; a query
without a passage at the threshold is 0 for all systems, as in trec_eval; a query without any label
is excluded. With subtopics, each of them is a separate query. Diversity measures use the items of
the bank as subtopics of equal weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from exampp.measures.exams import SubtopicChoice, resolve_subtopics
from exampp.measures.formulas import (
    LabelFormula,
    MeasureTask,
    declared_scores,
    label_formula,
    label_scores,
    provider_scores,
    trec_name,
    trec_scores,
)
from exampp.measures.names import Measure
from exampp.measures.qrels import Labelling, Labels, subtopic_rows
from exampp.measures.rankings import RankedExams, labels_of, qrels_of, rank_exams, unlabelled_shares
from exampp.measures.values import MeasureColumn, MeasuredSystems, answered_by_none, masked
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity
from exampp.sanitize import or_default


def score(
    gradebook: Gradebook,
    measures: Sequence[Measure],
    thresholds: Sequence[int],
    *,
    subtopics: SubtopicChoice = "auto",
    labelling: Labelling | None = None,
) -> MeasuredSystems:
    """Compute ranking measures of all systems; the columns go by measure, then threshold.

    Raises:
        InputError: A measure cannot be computed, or the subtopic mode is unknown.
    """
    labelling = or_default("labelling", labelling, Labelling)
    ranked = rank_exams(gradebook, resolve_subtopics(gradebook, subtopics))
    planned = list(_plan_tasks(measures, thresholds, labelling))
    tasks = [task for _, task in planned]
    labels = {
        name: labels_of(ranked, labelling, name, gradebook.grader.lowest)
        for name in dict.fromkeys(t.labels for t in tasks if t.measure.kind.labelled)
    }
    values = _compute(
        ranked, tasks, labels, _highest(labelling, gradebook.grader), gradebook.grader
    )
    shares = {k: unlabelled_shares(ranked, k) for k in {task.measure.cutoff for task in tasks}}
    columns = tuple(
        MeasureColumn(
            measure=task.measure,
            min_rating=min_rating,
            query_ids=ranked.ids,
            values=masked(table, ~np.isnan(table), added=task.measure.kind.added),
            ungraded=shares[task.measure.cutoff],
            missing_cells=(None,) * len(ranked.systems),
            without_relevant=_without_relevant(ranked, task, labels),
        )
        for (min_rating, task), table in zip(planned, values, strict=True)
    )
    answered = ranked.answered
    return MeasuredSystems(
        systems=ranked.systems,
        query_ids=ranked.ids,
        columns=columns,
        left_out=ranked.unlabelled,
        unanswered=tuple((~answered).sum(axis=0).tolist()),
        answered_by_none=answered_by_none(ranked.ids, answered.T),
    )


def _plan_tasks(
    measures: Sequence[Measure], thresholds: Sequence[int], labelling: Labelling
) -> Iterator[tuple[int | None, MeasureTask]]:
    """Return (threshold or None, task): each measure at each threshold that changes it."""
    for measure in measures:
        labelled = measure.kind.labelled
        relabelled = labelling.needs_threshold and labelled
        fixed = measure.param("rel")
        for threshold in thresholds if measure.takes_level or relabelled else (None,):
            level = fixed if isinstance(fixed, int) else None
            if measure.takes_level and threshold is not None:
                level = labelling.level(threshold) if labelled else threshold
            yield threshold, MeasureTask(measure, threshold if relabelled else None, level)


def _compute(
    ranked: RankedExams,
    tasks: Sequence[MeasureTask],
    labels: Mapping[int | None, tuple[Labels, ...]],
    highest: int,
    grader: GraderIdentity,
) -> list[NDArray[np.float64]]:
    """Compute values of every task, systems x queries; NaN if a query does not count."""
    qrels = {name: qrels_of(ranked, of_name) for name, of_name in labels.items()}
    values: dict[int, NDArray[np.float64]] = {}
    by_trec: list[int] = []
    for index, task in enumerate(tasks):
        formula = label_formula(task.measure)
        declared = task.measure.kind.formula
        if declared is not None:
            values[index] = declared_scores(declared, task, ranked, grader)
        elif formula is not None:
            values[index] = _by_formula(formula, task, ranked, labels[task.labels], highest)
        elif trec_name(task.measure) is not None:
            by_trec.append(index)
        else:
            values[index] = _by_provider(task, ranked, qrels.get(task.labels, {}))
    tables = trec_scores([tasks[index] for index in by_trec], ranked, qrels)
    values.update(zip(by_trec, tables, strict=True))
    return [values[index] for index in range(len(tasks))]


def _by_formula(
    formula: LabelFormula,
    task: MeasureTask,
    ranked: RankedExams,
    labels: tuple[Labels, ...],
    highest: int,
) -> NDArray[np.float64]:
    table = np.zeros((len(ranked.systems), len(ranked.exams)))
    for column, (one, of_exam) in enumerate(zip(ranked.exams, labels, strict=True)):
        top = len(one.exam.items) if highest < 0 else highest
        table[:, column] = label_scores(formula, task.measure, one, of_exam, task.level or 1, top)
    return table


def _by_provider(
    task: MeasureTask, ranked: RankedExams, qrels: dict[str, dict[str, int]]
) -> NDArray[np.float64]:
    measure = task.measure
    if measure.kind.subtopics:
        # The rows contain only items that reach the threshold; others have no effect.
        rows = (
            (row.query_id, row.passage_id, row.label, row.item_id)
            for one in ranked.exams
            for row in subtopic_rows(one.exam, task.level or 1)
            if row.label
        )
        return provider_scores(_without_level(measure), rows, ranked.runs(), ranked.ids)
    if task.level is not None:
        measure = measure.at_level(task.level)
    lines = (
        (query_id, passage, label, "0")
        for query_id, labels in qrels.items()
        for passage, label in labels.items()
    )
    return provider_scores(measure, lines, ranked.runs(), ranked.ids)


def _without_level(measure: Measure) -> Measure:
    """Return the measure without its level, for providers that read binary coverage."""
    if measure.name in _SHARE_AT_1 and measure.cutoff == 1:
        return Measure("StRecall", 1)
    return replace(measure, params=tuple(pair for pair in measure.params if pair[0] != "rel"))


_SHARE_AT_1 = ("alpha_DCG", "ERR_IA")
"""At a cutoff of 1 these are the share of items that the first passage covers; ndeval does not
divide by the number of items there.
"""


def _highest(labelling: Labelling, grader: GraderIdentity) -> int:
    """Return the highest possible label; -1: the number of items of the query."""
    if labelling.gains == "binary":
        return 1
    return -1 if labelling.kind == "count" else grader.highest


def _without_relevant(
    ranked: RankedExams, task: MeasureTask, labels: Mapping[int | None, tuple[Labels, ...]]
) -> int:
    if task.level is None or task.measure.kind.formula is not None:
        return 0
    if task.measure.kind.subtopics:
        best = [one.exam.query.ratings[:, one.exam.items].max() for one in ranked.exams]
    else:
        of_task = zip(ranked.exams, labels[task.labels], strict=True)
        best = [of_exam[one.graded].max() for one, of_exam in of_task]
    return sum(int(label) < task.level for label in best)
