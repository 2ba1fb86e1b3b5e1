"""Use of sealed parts by clients of the service, and the bound of what they can have learnt.

The bound is that of `stats.ladder.error_bound`. It holds if the sealed items of different queries
are drawn independently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from exampp.records.clients import SealedUse
from exampp.records.wording import counted
from exampp.results.result import Table
from exampp.stats.ladder import error_bound


def sealed_use_table(use: Sequence[SealedUse]) -> Table:
    """Return a row per sealed part that clients submitted to."""
    names = ["bank", "sealed", "clients", "submissions", "reports", "score", "bound", "last"]
    rows = [
        (
            *(one.bank, one.sealed_at[:10], one.clients, one.submissions, one.reports),
            *(one.report, sealed_bound(one), one.last[:16]),
        )
        for one in use
    ]
    return Table.of(names, rows, "Submissions to the sealed part")


def sealed_bound(use: SealedUse) -> float | None:
    """Bound the error of all sealed scores; None before the first report of a new best."""
    return error_bound(use.submissions, use.depending, use.queries) if use.queries else None


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
    # rounded up: the guarantee must not promise more than it holds
    return (
        f"{used}. With a probability of 95 %, each of these scores differs by at most "
        f"{math.ceil(100 * bound) / 100:.2f} from its expected value on new sealed items."
    )
