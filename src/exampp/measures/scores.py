"""Ranking measures on EXAM-Qrels, all systems, measures and thresholds in one pass.

A threshold is the relevance level of every measure that has one and leaves it open; measures
without one (nDCG, ERR, Judged) are computed once. A system that misses a query has 0 there; a
query of which no passage reaches the threshold is 0 for everybody, as in trec_eval; a query
without any label is left out. With subtopics each of them is a query of its own.

Diversity measures take the items of the bank as subtopics, all alike; those of weight 0 are left
out, and so is a query that has no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exampp.measures.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.measures.formulas import (
    LabelFormula,
    MeasureTask,
    declared_scores,
    own_formula,
    own_scores,
    provider_scores,
    trec_name,
    trec_scores,
)
from exampp.measures.names import Measure
from exampp.measures.qrels import Labelling, Labels, subtopic_rows, weighted_items
from exampp.measures.rankings import RankedExams, labels_of, qrels_of, rank_exams, unlabelled_shares
from exampp.measures.values import Values, masked
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.graders import GraderIdentity
from exampp.sanitize import or_default


@dataclass(frozen=True, slots=True)
class Score:
    """One measure at one threshold (None: it does not depend on it).

    `values` is systems x queries, `unjudged` per system the share without a label among the
    passages that the measure reads, `hopeless` the number of queries of which no passage is
    relevant (0 for measures without a relevance level).
    """

    measure: Measure
    min_rating: int | None
    values: Values
    unjudged: tuple[float | None, ...]
    hopeless: int


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """Scores of `systems` on `query_ids`; `unlabelled` queries are left out.

    `unanswered` is per system the number of queries without a passage of it; `answered_by_none` are
    those without a passage of any system.
    """

    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    subtopics: Subtopics
    scores: tuple[Score, ...]
    unlabelled: tuple[str, ...]
    unanswered: tuple[int, ...]
    answered_by_none: tuple[str, ...]


def score(
    gradebook: Gradebook,
    measures: Sequence[Measure],
    thresholds: Sequence[int],
    *,
    subtopics: SubtopicChoice = "auto",
    labelling: Labelling | None = None,
) -> ScoreResult:
    """Ranking measures of all systems; the scores go by measure, then threshold.

    Raises:
        InputError: A measure cannot be computed, or there is no such subtopic mode.
    """
    labelling = or_default("labelling", labelling, Labelling)
    mode = resolve_subtopics(gradebook, subtopics)
    sheets = rank_exams(gradebook, mode)
    answered = sheets.answered
    asked = list(_plan_tasks(measures, thresholds, labelling))
    tasks = [task for _, task in asked]
    labels = {
        name: labels_of(sheets, labelling, name, gradebook.grader.lowest)
        for name in dict.fromkeys(t.labels for t in tasks if t.measure.kind.labelled)
    }
    highest = _highest(labelling, gradebook.grader)
    values = _compute(sheets, tasks, labels, highest, gradebook.grader)
    shares = {k: unlabelled_shares(sheets, k) for k in {task.measure.cutoff for task in tasks}}
    scores = tuple(
        Score(
            measure=task.measure,
            min_rating=min_rating,
            values=masked(
                table,
                _counted(sheets, task, table),
                added=task.measure.kind.added,
            ),
            unjudged=shares[task.measure.cutoff],
            hopeless=_hopeless(sheets, task, labels),
        )
        for (min_rating, task), table in zip(asked, values, strict=True)
    )
    return ScoreResult(
        systems=sheets.systems,
        query_ids=sheets.ids,
        subtopics=mode,
        scores=scores,
        unlabelled=sheets.unlabelled,
        unanswered=tuple((~answered).sum(axis=0).tolist()),
        answered_by_none=tuple(
            one
            for one, of_exam in zip(sheets.ids, answered, strict=True)
            if sheets.systems and not of_exam.any()
        ),
    )


def _plan_tasks(
    measures: Sequence[Measure], thresholds: Sequence[int], labelling: Labelling
) -> Iterator[tuple[int | None, MeasureTask]]:
    """(threshold or None, task): each measure at each threshold that makes a difference."""
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
    sheets: RankedExams,
    tasks: Sequence[MeasureTask],
    labels: Mapping[int | None, tuple[Labels, ...]],
    highest: int,
    grader: GraderIdentity,
) -> list[NDArray[np.float64]]:
    """Values of every task, systems x queries; NaN where others say that one does not count."""
    qrels = {name: qrels_of(sheets, of_name) for name, of_name in labels.items()}
    values: dict[int, NDArray[np.float64]] = {}
    by_trec: list[int] = []
    for index, task in enumerate(tasks):
        formula = own_formula(task.measure)
        declared = task.measure.kind.formula
        if declared is not None:
            values[index] = declared_scores(declared, task, sheets, grader)
        elif formula is not None:
            values[index] = _by_formula(formula, task, sheets, labels[task.labels], highest)
        elif trec_name(task.measure) is not None:
            by_trec.append(index)
        else:
            values[index] = _by_provider(task, sheets, qrels.get(task.labels, {}))
    tables = trec_scores([tasks[index] for index in by_trec], sheets, qrels)
    values.update(zip(by_trec, tables, strict=True))
    return [values[index] for index in range(len(tasks))]


def _by_formula(
    formula: LabelFormula,
    task: MeasureTask,
    sheets: RankedExams,
    labels: tuple[Labels, ...],
    highest: int,
) -> NDArray[np.float64]:
    table = np.zeros((len(sheets.systems), len(sheets.sheets)))
    for column, (sheet, of_sheet) in enumerate(zip(sheets.sheets, labels, strict=True)):
        top = len(sheet.exam.items) if highest < 0 else highest
        table[:, column] = own_scores(formula, task.measure, sheet, of_sheet, task.level or 1, top)
    return table


def _by_provider(
    task: MeasureTask, sheets: RankedExams, qrels: dict[str, dict[str, int]]
) -> NDArray[np.float64]:
    measure = task.measure
    if measure.kind.subtopics:
        # The rows say already who reaches the threshold; those who do not change nothing.
        rows = (
            (row.query_id, row.passage_id, row.label, row.item_id)
            for sheet in sheets.sheets
            for row in subtopic_rows(sheet.exam, task.level or 1)
            if row.label
        )
        return provider_scores(_without_level(measure), rows, sheets.runs(), sheets.ids)
    if task.level is not None:
        measure = measure.at_level(task.level)
    lines = (
        (query_id, passage, label, "0")
        for query_id, labels in qrels.items()
        for passage, label in labels.items()
    )
    return provider_scores(measure, lines, sheets.runs(), sheets.ids)


def _without_level(measure: Measure) -> Measure:
    """The measure to be asked of a provider to which a passage covers an item or does not."""
    if measure.name in _SHARE_AT_1 and measure.cutoff == 1:
        return Measure("StRecall", 1)
    return replace(measure, params=tuple(pair for pair in measure.params if pair[0] != "rel"))


_SHARE_AT_1 = ("alpha_DCG", "ERR_IA")
"""At a cutoff of 1 these are the share of items that the first passage covers; ndeval forgets to
divide by the number of items there."""


def _counted(
    sheets: RankedExams, task: MeasureTask, values: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which values count: for diversity measures those of queries with an item that has a weight.

    Of a declared measure those that it gave.
    """
    if task.measure.kind.subtopics:
        return np.broadcast_to(_weighted(sheets), values.shape)
    return ~np.isnan(values)


def _weighted(sheets: RankedExams) -> NDArray[np.bool_]:
    return np.array([len(weighted_items(sheet.exam)) > 0 for sheet in sheets.sheets], np.bool_)


def _highest(labelling: Labelling, grader: GraderIdentity) -> int:
    """The highest label there can be; -1: the number of items of the query."""
    if labelling.gains == "binary":
        return 1
    return -1 if labelling.kind == "count" else grader.highest


def _hopeless(
    sheets: RankedExams, task: MeasureTask, labels: Mapping[int | None, tuple[Labels, ...]]
) -> int:
    if task.level is None or task.measure.kind.formula is not None:
        return 0
    if task.measure.kind.subtopics:
        # Without an item that has a weight a query does not count, and so is not hopeless.
        best = [
            s.exam.query.ratings[:, weighted_items(s.exam)].max(initial=MISSING)
            for s, counts in zip(sheets.sheets, _weighted(sheets), strict=True)
            if counts
        ]
    else:
        of_task = zip(sheets.sheets, labels[task.labels], strict=True)
        best = [of_sheet[sheet.graded].max() for sheet, of_sheet in of_task]
    return sum(int(label) < task.level for label in best)
