"""Human decisions on a cell, and the decision in force.

Decisions are appended, never changed. Several people may decide the same cell:

- A decision of an assessor replaces all earlier decisions of this person on the cell, including
  those made as an adjudicator. A decision without a rating withdraws them.
- An adjudication replaces all earlier adjudications, whoever made them. One without a rating
  withdraws them. Decisions of assessors stay.
- An adjudication that is neither replaced nor withdrawn is in force. Without one the newest
  decision of an assessor is in force, and the cell is disputed if assessors differ.

The newest decision is the last by time and then by number: decisions made elsewhere are imported
later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exampp.records.ids import content_hash

Design = Literal["uniform", "influence"]
UnitKind = Literal["passage", "item"]

FORMULA = 1
"""The version of the formula that made the probabilities."""


class DrawnUnit(NamedTuple):
    """A unit of a sample: its query, its passage or item, and its inclusion probability."""

    query_id: str
    unit_id: str
    pi: float


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """A sample plan: the drawn units, the population, and the design.

    `measure` is the measure that the sample is for, `k` the depth of the rankings. A unit is a
    passage of a query, or an item, which is decided on all passages that could cover it. `expected`
    is the requested number of units, `pool_size` the number of all units, `pool_hash` the hash of
    their names. `min_rating` is the lowest rating of an answer, `min_relevant` the lowest judgment
    of a relevant passage. `grader`, `bank` and `kind` select the items and grades of the draw.
    `number` counts through the collection.
    """

    design: Design
    seed: int
    fold_seed: int
    expected: float
    unit: UnitKind
    measure: str
    k: int
    min_rating: int
    min_relevant: int
    grader: str
    bank: str
    kind: str
    pool_hash: str
    pool_size: int
    systems: tuple[str, ...]
    drawn: tuple[DrawnUnit, ...]
    author: str = ""
    at: str = ""
    formula: int = FORMULA
    number: int = field(default=0, compare=False)

    @property
    def sample(self) -> str:
        """Return the id of the labels: a larger plan of the sample has those of a smaller one."""
        design = [self.design, self.seed, self.fold_seed, self.unit, self.k, self.formula]
        bound = [self.min_rating, self.bank, self.kind] if self.unit == "item" else []
        encoded = json.dumps([*design, *bound])
        return content_hash(encoded, self.pool_hash, *sorted(self.systems))[:16]

    @property
    def digest(self) -> str:
        """Return the id of the plan in other collections."""
        return content_hash(self.sample, str(self.expected), *self._units())[:16]

    def _units(self) -> list[str]:
        return [f"{one.query_id}\t{one.unit_id}\t{one.pi!r}" for one in self.drawn]


def pool_hash(units: Iterable[tuple[str, str]]) -> str:
    """Return the hash of the names of all units, (query id, passage or item id), in any order."""
    return content_hash(*(f"{query}\t{unit}" for query, unit in sorted(units)))[:16]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of one person about one cell.

    `number` counts through the collection; `rating` None withdraws. `blind`: the automatic grade
    was hidden until the person had decided. `sample` names the sample that the decision was made
    on, if any (see `SamplePlan.sample`).
    """

    number: int
    author: str
    rating: int | None
    reason: str = ""
    at: str = ""
    blind: bool = False
    adjudicates: bool = False
    sample: str = ""


@dataclass(frozen=True, slots=True)
class CellDecision:
    """A decision with the cell that it is about.

    `item` is the item's text (empty if only its id is known), `passage_hash` the content hash of
    the passage's text, hexadecimal. `verdict`: the rating is yes (1) or no (0). `is_current`: the
    item is active and both texts are today's; other decisions are stored, but have no effect.
    `versions` are the keys of the two texts in the store.
    """

    decision: Decision
    query_id: str
    item_id: str
    passage_id: str
    item: str
    kind: str
    bank: str
    verdict: bool
    is_current: bool = False
    versions: tuple[int, int] = (0, 0)
    passage_hash: str = ""


@dataclass(frozen=True, slots=True)
class Dispute:
    """A cell on which assessors differ without adjudication.

    `decisions` are those in force, one per assessor, oldest first. `verdict`: they are yes (1) or
    no (0), not ratings. `versions` are the texts that they are about.
    """

    query_id: str
    item_id: str
    passage_id: str
    item: str
    kind: str
    bank: str
    verdict: bool
    decisions: tuple[Decision, ...]
    versions: tuple[int, int]

    @property
    def cell(self) -> tuple[str, str, str]:
        """Return the ids of query, item and passage."""
        return self.query_id, self.item_id, self.passage_id

    def crosses(self, min_rating: int) -> bool:
        """Return whether assessors differ on whether the passage answers the item at all."""
        return len({(one.rating or 0) >= min_rating for one in self.decisions}) > 1


def standing_decisions(decisions: Sequence[Decision]) -> dict[str, Decision]:
    """Return each assessor's newest decision, unless withdrawn; adjudications are left out."""
    newest: dict[str, Decision] = {}
    for decision in sorted(decisions, key=lambda one: (one.at, one.number)):
        if not decision.adjudicates:
            newest.pop(decision.author, None)
            newest[decision.author] = decision
    return {author: one for author, one in newest.items() if one.rating is not None}


def adjudication(decisions: Sequence[Decision]) -> Decision | None:
    """Return the newest adjudication, unless it is withdrawn or replaced by its author."""
    newest: Decision | None = None
    for one in sorted(decisions, key=lambda one: (one.at, one.number)):
        if one.adjudicates:
            newest = one if one.rating is not None else None
        elif newest is not None and one.author == newest.author:
            newest = None
    return newest


def replaces(later: Decision, earlier: Decision) -> bool:
    """Return whether a later decision on the same cell replaces an earlier one."""
    if later.adjudicates:
        return earlier.adjudicates
    # a withdrawn adjudication counts for no assessor
    stood = not earlier.adjudicates or earlier.rating is not None
    return stood and later.author == earlier.author


def effective_decision(decisions: Sequence[Decision]) -> Decision | None:
    """Return the decision that overrides the automatic grade; None if none is in force."""
    final = adjudication(decisions)
    if final is not None:
        return final
    return max(
        standing_decisions(decisions).values(), key=lambda one: (one.at, one.number), default=None
    )


def disputed(decisions: Sequence[Decision]) -> bool:
    """Return whether assessors differ without adjudication."""
    ratings = {one.rating for one in standing_decisions(decisions).values()}
    return len(ratings) > 1 and adjudication(decisions) is None


def deciders(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the people whose decisions are in force, whoever adjudicated last."""
    final = adjudication(decisions)
    return tuple(
        dict.fromkeys([*standing_decisions(decisions), *([final.author] if final else [])])
    )
