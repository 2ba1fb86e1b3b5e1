"""`/agreement`: how far people and the grader agree, and people with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.review.assessor_agreement import (
    EVERYBODY,
    AssessorAgreement,
    ComparedCell,
    PersonComparison,
    compared_cells,
)
from exampp.store.read_model import CellTexts
from exampp.web.cells import read_cells
from exampp.web.page_request import CurrentRequest, PageOfEntries, page_of
from exampp.web.pages.judge import comparison_of, session_decisions

router = APIRouter()
PAGE = 100
"""Cells on one page."""
START = 600
"""Characters of a passage of which a list shows the first words."""


class AgreementPage(NamedTuple):
    """All comparisons; `together` and `blind` are those of everybody with the grader."""

    judged: AssessorAgreement
    everybody: str
    together: PersonComparison | None
    blind: PersonComparison | None


@router.get("/agreement")
def agreement(request: CurrentRequest) -> HTMLResponse:
    """Show all comparisons."""
    with request.open() as collection:
        grades = request.choice.of(collection)
        judged = grades.decisions.judging(min_rating=request.min_rating, intervals=True)
    context = AgreementPage(
        judged,
        EVERYBODY,
        comparison_of(judged.with_grader, EVERYBODY),
        comparison_of(judged.blind, EVERYBODY),
    )
    return request.render("agreement.html", context)


class ComparedCellsPage(NamedTuple):
    """The cells behind a number of the agreement, with their texts, as asked for."""

    sheet: PageOfEntries[ComparedCell]
    texts: dict[tuple[str, str, str], CellTexts]
    everybody: str
    person: str
    other: str | None
    rating: int | None
    against: int | None
    blind: bool
    session: bool


@router.get("/agreement/cells")
def cells(
    request: CurrentRequest,
    person: str = EVERYBODY,
    other: str | None = None,
    rating: int | None = None,
    against: int | None = None,
    blind: bool = False,
    sitting: bool = False,
    page: int = 1,
) -> HTMLResponse:
    """List cells with two ratings: all, or those with one `rating` or one `against` it."""
    with request.open() as collection:
        grades = request.choice.of(collection)
        found: Sequence[ComparedCell] = [
            one
            for one in compared_cells(grades.judged(), person, other, blind=blind)
            if rating in (None, one.rating) and against in (None, one.other)
        ]
        if sitting:
            own = {
                (one.query_id, one.item_id, one.passage_id)
                for one in session_decisions(request, collection)
            }
            found = [one for one in found if one[:3] in own]
        sheet = page_of(found, page, PAGE)
        texts = read_cells(grades, [one[:3] for one in sheet.entries], START)
    context = ComparedCellsPage(
        sheet, texts, EVERYBODY, person, other, rating, against, blind, sitting
    )
    return request.render("agreement_cells.html", context)
