"""Bar charts of the distribution of grades, and of the outcomes of responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

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
    row_height,
    rows_of_names,
)
from exampp.results.plots.heatmap import shade_color
from exampp.results.result import Table
from exampp.results.view import Value

_WIDTH = 560
_EDGE: dict[str, Any] = {"stroke": GREY, "strokeWidth": 0.7}
"""The lightest grade is hardly visible on white without it."""


def grade_distribution(counts: Mapping[str, Mapping[int, int]]) -> Figure:
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
        name="grades",
        title="How grades are spread",
        subtitle="Share of all graded cells that got each rating",
        alt=f"Bar chart of the ratings given. {'; '.join(parts)}."
        if parts
        else "Nothing to draw: no cell is graded.",
        spec=spec if values else {},
        data=Table.of(["grader", "rating", "cells", "share"], values, "Cells by rating"),
    )


OUTCOMES: Mapping[str, tuple[str, str]] = {
    "answered rightly": ("#0072b2", "#ffffff"),
    "abstained rightly": ("#9fd0ef", "#1f2328"),
    "answered poorly": ("#f5ecc8", "#1f2328"),
    "abstained wrongly": ("#d98c00", "#1f2328"),
    "answered wrongly": ("#a00028", "#ffffff"),
}
"""The outcomes of responses, best first, with the colours of their bars and of texts on them."""
_NARROW = 0.06
"""Share of a bar below which its number does not fit."""
_LOW = 14
"""Pixels of a row below which numbers do not fit."""


class _Segment(NamedTuple):
    """A part of the bar of a system: an outcome, its responses, and where it starts and ends."""

    name: str
    outcome: str
    responses: int
    share: float
    start: float
    end: float


def _segments(counts: Mapping[str, Mapping[str, int]], queries: int) -> Iterator[_Segment]:
    for system, of_system in counts.items():
        ends = accumulate((of_system[one] for one in OUTCOMES), initial=0)
        for outcome, (start, end) in zip(OUTCOMES, pairwise(ends), strict=True):
            if end > start:
                shares = (one / queries for one in (end - start, start, end))
                yield _Segment(system, outcome, end - start, *shares)


def outcome_shares(
    counts: Mapping[str, Mapping[str, int]], queries: int, subtitle: str, *, draft: bool = False
) -> Figure:
    """Draw the shares of outcomes as one stacked bar per system.

    `counts` is system -> outcome -> responses, in the order of the rows. Queries without an outcome
    (no response, or no grade) are the space after a bar.
    """
    segments = list(_segments(counts, queries))
    alt = "Nothing to draw: no system has a response whose outcome is known."
    if segments:
        first, of_first = next(iter(counts.items()))
        parts = ", ".join(f"{of_first[one]} {one}" for one in OUTCOMES)
        size = f"{len(counts)} systems on {queries} queries"
        alt = f"Stacked bars of {size}. First: {first}, {parts}."
    if sum(one.responses for one in segments) < queries * len(counts):
        subtitle += "; space: no response, or no grade"
    legend = {"title": None, "orient": "top", "columns": 5, "labelLimit": 220}
    scale = {"domain": [0, 1], "nice": False}
    ticks = {"format": ".0%", "tickCount": 5, "grid": False}
    across = quantitative("start", "share of queries", scale, **ticks)
    inks = [ink for ink, _ in OUTCOMES.values()]
    bar = {"x2": {"field": "end"}, "color": nominal("outcome", list(OUTCOMES), inks, legend)}
    has_room = row_height(len(counts))[0] >= _LOW
    layers = [layer("bar", {"x": across, **bar, **DESCRIBED}, **_EDGE)]
    for ink in dict.fromkeys(ink for _, ink in OUTCOMES.values()):
        rows = [
            (one.name, one.responses, (one.start + one.end) / 2)
            for one in segments
            if has_room and one.share >= _NARROW and OUTCOMES[one.outcome][1] == ink
        ]
        middle = {"x": {**across, "field": "middle"}, "text": {"field": "responses"}}
        numbers = inline_rows(("name", "responses", "middle"), rows)
        layers.append(layer("text", middle, numbers, color=ink, fontSize=10))
    data = inline_rows(
        (*_Segment._fields, "about"),
        [
            (*one, f"{one.name}, {one.outcome}: {one.responses} of {queries}, {one.share:.1%}")
            for one in segments
        ],
    )
    return Figure(
        name="abstention",
        title="Answers and abstentions",
        subtitle=subtitle,
        alt=alt,
        draft=draft,
        spec=rows_of_names(list(counts), _WIDTH, layers, data) if segments else {},
        data=Table.of(
            ("system", "outcome", "responses", "share"),
            [(one.name, one.outcome, one.responses, one.share) for one in segments],
            "Responses by outcome",
        ),
    )
