"""Use of sealed parts by clients of the service, and the bound of what they can have learnt.

The bound is that of `stats.ladder.error_bound`. It holds if the sealed items of different queries
are drawn independently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exampp.records.clients import SealedUse
from exampp.records.wording import counted
from exampp.results.result import Table
from exampp.stats.ladder import error_bound

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure


def sealed_use_table(use: Sequence[SealedUse]) -> Table:
    """Return a row per sealed part that clients submitted to."""
    names = ["bank", "sealed", "clients", "submissions", "reports", "score", "bound", "last"]
    rows = [
        (
            *(one.bank, one.sealed_at[:10], one.clients, one.submissions, len(one.bests)),
            *(one.bests[-1].score if one.bests else None, sealed_bound(one), one.last[:16]),
        )
        for one in use
    ]
    return Table.of(names, rows, "Submissions to the sealed part")


def sealed_bound(use: SealedUse) -> float | None:
    """Bound the error of all sealed scores; None before the first new best.

    Of several ladders, the one with the fewest queries counts.
    """
    if not use.bests:
        return None
    return error_bound(use.submissions, use.depending, min(one.queries for one in use.bests))


def sealed_use_figure(use: SealedUse) -> Figure:
    """Draw the best score after each submission to a sealed part, and whose it is.

    Each ladder has a line.
    """
    from exampp.results.plots.figure import (
        ACCENT,
        DESCRIBED,
        GREY,
        SERIES,
        Figure,
        inline_rows,
        layer,
        nominal,
        quantitative,
    )

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
    colour = nominal("client", clients, SERIES if legend else [ACCENT], legend)
    layers = [
        layer(
            "line",
            {**places, "detail": {"field": "ladder"}},
            inline_rows(names, lines),
            interpolate="step-after",
            color=GREY,
        ),
        layer(
            "point",
            {**places, "color": colour, **DESCRIBED},
            inline_rows(("client", *names[1:], "about"), dots),
            filled=True,
            size=70,
            opacity=1,
        ),
    ]
    bound = sealed_bound(use)
    subtitle = counted(use.submissions, "submission")
    if bound is not None and bound < 1:
        subtitle += f"; each within {_up(bound)} of its expected value on new items (95 %)"
    return Figure(
        name="sealed",
        title=f"Best scores on the sealed part of {use.bank}",
        subtitle=subtitle,
        alt=describe_sealed_use(use),
        spec={"width": 520, "height": 260, "layer": layers} if use.bests else {},
        data=Table.of(
            ["submission", "client", "score", "queries", "at", "ladder"],
            [
                (one.submission, one.client, one.score, one.queries, one.at, one.ladder)
                for one in use.bests
            ],
            "New best scores on the sealed part",
        ),
    )


def describe_sealed_use(use: SealedUse) -> str:
    """Return who used a sealed part, and how much they can have learnt."""
    bound = sealed_bound(use)
    used = (
        f"{counted(use.clients, 'client')} requested {counted(use.submissions, 'score')} of the "
        f"part of {use.bank} sealed on {use.sealed_at[:10]}"
    )
    if bound is None:
        return f"{used}, and no new best was reported."
    if bound == 1:
        return f"{used}. There are too few queries to bound how much they can have learnt."
    return (
        f"{used}. With a probability of 95 %, each of these scores differs by at most "
        f"{_up(bound)} from its expected value on new sealed items."
    )


def _up(bound: float) -> str:
    """Round a bound up: the guarantee must not promise more than it holds."""
    return f"{math.ceil(100 * bound) / 100:.2f}"
