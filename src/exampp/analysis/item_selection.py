"""Selection of items: how well smaller exams agree with official leaderboards.

Items are chosen by their agreement with the rest of the exam, without human labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exampp.measures.cover import ItemScores
from exampp.results.notes import Note, note
from exampp.results.result import Table
from exampp.results.view import Cell, Column, programs_only
from exampp.stats.estimate import Bools, Floats
from exampp.stats.item_analysis import (
    CUT,
    SPLITS,
    HeldOut,
    Score,
    cross_validate,
    ranked,
    select_items,
)
from exampp.stats.rank_correlation import kendall

CUTS = (0.0, 0.1, 0.2, 0.3)
FEWEST_SYSTEMS = 12
"""With fewer officially ranked systems there are fewer than six to choose items by, or to rank."""
ALL, RANDOM = "all", "random"
_NAMES = {ALL: "all", RANDOM: f"as many random ones as from {CUT:g}"}


# ---- choices -------------------------------------------------------------------------------------


class ItemChoice(NamedTuple):
    """One selection of items, and how well the exam of these ranks systems.

    `chosen` is "all", the least item-rest correlation, or "random": as many as at `CUT`.
    `emptied` queries have none of the items. `pooled` is Kendall's tau-b with the official order
    where items count as in Cover wherever they are, `cover` where the mean goes over the queries
    that still have items. The others are the same for systems that had no part in choosing the
    items; None: undefined, or not computed.
    """

    official: str
    chosen: float | str
    items: int | None
    emptied: int | None
    pooled: float | None
    cover: float | None
    held_out: HeldOut | None
    held_out_cover: HeldOut | None


def choices(
    scores: ItemScores,
    officials: Mapping[str, Mapping[str, float]],
) -> Iterator[ItemChoice]:
    """Yield every selection of items against every official leaderboard (rank 1 is best)."""
    for official, ranks in officials.items():
        yield from _against(scores, official, ranks)


def _against(scores: ItemScores, official: str, ranks: Mapping[str, float]) -> Iterator[ItemChoice]:
    both, better = _both(scores.systems, ranks)
    columns, credit = scores.columns[both], scores.credit[both]
    ways: tuple[Score, Score] = (
        lambda selected: columns @ selected,
        lambda selected: credit @ scores.shares(selected),
    )
    held_out: Mapping[tuple[float | str, int], HeldOut] = {}
    if len(better) >= FEWEST_SYSTEMS:
        held_out = cross_validate(columns, better, CUTS, ways, CUT)
    selections: dict[float | str, Bools | None] = {ALL: np.ones(len(scores.item_ids), np.bool_)}
    selections |= {cut: select_items(scores.columns, cut) for cut in CUTS}
    selections[RANDOM] = None
    for name, selected in selections.items():
        pooled, cover = (
            None if selected is None else kendall(ranked(way(selected)), better).value
            for way in ways
        )
        yield ItemChoice(
            official,
            name,
            None if selected is None else int(selected.sum()),
            None if selected is None else scores.emptied(selected),
            pooled,
            cover,
            held_out.get((name, 0)),
            held_out.get((name, 1)),
        )


def _both(systems: Sequence[str], ranks: Mapping[str, float]) -> tuple[Bools, Floats]:
    """Return the systems in the official leaderboard, and their values, higher is better."""
    both = np.array([system in ranks for system in systems], np.bool_)
    return both, -np.array([ranks[system] for system in systems if system in ranks], np.float64)


# ---- the table -----------------------------------------------------------------------------------


def choices_table(choices: Sequence[ItemChoice], of: str) -> Table:
    """Return Kendall's tau with the official order, in sample and held out, of the scores `of`."""
    several = len({one.official for one in choices}) > 1
    sample, rest = "tau, all systems", "tau, systems held out"
    columns = [
        Column("official", readers="all" if several else "programs"),
        *(Column("items", readers="people"), *programs_only("chosen")),
        *(Column("kept", 0, key="items"), Column("emptied", 0)),
        *(Column("pooled", 3, sample, "tau_pooled"), Column("Cover", 3, sample, "tau_cover")),
        *(Column("pooled", 3, rest, "held_out_tau"), *programs_only("held_out_error")),
        *(Column("better", 3, rest, readers="people"), *programs_only("held_out_better")),
        Column("Cover", 3, rest, "held_out_cover_tau"),
        *programs_only("held_out_cover_error", "held_out_cover_better"),
    ]
    rows: list[list[Cell]] = []
    for one in choices:
        held_out, covered = (
            (h.tau, h.error, h.better) if h else (None,) * 3
            for h in (one.held_out, one.held_out_cover)
        )
        word = isinstance(one.chosen, str)
        name = _NAMES[str(one.chosen)] if word else f"item-rest from {one.chosen:g}"
        better = f"{one.held_out.better:.0%}" if one.held_out and one.chosen != ALL else None
        rows.append(
            [
                *(one.official, name, str(one.chosen), one.items, one.emptied),
                *(one.pooled, one.cover, *held_out[:2], better, held_out[2], *covered),
            ]
        )
    caption = f"{of} on fewer items against the official leaderboard: Kendall's tau-b"
    return Table.of(columns, rows, caption, _notes(choices))


def _notes(choices: Sequence[ItemChoice]) -> Iterator[Note]:
    yield note("choice-meaning")
    if any(one.held_out for one in choices):
        yield note("choice-held-out", splits=SPLITS)
    else:
        yield note("choice-not-held-out", least=FEWEST_SYSTEMS)
    yield note("choice-evidence")
