"""What attacks do to a grader: how much more often it is taken in than by their controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exampp.report.plots.figure import ACCENT, ALARM, Figure, rows
from exampp.report.plots.layers import in_rows, layer, nominal
from exampp.report.table import Table, Value

_WIDTH = 480
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
        alt=_alt(lifts),
        spec=in_rows(
            [one.attack for one in lifts],
            _WIDTH,
            layers,
            rows(("name", *fields), values),
            apart=4,
            limit=_NAME_WIDTH,
        ),
        data=Table.of(["attack", *fields], values, f"Lift of attacks: cells {what}"),
    )


def _alt(lifts: Sequence[AttackLift]) -> str:
    if not lifts:
        return "Nothing to draw: no attack was tested."
    won = [one.attack for one in lifts if one.succeeds]
    best = max(lifts, key=lambda one: abs(one.lift))
    return (
        f"Dot plot of {len(lifts)} attacks. Succeeding: {', '.join(won) or 'none'}. The largest "
        f"change is that of {best.attack}, {best.lift:+.3f}."
    )
