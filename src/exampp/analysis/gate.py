"""A gate: systems pass or fail by intervals over queries, never by means alone.

A requirement is met where it holds at both ends of the interval, failed where it holds at neither,
and cannot be told where the interval straddles its bound. Against a number this is the interval of
the mean over queries, against a baseline that of the paired difference (non-inferiority with a
margin: Piaggio et al., JAMA 2012). Both are Gaffke's limits (`stats.means`), which count with
failures that so few queries need not show; only where both systems returned the same passages is
the interval of the difference [0, 0].

Where cells without a grade could change a value, and its bounds are known, both ends have to meet
the requirement: with all these cells below the minimum rating, and with all at it.

The gate passes if every requirement passes. The level is that of each interval: a gate that ought
to fail passes with a chance of at most half of alpha, however many requirements there are (an
intersection-union test: Berger, Technometrics 1982); the chance that a good system fails somewhere
grows with their number. `benchmarks/statements.py` measures both.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.changes import Changes
from exampp.analysis.grader_bias import bias_notes, grader_bias
from exampp.analysis.lost_items import LostItem, lost_items_table
from exampp.analysis.phrases import percent, unseen_failures
from exampp.errors import InputError
from exampp.formats.leaderboards import QueryScore
from exampp.measures.board import Leaderboard, describe_source
from exampp.measures.cover import Missing
from exampp.measures.leaderboard import evaluate_gradebook, missing_prerequisite
from exampp.measures.names import CUTOFF, Measure, as_measures
from exampp.measures.query_sample import ERROR, estimate_all
from exampp.measures.requirements import Requirement, parse_requirement
from exampp.measures.values import MeasureColumn
from exampp.records import OVERALL
from exampp.records.gradebook import (
    Gradebook,
    answering,
    check_testable,
    find_pairs,
    systems_named,
)
from exampp.records.wording import counted
from exampp.results.notes import listed, note, with_code, without_code
from exampp.results.plots.dots import intervals_figure
from exampp.results.plots.figure import Figure, Spread
from exampp.results.result import Result, Table
from exampp.results.view import Column, Interval, interval_text, printable, programs_only
from exampp.sanitize import or_default
from exampp.stats.estimate import Estimate
from exampp.stats.means import Range, mean_test
from exampp.stats.significance import paired_differences

DEFAULT_MEASURE = "Cover@20"


def required(
    texts: Sequence[str],
    margin: float | None,
    *,
    baseline: bool,
    measures: Iterable[str] = (DEFAULT_MEASURE,),
) -> tuple[Requirement, ...]:
    """Return the requirements, each once; with a baseline no measure may be worse than it.

    `margin` is the allowed loss against the baseline for requirements that set none. Without texts,
    the `measures` of the baseline are required.

    Raises:
        InputError: There is no requirement, a requirement is invalid, or a margin is missing,
            invalid or has no effect.
    """
    if margin is not None and not (margin >= 0 and math.isfinite(margin)):
        raise InputError(f"the margin must be 0 or more, not {margin}")
    named = list(dict.fromkeys(map(parse_requirement, texts)))
    if not named and not baseline:
        raise InputError(
            "nothing is required", hint='Add a requirement, such as --require "Cover@20>=0.7"'
        )
    compared = {one.measure for one in named if one.relative}
    left = (
        dict.fromkeys(one.measure for one in named)
        if named or not baseline
        else dict.fromkeys(measures)
    )
    open_ = [measure for measure in left if measure not in compared] if baseline else []
    if margin is None and open_:
        raise InputError(
            f"{open_[0]} has no margin: how much worse than the baseline may it be?",
            hint=f"Give --margin 0.02 for all measures, or for this one "
            f'--require "{open_[0]}>=baseline-0.02"',
        )
    if margin is not None and not open_:
        why = "every requirement has its own margin" if baseline else "no baseline is given"
        raise InputError(f"--margin has no effect: {why}", hint="Leave it out")
    not_worse = (Requirement(one, ">=", 0.0 - (margin or 0.0), relative=True) for one in open_)
    return (*named, *not_worse)


Verdict = Literal["passed", "failed", "cannot be told", "missing"]


class GateRow(NamedTuple):
    """The result of a requirement for a system.

    `low` and `high` bound the mean, or its `difference` to the baseline for relative requirements;
    `why` gives the reason for a missing or undecided result. None: there is none.
    """

    system: str
    requirement: str
    verdict: Verdict
    mean: float | None = None
    baseline: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    queries: int = 0
    why: str = ""

    @property
    def explanation(self) -> str:
        """The finding, and the reason if it is not passed, in words."""
        if self.mean is None:
            return self.why
        what, number = "difference", self.difference
        if number is None:
            what, number = "mean", self.mean
        shown = interval_text(Interval(number, self.low, self.high), 3)
        return "; ".join(filter(None, [f"{what} {shown} over {self.queries} queries", self.why]))


class GateFailed(AssertionError):
    """Raised if a requirement failed, or data for it is missing; `result` is the whole gate."""

    def __init__(self, result: GateResult) -> None:
        super().__init__(result.render())
        self.result = result


class GateUndecided(GateFailed):
    """Raised if nothing failed or is missing, but the queries are too few to decide."""


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Result):
    """The result of a gate: a row for every system and requirement.

    `whose` names the grader and the bank, and marks draft grades. `lost` are the items that cost
    systems most that did not pass; `changes` are differences to an earlier version, by measure.
    """

    rows: tuple[GateRow, ...]
    whose: str
    is_draft: bool
    baseline: str
    level: float
    notes: tuple[str, ...] = field(default=())
    lost: tuple[LostItem, ...] = ()
    changes: tuple[Changes, ...] = ()

    @property
    def verdict(self) -> Literal["passed", "failed", "cannot be told"]:
        """The verdict: failed if a requirement failed or is missing, passed if all passed."""
        found = {row.verdict for row in self.rows}
        if found & {"failed", "missing"} or not found:
            return "failed"
        return "cannot be told" if "cannot be told" in found else "passed"

    @property
    def exit_code(self) -> int:
        """The exit code: 0 passed, 1 failed, 2 undecided."""
        return ("passed", "failed", "cannot be told").index(self.verdict)

    def check(self) -> None:
        """Raise GateFailed if the gate failed, GateUndecided if it is undecided."""
        __tracebackhide__ = True  # pytest shows the line of the test
        if self.verdict != "passed":
            raise (GateFailed if self.verdict == "failed" else GateUndecided)(self)

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of rows of each verdict that occurs."""
        found = [row.verdict for row in self.rows]
        verdicts: tuple[Verdict, ...] = ("passed", "failed", "cannot be told", "missing")
        return {one: found.count(one) for one in verdicts if one in found}

    @property
    def headline(self) -> str:
        """The verdict with the requirements that decide it, in words."""
        word = {"cannot be told": "undecided"}.get(self.verdict, self.verdict)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        checks = counted(len(self.rows), "check")
        failed = [row for row in self.rows if row.verdict in ("failed", "missing")]
        named = [f"{row.system} {row.requirement}".strip() for row in failed]
        not_met = f" Not met: {listed(named)}." if named else ""
        return f"Gate {word}: of {checks}, {counts}.{not_met}"

    def plot(self) -> Figure:
        """Plot the mean of every requirement, or its difference to the baseline, with bounds."""
        rows = [
            Spread(
                f"{one.system}, {one.requirement}: {one.verdict}",
                *(one.mean if one.difference is None else one.difference, one.low, one.high),
            )
            for one in self.rows
        ]
        shown = dict.fromkeys(one.difference is not None for one in self.rows)
        quantity = " or ".join("difference to the baseline" if one else "mean" for one in shown)
        spread = f"Bars: {percent(self.level)} interval"
        return intervals_figure(
            rows,
            quantity,
            self.headline,
            spread,
            name="gate",
            draft=self.is_draft,
            zero=True in shown,
        )

    def tables(self) -> Mapping[str, Table]:
        """Return the verdict and a row per system and requirement; notes give the reasons.

        Items that cost a failed system follow, and differences to an earlier version.
        """
        compared = any(row.baseline is not None for row in self.rows)
        columns: list[str | Column] = [
            *("system", "requirement", "verdict", "mean"),
            Column("baseline", readers="all" if compared else "programs"),
            Column("difference", readers="all" if compared else "programs"),
            Column(f"{percent(self.level)} interval", readers="people"),
            *programs_only("low", "high"),
            "queries",
            *programs_only("why", "draft", "graded"),
        ]
        rows = [
            [
                *row[:6],
                None if row.low is None else Interval(None, row.low, row.high),
                *row[6:],
                *(self.is_draft, self.whose),
            ]
            for row in self.rows
        ]
        caption = self.whose + (f"; baseline {self.baseline}" if self.baseline else "")
        found = {"gate": Table.of(columns, rows, caption, self._notes(), verdict=self.headline)}
        if self.lost:
            found["items"] = lost_items_table(self.lost)
        for one in self.changes:
            found[f"changes of {one.measure}"] = one.tables()["scores"]
        if self.changes and self.changes[0].content:
            found["content"] = self.changes[0].tables()["content"]
        return found

    def records(self) -> Mapping[str, Table]:
        """Return a row per system and requirement, and the scores of both versions."""
        found = dict(self.tables())
        found.pop("items", None)
        return found

    def _notes(self) -> Iterator[str]:
        found: dict[tuple[str, str], dict[str, list[str]]] = {}
        for row in self.rows:
            if row.why:
                of_why = found.setdefault((row.verdict, row.why), {})
                of_why.setdefault(row.requirement, []).append(row.system)
        for (verdict, why), requirements in found.items():
            where = ", ".join(
                f"{requirement} ({', '.join(systems)})" if any(systems) else requirement
                for requirement, systems in requirements.items()
            )
            yield note("gate-reason", verdict=verdict.capitalize(), where=where, why=why)
        fewest = min((row.queries for row in self.rows if row.low is not None), default=0)
        sample = list(with_code(self.notes, *_OF_SAMPLE))
        if fewest and not sample:
            yield unseen_failures(fewest, self.level)
        yield from sample
        yield note("gate-method", side=percent((1 - self.level) / 2))
        yield from without_code(self.notes, *_OF_SAMPLE)

    def to_junit(self) -> str:
        """Return the result as JUnit XML, the test format of continuous integration.

        Every system and requirement is a test: failed and missing ones are failures, undecided ones
        errors.
        """
        counts = self.counts
        suite = ElementTree.Element(
            "testsuite",
            name="exampp gate",
            tests=str(len(self.rows)),
            failures=str(counts.get("failed", 0) + counts.get("missing", 0)),
            errors=str(counts.get("cannot be told", 0)),
            skipped="0",
        )
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (
            ("verdict", self.verdict),
            ("graded", self.whose),
            ("draft", str(self.is_draft).lower()),
            ("baseline", self.baseline),
            ("level", f"{self.level:g}"),
        ):
            ElementTree.SubElement(properties, "property", name=name, value=printable(value))
        for row in self.rows:
            case = ElementTree.SubElement(
                suite, "testcase", classname=printable(row.system or "exampp"), name=row.requirement
            )
            if row.verdict != "passed":
                kind = "error" if row.verdict == "cannot be told" else "failure"
                message = printable(f"{row.verdict}: {row.explanation}")
                ElementTree.SubElement(case, kind, type=row.verdict, message=message).text = message
        ElementTree.indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'


_NAMED = 3
_OF_SAMPLE = ("query-sample", "gate-sample")
"""Codes of notes that not all queries are graded."""
_LONGEST = 160
NO_RANGE = "the measure has no known range, and Student's t does not count with rare failures"
STRADDLES = "the interval contains values that meet the requirement and values that do not"
SAME_PASSAGES = "both systems returned the same passages"


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Settings of a gate.

    `alpha` is that of each interval, 0.05 for one of 95 %. `min_rating` is the lowest rating that
    counts as an answer (None: the grader's own); `allow_missing` is the share of ungraded units
    that is tolerated without any effect.

    Raises:
        InputError: A number makes no sense.
    """

    alpha: float = 0.05
    min_rating: int | None = None
    allow_missing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        if not 0 <= self.allow_missing < 1:
            raise InputError(
                f"allow_missing is a share from 0 to below 1, not {self.allow_missing}"
            )

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return 1 - self.alpha


@dataclass(frozen=True, slots=True)
class EarlierScores:
    """A baseline: scores per query, under a name for people.

    `system` is compared with all systems; where it is None a system is compared with the one of the
    same name, or with the only one there is. `here`: the scores are from the grades that the gate
    is about. `faults` explains by measure and system why its scores cannot be compared. `low` and
    `high` bound the scores of the measures and systems in `uncertain` over all possible missing
    grades.
    """

    name: str
    scores: Sequence[QueryScore]
    system: str | None = None
    here: bool = False
    faults: Mapping[tuple[str, str], str] = field(default_factory=dict)
    low: Sequence[QueryScore] = ()
    high: Sequence[QueryScore] = ()
    uncertain: frozenset[tuple[str, str]] = frozenset()

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, each once."""
        return tuple(dict.fromkeys(one.system for one in self.scores))

    def of(self, system: str) -> str | None:
        """Return the system that another is compared with; None if there is none."""
        known = self.systems
        wanted = self.system or (known[0] if len(known) == 1 else system)
        return wanted if wanted in known else None


def judge_systems(
    book: Gradebook,
    requirements: Sequence[Requirement],
    baseline: EarlierScores | None = None,
    *,
    systems: Sequence[str] = (),
    settings: GateSettings | None = None,
) -> GateResult:
    """Check systems of a gradebook, by default all, against every requirement.

    A missing measure, grade, system or query fails the requirements that need it; no error is
    raised.
    """
    settings = or_default("settings", settings, GateSettings)
    measured = {
        name: _measured(book, name, settings)
        for name in dict.fromkeys(one.measure for one in requirements)
    }
    checked = systems_named(book, systems) or _all_systems(book, baseline)
    count = len(checked) * len(requirements)
    check = _RequirementCheck(book, answering(book), measured, baseline, settings, count)
    rows = [check.row(system, requirement) for system in checked for requirement in requirements]
    boards = [one[0] for one in measured.values() if not isinstance(one, str)]
    notes = [*bias_notes(grader_bias(book)), *(text for one in boards for text in one.notes)]
    if book.sampled_from:
        notes.insert(0, note("gate-sample", of=book.sampled_from, chance=percent(1 - ERROR)))
    if not systems and (sources := find_pairs(book.systems).values()):
        notes.insert(0, note("gate-sources", names=listed(sources)))
    return GateResult(
        tuple(rows),
        describe_source(book.grader, book.bank_label, book.oversight),
        book.grader.is_draft,
        baseline.name if baseline else "",
        settings.level,
        tuple(dict.fromkeys(notes)),
    )


def nothing_graded(
    requirements: Iterable[Requirement], systems: Sequence[str], why: str
) -> GateResult:
    """Return the gate of a gradebook without grades: everything is missing."""
    rows = (
        GateRow(system, str(one), "missing", why=why)
        for system in systems or [""]
        for one in requirements
    )
    return GateResult(tuple(rows), "not graded", False, "", 0.95)


def scores_of(board: Leaderboard) -> list[QueryScore]:
    """Return the scores of a leaderboard, by query."""
    return [
        QueryScore(
            row.system,
            row.measure,
            row.min_rating,
            row.query_id,
            row.value,
            board.grader.key,
            board.bank,
            row.ranking,
        )
        for row in board.per_query()
        if row.system != OVERALL
    ]


MeasureOutcome = tuple[Leaderboard, MeasureColumn] | str
"""A measure of all systems, or why it has no values."""


def _measured(book: Gradebook, name: str, settings: GateSettings) -> MeasureOutcome:
    if absent := missing_prerequisite(book):
        return str(absent)
    try:
        if not book.sampled_from:
            check_testable(book)
        measure = with_cutoff(name)
        board = with_bounds(book, measure, settings.min_rating)
        column = board.column(measure)
    except InputError as error:
        # the hint may list all measures
        return textwrap.shorten(str(error), _LONGEST, placeholder=" ...").removesuffix(".")
    if measure.kind.added:
        return f"{measure} is added up over queries, and has no mean"
    return board, column


def with_bounds(book: Gradebook, measure: Measure, min_rating: int | None) -> Leaderboard:
    """Return the leaderboard of one measure, with bounds for missing cells where known."""
    missing: Missing = "bounds" if measure.kind.cover else "zero"
    return evaluate_gradebook(book, [measure], min_rating, missing=missing)


def with_cutoff(name: str) -> Measure:
    """Return the named measure; Cover without a cutoff reads 20 passages."""
    (measure,) = as_measures([name])
    return measure.cut(CUTOFF) if measure.kind.cover else measure


def range_of(measure: str) -> tuple[float, float] | None:
    """Return the smallest and largest possible value of a named measure; None where unknown."""
    try:
        return (0.0, 1.0) if with_cutoff(measure).kind.share else None
    except InputError:
        return None


def _all_systems(book: Gradebook, baseline: EarlierScores | None) -> list[str]:
    """Return all systems but the baseline, and those that only the baseline has."""
    if baseline is None:
        return list(book.systems) or [""]
    if baseline.here:
        return [one for one in book.systems if one != baseline.system] or [""]
    several = baseline.system is None and len(baseline.systems) > 1
    removed = [one for one in baseline.systems if one not in book.systems] if several else []
    return [*book.systems, *removed] or [""]


class _NotComparableError(Exception):
    """The reason why a requirement on a system cannot be checked."""


class _Sample(NamedTuple):
    """The values that a requirement is checked on: per query, or differences to a baseline.

    `same`: both systems are known to have returned the same passages. `left_out` are queries
    missing from the baseline.
    """

    values: NDArray[np.float64]
    query_ids: Sequence[str]
    mean: float | None
    baseline: float | None = None
    same: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _RequirementCheck:
    book: Gradebook
    expected: Mapping[str, set[str]]
    measured: Mapping[str, MeasureOutcome]
    baseline: EarlierScores | None
    settings: GateSettings
    rows: int

    def row(self, system: str, requirement: Requirement) -> GateRow:
        try:
            return self._row(system, requirement)
        except _NotComparableError as error:
            return GateRow(system, str(requirement), "missing", why=str(error))

    def _row(self, system: str, requirement: Requirement) -> GateRow:
        found = self.measured[requirement.measure]
        if isinstance(found, str):
            raise _NotComparableError(found)
        _, column = found
        at = self.book.systems.index(system) if system in self.book.systems else 0
        bounded = column.low is not None and column.high is not None
        uncertain = bounded and missing_at(column, at) > self.settings.allow_missing
        allowed = 1.0 if uncertain else self.settings.allow_missing
        if why := missing_of(self.book, self.expected, system, column, allowed):
            raise _NotComparableError(why)
        baseline = self.baseline
        key = str(column.measure), (baseline and baseline.of(system)) or ""
        if requirement.relative and baseline and key in baseline.uncertain:
            uncertain = True
        plain = self._judged(system, requirement, column, at)
        if not uncertain:
            return plain
        ends = []
        for values, other in (
            (column.low, baseline and replace(baseline, scores=baseline.high or baseline.scores)),
            (column.high, baseline and replace(baseline, scores=baseline.low or baseline.scores)),
        ):
            end = replace(column, values=values or column.values)
            ends.append(replace(self, baseline=other)._judged(system, requirement, end, at))
        return _at_worst(plain, ends, missing_at(column, at), str(column.measure))

    def _judged(
        self, system: str, requirement: Requirement, column: MeasureColumn, at: int
    ) -> GateRow:
        """Check one requirement by the values of a column, ignoring missing grades."""
        counts = column.values.counts[at]
        ids = [one for one, use in zip(column.query_ids, counts, strict=True) if use]
        sample, within = _Sample(column.values.values[at][counts], ids, None), column.value_range
        if requirement.relative:
            sample, within = self._compared(system, column, at), column.difference_range
        one = self._estimate(sample, within, column)
        if not requirement.relative:
            one = column.values.clip_estimate(one)
        if sample.same:
            one = Estimate(0.0, 0.0, 0.0)
        verdict, why = self._verdict(requirement, one, len(sample.values), column)
        if sample.same:
            why.insert(0, f"{SAME_PASSAGES} for all queries")
        if undefined := undefined_queries(self.expected, column):
            why.append(f"{_some(undefined)} without a value for any system left out")
        if column.values.clipped and not requirement.relative and requirement.holds(0.0):
            why.append(f"no mean of {column.measure} is below 0, so 0 meets this")
        if any(column.values.clip(one) != one for one in (sample.mean, sample.baseline)):
            why.append("a mean below 0 counts as 0; the difference is that of the queries")
        if sample.left_out:
            why.append(f"{counted(sample.left_out, 'query')} not in the baseline left out")
        return GateRow(
            system,
            str(requirement),
            verdict,
            mean=column.values.clip(sample.mean) if requirement.relative else one.value,
            baseline=column.values.clip(sample.baseline),
            difference=one.value if requirement.relative else None,
            low=one.low,
            high=one.high,
            queries=len(sample.values),
            why="; ".join(filter(None, why)),
        )

    def _estimate(self, sample: _Sample, within: Range | None, column: MeasureColumn) -> Estimate:
        """Return the mean with its interval, or with bounds of the interval of all queries."""
        book, level = self.book, self.settings.level
        if not book.sampled_from:
            return mean_test(sample.values, within, level).estimate
        bounded = book.target is not None and str(column.measure) in book.target.measures
        if not bounded or within is None or not 0 < len(sample.values) == len(column.query_ids):
            graded = f"{len(column.query_ids)} of {counted(book.sampled_from, 'query')}"
            raise _NotComparableError(
                f"only {graded} are graded, which do not bound {column.measure} of all of them. "
                "Grade all: exampp grade without --until"
            )
        of = book.sampled_from
        return estimate_all(sample.values, sample.query_ids, of, within, level, self.rows)

    def _compared(self, system: str, column: MeasureColumn, at: int) -> _Sample:
        """Return the differences to the baseline, on the shared queries."""
        values, counts = column.values.values[at].tolist(), column.values.counts[at]
        queries = zip(column.query_ids, values, counts, strict=True)
        mine = {query: value for query, value, use in queries if use}
        theirs = self._earlier(system, column)
        if self.book.sampled_from:
            theirs = {query: one for query, one in theirs.items() if query in mine}
        if missing := [query for query in theirs if query not in mine]:
            raise _NotComparableError(f"has no value for {_some(missing)}, which the baseline has")
        shared = [query for query in mine if query in theirs]
        if not shared:
            raise _NotComparableError("the baseline has none of the queries")
        first = np.array([mine[query] for query in shared])
        second = np.array([theirs[query].value for query in shared], np.float64)
        (difference,) = paired_differences(
            first[None], second[None], np.ones((1, len(shared)), bool)
        )
        hashes = self.book.fingerprints(column.measure.cutoff) if not difference.any() else {}
        rankings = (
            hashes.get((system, one)) or hashes.get((system, one.rpartition("/")[0]))
            for one in shared
        )
        return _Sample(
            difference,
            shared,
            math.fsum(first.tolist()) / len(shared),
            math.fsum(second.tolist()) / len(shared),
            not difference.any()
            and all(
                found is not None and found == theirs[one].ranking
                for found, one in zip(rankings, shared, strict=True)
            ),
            len(mine) - len(shared),
        )

    def _verdict(
        self, requirement: Requirement, one: Estimate, queries: int, column: MeasureColumn
    ) -> tuple[Verdict, list[str]]:
        """Return the verdict on an interval, with the reason if it is not passed or failed."""
        if one.value is None:
            return "missing", [one.reason]
        if one.low is None or one.high is None:
            return "cannot be told", [one.no_interval]
        outcomes = {requirement.holds(end) for end in (one.low, one.high)}
        unbounded = [] if column.value_range else [NO_RANGE]
        if len(outcomes) == 1:
            return ("passed" if outcomes == {True} else "failed"), unbounded
        why = [STRADDLES, *unbounded]
        needed = requirement.fewest_queries(self.settings.level)
        if column.value_range and needed is not None and queries < needed:
            best = "if no value changes" if requirement.relative else "even if every value is ideal"
            why.append(f"{requirement} takes at least {counted(needed, 'query')} {best}")
        return "cannot be told", why

    def _earlier(self, system: str, column: MeasureColumn) -> dict[str, QueryScore]:
        """Return the baseline's score of every query."""
        if self.baseline is None:
            raise _NotComparableError("there is no baseline")
        other = self.baseline.of(system)
        if other is None:
            raise _NotComparableError(
                f"the baseline has no system {self.baseline.system or system!r}, but "
                f"{listed(self.baseline.systems)}"
            )
        if why := self.baseline.faults.get((str(column.measure), other)):
            raise _NotComparableError(f"the baseline {other}: {why}")
        rows = [one for one in self.baseline.scores if one.system == other]
        rows = [one for one in rows if canonical(one.measure) == str(column.measure)]
        if not rows:
            raise _NotComparableError(f"the baseline has no {column.measure} of {other}")
        for what, name, mine in (
            ("min_rating", "minimum rating", column.min_rating),
            ("grader_key", "grader", self.book.grader.key),
            ("bank", "bank", self.book.bank_label),
        ):
            fitting = [one for one in rows if getattr(one, what) in (None, mine)]
            if not fitting:
                raise _NotComparableError(
                    f"the baseline has another {name}: {getattr(rows[0], what)}"
                )
            rows = fitting
        found = {one.query_id: one for one in rows if one.value is not None}
        if len({one.query_id for one in rows}) < len(rows):
            raise _NotComparableError(
                f"the baseline has {column.measure} of {other} twice for a query"
            )
        return found


def missing_of(
    book: Gradebook,
    expected: Mapping[str, set[str]],
    system: str,
    column: MeasureColumn,
    lack: float,
) -> str:
    """Return what is missing for a system's values to be complete; empty if nothing is.

    Complete means an answer to every query in `expected` (see `answering`), a value for it, and
    grades of all but the share `lack` of what the measure reads.
    """
    if system not in book.systems:
        return f"there is no system {system!r}" if system else "there are no systems"
    at = book.systems.index(system)
    if silent := [query_id for query_id, systems in expected.items() if system not in systems]:
        return f"returned nothing for {_some(silent)}"
    unvalued = _without_value(expected, column, column.values.counts[at])
    undefined = undefined_queries(expected, column)
    if unvalued := [query_id for query_id in unvalued if query_id not in undefined]:
        return f"has no value for {_some(unvalued)}"
    share = missing_at(column, at)
    if share > lack:
        return f"{_describe_missing(share, str(column.measure))}. {_fix_missing(share)}"
    return ""


def undefined_queries(expected: Iterable[str], column: MeasureColumn) -> list[str]:
    """Return the queries without a value for any system (nCover: no item is covered)."""
    counts = column.values.counts
    absent = _without_value(expected, column, np.ones(counts.shape[1], bool))
    undefined = _without_value(expected, column, np.asarray(counts.any(axis=0)))
    return [query_id for query_id in undefined if query_id not in absent]


def _without_value(
    expected: Iterable[str], column: MeasureColumn, counts: NDArray[np.bool_]
) -> list[str]:
    known = set(expected)
    # separate exams of subtopics are named after their query
    valued = {
        query if query in known else query.rpartition("/")[0]
        for query, count in zip(column.query_ids, counts, strict=True)
        if count
    }
    return [query_id for query_id in expected if query_id not in valued]


def missing_at(column: MeasureColumn, at: int) -> float:
    """Return the ungraded share of what a measure reads of a system."""
    return max(column.ungraded[at] or 0.0, column.missing_cells[at] or 0.0)


def _describe_missing(share: float, measure: str) -> str:
    return f"{100 * share:.3g} % of what {measure} reads has no grade"


def _fix_missing(share: float) -> str:
    enough = math.ceil(share * 1000) / 1000
    return (
        "Ask again with exampp grade, or count these cells as not covered with "
        f"--allow-missing {enough:g}"
    )


def _at_worst(plain: GateRow, ends: Sequence[GateRow], share: float, measure: str) -> GateRow:
    """Join the verdicts at both bounds of missing cells: a shared verdict is final.

    The interval goes from the lowest end to the highest one; means are those of the grades.
    """
    lows, highs = [one.low for one in ends], [one.high for one in ends]
    known = None not in (*lows, *highs)
    verdict, why = plain.verdict, plain.why
    if {one.verdict for one in ends} != {verdict}:
        verdict = "cannot be told"
        missing = _describe_missing(share, measure)
        why = f"{missing}, and the verdict depends on it. {_fix_missing(share)}"
    return plain._replace(
        verdict=verdict,
        low=min(one for one in lows if one is not None) if known else None,
        high=max(one for one in highs if one is not None) if known else None,
        why=why,
    )


def canonical(measure: str) -> str:
    """Return the name of a measure as leaderboards have it; unknown names as they are."""
    try:
        return str(with_cutoff(measure))
    except InputError:
        return measure


def _some(ids: Sequence[str]) -> str:
    more = " ..." if len(ids) > _NAMED else ""
    return f"{counted(len(ids), 'query')} ({', '.join(ids[:_NAMED])}{more})"
