"""`/judge`, `/queue` and `/disputes`: judge cells one at a time.

The page lists the addresses of the next cells; its script prefetches them and sends each decision
immediately. Without the script every decision is a form that leads to the next cell. In blind mode
no response before a decision reveals the grade, and the agreement with the grader is shown only at
the end of the session, to avoid influencing decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.decisions import (
    CellDecision,
    Dispute,
    effective_decision,
    standing_decisions,
)
from exampp.records.gradebook import Dossier
from exampp.records.graders import GraderIdentity
from exampp.review.assessor_agreement import PersonComparison
from exampp.review.evidence import passage_order
from exampp.review.queue import Assignment, Candidate, by_passage
from exampp.store.decisions import JudgedCell, decision_of_number, decisions_on
from exampp.web.cells import (
    CellIds,
    CellPanel,
    cell_of,
    has_decided,
    panel,
    parse_versions,
    read_cells,
    read_query,
)
from exampp.web.live_collection import NothingYet, SessionStart
from exampp.web.page_request import (
    BLIND,
    LARGEST,
    CurrentRequest,
    PageRequest,
    in_turn,
    page_of,
)
from exampp.web.rendering import link, rating_shade

router = APIRouter()
GOAL = 50
"""Default number of cells in a session."""
RECENT = 8
"""Number of recent decisions shown."""
LENGTH = 100
"""Cells per page; the script then loads the next page."""
ORDERS = {
    "queue": "largest effect first",
    "query": "one query, passage by passage",
    "item": "one item, on all passages",
    "disputes": "disputed cells",
    "cell": "one cell, then the rest of its passage",
}
"""Orders of cells, with their names."""
LARGEST_GOAL = 10_000


class Case(NamedTuple):
    """A cell to decide, with the reason for showing it.

    Every assessor decides a `shared` cell blind. `candidate` is the effect of a decision (None:
    unknown or hidden), `dispute` holds conflicting decisions.
    """

    cell: CellPanel
    order: str
    shared: bool = False
    candidate: Candidate | None = None
    dispute: Dispute | None = None

    @property
    def adjudicates(self) -> bool:
        """Return whether a decision resolves a dispute."""
        return self.order == "disputes"


@router.get("/judge")
def judge(
    request: CurrentRequest,
    order: str = "queue",
    query: str | None = None,
    item: str | None = None,
    passage: str | None = None,
) -> HTMLResponse:
    """Show the next cells in an order."""
    order = order if order in ORDERS else "queue"
    with request.open() as collection:
        cells = steps(next_cells(request, collection, order, query, item, passage))
        first = _case(request, collection, cells[0][0], order) if cells else None
        return _page(request, collection, first, cells, order)


@router.get("/judge/case")
def judge_case(
    request: CurrentRequest,
    query: str,
    item: str,
    passage: str,
    order: str = "queue",
    whole: bool = False,
) -> HTMLResponse:
    """Show one cell to decide."""
    order, place = order if order in ORDERS else "queue", CellIds(query, item, passage)
    with request.open() as collection:
        case = _case(request, collection, place, order, whole=whole)
        if not request.wants_part:
            return _page(request, collection, case, [(place, 1)], order)
    return request.render("_case.html", case=case)


def _page(
    request: PageRequest,
    collection: Collection,
    case: Case | None,
    cells: Sequence[tuple[CellIds, int]],
    order: str,
) -> HTMLResponse:
    parameters = request.http.query_params
    query, item, passage = (
        parameters.get("query"),
        parameters.get("item"),
        parameters.get("passage"),
    )
    return request.render(
        "judge.html",
        case=case,
        next_cells=[(case_address(place, order), left) for place, left in cells],
        order=order,
        order_name=ORDERS[order],
        query=query,
        session=current_session(request, collection, order),
        more=link(
            "/judge",
            order=order if order != "cell" else "query",
            query=query,
            item=item if order == "item" else None,
        ),
        again=link("/judge", order=order, query=query, item=item, passage=passage),
    )


def _case(
    request: PageRequest,
    collection: Collection,
    place: CellIds,
    order: str,
    *,
    whole: bool = False,
) -> Case:
    dossier = read_query(request, collection, place.query_id, place.passage_id)
    cell, me = cell_of(dossier, place.item_id, place.passage_id), request.assessor
    if order == "disputes":
        same = find_disputes(request, collection, place.query_id)
        dispute = next((one for one in same if one.cell == tuple(place)), None)
        return Case(panel(dossier, cell, me, whole=whole), order, dispute=dispute)
    shared = order == "queue" and assignment(request).is_shared(place)
    cell_panel = panel(dossier, cell, me, blind=shared or request.is_blind, whole=whole)
    # the effect would reveal on which side of the threshold the grade is
    candidate = None if cell_panel.hidden else request.snapshot.candidates.get((*place,))
    return Case(cell_panel, order, shared, candidate)


# ---- decisions -----------------------------------------------------------------------------------


@router.post("/judge/blind")
def set_blind(
    request: CurrentRequest, blind: Annotated[str, Form()], back: Annotated[str, Form()] = "/judge"
) -> RedirectResponse:
    """Hide or show grades before decisions."""
    answer = request.redirect_back(back, "/judge")
    request.set_cookie(answer, BLIND, "1" if blind == "1" else "0")
    return answer


@router.post("/judge/decide")
@in_turn
def decide(
    request: CurrentRequest,
    cell: Annotated[str, Form()],
    rating: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    versions: Annotated[str, Form()] = "",
    hidden: Annotated[str, Form()] = "",
    adjudicates: Annotated[str, Form()] = "",
    order: Annotated[str, Form()] = "queue",
    next: Annotated[str, Form()] = "/judge",  # noqa: A002
) -> Response:
    """Store a decision and return the progress of the session.

    A decision is blind if the grade was hidden and the person had never decided the cell before.
    """
    place, texts = CellIds.unpacked(cell), parse_versions(versions)
    if adjudicates == "1":
        request.require("adjudicate")
    with request.live.deciding() as collection:
        if request.assessor not in request.live.sessions:
            start_session(request, collection)
        grades = request.live.grades_of(collection, request.choice)
        earlier = decisions_on(grades.connection, [texts[0]], grades.grader).get(texts, [])
        grades.decisions.decide(
            *place,
            _rating(rating),
            author=request.assessor,
            reason=reason.strip(),
            blind=hidden == "1" and not has_decided(earlier, request.assessor),
            adjudicates=adjudicates == "1",
            versions=texts,
        )
        return _after_decision(request, collection, order, next)


@router.post("/judge/undo")
@in_turn
def undo(
    request: CurrentRequest,
    number: Annotated[int, Form(ge=1, le=LARGEST)],
    back: Annotated[str, Form()] = "/judge",
    order: Annotated[str, Form()] = "queue",
) -> Response:
    """Undo a decision and return to its cell."""
    with request.live.deciding() as collection:
        undo_decision(request, collection, number)
        return _after_decision(request, collection, order, back)


def undo_decision(request: PageRequest, collection: Collection, number: int) -> None:
    """Undo a decision; an adjudication only for those who may adjudicate."""
    if decision_of_number(collection.connection, number).decision.adjudicates:
        request.require("adjudicate")
    collection.decisions.undo(number, author=request.assessor)


def _after_decision(request: PageRequest, collection: Collection, order: str, to: str) -> Response:
    request.live.changed()
    session = current_session(request, collection, order)
    if request.wants_part:
        return request.render("_session.html", session=session)
    if (
        session.is_over
        and to.partition("?")[0] == "/judge"
        and request.http.url.path == "/judge/decide"
    ):
        return request.redirect("/judge/end")
    return request.redirect_back(to, "/judge")


def _rating(text: str) -> int | None:
    """Parse a rating; empty withdraws. InputError if it is not a number."""
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r} is not a rating", field="rating") from None


# ---- which cells come next -----------------------------------------------------------------------


def steps(places: Sequence[CellIds]) -> list[tuple[CellIds, int]]:
    """Return the first cells, each with the number left in its query."""
    left = Counter(one.query_id for one in places)
    cells_left = []
    for one in places[:LENGTH]:
        cells_left.append((one, left[one.query_id]))
        left[one.query_id] -= 1
    return cells_left


def next_cells(
    request: PageRequest,
    collection: Collection,
    order: str,
    query_id: str | None,
    item_id: str | None,
    passage_id: str | None,
) -> list[CellIds]:
    """Return this person's undecided cells in one of the `ORDERS`.

    With the order `cell` that cell comes first, decided or not.
    """
    if order == "queue" or (query_id is None and order != "disputes"):
        return _by_queue(request, collection, query_id)
    if order == "disputes":
        return [CellIds(*one.cell) for one in find_disputes(request, collection, query_id)]
    dossier = read_query(request, collection, query_id or "")
    if order == "cell" and passage_id is not None:
        cell = cell_of(dossier, item_id, passage_id)
        first = CellIds(dossier.query_id, dossier.items[cell[1]].item_id, passage_id)
        rest = (one for one in _open(dossier, request, None, passage_id) if one != first)
        return [first, *rest]
    return list(_open(dossier, request, item_id if order == "item" else None, None))


def find_disputes(
    request: PageRequest, collection: Collection, query_id: str | None
) -> list[Dispute]:
    """Return the disputes, those about whether there is an answer first."""
    disputes = collection.decisions.disputes(query_id=query_id, **request.choice._asdict())
    return sorted(disputes, key=lambda one: not one.crosses(request.min_rating))


def assignment(request: PageRequest) -> Assignment:
    """Return the assignment of cells to people."""
    return Assignment(request.people, request.live.shared)


def open_candidates(
    request: PageRequest, judged: Sequence[JudgedCell], query_id: str | None
) -> list[Candidate]:
    """Return the queue without cells decided since, for one query or all."""
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
    """Return shared cells that others have decided, then a person's own cells, then others'."""
    judged, shares = request.choice.of(collection).judged(query_id), assignment(request)
    candidates = by_passage(open_candidates(request, judged, query_id))
    return [
        *(CellIds(*cell) for cell in shares.owed(judged, request.assessor)),
        *(CellIds(*one.cell) for one in shares.ordered(candidates, request.assessor)),
    ]


def _open(
    dossier: Dossier, request: PageRequest, item_id: str | None, passage_id: str | None
) -> Iterator[CellIds]:
    """Yield this person's undecided cells, passage by passage, most returned first."""
    for passage in passage_order(dossier.grades, "agreement", request.min_rating):
        name = dossier.grades.passage_ids[passage]
        if dossier.texts[passage] is None or passage_id not in (None, name):
            continue
        for column, item in enumerate(dossier.items):
            decisions = dossier.decisions.get((passage, column), ())
            if item_id in (None, item.item_id) and request.assessor not in standing_decisions(
                decisions
            ):
                yield CellIds(dossier.query_id, item.item_id, name)


# ---- sessions ------------------------------------------------------------------------------------


class RecentDecision(NamedTuple):
    """A decision that can be undone: its number, address, text, rating and shade."""

    number: int
    address: str
    text: str
    rating: int
    level: int


class JudgingSession(NamedTuple):
    """The progress of a person and their last decisions, newest first; `undo` is the form's
    address.
    """

    done: int
    goal: int
    recent: Sequence[RecentDecision]
    undo: str = "/judge/undo"

    @property
    def is_over(self) -> bool:
        """Return whether the goal is reached."""
        return self.done >= self.goal


def start_session(request: PageRequest, collection: Collection, goal: int = GOAL) -> SessionStart:
    """Start a session with the next decision."""
    start = SessionStart(goal, collection.decisions.newest)
    request.live.sessions[request.assessor] = start
    return start


def session_decisions(request: PageRequest, collection: Collection) -> Sequence[CellDecision]:
    """Return this person's decisions in the session, oldest first."""
    start = request.live.sessions.get(request.assessor) or start_session(request, collection)
    return collection.decisions.since(start.after, author=request.assessor)


def current_session(request: PageRequest, collection: Collection, order: str) -> JudgingSession:
    """Return the session of this person; start one if necessary."""
    decisions = session_decisions(request, collection)
    goal = request.live.sessions[request.assessor].goal
    return JudgingSession(
        len(decisions), goal, recent_decisions(decisions, request.choice.grader, order)
    )


def recent_decisions(
    decisions: Sequence[CellDecision],
    grader: GraderIdentity,
    order: str | None,
    path: str = "/judge/case",
) -> list[RecentDecision]:
    """Return the newest decisions for display and undo."""
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
            rating_shade(one.decision.rating or 0, grader.lowest, grader.highest),
        )
        for one in reversed(decisions[-RECENT:])
    ]


def case_address(place: CellIds, order: str | None = None, path: str = "/judge/case") -> str:
    """Return the address of the page that judges a cell."""
    query, item, passage = place
    return link(path, query=query, item=item, passage=passage, order=order)


@router.get("/judge/end")
def end(request: CurrentRequest) -> HTMLResponse:
    """Show the end of a session."""
    with request.open() as collection:
        decided = session_decisions(request, collection)
        cells = frozenset((one.query_id, one.item_id, one.passage_id) for one in decided)
        people = request.choice.of(collection).decisions
        comparisons = people.judging(min_rating=request.min_rating, cells=cells)
    return request.render(
        "judge_end.html",
        decided=decided,
        agreement=comparison_of(comparisons.with_grader, request.assessor),
        blind=comparison_of(comparisons.blind, request.assessor),
        scale=comparisons.scale,
        goal=GOAL,
    )


def comparison_of(comparisons: Sequence[PersonComparison], person: str) -> PersonComparison | None:
    """Return the comparison for one person, if it has cells."""
    return next((one for one in comparisons if one.person == person and one.cells), None)


@router.get("/judge/guidelines")
def guidelines(request: CurrentRequest) -> HTMLResponse:
    """Show the instructions for assessors."""
    if request.live.guidelines is None:
        raise NothingYet(
            "this exam has no guidelines",
            hint="Add a Markdown file: exampp serve COLLECTION --guidelines FILE",
        )
    return request.render("guidelines.html", html=request.live.guidelines.html())


@router.post("/judge/session")
def another_session(
    request: CurrentRequest,
    goal: Annotated[int, Form(ge=1, le=LARGEST_GOAL)],
    back: Annotated[str, Form()] = "/judge",
) -> RedirectResponse:
    """Start a new session."""
    with request.open() as collection:
        start_session(request, collection, goal)
    return request.redirect_back(back, "/judge")


# ---- queue and disputes --------------------------------------------------------------------------

WAITING = 50
"""Candidates per page."""
DISPUTES = 10
"""Disputes per page."""
START = 600
"""Characters of a passage in the queue."""


@router.get("/queue")
def queue(request: CurrentRequest, query: str | None = None, page: int = 1) -> HTMLResponse:
    """Show the review queue."""
    with request.open() as collection:
        grades = request.choice.of(collection)
        listing = page_of(open_candidates(request, grades.judged(), query), page, WAITING)
        texts = read_cells(grades, [one.cell for one in listing.entries], START)
    return request.render(
        "queue.html", listing=listing, texts=texts, shares=assignment(request), query=query
    )


@router.get("/disputes")
def disputes(request: CurrentRequest, query: str | None = None, page: int = 1) -> HTMLResponse:
    """List disputes with the passage, the decisions and their reasons."""
    with request.open() as collection:
        listing = page_of(find_disputes(request, collection, query), page, DISPUTES)
        ids = list(dict.fromkeys(one.query_id for one in listing.entries))
        dossiers = {one.query_id: one for one in request.choice.of(collection).dossiers(ids, ())}
    cases = []
    for one in listing.entries:
        query_id, item_id, passage_id = one.cell
        dossier = dossiers[query_id]
        if item_id in dossier.grades.item_ids and passage_id in dossier.grades.passage_ids:
            cell_panel = panel(dossier, cell_of(dossier, item_id, passage_id), request.assessor)
            cases.append(Case(cell_panel, "disputes", dispute=one))
    return request.render("disputes.html", cases=cases, listing=listing, query=query)
