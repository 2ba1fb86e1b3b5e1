"""Several evaluation methods over the same systems, to see whether they agree on the order.

Figure 2 of EXAM++: every method's scores are re-normalised so that its best system is at 1 and its
worst at 0, standard errors with them, and the systems stand in the order of the official
leaderboard, which may be the first series. Bars, as ranks and scores made elsewhere have no errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exampp.report.plots.figure import GREY, SERIES, SHAPES, Figure, by_name, row_height, rows
from exampp.report.plots.leaderboard import Spread
from exampp.report.table import Table

_WIDTH = 620
_MANY = 60


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
    labels = list(drawn)
    first = [] if official is None or official[0] not in drawn else [official[0]]
    inks = [GREY] * len(first) + list(SERIES)
    shapes = ["stroke"] * len(first) + list(SHAPES)
    many = len(order) > _MANY
    between, around, size = (2.6, 4, 12) if many else (5, 8, 24)
    height = around + between * max(1, len(labels))
    values = [[m, *one] for m, found in drawn.items() for one in found]
    colour = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": labels, "range": inks[: len(labels)]},
        "legend": {"title": None, "orient": "top", "columns": 4, "labelLimit": 220},
    }
    across = {"type": "quantitative", "scale": {"zero": False, "nice": False, "padding": 10}}
    title = "re-normalised score (best system 1, worst 0)"
    axis = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2f", "grid": True, "domain": False}
    across = {**across, "title": title, "axis": axis}
    apart = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": labels, "paddingOuter": 0.6},
    }
    return Figure(
        name=name,
        title="The same systems under several methods",
        subtitle=f"Systems in the order of {ordered_by}; lines: {spread}, re-normalised",
        alt=_alt(drawn, order, ordered_by),
        spec={}
        if not drawn
        else {
            "width": _WIDTH,
            "height": height * max(1, len(order)),
            "data": rows(("method", "name", "value", "low", "high"), values),
            "encoding": {
                "y": by_name(order, labelFontSize=row_height(len(order))[1]),
                "yOffset": apart,
                "color": colour,
            },
            "layer": [
                {
                    "mark": {"type": "bar", "opacity": 0.4},
                    "encoding": {"x": {**across, "field": "value"}, "x2": {"datum": 0}},
                },
                {
                    "mark": {"type": "rule", "strokeWidth": 1.2},
                    "encoding": {"x": {**across, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "opacity": 1, "size": size},
                    "encoding": {
                        "x": {**across, "field": "value"},
                        "shape": {
                            "field": "method",
                            "type": "nominal",
                            "scale": {"domain": labels, "range": shapes[: len(labels)]},
                            "legend": colour["legend"],
                        },
                    },
                },
            ],
        },
        data=Table.of(
            ["method", "system", "value", "low", "high"],
            values,
            f"Scores re-normalised per method, with {spread}",
        ),
    )


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
