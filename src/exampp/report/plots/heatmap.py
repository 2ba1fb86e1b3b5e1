"""Systems x queries: which queries are hard, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.report.plots.figure import Figure, by_name, row_height, rows
from exampp.report.plots.pixels import VIRIDIS, picture
from exampp.report.table import Table

_NAMED_QUERIES = 60
_WIDEST = 690


def heatmap(
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    systems: Sequence[str],
    query_ids: Sequence[str],
    measure: str,
    *,
    name: str = "heatmap",
) -> Figure:
    """Scores of systems (rows, best first) on queries (columns, easiest first).

    `values` is systems x queries; where `counts` is False there is no value, and the cell is
    empty.
    """
    across = _means(values, counts, axis=1)
    down = _means(values, counts, axis=0)
    order = np.lexsort((np.arange(len(systems)), -across.round(10)))
    column = np.lexsort((np.arange(len(query_ids)), -down.round(10)))
    table, known = values[np.ix_(order, column)], counts[np.ix_(order, column)]
    names = [systems[i] for i in order]
    ids = [query_ids[i] for i in column]
    low, high = _range(table[known])
    step, size = row_height(len(names))
    width = min(_WIDEST, 16 * max(1, len(ids)))
    height = step * max(1, len(names))
    return Figure(
        name=name,
        title=f"{measure} of every system on every query",
        subtitle="Systems from best to worst, queries from easiest to hardest; empty: no value",
        alt=_alt(names, ids, down[column], measure)
        if known.any()
        else f"Nothing to draw: {measure} has no values.",
        spec={}
        if not known.any()
        else {
            "width": width,
            "height": height,
            "layer": [
                _axes(names, ids, size),
                {
                    "data": {"values": [{}]},
                    "mark": {
                        "type": "image",
                        "url": picture((table - low) / (high - low), known),
                        "aspect": False,
                        "smooth": False,
                        "width": width,
                        "height": height,
                    },
                    "encoding": {"x": {"value": width / 2}, "y": {"value": height / 2}},
                },
                _legend(low, high, measure),
            ],
        },
        data=Table.of(
            ["system", "query", "value"],
            [
                [system, query, float(table[i, j]) if known[i, j] else None]
                for i, system in enumerate(names)
                for j, query in enumerate(ids)
            ],
            f"{measure} per system and query",
        ),
    )


def _axes(names: Sequence[str], ids: Sequence[str], size: float) -> dict[str, object]:
    few = len(ids) <= _NAMED_QUERIES
    axis = {"labels": few, "labelAngle": -90, "labelLimit": 90, "labelFontSize": 9}
    queries = f"{len(ids)} queries, from easiest to hardest"
    return {
        # any point on both axes makes them appear
        "data": rows(("name", "query"), [[n, q] for n, q in zip(names[:1], ids[:1], strict=True)]),
        "mark": {"type": "point", "opacity": 0},
        "encoding": {
            "y": _banded(by_name(names, labelFontSize=size)),
            "x": {
                "field": "query",
                "type": "nominal",
                "sort": None,
                "scale": {"type": "band", "domain": list(ids), "padding": 0},
                "title": queries,
                "axis": {**axis, "ticks": False, "domain": False},
            },
        },
    }


def _banded(encoding: dict[str, Any]) -> dict[str, Any]:
    return {**encoding, "scale": {**encoding["scale"], "type": "band", "padding": 0}}


def _legend(low: float, high: float, measure: str) -> dict[str, object]:
    scale = {"domain": [low, high], "range": list(VIRIDIS), "type": "linear"}
    legend = {"title": measure, "gradientLength": 160, "gradientThickness": 10, "tickCount": 4}
    return {
        "data": rows(("shade",), [[low], [high]]),
        "mark": {"type": "point", "opacity": 0},
        "encoding": {
            "color": {
                "field": "shade",
                "type": "quantitative",
                "scale": scale,
                "legend": {**legend, "orient": "top", "direction": "horizontal"},
            },
            "x": {"value": 0},
            "y": {"value": 0},
        },
    }


def _means(
    values: NDArray[np.float64], counts: NDArray[np.bool_], axis: int
) -> NDArray[np.float64]:
    sums, used = np.where(counts, values, 0.0).sum(axis=axis), counts.sum(axis=axis)
    # what has no value at all goes last
    means: NDArray[np.float64] = np.divide(
        sums, used, out=np.full(sums.shape, -1.0), where=used > 0
    )
    return means


def _range(known: NDArray[np.float64]) -> tuple[float, float]:
    """The values that the ends of the colours stand for: 0 to 1 if all values are in there."""
    if not known.size or (known.min() >= 0 and known.max() <= 1):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low, low + 1)


def _alt(names: Sequence[str], ids: Sequence[str], means: NDArray[np.float64], measure: str) -> str:
    return (
        f"Heat map of {measure}, {len(names)} systems by {len(ids)} queries. Best system "
        f"{names[0]}, worst {names[-1]}; easiest query {ids[0]} (mean {max(means[0], 0):.2f}), "
        f"hardest {ids[-1]} (mean {max(means[-1], 0):.2f})."
    )
