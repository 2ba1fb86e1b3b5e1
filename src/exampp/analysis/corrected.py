"""Leaderboards that people's sample makes true: the grades corrected by a sample of verdicts.

The score of a system is that which the leaderboard would have if people had decided every unit of
the pool. Grades say what is to be expected of each unit, people what is so of a sample that was
drawn with known probabilities; see `stats.difference`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import percent
from exampp.errors import InputError
from exampp.measures.names import heading
from exampp.measures.population import Population
from exampp.records.wording import counted
from exampp.results.page import Block, Notices, Section, Text
from exampp.results.plots.dots import corrected_scores
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer
from exampp.stats.estimate import MOST_DRAWS
from exampp.stats.means import FEWEST_QUERIES
from exampp.stats.rank_correlation import kendall_rows
from exampp.stats.rank_sets import DECIMALS, DRAWS, PairTests, Resampling, pair_tests
from exampp.stats.sampling import (
    DrawnUnits,
    Sample,
    ScoreLimits,
    Totals,
    best_tuning,
    calibrated_probabilities,
    drawn_units,
    folds,
    pool_limits,
    query_limits,
    totals,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Predictor = Literal["calibrated", "ppi", "grades"]
Scope = Literal["pool", "queries"]
FEWEST_UNITS = 20
"""Of units drawn by chance on which two systems differ: a small variance of fewer says nothing."""
FEWEST_QUERIES_APART = 10
"""On which two systems differ: of fewer, queries drawn anew may hold none."""
FEWEST_OF_SYSTEM = 10
"""Of sampled units that count for a system: with fewer its score has no interval."""


@dataclass(frozen=True, slots=True)
class CorrectionSettings:
    """How a leaderboard is corrected.

    `predictor`: what grades predict of a unit. "calibrated": what people said of sampled units with
    such grades, cross-fitted; "ppi": the label that the grades give, times the lambda of PPI++;
    "grades": that label itself. `over`: what intervals speak of, the `pool` (these queries, these
    passages) or `queries` like these. `looks`: how often intervals are looked at while the sample
    grows; each time at alpha / looks.

    Raises:
        InputError: A value makes no sense.
    """

    predictor: Predictor = "calibrated"
    over: Scope = "pool"
    alpha: float = 0.05
    looks: int = 1
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        for what, value, known in (
            ("predictor", self.predictor, get_args(Predictor)),
            ("scope", self.over, get_args(Scope)),
        ):
            if value not in known:
                mend = f"Choose {' or '.join(known)}"
                raise InputError(f"there is no {what} {value!r}", mend=mend)
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        check_integer("looks", self.looks, 1, MOST_DRAWS)
        check_integer("draws", self.draws, 100, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)

    @property
    def level(self) -> float:
        """The confidence of an interval."""
        return 1 - self.alpha / self.looks


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The sampled units of a population, what people say of them, and how they were drawn.

    `labels` is aligned with `sample.places`: [sampled], of items [systems, sampled]. `origin` says
    in a sentence what was drawn and who judged; `notes` what else is to be known of it. `design` is
    "all" where every unit is judged and none was drawn.
    """

    sample: Sample
    labels: Floats
    fold_seed: int
    design: str
    origin: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to score the systems: scores, and the tests of all pairs, of the same systems.

    `errors` are standard errors of the scores, `low` and `high` the limits of their intervals,
    within 0 and 1 (NaN where there is none).
    """

    scores: Floats
    errors: Floats
    low: Floats
    high: Floats
    pairs: PairTests


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
            (
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


FEWEST_DRAWN_ANEW = 18
"""`FEWEST_UNITS` of samples drawn anew: with 20 all pairs held in .92 where few tell, 15 in .98."""

_EQUAL = 1e-12
"""What is nearer is the same but for rounding."""


def correct(
    population: Population,
    judged: JudgedSample,
    settings: CorrectionSettings,
    *,
    min_rating: int,
    systems: Sequence[str] = (),
    source: str = "",
) -> Corrected:
    """The corrected leaderboard of a population of which a sample is judged.

    `systems` are those to be compared, by default all. `source` says whose grades these are.

    Raises:
        InputError: Intervals over queries are asked for, and there is one query.
    """
    rows = population.of(tuple(systems) or population.systems)
    sample, groups = judged.sample, population.groups
    if settings.over == "queries" and len(population.query_ids) < 2:
        raise InputError(
            "there is one query, and nothing to be said of queries like it",
            mend="Leave out --over queries: intervals over its pool can be had",
        )
    at = _per_system(population.coefficients, rows)
    graded = _per_system(population.graded, rows)
    labels = _per_system(judged.labels, rows)

    def scored(predicted: Floats) -> Totals:
        count = len(population.query_ids)
        return totals(at, predicted, sample, labels, groups, count)

    predicted = _predicted(population, judged, settings, rows)
    found, alone = scored(predicted), scored(np.zeros_like(graded))
    order = np.lexsort(
        ([population.systems[row] for row in rows], -np.round(found.scores, DECIMALS))
    )
    rows, at, graded, labels = (
        rows[order],
        at[order],
        _per_system(graded, order),
        _per_system(labels, order),
    )
    predicted = _per_system(predicted, order)
    found, alone = _ordered(found, order), _ordered(alone, order)
    evidence = _evidence(population, sample, labels, rows)
    queries = len(population.query_ids)

    def estimated(one: Totals, by: Floats) -> dict[Scope, Estimator]:
        drawn = drawn_units(at, by, sample)
        found: dict[Scope, Estimator] = {
            "pool": _of_pool(one, sample.pi, drawn, evidence, settings)
        }
        if queries > 1:
            found["queries"] = _of_queries(one, drawn, evidence, settings)
        return found

    corrected, people = estimated(found, predicted), estimated(alone, np.zeros_like(graded))
    return Corrected(
        measure=str(population.measure),
        min_rating=min_rating,
        systems=tuple(population.systems[row] for row in rows),
        queries=queries,
        units=len(population.names),
        labels=len(sample.places),
        unit=population.unit,
        graded=(at * graded).sum(axis=1),
        corrected=corrected,
        people=people,
        shared=evidence.shared,
        identical=evidence.identical,
        without_grades=_without_grades(
            corrected["pool"], people["pool"], len(sample.places), len(population.names)
        ),
        settings=settings,
        judged=replace(judged, notes=(*population.notes, *judged.notes)),
        source=source,
    )


def _per_system(values: Floats, rows: NDArray[np.intp]) -> Floats:
    return values[rows] if values.ndim > 1 else values


def _ordered(one: Totals, order: NDArray[np.intp]) -> Totals:
    return Totals(
        one.scores[order],
        one.covariance[np.ix_(order, order)],
        one.residuals[order],
        one.parts[order],
    )


def _predicted(
    population: Population,
    judged: JudgedSample,
    settings: CorrectionSettings,
    rows: NDArray[np.intp],
) -> Floats:
    """What grades predict, learnt from the labels of all systems; [units] or [systems, units]."""
    if settings.predictor == "calibrated":
        fold = folds(judged.fold_seed, population.names)
        found = calibrated_probabilities(population.bins, fold, judged.sample, judged.labels)
    elif settings.predictor == "ppi":
        found = best_tuning(population.graded, judged.sample, judged.labels) * population.graded
    else:
        found = population.graded
    return _per_system(found, rows)


class _Evidence(NamedTuple):
    """What the sample can tell of systems and of pairs of them.

    `own` [n] drawn units that count for a system, `sure` [n] whether all of its units are
    certain; `shared` and `exact` [n, n] the same of the units on which two systems differ: those
    whose `kinds` [n, drawn] differ; `identical` [n, n] that they return the same lists.
    """

    own: NDArray[np.int64]
    sure: Bools
    kinds: Floats
    shared: NDArray[np.int64]
    exact: Bools
    identical: Bools


def _evidence(
    population: Population, sample: Sample, labels: Floats, rows: NDArray[np.intp]
) -> _Evidence:
    """Of passages systems differ where one counts them more than the other.

    Of items they do where people or grades say that they are covered otherwise; what nobody looked
    at may differ, too. What was drawn with certainty tells nothing of the rest, and is not counted.
    """
    n, at = len(rows), sample.places
    certain = sample.pi >= 1
    whole = population.coefficients[rows]
    own = (whole[:, at] > 0)[:, ~certain].sum(axis=1)
    sure = (whole > 0).sum(axis=1) == (whole[:, at] > 0)[:, certain].sum(axis=1)
    lists = population.lists[rows]
    identical = (lists[:, None, :] == lists[None, :, :]).all(axis=2)
    shared, exact = np.zeros((n, n), np.int64), np.zeros((n, n), np.bool_)
    of_items = population.unit == "item"
    kinds = population.graded[rows][:, at] * 2 + labels if of_items else whole[:, at]
    for row in range(n):
        apart = kinds != kinds[row]
        shared[row] = apart[:, ~certain].sum(axis=1)
        known = apart[:, certain].sum(axis=1)
        exact[row] = sure.all() if of_items else (whole != whole[row]).sum(axis=1) == known
    return _Evidence(own.astype(np.int64), sure, kinds, shared, exact, identical)


def _of_pool(
    one: Totals, pi: Floats, drawn: DrawnUnits, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Scores and tests over these queries and this pool: what varies is who is in the sample.

    Where labels show no spread at all, that is no evidence of certainty either: there is no
    interval unless every unit that counts was drawn with certainty.
    """
    spread = np.diag(one.covariance)
    errors = np.sqrt(np.maximum(spread, 0.0))
    limits = pool_limits(one, pi, drawn, settings.level)
    unsure = _unsure(one, evidence)
    tests = pair_tests(
        one.scores,
        one.covariance,
        evidence.identical | evidence.exact | _telling(one, evidence),
        evidence.shared.astype(np.float64) - 1,
        Resampling(
            one.residuals * pi, pi, evidence.kinds, FEWEST_DRAWN_ANEW, settings.draws, settings.seed
        ),
        level=settings.level,
    )
    return Estimator(one.scores, errors, *_where_sure(limits, unsure), tests)


def _where_sure(limits: ScoreLimits, unsure: Bools) -> ScoreLimits:
    """The limits within 0 and 1; NaN for the systems whose score has no interval."""
    return ScoreLimits(*(np.where(unsure, np.nan, np.clip(end, 0.0, 1.0)) for end in limits))


def _of_queries(
    one: Totals, drawn: DrawnUnits, evidence: _Evidence, settings: CorrectionSettings
) -> Estimator:
    """Scores and tests over queries like these: the draw of the sample and of the queries.

    A score is the mean over queries, of which each has a value of their number times its part.
    """
    queries = one.parts.shape[1]
    values = one.parts * queries
    covariance = np.atleast_2d(np.cov(values)) / queries
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    freedom = np.full(errors.shape, queries - 1.0)
    limits = query_limits(one, drawn, settings.level)
    # queries that all give the same tell nothing of others, were they judged to the end
    unsure = _unsure(one, evidence) | (errors <= _EQUAL) | (queries < FEWEST_QUERIES)
    kinds = np.round(values, DECIMALS)
    apart = np.array([(kinds != row).sum(axis=1) for row in kinds])
    seen = (evidence.exact | _telling(one, evidence)) & (apart >= FEWEST_QUERIES_APART)
    tests = pair_tests(
        one.scores,
        covariance,
        evidence.identical | seen,
        np.broadcast_to(freedom, covariance.shape),
        Resampling(values, None, kinds, FEWEST_QUERIES_APART, settings.draws, settings.seed),
        level=settings.level,
    )
    return Estimator(one.scores, errors, *_where_sure(limits, unsure), tests)


def _unsure(one: Totals, evidence: _Evidence) -> Bools:
    """Whose score has no interval: too few drawn units count for it, or they show no spread."""
    few = (evidence.own < FEWEST_OF_SYSTEM) | (np.diag(one.covariance) <= 1e-18)
    return few & ~evidence.sure


def _telling(one: Totals, evidence: _Evidence) -> Bools:
    """Which pairs enough drawn units tell apart, with some spread."""
    spread = np.diag(one.covariance)
    both = spread[:, None] + spread[None, :]
    return (both - 2 * one.covariance > 1e-14 * both) & (evidence.shared >= FEWEST_UNITS)


def _without_grades(one: Estimator, alone: Estimator, labels: int, units: int) -> float | None:
    """How many labels of people alone have the same mean squared error of pairs.

    By V(n) proportional to 1/n - 1/N, as in simple random sampling.
    """
    upper = np.triu(one.pairs.resolved & (alone.pairs.errors > 0), 1)
    if not upper.any() or not 0 < labels < units:
        return None
    ratio = float((one.pairs.errors[upper] ** 2).mean() / (alone.pairs.errors[upper] ** 2).mean())
    return 1 / (1 / units + (1 / labels - 1 / units) * ratio)
