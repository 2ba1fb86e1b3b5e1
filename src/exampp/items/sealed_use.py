"""Use of sealed parts by clients of the service, and the bound of what they can have learnt.

The bound is that of `stats.ladder.error_bound`. It holds if the sealed items of different queries
are drawn independently.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.records.clients import SealedUse
from exampp.records.wording import counted
from exampp.results.result import Table
from exampp.stats.ladder import error_bound
from exampp.store.clients import sealed_use

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


def last_sealed_use(connection: sqlite3.Connection, bank: str | None = None) -> SealedUse:
    """Return the use of the sealed part (of one bank) that clients submitted to last.

    Raises:
        InputError: There is none.
    """
    used = sealed_use(connection, bank)
    if not used:
        raise InputError(
            "no client submitted a system to the sealed part",
            hint="Seal a part with exampp bank split, and offer the exam with exampp api",
        )
    return used[0]


def sealed_use_figure(use: SealedUse) -> Figure:
    """Draw the best score after each submission to a sealed part, with its bound in words."""
    from exampp.results.plots.lines import best_scores

    bound = sealed_bound(use)
    subtitle = counted(use.submissions, "submission")
    if bound is not None and bound < 1:
        subtitle += f"; each within {_up(bound)} of its expected value on new items (95 %)"
    return best_scores(use, subtitle, describe_sealed_use(use))


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
