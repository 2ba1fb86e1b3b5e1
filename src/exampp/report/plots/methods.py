"""Several evaluation methods over the same systems, to see whether they agree on the order.

Figure 2 of EXAM++: every method's scores are re-normalised so that its best system is at 1 and its
worst at 0, standard errors with them, and the systems stand side by side in the order of the
official leaderboard, which may be the first series. Bars, as ranks and scores of others have no
errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exampp.report.plots.axis import Spread
from exampp.report.plots.figure import GREY, SERIES, SHAPES, Figure, Spec, by_name, rows
from exampp.report.plots.layers import layer, nominal
from exampp.report.table import Table, Value

_WIDTH, _HEIGHT = 860, 250
_AXIS = 64
"""Pixels of the axis of scores."""
_NARROWEST = 12
"""Pixels of a system; more of them than fit make another panel."""
_FEW = 24


def methods(
    scores: Mapping[str, Sequence[Spread]],
    order: Sequence[str],
    *,
    official: tuple[str, Sequence[Spread]] | None = None,
    ordered_by: str = "the official leaderboard",
    spread: str = "standard error",
    name: str = "methods",
) -> Figure:
    """Re-normalised scores of up to six methods over the systems of `order`.

    `official` is the name and the scores of one series more, the first and in grey. Systems that
    are not in `order` are left out before re-normalising. A method whose scores are all equal has
    none that could be drawn, and is not.
    """
    places = {system: place for place, system in enumerate(order)}
    given = [] if official is None else [official]
    given += list(scores.items())[: len(SERIES)]
    drawn = {
        method: sorted(
            renormalised([one for one in found if one.system in places]),
            key=lambda one: places[one.system],
        )
        for method, found in given
    }
    drawn = {method: found for method, found in drawn.items() if found}
    values = [[m, *one] for m, found in drawn.items() for one in found]

    def sized(pixels: float) -> Spec:
        return _spec(values, drawn, order, official and official[0], pixels) if drawn else {}

    return Figure(
        name=name,
        title="The same systems under several methods",
        subtitle=f"Systems in the order of {ordered_by}; lines: {spread}, re-normalised",
        alt=_alt(drawn, order, ordered_by),
        spec=sized(_WIDTH),
        sized=sized,
        data=Table.of(
            ["method", "system", "value", "low", "high"],
            values,
            f"Scores re-normalised per method, with {spread}",
        ),
    )


def _spec(
    values: Sequence[Sequence[Value]],
    drawn: Mapping[str, Sequence[Spread]],
    order: Sequence[str],
    official: str | None,
    pixels: float,
) -> Spec:
    """Panels of so many systems as there is room for, one below the other."""
    panels = -(-len(order) * _NARROWEST // (pixels - _AXIS)) or 1
    size = -(-len(order) // int(panels))
    bounds = [end for _, _, *ends in values for end in ends if isinstance(end, float)]
    scale = {"domain": [min(0.0, *bounds), max(1.0, *bounds)], "nice": False}
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    views = [
        {
            "width": (pixels - _AXIS) * len(part) / size,
            "height": _HEIGHT,
            **_view([row for row in values if row[1] in set(part)], drawn, part, official, scale),
        }
        for part in parts
    ]
    return views[0] if len(views) == 1 else {"vconcat": views, "spacing": 14}


def _view(
    values: Sequence[Sequence[Value]],
    drawn: Mapping[str, Sequence[Spread]],
    order: Sequence[str],
    official: str | None,
    scale: Mapping[str, Any],
) -> dict[str, Any]:
    labels = list(drawn)
    first = official in drawn
    inks = [GREY] * first + list(SERIES)
    shapes = ["stroke"] * first + list(SHAPES)
    legend = {"title": None, "orient": "top", "columns": 7, "labelLimit": 220}
    colour = nominal("method", labels, inks[: len(labels)], legend)
    shape = nominal("method", labels, shapes[: len(labels)], legend)
    title = ["re-normalised score", "(best system 1, worst 0)"]
    axis = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2f", "grid": True, "domain": False}
    up = {"type": "quantitative", "scale": scale, "title": title, "axis": axis}
    names = by_name(order, labelAngle=-60, labelFontSize=9 if len(order) > _FEW else 11)
    apart = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": labels, "paddingOuter": 0.7},
    }
    return {
        "data": rows(("method", "name", "value", "low", "high"), values),
        "encoding": {"x": names, "xOffset": apart, "color": colour},
        "layer": [
            layer("bar", {"y": {**up, "field": "value"}, "y2": {"datum": 0}}, opacity=0.55),
            layer("rule", {"y": {**up, "field": "low"}, "y2": {"field": "high"}}, strokeWidth=1),
            layer(
                "point",
                {"y": {**up, "field": "value"}, "shape": shape},
                filled=True,
                opacity=1,
                size=14,
            ),
        ],
    }


def renormalised(scores: Sequence[Spread]) -> list[Spread]:
    """The scores moved and stretched to 0..1, bounds alike; empty where all are equal."""
    values = [one.value for one in scores if one.value is not None]
    if not values or max(values) == min(values):
        return []
    low, size = min(values), max(values) - min(values)

    def scaled(value: float | None) -> float | None:
        return None if value is None else (value - low) / size

    return [
        Spread(one.system, scaled(one.value), scaled(one.low), scaled(one.high))
        for one in scores
        if one.value is not None
    ]


def _alt(drawn: Mapping[str, Sequence[Spread]], order: Sequence[str], ordered_by: str) -> str:
    if not order:
        return f"Nothing to draw: no system is in {ordered_by}."
    if not drawn:
        return "Nothing to draw: no method tells the systems apart."
    best = [
        f"{max(found, key=lambda one: one.value or 0.0).system} under {method}"
        for method, found in drawn.items()
    ]
    return (
        f"Scores of {len(order)} systems under {len(drawn)} methods, re-normalised to 0 to 1, in "
        f"the order of {ordered_by}. Best: {', '.join(best)}."
    )
