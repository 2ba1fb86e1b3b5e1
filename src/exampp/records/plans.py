"""A sample of what systems returned, drawn with known probabilities for people to decide."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exampp.records.ids import content_hash

Design = Literal["uniform", "influence", "uncertainty"]
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
    """What was drawn, from what, and how.

    `measure` is the one that it was drawn for, `k` the depth of the rankings; a unit is a passage
    of a query, or an item, which is decided on all passages that could cover it. `expected` is the
    number of units that was asked for, `pool_size` that of all, `pool_hash` that of their names.
    `min_rating` is the lowest rating of an answer, `min_relevant` the lowest judgment of a relevant
    passage. `grader`, `bank` and `kind` are those whose items and grades were drawn by. `number`
    counts through the collection.
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
        """What labels are known by: those of a smaller plan of the sample are in the larger one.

        Where earlier labels told the probabilities, a plan shares its sample with no other.
        """
        said = [self.design, self.seed, self.fold_seed, self.unit, self.k, self.formula]
        bound = [self.min_rating, self.bank, self.kind] if self.unit == "item" else []
        own = self._units() if self.design == "uncertainty" else ()
        told = json.dumps([*said, *bound])
        return content_hash(told, self.pool_hash, *sorted(self.systems), *own)[:16]

    @property
    def digest(self) -> str:
        """What the plan is known by in other collections."""
        return content_hash(self.sample, str(self.expected), *self._units())[:16]

    def _units(self) -> list[str]:
        return [f"{one.query_id}\t{one.unit_id}\t{one.pi!r}" for one in self.drawn]


def pool_hash(units: Iterable[tuple[str, str]]) -> str:
    """The hash of the names of all units, (query id, passage or item id), whatever their order."""
    return content_hash(*(f"{query}\t{unit}" for query, unit in sorted(units)))[:16]
