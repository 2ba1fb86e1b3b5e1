"""How reliable exams of other sizes would be: a panel for all systems, and without the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exampp.report.plots.figure import GREY, SERIES, Figure, Spec, rows
from exampp.report.plots.layers import layer
from exampp.report.table import Table

_WIDTH, _HEIGHT = 205, 250
_PER_ROW = 3
_SPACING = 26
_LEAST = 230
"""Pixels of a panel with its axis, at least; where they are fewer, panels stand below another."""
_AXIS, _LEGEND, _WIDEST = 52, 78, 860
NO_LIMIT = "no limit"
"""The line of exams with items without end: what no number of them passes."""


class Foreseen(NamedTuple):
    """The reliability of an exam of so many queries; `low` and `high` bound it where known."""

    panel: str
    line: str
    queries: int
    value: float
    low: float | None
    high: float | None


def reliability(
    foreseen: Sequence[Foreseen],
    measure: str,
    *,
    present: int,
    target: float,
    interval: str,
    name: str = "reliability",
) -> Figure:
    """Lines over the number of queries, one for each number of items, a panel a set of systems.

    `present` is the number of queries at hand, `target` the reliability that is wanted; `interval`
    says what the band is.
    """
    panels = list(dict.fromkeys(one.panel for one in foreseen))
    lines = list(dict.fromkeys(one.line for one in foreseen))
    deepest = max((one.queries for one in foreseen), default=1)

    def sized(pixels: float, width: float | None = None) -> Spec:
        columns = min(_PER_ROW, len(panels), max(1, int(pixels // _LEAST)))
        room = pixels - (_LEGEND if len(lines) > 1 else 0) - (columns - 1) * _SPACING
        wide = width or room / columns - _AXIS
        drawn = [
            {
                "title": {"text": panel, "fontSize": 12, "fontWeight": "normal", "offset": 6},
                "width": wide,
                "height": min(_HEIGHT, 1.2 * wide),
                "layer": [
                    *_rules(present, target),
                    *_curves([one for one in foreseen if one.panel == panel], lines, deepest),
                ],
            }
            for panel in panels
        ]
        return {"concat": drawn, "columns": columns, "spacing": _SPACING} if foreseen else {}

    shown = "Lines: items per query; band" if len(lines) > 1 else "Band"
    return Figure(
        name=name,
        title=f"Reliability of the order of systems by {measure}",
        subtitle=f"{shown}: {interval}; dashed: {target:g}, and the {present} queries at hand",
        alt=_alt(foreseen, panels, measure, present),
        spec=sized(_WIDEST, _WIDTH),
        sized=sized,
        data=Table.of(
            ["systems", "items per query", "queries", "value", "low", "high"],
            [list(one) for one in foreseen],
            f"Reliability of {measure} by the size of the exam",
        ),
    )


_DASHES = {
    "condition": {"test": f"datum.line == '{NO_LIMIT}'", "value": [2, 3]},
    "value": [1, 0],
}


def _curves(found: Sequence[Foreseen], lines: Sequence[str], deepest: int) -> list[dict[str, Any]]:
    across = {
        "field": "queries",
        "type": "quantitative",
        "scale": {"domain": [0, deepest], "nice": False},
        "title": "queries",
        "axis": {"grid": False, "tickCount": 5},
    }
    up = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "title": "E\u03c1\u00b2",
        "axis": {"grid": True, "tickCount": 6, "domain": False, "ticks": False},
    }
    inks = dict(zip(lines, [*SERIES, GREY], strict=False)) | {NO_LIMIT: GREY}
    # as the lines lie: most items on top
    order = lines[::-1]
    colour = {
        "field": "line",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(order), "range": [inks.get(line, GREY) for line in order]},
        "legend": {"title": "items"} if len(lines) > 1 else None,
    }
    bounded = [one for one in found if one.low is not None and one.high is not None]
    band = {
        "x": across,
        "y": {**up, "field": "low"},
        "y2": {"field": "high"},
        "color": {"value": inks.get(bounded[0].line, GREY) if bounded else GREY},
    }
    line = {"x": across, "y": up, "color": colour, "strokeDash": _DASHES}
    return [
        layer("area", band, rows(Foreseen._fields, bounded), opacity=0.18),
        layer("line", line, rows(Foreseen._fields, found), strokeWidth=1.8),
    ]


def _rules(present: int, target: float) -> list[dict[str, Any]]:
    dashed = {"type": "rule", "strokeDash": [5, 4], "opacity": 0.55}
    places: Sequence[tuple[str, Mapping[str, Any]]] = (
        ("y", {"value": target}),
        ("x", {"value": present}),
    )
    return [
        {
            "data": {"values": [at]},
            "mark": dashed,
            "encoding": {side: {"field": "value", "type": "quantitative"}},
        }
        for side, at in places
    ]


def _alt(found: Sequence[Foreseen], panels: Sequence[str], measure: str, present: int) -> str:
    if not found:
        return f"Nothing to draw: the reliability of {measure} is undefined."
    now = []
    for panel in panels:
        near = [one for one in found if one.panel == panel and one.queries == present]
        if near:
            low, high = min(one.value for one in near), max(one.value for one in near)
            now.append(f"{panel}: {low:.2f} to {high:.2f}")
    return (
        f"Reliability of {measure} over the number of queries. With the {present} queries at hand, "
        f"from few to unlimited items, {'; '.join(now)}."
    )
