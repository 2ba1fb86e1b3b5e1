"""Who is asked about which cell: most cells have one person, a share of them everybody.

What everybody decides, and blind, tells how far people agree with each other and with the grader;
what one person each decides gets further. Both are drawn by the ids of a cell alone, so that all
who open the collection, on any machine, agree on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from exampp.records.decisions import adjudication, standing
from exampp.review.queue import Candidate, CellName
from exampp.stats.sampling import random_numbers
from exampp.store.decisions import JudgedCell

DEFAULT_SHARE = 0.1
"""The share of cells that everybody decides."""
_SEED = 0
_C = TypeVar("_C", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Assignment:
    """How cells are shared out among people: a `share` of them goes to everybody."""

    people: tuple[str, ...]
    share: float = DEFAULT_SHARE

    def is_shared(self, cell: CellName) -> bool:
        """Whether everybody decides a cell."""
        return _number(cell) < self.share

    def owner(self, cell: CellName) -> str | None:
        """Who decides a cell first; None where everybody does."""
        number = _number(cell)
        if number < self.share or not self.people:
            return None
        return self.people[int((number - self.share) / (1 - self.share) * len(self.people))]

    def ordered(self, found: Iterable[_C], person: str) -> list[_C]:
        """Candidates as a person walks through them: what is others' comes after all the rest."""
        return sorted(found, key=lambda one: self.owner(one.cell) not in (None, person))

    def owed(self, judged: Sequence[JudgedCell], person: str) -> list[CellName]:
        """What everybody decides and others have decided already, but not this person."""
        return [
            cell
            for one in judged
            if standing(one.decisions)
            and person not in standing(one.decisions)
            and adjudication(one.decisions) is None
            and self.is_shared(cell := (one.query_id, one.item_id, one.passage_id))
        ]


def _number(cell: CellName) -> float:
    query_id, item_id, passage_id = cell
    return float(random_numbers(_SEED, [(query_id, f"{item_id}\t{passage_id}")])[0])
