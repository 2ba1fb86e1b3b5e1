"""How much of the bank systems cover as one reads on: Cover@k over k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from exampp.records.calibration import CalibrationBin
from exampp.results.plots.figure import ACCENT, GREY, SERIES, Figure, Spec, layer, nominal, rows
from exampp.results.result import Table

_SIDE = 340
_TOPS = (0.1, 0.2, 0.25, 0.5, 1.0)
COLUMNS = ("mean probability", "share people judged so", "passages")


def calibration_curve(
    bins: Sequence[CalibrationBin], min_relevant: int, *, subtitle: str = "", name: str = ""
) -> Figure:
    """Bins of held-out passages: where probabilities can be believed they lie on the diagonal.

    The area of a dot goes by its number of passages.
    """
    points = [[one.predicted, one.observed, one.passages] for one in bins]
    title = f"Probability of a judgment of {min_relevant} or more, and how often it was so"
    return Figure(
        name=name or "calibration",
        title=title,
        subtitle=subtitle,
        alt=_alt_of_calibration(bins),
        spec=_calibration_spec(points) if bins else {},
        data=Table.of(list(COLUMNS), points, title),
    )


def _calibration_spec(points: list[list[float | int]]) -> dict[str, Any]:
    top = min(1.0, max(max(x, y) for x, y, _ in points) * 1.1)
    top = next((step for step in _TOPS if step >= top), 1.0)

    def axis(field: str, title: str) -> dict[str, Any]:
        return {
            "field": field,
            "type": "quantitative",
            "scale": {"domain": [0, top], "nice": False},
            "title": title,
            "axis": {"grid": True, "tickCount": 5, "format": ".0%", "domain": False},
        }

    across = axis("predicted", "mean probability that was given")
    up = axis("observed", "share that people judged so")
    data = rows(("predicted", "observed", "passages"), points)
    ends = rows(("predicted", "observed"), [[0, 0], [top, top]])
    places = {"x": across, "y": up}
    size = {
        "field": "passages",
        "type": "quantitative",
        "legend": {"title": "passages"},
        "scale": {"zero": True, "rangeMax": 220},
    }
    return {
        "width": _SIDE,
        "height": _SIDE,
        "layer": [
            layer("line", places, ends, color=GREY, strokeDash=[6, 4]),
            layer("line", places, data, color=SERIES[0], strokeWidth=1.4, opacity=0.6),
            layer("circle", {**places, "size": size}, data, color=SERIES[0], opacity=1),
        ],
    }


def _alt_of_calibration(bins: Sequence[CalibrationBin]) -> str:
    if not bins:
        return "There are no held-out passages."
    worst = max(bins, key=lambda one: abs(one.predicted - one.observed))
    return (
        f"{len(bins)} bins of held-out passages. Farthest from the diagonal: {worst.passages:,} "
        f"passages of mean probability {worst.predicted:.2f}, of which people judged "
        f"{worst.observed:.0%} so."
    )


_WIDTH, _HEIGHT = 205, 250
_PER_ROW = 3
_SPACING = 26
_LEAST = 230
"""Pixels of a panel with its axis, at least; where they are fewer, panels stand below another."""
_AXIS, _LEGEND, _WIDEST = 52, 78, 860
NO_LIMIT = "no limit"
"""The line of exams with items without end: what no number of them passes."""


class ProjectedReliability(NamedTuple):
    """The reliability of an exam of so many queries; `low` and `high` bound it where known."""

    panel: str
    line: str
    queries: int
    value: float
    low: float | None
    high: float | None


def reliability(
    foreseen: Sequence[ProjectedReliability],
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
        alt=_alt_of_reliability(foreseen, panels, measure, present),
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


def _curves(
    found: Sequence[ProjectedReliability], lines: Sequence[str], deepest: int
) -> list[dict[str, Any]]:
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
        layer("area", band, rows(ProjectedReliability._fields, bounded), opacity=0.18),
        layer("line", line, rows(ProjectedReliability._fields, found), strokeWidth=1.8),
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


def _alt_of_reliability(
    found: Sequence[ProjectedReliability], panels: Sequence[str], measure: str, present: int
) -> str:
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


_SIZE, _SCATTER_AXIS = 460, 56
_LETTER = 6.4
_LINE_HEIGHT = 13
_OUTLIERS = 10


class RankPair(NamedTuple):
    """A system's rank in two leaderboards, from 1 on; ties share the mean of their ranks."""

    system: str
    official: float
    ours: float


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def rank_scatter(
    points: Sequence[RankPair],
    measure: str,
    *,
    official: str = "official",
    subtitle: str = "",
    name: str = "scatter",
) -> Figure:
    """Ranks of systems in the official leaderboard against those by a measure; 1 is at the corner.

    The systems furthest from the diagonal are named, as far as there is room. `subtitle` is the
    place for the correlation.
    """

    def sized(pixels: float) -> Spec:
        size = min(_SIZE, pixels - _SCATTER_AXIS)
        return _scatter_spec(points, measure, official, size) if points else {}

    return Figure(
        name=name,
        title=f"{official[:1].upper()}{official[1:]} rank against rank by {measure}",
        subtitle=subtitle,
        alt=_alt_of_scatter(points, measure, official, subtitle),
        spec=sized(_SIZE + _SCATTER_AXIS),
        sized=sized,
        data=Table.of(
            ["system", f"{official} rank", "rank"],
            points,
            f"Ranks by {measure} and in the {official} leaderboard",
        ),
    )


def _scatter_spec(points: Sequence[RankPair], measure: str, official: str, size: float) -> Spec:
    """A square of so many pixels."""
    last = max(max(p.official, p.ours) for p in points)
    scale = {"domain": [0.4, last + 0.6], "reverse": False, "nice": False}
    down = {**scale, "reverse": True}
    axis = {"grid": True, "values": _rank_ticks(last), "format": "d"}
    across = {"type": "quantitative", "scale": scale, "axis": axis, "title": f"{official} rank"}
    up = {"type": "quantitative", "scale": down, "axis": axis, "title": f"rank by {measure}"}
    return {
        "width": size,
        "height": size,
        "autosize": "pad",
        "layer": [
            layer(
                "line",
                {"x": {**across, "field": "at"}, "y": {**up, "field": "at"}},
                {"values": [{"at": 1}, {"at": last}]},
                strokeDash=[5, 4],
                opacity=0.45,
                color=GREY,
            ),
            layer(
                "point",
                {"x": {**across, "field": "official"}, "y": {**up, "field": "ours"}},
                rows(("name", "official", "ours"), points),
                filled=True,
                size=55,
                opacity=0.85,
                color=ACCENT,
            ),
            *(_label(point, side, scale, down) for point, side in _labels(points, last, size)),
        ],
    }


def _rank_ticks(last: float) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if last / step <= 12)
    return [1, *range(step if step > 1 else 2, int(last) + 1, step)]


def _label(
    point: RankPair, side: str, scale: dict[str, object], down: dict[str, object]
) -> dict[str, object]:
    across, up = _SIDES[side]
    return {
        "data": {"values": [{"name": point.system, "x": point.official, "y": point.ours}]},
        "mark": {"type": "text", "align": _ALIGN[side], "dx": across * 8, "dy": up * 12},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "scale": scale},
            "y": {"field": "y", "type": "quantitative", "scale": down},
            "text": {"field": "name"},
        },
    }


_SIDES = {"right": (1, 0), "left": (-1, 0), "above": (0, -1), "below": (0, 1)}
_ALIGN = {"right": "left", "left": "right", "above": "center", "below": "center"}


def _labels(points: Sequence[RankPair], last: float, size: float) -> list[tuple[RankPair, str]]:
    """The outliers that can be named without covering a point or another name, and where."""
    step = size / (last + 0.2)
    at = {p: ((p.official - 0.4) * step, (p.ours - 0.4) * step) for p in points}
    taken = [_Box(x - 4, y - 4, x + 4, y + 4) for x, y in at.values()]
    outliers = sorted(points, key=lambda p: (-abs(p.official - p.ours), p.official, p.system))
    found = []
    for point in outliers[:_OUTLIERS]:
        if abs(point.official - point.ours) < last / 8:
            break
        for side in _SIDES:
            box = _box(*at[point], side, len(point.system) * _LETTER)
            inside = box.left >= 0 and box.right <= size and box.top >= 0 and box.bottom <= size
            if inside and not any(box.meets(other) for other in taken):
                taken.append(box)
                found.append((point, side))
                break
    return found


def _box(x: float, y: float, side: str, width: float) -> _Box:
    across, up = _SIDES[side]
    left = x + 8 if across > 0 else x - 8 - width if across < 0 else x - width / 2
    middle = y + up * 12
    return _Box(left, middle - _LINE_HEIGHT / 2, left + width, middle + _LINE_HEIGHT / 2)


def _alt_of_scatter(points: Sequence[RankPair], measure: str, official: str, subtitle: str) -> str:
    if not points:
        return f"Nothing to draw: no system has both a rank by {measure} and an {official} rank."
    far = max(points, key=lambda p: abs(p.official - p.ours))
    return (
        f"Scatter plot of {len(points)} systems, {official} rank against rank by {measure}"
        f"{', ' + subtitle if subtitle else ''}; furthest from the diagonal is {far.system}, "
        f"{official} rank {far.official:g} and rank {far.ours:g} by {measure}."
    )


_CURVES_WIDTH, _CURVES_HEIGHT = 520, 340
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
        alt=_alt_of_curves(ranked, values, measure, ceiling, depth),
        spec={}
        if not ranked
        else {
            "width": _CURVES_WIDTH,
            "height": _CURVES_HEIGHT,
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
    height = {system: _CURVES_HEIGHT * (1 - values[system][-1] / domain[1]) for system in shown}
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


def _alt_of_curves(
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
