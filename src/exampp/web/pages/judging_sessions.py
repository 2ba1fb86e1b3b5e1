"""Judging sessions: which cells a person decides next, the progress, and the last decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exampp.collection import Collection
from exampp.records.decisions import CellDecision, effective_decision, standing_decisions
from exampp.records.gradebook import Dossier
from exampp.records.graders import GraderIdentity
from exampp.review.evidence import passage_order
from exampp.review.queue import Assignment, Candidate, by_passage
from exampp.store.decisions import JudgedCell
from exampp.web.cells import CellIds, cell_of, read_query
from exampp.web.live_collection import SessionStart
from exampp.web.page_request import PageRequest
from exampp.web.rendering import link, shade

GOAL = 50
"""Cells of a session unless a person chooses otherwise."""
RECENT = 8
"""Decisions listed beside the cells."""
LENGTH = 100
"""Cells in a row; the next ones are fetched when they are done."""
ORDERS = {
    "queue": "what a decision could change",
    "query": "one query, passage by passage",
    "item": "one item, on all passages",
    "disputes": "what assessors differ on, what weighs most first",
    "cell": "one cell, then its passage",
}
"""Orders of cells, and their names."""


class RecentDecision(NamedTuple):
    """A decision that can be undone: its number, address, text, rating and shade."""

    number: int
    address: str
    text: str
    rating: int
    level: int


class JudgingSession(NamedTuple):
    """The progress of a person, and the last decisions, newest first; `undo` takes them back."""

    done: int
    goal: int
    recent: Sequence[RecentDecision]
    undo: str = "/judge/undo"

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached."""
        return self.done >= self.goal


def start_session(request: PageRequest, collection: Collection, goal: int = GOAL) -> SessionStart:
    """Start a session with the next decision."""
    start = SessionStart(goal, collection.decisions.newest)
    request.live.sessions[request.assessor] = start
    return start


def session_decisions(request: PageRequest, collection: Collection) -> Sequence[CellDecision]:
    """Return what this person has decided in the session, oldest first."""
    start = request.live.sessions.get(request.assessor) or start_session(request, collection)
    return collection.decisions.since(start.after, author=request.assessor)


def current_session(request: PageRequest, collection: Collection, order: str) -> JudgingSession:
    """Return the session of this person, started if there is none."""
    made = session_decisions(request, collection)
    goal = request.live.sessions[request.assessor].goal
    return JudgingSession(len(made), goal, recent_decisions(made, request.choice.grader, order))


def recent_decisions(
    made: Sequence[CellDecision],
    grader: GraderIdentity,
    order: str | None,
    path: str = "/judge/case",
) -> list[RecentDecision]:
    """Return the newest of some decisions, to be shown and undone."""
    return [
        RecentDecision(
            one.decision.number,
            case_address(
                CellIds(one.query_id, one.item_id, one.passage_id),
                "disputes" if one.decision.adjudicates else order,
                path,
            ),
            one.item or one.item_id,
            one.decision.rating or 0,
            shade(one.decision.rating or 0, grader.lowest, grader.highest),
        )
        for one in reversed(made[-RECENT:])
    ]


def case_address(place: CellIds, order: str | None = None, path: str = "/judge/case") -> str:
    """Return the address where a cell is decided."""
    query, item, passage = place
    return link(path, query=query, item=item, passage=passage, order=order)


# ---- which cells come next -----------------------------------------------------------------------


class Step(NamedTuple):
    """A cell to decide, and how many cells of its query are left, itself included."""

    place: CellIds
    left: int


def steps(places: Sequence[CellIds]) -> list[Step]:
    """Return the first cells in a row, with how many of their query are left."""
    left = Counter(one.query_id for one in places)
    found = []
    for one in places[:LENGTH]:
        found.append(Step(one, left[one.query_id]))
        left[one.query_id] -= 1
    return found


def next_cells(
    request: PageRequest,
    collection: Collection,
    order: str,
    query_id: str | None,
    item_id: str | None,
    passage_id: str | None,
) -> list[CellIds]:
    """Return the cells that this person has not decided yet, in one of the `ORDERS`.

    With the order `cell` that cell comes first, decided or not.
    """
    if order == "queue" or (query_id is None and order != "disputes"):
        return _by_queue(request, collection, query_id)
    if order == "disputes":
        found = request.snapshot.disputes(
            collection.decisions.disputes(query_id=query_id, **request.choice._asdict())
        )
        return [CellIds(*one.dispute.cell) for one in found]
    dossier = read_query(request, collection, query_id or "")
    if order == "cell" and passage_id is not None:
        cell = cell_of(dossier, item_id, passage_id)
        first = CellIds(dossier.query_id, dossier.items[cell[1]].item_id, passage_id)
        rest = (one for one in _open(dossier, request, None, passage_id) if one != first)
        return [first, *rest]
    return list(_open(dossier, request, item_id if order == "item" else None, None))


def assignment(request: PageRequest) -> Assignment:
    """Return how the cells of the queue are shared among people."""
    return Assignment(request.people, request.live.shared)


def open_candidates(
    request: PageRequest, judged: Sequence[JudgedCell], query_id: str | None
) -> list[Candidate]:
    """Return the queue, of all queries or of one, without the cells decided since."""
    decided = {
        (one.query_id, one.item_id, one.passage_id)
        for one in judged
        if effective_decision(one.decisions) is not None
    }
    return [
        one
        for one in request.snapshot.queue
        if query_id in (None, one.query_id) and one.cell not in decided
    ]


def _by_queue(request: PageRequest, collection: Collection, query_id: str | None) -> list[CellIds]:
    """Return owed cells that everybody decides, then a person's own cells, then others'."""
    judged, shares = request.choice.of(collection).judged(query_id), assignment(request)
    found = by_passage(open_candidates(request, judged, query_id))
    return [
        *(CellIds(*cell) for cell in shares.owed(judged, request.assessor)),
        *(CellIds(*one.cell) for one in shares.ordered(found, request.assessor)),
    ]


def _open(
    dossier: Dossier, request: PageRequest, item_id: str | None, passage_id: str | None
) -> Iterator[CellIds]:
    """Yield cells that this person has not decided, passage by passage, most returned first."""
    for passage in passage_order(dossier.grades, "agreement", request.min_rating):
        name = dossier.grades.passage_ids[passage]
        if dossier.texts[passage] is None or passage_id not in (None, name):
            continue
        for column, item in enumerate(dossier.items):
            made = dossier.decisions.get((passage, column), ())
            if item_id in (None, item.item_id) and request.assessor not in standing_decisions(made):
                yield CellIds(dossier.query_id, item.item_id, name)
