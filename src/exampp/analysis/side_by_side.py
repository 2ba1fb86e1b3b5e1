"""Leaderboards side by side: every system under several graders, measures and thresholds.

The layout of Table 4 of the Workbench paper: columns by grader and threshold, official ranks beside
them, rank correlations below. A second table correlates every two methods with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from exampp.analysis.correlation import AS_GIVEN, Correlations, Method, Scoring, compare_methods
from exampp.errors import InputError
from exampp.measures.board import Ranks, official_columns, official_rank
from exampp.measures.names import heading
from exampp.measures.values import Mean
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, marked
from exampp.stats.rank_correlation import correlate, unite_ties

_DECIMALS = 10
"""Scores that are equal in these are equal: the last digit of a sum orders no systems."""


class MethodPair(NamedTuple):
    """Two methods under one measure, each at a threshold, and how alike they order systems."""

    method: str
    min_rating: int | None
    other: str
    other_min_rating: int | None
    measure: str
    spearman: float | None
    kendall: float | None
    systems: int


class Series(NamedTuple):
    """One column: a method under one measure at one threshold, and its mean of every system.

    `key` is that of the grader, None of any other way to score.
    """

    method: str
    scoring: Scoring
    means: Mapping[str, Mean]
    key: str | None = None

    @property
    def measured(self) -> str:
        """The measure and the threshold."""
        return heading(self.scoring.measure, self.scoring.min_rating)


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Result):
    """What `side_by_side` found: systems in order, columns, official ranks, and correlations.

    `correlation` is None without an official leaderboard; `pairs` are the methods with each other,
    none where there is one alone.
    """

    systems: tuple[str, ...]
    series: tuple[Series, ...]
    officials: Mapping[str, Ranks]
    ordered_by: str
    correlation: Correlations | None
    notes: tuple[str, ...]
    pairs: tuple[MethodPair, ...] = ()

    def tables(self) -> dict[str, Table]:
        """A row a system, a column a method, measure and threshold; the correlations below.

        Where two methods share thresholds, they are correlated with each other at those alone.
        """
        same = {
            (p.method, p.other, p.measure) for p in self.pairs if p.min_rating == p.other_min_rating
        }
        alike = [
            p
            for p in self.pairs
            if p.min_rating == p.other_min_rating or (p.method, p.other, p.measure) not in same
        ]
        return {"leaderboards": self._wide(), **_pair_table(alike)}

    def records(self) -> dict[str, Table]:
        """A row a system, method, measure and threshold; the correlations, if there are any."""
        columns = ["system", "method", "grader_key", "measure", "min_rating", "mean", "stderr"]
        columns += [name.replace(" ", "_") for name in official_columns(self.officials)]
        rows = [
            [
                *(system, one.method, one.key, one.scoring.measure, one.scoring.min_rating),
                *one.means[system][:2],
                *(official_rank(system, ranks) for ranks in self.officials.values()),
            ]
            for one in self.series
            for system in self.systems
            if system in one.means
        ]
        return {
            "leaderboards": Table.of(columns, rows, "Leaderboards side by side", self.notes),
            **(self.correlation.records() if self.correlation else {}),
            **_pair_table(self.pairs),
        }

    def _wide(self) -> Table:
        """A row a system, a column a method, measure and threshold; the correlations below.

        A system without an official rank has that of the nearest one above it, as an approximate
        one.
        """
        measures = {one.scoring.measure for one in self.series} - {AS_GIVEN}
        title, names = _shortened([one.method for one in self.series])
        columns = [
            Column(_subheading(one, alone=len(measures) == 1), 3, name)
            for one, name in zip(self.series, names, strict=True)
        ]
        rows: list[list[Cell]] = []
        above = dict.fromkeys(self.officials, "\u22481")
        approximate = False
        for system in self.systems:
            row: list[Cell] = [_score(one, system) for one in self.series]
            for name, ranks in self.officials.items():
                rank = official_rank(system, ranks)
                approximate |= rank is None
                above[name] = above[name] if rank is None else f"\u2248{rank}"
                row.append(above[name] if rank is None else rank)
            rows.append([system, *row])
        for statistic, values in self._statistics():
            best = max((value for value in values if value is not None), default=None)
            known = [
                marked(one, "best" if one is not None and one == best else None) for one in values
            ]
            rows.append([statistic, *known, *("" for _ in self.officials)])
        measure = f"{measures.pop()}; " if len(measures) == 1 else ""
        about = (
            "\u2248: not in that official leaderboard; the rank there of the nearest system above"
        )
        return Table.of(
            ["system", *columns, *official_columns(self.officials)],
            rows,
            f"Leaderboards side by side: {measure}{title}ordered by {self.ordered_by}",
            [*([about] if approximate else []), *self.notes],
        )

    def _statistics(self) -> Iterator[tuple[str, list[float | None]]]:
        """The rows of statistics: their names, and a value a column."""
        found = self.correlation
        if found is None:
            return
        for official in found.officials:
            values = {
                (one.statistic, one.method, one.measure, one.min_rating): one.estimate.value
                for one in found.against(official)
            }
            of = f" with {official}" if len(found.officials) > 1 else ""
            for statistic in found.statistics:
                yield (
                    f"{statistic.name.capitalize()}{of}",
                    [
                        values[statistic.name, s.method, s.scoring.measure, s.scoring.min_rating]
                        for s in self.series
                    ],
                )


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
        InputError: The column is unknown, or two methods have one name.
    """
    found = tuple(
        Series(method.name, scoring, _means(scoring), method.key)
        for method in methods
        for scoring in method.scorings
    )
    if not found or not 0 <= order <= len(found) or (order == 0 and not officials):
        raise InputError(
            f"there is no column {order} to order by",
            hint=f"Choose from 1 to {len(found)}" if order else "Give an official leaderboard",
        )
    systems = dict.fromkeys(system for one in found for system in one.means)
    compared = (
        compare_methods(methods, officials, samples=0, decimals=decimals) if officials else None
    )
    name, keys = _order(found, officials, order)
    notes = dict.fromkeys(note for method in methods for note in method.notes)
    return SideBySide(
        systems=tuple(sorted(systems, key=lambda one: (one not in keys, keys.get(one, 0.0), one))),
        series=found,
        officials=officials,
        ordered_by=name,
        correlation=compared,
        notes=tuple(compared.all_notes() if compared else notes),
        pairs=tuple(pairwise_correlation(methods)),
    )


def pairwise_correlation(methods: Sequence[Method]) -> Iterator[MethodPair]:
    """Correlate every two methods under every measure that both have, at every two thresholds."""
    for one, other in combinations(methods, 2):
        for a in one.scorings:
            for b in other.scorings:
                if a.measure == b.measure or AS_GIVEN in (a.measure, b.measure):
                    # equal where scores differ by no more than rounding; statistics of ranks need
                    # no more than their order
                    united = unite_ties([list(b.scores.values())])[0]
                    ranks = dict(zip(b.scores, (-united).tolist(), strict=True))
                    found = correlate(a.scores, ranks)
                    yield MethodPair(
                        *(one.name, a.min_rating, other.name, b.min_rating),
                        b.measure if a.measure == AS_GIVEN else a.measure,
                        *(found.spearman.value, found.kendall.value, found.systems),
                    )


def _pair_table(pairs: Sequence[MethodPair]) -> dict[str, Table]:
    caption = "Rank correlation of graders with each other"
    return {"between": Table.of(MethodPair._fields, pairs, caption)} if pairs else {}


def _means(scoring: Scoring) -> dict[str, Mean]:
    if scoring.values is None:
        # a leaderboard made elsewhere: its ranks, as methods negate them
        return {system: Mean(-score, None, 0) for system, score in scoring.scores.items()}
    return dict(zip(scoring.systems, scoring.values.means(), strict=True))


def _order(
    series: Sequence[Series], officials: Mapping[str, Ranks], order: int
) -> tuple[str, dict[str, float]]:
    """What the systems are ordered by, and the place of each that has one, low ones first."""
    if order == 0:
        first, ranks = next(iter(officials.items()))
        return first, dict(ranks)
    one = series[order - 1]
    sign = -1.0 if one.scoring.values is not None else 1.0
    means = {system: mean.mean for system, mean in one.means.items() if mean.mean is not None}
    keys = {system: sign * round(mean, _DECIMALS) for system, mean in means.items()}
    return f"{one.method}, {one.measured}", keys


def _subheading(one: Series, *, alone: bool) -> str:
    """The heading of a column below that of its method."""
    scoring = one.scoring
    if scoring.measure == AS_GIVEN:
        return "rank"
    if alone:
        return scoring.measure if scoring.min_rating is None else f"\u2265{scoring.min_rating}"
    return one.measured


def _score(one: Series, system: str) -> Cell:
    """The mean of a system; of a leaderboard made elsewhere its rank."""
    mean = one.means.get(system)
    if mean is None or one.scoring.values is not None:
        return None if mean is None else mean.mean
    return official_rank(system, {system: mean.mean or 0.0})


def _shortened(names: Sequence[str]) -> tuple[str, list[str]]:
    """The names without the model that all of them begin with, and that model for the caption."""
    models = {name.partition(":")[0] for name in names}
    if len(models) != 1 or not any(":" in name for name in names):
        return "", list(names)
    return f"{models.pop()}; ", [name.partition(":")[2] or name for name in names]
