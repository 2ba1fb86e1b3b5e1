"""`/judge`: people decide, one cell at a time.

The page holds the addresses of the cells that come next; its script fetches them ahead, and sends
each decision as it is made. Without the script every decision is a form that leads to the next
cell. In blind mode nothing that a person gets before deciding says what the grader said.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from exampp.errors import InputError
from exampp.records.decisions import Decision
from exampp.records.dossier import Dossier
from exampp.records.grading import Grade, GraderIdentity
from exampp.web.cell_access import BLIND, dossier, is_blind
from exampp.web.page_request import LARGEST, PageRequest, Visiting, is_own
from exampp.web.pages.agreement import live
from exampp.web.pages.cells import CellIds, CellPanel, cell_of, has_decided, panel
from exampp.web.pages.walks import ORDERS, walk
from exampp.web.rendering import link, shade

router = APIRouter()
_VERSION = re.compile("[0-9]{1,18}")


@router.get("/judge")
def judge(
    visit: Visiting,
    order: str = "queue",
    query: str | None = None,
    item: str | None = None,
    passage: str | None = None,
) -> HTMLResponse:
    """The page of a walk, with its first cell."""
    order = order if order in ORDERS else "queue"
    blind = is_blind(visit) and order != "disputes"
    with visit.open() as collection:
        places = walk(visit, collection, order, query, item, passage)
        first = (
            _case(visit, dossier(visit, collection, places[0].query_id), places[0], blind)
            if places
            else None
        )
        agreement = live(visit, collection)
    more = {"order": order if order != "cell" else "query", "query": query}
    if order == "item":
        more["item"] = item
    return visit.page(
        "judge.html",
        case=first,
        walk=[_address(place, order) for place in places],
        order=order,
        said=ORDERS[order],
        query=query,
        blind=blind,
        agreement=agreement,
        more=link("/judge", **more),
        again=link("/judge", order=order, query=query, item=item, passage=passage),
        **_adjudicating(order),
    )


@router.get("/judge/case")
def case(
    visit: Visiting,
    query: str,
    item: str,
    passage: str,
    order: str = "queue",
    whole: bool = False,
) -> HTMLResponse:
    """One cell to decide, to be put on the stage."""
    blind = is_blind(visit) and order != "disputes"
    with visit.open() as collection:
        found = dossier(visit, collection, query)
    shown = _case(visit, found, CellIds(query, item, passage), blind, whole=whole)
    if not visit.wants_part:
        return visit.page(
            "judge.html",
            case=shown,
            walk=[_address(shown.place, order)],
            order=order,
            said=ORDERS.get(order, ""),
            query=query,
            blind=blind,
            agreement=None,
            more=link("/judge", order=order),
            again=link("/judge", order=order),
            **_adjudicating(order),
        )
    return visit.page("_case.html", case=shown, order=order, **_adjudicating(order))


@router.post("/judge/blind")
def set_blind(
    visit: Visiting, blind: Annotated[str, Form()], back: Annotated[str, Form()] = "/judge"
) -> RedirectResponse:
    """Hide the grades until one has decided, or show them."""
    answer = visit.go("/judge") if not is_own(back) else RedirectResponse(back, 303)
    visit.keep(answer, BLIND, "1" if blind == "1" else "0")
    return answer


@router.post("/judge/decide")
def decide(
    visit: Visiting,
    cell: Annotated[str, Form()],
    rating: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    versions: Annotated[str, Form()] = "",
    hidden: Annotated[str, Form()] = "",
    adjudicates: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/judge",  # noqa: A002
) -> Response:
    """Keep one decision; answers what it was, beside what the grader says.

    A decision is blind if the person asked for it and had never decided about the cell, so that
    its grade was not shown.
    """
    place, texts = CellIds.unpacked(cell), _versions(versions)
    with visit.open() as collection:
        grades = visit.choice.of(collection)
        grade, earlier = grades.cell(place.item_id, texts)
        made = grades.decide(
            *place,
            _rating(rating),
            author=visit.assessor,
            reason=reason.strip(),
            blind=hidden == "1" and not has_decided(earlier, visit.assessor),
            adjudicates=adjudicates == "1",
            versions=texts,
        )
    visit.room.changed()
    if not visit.wants_part:
        return RedirectResponse(next if is_own(next) else "/judge", 303)
    return visit.page("_outcome.html", place=place, **_outcome(visit.choice.grader, grade, made))


@router.get("/judge/agreement")
def agreement_part(visit: Visiting) -> HTMLResponse:
    """How far this person and the grader agree by now, to be put beside the cells."""
    with visit.open() as collection:
        return visit.page("_agreement_body.html", agreement=live(visit, collection))


@router.post("/judge/undo")
def undo(visit: Visiting, number: Annotated[int, Form(ge=1, le=LARGEST)]) -> Response:
    """Take a decision back."""
    with visit.open() as collection:
        collection.decisions.undo(number, author=visit.assessor)
    visit.room.changed()
    return visit.page("_undone.html") if visit.wants_part else visit.go("/judge")


def _case(
    visit: PageRequest, found: Dossier, place: CellIds, blind: bool, *, whole: bool = False
) -> CellPanel:
    cell = cell_of(found, place.item_id, place.passage_id)
    return panel(found, cell, visit.assessor, blind=blind, whole=whole)


def _address(place: CellIds, order: str) -> str:
    query, item, passage = place
    return link("/judge/case", query=query, item=item, passage=passage, order=order)


def _adjudicating(order: str) -> dict[str, bool]:
    return {"adjudicates": order == "disputes"}


def _outcome(grader: GraderIdentity, grade: Grade | None, made: Decision) -> dict[str, object]:
    """What was decided, beside what the grader said."""
    said = grade.rating if grade else None
    levels = [
        None if one is None else shade(one, grader.lowest, grader.highest)
        for one in (made.rating, said)
    ]
    agrees = said is not None and said == made.rating
    return {"made": made, "grade": grade, "levels": levels, "agrees": agrees}


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
