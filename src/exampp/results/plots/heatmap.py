"""Heat map of systems x queries: how each system does on each query.

The cells are a small PNG, one pixel each, so that a map of any size stays a few kilobytes. Colours
go from orange over white to blue, and remain distinct for red-green colour-blind readers (after
Brewer, Harrower and Sheesley 2003).
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from exampp.results.plots.figure import (
    Figure,
    Spec,
    inline_rows,
    layer,
    name_bands,
    named_places,
    row_height,
)
from exampp.results.result import Table

DIVERGING = (
    "#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3",
    "#2166ac",
)  # fmt: skip
"""From below the middle to above it, evenly spaced."""
_WIDEST = 690
_STEP = 16
_LEAST_STEP = 9
"""Pixels of a query whose id and text stand below it, at least."""
_TEXT = 150

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def heatmap(
    values: Floats,
    counts: Bools,
    systems: Sequence[str],
    query_ids: Sequence[str],
    measure: str,
    *,
    texts: Mapping[str, str] | None = None,
    shown: Collection[str] | None = None,
) -> Figure:
    """Draw how far systems (rows, best first) are from the mean of queries (easiest first).

    `values` is systems x queries; where `counts` is False the cell is empty. `texts` are those of
    queries, by id. Of the systems, only some may be `shown`; differences are to the mean of all.
    The colour scale covers 19 of 20 cells.
    """
    across, down = _means(values, counts, axis=1), _means(values, counts, axis=0)
    # ties by name, as in the leaderboard
    order = np.lexsort((np.array(systems, dtype=object).argsort().argsort(), -across.round(10)))
    column = np.lexsort((np.arange(len(query_ids)), -down.round(10)))
    if shown is not None:
        order = order[[systems[at] in shown for at in order]]
    table, known = values[np.ix_(order, column)], counts[np.ix_(order, column)]
    names, ids = [systems[i] for i in order], [query_ids[i] for i in column]
    centred = np.where(known, table - down[column], 0.0)
    reach = _reach(centred[known])
    image = matrix_picture((centred / reach + 1) / 2, known, DIVERGING)
    step, size = row_height(len(names))
    height = step * max(1, len(names))
    mark = {
        "type": "image",
        "url": image,
        "aspect": False,
        "smooth": False,
        "width": {"expr": "width"},
        "height": height,
    }
    middle = {"x": {"value": {"expr": "width / 2"}}, "y": {"value": height / 2}}

    drawn, spec = bool(known.any()), {}
    if drawn:
        width = min(_WIDEST, _STEP * len(ids))
        named = width >= _LEAST_STEP * len(ids)
        layers = [
            _axes(names, ids, (texts or {}) if named else {}, size, named=named),
            {"data": {"values": [{}]}, "mark": mark, "encoding": middle},
            _legend(reach, f"{measure}, minus the query's mean"),
        ]
        spec = {"width": width, "height": height, "layer": layers}
    data = [
        [system, query, float(table[i, j]), float(centred[i, j])]
        if known[i, j]
        else [system, query, None, None]
        for i, system in enumerate(names)
        for j, query in enumerate(ids)
    ]
    means = np.maximum(down[column], 0)
    return Figure(
        name="heatmap",
        title=f"{measure} of every system on every query",
        subtitle=(f"{len(names)} of {len(systems)} systems; " if len(names) < len(systems) else "")
        + "Difference to the mean of the query; systems from best to worst; empty: no value",
        alt=f"Heat map of {measure}, {len(names)} systems by {len(ids)} queries. Best system "
        f"{names[0]}, worst {names[-1]}; easiest query {ids[0]} (mean {means[0]:.2f}), hardest "
        f"{ids[-1]} (mean {means[-1]:.2f})."
        if drawn
        else f"Nothing to draw: {measure} has no values.",
        spec=spec,
        data=Table.of(
            ["system", "query", "value", "difference"],
            data,
            f"{measure} per system and query, and its difference to the mean of the query",
        ),
    )


def _axes(
    names: Sequence[str], ids: Sequence[str], texts: Mapping[str, str], size: float, *, named: bool
) -> Spec:
    shown = [f"{one}  {texts[one]}" if texts.get(one) else one for one in ids]
    axis = {
        "labels": named,
        "labelAngle": -90,
        "labelLimit": _TEXT,
        "labelFontSize": 9,
        "ticks": False,
        "domain": False,
        # space in a reader's font, which may be wider than the measured one
        **({"minExtent": min(_TEXT, max(map(len, shown)) * 9 * 0.62) * 1.25} if named else {}),
    }
    queries = f"{len(ids)} queries, from easiest to hardest"
    banded = {"type": "band", "padding": 0}
    return layer(
        "point",
        {
            "y": name_bands(names, scale=banded, labelFontSize=size),
            "x": named_places("query", shown, queries, banded, **axis),
        },
        # any point on both axes makes them appear
        inline_rows(("name", "query"), [[names[0], shown[0]]]),
        opacity=0,
    )


def _legend(reach: float, title: str) -> Spec:
    legend = {
        "title": title,
        "gradientLength": 160,
        "gradientThickness": 10,
        "titleLimit": 330,
        "values": [-reach, 0, reach],
        "format": "+.3~f",
        "orient": "top",
        "direction": "horizontal",
    }
    scale = {"domain": [-reach, reach], "range": list(DIVERGING), "type": "linear"}
    colour = {"field": "shade", "type": "quantitative", "scale": scale, "legend": legend}
    encoding = {"color": colour, "x": {"value": 0}, "y": {"value": 0}}
    return layer("point", encoding, inline_rows(("shade",), [[-reach], [reach]]), opacity=0)


def _means(values: Floats, counts: Bools, axis: int) -> Floats:
    sums, used = np.where(counts, values, 0.0).sum(axis=axis), counts.sum(axis=axis)
    # what has no value at all goes last
    means = np.full(sums.shape, -1.0)
    np.divide(sums, used, out=means, where=used > 0)
    return means


def _reach(differences: Floats) -> float:
    """Return the round difference that at most 1 in 20 cells exceeds: the end of the scale."""
    most = float(np.quantile(np.abs(differences), 0.95)) if differences.size else 0.0
    if most <= 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(most))
    return float(np.ceil(round(most / step, 9)) * step)


# ---- colours and pixels --------------------------------------------------------------------------


def _colours(values: Floats, scale: Sequence[str]) -> NDArray[np.uint8]:
    """Return red, green and blue of values in 0..1 in a new last dimension."""
    stops = np.array([list(bytes.fromhex(colour[1:])) for colour in scale], np.float64)
    place = np.clip(values, 0, 1) * (len(stops) - 1)
    low = np.minimum(place.astype(np.intp), len(stops) - 2)
    part = (place - low)[..., None]
    mixed: Floats = stops[low] * (1 - part) + stops[low + 1] * part
    return mixed.round().astype(np.uint8)


def shade_color(value: float, scale: Sequence[str]) -> str:
    """Return the colour of a value in 0..1 on a scale, as `#rrggbb`."""
    return "#" + bytes(_colours(np.array([value]), scale)[0]).hex()


def matrix_picture(values: Floats, known: Bools, scale: Sequence[str]) -> str:
    """Return a matrix of values in 0..1 as the data URL of a PNG; unknown cells are transparent."""
    height, width = values.shape
    alpha = np.where(known, 255, 0).astype(np.uint8)[..., None]
    lines = np.concatenate([_colours(values, scale), alpha], axis=2).reshape(height, width * 4)
    # every line starts with its filter, here none
    raw = np.pad(lines, ((0, 0), (1, 0))).tobytes()
    png = b"\x89PNG\r\n\x1a\n"
    for kind, content in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    ):
        check = struct.pack(">I", zlib.crc32(kind + content))
        png += struct.pack(">I", len(content)) + kind + content + check
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
