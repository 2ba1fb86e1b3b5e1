"""Samples for human decisions, drawn with known probabilities, and corrections.

Only such a sample shows the overall error of the grades. The review queue (`review.queue`) selects
cells that matter most, so their errors are not representative.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.grades.base import ChosenGrades
from exampp.measures.names import Measure, as_measures
from exampp.measures.population import (
    ItemVerdict,
    Population,
    check_linear,
    item_verdicts,
    population,
)
from exampp.records.decisions import Design, DrawnUnit, SamplePlan, UnitKind, pool_hash
from exampp.records.gradebook import MISSING, Gradebook, choose_systems, without_decisions
from exampp.records.graders import GraderIdentity
from exampp.records.inputs import relevance_threshold
from exampp.results.notes import labelled
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer, or_default
from exampp.stats.estimate import Floats
from exampp.stats.sampling import Sample, inclusion, influence, random_numbers, uncertainty
from exampp.store.bank import edit_by
from exampp.store.connection import is_graded_file, transaction
from exampp.store.decisions import (
    decisions_by_sample,
    judgments_of,
    put_plan,
    read_plans,
    standing_judgment,
)

if TYPE_CHECKING:
    from exampp.analysis.corrected import Corrected, CorrectionSettings, JudgedSample, Scope


class SampledUnit(NamedTuple):
    """A sampled unit with its human label.

    `label` is the relevance of a passage, or the number of systems that cover an item (None: open).
    `open` are the undecided passages, `deciders` and `at` the people and the time of the last
    decision. `found` is the source of a passage label: "sample" or "judgments".
    """

    unit: DrawnUnit
    label: int | None
    open: tuple[str, ...]
    deciders: tuple[str, ...] = ()
    at: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class SampleProgress(Result):
    """A plan and its progress.

    `labels` are the labels of decided units, by (query id, unit id): a relevance, or 1 or 0 per
    system of the plan. `strays` counts decisions outside any sample.
    """

    plan: SamplePlan
    units: tuple[SampledUnit, ...]
    labels: Mapping[tuple[str, str], NDArray[np.float64]]
    strays: int

    @property
    def open(self) -> tuple[SampledUnit, ...]:
        """Return the undecided units."""
        return tuple(one for one in self.units if one.label is None)

    def tables(self) -> dict[str, Table]:
        """Return the table `plan`: design and progress, as rows of name and value."""
        plan, left = self.plan, self.open
        rows: list[tuple[str, Value]] = [
            ("plan", plan.number),
            ("for", plan.measure),
            (
                "units",
                f"{plan.unit}s, of {plan.pool_size:,} in the first {plan.k} of "
                f"{len(plan.systems)} systems",
            ),
            ("design", f"{plan.design}, seed {plan.seed}"),
            ("labels expected", f"{plan.expected:,.0f}"),
            ("drawn", len(plan.drawn)),
            ("decided", len(plan.drawn) - len(left)),
            ("open", len(left)),
            ("passages open", sum(len(one.open) for one in left) if plan.unit == "item" else ""),
            ("drawn by", plan.author),
            ("drawn at", plan.at),
        ]
        filled = [row for row in rows if row[1] != ""]
        return {"plan": Table.of(["sample", ""], filled, notes=_notes(self))}

    def records(self) -> dict[str, Table]:
        """Return `units`: a row per sampled unit, with people, time and design."""
        plan = self.plan
        recorded: dict[str, Value] = {
            "design": plan.design,
            "seed": plan.seed,
            "labels_expected": plan.expected,
            "formula": plan.formula,
            "fold_seed": plan.fold_seed,
            "unit_kind": plan.unit,
            "k": plan.k,
            "min_rating": plan.min_rating,
            "min_relevant": plan.min_relevant,
            "pool_hash": plan.pool_hash,
            "pool_size": plan.pool_size,
            "systems": " ".join(plan.systems),
            "measure": plan.measure,
            "sample": plan.sample,
        }
        rows = [
            (
                *(one.unit.query_id, one.unit.unit_id, one.unit.pi, one.label, len(one.open)),
                *(one.found, " ".join(one.deciders), one.at, *recorded.values()),
            )
            for one in self.units
        ]
        heads = ["query", plan.unit, Column("pi", 4), "label", "open", "label from", "decided by"]
        return {"units": Table.of([*heads, "at", *recorded], rows, notes=_notes(self))}


def _notes(progress: SampleProgress) -> Iterator[str]:
    plan = progress.plan
    weights = [1 / one.pi for one in plan.drawn]
    yield (
        "Every unit of the pool had a known probability; a sampled unit represents "
        f"{min(weights):.1f} to {max(weights):.1f} units."
    )
    if progress.open and plan.unit == "passage":
        yield (
            "Decide them blind on the page (exampp serve COLLECTION, then Sample), or import "
            "judgments of them (exampp import COLLECTION judged.qrels); --format tsv lists them."
        )
    elif progress.open:
        yield (
            "Decide them blind on the page (exampp serve COLLECTION, then Sample). An item is "
            "complete once coverage is known for every system, usually before all passages are "
            "decided."
        )
    else:
        yield f"All units are decided: exampp analyze corrected COLLECTION -m {plan.measure}"


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """Sampling design: expected number of `labels`; equal seeds draw equal units.

    Raises:
        InputError: Unknown design, or an impossible number.
    """

    labels: int
    design: Design = "influence"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.design not in get_args(Design):
            raise InputError(
                f"unknown design {self.design!r}",
                hint=f"Choose from {', '.join(get_args(Design))}",
            )
        if self.labels < 1:
            raise InputError(f"a sample needs 1 label or more, not {self.labels}")
        check_integer("the seed", self.seed, 0)


def draw_sample(
    units: Population,
    design: SampleDesign,
    *,
    grader: GraderIdentity,
    bank: str,
    min_rating: int,
    min_relevant: int,
    author: str = "",
    at: str = "",
) -> SamplePlan:
    """Draw a sample of a population.

    Raises:
        InputError: No unit was drawn.
    """
    pi = inclusion_probabilities(units, design)
    indices = np.flatnonzero(random_numbers(design.seed, units.names) < pi)
    if not len(indices):
        raise InputError(
            f"no unit was drawn by chance ({design.labels} expected)",
            hint="Use more --labels or another --seed",
        )
    return SamplePlan(
        design=design.design,
        seed=design.seed,
        fold_seed=design.seed,
        expected=float(min(design.labels, len(units.names))),
        unit=units.unit,
        measure=str(units.measure),
        k=units.k,
        min_rating=min_rating,
        min_relevant=min_relevant,
        grader=grader.name,
        bank=bank,
        kind=grader.kind,
        pool_hash=pool_hash(units.names),
        pool_size=len(units.names),
        systems=units.systems,
        drawn=tuple(DrawnUnit(*units.names[one], float(pi[one])) for one in indices.tolist()),
        author=author,
        at=at,
    )


def inclusion_probabilities(units: Population, design: SampleDesign) -> Floats:
    """Return the inclusion probability of each unit."""
    return inclusion(_weights(units, design.design), len(units.names), design.labels)


def _weights(units: Population, design: Design) -> Floats | None:
    if design == "uniform":
        return None
    if units.unit == "item":
        # grades with equal effects on all systems may be wrong for some
        share = units.graded.mean(axis=0)
        first = units.coefficients.rows(np.array([0])).columns(np.arange(len(units.names)))[0]
        weights: Floats = first * uncertainty(share)
        return weights
    return influence(units.coefficients)


def progress(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook, grader: GraderIdentity
) -> SampleProgress:
    """Return the progress of a plan, from decisions and judgments of its sample.

    `book` has all systems; `grader` is one with the scale of the decisions.
    """
    if plan.unit == "passage":
        return _of_passages(connection, plan, book)
    return _of_items(connection, plan, book, grader)


def _of_passages(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook
) -> SampleProgress:
    judged = _judgments(book, {one.query_id for one in plan.drawn})
    judgments = judgments_of(connection, plan.sample)
    units: list[SampledUnit] = []
    labels: dict[tuple[str, str], Floats] = {}
    who: tuple[str, ...]
    for one in plan.drawn:
        name = (one.query_id, one.unit_id)
        judgment = standing_judgment(judgments.get(name, ()))
        if judgment is not None and judgment.relevance is not None:
            label, who, at, source = judgment.relevance, (judgment.author,), judgment.at, "sample"
        elif name in judged:
            label, who, at, source = judged[name], (), "", "judgments"
        else:
            units.append(SampledUnit(one, None, (one.unit_id,)))
            continue
        units.append(SampledUnit(one, label, (), who, at, source))
        labels[name] = np.array(float(label))
    return SampleProgress(plan, tuple(units), labels, 0)


def _judgments(book: Gradebook, queries: AbstractSet[str]) -> dict[tuple[str, str], int]:
    """Return the judgments of passages, by (query id, passage id)."""
    return {
        (query.query_id, query.passage_ids[place]): int(query.judgments[0, place])
        for query in book.queries
        if query.query_id in queries
        for place in np.flatnonzero(query.judgments[0] != MISSING).tolist()
    }


def _of_items(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook, grader: GraderIdentity
) -> SampleProgress:
    by_sample = decisions_by_sample(connection, grader, plan.bank)
    decided = by_sample.get(plan.sample, {})
    ratings = {cell: one.rating for cell, one in decided.items() if one.rating is not None}
    names = [(one.query_id, one.unit_id) for one in plan.drawn]
    verdicts = item_verdicts(book, names, ratings, k=plan.k, min_rating=plan.min_rating)
    of_unit: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (query, item, _), one in decided.items():
        of_unit.setdefault((query, item), []).append((one.at, one.author))
    units, labels = [], {}
    empty = ItemVerdict(np.full(len(book.systems), np.nan), ())
    for unit, name in zip(plan.drawn, names, strict=True):
        verdict = verdicts.get(name, empty)
        decisions = sorted(of_unit.get(name, []))
        who = tuple(dict.fromkeys(author for _, author in decisions))
        at = decisions[-1][0] if decisions else ""
        whole = not np.isnan(verdict.covered).any()
        if whole:
            labels[name] = verdict.covered
        count = int(verdict.covered.sum()) if whole else None
        units.append(SampledUnit(unit, count, verdict.open, who, at, "sample" if whole else ""))
    strays = sum(len(cells) for sample, cells in by_sample.items() if sample != plan.sample)
    return SampleProgress(plan, tuple(units), labels, strays)


def open_cells(progress: SampleProgress, most: int) -> Sequence[tuple[str, str, str]]:
    """Return the next open cells, as (query id, item id or "", passage id).

    They are in the order in which a growing sample would include them. Items come with a few
    passages at a time, because decisions determine which others still matter.
    """
    plan = progress.plan
    left = progress.open
    numbers = random_numbers(plan.seed, [(one.unit.query_id, one.unit.unit_id) for one in left])
    cells: list[tuple[str, str, str]] = []
    probabilities = np.array([one.unit.pi for one in left])
    for place in np.argsort(numbers / probabilities, kind="stable").tolist():
        query_id, unit_id, _ = left[place].unit
        if plan.unit == "passage":
            cells.append((query_id, "", unit_id))
        else:
            cells += [(query_id, unit_id, passage) for passage in left[place].open[:_AT_ONCE]]
        if len(cells) >= most:
            break
    return cells[:most]


_AT_ONCE = 3
"""Passages per item before the open ones are recomputed."""


# ---- sampling and correction ---------------------------------------------------------------------

DEFAULT_MEASURE = "P@20"
NAMED = 5
"""Maximum number of units named in a message."""


def draw_command(grades: ChosenGrades, measure: Measure | str) -> str:
    """Return the command that draws a sample for a measure."""
    path = shlex.quote(str(grades.path))
    return f"exampp review {path} sample --labels 400 -m {shlex.quote(str(measure))}"


def measure_of(measure: Measure | str) -> Measure:
    """Return the measure. Raises InputError if it cannot be corrected."""
    (one,) = as_measures([measure])
    check_linear(one)
    return one


def whole_book(grades: ChosenGrades) -> Gradebook:
    """Return the grades of all systems without human decisions."""
    return without_decisions(replace(grades, systems=(), without=()).gradebook)


def units_of(
    grades: ChosenGrades,
    book: Gradebook,
    measure: Measure,
    min_rating: int | None,
    min_relevant: int | None,
) -> Population:
    """Return the population of a measure."""
    relevant = relevance_threshold(min_relevant, grades.highest_judgment)
    least = grades.grader.threshold(min_rating)
    return population(book, measure, min_rating=least, min_relevant=relevant)


def draw_plan(
    grades: ChosenGrades,
    design: SampleDesign,
    measure: Measure | str,
    *,
    min_rating: int | None,
    min_relevant: int | None,
    author: str | None,
) -> SamplePlan:
    """Draw and store a sample; an equal sample returns the stored plan.

    Raises:
        InputError: The measure cannot be corrected, or nothing can be drawn.
    """
    one, edit = measure_of(measure), edit_by(author, "plan")
    units = units_of(grades, whole_book(grades), one, min_rating, min_relevant)
    plan = draw_sample(
        units,
        design,
        grader=grades.grader,
        bank=grades.bank,
        min_rating=grades.grader.threshold(min_rating),
        min_relevant=relevance_threshold(min_relevant, grades.highest_judgment),
        author=edit.author,
        at=edit.at,
    )
    connection = grades.connection
    with connection, transaction(connection):
        number = put_plan(connection, plan)
    return next(one for one in read_plans(connection) if one.number == number)


def find_plan(
    connection: sqlite3.Connection, number: int | None, unit: UnitKind | None = None, k: int = 0
) -> SamplePlan | None:
    """Return a plan by number, or the newest for the units and cutoff of a measure.

    Returns None if no plan matches. Raises InputError for an unknown number.
    """
    plans = read_plans(connection)
    if number is not None:
        for one in plans:
            if one.number == number:
                return one
        numbers = ", ".join(str(one.number) for one in plans) or "none"
        raise InputError(f"unknown plan {number}", hint=f"Plans: {numbers}")
    fitting = [one for one in plans if unit in (None, one.unit) and k in (0, one.k)]
    return fitting[-1] if fitting else None


def sample_of(
    grades: ChosenGrades, number: int | None = None, book: Gradebook | None = None
) -> SampleProgress:
    """Return the progress of a plan, by default the newest.

    Raises:
        InputError: There is none.
    """
    plan = find_plan(grades.connection, number)
    if plan is None:
        raise InputError(
            "no sample has been drawn",
            hint=f"Draw one: {draw_command(grades, DEFAULT_MEASURE)}",
        )
    return progress(grades.connection, plan, book or whole_book(grades), grades.grader)


def correct_grades(
    grades: ChosenGrades,
    measure: Measure | str,
    *,
    settings: CorrectionSettings | None = None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    plan: int | None = None,
) -> Corrected:
    """Return a leaderboard corrected by a complete sample or a fully judged pool.

    Raises:
        InputError: The measure cannot be corrected, there is no sample for it, or units are
            undecided.
    """
    # imported only when needed
    from exampp.analysis.corrected import CorrectionSettings, correct

    one = measure_of(measure)
    book = whole_book(grades)
    newest = find_plan(grades.connection, plan, check_linear(one), one.cutoff or 0)
    if newest is not None:
        min_relevant = newest.min_relevant if min_relevant is None else min_relevant
        min_rating = (
            newest.min_rating if min_rating is None and newest.unit == "item" else min_rating
        )
    units = units_of(grades, book, one, min_rating, min_relevant)
    least = grades.grader.threshold(min_rating)
    if newest is None:
        judged = _all_judged(units, grades)
    else:
        _check_plan(newest, units, grades, least)
        done = progress(grades.connection, newest, book, grades.grader)
        judged = _judged(grades, done, units, min_relevant)
    compared = choose_systems(book, grades.systems, grades.without).systems
    return correct(
        units,
        judged,
        or_default("settings", settings, CorrectionSettings),
        min_rating=least,
        systems=compared,
        source=_source(grades),
    )


def _source(grades: ChosenGrades) -> str:
    bank = f", bank {grades.bank_name}" if grades.bank_name else ""
    return labelled(f"graded by {grades.grader.name}{bank}", draft=grades.grader.is_draft)


def _check_plan(plan: SamplePlan, units: Population, grades: ChosenGrades, least: int) -> None:
    """Check that a plan is a sample of these units.

    Raises:
        InputError: It is a sample of other units; the message lists the differences.
    """
    kind = grades.grader.kind
    again = f"Draw a new sample: {draw_command(grades, units.measure)}"
    where = f"plan {plan.number} ({plan.measure}, {len(plan.drawn)} drawn)"
    if plan.unit != units.unit or plan.k != units.k:
        raise InputError(
            f"{where} is a sample of {plan.unit}s in the top {plan.k}, but {units.measure} needs "
            f"{units.unit}s in the top {units.k}",
            hint=again,
        )
    if plan.unit == "item" and (plan.bank, plan.kind) != (grades.bank, kind):
        raise InputError(f"{where} samples {plan.kind}s of the bank {plan.bank!r}", hint=again)
    if plan.unit == "item" and plan.min_rating != least:
        raise InputError(
            f"{where} uses the minimum rating {plan.min_rating}, not {least}",
            hint=f"Leave out --min-rating, or: {again}",
        )
    if pool_hash(units.names) != plan.pool_hash:
        changed = sorted(set(units.systems) ^ set(plan.systems))
        why = f" ({', '.join(changed)} were added or removed)" if changed else ""
        raise InputError(
            f"{where} was drawn from another pool of {plan.pool_size:,} {plan.unit}s; the "
            f"current one has {len(units.names):,}{why}. New units had no chance to be drawn, so "
            "the sample no longer applies",
            hint=again,
        )


def _judged(
    grades: ChosenGrades, progress: SampleProgress, units: Population, min_relevant: int | None
) -> JudgedSample:
    """Return the sample with its labels. Raises InputError if units are undecided."""
    from exampp.analysis.corrected import JudgedSample

    plan = progress.plan
    if progress.open:
        examples = ", ".join(map(_named, progress.open[:NAMED]))
        more = "" if len(progress.open) <= NAMED else f" and {len(progress.open) - NAMED:,} more"
        path = shlex.quote(str(grades.path))
        are = "is" if len(progress.open) == 1 else "are"
        raise InputError(
            f"{len(progress.open):,} of {len(plan.drawn):,} drawn {plan.unit}s {are} not decided: "
            f"{examples}{more}. Without them the sample is biased and has no valid interval",
            hint=f"Decide them: exampp serve {path}"
            + (f", or exampp import {path} judged.qrels" if plan.unit == "passage" else ""),
        )
    place = {name: number for number, name in enumerate(units.names)}
    names = [(one.query_id, one.unit_id) for one in plan.drawn]
    order = sorted(range(len(names)), key=lambda number: place[names[number]])
    places = np.array([place[names[number]] for number in order], np.intp)
    pi = np.array([plan.drawn[number].pi for number in order])
    values = np.array([progress.labels[names[number]] for number in order])
    level = units.measure.param("rel")
    level = level if isinstance(level, int) else (min_relevant or plan.min_relevant)
    labels = (values >= level).astype(np.float64) if plan.unit == "passage" else values.T
    return JudgedSample(
        sample=Sample(places, pi),
        labels=labels,
        fold_seed=plan.fold_seed,
        design=plan.design,
        origin=_origin(progress),
        notes=tuple(_said_of(progress)),
    )


def _named(one: SampledUnit) -> str:
    query_id, unit_id, _ = one.unit
    # item ids usually start with that of their query
    return unit_id if unit_id.startswith(f"{query_id}/") else f"{query_id}/{unit_id}"


def _origin(progress: SampleProgress) -> str:
    plan = progress.plan
    return (
        f"{len(plan.drawn):,} of {plan.pool_size:,} {plan.unit}s drawn (plan {plan.number}: "
        f"{plan.design}, seed {plan.seed}, {plan.expected:,.0f} expected)"
    )


def _said_of(progress: SampleProgress) -> Iterator[str]:
    who = Counter(name for one in progress.units for name in one.deciders)
    if who:
        people = ", ".join(f"{name} ({count})" for name, count in sorted(who.items()))
        yield f"Decided by {people}."
    imported = sum(one.found == "judgments" for one in progress.units)
    if imported:
        yield f"{imported:,} labels of sampled passages come from imported judgments."
    if progress.strays:
        yield (
            f"{progress.strays:,} other decisions are left out: they were made from the queue, "
            "while browsing or on another sample, so their selection probability is unknown."
        )


def _all_judged(units: Population, grades: ChosenGrades) -> JudgedSample:
    """Return all units with their judgments, without a sample.

    Raises:
        InputError: Some units have no judgment.
    """
    from exampp.analysis.corrected import JudgedSample

    hint = f"Draw a sample: {draw_command(grades, units.measure)}"
    if is_graded_file(grades.connection):
        hint = "Import it into a collection, and draw a sample there: exampp review --help"
    is_judged = ~np.isnan(units.judged)
    if units.unit == "passage" and is_judged.all():
        return JudgedSample(
            sample=Sample(np.arange(len(is_judged)), np.ones(len(is_judged))),
            labels=units.judged,
            fold_seed=0,
            design="all",
            origin=f"all {len(is_judged):,} passages of the pool are judged: nothing was drawn",
        )
    other = find_plan(grades.connection, None, units.unit)
    if other is not None:
        _check_plan(other, units, grades, other.min_rating)
    if units.unit == "item":
        raise InputError(f"{_strays(grades)}no sample of items has been drawn", hint=hint)
    count = int(is_judged.sum())
    coverage = (
        f"{count:,} of {len(is_judged):,} passages of the pool have" if count else "no passage has"
    )
    raise InputError(
        f"{coverage} a judgment, and no sample has been drawn: the probability that a passage "
        "was judged is unknown",
        hint=hint,
    )


def _strays(grades: ChosenGrades) -> str:
    by_sample = decisions_by_sample(grades.connection, grades.grader, grades.bank)
    count = sum(map(len, by_sample.values()))
    if not count:
        return ""
    return (
        f"{count:,} decisions from the queue or from browsing cannot be used, because their cells "
        "were selected with unknown probability; "
    )


def corrections(
    grades: ChosenGrades, min_rating: int | None = None, min_relevant: int | None = None
) -> list[Corrected | str]:
    """Return the corrections by the newest sample of each kind, or reasons for none.

    Without a sample of passages, P@20 uses a fully judged pool.
    """
    from exampp.analysis.corrected import CorrectionSettings

    newest = {plan.unit: plan for plan in read_plans(grades.connection)}
    tries = [
        partial(correct_grades, grades, one.measure, plan=one.number) for one in newest.values()
    ]
    if "passage" not in newest and grades.highest_judgment is not None and grades.gradebook.systems:
        over: Scope = "queries" if len(grades.gradebook.queries) > 1 else "pool"
        whole_pool = partial(
            correct_grades,
            grades,
            DEFAULT_MEASURE,
            settings=CorrectionSettings(over=over),
            min_rating=min_rating,
            min_relevant=min_relevant,
        )
        tries.insert(0, whole_pool)
    results: list[Corrected | str] = []
    for correct in tries:
        try:
            results.append(correct())
        except InputError as error:
            results.append(str(error))
    return results
