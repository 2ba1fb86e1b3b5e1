"""A leaderboard as a dot plot: a row a system, best first, with the spread of its score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from exampp.report.plots.axis import Axis, Spread, axis_of
from exampp.report.plots.figure import ACCENT, Figure, row_height, rows
from exampp.report.plots.layers import in_rows, layer
from exampp.report.table import Table

_WIDTH = 620
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
        alt=_alt(known, measure, spread),
        spec=in_rows(
            names,
            _WIDTH,
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


def _alt(known: Sequence[Spread], measure: str, spread: str) -> str:
    if not known:
        return f"Nothing to draw: {measure} is undefined for every system."
    first, last = known[0], known[-1]
    return (
        f"Dot plot of {len(known)} systems by {measure}, bars showing {spread}: from "
        f"{first.system} at {first.value:.3f} down to {last.system} at {last.value:.3f}."
    )
