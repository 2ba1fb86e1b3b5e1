"""Leaderboards of several methods side by side, with official ranks and their correlation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from exampp.analysis.correlation import AS_GIVEN, Correlations, Method, Scoring, compare_methods
from exampp.errors import InputError
from exampp.measures.board import Ranks, official_columns, official_rank
from exampp.measures.names import heading
from exampp.measures.values import TIE_DECIMALS, Mean, spread_of
from exampp.records.wording import counted
from exampp.results.notes import DRAFT, listed, merge_notes, note, without_label
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, marked
from exampp.stats.rank_correlation import correlate, unite_ties

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure


class MethodPair(NamedTuple):
    """Two methods under one measure, each at a threshold, with their correlation."""

    method: str
    min_rating: int | None
    other: str
    other_min_rating: int | None
    measure: str
    spearman: float | None
    kendall: float | None
    systems: int


class Series(NamedTuple):
    """One column: a method under one measure at one threshold, with the mean of every system.

    `key` is the key of the grader, None for methods without grades.
    """

    method: str
    scoring: Scoring
    means: Mapping[str, Mean]
    key: str | None = None

    @property
    def measured(self) -> str:
        """The measure with its threshold."""
        return heading(self.scoring.measure, self.scoring.min_rating)


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Result):
    """The result of `side_by_side`: sorted systems, columns, official ranks, and correlations.

    `correlation` is None without an official leaderboard; `pairs` correlates the methods with each
    other and is empty for a single method.
    """

    systems: tuple[str, ...]
    series: tuple[Series, ...]
    officials: Mapping[str, Ranks]
    ordered_by: str
    correlation: Correlations | None
    notes: tuple[str, ...]
    pairs: tuple[MethodPair, ...] = ()

    def plot(self) -> Figure:
        """Plot the scores of up to six columns, re-normalised to 0 to 1, side by side."""
        from exampp.results.plots.dots import method_scores

        scores = {
            f"{without_label(one.method)} {one.measured}": [
                spread_of(system, mean, share=False) for system, mean in one.means.items()
            ]
            for one in self.series
        }
        drawn = method_scores(scores, self.systems, ordered_by=without_label(self.ordered_by))
        return replace(drawn, draft=any(DRAFT in one.method for one in self.series))

    @property
    def headline(self) -> str:
        """The systems that are first in some column, in words."""
        firsts: Counter[str] = Counter()
        for one in self.series:
            scores = {
                name: round(score, TIE_DECIMALS) for name, score in one.scoring.scores.items()
            }
            firsts.update(name for name in scores if scores[name] == max(scores.values()))
        named = [f"{system} ({count})" for system, count in firsts.most_common()]
        columns = counted(len(self.series), "column")
        return f"Ranked first in {columns}: {listed(named)}." if named else ""

    def tables(self) -> dict[str, Table]:
        """Return a row per system, a column per scoring, and the correlations below.

        Two methods that share thresholds are correlated with each other at those only.
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
        """Return a row per system, method, measure and threshold; the correlations if any."""
        columns = [
            *("system", "method", "grader_key", "measure", "min_rating", "mean", "stderr"),
            *(name.replace(" ", "_") for name in official_columns(self.officials)),
        ]
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
            "leaderboards": Table.of(
                columns, rows, "Leaderboards side by side", self.notes, verdict=self.headline
            ),
            **(self.correlation.records() if self.correlation else {}),
            **_pair_table(self.pairs),
        }

    def _wide(self) -> Table:
        """Return a row per system, a column per scoring, and the correlations below.

        A system without an official rank is placed at the rank of the nearest one above it, marked
        as approximate.
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
        return Table.of(
            ["system", *columns, *official_columns(self.officials)],
            rows,
            f"Leaderboards side by side: {measure}{title}ordered by {self.ordered_by}",
            [*([note("approximate-rank")] if approximate else []), *self.notes],
            verdict=self.headline,
        )

    def _statistics(self) -> Iterator[tuple[str, list[float | None]]]:
        """Yield the rows of statistics: their names, and a value per column."""
        correlation = self.correlation
        if correlation is None:
            return
        for official in correlation.officials:
            values = {
                (one.statistic, one.method, one.measure, one.min_rating): one.estimate.value
                for one in correlation.against(official)
            }
            of = f" with {official}" if len(correlation.officials) > 1 else ""
            for statistic in correlation.statistics:
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
    """Show the systems of several methods side by side, sorted by the column `order`.

    Columns are counted from 1; 0 sorts by the first official leaderboard. With `decimals`, means
    are rounded before they are ranked for the correlations.

    The layout of Table 4 of the Workbench paper: columns by grader and threshold, official ranks
    beside them, rank correlations below. A second table correlates every two methods with each
    other.

    Raises:
        InputError: The column is unknown, or two methods have one name.
    """
    columns = tuple(
        Series(method.name, scoring, _means(scoring), method.key)
        for method in methods
        for scoring in method.scorings
    )
    if not columns or not 0 <= order <= len(columns) or (order == 0 and not officials):
        raise InputError(
            f"no column {order} to order by",
            hint=f"Choose from 1 to {len(columns)}" if order else "Give an official leaderboard",
        )
    systems = dict.fromkeys(system for one in columns for system in one.means)
    compared = (
        compare_methods(methods, officials, samples=0, decimals=decimals) if officials else None
    )
    name, keys = _order(columns, officials, order)
    notes = merge_notes(one for method in methods for one in method.notes)
    return SideBySide(
        systems=tuple(sorted(systems, key=lambda one: (one not in keys, keys.get(one, 0.0), one))),
        series=columns,
        officials=officials,
        ordered_by=name,
        correlation=compared,
        notes=tuple(compared.all_notes() if compared else notes),
        pairs=tuple(pairwise_correlation(methods)),
    )


def pairwise_correlation(methods: Sequence[Method]) -> Iterator[MethodPair]:
    """Correlate every two methods under each shared measure, at every two thresholds."""
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
    """Return the description of the sort key, and each system's place by it, low ones first."""
    if order == 0:
        first, ranks = next(iter(officials.items()))
        return first, dict(ranks)
    one = series[order - 1]
    sign = -1.0 if one.scoring.values is not None else 1.0
    means = {system: mean.mean for system, mean in one.means.items() if mean.mean is not None}
    keys = {system: sign * round(mean, TIE_DECIMALS) for system, mean in means.items()}
    return f"{one.method}, {one.measured}", keys


def _subheading(one: Series, *, alone: bool) -> str:
    """Return the subheading of a column, below the heading of its method."""
    scoring = one.scoring
    if scoring.measure == AS_GIVEN:
        return "rank"
    if alone:
        return scoring.measure if scoring.min_rating is None else f"\u2265{scoring.min_rating}"
    return one.measured


def _score(one: Series, system: str) -> Cell:
    """Return the mean of a system; for an external leaderboard its rank."""
    mean = one.means.get(system)
    if mean is None or one.scoring.values is not None:
        return None if mean is None else mean.mean
    return official_rank(system, {system: mean.mean or 0.0})


def _shortened(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the names without their common model prefix, and that model for the caption."""
    models = {name.partition(":")[0] for name in names}
    if len(models) != 1 or not any(":" in name for name in names):
        return "", list(names)
    return f"{models.pop()}; ", [name.partition(":")[2] or name for name in names]
