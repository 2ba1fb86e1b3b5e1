"""Lines and scatter plots: reliability, calibration, best scores, rank against rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from exampp.records.calibration import CalibrationBin
from exampp.records.clients import SealedUse
from exampp.records.wording import counted
from exampp.results.plots.figure import (
    ACCENT,
    ALARM,
    DASHES,
    DESCRIBED,
    GREY,
    SERIES,
    Figure,
    inline_rows,
    layer,
    nominal,
    quantitative,
    ranged,
)
from exampp.results.result import Table

_LETTER, _NAME_HEIGHT = 6.4, 12

# ---- reliability ---------------------------------------------------------------------------------

_PANEL, _PER_ROW = 205, 3
_ANSWERING = 12
"""Points of a line with values for a pointer, about."""
NO_LIMIT = "no limit"
"""The line of exams with unlimited items."""


class ProjectedReliability(NamedTuple):
    """The reliability of an exam with so many queries, with its limits where known."""

    panel: str
    line: str
    queries: int
    value: float
    low: float | None
    high: float | None


def reliability_lines(
    projected: Sequence[ProjectedReliability],
    measure: str,
    *,
    present: int,
    target: float,
    interval: str,
) -> Figure:
    """Draw reliability by number of queries: a line per number of items, a panel per study.

    `present` is the number of queries of this exam, `target` the wanted reliability; `interval`
    describes the band.
    """
    panels = list(dict.fromkeys(one.panel for one in projected))
    lines = list(dict.fromkeys(one.line for one in projected))
    deepest = max((one.queries for one in projected), default=1)
    looks = [*zip(SERIES, DASHES, strict=True)]
    inks = dict(zip(lines, looks, strict=False)) | {NO_LIMIT: (GREY, (1, 3))}
    order = lines[::-1]
    legend = {"title": "items"} if len(lines) > 1 else None
    domain = {"domain": [0, deepest], "nice": False}
    across = quantitative("queries", "queries", domain, grid=False, tickCount=5)
    up = quantitative(
        "value", "E\u03c1\u00b2", {"domain": [0, 1]}, tickCount=6, domain=False, ticks=False
    )
    shown_as = [inks.get(line, (GREY, (1, 1))) for line in order]
    points_of = {"x": across, "y": up, **DESCRIBED}
    colour = nominal("line", order, [ink for ink, _ in shown_as], legend)
    dashes = nominal("line", order, [list(dash) for _, dash in shown_as], legend)

    def drawn(panel: str) -> list[dict[str, Any]]:
        points = [one for one in projected if one.panel == panel]
        bounded = [one for one in points if one.low is not None]
        # a line has hundreds of points; a pointer finds some, and those of this exam
        step = 1 + len(points) // (_ANSWERING * len(lines))
        answering = [
            one for at, one in enumerate(points) if at % step == 0 or one.queries == present
        ]
        ink = inks.get(bounded[0].line, (GREY,))[0] if bounded else GREY
        band = {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}}
        line = {"x": across, "y": up, "color": colour, "strokeDash": dashes}
        dashed = {"strokeDash": [5, 4], "opacity": 0.55}
        fields = ProjectedReliability._fields
        return [
            layer("rule", {"y": up}, inline_rows(("value",), [[target]]), **dashed),
            layer("rule", {"x": across}, inline_rows(("queries",), [[present]]), **dashed),
            layer("area", band, inline_rows(fields, bounded), color=ink, opacity=0.18),
            layer("line", line, inline_rows(fields, points), strokeWidth=1.8),
            # seen only at the pointer
            layer(
                "point",
                {**points_of, "fill": nominal("line", order, [ink for ink, _ in shown_as])},
                inline_rows((*fields, "about"), [[*one, _projected(one)] for one in answering]),
                strokeWidth=0,
                size=70,
                opacity=0,
            ),
        ]

    views = [
        {
            "title": {"text": panel, "fontSize": 12, "fontWeight": "normal", "offset": 6},
            "width": _PANEL,
            "height": min(250, 1.2 * _PANEL),
            "layer": drawn(panel),
        }
        for panel in panels
    ]
    concat = {"concat": views, "columns": min(_PER_ROW, len(panels)), "spacing": 26}

    now = []
    for panel in panels:
        here = [one.value for one in projected if one.panel == panel and one.queries == present]
        now += [f"{panel}: {min(here):.2f} to {max(here):.2f}"] if here else []
    shown = "Lines: items per query; band" if legend else "Band"
    return Figure(
        name="reliability",
        title=f"Reliability of the order of systems by {measure}",
        subtitle=f"{shown}: {interval}; dashed: {target:g}, and the {present} queries of this exam",
        alt=f"Reliability of {measure} over the number of queries. With the {present} queries of "
        f"this exam, from few to unlimited items, {'; '.join(now)}."
        if panels
        else f"Nothing to draw: the reliability of {measure} is undefined.",
        spec=concat if views else {},
        data=Table.of(
            ["systems", "items per query", "queries", "value", "low", "high"],
            projected,
            f"Reliability of {measure} by the size of the exam",
        ),
    )


def _projected(one: ProjectedReliability) -> str:
    end = ranged(one.value, one.low, one.high)
    return f"{one.panel}, {one.line} items, {counted(one.queries, 'query')}: {end}"


# ---- calibration ---------------------------------------------------------------------------------


def calibration_curve(
    bins: Sequence[CalibrationBin], min_relevant: int, *, subtitle: str = ""
) -> Figure:
    """Draw bins of held-out passages; correct probabilities lie on the diagonal.

    The area of a dot is proportional to its number of passages.
    """
    points = [(one.predicted, one.observed, one.passages) for one in bins]
    title = f"Probability of a judgment of {min_relevant} or more, and how often it was so"
    most = min(1.0, max((max(x, y) for x, y, _ in points), default=1.0) * 1.1)
    top = next(step for step in (0.1, 0.2, 0.25, 0.5, 1.0) if step >= most)
    scale = {"domain": [0, top], "nice": False}
    axis = {"grid": True, "tickCount": 5, "format": ".0%", "domain": False}
    places = {
        "x": quantitative("predicted", "mean probability that was given", scale, **axis),
        "y": quantitative("observed", "share that people judged so", scale, **axis),
    }
    size = {
        "field": "passages",
        "type": "quantitative",
        "legend": {"title": "passages"},
        "scale": {"zero": True, "rangeMax": 220},
    }
    data = inline_rows(
        ("predicted", "observed", "passages", "about"),
        [
            [*one, f"{one[2]:,} passages: given {one[0]:.2f}, judged so {one[1]:.0%}"]
            for one in points
        ],
    )
    ends = inline_rows(("predicted", "observed"), [[0, 0], [top, top]])
    alt = "No held-out passages."
    if points:
        predicted, observed, passages = max(points, key=lambda one: abs(one[0] - one[1]))
        alt = (
            f"{len(points)} bins of held-out passages. Farthest from the diagonal: {passages:,} "
            f"passages of mean probability {predicted:.2f}, of which people judged {observed:.0%} "
            "so."
        )
    layers = [
        layer("line", places, ends, color=GREY, strokeDash=[6, 4]),
        layer("line", places, data, color=ACCENT, strokeWidth=1.4, opacity=0.6),
        layer("circle", {**places, "size": size, **DESCRIBED}, data, color=ACCENT, opacity=1),
    ]
    return Figure(
        name="calibration",
        title=title,
        subtitle=subtitle,
        alt=alt,
        spec={"width": 340, "height": 340, "layer": layers} if points else {},
        data=Table.of(["mean probability", "share people judged so", "passages"], points, title),
    )


# ---- best scores ---------------------------------------------------------------------------------


def best_scores(use: SealedUse, subtitle: str, alt: str) -> Figure:
    """Draw the best score after each submission to a sealed part, and whose it is.

    Each ladder has a line. Clients have colours if there are few.
    """
    names = ("ladder", "submission", "score")
    last = {one.ladder: one for one in use.bests}
    lines = [(one.ladder, one.submission, one.score) for one in use.bests]
    lines += [(one.ladder, use.submissions, one.score) for one in last.values()]
    dots = [
        (
            *(one.client, one.submission, one.score),
            f"{one.client}: {one.score:.2f} with submission {one.submission:,} ({one.at[:16]} UTC)",
        )
        for one in use.bests
    ]
    whole = {"domain": [0, use.submissions], "nice": True}
    places = {
        "x": quantitative(
            "submission", "submissions of all clients", whole, tickCount=8, tickMinStep=1
        ),
        "y": quantitative("score", "best score", {"domain": [0, 1]}, tickCount=6),
    }
    clients = list(dict.fromkeys(one.client for one in use.bests))
    legend = {"title": "client"} if 1 < len(clients) <= len(SERIES) else None
    line = {**places, "detail": {"field": "ladder"}}
    dot = {
        **places,
        "color": nominal("client", clients, SERIES if legend else [ACCENT], legend),
        **DESCRIBED,
    }
    layers = [
        layer("line", line, inline_rows(names, lines), interpolate="step-after", color=GREY),
        layer(
            "point",
            dot,
            inline_rows(("client", *names[1:], "about"), dots),
            filled=True,
            size=70,
            opacity=1,
        ),
    ]
    columns = ["submission", "client", "score", "queries", "at", "ladder"]
    return Figure(
        name="sealed",
        title=f"Best scores on the sealed part of {use.bank}",
        subtitle=subtitle,
        alt=alt,
        spec={"width": 520, "height": 260, "layer": layers} if use.bests else {},
        data=Table.of(
            columns,
            [[getattr(one, name) for name in columns] for one in use.bests],
            "New best scores on the sealed part",
        ),
    )


# ---- rank against rank ---------------------------------------------------------------------------

_SIZE = 460
_OUTLIERS = 10


class RankPair(NamedTuple):
    """A system's rank in two leaderboards, from 1; ties share the mean of their ranks."""

    system: str
    official: float
    ours: float


def item_scatter(
    points: Sequence[tuple[str, float, float, bool]], *, draft: bool = False
) -> Figure:
    """Draw the difficulty of items against their correlation with the rest of the exam.

    `points` are item, difficulty, correlation, and whether the item should be reviewed.
    """
    places = {
        "x": quantitative("difficulty", "mean credit of systems", {"domain": [0, 1]}, tickCount=6),
        "y": quantitative(
            "rest", "correlation with the rest of the exam", {"nice": True}, tickCount=6
        ),
    }
    counts = Counter((round(one[1], 2), round(one[2], 2), one[3]) for one in points)
    data = inline_rows(
        ("difficulty", "rest", "review", "size", "about"),
        [
            [
                *place,
                40 * count,
                f"{counted(count, 'item')}: mean credit {place[0]:.2f}, correlation {place[1]:.2f}",
            ]
            for place, count in counts.items()
        ],
    )
    zero = inline_rows(("difficulty", "rest"), [[0, 0], [1, 0]])
    colour = nominal("review", [False, True], [ACCENT, ALARM])
    size = {"field": "size", "type": "quantitative", "scale": None, "legend": None}
    layers = [
        layer("line", places, zero, strokeDash=[5, 4], opacity=0.45, color=GREY),
        layer(
            "point",
            {**places, "color": colour, "size": size, **DESCRIBED},
            data,
            filled=True,
            opacity=0.75,
        ),
    ]
    flagged = sum(one[3] for one in points)
    alt = "Nothing to draw: no item separates systems."
    if points:
        alt = (
            f"Scatter plot of {len(points)} items by difficulty and correlation with the rest of "
            f"the exam; {flagged} should be reviewed."
        )
    return Figure(
        name="items",
        title="Items by difficulty and agreement with the rest of the exam",
        subtitle=f"Larger dots: several items; orange: review ({flagged} of {len(points)})",
        alt=alt,
        draft=draft,
        spec={"width": 1.4 * _SIZE, "height": _SIZE, "layer": layers} if points else {},
        data=Table.of(["item", "difficulty", "item_rest", "review"], points, "Items"),
    )


def rank_scatter(
    points: Sequence[RankPair],
    measure: str,
    *,
    subtitle: str = "",
    tau: float | None = None,
) -> Figure:
    """Draw ranks in the official leaderboard against ranks by a measure; 1 is at the corner.

    The systems furthest from the diagonal are labelled where there is space. `tau` is written
    beside the diagonal, `subtitle` may say more about the correlation.
    """
    last = max((max(p.official, p.ours) for p in points), default=1)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if last / step <= 12)
    axis = {
        "grid": True,
        "values": [1, *range(max(2, step), int(last) + 1, step)],
        "format": "d",
    }
    scale = {"domain": [0.4, last + 0.6], "nice": False}
    places = {
        "x": quantitative("official", "official rank", {**scale, "reverse": False}, **axis),
        "y": quantitative("ours", f"rank by {measure}", {**scale, "reverse": True}, **axis),
    }

    ends = inline_rows(("official", "ours"), [[1, 1], [last, last]])
    told = [
        f"{one.system}: official rank {one.official:g}, rank {one.ours:g} by {measure}"
        for one in points
    ]
    data = inline_rows(
        ("name", "official", "ours", "about"),
        [[*one, text] for one, text in zip(points, told, strict=True)],
    )
    layers = [
        layer("line", places, ends, strokeDash=[5, 4], opacity=0.45, color=GREY),
        layer(
            "point", {**places, **DESCRIBED}, data, filled=True, size=55, opacity=0.85, color=ACCENT
        ),
    ]
    for align, some in _outliers(points, last, _SIZE).items():
        named = inline_rows(("name", "official", "ours"), some)
        text = {**places, "text": {"field": "name"}}
        layers.append(layer("text", text, named, align=align, dx=8 if align == "left" else -8))
    if tau is not None:
        # the corner below the diagonal is the emptiest
        corner = {"x": {"value": 10}, "y": {"value": _SIZE - 12}, "text": {"field": "text"}}
        said = inline_rows(("text",), [[f"Kendall's tau {tau:.3f}"]])
        layers.append(layer("text", corner, said, align="left", fontSize=12, fontWeight=600))
    square = {"width": _SIZE, "height": _SIZE, "autosize": "pad", "layer": layers}
    alt = f"Nothing to draw: no system has both a rank by {measure} and an official rank."
    if points:
        far = max(points, key=lambda p: abs(p.official - p.ours))
        alt = (
            f"Scatter plot of {len(points)} systems, official rank against rank by {measure}"
            f"{', ' + subtitle if subtitle else ''}; furthest from the diagonal is {far.system}, "
            f"official rank {far.official:g} and rank {far.ours:g} by {measure}."
        )
    return Figure(
        name="scatter",
        title=f"Official rank against rank by {measure}",
        subtitle=subtitle,
        alt=alt,
        spec=square if points else {},
        data=Table.of(
            ["system", "official rank", "rank"],
            points,
            f"Ranks by {measure} and in the official leaderboard",
        ),
    )


def _outliers(points: Sequence[RankPair], last: float, size: float) -> dict[str, list[RankPair]]:
    """Return the outliers that have space for a label, by the side of the dot."""
    step = size / (last + 0.2)
    at = {p: ((p.official - 0.4) * step, (p.ours - 0.4) * step) for p in points}
    occupied = [(x - 4, x + 4, y) for x, y in at.values()]
    outliers: dict[str, list[RankPair]] = {"left": [], "right": []}
    far = [p for p in points if abs(p.official - p.ours) >= last / 8]
    far.sort(key=lambda p: (-abs(p.official - p.ours), p.official, p.system))
    for point in far[:_OUTLIERS]:
        x, y = at[point]
        width = len(point.system) * _LETTER
        for align, start in (("left", x + 8), ("right", x - 8 - width)):
            end = start + width
            free = (
                start >= 0
                and end <= size
                and not any(
                    start < right and left < end and abs(y - height) < _NAME_HEIGHT
                    for left, right, height in occupied
                )
            )
            if free:
                occupied.append((start, end, y))
                outliers[align].append(point)
                break
    return outliers
