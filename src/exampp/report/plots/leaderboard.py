"""A leaderboard as a dot plot: a row a system, best first, with the spread of its score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from exampp.report.plots.figure import ACCENT, Figure, by_name, row_height, rows
from exampp.report.table import Table

_WIDTH = 620
_LETTERS = 8
"""Letters of a system at most: more of them are no longer read."""


class Spread(NamedTuple):
    """A score and its spread, such as one standard error or an interval; None is undefined."""

    system: str
    value: float | None
    low: float | None = None
    high: float | None = None


def groups(letters: str) -> set[str]:
    """The single letters of a letter display; after z and Z come a1, b1 ..."""
    return set(re.findall(r"[A-Za-z][0-9]*", letters))


def leaderboard(
    scores: Sequence[Spread],
    measure: str,
    *,
    spread: str = "standard error",
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
    # room for the dot of a score at the axis
    order = by_name(names, labelFontSize=size, labelPadding=10, grid=True)
    across = {"field": "value", "type": "quantitative", "scale": {"zero": False, "nice": True}}
    top = {"orient": "top"} if len(known) > 40 else {}
    score = {**across, "title": measure, "axis": {"grid": False, "tickCount": 8, **top}}
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": ACCENT, "opacity": 0.55},
            "encoding": {"x": {**score, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "mark": {
                "type": "point",
                "opacity": 1,
                "size": 46 if height > 12 else 26,
                "stroke": ACCENT,
            },
            "encoding": {
                "x": score,
                "fill": {"field": "fill", "type": "nominal", "scale": None},
            },
        },
    ]
    letters = letters or {}
    if 0 < max(map(len, letters.values()), default=0) <= _LETTERS:
        layers.append(
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "fontSize": size,
                    "opacity": 0.8,
                },
                "encoding": {"x": {"value": _WIDTH + 12}, "text": {"field": "letters"}},
            }
        )
    best = groups(letters.get(names[0], "")) if names else set()
    values = [
        [*one, shown, ACCENT if not letters or best & groups(shown) else "none"]
        for one in known
        for shown in [letters.get(one.system, "")]
    ]
    return Figure(
        name=name,
        title=f"Leaderboard by {measure}",
        subtitle=_subtitle(spread, bool(letters)),
        alt=_alt(known, measure, spread),
        spec={}
        if not known
        else {
            "width": _WIDTH,
            "height": height * max(1, len(known)),
            "data": rows(("name", "value", "low", "high", "letters", "fill"), values),
            "encoding": {"y": order},
            "layer": layers,
        },
        data=Table.of(
            ["system", "value", "low", "high", "letters"],
            [[*one, letters.get(one.system, "")] for one in (*known, *undefined)],
            f"{measure} with {spread}",
        ),
    )


def _subtitle(spread: str, letters: bool) -> str:
    parts = [f"Bars: {spread}"]
    if letters:
        parts.append("filled: not told apart from the best")
    return "; ".join(parts)


def _alt(known: Sequence[Spread], measure: str, spread: str) -> str:
    if not known:
        return f"Nothing to draw: {measure} is undefined for every system."
    first, last = known[0], known[-1]
    return (
        f"Dot plot of {len(known)} systems by {measure}, bars showing {spread}: from "
        f"{first.system} at {first.value:.3f} down to {last.system} at {last.value:.3f}."
    )
