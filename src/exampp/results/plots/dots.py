"""Dot plots: one row per name, with ranges and dots of one or several series.

Leaderboards, methods side by side, corrected leaderboards, rank ranges and effects of attacks are
the same plot with different series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exampp.records.wording import counted, signed
from exampp.results.plots.figure import (
    ACCENT,
    ALARM,
    DESCRIBED,
    GREY,
    NAME_WIDTH,
    SERIES,
    SHAPES,
    Figure,
    Spec,
    Spread,
    inline_rows,
    layer,
    nominal,
    quantitative,
    ranged,
    round_axis,
    row_height,
    rows_of_names,
)
from exampp.results.result import Table

_WIDTH = 600
_LETTERS = 8
"""Letters of a system at most: more of them are not readable."""


class DotSeries(NamedTuple):
    """Values drawn in one style; `label` is for the legend, `width` is that of their ranges."""

    label: str
    spreads: Sequence[Spread]
    colour: str = ACCENT
    shape: str = "circle"
    filled: bool = True
    width: float = 2


def dots(
    names: Sequence[str],
    series: Sequence[DotSeries],
    across: Mapping[str, Any],
    *,
    beside: bool = False,
    zero: bool = False,
    limit: float = NAME_WIDTH,
    more: Sequence[Mapping[str, Any]] = (),
    about: Mapping[str, str] | None = None,
) -> Spec:
    """Return the specification: a row per name, in this order, with the series in it.

    Args:
        names: The names of the rows.
        series: What is drawn; a legend names them where all have labels.
        across: The encoding of values.
        beside: Move the series of a row apart.
        zero: Draw a line at 0.
        limit: Pixels of a name.
        more: Layers on top.
        about: Text that marks of a row show at the pointer, after their values.
    """
    labels = [one.label for one in series]
    legend = {
        "title": None,
        "orient": "top",
        "columns": 5,
        "labelLimit": 220,
        # ranges are drawn faintly, marks are not
        "symbolOpacity": 1,
    }

    def styled(values: Sequence[str]) -> dict[str, Any]:
        return nominal("series", labels, values, legend if all(labels) else None)

    inks = styled([one.colour for one in series])
    look = {
        "stroke": inks,
        "fill": styled([one.colour if one.filled else "none" for one in series]),
        "shape": styled([one.shape for one in series]),
    }
    bar = {
        "x": {**across, "field": "low"},
        "x2": {"field": "high"},
        "stroke": inks,
        "size": {"field": "width", "type": "quantitative", "scale": None, "legend": None},
    }
    apart = {"yOffset": {"field": "series", "type": "nominal", "scale": {"domain": labels}}}
    small = beside or row_height(len(names))[0] < 12
    legended = all(labels)

    def described(one: DotSeries, spread: Spread) -> str:
        of = f", {one.label}" if legended else ""
        end = (about or {}).get(spread.system, "")
        return f"{spread.system}{of}: {ranged(*spread[1:])}{end and f', {end}'}"

    ends = {"y": {"value": 0}, "y2": {"value": "height"}}
    line = layer("rule", {"x": across, **ends}, inline_rows(("value",), [[0]]), strokeDash=[5, 4])
    return rows_of_names(
        names,
        _WIDTH,
        [
            *([line] if zero else []),
            layer("rule", {**bar, **DESCRIBED, **(apart if beside else {})}, opacity=0.55),
            layer(
                "point",
                {"x": across, **look, **DESCRIBED, **(apart if beside else {})},
                opacity=1,
                size=22 if small else 46,
            ),
            *more,
        ],
        inline_rows(
            ("series", "width", "name", "value", "low", "high", "about"),
            [
                [one.label, one.width, *spread, described(one, spread)]
                for one in series
                for spread in one.spreads
            ],
        ),
        apart=3 * len(series) if beside else 0,
        limit=limit,
    )


# ---- leaderboards --------------------------------------------------------------------------------


def groups(letters: str) -> set[str]:
    """Return the single letters of a letter display; after z and Z come a1, b1 ..."""
    return set(re.findall(r"[A-Za-z][0-9]*", letters))


def leaderboard(
    scores: Sequence[Spread],
    measure: str,
    *,
    letters: Mapping[str, str] | None = None,
    queries: Mapping[str, int] | None = None,
) -> Figure:
    """Draw systems from best to worst, with one standard error as bars.

    Args:
        scores: A system without a value is last in the data, and not drawn.
        measure: The title of the axis.
        letters: Systems that share a letter do not differ significantly: those that share one with
            the best are filled, and letters stand beside the rows where they are few.
        queries: The number of queries in each value.
    """
    letters, spread = letters or {}, "one standard error over queries"
    known = sorted(
        (one for one in scores if one.value is not None),
        key=lambda one: (-(one.value or 0.0), one.system),
    )
    undefined = [one for one in scores if one.value is None]
    names = [one.system for one in known]
    size = row_height(len(known))[1]
    start, end, ticks = round_axis(known)
    best = groups(letters.get(names[0], "")) if names else set()
    inside: dict[bool, list[Spread]] = {True: [], False: []}
    beyond: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for one in known:
        value = one.value or 0.0
        if start <= value <= end:
            low, high = (None if at is None else min(max(at, start), end) for at in one[2:])
            alike = not letters or bool(best & groups(letters.get(one.system, "")))
            inside[alike].append(Spread(one.system, value, low, high))
        else:
            shown = f"\u2039 {value:.3f}" if value < start else f"{value:.3f} \u203a"
            beyond[value < start].append((one.system, shown))
    top = {"orient": "top"} if len(known) > 40 else {}
    texts = [
        layer(
            "text",
            {"x": {"value": 2 if left else {"expr": "width - 2"}}, "text": {"field": "shown"}},
            inline_rows(("name", "shown"), some),
            align="left" if left else "right",
            fontSize=size,
            color=ACCENT,
        )
        for left, some in beyond.items()
        if some
    ]
    if lettered := 0 < max(map(len, letters.values()), default=0) <= _LETTERS:
        place = {"x": {"value": {"expr": "width + 12"}}, "text": {"field": "letters"}}
        shown_letters = inline_rows(("name", "letters"), [(n, letters.get(n, "")) for n in names])
        texts.append(layer("text", place, shown_letters, align="left", fontSize=size, opacity=0.8))
    legend = [
        f"Bars: {spread}",
        *(["filled: not significantly different from the best"] if letters else []),
        *(["arrows: beyond the axis"] if any(beyond.values()) else []),
    ]
    return Figure(
        name="leaderboard",
        title=f"Leaderboard by {measure}",
        subtitle="; ".join(legend),
        right=12 + 7 * _LETTERS if lettered else 0,
        alt=f"Dot plot of {len(known)} systems by {measure}, bars showing {spread}: from "
        f"{names[0]} at {known[0].value:.3f} down to {names[-1]} at {known[-1].value:.3f}."
        if known
        else f"Nothing to draw: {measure} is undefined for every system.",
        spec=dots(
            names,
            [DotSeries("best", inside[True]), DotSeries("", inside[False], filled=False)],
            quantitative(
                "value",
                measure,
                {"domain": [start, end], "zero": False, "nice": False},
                grid=False,
                values=ticks,
                **top,
            ),
            more=texts,
            about={name: counted(number, "query") for name, number in (queries or {}).items()},
        ),
        data=Table.of(
            ["system", "value", "low", "high", "letters"],
            [[*one, letters.get(one.system, "")] for one in (*known, *undefined)],
            f"{measure} with {spread}",
        ),
    )


# ---- methods -------------------------------------------------------------------------------------


def method_scores(
    scores: Mapping[str, Sequence[Spread]],
    order: Sequence[str],
    *,
    official: tuple[str, Sequence[Spread]] | None = None,
    ordered_by: str = "the official leaderboard",
) -> Figure:
    """Draw the scores of up to six methods, the best system of each at 1 and the worst at 0.

    It shows whether methods agree on the order, as Figure 2 of EXAM++ does. `official` is an
    additional first series in grey. Systems that are not in `order` are left out before scores are
    re-normalised. A method with equal scores everywhere is left out.
    """
    places = {system: place for place, system in enumerate(order)}
    grey = [] if official is None else [official]
    series = [*grey, *list(scores.items())[: len(SERIES)]]
    looks = [*((GREY, "cross") for _ in grey), *zip(SERIES, SHAPES, strict=True)]
    drawn: list[DotSeries] = []
    for (method, some), (colour, shape) in zip(series, looks, strict=False):
        spreads = renormalised([one for one in some if one.system in places])
        spreads.sort(key=lambda one: places[one.system])
        if spreads:
            drawn.append(DotSeries(method, spreads, colour, shape, width=1))
    values = [[one.label, *spread] for one in drawn for spread in one.spreads]
    best = (
        max(s.spreads, key=lambda one: one.value or 0.0).system + f" under {s.label}" for s in drawn
    )
    alt = (
        f"Scores of {len(order)} systems under {len(drawn)} methods, re-normalised to 0 to 1, in "
        f"the order of {ordered_by}. Best: {', '.join(best)}."
    )
    if not drawn:
        why = f"no system is in {ordered_by}" if not order else "no method separates the systems"
        alt = f"Nothing to draw: {why}."
    axis = quantitative(
        "value", "re-normalised score (best system 1, worst 0)", {"nice": False}, format=".2f"
    )
    return Figure(
        name="methods",
        title="The same systems under several methods",
        subtitle=f"Systems in the order of {ordered_by}; lines: standard error, re-normalised",
        alt=alt,
        spec=dots(order, drawn, axis, beside=True) if drawn else {},
        data=Table.of(
            ["method", "system", "value", "low", "high"],
            values,
            "Scores re-normalised per method, with standard error",
        ),
    )


def renormalised(scores: Sequence[Spread]) -> list[Spread]:
    """Scale scores to 0..1, ranges with them; empty where all scores are equal."""
    values = [one.value for one in scores if one.value is not None]
    if not values or max(values) == min(values):
        return []
    low, size = min(values), max(values) - min(values)
    return [
        Spread(one.system, *(None if at is None else (at - low) / size for at in one[1:]))
        for one in scores
        if one.value is not None
    ]


# ---- values with intervals -----------------------------------------------------------------------


def intervals_figure(
    rows: Sequence[Spread],
    quantity: str,
    title: str,
    subtitle: str = "",
    *,
    name: str,
    draft: bool = False,
    zero: bool = False,
) -> Figure:
    """Draw named values with their intervals, in the given order; undefined ones are left out.

    Args:
        rows: Names, values and intervals; equal names are one row.
        quantity: The title of the axis.
        title: The title of the figure.
        subtitle: What the bars are.
        name: The name of the figure.
        draft: Whether the grades are drafts.
        zero: Draw a line at 0.
    """
    known = [one for one in rows if one.value is not None]
    alt = f"Nothing to draw: {quantity} is undefined."
    if known:
        values = [one.value or 0.0 for one in known]
        alt = (
            f"Dot plot of {len(known)} values of {quantity}, from {min(values):.3f} to "
            f"{max(values):.3f}. First: {known[0].system} at {values[0]:.3f}."
        )
    axis = quantitative("value", quantity, {"zero": zero, "nice": True}, grid=False, tickCount=6)
    names = list(dict.fromkeys(one.system for one in known))
    return Figure(
        name=name,
        title=title,
        subtitle=subtitle,
        alt=alt,
        draft=draft,
        spec=dots(names, [DotSeries("", known)], axis, zero=zero, limit=2 * NAME_WIDTH)
        if known
        else {},
        data=Table.of(["name", "value", "low", "high"], rows, title),
    )


def series_figure(
    series: Mapping[str, Sequence[Spread]],
    columns: tuple[str, str],
    quantity: str,
    title: str,
    subtitle: str,
    *,
    name: str,
    draft: bool = False,
) -> Figure:
    """Draw several shares of each name with their ranges, beside each other.

    Args:
        series: Values by the name of the series, each in the order of the rows; undefined ones are
            left out.
        columns: The headings of series and names in the data.
        quantity: The title of the axis.
        title: The title of the figure.
        subtitle: What the bars are.
        name: The name of the figure.
        draft: Whether the grades are drafts.
    """
    drawn = []
    for number, (label, spreads) in enumerate(series.items()):
        # more series than colours: the next round has other pairs of colour and shape
        shape = SHAPES[(number + number // len(SERIES)) % len(SHAPES)]
        known = [one for one in spreads if one.value is not None]
        drawn.append(DotSeries(label, known, SERIES[number % len(SERIES)], shape))
    names = list(dict.fromkeys(one.system for some in drawn for one in some.spreads))
    alt = f"Nothing to draw: {quantity} is undefined."
    if names:
        firsts = [f"{one.label} {one.spreads[0].value:.3f}" for one in drawn if one.spreads]
        alt = (
            f"Dot plot of {len(names)} {columns[1]}s by {', '.join(series)}. "
            f"First: {names[0]}, {', '.join(firsts)}."
        )
    axis = quantitative("value", quantity, {"domain": [0, 1], "nice": False}, tickCount=6)
    rows = [[one, *spread] for one, spreads in series.items() for spread in spreads]
    return Figure(
        name=name,
        title=title,
        subtitle=subtitle,
        alt=alt,
        draft=draft,
        spec=dots(names, drawn, axis, beside=True) if names else {},
        data=Table.of([*columns, "value", "low", "high"], rows, title),
    )


# ---- corrected leaderboards, ranks, attacks ------------------------------------------------------


def corrected_scores(
    systems: Sequence[tuple[str, float, float, float | None, float | None, float]],
    measure: str,
    spread: str,
    *,
    draft: bool = False,
) -> Figure:
    """Draw scores by grades alone, corrected, and by people alone.

    `systems` are rows of the data: system, score by grades, corrected score with its interval,
    score by people. `spread` describes the bars.
    """
    graded = [Spread(one[0], one[1]) for one in systems]
    corrected = [Spread(*one[:1], *one[2:5]) for one in systems]
    people = [Spread(one[0], one[5]) for one in systems]
    alt = f"Nothing to draw: no system has {measure}."
    if systems:
        first = corrected[0]
        alt = (
            f"Dot plot of {len(systems)} systems by {measure}: by grades alone, corrected, by "
            f"people alone. The best as corrected is {first.system}, at {first.value:.3f}; by "
            f"grades alone it stands at {graded[0].value:.3f}."
        )
    return Figure(
        name="corrected",
        title=f"{measure} as people's decisions correct it",
        subtitle=spread,
        alt=alt,
        draft=draft,
        spec=dots(
            [one[0] for one in systems],
            [
                DotSeries("by grades alone", graded, SERIES[1], "triangle-right"),
                DotSeries("corrected", corrected),
                DotSeries("by people alone", people, GREY, "cross", filled=False),
            ],
            quantitative("value", measure, {"zero": False, "nice": True}, grid=False, tickCount=6),
        ),
        data=Table.of(
            ["system", "by grades alone", "corrected", "low", "high", "by people alone"],
            systems,
            f"{measure}. {spread}",
        ),
    )


def ranks(
    spans: Sequence[tuple[str, float, float, float, float, float]],
    over: str,
) -> Figure:
    """Draw the ranks of systems over all ways to make a leaderboard, described by `over`.

    `spans` are rows of the data: system, best rank, first quartile, median, third quartile, worst.
    """
    last = len(spans)
    step = 1 + last // 21
    alt = "Nothing to draw: no combination ranks systems."
    if spans:
        first, widest = spans[0], max(spans, key=lambda one: one[5] - one[1])
        alt = (
            f"Ranks of {last} systems over {over}. The best by its median, {first[0]}, stands "
            f"between {first[1]:g} and {first[5]:g}; the widest range has {widest[0]}, from "
            f"{widest[1]:g} to {widest[5]:g}."
        )
    return Figure(
        name="sensitivity",
        title="Ranks over all combinations",
        subtitle=f"Line: best to worst rank, bar: the middle half, dot: the median; {over}",
        alt=alt,
        spec=dots(
            [one[0] for one in spans],
            [
                DotSeries("range", [Spread(one[0], None, one[1], one[5]) for one in spans]),
                DotSeries("", [Spread(one[0], one[3], one[2], one[4]) for one in spans], width=6),
            ],
            quantitative(
                "value",
                "rank (1 is best)",
                {"domain": [0.5, last + 0.5], "nice": False, "zero": False},
                grid=False,
                tickMinStep=1,
                format="d",
                values=list(range(step, last + 1, step)),
            ),
        ),
        data=Table.of(
            ["system", "best", "low", "median", "high", "worst"],
            spans,
            "Ranks over all combinations",
        ),
    )


def attack_lifts(
    lifts: Sequence[tuple[str, float, float | None, float | None, bool]],
    what: str,
) -> Figure:
    """Draw how much more often attacks are rated high than their controls.

    `lifts` are rows of the data: attack, rate minus that of the control with its interval, whether
    the attack succeeds. `what` names the cells that a rate counts.
    """
    won = [one[0] for one in lifts if one[4]]
    alt = "Nothing to draw: no attack was tested."
    if lifts:
        best = max(lifts, key=lambda one: abs(one[1]))
        alt = (
            f"Dot plot of {len(lifts)} attacks. Succeeding: {', '.join(won) or 'none'}. The "
            f"largest change is that of {best[0]}, {signed(best[1], 3)}."
        )
    return Figure(
        name="attacks",
        title="Effect of attacks",
        subtitle=f"Cells {what}; bars: 95% interval over queries; diamonds: attacks that succeed",
        alt=alt,
        spec=dots(
            [one[0] for one in lifts],
            [
                DotSeries(
                    "succeeds", [Spread(*one[:4]) for one in lifts if one[4]], ALARM, "diamond"
                ),
                DotSeries("", [Spread(*one[:4]) for one in lifts if not one[4]]),
            ],
            quantitative(
                "value",
                "rate of the attack minus that of its control",
                {"zero": True, "nice": True},
                grid=False,
                tickCount=6,
                format="+.2~f",
            ),
            zero=True,
            limit=290,
        ),
        data=Table.of(
            ["attack", "lift", "low", "high", "succeeds"], lifts, f"Lift of attacks: cells {what}"
        ),
    )
