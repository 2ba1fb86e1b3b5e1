"""What assessors differ on, in the order of what it does to the leaderboard.

First come the cells on which they differ whether there is an answer at all: only these change
Cover. Among them those count more whose other side swaps more pairs of systems, then those that
move the differences of systems further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exampp.records.decisions import Disputed
from exampp.review.queue import Candidate, CellName


@dataclass(frozen=True, slots=True)
class WeighedDispute:
    """A dispute, and what hangs on it.

    `crosses` tells that the assessors differ on whether there is an answer; `effect` is what comes
    of the other side, None where no system would move or nobody sees another side.
    """

    dispute: Disputed
    crosses: bool
    effect: Candidate | None

    @property
    def weight(self) -> tuple[bool, float, float]:
        """What disputes are ordered by, the largest first."""
        swaps, gaps = (self.effect.swaps, self.effect.gaps) if self.effect else (0.0, 0.0)
        return self.crosses, swaps, gaps


def weighed(
    found: Sequence[Disputed], effects: Mapping[CellName, Candidate], min_rating: int
) -> list[WeighedDispute]:
    """Disputes with what hangs on them, the weightiest first; ties in the order given.

    `effects` are those of their cells (see `review.queue.effects`).
    """
    crossing = [one.crosses(min_rating) for one in found]
    return sorted(
        (
            WeighedDispute(one, crosses, effects.get(one.cell) if crosses else None)
            for one, crosses in zip(found, crossing, strict=True)
        ),
        key=lambda one: one.weight,
        reverse=True,
    )
