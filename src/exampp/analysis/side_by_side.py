"""Leaderboards side by side: every system under several graders, measures and thresholds.

The layout of Table 4 of the Workbench paper: columns by grader and threshold, official ranks beside
them, rank correlations below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from exampp.analysis.correlation import AS_GIVEN, Correlations, Method, Scoring, compare_methods
from exampp.errors import InputError
from exampp.measures.board import Ranks, official_columns, official_rank
from exampp.measures.names import heading
from exampp.measures.values import Mean
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Value, marked
from exampp.stats.rank_correlation import RankCorrelation, correlate, unite_ties

_COLUMNS = (
    "method",
    "min_rating",
    "other",
    "other_min_rating",
    "measure",
    "spearman",
    "kendall",
    "systems",
)


@dataclass(frozen=True, slots=True)
class MethodPair:
    """Two methods under one measure, each at a threshold, and how alike they order systems."""

    names: tuple[str, str]
    scorings: tuple[Scoring, Scoring]
    correlation: RankCorrelation

    @property
    def measure(self) -> str:
        """The measure of both; that of the one that has some, beside a given leaderboard."""
        one, other = (scoring.measure for scoring in self.scorings)
        return other if one == AS_GIVEN else one

    @property
    def min_ratings(self) -> tuple[int | None, int | None]:
        """The threshold of each."""
        one, other = self.scorings
        return one.min_rating, other.min_rating


def pairwise_correlation(methods: Sequence[Method]) -> tuple[MethodPair, ...]:
    """Every two methods under every measure that both have, at every two thresholds."""
    return tuple(
        MethodPair((one.name, other.name), (a, b), correlate(a.scores, _ranks(b.scores)))
        for one, other in combinations(methods, 2)
        for a in one.scorings
        for b in other.scorings
        if a.measure == b.measure or AS_GIVEN in (a.measure, b.measure)
    )


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Numbers that order systems as ranks do, equal where scores differ by no more than rounding.

    Rank statistics need no more.
    """
    settled = unite_ties([list(scores.values())])[0]
    return dict(zip(scores, (-float(value) for value in settled), strict=True))


def pairwise_table(pairs: Iterable[MethodPair]) -> Table:
    """A row a pair; where two methods share thresholds, the pairs at those alone."""
    return Table.of(
        _COLUMNS, list(map(_row, _alike(pairs))), "Rank correlation of graders with each other"
    )


def pairwise_records(pairs: Iterable[MethodPair]) -> Table:
    """A row a pair, all of them."""
    return Table.of(_COLUMNS, list(map(_row, pairs)), "Rank correlation of graders with each other")


def _row(pair: MethodPair) -> list[Value]:
    found = pair.correlation
    (name, other), (at, other_at) = pair.names, pair.min_ratings
    values = (found.spearman.value, found.kendall.value)
    return [name, at, other, other_at, pair.measure, *values, found.systems]


def _alike(pairs: Iterable[MethodPair]) -> Iterator[MethodPair]:
    groups: dict[tuple[object, ...], list[MethodPair]] = {}
    for pair in pairs:
        groups.setdefault((*pair.names, pair.measure), []).append(pair)
    for group in groups.values():
        equal = [pair for pair in group if pair.min_ratings[0] == pair.min_ratings[1]]
        yield from equal or group


_DECIMALS = 10
"""Scores that are equal in these are equal: the last digit of a sum orders no systems."""


class Series(NamedTuple):
    """One column: a method under one measure at one threshold, and its mean of every system."""

    method: str
    scoring: Scoring
    means: Mapping[str, Mean]
    key: str | None = None
    """That of the grader, None of any other way to score."""


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Result):
    """What `side_by_side` found: systems in order, columns, official ranks, and correlations.

    `correlation` is None without an official leaderboard; `between` are the methods with each
    other, none where there is one alone.
    """

    systems: tuple[str, ...]
    series: tuple[Series, ...]
    officials: Mapping[str, Ranks]
    ordered_by: str
    correlation: Correlations | None
    notes: tuple[str, ...]
    between: tuple[MethodPair, ...] = ()

    def tables(self) -> dict[str, Table]:
        """A row a system, a column a method, measure and threshold; the correlations below."""
        found = {"leaderboards": wide(self)}
        return {**found, "between": pairwise_table(self.between)} if self.between else found

    def records(self) -> dict[str, Table]:
        """A row a system, method, measure and threshold; the correlations, if there are any."""
        found = {"leaderboards": tidy(self)}
        if self.correlation:
            found |= self.correlation.records()
        return {**found, "between": pairwise_records(self.between)} if self.between else found


def side_by_side(
    methods: Sequence[Method],
    officials: Mapping[str, Ranks],
    *,
    order: int = 1,
    decimals: int | None = None,
) -> SideBySide:
    """Set the systems of some methods beside each other, best by the column `order` first.

    Columns are counted from 1; 0 orders by the first official leaderboard. Means are rounded to
    `decimals` before they are ranked for the correlations, if some are given.

    Raises:
        InputError: There is no such column, or two methods have one name.
    """
    found = tuple(
        Series(method.name, scoring, _means(scoring), method.key)
        for method in methods
        for scoring in method.scorings
    )
    if not found or not 0 <= order <= len(found) or (order == 0 and not officials):
        raise InputError(
            f"there is no column {order} to order by",
            mend=f"Choose from 1 to {len(found)}" if order else "Give an official leaderboard",
        )
    systems = dict.fromkeys(system for one in found for system in one.means)
    compared = (
        compare_methods(methods, officials, samples=0, decimals=decimals) if officials else None
    )
    name, keys = _order(found, officials, order)
    notes = [*dict.fromkeys(note for method in methods for note in method.notes)]
    return SideBySide(
        systems=tuple(sorted(systems, key=lambda one: (one not in keys, keys.get(one, 0.0), one))),
        series=found,
        officials=officials,
        ordered_by=name,
        correlation=compared,
        notes=tuple(compared.told() if compared else notes),
        between=pairwise_correlation(methods),
    )


def _means(scoring: Scoring) -> dict[str, Mean]:
    if scoring.values is None:
        # a leaderboard made elsewhere: its ranks, as methods negate them
        return {system: Mean(-score, None, 0) for system, score in scoring.scores.items()}
    means = zip(scoring.systems, scoring.values.means(), strict=True)
    return dict(means)


def _order(
    series: Sequence[Series], officials: Mapping[str, Ranks], order: int
) -> tuple[str, dict[str, float]]:
    """What the systems are ordered by, and the place of each that has one, low ones first."""
    if order == 0:
        first, ranks = next(iter(officials.items()))
        return first, dict(ranks)
    one = series[order - 1]
    sign = -1.0 if one.scoring.values is not None else 1.0
    keys = {
        system: sign * round(mean.mean, _DECIMALS)
        for system, mean in one.means.items()
        if mean.mean is not None
    }
    return f"{one.method}, {_measured(one)}", keys


def _measured(one: Series) -> str:
    return heading(one.scoring.measure, one.scoring.min_rating)


# ---- tables --------------------------------------------------------------------------------------


def wide(found: SideBySide) -> Table:
    """A row a system, a column a method, measure and threshold; the correlations below.

    A system without an official rank has that of the nearest one above it, as an approximate one.
    """
    measures = {one.scoring.measure for one in found.series} - {AS_GIVEN}
    title, names = _shortened([one.method for one in found.series])
    columns = [
        Column(_below(one, alone=len(measures) == 1), 3, name)
        for one, name in zip(found.series, names, strict=True)
    ]
    rows: list[list[Cell]] = []
    above = dict.fromkeys(found.officials, "\u22481")
    for system in found.systems:
        row: list[Cell] = [system, *(_shown(one, system) for one in found.series)]
        for name, ranks in found.officials.items():
            rank = official_rank(system, ranks)
            if rank is not None:
                above[name] = f"\u2248{rank}"
            row.append(above[name] if rank is None else rank)
        rows.append(row)
    for statistic, values in _statistics(found):
        best = max((value for value in values if value is not None), default=None)
        shown = [marked(one, "best" if one is not None and one == best else "") for one in values]
        rows.append([statistic, *shown, *("" for _ in found.officials)])
    measure = f"{measures.pop()}; " if len(measures) == 1 else ""
    approximate = any(str(value).startswith("\u2248") for row in rows for value in row)
    notes = (
        ["\u2248: not in that official leaderboard; the rank there of the nearest system above"]
        if approximate
        else []
    )
    return Table.of(
        ["system", *columns, *official_columns(found.officials)],
        rows,
        f"Leaderboards side by side: {measure}{title}ordered by {found.ordered_by}",
        [*notes, *found.notes],
    )


def tidy(found: SideBySide) -> Table:
    """A row a system, method, measure and threshold, full precision, with the official ranks."""
    rows: list[list[Value]] = []
    for one in found.series:
        for system in found.systems:
            if system in one.means:
                mean = one.means[system]
                rows.append(
                    [
                        system,
                        one.method,
                        one.key,
                        one.scoring.measure,
                        one.scoring.min_rating,
                        mean.mean,
                        mean.stderr,
                        *(official_rank(system, ranks) for ranks in found.officials.values()),
                    ]
                )
    ranked = [name.replace(" ", "_") for name in official_columns(found.officials)]
    columns = ["system", "method", "grader_key", "measure", "min_rating", "mean", "stderr", *ranked]
    return Table.of(columns, rows, "Leaderboards side by side", found.notes)


def _below(one: Series, *, alone: bool) -> str:
    """The heading of a column below that of its method."""
    scoring = one.scoring
    if scoring.measure == AS_GIVEN:
        return "rank"
    if alone:
        return scoring.measure if scoring.min_rating is None else f"\u2265{scoring.min_rating}"
    return _measured(one)


def _shown(one: Series, system: str) -> Value:
    mean = one.means.get(system)
    if mean is None:
        return None
    return (
        official_rank(system, {system: mean.mean or 0.0})
        if one.scoring.values is None
        else mean.mean
    )


def _shortened(names: Sequence[str]) -> tuple[str, list[str]]:
    """The names without the model that all of them begin with, and that model for the caption."""
    models = {name.partition(":")[0] for name in names}
    if len(models) != 1 or not any(":" in name for name in names):
        return "", list(names)
    return f"{models.pop()}; ", [name.partition(":")[2] or name for name in names]


def _statistics(found: SideBySide) -> Iterator[tuple[str, list[float | None]]]:
    """The rows of statistics: their names, and a value a column."""
    compared = found.correlation
    if compared is None:
        return
    values = {
        (one.official, one.statistic, one.method, one.measure, one.min_rating): one.estimate.value
        for one in compared.found
    }
    for official in compared.officials:
        of = f" with {official}" if len(compared.officials) > 1 else ""
        for statistic in compared.statistics:
            keys = ((s.method, s.scoring.measure, s.scoring.min_rating) for s in found.series)
            name = statistic.name.capitalize()
            yield f"{name}{of}", [values[official, statistic.name, *key] for key in keys]
