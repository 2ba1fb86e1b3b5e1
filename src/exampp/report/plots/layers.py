"""What many figures are made of: layers of marks, colours or shapes of names, rows of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exampp.report.plots.figure import NAME_WIDTH, Spec, by_name, row_height


def layer(
    kind: str, encoding: Mapping[str, Any], data: Mapping[str, Any] | None = None, **style: Any
) -> dict[str, Any]:
    """Marks of one kind in one style; `data` are their own, by default those of the figure."""
    drawn = {"mark": {"type": kind, **style}, "encoding": encoding}
    return drawn if data is None else {"data": data, **drawn}


def nominal(
    field: str, names: Sequence[Any], values: Sequence[str], legend: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An encoding of names by colours or shapes, one each."""
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(values)},
        "legend": legend,
    }


def in_rows(
    names: Sequence[str],
    width: float,
    layers: Sequence[Mapping[str, Any]],
    data: Mapping[str, Any] | None = None,
    *,
    apart: float = 0,
    limit: float = NAME_WIDTH,
) -> Spec:
    """A row a name, in the order given, with `apart` pixels more between them than rows have."""
    if not names:
        return {}
    height, size = row_height(len(names))
    order = by_name(names, limit=limit, labelFontSize=size, labelPadding=10, grid=True)
    return {
        "width": width,
        "height": (height + apart) * len(names),
        **({"data": data} if data else {}),
        "encoding": {"y": order},
        "layer": layers,
    }
