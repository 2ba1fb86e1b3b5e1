"""Methods and official leaderboards as tables: as the papers lay them out, and tidy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exampp.analysis.phrases import percent, with_interval
from exampp.evaluate.board import PROVENANCE, Leaderboard, heading, provenance
from exampp.records.wording import counted
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value
from exampp.stats.estimate import Estimate
from exampp.stats.rank_statistics import RankStatistic

NOT_ASKED = "none was asked for"
NEAR = 0.05
POOR = 0.5
NO_THRESHOLD = "any"
"""Stands for the threshold of measures that do not depend on it."""

Cell = tuple[str, int | None, str, str]


@dataclass(frozen=True, slots=True)
class MethodCorrelation:
    """One method at one threshold under one measure and statistic, against one leaderboard."""

    method: str
    official: str
    measure: str
    min_rating: int | None
    statistic: str
    estimate: Estimate
    systems: int
    queries: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Correlations(Result):
    """What `compare_methods` found: official by official, then in the order of the methods.

    `keys` are those of the graders among the methods; `samples` is 0 where no intervals were asked
    for; `notes` go with an official leaderboard, or with "" for all of them.
    """

    found: tuple[MethodCorrelation, ...]
    methods: tuple[str, ...]
    keys: Mapping[str, str | None]
    officials: tuple[str, ...]
    statistics: tuple[RankStatistic, ...]
    level: float
    samples: int
    notes: Mapping[str, tuple[str, ...]]

    def tables(self) -> dict[str, Table]:
        """For each official leaderboard the values as the papers print them, then intervals."""
        made = {
            f"{name}, {make.__name__}": make(self, name)
            for name in self.officials
            for make in (wide, intervals)
        }
        return {name: table for name, table in made.items() if table}

    def records(self) -> dict[str, Table]:
        """A row a value."""
        return {"correlation": tidy(self)}

    def told(self) -> list[str]:
        """What is to be said of the official leaderboards, and of the rounding, each once."""
        said = [note for name in self.officials for note in self.notes[name]]
        return list(dict.fromkeys([*said, *self.notes[""]]))

    def has_intervals(self, official: str) -> bool:
        """Does any value against this leaderboard have one?"""
        return any(one.estimate.low is not None for one in self.found if one.official == official)


def wide(comparison: Correlations, official: str) -> Table:
    """Methods and their thresholds as rows, measures and statistics as columns.

    The layout of Table 3 of EXAM++: per statistic the best method is marked, those within 0.05 of
    it, and those below 0.5. Intervals would make it too wide to be read: see `intervals`.
    """
    against = _against(comparison, official)
    found = {(one.method, one.min_rating, one.measure, one.statistic): one for one in against}
    lines = list(dict.fromkeys((method, threshold) for method, threshold, _, _ in found))
    lines.sort(key=lambda line: (comparison.methods.index(line[0]), line[1] is None, line[1] or 0))
    measures = list(dict.fromkeys(measure for _, _, measure, _ in found))
    columns = [
        Column(statistic.heading, 2, measure)
        for measure in measures
        for statistic in comparison.statistics
    ]
    rows: list[list[Value]] = []
    marks: dict[tuple[int, int], str] = {}
    best = {statistic.name: _best(found, statistic.name) for statistic in comparison.statistics}
    for method, threshold in lines:
        row: list[Value] = [method, NO_THRESHOLD if threshold is None else threshold]
        for measure in measures:
            for statistic in comparison.statistics:
                one = found.get((method, threshold, measure, statistic.name))
                mark = _mark(one, best[statistic.name])
                if mark:
                    marks[len(rows), len(row)] = mark
                row.append("" if one is None else one.estimate.value)
        rows.append(row)
    return Table.of(
        ["method", "min rating", *columns],
        rows,
        _caption(official, against),
        list(_notes(comparison, official, against)),
        marks=marks,
        legend={"near": f"within {NEAR} of it", "weak": f"below {POOR}"},
        grouped=True,
    )


def intervals(comparison: Correlations, official: str) -> Table | None:
    """A row a method, measure and threshold: the values with their intervals.

    None if no value has one; the notes of `wide` then say why.
    """
    if not comparison.has_intervals(official):
        return None
    found = _against(comparison, official)
    lines: dict[tuple[str, str], list[Value]] = {}
    for one in found:
        key = one.method, heading(one.measure, one.min_rating)
        lines.setdefault(key, []).append(with_interval(one.estimate))
    notes = [
        f"[low, high]: {percent(comparison.level)} interval over queries, "
        f"{comparison.samples:,} resamples, of what an exam of as many queries shows on average; "
        "with endless queries the correlation would mostly be higher",
        *_no_intervals(found),
    ]
    return Table.of(
        ["method", "measure", *(Column(one.heading, 2) for one in comparison.statistics)],
        [[*key, *values] for key, values in lines.items()],
        f"{_caption(official, found)}, with intervals",
        notes,
        grouped=True,
    )


def tidy(comparison: Correlations) -> Table:
    """A row a method, official leaderboard, measure, threshold and statistic, full precision.

    `reason` says why a value, or else its interval, is undefined.
    """
    rows = [
        [
            one.method,
            comparison.keys.get(one.method),
            one.official,
            one.measure,
            one.min_rating,
            one.statistic,
            one.estimate.value,
            one.estimate.low,
            one.estimate.high,
            one.systems,
            one.queries,
            one.estimate.reason or one.estimate.no_interval,
        ]
        for one in comparison.found
    ]
    columns = ["method", "grader_key", "official", "measure", "min_rating", "statistic"]
    columns += ["value", "low", "high"]
    notes = [
        note for official in ("", *comparison.officials) for note in comparison.notes[official]
    ]
    return Table.of(
        [*columns, "systems", "queries", "reason"],
        rows,
        "Rank correlation with official leaderboards",
        list(dict.fromkeys(notes)),
    )


def of_board(comparison: Correlations, board: Leaderboard) -> Table:
    """A row an official leaderboard, measure and threshold of one board; statistics as columns."""
    lines: dict[tuple[str, str, int | None], list[MethodCorrelation]] = {}
    for one in comparison.found:
        lines.setdefault((one.official, one.measure, one.min_rating), []).append(one)
    rows: list[list[Value]] = [
        [
            measure,
            min_rating,
            *(one.estimate.value for one in found),
            found[0].systems,
            official,
            *provenance(board),
        ]
        for (official, measure, min_rating), found in lines.items()
    ]
    names = [one.name for one in comparison.statistics]
    said = [Column(name, for_machines=True) for name in PROVENANCE]
    columns: list[str | Column] = ["measure", "min_rating", *names, "systems", "official", *said]
    return Table.of(
        columns,
        rows,
        "Rank correlation with the official leaderboard",
        [*_reasons(comparison.found, "undefined,", lambda one: one.reason), *comparison.told()],
    )


def _best(found: dict[Cell, MethodCorrelation], statistic: str) -> float | None:
    values = (one.estimate.value for one in found.values() if one.statistic == statistic)
    return max((value for value in values if value is not None), default=None)


def _mark(one: MethodCorrelation | None, best: float | None) -> str | None:
    if one is None:
        return None
    value = one.estimate.value
    if value is None or best is None:
        return "noted"
    if value >= best:
        return "best"
    # rounding must not decide whether a value is exactly as far
    if value >= best - NEAR - 1e-12:
        return "near"
    return "weak" if value < POOR else None


def _against(comparison: Correlations, official: str) -> list[MethodCorrelation]:
    return [one for one in comparison.found if one.official == official]


def _caption(official: str, found: Sequence[MethodCorrelation]) -> str:
    defined = [one for one in found if one.estimate.value is not None]
    systems = sorted({one.systems for one in defined or found}) or [0]
    few = "" if len(systems) == 1 else f"{systems[0]} to "
    return f"Rank correlation with {official} over {few}{counted(systems[-1], 'system')}"


def _no_intervals(found: Sequence[MethodCorrelation]) -> Iterator[str]:
    return _reasons(found, "no interval, because", lambda one: one.no_interval)


def _notes(
    comparison: Correlations, official: str, found: Sequence[MethodCorrelation]
) -> Iterator[str]:
    meanings = (f"{one.heading}: {one.meaning}" for one in comparison.statistics)
    yield "; ".join(meanings)
    yield from _reasons(found, "undefined,", lambda one: one.reason)
    if not comparison.has_intervals(official):
        yield from _no_intervals(found)
    yield from comparison.notes[official]
    yield from comparison.notes[""]


def _reasons(
    found: Sequence[MethodCorrelation], what: str, why: Callable[[Estimate], str]
) -> Iterator[str]:
    """Each reason once, with the measures, their thresholds and the methods that it concerns."""
    places: dict[str, dict[str, dict[str, list[int]]]] = {}
    for one in found:
        reason = why(one.estimate)
        if not reason or reason == NOT_ASKED:
            continue
        levels = places.setdefault(reason, {}).setdefault(one.method, {})
        of_measure = levels.setdefault(one.measure, [])
        if one.min_rating is not None and one.min_rating not in of_measure:
            of_measure.append(one.min_rating)
    for reason, methods in places.items():
        where = (
            f"{', '.join(map(_measured, levels.items()))} of {method}"
            for method, levels in methods.items()
        )
        yield f"{what} {reason}: {'; '.join(where)}"


def _measured(of: tuple[str, list[int]]) -> str:
    measure, levels = of
    return f"{measure} \u2265{', '.join(map(str, levels))}" if levels else measure
