"""Between which ranks every system stands, over all ways to make the leaderboard."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exampp.results.plots.figure import (
    ACCENT,
    ALARM,
    GREY,
    SERIES,
    SHAPES,
    Axis,
    Figure,
    Spec,
    Spread,
    axis_of,
    by_name,
    in_rows,
    layer,
    nominal,
    row_height,
    rows,
)
from exampp.results.result import Table
from exampp.results.view import Value

_LEADERBOARD_WIDTH = 620
_LETTERS = 8
"""Letters of a system at most: more of them are no longer read."""


def groups(letters: str) -> set[str]:
    """The single letters of a letter display; after z and Z come a1, b1 ..."""
    return set(re.findall(r"[A-Za-z][0-9]*", letters))


def leaderboard(
    scores: Sequence[Spread],
    measure: str,
    *,
    spread: str = "one standard error over queries",
    letters: Mapping[str, str] | None = None,
    name: str = "leaderboard",
) -> Figure:
    """Systems from best to worst with error bars.

    `spread` says what the bars are. Systems that share a letter in `letters` are not told apart:
    those that share one with the best are filled, and letters stand beside the rows where they
    are few. A system without a value is last in the data, not drawn.
    """
    known = [one for one in scores if one.value is not None]
    known.sort(key=lambda one: (-(one.value or 0.0), one.system))
    undefined = [one for one in scores if one.value is None]
    names = [one.system for one in known]
    height, size = row_height(len(known))
    axis = axis_of(known)
    across = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [axis.start, axis.end], "zero": False, "nice": False},
    }
    top = {"orient": "top"} if len(known) > 40 else {}
    score = {**across, "title": measure, "axis": {"grid": False, "values": axis.ticks, **top}}
    layers = [
        layer(
            "rule",
            {"x": {**score, "field": "low"}, "x2": {"field": "high"}},
            strokeWidth=2,
            color=ACCENT,
            opacity=0.55,
        ),
        layer(
            "point",
            {"x": score, "fill": {"field": "fill", "type": "nominal", "scale": None}},
            opacity=1,
            size=46 if height > 12 else 26,
            stroke=ACCENT,
        ),
    ]
    layers += _beyond(known, axis, size)
    letters = letters or {}
    lettered = 0 < max(map(len, letters.values()), default=0) <= _LETTERS
    if lettered:
        beside = {"x": {"value": {"expr": "width + 12"}}, "text": {"field": "letters"}}
        layers.append(layer("text", beside, align="left", fontSize=size, opacity=0.8))
    best = groups(letters.get(names[0], "")) if names else set()
    values = [
        [*_inside(one, axis), shown, ACCENT if not letters or best & groups(shown) else "none"]
        for one in known
        for shown in [letters.get(one.system, "")]
    ]
    return Figure(
        name=name,
        title=f"Leaderboard by {measure}",
        subtitle=_subtitle(spread, bool(letters), any(_side(one, axis) for one in known)),
        right=12 + 7 * _LETTERS if lettered else 0,
        alt=_alt_of_leaderboard(known, measure, spread),
        spec=in_rows(
            names,
            _LEADERBOARD_WIDTH,
            layers,
            rows(("name", "value", "low", "high", "letters", "fill"), values),
        ),
        data=Table.of(
            ["system", "value", "low", "high", "letters"],
            [[*one, letters.get(one.system, "")] for one in (*known, *undefined)],
            f"{measure} with {spread}",
        ),
    )


def _side(one: Spread, axis: Axis) -> str:
    """An arrow where a score is beyond an end of the axis."""
    value = one.value or 0.0
    return "\u2039" if value < axis.start else "\u203a" if value > axis.end else ""


def _inside(one: Spread, axis: Axis) -> Spread:
    """What of a score and its bar is on the axis."""
    if _side(one, axis):
        return Spread(one.system, None)

    def within(end: float | None) -> float | None:
        return None if end is None else min(max(end, axis.start), axis.end)

    return Spread(one.system, one.value, within(one.low), within(one.high))


def _beyond(known: Sequence[Spread], axis: Axis, size: float) -> list[dict[str, Any]]:
    """Scores beyond the ends of the axis, as numbers at the edge."""
    layers: list[dict[str, Any]] = []
    for arrow, align, x in (("\u2039", "left", 2), ("\u203a", "right", {"expr": "width - 2"})):
        there = [one for one in known if _side(one, axis) == arrow]
        texts = [f"{one.value:.3f}" for one in there]
        shown = [f"{arrow} {text}" if align == "left" else f"{text} {arrow}" for text in texts]
        if there:
            names = [one.system for one in there]
            data = rows(("name", "shown"), list(zip(names, shown, strict=True)))
            edge = {"x": {"value": x}, "text": {"field": "shown"}}
            layers.append(layer("text", edge, data, align=align, fontSize=size, color=ACCENT))
    return layers


def _subtitle(spread: str, letters: bool, beyond: bool) -> str:
    parts = [f"Bars: {spread}"]
    if letters:
        parts.append("filled: not told apart from the best")
    if beyond:
        parts.append("arrows: beyond the axis")
    return "; ".join(parts)


def _alt_of_leaderboard(known: Sequence[Spread], measure: str, spread: str) -> str:
    if not known:
        return f"Nothing to draw: {measure} is undefined for every system."
    first, last = known[0], known[-1]
    return (
        f"Dot plot of {len(known)} systems by {measure}, bars showing {spread}: from "
        f"{first.system} at {first.value:.3f} down to {last.system} at {last.value:.3f}."
    )


_ATTACKS_WIDTH = 480
_NAME_WIDTH = 290


class AttackLift(NamedTuple):
    """An attack, its rate minus that of its control with bounds, and whether it succeeds."""

    attack: str
    lift: float
    low: float | None
    high: float | None
    succeeds: bool


def attack_lifts(lifts: Sequence[AttackLift], what: str, *, name: str = "attacks") -> Figure:
    """A row an attack, in the order given; `what` says of which cells a rate is."""
    across = {
        "type": "quantitative",
        "scale": {"zero": True, "nice": True},
        "title": "rate of the attack minus that of its control",
        "axis": {"grid": False, "tickCount": 6, "format": "+.2~f"},
    }
    colour = nominal("succeeds", [True, False], [ALARM, ACCENT])
    shape = nominal("succeeds", [True, False], ["diamond", "circle"])
    lift = {**across, "field": "lift"}
    bar = {"x": {**across, "field": "low"}, "x2": {"field": "high"}, "color": colour}
    layers = [
        {
            "mark": {"type": "rule", "strokeDash": [5, 4], "opacity": 0.55},
            "data": rows(("lift",), [[0]]),
            "encoding": {"x": lift, "y": None},
        },
        layer("rule", bar, strokeWidth=2, opacity=0.55),
        layer(
            "point",
            {"x": lift, "color": colour, "shape": shape},
            filled=True,
            opacity=1,
            size=60,
        ),
    ]
    fields = AttackLift._fields[1:]
    values: list[list[Value]] = [list(one) for one in lifts]
    return Figure(
        name=name,
        title="What attacks gain",
        subtitle=f"Cells {what}; bars: 95% interval over queries; diamonds: attacks that succeed",
        alt=_alt_of_attacks(lifts),
        spec=in_rows(
            [one.attack for one in lifts],
            _ATTACKS_WIDTH,
            layers,
            rows(("name", *fields), values),
            apart=4,
            limit=_NAME_WIDTH,
        ),
        data=Table.of(["attack", *fields], values, f"Lift of attacks: cells {what}"),
    )


def _alt_of_attacks(lifts: Sequence[AttackLift]) -> str:
    if not lifts:
        return "Nothing to draw: no attack was tested."
    won = [one.attack for one in lifts if one.succeeds]
    best = max(lifts, key=lambda one: abs(one.lift))
    return (
        f"Dot plot of {len(lifts)} attacks. Succeeding: {', '.join(won) or 'none'}. The largest "
        f"change is that of {best.attack}, {best.lift:+.3f}."
    )


_CORRECTED_WIDTH = 560
_WAYS = ("by grades alone", "corrected", "by people alone")
_SHAPES = ("triangle-right", "circle", "cross")


class CorrectedSystem(NamedTuple):
    """A system: its score by the grades, corrected with bounds, and by people alone."""

    system: str
    graded: float
    corrected: float
    low: float | None
    high: float | None
    people: float


def corrected_scores(
    systems: Sequence[CorrectedSystem],
    measure: str,
    spread: str,
    *,
    draft: bool = False,
    name: str = "corrected",
) -> Figure:
    """A row a system, in the order given; `spread` says in a sentence what the bars are."""
    across = {
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "title": measure,
        "axis": {"grid": False, "tickCount": 6},
    }
    legend = {"title": None, "orient": "top", "columns": 3}
    points: list[list[Value]] = [
        [one.system, way, value]
        for one in systems
        for way, value in zip(_WAYS, (one.graded, one.corrected, one.people), strict=True)
    ]
    bounds: list[list[Value]] = [[one.system, one.low, one.high] for one in systems]
    bar = {"x": {**across, "field": "low"}, "x2": {"field": "high"}}
    point = {
        "x": {**across, "field": "value"},
        "color": nominal("way", _WAYS, [SERIES[1], SERIES[0], GREY], legend),
        "shape": nominal("way", _WAYS, _SHAPES, legend),
    }
    layers = [
        layer(
            "rule",
            bar,
            rows(("name", "low", "high"), bounds),
            strokeWidth=2,
            color=SERIES[0],
            opacity=0.55,
        ),
        layer(
            "point",
            point,
            rows(("name", "way", "value"), points),
            filled=True,
            opacity=1,
            size=42,
        ),
    ]
    values: list[list[Value]] = [list(one) for one in systems]
    return Figure(
        name=name,
        title=f"{measure} as people's decisions correct it",
        subtitle=spread,
        alt=_alt_of_corrected(systems, measure),
        draft=draft,
        spec=in_rows([one.system for one in systems], _CORRECTED_WIDTH, layers),
        data=Table.of(
            ["system", "by grades alone", "corrected", "low", "high", "by people alone"],
            values,
            f"{measure}. {spread}",
        ),
    )


def _alt_of_corrected(systems: Sequence[CorrectedSystem], measure: str) -> str:
    if not systems:
        return f"Nothing to draw: no system has {measure}."
    first = systems[0]
    return (
        f"Dot plot of {len(systems)} systems by {measure}: by grades alone, corrected, by people "
        f"alone. The best as corrected is {first.system}, at {first.corrected:.3f}; by grades "
        f"alone it stands at {first.graded:.3f}."
    )


# Several evaluation methods over the same systems, to see whether they agree on the order.
#
# Figure 2 of EXAM++: every method's scores are re-normalised so that its best system is at 1 and
# its worst at 0, standard errors with them, and the systems stand side by side in the order of
# the official leaderboard, which may be the first series. Bars, as ranks and scores of others
# have no errors.


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
        alt=_alt_of_methods(drawn, order, ordered_by),
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


def _alt_of_methods(
    drawn: Mapping[str, Sequence[Spread]], order: Sequence[str], ordered_by: str
) -> str:
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


_RANKS_WIDTH = 560


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
        alt=_alt_of_ranks(spans, over),
        spec=in_rows(
            [one.system for one in spans], _RANKS_WIDTH, layers, rows(("name", *ends), values)
        ),
        data=Table.of(["system", *ends], values, "Ranks over all specifications"),
    )


def _ticks(systems: int) -> list[int]:
    """Whole ranks, about twenty at most."""
    step = 1 + systems // 21
    return list(range(step, systems + 1, step))


def _alt_of_ranks(spans: Sequence[RankSpan], over: str) -> str:
    if not spans:
        return "Nothing to draw: no specification ranks systems."
    first, widest = spans[0], max(spans, key=lambda one: one.worst - one.best)
    return (
        f"Ranks of {len(spans)} systems over {over}. The best by its median, {first.system}, "
        f"stands between {first.best:g} and {first.worst:g}; the widest range has "
        f"{widest.system}, from {widest.best:g} to {widest.worst:g}."
    )
