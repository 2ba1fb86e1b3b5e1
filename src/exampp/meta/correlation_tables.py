"""Methods and official leaderboards as tables: as the papers lay them out, and tidy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exampp.meta.correlation import Found, MethodComparison
from exampp.report.table import Column, Table, Value

NEAR = 0.05
POOR = 0.5
NO_THRESHOLD = "any"
"""Stands for the threshold of measures that do not depend on it."""

Cell = tuple[str, int | None, str, str]


def wide(comparison: MethodComparison, official: str) -> Table:
    """Methods and their thresholds as rows, measures and statistics as columns.

    The layout of Table 3 of EXAM++: per statistic the best method is marked, those within 0.05 of
    it, and those below 0.5.
    """
    found = {_cell(one): one for one in comparison.found if one.official == official}
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
                row.append(_shown(one))
        rows.append(row)
    return Table.of(
        ["method", "min rating", *columns],
        rows,
        f"Rank correlation with {official}",
        list(_notes(comparison, official)),
        marks=marks,
        legend={"near": f"within {NEAR} of it", "weak": f"below {POOR}"},
        grouped=True,
    )


def tidy(comparison: MethodComparison) -> Table:
    """A row a method, official leaderboard, measure, threshold and statistic, full precision.

    `reason` says why a value, or else its interval, is undefined.
    """
    rows = [
        [
            one.method,
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
    columns = ["method", "official", "measure", "min_rating", "statistic", "value", "low", "high"]
    notes = [
        note for official in ("", *comparison.officials) for note in comparison.notes[official]
    ]
    return Table.of(
        [*columns, "systems", "queries", "reason"],
        rows,
        "Rank correlation with official leaderboards",
        list(dict.fromkeys(notes)),
    )


def _cell(one: Found) -> Cell:
    return (one.method, one.min_rating, one.measure, one.statistic)


def _best(found: dict[Cell, Found], statistic: str) -> float | None:
    values = (one.estimate.value for one in found.values() if one.statistic == statistic)
    return max((value for value in values if value is not None), default=None)


def _mark(one: Found | None, best: float | None) -> str | None:
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


def _shown(one: Found | None) -> Value:
    if one is None:
        return ""
    estimate = one.estimate
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate.value
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _notes(comparison: MethodComparison, official: str) -> Iterator[str]:
    meanings = (f"{one.heading}: {one.meaning}" for one in comparison.statistics)
    yield "; ".join(meanings)
    of_official = [one for one in comparison.found if one.official == official]
    if any(one.estimate.low is not None for one in of_official):
        yield (
            f"[low, high]: {comparison.level:.0%} interval over queries, {comparison.samples} "
            "resamples, of the correlation that the expected scores have; the value may lie "
            "outside, as the noise of the queries shifts it, mostly down"
        )
    yield from _reasons(of_official)
    yield from comparison.notes[official]
    yield from comparison.notes[""]


def _reasons(found: Sequence[Found]) -> Iterator[str]:
    """Why values, and intervals that were asked for, are undefined: each reason once."""
    values: dict[str, dict[str, None]] = {}
    intervals: dict[str, dict[str, None]] = {}
    for one in found:
        level = "" if one.min_rating is None else f" \u2265{one.min_rating}"
        where = f"{one.measure}{level} of {one.method}"
        if one.estimate.value is None:
            values.setdefault(one.estimate.reason, {})[where] = None
        elif one.estimate.low is None and one.estimate.no_interval != "none was asked for":
            intervals.setdefault(one.estimate.no_interval, {})[where] = None
    for reason, places in values.items():
        yield f"undefined, {reason}: {', '.join(places)}"
    for reason, places in intervals.items():
        yield f"no interval, because {reason}: {', '.join(places)}"
