"""A leaderboard as the page shows it: a row a system, with its error bar drawn to one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from exampp.analysis import figures
from exampp.measures.board import Leaderboard
from exampp.measures.names import heading
from exampp.measures.values import Mean
from exampp.results.plots.figure import Spread, round_axis


class Bar(NamedTuple):
    """A mean and the ends of its error bar, in percent of the width of the axis.

    `beyond` is an arrow where the mean is not on the axis, but somewhere to the left or right.
    """

    at: float
    low: float
    high: float
    beyond: str = ""


class RankedSystem(NamedTuple):
    """A system: its place by the chosen measure, its means, its error bar (None: undefined)."""

    place: int
    system: str
    means: tuple[Mean, ...]
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Standings:
    """The systems by one measure, best first.

    `headings` name the measures, `chosen` is the one that orders; `ticks` are the labels of the
    axis with their places in percent.
    """

    headings: tuple[str, ...]
    chosen: int
    ticks: tuple[tuple[float, float], ...]
    rows: tuple[RankedSystem, ...]


def spreads(board: Leaderboard, chosen: int) -> list[Spread]:
    """Every system's mean by one column, with one standard error to both sides; best first."""
    found = figures.spreads(board.columns[chosen], board.column_systems)
    return sorted(found, key=lambda one: (one.value is None, -(one.value or 0.0), one.system))


def standings(board: Leaderboard, chosen: int = 0) -> Standings:
    """The systems of a leaderboard by its column `chosen`; the first where there is none such."""
    if not 0 <= chosen < len(board.columns):
        chosen = 0
    found = spreads(board, chosen)
    columns = [column.values.means() for column in board.columns]
    by_system = dict(zip(board.column_systems, zip(*columns, strict=True), strict=True))
    start, end, ticks = round_axis(found)
    rows = tuple(
        RankedSystem(place, one.system, by_system[one.system], _bar(one, start, end))
        for place, one in enumerate(found, 1)
    )
    headings = tuple(heading(str(c.measure), c.min_rating) for c in board.columns)
    return Standings(
        headings, chosen, tuple((tick, _share(tick, start, end)) for tick in ticks), rows
    )


def _bar(one: Spread, start: float, end: float) -> Bar | None:
    if one.value is None:
        return None
    if not start <= one.value <= end:
        edge = 0.0 if one.value < start else 100.0
        return Bar(edge, edge, edge, beyond="\u2039" if edge == 0 else "\u203a")
    low = one.value if one.low is None else one.low
    high = one.value if one.high is None else one.high
    low, high = max(low, start), min(high, end)
    at, left, right = (_share(place, start, end) for place in (one.value, low, high))
    return Bar(at, left, right)


def _share(value: float, start: float, end: float) -> float:
    return round(100 * (value - start) / (end - start), 2)
