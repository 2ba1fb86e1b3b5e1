"""How reliable a leaderboard is, and how many queries and items a better one takes.

A generalizability study of the scores (`stats.generalizability`), once with all systems and again
without the worst: one system that is far below the others makes any exam look reliable. With Cover
the items within queries are a facet of their own, and with several graders so are these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.items import first_of_repeated
from exampp.analysis.phrases import percent, share_shown, with_interval, worst_systems
from exampp.errors import InputError
from exampp.formats import score_tables
from exampp.measures.board import Leaderboard, caption
from exampp.measures.cover import Missing, coverings
from exampp.measures.item_scores import item_scores
from exampp.measures.leaderboard import missing_prerequisite
from exampp.measures.names import heading
from exampp.measures.values import Values
from exampp.records.gradebook import Gradebook
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.plots import lines as plots
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Value, interval_text, marked
from exampp.sanitize import or_default
from exampp.stats import generalizability as theory
from exampp.stats.estimate import Estimate, check_draws, draw_queries, undefined
from exampp.stats.generalizability import Needed, erho2

Floats = NDArray[np.float64]
DROPS = (0.0, 0.03, 0.25)
ONLY_COVER = "only Cover is a mean over items"
_NONE = theory.Needed(None, None, None)


@dataclass(frozen=True, slots=True)
class ReliabilitySettings:
    """What is asked of an exam.

    `target` is the coefficient wanted; `drop` are shares of the worst systems to leave out, each a
    study of its own; `queries` and `items` the sizes of exams to foresee (by default half, as many,
    twice and four times as many); `query_cost` and `item_cost` what one more costs; `samples` and
    `seed` belong to the bootstrap.

    Raises:
        InputError: A number makes no sense.
    """

    target: float = 0.95
    level: float = 0.95
    drop: tuple[float, ...] = DROPS
    queries: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    query_cost: float = 1.0
    item_cost: float = 1.0
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        costs = (self.query_cost, self.item_cost)
        wrong = (
            *(
                f"the {name} must be between 0 and 1, not {share:g}"
                for name, share in {"target": self.target, "level": self.level}.items()
                if not 0 < share < 1
            ),
            *(
                f"a share of systems to leave out is from 0 to below 1, not {drop:g}"
                for drop in self.drop
                if not 0 <= drop < 1
            ),
            *(
                f"an exam has 1 or more {name}, not {size}"
                for name, sizes in {"queries": self.queries, "items": self.items}.items()
                for size in sizes
                if size < 1
            ),
            *(
                f"a cost is a number from 0 on, not {cost:g}"
                for cost in costs
                if not (math.isfinite(cost) and cost >= 0)
            ),
            *(["queries and items cannot both cost nothing"] if not any(costs) else []),
        )
        for what in wrong:
            raise InputError(what)
        check_draws(self.samples, self.seed)


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of systems on queries, by whatever measure, to be studied.

    `exams` are those of the queries, in their order, systems x items each, of which the scores are
    the means; empty where there are none, and `no_items` then says why. `lacking` says why there is
    nothing to study.
    """

    name: str
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Values
    exams: tuple[Floats, ...] = ()
    no_items: str = ONLY_COVER
    caption: str = ""
    notes: tuple[str, ...] = ()
    lacking: str = ""
    draft: bool = False
    grader_key: str | None = None


@dataclass(frozen=True, slots=True)
class ExamSize:
    """What an exam of so many queries and items (None: without limit) is to be expected to do.

    `phi` is the reliability of levels; `errors` are the standard errors of measurement, of
    differences and of levels, in units of the score. `interval` names the method of the interval of
    `erho2`, which is made for exams with as many items as this one.
    """

    queries: int
    items: float | None
    erho2: Estimate
    phi: float | None
    errors: tuple[float, float]
    interval: str = ""


@dataclass(frozen=True, slots=True)
class ExamDesign:
    """So many items per query, the queries that the target then takes (None: none suffice)."""

    items: int
    queries: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class MarginalGain:
    """More queries, or more items in every query: what they cost, and Erho2 after them."""

    more: int
    erho2: float | None
    cost: float


@dataclass(frozen=True, slots=True)
class ReliabilityEstimate:
    """The systems that are left when a share `drop` of the worst is not counted, best first.

    `without` are the systems that are not counted, `limits` those of both coefficients for the
    `systems`. `crossed` is None where nothing can be studied; `nested` where there are no items to
    study.
    """

    drop: float
    systems: tuple[str, ...]
    erho2: Estimate
    phi: Estimate
    without: tuple[str, ...] = ()
    crossed: theory.Crossed | None = None
    limits: theory.Ratios | None = None
    nested: theory.Nested | None = None
    for_order: theory.Needed = _NONE
    for_level: theory.Needed = _NONE
    sizes: tuple[ExamSize, ...] = ()
    designs: tuple[ExamDesign, ...] = ()
    purchases: tuple[MarginalGain, MarginalGain] | None = None
    reaches_target: bool = False

    @property
    def says_something(self) -> bool:
        """Whether there is a coefficient."""
        return self.erho2.value is not None

    @property
    def shown_without(self) -> str:
        """The systems that are left out, in words; "" where all count."""
        return worst_systems(self.without, len(self.systems) + len(self.without))

    @property
    def cheapest(self) -> ExamDesign | None:
        """The design that reaches the target at the least cost."""
        priced = [one for one in self.designs if one.cost is not None]
        return min(priced, key=lambda one: one.cost or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class GraderEstimate:
    """Graders as a facet, without a share `drop` of the worst systems; None: `reason`.

    `shown_without` names the systems that are left out.
    """

    drop: float
    systems: int
    shown_without: str
    found: theory.WithGraders | None
    reason: str = ""


ORDER, LEVEL = "E\u03c1\u00b2", "\u03a6"
"""The coefficients: of the order of systems, of the level of their scores."""
TIMES = "\u00d7"
COMPONENTS: Mapping[str, str] = {
    "s": "systems",
    "q": "queries",
    "g": "graders",
    "sq": f"systems {TIMES} queries",
    "sg": f"systems {TIMES} graders",
    "qg": f"queries {TIMES} graders",
    "iq": "items of a query",
    "siq": f"systems {TIMES} items, error",
    "sqg": f"systems {TIMES} queries {TIMES} graders, error",
}
_CROSSED_ERROR = f"systems {TIMES} queries, error"
_PART = 0.1
"""A coefficient that falls by more without the worst systems depends on them."""


def sentences(
    scored: Scored, queries: int, studies: Sequence[ReliabilityEstimate], level: float
) -> list[str]:
    """Return what follows from the studies, most important first, and how they were made.

    `level` is that of the intervals.
    """
    known = _different(studies)
    return [
        *undefined_because(studies),
        *_verdict(known),
        *_advice(known),
        *_no_interval(known),
        *_negative(known),
        *_no_items(scored, known),
        *(method(level) if known else ()),
        *_left_queries(scored, queries),
        *scored.notes,
    ]


def undefined_because(studies: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    """Return which studies found nothing, and why."""
    reasons = dict.fromkeys(study.erho2.reason for study in studies if study.erho2.reason)
    for reason in reasons:
        of = [study for study in studies if study.erho2.reason == reason]
        where = "" if len(of) == len(studies) else f" {' and '.join(map(among, of))}"
        yield f"The reliability is undefined{where}, because {reason}."


def _different(studies: Sequence[ReliabilityEstimate]) -> list[ReliabilityEstimate]:
    """The studies that found something, of those of the same systems the first."""
    by_systems: dict[tuple[str, ...], ReliabilityEstimate] = {}
    for study in studies:
        if study.says_something:
            by_systems.setdefault(study.systems, study)
    return list(by_systems.values())


def _verdict(known: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    """Tell how reliable the order is, and whether the worst systems make it so."""
    if not known or not (whole := known[0].erho2.value):
        return
    first, *rest = known
    of = counted(len(first.systems), "system")
    parts = [f"{_value(one)} {among(one)}" for one in rest]
    text = "; ".join([f"Reliability of the order ({ORDER}): {_value(first)} for {of}", *parts])
    least = min((one.erho2.value or 0.0 for one in rest), default=whole)
    if least < whole - _PART:
        part = "most" if least < whole / 2 else "part"
        text += f". The worst systems cause {part} of it: use the lower values"
    yield f"{text}."


def _value(study: ReliabilityEstimate) -> str:
    bounded = with_interval(study.erho2)
    return "-" if bounded is None else interval_text(bounded, 3)


def _advice(known: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    """Give one piece of advice, from the study with the lowest coefficient."""
    if not known:
        return
    study = min(known, key=lambda one: one.erho2.value or 0.0)
    found = study.crossed
    if found and found.raw_s <= 0:
        fewest = study.for_order.low
        more = f", and {ORDER} of the target takes {fewest:,} queries or more" if fewest else ""
        yield (
            f"These {counted(found.queries, 'query')} do not show that the systems differ "
            f"({among(study)}): their variance is estimated as {found.raw_s:.3g}{more}."
        )
    elif study.reaches_target:
        most = study.for_order.high
        shown = study.limits and found and most is not None and most <= found.queries
        but = "" if shown else "; no interval shows that the coefficient does"
        yield f"The estimate reaches the target {among(study)}{but}."
    elif study.purchases:
        yield _purchase(study, *study.purchases)


def _purchase(study: ReliabilityEstimate, queries: MarginalGain, items: MarginalGain) -> str:
    """Compare ten more queries with five more items in every query, by gain and cost."""
    present = study.erho2.value or 0.0
    of_queries = f"{queries.more} more queries (cost {queries.cost:,.0f}): {queries.erho2:.3f}"
    of_items = f"{items.more} more items per query (cost {items.cost:,.0f}): {items.erho2:.3f}"
    steps = [of_queries, of_items]
    if _gain(present, queries) < _gain(present, items):
        steps.reverse()
    found = study.nested
    limit = found.relative(found.means.queries, math.inf) if found else None
    most = "" if limit is None or limit > _ALL else f"; more items alone reach at most {limit:.3f}"
    return (
        f"Best next step {among(study)}, from {ORDER} {present:.3f}: {steps[0]}. "
        f"Alternative: {steps[1]}{most}."
    )


_ALL = 0.9995
"""A coefficient above is shown as 1.000."""


def _gain(present: float, purchase: MarginalGain) -> float:
    gain = (purchase.erho2 or 0.0) - present
    return gain / purchase.cost if purchase.cost else math.inf


def among(study: ReliabilityEstimate | GraderEstimate) -> str:
    """Return of which systems, in a sentence."""
    return f"without {study.shown_without}" if study.shown_without else "of all systems"


def _no_interval(known: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    for reason in dict.fromkeys(one.erho2.no_interval for one in known if one.erho2.no_interval):
        of = [study for study in known if study.erho2.no_interval == reason]
        where = "" if len(of) == len(known) else f" {' and '.join(map(among, of))}"
        yield f"No confidence interval{where}: {reason}."


def _negative(known: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    below = [
        f"{COMPONENTS[name]} {value:.3g} {among(study)}"
        for study in known
        for name, value in components(study).items()
        if value < 0 and name != "s"
    ]
    if below:
        yield f"Negative variances count as 0: {', '.join(below)}."


def _no_items(scored: Scored, known: Sequence[ReliabilityEstimate]) -> Iterator[str]:
    if known and scored.no_items:
        yield f"Items are no facet of this study, because {scored.no_items}."


def method(level: float) -> Iterator[str]:
    """Return the meaning of the coefficients and of their intervals of this level."""
    yield (
        f"{ORDER}: the share of the variance of differences between these systems that other "
        f"queries would show again; {LEVEL}: the same of the scores themselves. Intervals "
        f"({percent(level)}) hold for these systems and for queries like these, by resampling the "
        "queries and one added query. Errors are standard errors of measurement, in units of the "
        "score."
    )


def _left_queries(scored: Scored, queries: int) -> Iterator[str]:
    left = len(scored.query_ids) - queries
    if left and queries:
        yield f"Left out, because they do not count for every system: {counted(left, 'query')}."


def components(study: ReliabilityEstimate) -> dict[str, float]:
    """The components as they come out."""
    if study.nested:
        return study.nested.raw
    if study.crossed is None:
        return {}
    found = study.crossed
    return {"s": found.raw_s, "q": found.raw_q, "sq": found.ms_e}


def shares(raw: Mapping[str, float]) -> dict[str, float | None]:
    """What part of all variance each component is, negative ones being 0."""
    total = sum(max(0.0, value) for value in raw.values())
    return {name: max(0.0, value) / total if total else None for name, value in raw.items()}


def component_name(name: str, raw: Mapping[str, float]) -> str:
    """What varies, in words; without items the interaction with queries holds the error."""
    return (
        _CROSSED_ERROR
        if name == "sq" and "siq" not in raw and "sqg" not in raw
        else COMPONENTS[name]
    )


def left_out(study: ReliabilityEstimate | GraderEstimate) -> str:
    """Return which systems a study leaves out."""
    return study.shown_without or "none"


_COMPONENTS = "Where the variance of scores comes from"


@dataclass(frozen=True, slots=True, repr=False)
class Reliability(Result):
    """How reliable scores are: a study for every share of systems dropped."""

    scored: Scored
    queries: int
    studies: tuple[ReliabilityEstimate, ...]
    settings: ReliabilitySettings

    def sentences(self) -> list[str]:
        """What follows from the studies, most important first, and how they were made."""
        return sentences(self.scored, self.queries, self.studies, self.settings.level)

    def tables(self) -> Mapping[str, Table]:
        """Reliability by systems dropped, components, sizes of exams, and designs by cost."""
        tables = {"reliability": _reliability(self)}
        if any(study.says_something for study in self.studies):
            tables["queries"] = _queries(self)
            tables["components"] = components_table(
                {left_out(one): components(one) for one in self.studies if one.says_something},
                _COMPONENTS,
            )
            tables["sizes"] = _sizes_table(self)
        if any(study.cheapest for study in self.studies):
            tables["designs"] = _designs_table(self)
        return tables

    def records(self) -> Mapping[str, Table]:
        """The same, a row a value."""
        tables = {
            "reliability": _study_records(self),
            "components": component_records(_raw_by_drop(self), _COMPONENTS),
            "sizes": _size_records(self),
            "designs": _design_records(self),
        }
        return {name: table.keyed(self.scored.grader_key) for name, table in tables.items()}

    def figure(self) -> Figure:
        """Reliability over the number of queries, a line a number of items, a panel a study."""
        studies = [study for study in self.studies if study.says_something]
        deepest = 4 * self.queries
        numbers = sorted(
            {*(round(deepest * n / _POINTS) for n in range(1, _POINTS + 1)), self.queries}
        )
        numbers = [number for number in numbers if number]
        foreseen = [point for study in studies for point in _points(study, numbers)]
        figure = plots.reliability(
            foreseen,
            self.scored.name,
            present=self.queries,
            target=self.settings.target,
            interval=f"{percent(self.settings.level)} interval with the items at hand",
        )
        return replace(figure, draft=self.scored.draft)


# ---- one row a study -----------------------------------------------------------------------------


def _reliability(found: Reliability) -> Table:
    rows = [[left_out(study), len(study.systems), *summary(study)] for study in found.studies]
    columns: list[str | Column] = ["left out", "systems", *SUMMARY]
    return Table.of(columns, rows, _caption(found), found.sentences())


SUMMARY = (
    Column(ORDER),
    Column(LEVEL),
    Column("differences", 4, "error of"),
    Column("levels", 4, "error of"),
)


def summary(study: ReliabilityEstimate) -> list[Cell]:
    """The values of `SUMMARY` of a study."""
    if study.crossed is None:
        return [None] * len(SUMMARY)
    return [
        with_interval(study.erho2),
        with_interval(study.phi),
        *study.crossed.errors(study.crossed.queries),
    ]


def _queries(found: Reliability) -> Table:
    """How many queries, of as many items as now, reach the target."""
    target = f"{found.settings.target:g}"
    rows = [
        [left_out(study), *((_needed(one)) for one in (study.for_order, study.for_level))]
        for study in found.studies
        if study.says_something
    ]
    columns = ["left out", f"for {ORDER} {target}", f"for {LEVEL} {target}"]
    notes = [NO_NUMBER.format("none")] if any("none" in str(row[1:]) for row in rows) else []
    return Table.of(columns, rows, f"Queries that an exam like this takes for {target}", notes)


NO_NUMBER = "{}: these scores do not show that the systems differ, so no number follows"


def _needed(needed: Needed) -> str:
    shown = [f"{number:,}" if number else "none" for number in needed]
    if needed == Needed(needed.queries, needed.queries, needed.queries):
        return shown[0]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _caption(found: Reliability) -> str:
    """What is studied; that grades are drafts stands before all else."""
    of = f"; {found.scored.caption}" if found.scored.caption else ""
    before, draft, after = of.partition("DRAFT GRADES: ")
    queries = counted(found.queries, "query")
    return f"{draft}Reliability of {found.scored.name} on {queries}{before}{after}"


# ---- components ----------------------------------------------------------------------------------


def components_table(by_left_out: Mapping[str, Mapping[str, float]], caption: str) -> Table:
    """A row a component, its variance and share of all; a group of columns what is left out."""
    columns: list[str | Column] = ["variance of"]
    for name in by_left_out:
        group = f"{name} left out"
        columns += [Column("variance", 6, group), Column("share", 3, group)]
    every = list(by_left_out.values())
    rows: list[list[Value]] = []
    for name in every[0]:
        row: list[Value] = [component_name(name, every[0])]
        for raw in every:
            row += [raw[name], share_shown(shares(raw)[name])]
        rows.append(row)
    return Table.of(columns, rows, caption)


def component_records(
    raw_by_drop: Mapping[float, Mapping[str, float]], caption: str, notes: Sequence[str] = ()
) -> Table:
    """A row a component and share of systems dropped."""
    rows: list[list[Value]] = []
    for drop, raw in raw_by_drop.items():
        of_all = shares(raw)
        for name, value in raw.items():
            shown = component_name(name, raw)
            rows.append([drop, name, shown, value, max(0.0, value), of_all[name]])
    columns = ["left_out", "component", "of", "raw", "variance", "share"]
    return Table.of(columns, rows, caption, notes)


def _raw_by_drop(found: Reliability) -> dict[float, dict[str, float]]:
    return {study.drop: components(study) for study in found.studies if study.says_something}


# ---- other exams ---------------------------------------------------------------------------------


def _sizes_table(found: Reliability) -> Table:
    """A row a number of queries, a column a number of items per query."""
    studies = [study for study in found.studies if study.says_something]
    items = list(dict.fromkeys(size.items for study in studies for size in study.sizes))
    group = "items per query" if items != [None] else ""
    columns: list[str | Column] = ["left out", "queries"]
    columns += [Column(_items(one) if group else ORDER, 3, group) for one in items]
    rows: list[list[Cell]] = []
    for study in studies:
        of = {(size.queries, size.items): size for size in study.sizes}
        for queries in dict.fromkeys(size.queries for size in study.sizes):
            present = study.nested.items if study.nested else None
            values = [
                marked(
                    of[queries, one].erho2.value if (queries, one) in of else None,
                    "best" if queries == found.queries and one == present else "",
                )
                for one in items
            ]
            rows.append([left_out(study), queries, *values])
    return Table.of(
        columns,
        rows,
        f"{ORDER} of exams of other sizes",
        legend={"best": "the exam at hand"},
        grouped=True,
    )


def _items(items: float | None) -> str:
    return plots.NO_LIMIT if items is None else f"{items:.3g}"


def _designs_table(found: Reliability) -> Table:
    rows: list[list[Cell]] = []
    for study in found.studies:
        for design in study.designs:
            cells = None if design.queries is None else design.queries * design.items
            cost = marked(design.cost, "best" if design == study.cheapest else "")
            rows.append([left_out(study), design.items, design.queries, cells, cost])
    settings = found.settings
    caption = (
        f"Exams that reach {ORDER} {settings.target:g}, at {settings.query_cost:g} a query and "
        f"{settings.item_cost:g} an item"
    )
    notes = [NO_NUMBER.format("-")] if any(row[2] is None for row in rows) else []
    columns: list[str | Column] = ["left out", "items per query", "queries", "items in all"]
    columns.append(Column("cost", 0))
    legend = {"best": "the least that any number of items per query costs"}
    return Table.of(columns, rows, caption, notes, legend=legend, grouped=True)


_POINTS = 48


def _points(
    study: ReliabilityEstimate, numbers: Sequence[int]
) -> Iterator[plots.ProjectedReliability]:
    panel = f"{counted(len(study.systems), 'system')}: {among(study).removeprefix('of ')}"
    items = list(dict.fromkeys(size.items for size in study.sizes))
    for line in items:
        for queries in numbers:
            if study.nested is None or line == study.nested.items:
                one = erho2(study.crossed, queries, study.limits) if study.crossed else None
                if one is not None and one.value is not None:
                    yield plots.ProjectedReliability(
                        panel, _items(line), queries, one.value, one.low, one.high
                    )
                continue
            value = study.nested.relative(queries, math.inf if line is None else line)
            if value is not None:
                yield plots.ProjectedReliability(panel, _items(line), queries, value, None, None)


# ---- for programs --------------------------------------------------------------------------------

_NEEDED = ("queries_for_target", "fewest", "most")


def _study_records(found: Reliability) -> Table:
    columns = [
        *("measure", "left_out", "systems", "queries", "items", "ms_s", "ms_q", "ms_e"),
        *("ms_iq", "ms_siq", "erho2", "erho2_low", "erho2_high", "phi", "phi_low", "phi_high"),
        *("error_of_differences", "error_of_levels", "target"),
        *(f"erho2_{name}" for name in _NEEDED),
        *(f"phi_{name}" for name in _NEEDED),
    ]
    rows: list[list[Value]] = []
    for study in found.studies:
        one, of_items = study.crossed, study.nested
        squares = (one.ms_s, one.ms_q, one.ms_e) if one else (None,) * 3
        inner = (of_items.ms_iq, of_items.ms_siq) if of_items else (None, None)
        errors = one.errors(one.queries) if one else (None, None)
        rows.append(
            [
                *(found.scored.name, study.drop, len(study.systems), found.queries),
                *(of_items.items if of_items else None, *squares, *inner),
                *(study.erho2.value, study.erho2.low, study.erho2.high),
                *(study.phi.value, study.phi.low, study.phi.high),
                *(*errors, found.settings.target, *study.for_order, *study.for_level),
            ]
        )
    return Table.of(columns, rows, _caption(found), found.sentences())


def _size_records(found: Reliability) -> Table:
    rows: list[list[Value]] = [
        [
            *(study.drop, size.queries, size.items),
            *(size.erho2.value, size.erho2.low, size.erho2.high, size.interval or None),
            *(size.phi, *size.errors),
        ]
        for study in found.studies
        for size in study.sizes
    ]
    columns = [
        *("left_out", "queries", "items", "erho2", "erho2_low", "erho2_high", "interval"),
        *("phi", "error_of_differences", "error_of_levels"),
    ]
    return Table.of(columns, rows, "Exams of other sizes; items empty: without limit, or no facet")


def _design_records(found: Reliability) -> Table:
    rows: list[list[Value]] = [
        [study.drop, one.items, one.queries, one.cost, one == study.cheapest]
        for study in found.studies
        for one in study.designs
    ]
    columns = ["left_out", "items", "queries", "cost", "cheapest"]
    return Table.of(columns, rows, f"Exams that reach {found.settings.target:g}")


__all__ = [
    "Reliability",
    "ReliabilityEstimate",
    "ReliabilitySettings",
    "Scored",
    "reliability",
    "scored_column",
    "scored_table",
]

REPEATED = "the words and the grades of {} are those of another item of the query"
ONE_ITEM = "no query has two items"
UNEQUAL = "the items of a query weigh differently"
SKIPPED = "with --missing skip systems sit different items"
_MOST_ITEMS = 1000


# ---- what is studied -----------------------------------------------------------------------------


def scored_column(
    book: Gradebook,
    board: Leaderboard,
    missing: Missing = "zero",
    texts: BankTexts | None = None,
) -> Scored:
    """Return the first column of a leaderboard, with the items behind it where it is Cover.

    `texts` are those of the bank: where items repeat others, items are no facet.

    Raises:
        InputError: Missing cells have bounds in place of values.
    """
    if missing == "bounds":
        raise InputError(
            "reliability is that of scores, and bounds are none",
            mend="Choose --missing zero or skip; exampp analyze sensitivity has the bounds",
        )
    column = board.columns[0]
    exams, no_items = _exams(book, board, missing, texts or BankTexts())
    nothing = missing_prerequisite(book)
    return Scored(
        name=heading(str(column.measure), column.min_rating),
        systems=board.column_systems,
        query_ids=column.query_ids,
        values=column.values,
        exams=exams,
        no_items=no_items,
        caption=caption(board),
        notes=board.notes,
        lacking=nothing.cause if nothing else "",
        draft=book.grader.is_draft,
        grader_key=book.grader.key,
    )


def scored_table(path: str | Path) -> Scored:
    """The scores of a table made elsewhere, FILE or FILE:MEASURE (`formats.score_tables`)."""
    found = score_tables.read_matrix(path)
    values = np.array(found.values, np.float64)
    return Scored(
        name=found.measure or Path(path).name,
        systems=found.systems,
        query_ids=found.topics,
        values=Values(values, np.ones(values.shape, np.bool_)),
        no_items="the table has one score a query",
    )


def _exams(
    book: Gradebook, board: Leaderboard, missing: Missing, texts: BankTexts
) -> tuple[tuple[Floats, ...], str]:
    """The exams of the queries, systems x items; or none, and why."""
    column = board.columns[0]
    if column.measure.name != "Cover" or column.min_rating is None:
        return (), ONLY_COVER
    if missing != "zero":
        return (), SKIPPED
    k = column.measure.cutoff or 1
    scores = item_scores(book, column.min_rating, k, subtopics=board.subtopics)
    first = first_of_repeated(scores, texts)
    if repeated := int((first != np.arange(len(first))).sum()):
        return (), REPEATED.format(counted(repeated, "item"))
    found = coverings(book, column.min_rating, k=k, subtopics=board.subtopics)
    if any(np.ptp(query.shares) > 1e-9 for query in found):
        return (), UNEQUAL
    if all(len(query.shares) < 2 for query in found):
        return (), ONE_ITEM
    return tuple(query.covered.astype(np.float64) for query in found), ""


# ---- the study -----------------------------------------------------------------------------------


def reliability(scored: Scored, settings: ReliabilitySettings | None = None) -> Reliability:
    """Study scores on the queries that count for every system; see `Reliability`."""
    settings = or_default("settings", settings, ReliabilitySettings)
    scored = _in_order_of_names(scored)
    counting = scored.values.counts.all(axis=0) & (len(scored.systems) > 0)
    table = scored.values.values[:, counting]
    exams = [scored.exams[at] for at in np.flatnonzero(counting)] if scored.exams else []
    studies: dict[bytes, ReliabilityEstimate] = {}
    for drop in settings.drop:
        kept = theory.kept_systems(table, drop) if table.size else np.zeros(len(table), np.bool_)
        # of few systems a larger share of the worst may be the same ones
        if kept.tobytes() not in studies:
            studies[kept.tobytes()] = _study(scored, table, exams, drop, kept, settings)
    return Reliability(scored, int(counting.sum()), tuple(studies.values()), settings)


def _in_order_of_names(scored: Scored) -> Scored:
    """Sort systems and queries by name: resamples must not depend on the order of lines."""
    systems = np.array(sorted(range(len(scored.systems)), key=scored.systems.__getitem__), np.intp)
    queries = np.array(
        sorted(range(len(scored.query_ids)), key=scored.query_ids.__getitem__), np.intp
    )
    at = np.ix_(systems, queries)
    return replace(
        scored,
        systems=tuple(scored.systems[row] for row in systems),
        query_ids=tuple(scored.query_ids[column] for column in queries),
        values=Values(scored.values.values[at], scored.values.counts[at]),
        exams=tuple(scored.exams[column][systems] for column in queries) if scored.exams else (),
    )


def _study(
    scored: Scored,
    table: Floats,
    exams: Sequence[Floats],
    drop: float,
    kept: NDArray[np.bool_],
    settings: ReliabilitySettings,
) -> ReliabilityEstimate:
    means = np.round(table[kept].mean(axis=1), 9) if table.size else np.zeros(0)
    names = [scored.systems[row] for row in np.flatnonzero(kept).tolist()]
    order = sorted(range(len(names)), key=lambda row: (-means[row], names[row]))
    systems = tuple(names[row] for row in order)
    without = tuple(name for name in scored.systems if name not in systems)
    reason = _why_none(scored, table, int(kept.sum()))
    if reason:
        return ReliabilityEstimate(drop, systems, undefined(reason), undefined(reason), without)
    found = theory.crossed(table[kept])
    of_items = [exam[kept] for exam in exams]
    nested = theory.nested(of_items) if of_items else None
    n = found.queries
    limits = _limits(found, table[kept], settings)
    return ReliabilityEstimate(
        drop=drop,
        systems=systems,
        erho2=theory.erho2(found, n, limits),
        phi=theory.phi(found, n, limits),
        without=without,
        crossed=found,
        limits=limits,
        nested=nested,
        for_order=theory.erho2_queries(found, settings.target, limits),
        for_level=theory.phi_queries(found, settings.target, limits),
        sizes=tuple(_sizes(found, nested, limits, settings)),
        designs=_designs(nested, settings) if nested else (),
        purchases=_purchases(nested, settings) if nested else None,
        reaches_target=(found.relative(n) or 0.0) >= settings.target,
    )


def _limits(
    found: theory.Crossed, table: Floats, settings: ReliabilitySettings
) -> theory.Ratios | None:
    """The limits of both coefficients; None where too few queries or no residual give none."""
    if not found.ms_e or found.queries < theory.FEWEST_QUERIES:
        return None
    draws = draw_queries(found.queries + 1, settings.samples, settings.seed)
    return theory.ratios(table, draws, settings.level)


def _why_none(scored: Scored, table: Floats, systems: int) -> str:
    if scored.lacking:
        return scored.lacking[0].lower() + scored.lacking[1:]
    if len(table) < 2:
        return theory.FEW_SYSTEMS
    if table.shape[1] < 2:
        return theory.FEW_QUERIES
    if systems < 2:
        return "fewer than 2 systems are left"
    return ""


def _steps(present: float, asked: Sequence[int]) -> list[float]:
    """The sizes asked for, or half, as many, twice and four times as many as there are."""
    foreseen = (present, *(max(1, round(present * factor)) for factor in (0.5, 2, 4)))
    return sorted({float(one) for one in asked or foreseen})


def _sizes(
    found: theory.Crossed,
    nested: theory.Nested | None,
    limits: theory.Ratios | None,
    settings: ReliabilitySettings,
) -> Iterator[ExamSize]:
    """Exams of other sizes; only those with as many items as now have intervals."""
    items = [*_steps(nested.items, settings.items), math.inf] if nested else [None]
    for n in map(int, _steps(found.queries, settings.queries)):
        for m in items:
            if nested is None or m is None or m == nested.items:
                estimate = theory.erho2(found, n, limits)
                how = "" if estimate.low is None else "bootstrap"
                yield ExamSize(n, m, estimate, found.absolute(n), found.errors(n), how)
                continue
            value, shown = nested.relative(n, m), None if math.isinf(m) else m
            estimate = undefined(theory.ALL_ALIKE) if value is None else Estimate(value)
            yield ExamSize(n, shown, estimate, nested.absolute(n, m), nested.errors(n, m))


def _cost(queries: float, items: float, settings: ReliabilitySettings) -> float:
    return queries * (settings.query_cost + items * settings.item_cost)


def _designs(nested: theory.Nested, settings: ReliabilitySettings) -> tuple[ExamDesign, ...]:
    """Those of the items of the grid, and the one that costs least of all."""

    def design(items: int) -> ExamDesign:
        needed = nested.queries_needed(settings.target, items)
        queries = None if needed is None else max(2, needed)
        cost = None if queries is None else _cost(queries, items, settings)
        return ExamDesign(items, queries, cost)

    grid = [round(one) for one in _steps(nested.items, settings.items)]
    everything = {items: design(items) for items in {*range(1, _MOST_ITEMS + 1), *grid}}
    priced = [one for one in everything.values() if one.cost is not None]
    best = min(priced, key=lambda one: (one.cost, one.items), default=None)
    shown = {*grid, *([best.items] if best else [])}
    return tuple(everything[items] for items in sorted(shown))


MORE_QUERIES, MORE_ITEMS = 10, 5


def _purchases(
    nested: theory.Nested, settings: ReliabilitySettings
) -> tuple[MarginalGain, MarginalGain]:
    """Ten more queries, and five more items in every query."""
    n, m = nested.means.queries, nested.items
    return (
        MarginalGain(
            MORE_QUERIES,
            nested.relative(n + MORE_QUERIES, m),
            _cost(MORE_QUERIES, m, settings),
        ),
        MarginalGain(
            MORE_ITEMS, nested.relative(n, m + MORE_ITEMS), n * MORE_ITEMS * settings.item_cost
        ),
    )
