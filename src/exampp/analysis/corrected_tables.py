"""A corrected leaderboard as tables: three ways side by side, a row a system, a row a pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.corrected_records import (
    FEWEST_OF_SYSTEM,
    FEWEST_QUERIES_APART,
    FEWEST_UNITS,
    Bools,
    CorrectionSettings,
    Estimator,
    Floats,
    JudgedSample,
    Scope,
)
from exampp.analysis.phrases import percent
from exampp.evaluate.board import heading
from exampp.records.wording import counted
from exampp.report.page import Block, Notices, Section, Text
from exampp.report.plots.corrected import CorrectedSystem, corrected_scores
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value
from exampp.stats.means import FEWEST_QUERIES
from exampp.stats.rank_correlation import kendall_rows
from exampp.stats.rank_sets import DECIMALS

FEW_LABELS = 400
"""With fewer, the grades' own order was the better one on TREC DL 2019 (`benchmarks`)."""

_SPEAKS: dict[Scope, str] = {
    "pool": "these queries and this pool",
    "queries": "queries like these",
}
"""Of what intervals speak."""


@dataclass(frozen=True, slots=True, repr=False)
class Corrected(Result):
    """The leaderboard of one measure: by grades alone, corrected, and by people alone.

    Rows are `systems`, best first as corrected. `graded` are scores by the grades. `corrected` and
    `people` are by scope, "pool" and "queries" (where there are two queries or more).
    `shared` [systems, systems] is on how many sampled units two systems differ; `identical` tells
    that they return the same everywhere. `labels` is how many units people decided, of `units`;
    `without_grades` how many people alone would have needed for the same standard errors of pairs
    (None: not known). `said` are sentences about it all.
    """

    measure: str
    min_rating: int
    systems: tuple[str, ...]
    queries: int
    units: int
    labels: int
    unit: str
    graded: Floats
    corrected: Mapping[Scope, Estimator]
    people: Mapping[Scope, Estimator]
    shared: NDArray[np.int64]
    identical: Bools
    without_grades: float | None
    settings: CorrectionSettings
    judged: JudgedSample
    source: str = ""

    @property
    def shown(self) -> Estimator:
        """The corrected scores in the scope asked for."""
        return self.corrected[self.settings.over]

    @property
    def outside(self) -> int:
        """How many systems have a score by the grades that is outside their interval."""
        one = self.shown
        return int(((self.graded < one.low) | (self.graded > one.high)).sum())

    def figure(self) -> Figure:
        """The three ways side by side, with the intervals of the corrected scores."""
        people = self.people[self.settings.over]
        ways = [
            CorrectedSystem(
                system,
                float(self.graded[row]),
                float(self.shown.scores[row]),
                *bounds(self.shown, row),
                float(people.scores[row]),
            )
            for row, system in enumerate(self.systems)
        ]
        certain = self.judged.design == "all" and self.settings.over == "pool"
        spread = f"Bars: {percent(self.settings.level)} interval for {_SPEAKS[self.settings.over]}"
        return corrected_scores(
            ways,
            heading(self.measure, self.min_rating),
            "No bars: people judged the whole pool, and corrected is what they say"
            if certain
            else spread,
            draft=self.source.startswith("DRAFT"),
        )

    def tables(self) -> dict[str, Table]:
        """`scores`: a row a system, with the three ways side by side."""
        return {"scores": leaderboard_table(self)}

    def compared(self) -> Table:
        """A row a pair of systems, with the intervals of the scope asked for."""
        rows: list[list[Value]] = []
        tests, level = self.shown.pairs, percent(self.settings.level)
        for pair in _each_pair(self, self.shown):
            at = (pair.first, pair.second)
            apart = float(tests.differences[at])
            bounds = (*_around(apart, pair.half), *_around(apart, pair.joint))
            names = (self.systems[pair.first], self.systems[pair.second])
            rows.append([*names, apart, *bounds, pair.verdict])
        columns: list[str | Column] = [
            *("system", "other", "difference"),
            *(Column(f"{level} low", group="this pair"), Column("high", group="this pair")),
            *(Column(f"{level} low", group="all at once"), Column("high", group="all at once")),
            "verdict",
        ]
        return Table.of(columns, rows, _caption(self), list(notes(self)))

    def records(self) -> dict[str, Table]:
        """`scores`, a row a system and scope; `pairs`, a row a pair and scope."""
        return {"scores": scores_table(self), "pairs": pairs_table(self)}


def leaderboard_table(found: Corrected) -> Table:
    """A row a system, best first as corrected: grades alone, corrected, people alone, ranks."""
    shown, people = found.shown, found.people[found.settings.over]
    ranks = shown.pairs.rank_sets()
    by_grades, corrected = places(found.graded), places(shown.scores)
    level = percent(found.settings.level)
    columns: list[str | Column] = [
        "system",
        "grades alone",
        Column("score", group="corrected"),
        Column(f"{level} low", group="corrected"),
        Column("high", group="corrected"),
        "people alone",
        Column("by grades", group="place"),
        Column("corrected", group="place"),
        Column("rank set", group="place"),
    ]
    rows: list[list[Value]] = []
    for row, system in enumerate(found.systems):
        low, high = bounds(shown, row)
        rows.append(
            [
                system,
                float(found.graded[row]),
                float(shown.scores[row]),
                low,
                high,
                float(people.scores[row]),
                int(by_grades[row]),
                int(corrected[row]),
                f"{ranks[0][row]}-{ranks[1][row]}",
            ]
        )
    return Table.of(columns, rows, _caption(found), list(notes(found)))


def _caption(found: Corrected) -> str:
    source = f"{found.source}; " if found.source else ""
    name = heading(found.measure, found.min_rating)
    return (
        f"{source}{name} corrected by people: {found.judged.origin}; intervals speak of "
        f"{_SPEAKS[found.settings.over]}"
    )


def bounds(one: Estimator, row: int) -> tuple[float | None, float | None]:
    """The interval of a score, within 0 and 1; None where there is none."""
    low, high = float(one.low[row]), float(one.high[row])
    return (None, None) if math.isnan(low) else (low, high)


def places(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """1 for the best; equal ones share their place."""
    rounded = np.round(scores, DECIMALS)
    return [1 + int((rounded > one).sum()) for one in rounded]


_SCORES = ("system", "measure", "min_rating", "over", "method", "score", "se", "low", "high")


def scores_table(found: Corrected) -> Table:
    """A row a system, way and scope."""
    rows: list[list[Value]] = []
    for row, system in enumerate(found.systems):
        start: list[Value] = [system, found.measure, found.min_rating]
        graded = float(found.graded[row])
        rows.append([*start, None, "grades", graded, *[None] * 5, *_recorded(found)])
        for method, ways in (("corrected", found.corrected), ("people", found.people)):
            for scope, one in ways.items():
                best, worst = one.pairs.rank_sets()
                values: list[Value] = [float(one.scores[row]), float(one.errors[row])]
                values += [*bounds(one, row), int(best[row]), int(worst[row])]
                rows.append([*start, scope, method, *values, *_recorded(found)])
    columns = [*_SCORES, "best_rank", "worst_rank", *_RECORDED]
    return Table.of(columns, rows, found.source, list(notes(found)))


_RECORDED = ("labels", "units", "unit", "design", "predictor", "level")


def _recorded(found: Corrected) -> tuple[Value, ...]:
    return (
        found.labels,
        found.units,
        found.unit,
        found.judged.design,
        found.settings.predictor,
        found.settings.level,
    )


class _Pair(NamedTuple):
    """Two systems by their rows; `half` of the pair alone, `joint` of all at once."""

    first: int
    second: int
    half: float | None
    joint: float | None
    verdict: str


def _each_pair(found: Corrected, one: Estimator) -> Iterator[_Pair]:
    for first, second in combinations(range(len(found.systems)), 2):
        verdict = said_of_pair(found, one, first, second)
        if verdict in ("unresolved", "identical"):
            yield _Pair(first, second, None, None, verdict)
            continue
        half, joint = one.pairs.half[first, second], one.pairs.joint[first, second]
        yield _Pair(first, second, float(half), float(joint), verdict)


def _around(middle: float, width: float | None) -> tuple[float | None, float | None]:
    return (None, None) if width is None else (middle - width, middle + width)


def pairs_table(found: Corrected) -> Table:
    """A row a pair and scope: the corrected difference, its intervals, and what it shows."""
    rows: list[list[Value]] = []
    for scope, one in found.corrected.items():
        for pair in _each_pair(found, one):
            at = (pair.first, pair.second)
            apart = float(one.pairs.differences[at])
            rows.append(
                [
                    *(found.measure, found.min_rating, scope),
                    *(found.systems[pair.first], found.systems[pair.second]),
                    *(apart, float(one.pairs.errors[at])),
                    *(*_around(apart, pair.half), *_around(apart, pair.joint)),
                    *(int(found.shared[at]), pair.verdict, *_recorded(found)),
                ]
            )
    columns = [
        *("measure", "min_rating", "over", "system", "other", "difference", "se", "low", "high"),
        *("joint_low", "joint_high", "units_apart", "verdict"),
        *_RECORDED,
    ]
    return Table.of(columns, rows, found.source, list(notes(found)))


def said_of_pair(found: Corrected, one: Estimator, first: int, second: int) -> str:
    """What all intervals at once say of a pair: better, worse, undecided, unresolved, identical."""
    if found.identical[first, second]:
        return "identical"
    if not one.pairs.resolved[first, second]:
        return "unresolved"
    if one.pairs.better[first, second]:
        return "better"
    return "worse" if one.pairs.better[second, first] else "undecided"


def notes(found: Corrected) -> Iterator[str]:
    """What the numbers are, what they decide, what was saved, and what to beware of."""
    yield from _what(found)
    yield from found.judged.notes
    if len(found.systems) < 2:
        yield "There is one system, and no pair to compare."
        return
    yield from _pairs(found)
    yield from _orders(found)
    yield from _saved(found)


def _what(found: Corrected) -> Iterator[str]:
    settings = found.settings
    unit = f"{found.unit}s"
    if found.judged.design == "all":
        yield (
            "People judged the whole pool: the corrected scores are theirs, without error. "
            "--over queries says what holds for queries like these."
            if settings.over == "pool"
            else "People judged the whole pool: what is uncertain is which queries were asked."
        )
    else:
        how = {
            "calibrated": f"what people said of drawn {unit} with such grades (cross-fitted)",
            "ppi": "the label that the grades give, times the lambda of PPI++",
            "grades": "the label that the grades give",
        }[settings.predictor]
        yield (
            f"Corrected: of every one of the {found.units:,} {unit} {how}, plus what people said "
            "beyond it of those drawn, divided by the chance to be drawn. It is right on average "
            "whatever the grades are."
        )
    if settings.over == "pool":
        yield (
            "Intervals hold for the scores that people would give these queries and this pool; "
            "--over queries gives those for queries like these, which are wider."
        )
    else:
        yield (
            f"Intervals hold for queries like these {found.queries:,}: they contain the draw of "
            "the sample and the choice of queries."
        )
    if settings.looks > 1:
        yield (
            f"Intervals are at {percent(settings.level)}, because they are looked at "
            f"{settings.looks} times while the sample grows."
        )
    none = int(np.isnan(found.shown.low).sum())
    if none:
        of_queries = settings.over == "queries" and found.queries < FEWEST_QUERIES
        few = f"; fewer than {FEWEST_QUERIES} queries tell nothing of others" if of_queries else ""
        yield (
            f"No interval for {counted(none, 'score')}: fewer than {FEWEST_OF_SYSTEM} drawn "
            f"{unit} count for the system, or they show no spread{few}, or the corrected score is "
            "not between 0 and 1."
        )


def _pairs(found: Corrected) -> Iterator[str]:
    one, n = found.shown, len(found.systems)
    said = [said_of_pair(found, one, i, j) for i in range(n) for j in range(i + 1, n)]
    decided = sum(word in ("better", "worse") for word in said)
    yield (
        f"Decided: {decided:,} of {counted(len(said), 'pair')}, all at once at "
        f"{percent(found.settings.level)} or more; a rank set holds every rank that this leaves a "
        "system."
    )
    unresolved, identical = said.count("unresolved"), said.count("identical")
    if unresolved:
        verb = "is" if unresolved == 1 else "are"
        few = [f"{FEWEST_UNITS} drawn {found.unit}s"] * (found.judged.design != "all")
        few += [f"{FEWEST_QUERIES_APART} queries"] * (found.settings.over == "queries")
        yield (
            f"{counted(unresolved, 'pair')} {verb} unresolved: fewer than {' or '.join(few)} tell "
            "the two apart, or these show no spread. That a sample shows no difference is no "
            "evidence that there is none."
        )
    if identical:
        yield f"{counted(identical, 'pair')} of the same lists: the difference is 0 exactly."


def _orders(found: Corrected) -> Iterator[str]:
    tau = kendall_rows(*(np.round([x], DECIMALS) for x in (found.graded, found.shown.scores)))
    shown = f" (Kendall's tau {tau.values[0]:.3f})" if tau.defined[0] else ""
    if found.judged.design == "all":
        yield f"Both orders are shown{shown}: by the grades, and by people."
        return
    yield (
        f"Both orders are shown{shown}: the sample moves level first, and order last. The noise "
        "of a sample lowers the tau of a corrected leaderboard with any other."
    )
    if found.labels < 0.9 * FEW_LABELS:
        yield (
            f"With fewer than about {FEW_LABELS} labels the order of the grades alone may be the "
            "better one: so it was on TREC DL 2019, where tau with the truth was .66 after "
            "correction by 100 labels, and .86 before."
        )


def _saved(found: Corrected) -> Iterator[str]:
    alone = found.without_grades
    if alone is None:
        return
    saved = alone - found.labels
    if saved >= 1:
        yield (
            f"People alone would have needed about {alone:,.0f} labels for differences as sure: "
            f"the grades saved {saved:,.0f}."
        )
    else:
        yield "The grades saved no labels: people alone are as sure of differences with as many."


def section(found: Sequence[Corrected | str]) -> Section:
    """The section of a report: a table a sample, or why it gives none; nothing without samples."""
    blocks: list[Block] = []
    for one in found:
        if isinstance(one, str):
            blocks.append(Notices((f"{one}.",), "note"))
        else:
            blocks += [Text(lead(one)), leaderboard_table(one), one.figure()]
    return Section("corrected", "What people would say of all of it", tuple(blocks))


def lead(found: Corrected) -> str:
    """How far off the grades are, in a sentence."""
    off = found.graded - found.shown.scores
    side = "above" if off.mean() > 0 else "below"
    name = heading(found.measure, found.min_rating)
    whole = found.judged.design == "all"
    sample = f"{'all' if whole else 'a sample of'} {found.labels:,} {found.unit}s"
    systems = counted(len(found.systems), "system")
    shown = (
        f"for {found.outside} of {systems} it is outside the interval"
        if found.outside
        else f"that lies within the intervals of all {systems}, and is not shown to be wrong"
    )
    return (
        f"By {sample} that people decided, {name} by the grades is {np.abs(off).mean():.3f} off "
        f"on average, mostly {side}; {shown}."
    )
