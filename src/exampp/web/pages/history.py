"""`/history` and `/agreement`: decisions and edits with undo, and agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.items.edits import EditRound, describe_edit, edit_rounds
from exampp.records.decisions import CellDecision, Decision, replaces
from exampp.review.assessor_agreement import (
    EVERYBODY,
    ComparedCell,
    compared_cells,
)
from exampp.store.bank import LoggedEdit
from exampp.web.cells import read_cells
from exampp.web.page_request import CurrentRequest, PageOfEntries, PageRequest, page_of
from exampp.web.pages.judge import comparison_of, session_decisions, undo_decision

router = APIRouter()
PAGE = 100
"""Entries or cells per page."""
What = Literal["decisions", "edits"]
_NUMBERS = "^[0-9]{1,18}(,[0-9]{1,18})*$"


@router.get("/history")
def history(
    request: CurrentRequest,
    what: What = "decisions",
    query: str | None = None,
    author: str | None = None,
    item: str | None = None,
    bank: str = "",
    page: int = 1,
) -> HTMLResponse:
    """List decisions, or the edits of a bank, newest first."""
    query, author, item = query or None, author or None, item or None
    banks: tuple[str, ...] = ()
    listing: PageOfEntries[CellDecision] | PageOfEntries[EditRound]
    undoable: frozenset[int] = frozenset()
    with request.open() as collection:
        if what == "decisions":
            decisions = collection.decisions.list(query_id=query, author=author)
            decisions_of_item = [one for one in reversed(decisions) if item in (None, one.item_id)]
            listing = page_of(decisions_of_item, page, PAGE)
            undoable = _undoable(request, collection, query)
        else:
            # a name may have a bank of questions and one of nuggets
            banks = tuple(dict.fromkeys(str(row[0]) for row in collection.banks().rows))
            if bank and bank not in banks:
                raise InputError(f"the collection has no bank {bank!r}", field="bank")
            bank = bank or request.bank
            log = [
                one
                for one in reversed(collection.bank(bank).logged_edits(query))
                if author in (None, one.edit.author) and item in (None, one.after.item_id)
            ]
            listing = page_of(edit_rounds(log, _undone_together), page, PAGE)
    return request.render(
        "history.html",
        what=what,
        query=query,
        author=author,
        item=item,
        bank=bank,
        banks=banks,
        listing=listing,
        undoable=undoable,
        describe=describe_edit,
    )


def _undoable(request: PageRequest, collection: Collection, query: str | None) -> frozenset[int]:
    """Return the numbers of decisions in force that this person can undo."""
    on_cell: dict[object, list[Decision]] = {}
    for one in collection.decisions.list(query_id=query):
        on_cell.setdefault((one.versions, one.verdict), []).append(one.decision)
    return frozenset(
        one.number
        for decisions in on_cell.values()
        for at, one in enumerate(decisions)
        if (request.may("adjudicate") if one.adjudicates else one.author == request.assessor)
        and one.rating is not None
        and not any(replaces(later, one) for later in decisions[at + 1 :])
    )


def _undone_together(logged: LoggedEdit) -> tuple[str, ...]:
    # a model adds the items of a run query by query
    at = "" if logged.operation == "generate" else logged.edit.at
    return logged.operation, logged.edit.author, logged.edit.reason, at


@router.post("/history/undo")
def undo(
    request: CurrentRequest,
    what: What,
    number: Annotated[str, Form(pattern=_NUMBERS)],
    bank: str = "",
) -> Response:
    """Undo a decision, or edits made together, by appending the previous state."""
    if what == "edits":
        request.require("edit")
    numbers = [int(one) for one in number.split(",")]
    with request.open() as collection:
        try:
            if what == "decisions":
                if len(numbers) > 1:
                    raise InputError("decisions are undone one at a time", field="number")
                undo_decision(request, collection, numbers[0])
            else:
                undone = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
                reason = f"undo of edit {undone}"
                edited = collection.bank(bank or request.bank)
                edited.undo(*numbers, author=request.assessor, reason=reason)
        except InputError as error:
            return request.render("undo_failed.html", status=409, what=what, text=str(error))
    request.live.changed()
    return request.redirect("/history", what=what, bank=bank or None)


# ---- agreement ----------------------------------------------------------------------------------

START = 600
"""Characters of a passage in a list."""


@router.get("/agreement")
def agreement(request: CurrentRequest) -> HTMLResponse:
    """Show all comparisons."""
    with request.open() as collection:
        grades = request.choice.of(collection)
        judged = grades.decisions.judging(min_rating=request.min_rating, intervals=True)
        effect = grades.position_effect()
    return request.render(
        "agreement.html",
        order=effect.tables() if effect else {},
        judged=judged,
        everybody=EVERYBODY,
        together=comparison_of(judged.with_grader, EVERYBODY),
        blind=comparison_of(judged.blind, EVERYBODY),
    )


@router.get("/agreement/cells")
def cells(
    request: CurrentRequest,
    person: str = EVERYBODY,
    other: str | None = None,
    rating: int | None = None,
    against: int | None = None,
    blind: bool = False,
    session: bool = False,
    page: int = 1,
) -> HTMLResponse:
    """List cells with two ratings, optionally filtered by `rating` and `against`."""
    with request.open() as collection:
        grades = request.choice.of(collection)
        compared: Sequence[ComparedCell] = [
            one
            for one in compared_cells(grades.judged(), person, other, blind=blind)
            if rating in (None, one.rating) and against in (None, one.other)
        ]
        if session:
            own = {
                (one.query_id, one.item_id, one.passage_id)
                for one in session_decisions(request, collection)
            }
            compared = [one for one in compared if one[:3] in own]
        listing = page_of(compared, page, PAGE)
        texts = read_cells(grades, [one[:3] for one in listing.entries], START)
    return request.render(
        "agreement_cells.html",
        listing=listing,
        texts=texts,
        everybody=EVERYBODY,
        person=person,
        other=other,
        rating=rating,
        against=against,
        blind=blind,
        session=session,
    )
