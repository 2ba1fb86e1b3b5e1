"""What is found of items and of the exam they make: an item, an exam, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from exampp.analysis.item_abilities import ItemAbilities
from exampp.analysis.item_selection import ItemChoice
from exampp.evaluate.chance import ChanceFloor
from exampp.evaluate.item_scores import ItemScores
from exampp.stats.item_analysis import Bools, SplitHalves

FEWEST_JUDGED = 5
"""With fewer passages on a side, what they cover tells nothing of an item."""


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """One item. What is undefined is None.

    `difficulty` is the mean credit of systems; `item_rest` its correlation with the rest of the
    exam, `item_rest_without` the same without the system of the jackknife whose absence changes
    alpha most. `relevant` and `not_relevant` are the shares covered of passages that people judged
    so. `swaps` are the pairs of systems that stand otherwise without it. `constant` tells that it
    is the same for all: "all pass", "all fail" or "all same". `sealed` is None where the bank was
    never split. `why` it should be looked at; nothing where there is no reason.
    """

    query_id: str
    item_id: str
    text: str
    difficulty: float | None
    constant: str
    item_total: float | None
    item_rest: float | None
    item_rest_without: float | None
    alpha_if_deleted: float | None
    relevant: float | None
    not_relevant: float | None
    swaps: int
    lint: tuple[str, ...]
    sealed: bool | None
    why: tuple[str, ...]
    discrimination: float | None = None
    location: float | None = None

    @property
    def worst(self) -> float:
        """The lowest of what speaks against it: lower is worse."""
        known = (self.item_rest, self.item_rest_without, self.lift)
        return min((value for value in known if value is not None), default=1.0)

    @property
    def lift(self) -> float | None:
        """By how much more of the relevant passages it covers than of the others."""
        if self.relevant is None or self.not_relevant is None:
            return None
        return self.relevant - self.not_relevant


@dataclass(frozen=True, slots=True)
class ExamRow:
    """The exam as some of the systems sit it: `drop` is the share of the worst that are left out.

    None where one system is left out, which `name` tells. `alpha_varying` is alpha without the
    items that are the same for all.
    """

    name: str
    drop: float | None
    systems: int
    alpha: float | None
    alpha_varying: float | None
    all_pass: int
    all_fail: int
    constant: int
    negative: int
    items: SplitHalves
    queries: SplitHalves


@dataclass(frozen=True, slots=True)
class Jackknife:
    """Alpha without each system in turn; `lowest` is at the system whose absence lowers it most."""

    without: Mapping[str, float | None]
    system: str
    lowest: float | None
    error: float | None


AGAINST = "against the rest"
AGAINST_WITHOUT = "against the rest without the outlier"
NOT_RELEVANT = "covers what is not relevant"


@dataclass(frozen=True, slots=True)
class ItemFindings:
    """What is found of the items of an exam.

    `exams` are the exam with all systems first; `floor` is the chance floor of Cover, `choices` the
    smaller exams against official leaderboards. `repeated` gives, by places, the items that repeat
    another one, which count once in all statistics of the exam and of items. `notes` are those of
    the grades, and `lacking` is what there is none of.
    """

    scores: ItemScores
    caption: str
    grader_key: str
    items: tuple[ItemStatistics, ...]
    exams: tuple[ExamRow, ...]
    jackknife: Jackknife
    floor: ChanceFloor
    choices: tuple[ItemChoice, ...] = ()
    repeated: Mapping[int, int] = field(default_factory=dict)
    abilities: ItemAbilities | None = None
    notes: tuple[str, ...] = ()
    officials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lacking: str = ""

    @property
    def statistic(self) -> str:
        """What alpha is called: KR-20 where items are 0 or 1 and count alike."""
        return "KR-20" if self.scores.kind == "covered" and self.scores.equal else "alpha"

    @property
    def distinct(self) -> int:
        """How many items there are, repeated ones once."""
        return len(self.items) - len(self.repeated)

    @property
    def undefined(self) -> str:
        """Why alpha is undefined, where it is; "" where it is not."""
        if self.exams[0].alpha is not None:
            return ""
        if self.lacking:
            return self.lacking[:1].lower() + self.lacking[1:]
        if len(self.scores.systems) < 2:
            return f"fewer than 2 systems sat the exam ({len(self.scores.systems)})"
        if self.distinct < 2:
            return "there is 1 item" if not self.repeated else "all items are the same one"
        return "all systems have the same score: the exam tells none of them apart"

    @property
    def look(self) -> tuple[ItemStatistics, ...]:
        """The items to look at, worst first."""
        wanted = (row for row in self.items if row.why)
        return tuple(sorted(wanted, key=lambda row: (row.worst, row.query_id, row.item_id)))

    @property
    def without_look(self) -> Bools:
        """Which items are left without those to look at."""
        return np.array([not row.why for row in self.items], np.bool_)
