"""A sitting: what a person decides in a row towards a goal, and how to take the last one back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.collection import Collection
from exampp.records.decisions import Decided
from exampp.records.grading import GraderIdentity
from exampp.web.live_collection import SittingStart
from exampp.web.page_request import PageRequest
from exampp.web.pages.cells import CellIds
from exampp.web.rendering import link, shade

GOAL = 50
"""Cells that a sitting goes for unless a person says otherwise."""
RECENT = 8
"""Decisions that are listed beside the cells."""


class Recent(NamedTuple):
    """A decision that can be taken back: its number, what of, and where that is decided again."""

    number: int
    address: str
    text: str
    rating: int
    level: int


@dataclass(frozen=True, slots=True)
class Sitting:
    """How far a person is, and what was decided last, newest first."""

    done: int
    goal: int
    recent: Sequence[Recent]
    undo: str = "/judge/undo"

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached."""
        return self.done >= self.goal


def sit_down(visit: PageRequest, collection: Collection, goal: int = GOAL) -> SittingStart:
    """Begin a sitting with what is decided from now on."""
    start = SittingStart(goal, collection.decisions.newest)
    visit.room.sittings[visit.assessor] = start
    return start


def made(visit: PageRequest, collection: Collection) -> Sequence[Decided]:
    """What this person has decided in the sitting, oldest first."""
    start = visit.room.sittings.get(visit.assessor) or sit_down(visit, collection)
    return collection.decisions.since(start.after, author=visit.assessor)


def sitting(visit: PageRequest, collection: Collection, order: str) -> Sitting:
    """The sitting of this person, begun where there is none."""
    decided = made(visit, collection)
    goal = visit.room.sittings[visit.assessor].goal
    return Sitting(len(decided), goal, recent_cells(decided, visit.choice.grader, order))


def recent_cells(
    decided: Sequence[Decided], grader: GraderIdentity, order: str | None, path: str = "/judge/case"
) -> list[Recent]:
    """The newest of some decisions, to be shown and taken back."""
    found = []
    for one in reversed(decided[-RECENT:]):
        rating = one.decision.rating or 0
        where = "disputes" if one.decision.adjudicates else order
        address = case_address(CellIds(one.query_id, one.item_id, one.passage_id), where, path)
        level = shade(rating, grader.lowest, grader.highest)
        found.append(Recent(one.decision.number, address, one.item or one.item_id, rating, level))
    return found


def case_address(place: CellIds, order: str | None, path: str = "/judge/case") -> str:
    """Where a cell is decided."""
    query, item, passage = place
    return link(path, query=query, item=item, passage=passage, order=order)
