"""The reliability curve: how often what was said to be probable was so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exampp.records.calibration import CalibrationBin
from exampp.report.plots.figure import GREY, SERIES, Figure, rows
from exampp.report.plots.layers import layer
from exampp.report.table import Table

_SIDE = 340
_STEPS = (0.1, 0.2, 0.25, 0.5, 1.0)
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
        alt=_alt(bins),
        spec=_spec(points) if bins else {},
        data=Table.of(list(COLUMNS), points, title),
    )


def _spec(points: list[list[float | int]]) -> dict[str, Any]:
    top = min(1.0, max(max(x, y) for x, y, _ in points) * 1.1)
    top = next((step for step in _STEPS if step >= top), 1.0)

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


def _alt(bins: Sequence[CalibrationBin]) -> str:
    if not bins:
        return "There are no held-out passages."
    worst = max(bins, key=lambda one: abs(one.predicted - one.observed))
    return (
        f"{len(bins)} bins of held-out passages. Farthest from the diagonal: {worst.passages:,} "
        f"passages of mean probability {worst.predicted:.2f}, of which people judged "
        f"{worst.observed:.0%} so."
    )
