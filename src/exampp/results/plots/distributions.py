"""How grades are spread, and how labels go with what people judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exampp.results.plots.figure import GRADES, GREY, SERIES, Figure, layer, nominal, rows
from exampp.results.plots.heatmap import shade
from exampp.results.result import Table
from exampp.results.view import Value

_WIDTH = 560
_EDGE: dict[str, Any] = {"stroke": GREY, "strokeWidth": 0.7}
"""The lightest grade is hardly seen on white without it."""


def grades(counts: Mapping[str, Mapping[int, int]], *, name: str = "grades") -> Figure:
    """How often each rating was given, per grader: `counts` is grader -> rating -> cells.

    Drawn as shares of the grader's cells, so that graders of different zeal can be compared.
    """
    ratings = sorted({rating for of_grader in counts.values() for rating in of_grader})
    graders = list(counts)
    values: list[list[Value]] = [
        [grader, str(rating), n, n / total]
        for grader, of_grader in counts.items()
        if (total := sum(of_grader.values()))
        for rating in ratings
        for n in [of_grader.get(rating, 0)]
    ]
    across = {
        "field": "rating",
        "type": "ordinal",
        "sort": None,
        "scale": {"domain": [str(rating) for rating in ratings], "paddingInner": 0.25},
        "title": "rating",
        "axis": {"labelAngle": 0, "ticks": False},
    }
    share = {
        "field": "share",
        "type": "quantitative",
        "title": "share of cells",
        "axis": {"format": ".0%", "tickCount": 5, "domain": False, "ticks": False},
    }
    legend = {"title": None, "orient": "top", "labelLimit": 400} if len(graders) > 1 else None
    inks = [SERIES[n % len(SERIES)] for n in range(len(graders))]
    colour = nominal("grader", graders, inks, legend)
    apart = {"field": "grader", "type": "nominal", "scale": {"domain": graders}}
    encoding = {"x": across, "y": share, **({"xOffset": apart} if len(graders) > 1 else {})}
    if len(graders) == 1:
        # one grader's bars have the colours that its grades have on pages
        shades = [shade(n / max(1, len(ratings) - 1), GRADES) for n in range(len(ratings))]
        scale = {"domain": [str(rating) for rating in ratings], "range": shades}
        colour = {"field": "rating", "type": "ordinal", "scale": scale, "legend": None}
    few = len(graders) * len(ratings) <= 14
    percent = {"text": {"field": "share", "type": "quantitative", "format": ".1%"}}
    bars = layer("bar", {"color": colour}, cornerRadiusEnd=2, **_EDGE)
    text = layer("text", percent, dy=-8, fontSize=10.5)
    return Figure(
        name=name,
        title="How grades are spread",
        subtitle="Share of all graded cells that got each rating",
        alt=_grades_alt(counts, ratings),
        spec={}
        if not values
        else {
            "width": _WIDTH,
            "height": 240,
            "data": rows(("grader", "rating", "cells", "share"), values),
            "encoding": encoding,
            "layer": [bars, text] if few else [bars],
        },
        data=Table.of(["grader", "rating", "cells", "share"], values, "Cells by rating"),
    )


def _grades_alt(counts: Mapping[str, Mapping[int, int]], ratings: Sequence[int]) -> str:
    parts = []
    for grader, of_grader in counts.items():
        total = sum(of_grader.values())
        if total:
            shares = ", ".join(f"{of_grader.get(r, 0) / total:.1%} {r}" for r in ratings)
            parts.append(f"{grader} ({total:,} cells): {shares}")
    if not parts:
        return "Nothing to draw: no cell is graded."
    return f"Bar chart of the ratings given. {'; '.join(parts)}."


def labels(counts: Mapping[int, Mapping[int, int]], *, name: str = "labels") -> Figure:
    """Which labels the passages of each judgment got: `counts` is judgment -> label -> passages.

    A bar a judgment, all of one length, its parts going from the lowest label to the highest.
    """
    judgments = sorted(counts, reverse=True)
    found = sorted({label for of_judgment in counts.values() for label in of_judgment})
    sizes = {judgment: sum(counts[judgment].values()) for judgment in judgments}
    headings = {j: f"judged {j} ({sizes[j]:,})" for j in judgments}
    values = [
        [headings[j], str(label), n, n / sizes[j], index]
        for j in judgments
        if sizes[j]
        for index, label in enumerate(found)
        for n in [counts[j].get(label, 0)]
    ]
    domain = [str(label) for label in found]
    colours = [shade(index / max(1, len(found) - 1), GRADES) for index in range(len(found))]
    return Figure(
        name=name,
        title="Labels of judged passages",
        subtitle="Share of the passages of each judgment that got each label",
        alt=_labels_alt(counts, judgments, found),
        spec={}
        if not values
        else {
            "width": _WIDTH,
            "height": 42 * max(1, len(judgments)),
            "data": rows(("judgment", "label", "passages", "share", "order"), values),
            "mark": {"type": "bar", "height": {"band": 0.72}, **_EDGE},
            "encoding": {
                "y": {
                    "field": "judgment",
                    "type": "ordinal",
                    "sort": None,
                    "scale": {"domain": [headings[j] for j in judgments]},
                    "title": None,
                    "axis": {"ticks": False, "domain": False, "labelPadding": 8, "minExtent": 115},
                },
                "x": {
                    "field": "share",
                    "type": "quantitative",
                    "stack": "zero",
                    "scale": {"domain": [0, 1]},
                    "title": "share of passages",
                    "axis": {"format": ".0%", "tickCount": 5, "grid": True},
                },
                "color": {
                    "field": "label",
                    "type": "ordinal",
                    "scale": {"domain": domain, "range": colours},
                    "legend": {"title": "label", "orient": "right", "symbolType": "square"},
                },
                "order": {"field": "order", "type": "quantitative"},
            },
        },
        data=Table.of(
            ["judgment", "label", "passages", "share"],
            [
                [j, label, n, n / sizes[j]]
                for j in judgments
                if sizes[j]
                for label in found
                for n in [counts[j].get(label, 0)]
            ],
            "Passages by judgment and label",
        ),
    )


def _labels_alt(
    counts: Mapping[int, Mapping[int, int]], judgments: Sequence[int], found: Sequence[int]
) -> str:
    if not found:
        return "Nothing to draw: no passage has both a judgment and a label."
    top = found[-1]
    parts = [
        f"{counts[j].get(top, 0) / size:.0%} of the {size:,} passages judged {j}"
        for j in judgments
        if (size := sum(counts[j].values()))
    ]
    return f"Stacked bars of labels by judgment. The highest label, {top}, got {', '.join(parts)}."
