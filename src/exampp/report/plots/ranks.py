"""Between which ranks every system stands, over all ways to make the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exampp.report.plots.figure import ACCENT, Figure, rows
from exampp.report.plots.layers import in_rows, layer
from exampp.report.table import Table, Value

_WIDTH = 560


class RankSpan(NamedTuple):
    """The best and worst rank of a system, the middle half of its ranks, and the median."""

    system: str
    best: float
    low: float
    median: float
    high: float
    worst: float


def ranks(spans: Sequence[RankSpan], over: str, *, name: str = "sensitivity") -> Figure:
    """A row a system, in the order given; `over` says what the ranks are taken over."""
    across = {
        "type": "quantitative",
        "scale": {"domain": [0.5, len(spans) + 0.5], "nice": False, "zero": False},
        "title": "rank (1 is best)",
        "axis": {"grid": False, "tickMinStep": 1, "format": "d", "values": _ticks(len(spans))},
    }
    bars = (("best", "worst", 2.0, 0.45), ("low", "high", 6.0, 0.55))
    layers = [
        layer(
            "rule",
            {"x": {**across, "field": low}, "x2": {"field": high}},
            strokeWidth=width,
            color=ACCENT,
            opacity=opacity,
        )
        for low, high, width, opacity in bars
    ]
    median = {"x": {**across, "field": "median"}}
    layers.append(layer("point", median, filled=True, opacity=1, size=40, color=ACCENT))
    ends = RankSpan._fields[1:]
    values: list[list[Value]] = [list(one) for one in spans]
    return Figure(
        name=name,
        title="Ranks over all specifications",
        subtitle=f"Line: best to worst rank, bar: the middle half, dot: the median; {over}",
        alt=_alt(spans, over),
        spec=in_rows([one.system for one in spans], _WIDTH, layers, rows(("name", *ends), values)),
        data=Table.of(["system", *ends], values, "Ranks over all specifications"),
    )


def _ticks(systems: int) -> list[int]:
    """Whole ranks, about twenty at most."""
    step = 1 + systems // 21
    return list(range(step, systems + 1, step))


def _alt(spans: Sequence[RankSpan], over: str) -> str:
    if not spans:
        return "Nothing to draw: no specification ranks systems."
    first, widest = spans[0], max(spans, key=lambda one: one.worst - one.best)
    return (
        f"Ranks of {len(spans)} systems over {over}. The best by its median, {first.system}, "
        f"stands between {first.best:g} and {first.worst:g}; the widest range has "
        f"{widest.system}, from {widest.best:g} to {widest.worst:g}."
    )
