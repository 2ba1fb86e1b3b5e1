"""Gate grades against a baseline from a file or from the same grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from exampp.analysis.gate import (
    DEFAULT_MEASURE,
    EarlierScores,
    GateResult,
    GateSettings,
    canonical,
    judge_systems,
    missing_at,
    missing_of,
    range_of,
    required,
    scores_of,
    with_bounds,
    with_cutoff,
)
from exampp.analysis.lost_items import LostItem, find_lost_items
from exampp.errors import InputError
from exampp.formats.leaderboards import QueryScore, read_query_scores
from exampp.grades.base import ChosenGrades
from exampp.measures.board import Leaderboard
from exampp.measures.cover import ItemScores, item_scores
from exampp.measures.names import CUTOFF
from exampp.measures.requirements import Requirement
from exampp.records.gradebook import Gradebook, answering, check_testable
from exampp.records.graders import grader_label
from exampp.records.items import BankTexts
from exampp.sanitize import or_default

Earlier: TypeAlias = str | Path | Leaderboard | ChosenGrades
"""A baseline: a file of scores by query, a run file, a leaderboard, or other grades."""
_LISTED = 10
"""Items that are listed in all, for at most as many systems."""


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
    book = grades.gradebook
    found = judge_systems(book, requirements, earlier, systems=systems, settings=settings)
    if found.verdict == "passed":
        return found
    return replace(found, lost=tuple(_lost_items(grades, found, requirements, earlier, settings)))


def _lost_items(
    grades: ChosenGrades,
    found: GateResult,
    requirements: Sequence[Requirement],
    earlier: EarlierScores | None,
    settings: GateSettings,
) -> Iterator[LostItem]:
    """Yield the items that cost most each system that failed or is undecided, by one measure."""
    book, named = grades.gradebook, {str(one): one for one in requirements}
    rows: dict[str, Requirement] = {}
    for row in found.rows:
        one = named[row.requirement]
        open_ = row.verdict in ("failed", "cannot be told") and row.system in book.systems
        if open_ and with_cutoff(one.measure).kind.cover:
            rows.setdefault(row.system, one)
    texts = grades.bank_texts() if rows else BankTexts()
    least = grades.grader.threshold(settings.min_rating)
    scores: dict[int, ItemScores] = {}
    for system, one in list(rows.items())[:_LISTED]:
        k = with_cutoff(one.measure).cutoff or CUTOFF
        scores[k] = scores.get(k) or item_scores(book, least, k)
        lost = {}
        if earlier is not None and one.relative and one.measure.startswith("Cover"):
            cover = scores[k].of_queries(scores[k].columns)[scores[k].systems.index(system)]
            now = dict(zip(scores[k].queries, cover.tolist(), strict=True))
            before = (of for of in earlier.scores if of.system == earlier.of(system))
            lost = {
                of.query_id: (of.value or 0.0) / len(now) - now.get(of.query_id, 0.0)
                for of in before
                if canonical(of.measure) == str(with_cutoff(one.measure))
            }
        limit = max(1, _LISTED // len(rows))
        yield from find_lost_items(scores[k], texts, system, lost, limit=limit)


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
