"""Systems x queries: which queries are hard, and for whom."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.results.plots.figure import Figure, Spec, by_name, row_height, rows
from exampp.results.result import Table

# A matrix as a small PNG, one pixel a cell: a heat map of any size stays a few kilobytes.
#
# Colours go from orange over white to blue, and can be told apart without seeing red or green
# (after Brewer, Harrower and Sheesley 2003).


DIVERGING = (
    "#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3",
    "#2166ac",
)  # fmt: skip
"""From below the middle to above it, evenly spaced."""


def colours(values: NDArray[np.float64], scale: Sequence[str]) -> NDArray[np.uint8]:
    """Red, green and blue of values in 0..1 on a scale, one more dimension at the end."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in scale], np.float64)
    place = np.clip(values, 0, 1) * (len(stops) - 1)
    low = np.minimum(place.astype(np.intp), len(stops) - 2)
    part = (place - low)[..., None]
    mixed: NDArray[np.uint8] = np.rint(stops[low] * (1 - part) + stops[low + 1] * part).astype(
        np.uint8
    )
    return mixed


def shade(value: float, scale: Sequence[str]) -> str:
    """The colour of a value in 0..1 on a scale, as `#rrggbb`."""
    return "#" + bytes(colours(np.array([value]), scale)[0]).hex()


def picture(values: NDArray[np.float64], known: NDArray[np.bool_], scale: Sequence[str]) -> str:
    """The matrix of values in 0..1 as a data address of a PNG; what is unknown is transparent."""
    height, width = values.shape
    alpha = np.where(known, 255, 0).astype(np.uint8)[..., None]
    lines = np.concatenate([colours(values, scale), alpha], axis=2).reshape(height, width * 4)
    # every line starts with its filter, here none
    raw = np.pad(lines, ((0, 0), (1, 0))).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(*part)
        for part in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


_WIDEST = 690
_STEP = 16
_LEAST_STEP = 9
"""Pixels of a query whose id and text stand below it, at least."""
_NAMES = 130
"""Pixels that are left for the names of systems."""
_TEXT = 150


def heatmap(
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    systems: Sequence[str],
    query_ids: Sequence[str],
    measure: str,
    *,
    texts: Mapping[str, str] | None = None,
    name: str = "heatmap",
) -> Figure:
    """How far systems (rows, best first) are from the mean of queries (columns, easiest first).

    `values` is systems x queries; where `counts` is False there is no value, and the cell is
    empty. `texts` are those of queries, by id. The colours end where 19 of 20 cells do.
    """
    across = _means(values, counts, axis=1)
    down = _means(values, counts, axis=0)
    order = np.lexsort((np.arange(len(systems)), -across.round(10)))
    column = np.lexsort((np.arange(len(query_ids)), -down.round(10)))
    table, known = values[np.ix_(order, column)], counts[np.ix_(order, column)]
    names = [systems[i] for i in order]
    ids = [query_ids[i] for i in column]
    centred = np.where(known, table - down[column], 0.0)
    reach = _reach(centred[known])

    def sized(pixels: float) -> Spec:
        return _spec(names, ids, texts or {}, centred, known, reach, measure, pixels)

    wide = _NAMES + min(_WIDEST, _STEP * max(1, len(ids)))
    return Figure(
        name=name,
        title=f"{measure} of every system on every query",
        subtitle="Difference to the mean of the query; systems from best to worst; empty: no value",
        alt=_alt(names, ids, down[column], measure)
        if known.any()
        else f"Nothing to draw: {measure} has no values.",
        spec=sized(wide) if known.any() else {},
        sized=sized if known.any() else None,
        data=Table.of(
            ["system", "query", "value", "difference"],
            [
                [system, query, *map(float, (table[i, j], centred[i, j]))]
                if known[i, j]
                else [system, query, None, None]
                for i, system in enumerate(names)
                for j, query in enumerate(ids)
            ],
            f"{measure} per system and query, and its difference to the mean of the query",
        ),
    )


def _spec(
    names: Sequence[str],
    ids: Sequence[str],
    texts: Mapping[str, str],
    centred: NDArray[np.float64],
    known: NDArray[np.bool_],
    reach: float,
    measure: str,
    pixels: float,
) -> Spec:
    """The picture, so many pixels wide with the names of systems; queries named where they fit."""
    width = pixels - _NAMES
    step, size = row_height(len(names))
    height = step * max(1, len(names))
    named = width >= _LEAST_STEP * len(ids)
    return {
        "width": width,
        "height": height,
        "layer": [
            _axes(names, ids, texts if named else {}, size, named=named),
            {
                "data": {"values": [{}]},
                "mark": {
                    "type": "image",
                    "url": picture((centred / reach + 1) / 2, known, DIVERGING),
                    "aspect": False,
                    "smooth": False,
                    "width": {"expr": "width"},
                    "height": height,
                },
                "encoding": {
                    "x": {"value": {"expr": "width / 2"}},
                    "y": {"value": height / 2},
                },
            },
            _legend(reach, f"{measure}, minus the query's mean"),
        ],
    }


def _axes(
    names: Sequence[str],
    ids: Sequence[str],
    texts: Mapping[str, str],
    size: float,
    *,
    named: bool,
) -> dict[str, object]:
    shown = {one: f"{one}  {texts[one]}" if texts.get(one) else one for one in ids}
    axis: dict[str, Any] = {
        "labels": named,
        "labelAngle": -90,
        "labelLimit": _TEXT,
        "labelFontSize": 9,
    }
    if named:
        # room in a reader's font, which may be wider than the one that they are measured in
        axis["minExtent"] = min(_TEXT, max(map(len, shown.values())) * 9 * 0.62) * 1.25
    queries = f"{len(ids)} queries, from easiest to hardest"
    return {
        # any point on both axes makes them appear
        "data": rows(
            ("name", "query"), [[n, shown[q]] for n, q in zip(names[:1], ids[:1], strict=True)]
        ),
        "mark": {"type": "point", "opacity": 0},
        "encoding": {
            "y": _banded(by_name(names, labelFontSize=size)),
            "x": {
                "field": "query",
                "type": "nominal",
                "sort": None,
                "scale": {"type": "band", "domain": list(shown.values()), "padding": 0},
                "title": queries,
                "axis": {**axis, "ticks": False, "domain": False},
            },
        },
    }


def _banded(encoding: dict[str, Any]) -> dict[str, Any]:
    return {**encoding, "scale": {**encoding["scale"], "type": "band", "padding": 0}}


def _legend(reach: float, title: str) -> dict[str, object]:
    scale = {"domain": [-reach, reach], "range": list(DIVERGING), "type": "linear"}
    legend = {"title": title, "gradientLength": 160, "gradientThickness": 10, "titleLimit": 330}
    return {
        "data": rows(("shade",), [[-reach], [reach]]),
        "mark": {"type": "point", "opacity": 0},
        "encoding": {
            "color": {
                "field": "shade",
                "type": "quantitative",
                "scale": scale,
                "legend": {
                    **legend,
                    "values": [-reach, 0, reach],
                    "format": "+.3~f",
                    "orient": "top",
                    "direction": "horizontal",
                },
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


def _reach(differences: NDArray[np.float64]) -> float:
    """The difference at the ends of the colours: round, and of 19 in 20 cells none is larger."""
    most = float(np.quantile(np.abs(differences), 0.95)) if differences.size else 0.0
    if most <= 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(most))
    return float(np.ceil(round(most / step, 9)) * step)


def _alt(names: Sequence[str], ids: Sequence[str], means: NDArray[np.float64], measure: str) -> str:
    return (
        f"Heat map of {measure}, {len(names)} systems by {len(ids)} queries. Best system "
        f"{names[0]}, worst {names[-1]}; easiest query {ids[0]} (mean {max(means[0], 0):.2f}), "
        f"hardest {ids[-1]} (mean {max(means[-1], 0):.2f})."
    )
