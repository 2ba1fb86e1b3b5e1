"""Reliability of a leaderboard, and the queries and items needed for a better one.

A generalizability study of the scores (`stats.generalizability`), once with all systems and again
without the worst: one system far below the others makes any exam look reliable. With Cover the
items of a query are a facet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.items import first_of_repeated
from exampp.analysis.phrases import percent, share_shown, worst_systems
from exampp.errors import InputError
from exampp.measures.board import Leaderboard, caption
from exampp.measures.cover import Missing, item_scores
from exampp.measures.leaderboard import missing_prerequisite
from exampp.measures.names import heading
from exampp.measures.values import Values
from exampp.records.gradebook import Gradebook, check_testable
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.notes import DRAFT, Note, merge_notes, note
from exampp.results.plots import lines
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Value, interval_text, marked, programs_only
from exampp.sanitize import or_default
from exampp.stats import generalizability as theory
from exampp.stats.estimate import Estimate, Floats, check_draws, draw_queries, undefined
from exampp.stats.item_analysis import kept_systems

DROPS = (0.0, 0.03, 0.25)
ORDER, LEVEL = "E\u03c1\u00b2", "\u03a6"
"""The coefficients: of the order of systems, of the level of their scores."""
TIMES = "\u00d7"
COMPONENTS: Mapping[str, str] = {
    "s": "systems",
    "q": "queries",
    "sq": f"systems {TIMES} queries",
    "iq": "items of a query",
    "siq": f"systems {TIMES} items, error",
}
ROUNDING = 1e-12
"""A variance nearer to 0 than this is 0 up to rounding."""
ONLY_COVER = "only Cover is a mean over items"
REPEATED = "{} repeat the words and grades of another item of the query"
ONE_ITEM = "no query has two items"
UNEQUAL = "the items of a query weigh differently"
SKIPPED = "with --missing skip systems have different items"

MORE_QUERIES, MORE_ITEMS = 10, 5
_PART = 0.1
"""A coefficient that falls by more without the worst systems depends on them."""
_ALL = 0.9995
"""A coefficient above is printed as 1.000."""
_POINTS = 48
_NONE = theory.Needed(None, None, None)


@dataclass(frozen=True, slots=True)
class ReliabilitySettings:
    """Settings of a reliability study.

    `target` is the wanted coefficient. `drop` are shares of the worst systems to leave out, each a
    study. `queries` and `items` are the sizes of exams to project (by default half, as many, twice
    and four times as many). `samples` and `seed` belong to the bootstrap.

    Raises:
        InputError: A number is out of range.
    """

    target: float = 0.95
    level: float = 0.95
    drop: tuple[float, ...] = DROPS
    queries: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        rules: tuple[tuple[str, tuple[float, ...], Callable[[float], bool]], ...] = (
            ("the target must be between 0 and 1", (self.target,), lambda x: 0 < x < 1),
            ("the level must be between 0 and 1", (self.level,), lambda x: 0 < x < 1),
            ("a share of systems left out is from 0 to below 1", self.drop, lambda x: 0 <= x < 1),
            ("an exam has 1 or more queries", self.queries, lambda x: x >= 1),
            ("an exam has 1 or more items", self.items, lambda x: x >= 1),
        )
        for rule, values, holds in rules:
            if wrong := [value for value in values if not holds(value)]:
                raise InputError(f"{rule}, not {wrong[0]:g}")
        check_draws(self.samples, self.seed)


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of systems on queries under a measure, to be studied.

    `exams` are those of the queries, in their order, systems x items each, of which the scores are
    the means; empty if there are none, for the reason in `no_items`. `lacking` is why there is
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


class ExamSize(NamedTuple):
    """The expected reliability of an exam of so many queries and items (None: infinite).

    `phi` is the reliability of levels. `errors` are the standard errors of measurement, of
    differences and of levels, in units of the score. `interval` is the method of the interval.
    """

    queries: int
    items: float | None
    erho2: Estimate
    phi: float | None
    errors: tuple[float, float]
    interval: str = ""


@dataclass(frozen=True, slots=True)
class ReliabilityEstimate:
    """The reliability among the remaining systems when a share `drop` of the worst is left out.

    `systems` are ordered from the best, `without` are left out. `crossed` is None where nothing
    can be studied, `nested` where there are no items to study.
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

    @property
    def shown_without(self) -> str:
        """The systems that are left out, in words; empty if none."""
        return worst_systems(self.without, len(self.systems) + len(self.without))

    @property
    def components(self) -> dict[str, float]:
        """The components of variance; negative ones are not set to 0."""
        if self.nested or not self.crossed:
            return self.nested.raw if self.nested else {}
        return {"s": self.crossed.raw_s, "q": self.crossed.raw_q, "sq": self.crossed.ms_e}

    @property
    def gains(self) -> dict[str, float]:
        """Erho2 with more queries, and with more items in every query; empty without items."""
        if self.nested is None:
            return {}
        n, m = self.nested.means.queries, self.nested.items
        return {
            f"{MORE_QUERIES} more queries": self.nested.relative(n + MORE_QUERIES, m) or 0.0,
            f"{MORE_ITEMS} more items per query": self.nested.relative(n, m + MORE_ITEMS) or 0.0,
        }


# ---- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Reliability(Result):
    """The reliability of scores: a study for every share of systems left out."""

    scored: Scored
    queries: int
    studies: tuple[ReliabilityEstimate, ...]
    settings: ReliabilitySettings

    @property
    def known(self) -> list[ReliabilityEstimate]:
        """The studies that have a coefficient."""
        return [study for study in self.studies if study.erho2.value is not None]

    def tables(self) -> Mapping[str, Table]:
        """Return reliability, components of variance, and sizes of exams."""
        found = {"reliability": self._estimates()}
        if self.known:
            by_name = {_left_out(study): study.components for study in self.known}
            found["components"] = _components_table(by_name, _COMPONENTS)
            found["sizes"] = self._sizes()
        return found

    def records(self) -> Mapping[str, Table]:
        """Return the same tables with a row per value."""
        sizes = [
            [study.drop, *one[:3], one.interval or None, one.phi, *one.errors]
            for study in self.studies
            for one in study.sizes
        ]
        names = ("left_out", "queries", "items", Column("erho2", interval=True), "interval", "phi")
        raw = {study.drop: study.components for study in self.known}
        about = "Exams of other sizes; items empty: without limit, or no facet"
        found = {
            "reliability": self._estimates(),
            "components": _component_records(raw, _COMPONENTS),
            "sizes": Table.of([*names, *_ERRORS], sizes, about),
        }
        return {name: table.keyed(self.scored.grader_key) for name, table in found.items()}

    def _estimates(self) -> Table:
        target = f"{self.settings.target:g}"
        squares = ("ms_s", "ms_q", "ms_e")
        columns = [
            *(_people("left out"), *programs_only("measure", "left_out"), Column("systems")),
            *programs_only("queries", "items", *squares, "ms_iq", "ms_siq"),
            Column(ORDER, key="erho2", interval=True),
            Column(LEVEL, key="phi", interval=True),
            Column("differences", 4, "error of", _ERRORS[0]),
            Column("levels", 4, "error of", _ERRORS[1]),
            *programs_only("target", *_NEEDED),
            *(_people(f"{one} {target}", "queries for") for one in (ORDER, LEVEL)),
        ]
        rows: list[list[Cell]] = []
        for study in self.studies:
            one, nested = study.crossed, study.nested
            needed = (study.for_order, study.for_level)
            rows.append(
                [
                    *(_left_out(study), self.scored.name, study.drop, len(study.systems)),
                    *(self.queries, nested.items if nested else None),
                    *(getattr(one, name) if one else None for name in squares),
                    *((nested.ms_iq, nested.ms_siq) if nested else (None, None)),
                    *(study.erho2, study.phi, *(one.errors(one.queries) if one else (None, None))),
                    *(self.settings.target, *study.for_order, *study.for_level),
                    *(_needed(one) if study in self.known else None for one in needed),
                ]
            )
        return Table.of(
            columns, rows, self._caption(), self.notes(), grouped=True, verdict=self.headline
        )

    def _caption(self) -> str:
        """Return the caption, prefixed for draft grades."""
        of = f"; {self.scored.caption}" if self.scored.caption else ""
        before, draft, after = of.partition(f"{DRAFT}: ")
        queries = counted(self.queries, "query")
        return f"{draft}Reliability of {self.scored.name} on {queries}{before}{after}"

    def _sizes(self) -> Table:
        """Return a row per number of queries and a column per number of items per query."""
        has_items = any(study.nested for study in self.known)
        present = {
            study.drop: (self.queries, study.nested.items if study.nested else None)
            for study in self.known
        }
        cells = (
            (
                (_left_out(study), size.queries),
                Column(_items(size.items), group="items per query") if has_items else Column(ORDER),
                marked(size.erho2.value, "best" if size[:2] == present[study.drop] else None),
            )
            for study in self.known
            for size in study.sizes
        )
        return Table.wide(
            ["left out", "queries"],
            cells,
            f"{ORDER} of exams of other sizes",
            legend={"best": "this exam"},
            grouped=True,
        )

    def plot(self) -> Figure:
        """Plot reliability by queries, a line per number of items, a panel per study."""
        deepest = 4 * self.queries
        numbers = {round(deepest * n / _POINTS) for n in range(1, _POINTS + 1)} | {self.queries}
        points = [point for study in self.known for point in _points(study, sorted(numbers - {0}))]
        figure = lines.reliability_lines(
            points,
            self.scored.name,
            present=self.queries,
            target=self.settings.target,
            interval=f"{percent(self.settings.level)} interval with the items of this exam",
        )
        return replace(figure, draft=self.scored.draft)

    @property
    def headline(self) -> str:
        """The reliability of the order, and the part of the worst systems in it, in words."""
        known = self._distinct
        if not known:
            return f"Reliability is undefined, because {self.studies[0].erho2.reason}."
        first, *rest = known
        shown = [f"{interval_text(first.erho2, 3)} for {counted(len(first.systems), 'system')}"]
        shown += [f"{interval_text(one.erho2, 3)} {_among(one)}" for one in rest]
        text = f"Reliability of the order: {', '.join(shown)} (target {self.settings.target:g})."
        whole = first.erho2.value or 0.0
        least = min((one.erho2.value or 0.0 for one in rest), default=whole)
        if whole and least < whole - _PART:
            part = "most" if least < whole / 2 else "part"
            text += f" The worst systems cause {part} of it: use the lower values."
        return text

    @property
    def _distinct(self) -> list[ReliabilityEstimate]:
        """The studies that have a coefficient, the last of those with the same systems."""
        return list({study.systems: study for study in self.known[::-1]}.values())[::-1]

    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the studies and on the scores."""
        return merge_notes([*self._notes(), *self.scored.notes])

    def _notes(self) -> Iterator[Note]:
        known = self._distinct
        if not known:
            return
        for reason, where in _by_reason(self.studies, lambda study: study.erho2.reason):
            yield note("reliability-undefined", where=where, reason=reason)
        yield from _advice(known, self.settings.target)
        for reason, where in _by_reason(known, lambda study: study.erho2.no_interval):
            yield note("reliability-no-interval", where=where, reason=reason)
        below = [
            f"{COMPONENTS[name]} {value:.3g} {_among(study)}"
            for study in known
            for name, value in study.components.items()
            if value < -ROUNDING and name != "s"
        ]
        if below:
            yield note("negative-variances", variances=below)
        if self.scored.no_items:
            yield note("no-item-facet", reason=self.scored.no_items)
        yield note("reliability-method", level=percent(self.settings.level))
        left = len(self.scored.query_ids) - self.queries
        if left and self.queries:
            yield note("queries-not-common", queries=counted(left, "query"))


_COMPONENTS = "Where the variance of scores comes from"
_ERRORS = ("error_of_differences", "error_of_levels")
_NEEDED = tuple(
    f"{coefficient}_{name}"
    for coefficient in ("erho2", "phi")
    for name in ("queries_for_target", "fewest", "most")
)


def _people(name: str, group: str = "") -> Column:
    return Column(name, group=group, readers="people")


def _needed(needed: theory.Needed) -> str:
    shown = [f"{number:,}" if number else "none" for number in needed]
    return shown[0] if len(set(needed)) == 1 else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _items(items: float | None) -> str:
    return lines.NO_LIMIT if items is None else f"{items:.3g}"


def _points(
    study: ReliabilityEstimate, numbers: Sequence[int]
) -> Iterator[lines.ProjectedReliability]:
    panel = f"{counted(len(study.systems), 'system')}: {_among(study).removeprefix('for ')}"
    for items, n in product(dict.fromkeys(size.items for size in study.sizes), numbers):
        one = Estimate(None)
        if study.nested and items != study.nested.items:
            one = Estimate(study.nested.relative(n, math.inf if items is None else items))
        elif study.crossed:
            one = theory.erho2(study.crossed, n, study.limits)
        if one.value is not None:
            yield lines.ProjectedReliability(panel, _items(items), n, one.value, one.low, one.high)


def _components_table(by_name: Mapping[str, Mapping[str, float]], caption: str) -> Table:
    """Return a row per component: its variance and share, for each set of systems left out."""
    columns: list[str | Column] = ["variance of"]
    for name in by_name:
        group = f"{name} left out"
        columns += [Column("variance", 6, group), Column("share", 3, group)]
    every = list(by_name.values())
    rows: list[list[Value]] = []
    for name in every[0]:
        pairs = ((raw[name], share_shown(_shares(raw)[name])) for raw in every)
        rows.append([_component(name, every[0]), *(value for pair in pairs for value in pair)])
    return Table.of(columns, rows, caption)


def _component_records(by_drop: Mapping[float, Mapping[str, float]], caption: str) -> Table:
    """Return a row per component and share of systems left out."""
    rows: list[list[Value]] = [
        [drop, name, _component(name, raw), value, max(0.0, value), _shares(raw)[name]]
        for drop, raw in by_drop.items()
        for name, value in raw.items()
    ]
    return Table.of(["left_out", "component", "of", "raw", "variance", "share"], rows, caption)


def _shares(raw: Mapping[str, float]) -> dict[str, float | None]:
    """Return the share of each component in the total variance; negative ones count as 0."""
    total = sum(max(0.0, value) for value in raw.values())
    return {name: max(0.0, value) / total if total else None for name, value in raw.items()}


def _component(name: str, raw: Mapping[str, float]) -> str:
    """Return the name of a component; without items the interaction with queries includes error."""
    holds_error = name == "sq" and "siq" not in raw
    return COMPONENTS[name] + (", error" if holds_error else "")


# ---- sentences -----------------------------------------------------------------------------------


def _left_out(study: ReliabilityEstimate) -> str:
    return study.shown_without or "none"


def _among(study: ReliabilityEstimate) -> str:
    return f"without {study.shown_without}" if study.shown_without else "for all systems"


def _by_reason(
    studies: Sequence[ReliabilityEstimate], reason_of: Callable[[ReliabilityEstimate], str]
) -> Iterator[tuple[str, str]]:
    """Yield each reason with the studies it applies to, unless it applies to all."""
    for reason in filter(None, dict.fromkeys(map(reason_of, studies))):
        of = [study for study in studies if reason_of(study) == reason]
        yield reason, "" if len(of) == len(studies) else f" {' and '.join(map(_among, of))}"


def _advice(known: Sequence[ReliabilityEstimate], target: float) -> Iterator[Note]:
    """Yield one piece of advice, from the study with the lowest coefficient."""
    study = min(known, key=lambda one: one.erho2.value or 0.0)
    if study.crossed is None:
        return
    found, among = study.crossed, _among(study)
    if found.raw_s <= 0:
        fewest = study.for_order.low
        more = f"; the target takes at least {fewest:,} queries" if fewest else ""
        queries, variance = counted(found.queries, "query"), f"{found.raw_s:.3g}"
        yield note("no-system-variance", queries=queries, among=among, variance=variance, more=more)
    elif (found.relative(found.queries) or 0.0) >= target:
        most = study.for_order.high
        shown = study.limits and most is not None and most <= found.queries
        yield note("target-reached" if shown else "target-estimated", among=among)
    elif study.nested:
        present = study.erho2.value or 0.0
        gains = study.gains
        best, other = sorted(gains, key=lambda more: -gains[more])
        limit = study.nested.relative(found.queries, math.inf)
        shows = limit is not None and limit <= _ALL
        yield note(
            "next-step",
            among=among,
            best=f"{best} ({present:.3f} to {gains[best]:.3f})",
            other=f"{other} give {gains[other]:.3f}",
            most=f"; more items alone give at most {limit:.3f}" if shows else "",
        )


# ---- what is studied -----------------------------------------------------------------------------


def scored_column(
    book: Gradebook,
    board: Leaderboard,
    missing: Missing = "zero",
    texts: BankTexts | None = None,
) -> Scored:
    """Return the first column of a leaderboard, with the items behind it where it is Cover.

    `texts` are those of the bank: if items repeat others, items are not a facet.

    Raises:
        InputError: Missing cells have bounds in place of values, cells are skipped, or not all
            queries are graded.
    """
    check_testable(book)
    if missing == "bounds":
        raise InputError(
            "reliability needs scores, not bounds",
            hint="Choose --missing zero or skip",
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


def _exams(
    book: Gradebook, board: Leaderboard, missing: Missing, texts: BankTexts
) -> tuple[tuple[Floats, ...], str]:
    """Return the exams of the queries, systems x items; or none, with the reason."""
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
    of_query = dict(zip(scores.queries, scores.groups, strict=True))
    # a query with only items to avoid has no Cover
    nothing = np.empty(0, np.intp)
    items = [of_query.get(query_id, nothing) for query_id in column.query_ids]
    shares = scores.shares() * len(of_query)
    if any(np.ptp(shares[some]) > 1e-9 for some in items if len(some)):
        return (), UNEQUAL
    if all(len(some) < 2 for some in items):
        return (), ONE_ITEM
    rows = [scores.systems.index(system) for system in board.column_systems]
    return tuple(scores.credit[rows][:, some] for some in items), ""


# ---- the study -----------------------------------------------------------------------------------


def study_reliability(scored: Scored, settings: ReliabilitySettings | None = None) -> Reliability:
    """Study scores on the queries that count for every system; see `Reliability`."""
    settings = or_default("settings", settings, ReliabilitySettings)
    scored = _in_order_of_names(scored)
    counting = scored.values.counts.all(axis=0) & (len(scored.systems) > 0)
    table = scored.values.values[:, counting]
    exams = [scored.exams[at] for at in np.flatnonzero(counting)] if scored.exams else []
    studies: dict[bytes, ReliabilityEstimate] = {}
    none = np.zeros(len(table), np.bool_)
    for drop in settings.drop:
        included = kept_systems(table.mean(axis=1), drop) if table.size else none
        # of few systems a larger share of the worst may be the same ones
        if included.tobytes() not in studies:
            studies[included.tobytes()] = _study(scored, table, exams, drop, included, settings)
    return Reliability(scored, int(counting.sum()), tuple(studies.values()), settings)


def _in_order_of_names(scored: Scored) -> Scored:
    """Sort systems and queries by name: resamples must not depend on the order of lines."""
    systems = sorted(range(len(scored.systems)), key=scored.systems.__getitem__)
    queries = sorted(range(len(scored.query_ids)), key=scored.query_ids.__getitem__)
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
    included: NDArray[np.bool_],
    settings: ReliabilitySettings,
) -> ReliabilityEstimate:
    means = np.round(table[included].mean(axis=1), 9) if table.size else np.zeros(0)
    names = [scored.systems[row] for row in np.flatnonzero(included).tolist()]
    order = sorted(range(len(names)), key=lambda row: (-means[row], names[row]))
    systems = tuple(names[row] for row in order)
    without = tuple(name for name in scored.systems if name not in systems)
    reason = _why_none(scored, table, int(included.sum()))
    if reason:
        return ReliabilityEstimate(drop, systems, undefined(reason), undefined(reason), without)
    found = theory.crossed(table[included])
    of_items = [exam[included] for exam in exams]
    nested = theory.nested(of_items) if of_items else None
    n = found.queries
    limits = None
    # too few queries, or no residual, give no limits
    if found.ms_e and n >= theory.FEWEST_QUERIES:
        draws = draw_queries(n + 1, settings.samples, settings.seed)
        limits = theory.ratios(table[included], draws, settings.level)
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
    )


def _why_none(scored: Scored, table: Floats, systems: int) -> str:
    if scored.lacking:
        return scored.lacking[0].lower() + scored.lacking[1:]
    if len(table) < 2:
        return theory.TOO_FEW_SYSTEMS
    if table.shape[1] < 2:
        return theory.TOO_FEW_COMMON_QUERIES
    if systems < 2:
        return "fewer than 2 systems are left"
    return ""


def _steps(present: float, requested: Sequence[int]) -> list[float]:
    """Return the requested sizes, or half, as many, twice and four times as many as there are."""
    foreseen = (present, *(max(1, round(present * factor)) for factor in (0.5, 2, 4)))
    return sorted({float(one) for one in requested or foreseen})


def _sizes(
    study: theory.Crossed,
    nested: theory.Nested | None,
    limits: theory.Ratios | None,
    settings: ReliabilitySettings,
) -> Iterator[ExamSize]:
    """Return exams of other sizes; only those with the present number of items have intervals."""
    items = [*_steps(nested.items, settings.items), math.inf] if nested else [None]
    for n in map(int, _steps(study.queries, settings.queries)):
        for m in items:
            if nested is None or m is None or m == nested.items:
                estimate = theory.erho2(study, n, limits)
                how = "" if estimate.low is None else "bootstrap"
                yield ExamSize(n, m, estimate, study.absolute(n), study.errors(n), how)
                continue
            value, shown = nested.relative(n, m), None if math.isinf(m) else m
            estimate = undefined(theory.ALL_ALIKE) if value is None else Estimate(value)
            yield ExamSize(n, shown, estimate, nested.absolute(n, m), nested.errors(n, m))
