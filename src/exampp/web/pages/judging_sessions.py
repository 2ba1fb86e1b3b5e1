"""A sitting: what a person decides in a row towards a goal, and how to take the last one back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.collection import Collection
from exampp.records.decisions import CellDecision, effective_decision, standing_decisions
from exampp.records.gradebook import Dossier
from exampp.records.graders import GraderIdentity
from exampp.review.queue import Assignment, Candidate, by_passage
from exampp.store.decisions import JudgedCell
from exampp.web.cells import CellIds, cell_of, dossier
from exampp.web.live_collection import SessionStart
from exampp.web.page_request import PageRequest
from exampp.web.pages.heat import ordered
from exampp.web.rendering import link, shade

LENGTH = 100
"""Cells of a walk; when they are done, the next ones are asked for."""
ORDERS = {
    "queue": "what a decision could change",
    "query": "one query, passage by passage",
    "item": "one item, on all passages",
    "disputes": "what assessors differ on, what weighs most first",
    "cell": "one cell, then its passage",
}
"""The orders of a walk, and what people read of them."""


class Step(NamedTuple):
    """A cell of a walk, and how many cells of its query are left from here on, with it."""

    place: CellIds
    left: int


def walk(
    visit: PageRequest,
    collection: Collection,
    order: str,
    query_id: str | None,
    item_id: str | None,
    passage_id: str | None,
) -> list[Step]:
    """The next cells that this person has not decided yet, at most `LENGTH`.

    A cell that is asked for comes first, decided or not.
    """
    return steps(_places(visit, collection, order, query_id, item_id, passage_id))


def steps(places: Sequence[CellIds]) -> list[Step]:
    """The first cells of a walk, with how many of their query are left."""
    left = Counter(one.query_id for one in places)
    found = []
    for one in places[:LENGTH]:
        found.append(Step(one, left[one.query_id]))
        left[one.query_id] -= 1
    return found


def assignment(visit: PageRequest) -> Assignment:
    """How the cells of the queue are shared out."""
    return Assignment(visit.people, visit.room.shared)


def _places(
    visit: PageRequest,
    collection: Collection,
    order: str,
    query_id: str | None,
    item_id: str | None,
    passage_id: str | None,
) -> list[CellIds]:
    if order == "queue" or (query_id is None and order != "disputes"):
        return _by_queue(visit, collection, query_id)
    if order == "disputes":
        found = visit.snapshot.disputes(
            collection.decisions.disputes(query_id=query_id, **visit.choice._asdict())
        )
        return [CellIds(*one.dispute.cell) for one in found]
    read = dossier(visit, collection, query_id or "")
    if order == "cell" and passage_id is not None:
        cell = cell_of(read, item_id, passage_id)
        first = CellIds(read.query_id, read.items[cell[1]].item_id, passage_id)
        rest = (one for one in _open(read, visit, None, passage_id) if one != first)
        return [first, *rest]
    return list(_open(read, visit, item_id if order == "item" else None, None))


def waiting(visit: PageRequest, collection: Collection, query_id: str | None) -> list[Candidate]:
    """The queue, of all queries or of one, without what has been decided since it was made."""
    return _waiting(visit, visit.choice.of(collection).judged(), query_id)


def _waiting(
    visit: PageRequest, judged: Sequence[JudgedCell], query_id: str | None
) -> list[Candidate]:
    decided = {
        (one.query_id, one.item_id, one.passage_id)
        for one in judged
        if effective_decision(one.decisions) is not None
    }
    return [
        one
        for one in visit.snapshot.queue
        if query_id in (None, one.query_id) and one.cell not in decided
    ]


def _by_queue(visit: PageRequest, collection: Collection, query_id: str | None) -> list[CellIds]:
    """What one owes to the share that everybody decides, then one's own cells, then others'."""
    judged, shares = visit.choice.of(collection).judged(query_id), assignment(visit)
    found = by_passage(_waiting(visit, judged, query_id))
    return [
        *(CellIds(*cell) for cell in shares.owed(judged, visit.assessor)),
        *(CellIds(*one.cell) for one in shares.ordered(found, visit.assessor)),
    ]


def _open(
    found: Dossier, visit: PageRequest, item_id: str | None, passage_id: str | None
) -> Iterator[CellIds]:
    """Cells that this person has not decided: passage by passage, the most returned first."""
    columns = [
        (n, one.item_id) for n, one in enumerate(found.items) if item_id in (None, one.item_id)
    ]
    for passage in ordered(found.grades, "agreement", visit.min_rating).tolist():
        name = found.grades.passage_ids[passage]
        if found.texts[passage] is None or passage_id not in (None, name):
            continue
        for column, item in columns:
            if visit.assessor not in standing_decisions(found.decisions.get((passage, column), ())):
                yield CellIds(found.query_id, item, name)


GOAL = 50
"""Cells that a sitting goes for unless a person says otherwise."""
RECENT = 8
"""Decisions that are listed beside the cells."""


class RecentDecision(NamedTuple):
    """A decision that can be taken back: its number, what of, and where that is decided again."""

    number: int
    address: str
    text: str
    rating: int
    level: int


@dataclass(frozen=True, slots=True)
class JudgingSession:
    """How far a person is, and what was decided last, newest first."""

    done: int
    goal: int
    recent: Sequence[RecentDecision]
    undo: str = "/judge/undo"

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached."""
        return self.done >= self.goal


def start_session(visit: PageRequest, collection: Collection, goal: int = GOAL) -> SessionStart:
    """Begin a sitting with what is decided from now on."""
    start = SessionStart(goal, collection.decisions.newest)
    visit.room.sittings[visit.assessor] = start
    return start


def made(visit: PageRequest, collection: Collection) -> Sequence[CellDecision]:
    """What this person has decided in the sitting, oldest first."""
    start = visit.room.sittings.get(visit.assessor) or start_session(visit, collection)
    return collection.decisions.since(start.after, author=visit.assessor)


def sitting(visit: PageRequest, collection: Collection, order: str) -> JudgingSession:
    """The sitting of this person, begun where there is none."""
    decided = made(visit, collection)
    goal = visit.room.sittings[visit.assessor].goal
    return JudgingSession(len(decided), goal, recent_cells(decided, visit.choice.grader, order))


def recent_cells(
    decided: Sequence[CellDecision],
    grader: GraderIdentity,
    order: str | None,
    path: str = "/judge/case",
) -> list[RecentDecision]:
    """The newest of some decisions, to be shown and taken back."""
    found = []
    for one in reversed(decided[-RECENT:]):
        rating = one.decision.rating or 0
        where = "disputes" if one.decision.adjudicates else order
        address = case_address(CellIds(one.query_id, one.item_id, one.passage_id), where, path)
        level = shade(rating, grader.lowest, grader.highest)
        found.append(
            RecentDecision(one.decision.number, address, one.item or one.item_id, rating, level)
        )
    return found


def case_address(place: CellIds, order: str | None, path: str = "/judge/case") -> str:
    """Where a cell is decided."""
    query, item, passage = place
    return link(path, query=query, item=item, passage=passage, order=order)
