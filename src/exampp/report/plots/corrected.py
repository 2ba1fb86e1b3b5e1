"""A leaderboard by grades, as people's decisions correct it, and by people alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exampp.report.plots.figure import GREY, SERIES, Figure, rows
from exampp.report.plots.layers import in_rows, layer, nominal
from exampp.report.table import Table, Value

_WIDTH = 560
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
        alt=_alt(systems, measure),
        draft=draft,
        spec=in_rows([one.system for one in systems], _WIDTH, layers),
        data=Table.of(
            ["system", "by grades alone", "corrected", "low", "high", "by people alone"],
            values,
            f"{measure}. {spread}",
        ),
    )


def _alt(systems: Sequence[CorrectedSystem], measure: str) -> str:
    if not systems:
        return f"Nothing to draw: no system has {measure}."
    first = systems[0]
    return (
        f"Dot plot of {len(systems)} systems by {measure}: by grades alone, corrected, by people "
        f"alone. The best as corrected is {first.system}, at {first.corrected:.3f}; by grades "
        f"alone it stands at {first.graded:.3f}."
    )
