"""Human decisions on a cell, and the decision in force.

Decisions are appended, never changed. Several people may decide the same cell:

- A decision of an assessor replaces all earlier decisions of this person on the cell, including
  those made as an adjudicator. A decision without a rating withdraws them.
- An adjudication replaces all earlier adjudications by anybody. One without a rating
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
"""The version of the formula for the probabilities."""


class DrawnUnit(NamedTuple):
    """A sampled unit: query, passage or item, and inclusion probability."""

    query_id: str
    unit_id: str
    pi: float


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """A sampling plan: the drawn units, the population, and the design.

    `measure` is the corrected measure, `k` the depth of the rankings. A unit is a passage of a
    query, or an item, which is decided on all passages that may cover it. `expected` is the
    requested number of units, `pool_size` the number of all units, `pool_hash` the hash of their
    names. `min_rating` is the lowest rating of an answer, `min_relevant` the lowest judgment of a
    relevant passage. `grader`, `bank` and `kind` select items and grades. `number` is unique in the
    collection.
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
        """Return the id of the sample, shared by larger and smaller plans."""
        design = [self.design, self.seed, self.fold_seed, self.unit, self.k, self.formula]
        bound = [self.min_rating, self.bank, self.kind] if self.unit == "item" else []
        encoded = json.dumps([*design, *bound])
        return content_hash(encoded, self.pool_hash, *sorted(self.systems))[:16]

    @property
    def digest(self) -> str:
        """Return the id of the plan across collections."""
        units = (f"{one.query_id}\t{one.unit_id}\t{one.pi!r}" for one in self.drawn)
        return content_hash(self.sample, str(self.expected), *units)[:16]


def pool_hash(units: Iterable[tuple[str, str]]) -> str:
    """Return the order-independent hash of unit names, (query id, passage or item id)."""
    return content_hash(*(f"{query}\t{unit}" for query, unit in sorted(units)))[:16]


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a person on a cell.

    `number` is unique in the collection; `rating` None withdraws. `blind`: the grade was hidden
    until the decision. `sample` names the sample of the cell, if any (see `SamplePlan.sample`).
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
    """A decision with its cell.

    `item` is the text of the item (empty if only the id is known), `passage_hash` the hexadecimal
    hash of the passage text. `verdict`: the rating is yes (1) or no (0). `is_current`: the item is
    active and both texts are current; other decisions are stored but have no effect. `versions` are
    the keys of the two texts in the store.
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
class ReportDecision:
    """A decision made in an interactive report: a rated cell, or an item to retire.

    `grader` is the key of the graded report, `place` the field of the file; an item to retire has
    no passage and no rating.
    """

    cell: CellDecision
    grader: str
    place: str

    @property
    def retires(self) -> bool:
        """Return whether the item is to be retired."""
        return not self.cell.passage_id


@dataclass(frozen=True, slots=True)
class Dispute:
    """A cell on which assessors disagree, without an adjudication.

    `decisions` has the valid one of each assessor, oldest first. `verdict`: they are yes (1) or no
    (0). `versions` are the keys of the two texts.
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
        """Return whether assessors disagree about whether there is an answer."""
        return len({(one.rating or 0) >= min_rating for one in self.decisions}) > 1


def standing_decisions(decisions: Sequence[Decision]) -> dict[str, Decision]:
    """Return the newest decision of each assessor, without withdrawn ones and adjudications."""
    newest: dict[str, Decision] = {}
    for decision in sorted(decisions, key=lambda one: (one.at, one.number)):
        if not decision.adjudicates:
            newest.pop(decision.author, None)
            newest[decision.author] = decision
    return {author: one for author, one in newest.items() if one.rating is not None}


def adjudication(decisions: Sequence[Decision]) -> Decision | None:
    """Return the newest adjudication, unless it was withdrawn or replaced by its author."""
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
    # anyone can replace a withdrawn adjudication
    stood = not earlier.adjudicates or earlier.rating is not None
    return stood and later.author == earlier.author


def effective_decision(decisions: Sequence[Decision]) -> Decision | None:
    """Return the decision that overrides the grade; None if none is in force."""
    final = adjudication(decisions)
    if final is not None:
        return final
    return max(
        standing_decisions(decisions).values(), key=lambda one: (one.at, one.number), default=None
    )


def disputed(decisions: Sequence[Decision]) -> bool:
    """Return whether assessors disagree and no adjudication is in force."""
    ratings = {one.rating for one in standing_decisions(decisions).values()}
    return len(ratings) > 1 and adjudication(decisions) is None


def deciders(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the people with decisions in force, including the last adjudicator."""
    final = adjudication(decisions)
    return tuple(
        dict.fromkeys([*standing_decisions(decisions), *([final.author] if final else [])])
    )
