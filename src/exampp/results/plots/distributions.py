"""Bar chart of the distribution of grades."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exampp.results.plots.figure import (
    DESCRIBED,
    GRADES,
    GREY,
    SERIES,
    Figure,
    inline_rows,
    layer,
    named_places,
    nominal,
    quantitative,
)
from exampp.results.plots.heatmap import shade_color
from exampp.results.result import Table
from exampp.results.view import Value

_WIDTH = 560
_EDGE: dict[str, Any] = {"stroke": GREY, "strokeWidth": 0.7}
"""The lightest grade is hardly visible on white without it."""


def grade_distribution(counts: Mapping[str, Mapping[int, int]], *, name: str = "grades") -> Figure:
    """Draw how often each rating was given: `counts` is grader -> rating -> cells.

    Bars are shares of the grader's cells, so that graders of different coverage compare.
    """
    ratings = sorted({rating for of_grader in counts.values() for rating in of_grader})
    totals = {grader: sum(of_grader.values()) for grader, of_grader in counts.items()}
    values: list[list[Value]] = [
        [grader, str(rating), counts[grader].get(rating, 0), counts[grader].get(rating, 0) / total]
        for grader, total in totals.items()
        if total
        for rating in ratings
    ]
    names = [str(rating) for rating in ratings]
    encoding = {
        "x": named_places(
            "rating", names, "rating", {"paddingInner": 0.25}, labelAngle=0, ticks=False
        ),
        "y": quantitative(
            "share", "share of cells", {}, format=".0%", tickCount=5, domain=False, ticks=False
        ),
    }
    # the bars of one grader have the colours that its grades have on pages
    last = max(1, len(ratings) - 1)
    shades = [shade_color(n / last, GRADES) for n in range(len(ratings))]
    colour = nominal("rating", names, shades)
    graders = list(counts)
    if len(graders) > 1:
        encoding["xOffset"] = {"field": "grader", "type": "nominal", "scale": {"domain": graders}}
        legend = {"title": None, "orient": "top", "labelLimit": 400}
        inks = [SERIES[n % len(SERIES)] for n in range(len(graders))]
        colour = nominal("grader", graders, inks, legend)
    layers = [layer("bar", {"color": colour, **DESCRIBED}, cornerRadiusEnd=2, **_EDGE)]
    if len(graders) * len(ratings) <= 14:
        percent = {"text": {"field": "share", "type": "quantitative", "format": ".1%"}}
        layers.append(layer("text", percent, dy=-8, fontSize=10))
    parts = [
        f"{grader} ({total:,} cells): "
        + ", ".join(f"{counts[grader].get(r, 0) / total:.1%} {r}" for r in ratings)
        for grader, total in totals.items()
        if total
    ]
    about = [f"{one[0]}: rating {one[1]}, {one[2]:,} cells, {one[3]:.1%}" for one in values]
    data = inline_rows(
        ("grader", "rating", "cells", "share", "about"),
        [[*one, text] for one, text in zip(values, about, strict=True)],
    )
    spec = {"width": _WIDTH, "height": 240, "data": data, "encoding": encoding, "layer": layers}
    return Figure(
        name=name,
        title="How grades are spread",
        subtitle="Share of all graded cells that got each rating",
        alt=f"Bar chart of the ratings given. {'; '.join(parts)}."
        if parts
        else "Nothing to draw: no cell is graded.",
        spec=spec if values else {},
        data=Table.of(["grader", "rating", "cells", "share"], values, "Cells by rating"),
    )
