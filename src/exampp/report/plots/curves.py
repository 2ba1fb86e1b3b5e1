"""How much of the bank systems cover as one reads on: Cover@k over k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exampp.report.plots.figure import GREY, SERIES, Figure, rows
from exampp.report.plots.layers import layer, nominal
from exampp.report.table import Table

_WIDTH, _HEIGHT = 520, 340
_ALL = 6
"""So many systems are all drawn in colours of their own; of more, only the best ones are."""
_SHOWN = 5
_LINE = 14


def curves(
    values: Mapping[str, Sequence[float]],
    measure: str = "Cover@k",
    *,
    ceiling: float | None = None,
    subtitle: str = "",
    name: str = "curve",
) -> Figure:
    """Curves over k = 1, 2 ..., a system each, the best at the last k in colour.

    Of more systems than there are colours, the others make a grey band from the lowest to the
    highest, darker where half of them are. `ceiling` is what the whole pool covers.
    """
    ranked = sorted(values, key=lambda system: (-round(values[system][-1], 10), system))
    shown = ranked if len(ranked) <= _ALL else ranked[:_SHOWN]
    others = ranked[len(shown) :]
    depth = max((len(curve) for curve in values.values()), default=1)
    top = max([ceiling or 0.0, 1e-9, *(max(curve) for curve in values.values())])
    across = {
        "field": "k",
        "type": "quantitative",
        "scale": {"domain": [1, depth], "nice": False},
        "title": "k, passages read",
        "axis": {"grid": False, "values": sorted({1, *range(5, depth + 1, 5), depth})},
    }
    up = {
        "type": "quantitative",
        "scale": {"domain": [0, min(1.0, top * 1.05)] if top <= 1 else [0, top * 1.05]},
        "title": measure,
        "axis": {"grid": True, "tickCount": 6, "domain": False, "ticks": False},
    }
    layers: list[dict[str, Any]] = []
    if others:
        layers += _band([values[system] for system in others], across, up)
    if ceiling is not None:
        layers += _ceiling(ceiling, up)
    layers += _lines(shown, values, across, up)
    layers += _names(shown, values, len(others), up)
    return Figure(
        name=name,
        title=f"{measure} of the first k passages",
        subtitle=subtitle,
        right=_room(shown, len(others)),
        alt=_alt(ranked, values, measure, ceiling, depth),
        spec={}
        if not ranked
        else {
            "width": _WIDTH,
            "height": _HEIGHT,
            "layer": layers,
            "resolve": {"scale": {"y": "shared"}},
        },
        data=Table.of(
            ["system", "k", "value"],
            [[system, k, value] for system in ranked for k, value in enumerate(values[system], 1)],
            f"{measure} of the first k passages",
        ),
    )


def _band(
    of_others: Sequence[Sequence[float]], across: dict[str, Any], up: dict[str, Any]
) -> list[dict[str, Any]]:
    bounds = np.quantile(np.array(of_others), (0, 0.25, 0.75, 1), axis=0).T.tolist()
    data = rows(
        ("k", "lowest", "low", "high", "highest"),
        [[k, *of_k] for k, of_k in enumerate(bounds, 1)],
    )
    return [
        layer(
            "area",
            {"x": across, "y": {**up, "field": low}, "y2": {"field": high}},
            data,
            color=GREY,
            opacity=opacity,
        )
        for low, high, opacity in (("lowest", "highest", 0.16), ("low", "high", 0.3))
    ]


def _ceiling(value: float, up: dict[str, Any]) -> list[dict[str, Any]]:
    height = {"y": {**up, "field": "value"}}
    data = rows(("value", "name"), [[value, "all graded passages"]])
    named = {**height, "x": {"value": 4}, "text": {"field": "name"}}
    return [
        layer("rule", height, data, strokeDash=[6, 4], opacity=0.55),
        layer("text", named, data, align="left", baseline="bottom", dy=-3),
    ]


def _lines(
    shown: Sequence[str],
    values: Mapping[str, Sequence[float]],
    across: dict[str, Any],
    up: dict[str, Any],
) -> list[dict[str, Any]]:
    data = rows(
        ("name", "k", "value"),
        [[system, k, value] for system in shown for k, value in enumerate(values[system], 1)],
    )
    colour = nominal("name", shown, SERIES[: len(shown)])
    encoding = {"x": across, "y": {**up, "field": "value"}, "color": colour}
    point = {"size": 16, "filled": True}
    return [layer("line", encoding, data, strokeWidth=1.8, point=point)] if shown else []


def _names(
    shown: Sequence[str],
    values: Mapping[str, Sequence[float]],
    others: int,
    up: dict[str, Any],
) -> list[dict[str, Any]]:
    """The names beside the ends of the lines, moved apart where they would overlap."""
    domain = up["scale"]["domain"]
    height = {system: _HEIGHT * (1 - values[system][-1] / domain[1]) for system in shown}
    wanted = [(height[system], system, SERIES[index]) for index, system in enumerate(shown)]
    places = _apart([place for place, _, _ in wanted])
    texts = [(place, name, colour) for place, (_, name, colour) in zip(places, wanted, strict=True)]
    if others:
        note = _note(others)
        texts.append(((places[-1] if places else 0) + 1.5 * _LINE, note, GREY))
    data = rows(("place", "name", "colour"), texts)
    height = {"field": "place", "type": "quantitative", "scale": None}
    square = {
        "x": {"value": {"expr": "width + 14"}},
        "y": height,
        "color": {"field": "colour", "type": "nominal", "scale": None},
    }
    text = {"x": {"value": {"expr": "width + 24"}}, "y": height, "text": {"field": "name"}}
    return [
        layer("point", square, data, filled=True, size=60, shape="square", opacity=1),
        layer("text", text, data, align="left", limit=200),
    ]


def _note(others: int) -> str:
    return f"{others} others (half darker)"


def _room(shown: Sequence[str], others: int) -> float:
    """Pixels that the names take beside the plot."""
    longest = max(map(len, [*shown, *([_note(others)] if others else [])]), default=0)
    return 24 + min(200, 6 * longest)


def _apart(wanted: Sequence[float]) -> list[float]:
    """Ascending places, moved so that neighbours are a line apart, as near as may be."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + _LINE) if places else place)
    over = (places[-1] - wanted[-1]) / 2 if places else 0.0
    return [max(6.0 + index * _LINE, place - over) for index, place in enumerate(places)]


def _alt(
    ranked: Sequence[str],
    values: Mapping[str, Sequence[float]],
    measure: str,
    ceiling: float | None,
    depth: int,
) -> str:
    if not ranked:
        return f"Nothing to draw: no system has {measure}."
    best = values[ranked[0]]
    whole = "" if ceiling is None else f" All graded passages together reach {ceiling:.3f}."
    return (
        f"Line plot of {measure} for k from 1 to {depth}, {len(ranked)} systems. The best, "
        f"{ranked[0]}, rises from {best[0]:.3f} to {best[-1]:.3f}; the last, {ranked[-1]}, reaches "
        f"{values[ranked[-1]][-1]:.3f}.{whole}"
    )
