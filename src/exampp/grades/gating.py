"""Gate grades against a baseline from a file or from the same grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from exampp.analysis.gate import (
    DEFAULT_MEASURE,
    EarlierScores,
    GateResult,
    GateSettings,
    judge_systems,
    missing_at,
    missing_of,
    range_of,
    required,
    scores_of,
    with_bounds,
    with_cutoff,
)
from exampp.errors import InputError
from exampp.formats.leaderboards import QueryScore, read_query_scores
from exampp.grades.base import ChosenGrades
from exampp.measures.board import Leaderboard
from exampp.measures.requirements import Requirement
from exampp.records.gradebook import Gradebook, answering, check_testable
from exampp.records.graders import grader_label
from exampp.sanitize import or_default

Earlier: TypeAlias = str | Path | Leaderboard | ChosenGrades
"""A baseline: a file of scores by query, a run file, a leaderboard, or other grades."""


def gate_grades(
    grades: ChosenGrades,
    require: Sequence[str],
    baseline: Earlier | None = None,
    *,
    baseline_system: str | None = None,
    margin: float | None = None,
    systems: Sequence[str] = (),
    settings: GateSettings | None = None,
) -> GateResult:
    """See `Grades.gate`."""
    compares = baseline is not None or baseline_system is not None
    scores = stored_scores(baseline) or ()
    measures = dict.fromkeys(one.measure for one in scores) or (DEFAULT_MEASURE,)
    requirements = required(require, margin, baseline=compares, measures=measures)
    settings = or_default("settings", settings, GateSettings)
    earlier = None
    if compares:
        earlier = _baseline_scores(
            grades, baseline, scores, baseline_system, requirements, settings
        )
    return judge_systems(
        grades.gradebook, requirements, earlier, systems=systems, settings=settings
    )


def stored_scores(earlier: Earlier | None, *, means: bool = False) -> Sequence[QueryScore] | None:
    """Return the scores of a leaderboard or a file (see `read_query_scores`); None of others."""
    if isinstance(earlier, Leaderboard):
        return scores_of(earlier)
    if not isinstance(earlier, str | Path):
        return None
    return read_query_scores(earlier, range_of, means=means)


def _baseline_scores(
    grades: ChosenGrades,
    baseline: Earlier | None,
    scores: Sequence[QueryScore],
    system: str | None,
    requirements: Sequence[Requirement],
    settings: GateSettings,
) -> EarlierScores:
    """Return the scores of the baseline."""
    compared = [one.measure for one in requirements if one.relative]
    if baseline is None:
        earlier = _evaluated(grades.gradebook, compared, settings)
        return replace(earlier, name=f"system {system}", system=system, here=True)
    if isinstance(baseline, Leaderboard):
        earlier = EarlierScores("another leaderboard", scores)
    elif isinstance(baseline, str | Path):
        name = Path(baseline).name
        if not scores:
            run = replace(grades, runs=(baseline,), systems=(), without=())
            earlier = replace(_evaluated(run.gradebook, compared, settings), name=name)
        else:
            earlier = EarlierScores(name, scores)
    else:
        check_testable(baseline.gradebook)
        name = f"{Path(baseline.path).name}, {grader_label(baseline.grader)}"
        earlier = replace(_evaluated(baseline.gradebook, compared, settings), name=name)
    return (
        earlier
        if system is None
        else replace(earlier, name=f"{earlier.name}, {system}", system=system)
    )


def _evaluated(book: Gradebook, measures: Sequence[str], settings: GateSettings) -> EarlierScores:
    """Return the scores of all systems; empty for a measure that cannot be computed."""
    tables: tuple[list[QueryScore], ...] = ([], [], [])
    uncertain: set[tuple[str, str]] = set()
    faults: dict[tuple[str, str], str] = {}
    answered = answering(book)
    for name in dict.fromkeys(measures):
        try:
            board = with_bounds(book, with_cutoff(name), settings.min_rating)
        except InputError:
            # the gate reports the reason: the measure is missing there too
            continue
        column = board.columns[0]
        for table, values in zip(tables, (column.values, column.low, column.high), strict=True):
            scored = replace(column, values=values or column.values)
            table += scores_of(replace(board, columns=(scored,)))
        for at, system in enumerate(book.systems):
            key, allowed = (str(column.measure), system), settings.allow_missing
            if column.low is not None and missing_at(column, at) > allowed:
                uncertain.add(key)
                allowed = 1.0
            if why := missing_of(book, answered, system, column, allowed):
                faults[key] = why
    scores, low, high = tables
    return EarlierScores(
        "", scores, faults=faults, low=low, high=high, uncertain=frozenset(uncertain)
    )
