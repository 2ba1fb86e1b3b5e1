"""Cover by the turns of conversations: which turn a system misses.

Cover of a turn is the mean over the queries with items of it; items without a turn belong to the
whole conversation. Intervals are those of a mean of values between 0 and 1 (`stats.means`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import percent
from exampp.measures.cover import ItemScores
from exampp.measures.names import heading
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.notes import labelled, note
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.stats.estimate import Estimate
from exampp.stats.means import SHARE, mean_tests

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

_LEVEL = 0.95


class TurnSize(NamedTuple):
    """A turn, or 0 for the whole conversation, with its numbers of items and queries."""

    number: int
    items: int
    queries: int

    @property
    def name(self) -> str:
        """The name of the turn in tables and plots."""
        return f"turn {self.number}" if self.number else "conversation"


@dataclass(frozen=True, slots=True, repr=False)
class TurnCover(Result):
    """Cover of systems on the items of each turn.

    `rows` are systems with an estimate per turn; the highest Cover on all items is first.
    """

    turns: tuple[TurnSize, ...]
    rows: tuple[tuple[str, tuple[Estimate, ...]], ...]
    measure: str
    draft: bool = False

    @property
    def headline(self) -> str:
        """Name the turns on which the best system has its highest and lowest Cover."""
        system, covers = self.rows[0]
        values = [one.value or 0.0 for one in covers]
        most, least = int(np.argmax(values)), int(np.argmin(values))
        if values[most] == values[least]:
            return f"{system} has the same Cover on every turn, {values[most]:.3f}."
        return (
            f"{system} has its highest Cover on {self._place(most)}, {values[most]:.3f}, and its "
            f"lowest on {self._place(least)}, {values[least]:.3f}."
        )

    def _place(self, at: int) -> str:
        one = self.turns[at]
        return one.name if one.number else "items of the whole conversation"

    def plot(self) -> Figure:
        """Plot Cover by turn with its intervals."""
        from exampp.results.plots.dots import series_figure
        from exampp.results.plots.figure import Spread

        return series_figure(
            {
                turn.name: [
                    Spread(system, *(covers[at].value, covers[at].low, covers[at].high))
                    for system, covers in self.rows
                ]
                for at, turn in enumerate(self.turns)
            },
            ("turn", "system"),
            self.measure,
            f"{self.measure} by turn",
            f"Bars: {percent(_LEVEL)} interval over queries",
            name="turns",
            draft=self.draft,
        )

    def tables(self) -> dict[str, Table]:
        """Return a row per system, with a column per turn."""
        sizes = [
            f"{one.name} ({counted(one.items, 'item')} of {counted(one.queries, 'query')})"
            for one in self.turns
        ]
        table = Table.of(
            [Column("system"), *(Column(one.name, 3, interval=True) for one in self.turns)],
            [(system, *covers) for system, covers in self.rows],
            labelled(f"{self.measure} by turn", draft=self.draft),
            [note("turns", sizes=", ".join(sizes), level=percent(_LEVEL))],
            verdict=self.headline,
        )
        return {"turns": table}


def cover_by_turn(scores: ItemScores, texts: BankTexts, *, draft: bool = False) -> TurnCover | None:
    """Return Cover of every system on the items of each turn, or None if no item has one."""
    turn_of = {(one.query_id, one.item_id): one.turn or 0 for one in texts.items}
    queries = (scores.queries[at] for at in scores.query.tolist())
    turns = np.array([turn_of.get(key, 0) for key in zip(queries, scores.item_ids, strict=True)])
    if not turns.any() or not scores.systems:
        return None
    known = sorted(set(turns.tolist()), key=lambda turn: turn or np.inf)
    selected = [turns == turn for turn in known]
    covers = [_covers(scores, one) for one in selected]
    order = np.argsort(-np.round(scores.cover(), 9), kind="stable").tolist()
    return TurnCover(
        tuple(
            TurnSize(turn, int(one.sum()), len(scores.queries) - scores.emptied(one))
            for turn, one in zip(known, selected, strict=True)
        ),
        tuple((scores.systems[at], tuple(of[at] for of in covers)) for at in order),
        heading(f"Cover@{scores.k}", scores.min_rating),
        draft,
    )


def _covers(scores: ItemScores, selected: NDArray[np.bool_]) -> list[Estimate]:
    """Return Cover of every system on the selected items, over the queries that have some."""
    shares = scores.shares(selected)
    counts = scores.of_queries(shares[None])[0] > 0
    values = scores.of_queries(scores.credit * shares) * counts.sum()
    values = np.clip(values, *SHARE)
    tests = mean_tests(values, np.broadcast_to(counts, values.shape), SHARE, _LEVEL)
    return [one.estimate for one in tests]
