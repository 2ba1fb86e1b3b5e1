"""What became of the specifications of a multiverse: scores, ranks of systems, orders of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from exampp.evaluate.cover import Missing

NEARLY = 0.95


@dataclass(frozen=True, slots=True)
class Specification:
    """One way to make a leaderboard; `k` is None where the measure reads whole rankings."""

    grader: str
    bank: str
    measure: str
    k: int | None
    min_rating: int
    missing: Missing


AXES = tuple(one.name for one in fields(Specification))


class RankedSpecification(NamedTuple):
    """What became of a specification: its scores; why it is impossible; which one it equals."""

    specification: Specification
    scores: Mapping[str, float]
    impossible: str = ""
    equal_to: int | None = None


@dataclass(frozen=True, slots=True)
class SystemRange:
    """The ranks of a system: the best, the worst, the median, and the share of first places."""

    system: str
    best: float
    worst: float
    median: float
    first: float
    specifications: int


@dataclass(frozen=True, slots=True)
class PairOrder:
    """Two systems: the share of specifications in which the first is above (a tie is half)."""

    first: str
    second: str
    share: float
    specifications: int

    @property
    def verdict(self) -> str:
        """Unanimous, nearly so (.95 of the specifications), or open."""
        decided = max(self.share, 1 - self.share)
        if decided == 1:
            return "unanimous"
        return "nearly" if decided >= NEARLY else "open"


@dataclass(frozen=True, slots=True)
class MissingBounds:
    """Cover at one threshold and cutoff over all grades that missing cells could have.

    `widest` is the largest range of a system's score. Of `pairs` that the scores order, `certain`
    keep their order whatever the missing cells are.
    """

    grader: str
    bank: str
    k: int
    min_rating: int
    widest: float
    pairs: int
    certain: int


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of a leaderboard under every specification that was declared.

    `outcomes` are all that were declared, in order; `counted` number those that could be computed
    and differ. `systems` go by their median rank; `pairs` name the one first that is above more
    often. `between` holds Kendall's tau of all pairs of counted specifications; `officials` that of
    each with official leaderboards (None: undefined). `by_axis` is the median tau of specifications
    that differ in that axis alone. `keys` are those of the graders, by name.
    """

    outcomes: tuple[RankedSpecification, ...]
    counted: tuple[int, ...]
    systems: tuple[SystemRange, ...]
    pairs: tuple[PairOrder, ...]
    between: tuple[float, ...]
    by_axis: Mapping[str, float]
    officials: Mapping[str, tuple[float | None, ...]]
    bounds: tuple[MissingBounds, ...]
    notes: tuple[str, ...] = ()
    reason: str = ""
    draft: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
