"""The reliability of a leaderboard as tables and sentences that one can act on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from exampp.analysis.phrases import percent, share_shown, with_interval
from exampp.analysis.reliability_records import ReliabilitySettings, Scored, Study
from exampp.analysis.reliability_sentences import (
    LEVEL,
    ORDER,
    among,
    component_name,
    components,
    left_out,
    sentences,
    shares,
)
from exampp.records.wording import counted
from exampp.report.plots import reliability as plots
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value
from exampp.stats.generalizability import Needed, erho2

_COMPONENTS = "Where the variance of scores comes from"


@dataclass(frozen=True, slots=True, repr=False)
class Reliability(Result):
    """How reliable scores are: a study for every share of systems dropped."""

    scored: Scored
    queries: int
    studies: tuple[Study, ...]
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
            tables["sizes"] = _sizes(self)
        if any(study.cheapest for study in self.studies):
            tables["designs"] = _designs(self)
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


def summary(study: Study) -> list[Value]:
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


def _sizes(found: Reliability) -> Table:
    """A row a number of queries, a column a number of items per query."""
    studies = [study for study in found.studies if study.says_something]
    items = list(dict.fromkeys(size.items for study in studies for size in study.sizes))
    group = "items per query" if items != [None] else ""
    columns: list[str | Column] = ["left out", "queries"]
    columns += [Column(_items(one) if group else ORDER, 3, group) for one in items]
    rows: list[list[Value]] = []
    marks: dict[tuple[int, int], str] = {}
    for study in studies:
        of = {(size.queries, size.items): size for size in study.sizes}
        for queries in dict.fromkeys(size.queries for size in study.sizes):
            values = [
                of[queries, one].erho2.value if (queries, one) in of else None for one in items
            ]
            if queries == found.queries:
                present = study.nested.items if study.nested else None
                marks |= {
                    (len(rows), 2 + at): "best" for at, one in enumerate(items) if one == present
                }
            rows.append([left_out(study), queries, *values])
    return Table.of(
        columns,
        rows,
        f"{ORDER} of exams of other sizes",
        marks=marks,
        legend={"best": "the exam at hand"},
        grouped=True,
    )


def _items(items: float | None) -> str:
    return plots.NO_LIMIT if items is None else f"{items:.3g}"


def _designs(found: Reliability) -> Table:
    rows: list[list[Value]] = []
    marks: dict[tuple[int, int], str] = {}
    for study in found.studies:
        for design in study.designs:
            if design == study.cheapest:
                marks[len(rows), 4] = "best"
            cells = None if design.queries is None else design.queries * design.items
            rows.append([left_out(study), design.items, design.queries, cells, design.cost])
    settings = found.settings
    caption = (
        f"Exams that reach {ORDER} {settings.target:g}, at {settings.query_cost:g} a query and "
        f"{settings.item_cost:g} an item"
    )
    notes = [NO_NUMBER.format("-")] if any(row[2] is None for row in rows) else []
    columns: list[str | Column] = ["left out", "items per query", "queries", "items in all"]
    columns.append(Column("cost", 0))
    legend = {"best": "the least that any number of items per query costs"}
    return Table.of(columns, rows, caption, notes, marks=marks, legend=legend, grouped=True)


_POINTS = 48


def _points(study: Study, numbers: Sequence[int]) -> Iterator[plots.Foreseen]:
    panel = f"{counted(len(study.systems), 'system')}: {among(study).removeprefix('of ')}"
    items = list(dict.fromkeys(size.items for size in study.sizes))
    for line in items:
        for queries in numbers:
            if study.nested is None or line == study.nested.items:
                one = erho2(study.crossed, queries, study.limits) if study.crossed else None
                if one is not None and one.value is not None:
                    yield plots.Foreseen(panel, _items(line), queries, one.value, one.low, one.high)
                continue
            value = study.nested.relative(queries, math.inf if line is None else line)
            if value is not None:
                yield plots.Foreseen(panel, _items(line), queries, value, None, None)


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
