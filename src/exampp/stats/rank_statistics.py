"""The rank statistics there are, as data: their names, their headings, how they are computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.stats.rank_correlation import CorrelationRows, Floats, kendall_rows, spearman_rows
from exampp.stats.top_heavy import PERSISTENCE, kendall_at_rows, rbo_rows, tau_ap_rows

Rows = Callable[[Floats, Floats], CorrelationRows]


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """One statistic of scores [samples, n] and official values [n], higher being better.

    `name` reads back (see `rank_statistic`), `heading` is short, `meaning` explains it, and
    `no_interval` says why none is given, if so.
    """

    name: str
    heading: str
    meaning: str
    rows: Rows
    no_interval: str = ""


NO_INTERVAL_AT_THE_TOP = (
    "the top says too little about itself: "
    "in simulations intervals of RBO and tau@k held the truth too seldom"
)
_PLAIN = {
    "spearman": RankStatistic("spearman", "S", "Spearman's rho", spearman_rows),
    "kendall": RankStatistic("kendall", "K", "Kendall's tau-b", kendall_rows),
    "tau_ap": RankStatistic(
        "tau_ap", "AP", "tau_AP, its expectation over all orders of tied systems", tau_ap_rows
    ),
}
DEFAULT_STATISTICS = ("spearman", "kendall")
_AT = re.compile(r"kendall@(\d{1,6})")
_RBO = re.compile(r"rbo(?:\(p=([0-9.]+)\))?")


def rank_statistic(text: str) -> RankStatistic:
    """Read `spearman`, `kendall`, `tau_ap`, `rbo`, `rbo(p=0.8)` or `kendall@10`.

    Raises:
        InputError: There is no such statistic.
    """
    wanted = text.strip().lower()
    if wanted in _PLAIN:
        return _PLAIN[wanted]
    at, rbo = _AT.fullmatch(wanted), _RBO.fullmatch(wanted)
    if at and int(at[1]) >= 2:
        return _kendall_at(int(at[1]))
    if rbo:
        try:
            p = PERSISTENCE if rbo[1] is None else float(rbo[1])
        except ValueError:
            p = 0.0
        if 0 < p < 1:
            return _rbo(p)
    raise InputError(
        f"there is no rank statistic {text!r}",
        mend="Statistics: spearman, kendall, tau_ap, rbo, rbo(p=0.8) with p between 0 and 1, "
        "kendall@10 with 2 or more",
    )


def _kendall_at(k: int) -> RankStatistic:
    return RankStatistic(
        f"kendall@{k}",
        f"K@{k}",
        f"Kendall's tau-b of the {k} officially best of the systems compared, or of all if fewer, "
        "ties at the cut included",
        lambda scores, official: kendall_at_rows(scores, official, k),
        NO_INTERVAL_AT_THE_TOP,
    )


def _rbo(p: float) -> RankStatistic:
    return RankStatistic(
        "rbo" if p == PERSISTENCE else f"rbo(p={p})",
        "RBO" if p == PERSISTENCE else f"RBO({p})",
        f"rank-biased overlap (p={p}, extrapolated, its mean over all orders of tied systems)",
        lambda scores, official: rbo_rows(scores, official, p),
        NO_INTERVAL_AT_THE_TOP,
    )
