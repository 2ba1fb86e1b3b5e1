"""`/judge`: people decide, one cell at a time.

The page holds the addresses of the cells that come next; its script fetches them ahead, and sends
each decision as it is made. Without the script every decision is a form that leads to the next
cell. In blind mode nothing that a person gets before deciding says what the grader said, and how
far people and grader agree is told when the sitting is over, so that it sways no decision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.gradebook import Dossier
from exampp.review.queue import Candidate, WeighedDispute
from exampp.store.decisions import decisions_on
from exampp.web.cells import (
    BLIND,
    CellIds,
    CellPanel,
    cell_of,
    dossier,
    has_decided,
    is_blind,
    panel,
)
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import DECISIONS, LARGEST, CurrentRequest, PageRequest, among
from exampp.web.pages.agreement import of_sitting
from exampp.web.pages.judging_sessions import (
    ORDERS,
    Step,
    assignment,
    case_address,
    made,
    sitting,
    start_session,
    walk,
)
from exampp.web.rendering import link

router = APIRouter()
MOST = 10_000
"""The largest goal of a sitting."""
_VERSION = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Case:
    """One cell to decide, and why it is asked about.

    `shared` says that everybody decides it, blind; `candidate` is what a decision could change
    (None: not known, or hidden), `dispute` what hangs on settling it, `mine` whether this person is
    one of those who differ.
    """

    cell: CellPanel
    shared: bool
    candidate: Candidate | None
    dispute: WeighedDispute | None
    mine: bool


@router.get("/judge")
def judge(
    visit: CurrentRequest,
    order: str = "queue",
    query: str | None = None,
    item: str | None = None,
    passage: str | None = None,
) -> HTMLResponse:
    """The page of a walk, with its first cell."""
    order = order if order in ORDERS else "queue"
    with visit.open() as collection:
        steps = walk(visit, collection, order, query, item, passage)
        first = None
        if steps:
            place = steps[0].place
            read = dossier(visit, collection, place.query_id, place.passage_id)
            first = _case(visit, collection, read, place, order)
        return _page(visit, collection, first, steps, order, query, item, passage)


@router.get("/judge/case")
def case(
    visit: CurrentRequest,
    query: str,
    item: str,
    passage: str,
    order: str = "queue",
    whole: bool = False,
) -> HTMLResponse:
    """One cell to decide, to be put on the stage."""
    order = order if order in ORDERS else "queue"
    place = CellIds(query, item, passage)
    with visit.open() as collection:
        read = dossier(visit, collection, query, passage)
        shown = _case(visit, collection, read, place, order, whole=whole)
        if not visit.wants_part:
            return _page(visit, collection, shown, [Step(place, 1)], order, query, item, passage)
    return visit.page("_case.html", case=shown, order=order, adjudicates=order == "disputes")


@router.post("/judge/blind")
def set_blind(
    visit: CurrentRequest, blind: Annotated[str, Form()], back: Annotated[str, Form()] = "/judge"
) -> RedirectResponse:
    """Hide the grades until one has decided, or show them."""
    answer = visit.back(back, "/judge")
    visit.keep(answer, BLIND, "1" if blind == "1" else "0")
    return answer


@router.post("/judge/decide")
@among(DECISIONS)
def decide(
    visit: CurrentRequest,
    cell: Annotated[str, Form()],
    rating: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    versions: Annotated[str, Form()] = "",
    hidden: Annotated[str, Form()] = "",
    adjudicates: Annotated[str, Form()] = "",
    order: Annotated[str, Form()] = "queue",
    next: Annotated[str, Form()] = "/judge",  # noqa: A002
) -> Response:
    """Keep one decision; answers how far the sitting is.

    A decision is blind if the grade was hidden and the person had never decided about the cell, so
    that it was not shown.
    """
    place, texts = CellIds.unpacked(cell), _versions(versions)
    with visit.open() as collection:
        if visit.assessor not in visit.room.sittings:
            start_session(visit, collection)
        grades = visit.choice.of(collection)
        earlier = decisions_on(grades.connection, [texts[0]], grades.grader).get(texts, [])
        grades.decisions.decide(
            *place,
            _rating(rating),
            author=visit.assessor,
            reason=reason.strip(),
            blind=hidden == "1" and not has_decided(earlier, visit.assessor),
            adjudicates=adjudicates == "1",
            versions=texts,
        )
        now = sitting(visit, collection, order)
    visit.room.changed()
    if visit.wants_part:
        return visit.page("_sitting.html", sitting=now)
    if now.is_over and next.startswith("/judge"):
        return visit.go("/judge/end")
    return visit.back(next, "/judge")


@router.post("/judge/undo")
@among(DECISIONS)
def undo(
    visit: CurrentRequest,
    number: Annotated[int, Form(ge=1, le=LARGEST)],
    back: Annotated[str, Form()] = "/judge",
    order: Annotated[str, Form()] = "queue",
) -> Response:
    """Take a decision back, and go back to its cell."""
    with visit.open() as collection:
        collection.decisions.undo(number, author=visit.assessor)
        now = sitting(visit, collection, order)
    visit.room.changed()
    if visit.wants_part:
        return visit.page("_sitting.html", sitting=now)
    return visit.back(back, "/judge")


@router.get("/judge/end")
def end(visit: CurrentRequest) -> HTMLResponse:
    """The end of a sitting: what was decided, and how far it agrees with the grader."""
    with visit.open() as collection:
        decided = made(visit, collection)
        agreement = of_sitting(visit, collection, decided)
    return visit.page("judge_end.html", decided=decided, agreement=agreement, most=MOST)


@router.get("/judge/guidelines")
def guidelines(visit: CurrentRequest) -> HTMLResponse:
    """How to decide, as the exam's owner says."""
    if visit.room.guidelines is None:
        raise NothingYet(
            "nobody has written guidelines for this exam yet",
            mend="Give a Markdown file: exampp serve COLLECTION --guidelines FILE",
        )
    return visit.page("guidelines.html", html=visit.room.guidelines.html())


@router.post("/judge/sitting")
def sit(
    visit: CurrentRequest,
    goal: Annotated[int, Form(ge=1, le=MOST)],
    back: Annotated[str, Form()] = "/judge",
) -> RedirectResponse:
    """Begin another sitting."""
    with visit.open() as collection:
        start_session(visit, collection, goal)
    return visit.back(back, "/judge")


def _page(
    visit: PageRequest,
    collection: Collection,
    first: Case | None,
    steps: list[Step],
    order: str,
    query: str | None,
    item: str | None,
    passage: str | None,
) -> HTMLResponse:
    more = {"order": order if order != "cell" else "query", "query": query}
    return visit.page(
        "judge.html",
        case=first,
        walk=[(case_address(one.place, order), one.left) for one in steps],
        order=order,
        said=ORDERS[order],
        query=query,
        blind=is_blind(visit),
        sitting=sitting(visit, collection, order),
        more=link("/judge", **more, item=item if order == "item" else None),
        again=link("/judge", order=order, query=query, item=item, passage=passage),
        adjudicates=order == "disputes",
        most=MOST,
    )


def _case(
    visit: PageRequest,
    collection: Collection,
    found: Dossier,
    place: CellIds,
    order: str,
    *,
    whole: bool = False,
) -> Case:
    adjudicates = order == "disputes"
    shared = order == "queue" and assignment(visit).is_shared(place)
    blind = not adjudicates and (shared or is_blind(visit))
    cell = cell_of(found, place.item_id, place.passage_id)
    shown = panel(found, cell, visit.assessor, blind=blind, whole=whole)
    cell_name = place.query_id, place.item_id, place.passage_id
    dispute = _dispute(visit, collection, place) if adjudicates else None
    return Case(
        shown,
        shared,
        # what could change tells which side of the threshold the grade is on
        None if shown.hidden or adjudicates else visit.snapshot.candidates.get(cell_name),
        dispute,
        dispute is not None and visit.assessor in {one.author for one in dispute.dispute.decisions},
    )


def _dispute(visit: PageRequest, collection: Collection, place: CellIds) -> WeighedDispute | None:
    found = collection.decisions.disputes(query_id=place.query_id, **visit.choice._asdict())
    mine = [one for one in found if one.cell == tuple(place)]
    return next(iter(visit.snapshot.disputes(mine)), None)


def _rating(text: str) -> int | None:
    """A rating as a form says it; nothing withdraws. InputError where it is no number."""
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r} is no rating", field="rating") from None


def _versions(text: str) -> tuple[int, int]:
    """The texts that a person decided about. InputError where a form does not say it."""
    item, _, passage = text.partition(",")
    if not (_VERSION.fullmatch(item) and _VERSION.fullmatch(passage)):
        raise InputError("those are no versions of texts", field="versions")
    return int(item), int(passage)
