"""`/agreement`: how far people and the grader agree, and people among each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.records.decisions import CellDecision
from exampp.review.assessor_agreement import (
    EVERYBODY,
    AssessorAgreement,
    ComparedCell,
    PersonComparison,
    compared_cells,
)
from exampp.store.read_model import CellTexts, read_texts
from exampp.web.cells import is_blind
from exampp.web.page_request import CurrentRequest, PageRequest, sheet
from exampp.web.pages.judging_sessions import made as made_in_sitting
from exampp.web.rendering import SHADES, link

router = APIRouter()
CELLS = "/agreement/cells"
PAGE = 100
"""Cells on one page."""
START = 600
"""Characters of a passage of which a list shows the first words."""


class ListedCell(NamedTuple):
    """A cell of a confusion with its texts."""

    cell: ComparedCell
    texts: CellTexts | None


class Count(NamedTuple):
    """A square of a confusion: how many cells, its shade, whether both said the same, its page."""

    cells: int
    level: int
    same: bool
    address: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with its confusion as rows of squares, one row per rating of the person."""

    comparison: PersonComparison
    scale: tuple[int, ...]
    rows: tuple[tuple[Count, ...], ...]


def compared(comparison: PersonComparison, scale: Sequence[int], **of: object) -> Compared:
    """The confusion, shaded by the number of cells; `of` is what their pages are told besides."""
    most = max(1, int(comparison.counts.max(initial=0)))
    rows = tuple(
        tuple(
            Count(
                int(cells),
                -(-(SHADES - 1) * int(cells) // most),
                row == column,
                link(
                    CELLS, person=comparison.person, rating=scale[row], against=scale[column], **of
                ),
            )
            for column, cells in enumerate(counts)
        )
        for row, counts in enumerate(comparison.counts)
    )
    return Compared(comparison, tuple(scale), rows)


def of_person(
    found: Sequence[PersonComparison], judged: AssessorAgreement, person: str, **of: object
) -> Compared | None:
    """The comparison of one person, if there is any cell to compare."""
    mine = next((one for one in found if one.person == person and one.cells), None)
    return None if mine is None else compared(mine, judged.scale, **of)


@dataclass(frozen=True, slots=True)
class OfSitting:
    """What is shown at the end of a sitting: all of its decisions, and the blind ones."""

    all: Compared | None
    blind: Compared | None


def of_sitting(
    visit: PageRequest, collection: Collection, made: Sequence[CellDecision]
) -> OfSitting:
    """How far what this person decided agrees with the grader."""
    cells = frozenset((one.query_id, one.item_id, one.passage_id) for one in made)
    grades = visit.choice.of(collection)
    judged = grades.decisions.judging(min_rating=visit.min_rating, cells=cells)
    return OfSitting(
        of_person(judged.with_grader, judged, visit.assessor, sitting=1),
        of_person(judged.blind, judged, visit.assessor, sitting=1, blind=1),
    )


@router.get("/agreement")
def agreement(visit: CurrentRequest) -> HTMLResponse:
    """All comparisons."""
    with visit.open() as collection:
        grades = visit.choice.of(collection)
        judged = grades.decisions.judging(min_rating=visit.min_rating, intervals=True)
    together = of_person(judged.with_grader, judged, EVERYBODY)
    return visit.page(
        "agreement.html",
        judged=judged,
        everybody=EVERYBODY,
        together=together,
        blind=of_person(judged.blind, judged, EVERYBODY, blind=1),
        pairs=[compared(one, judged.scale, other=one.other) for one in judged.between],
        cells_of=lambda **of: link(CELLS, **of),
        with_grader=[one for one in judged.with_grader if one.cells],
        with_grader_blind=[one for one in judged.blind if one.cells],
    )


@router.get(CELLS)
def cells(
    visit: CurrentRequest,
    person: str = EVERYBODY,
    other: str | None = None,
    rating: int | None = None,
    against: int | None = None,
    blind: bool = False,
    sitting: bool = False,
    page: int = 1,
) -> HTMLResponse:
    """The cells behind a number of the agreement: of all ratings, or of one on either side."""
    with visit.open() as collection:
        grades = visit.choice.of(collection)
        found = [
            one
            for one in compared_cells(grades.judged(), person, other, blind=blind)
            if rating in (None, one.rating) and against in (None, one.other)
        ]
        if sitting:
            own = {
                (one.query_id, one.item_id, one.passage_id)
                for one in made_in_sitting(visit, collection)
            }
            found = [one for one in found if one[:3] in own]
        shown = sheet(found, page, PAGE)
        texts = read_texts(
            grades.connection,
            grades.bank,
            grades.grader.kind,
            [one[:3] for one in shown.entries],
            START,
        )
    asked = {
        "person": person,
        "other": other,
        "rating": rating,
        "against": against,
        "blind": int(blind) or None,
        "sitting": int(sitting) or None,
    }
    return visit.page(
        "agreement_cells.html",
        listed=[ListedCell(one, texts.get(one[:3])) for one in shown.entries],
        sheet=shown,
        asked=asked,
        everybody=EVERYBODY,
        here=lambda **changed: link(CELLS, **{**asked, **changed}),
        scale=(grades.grader.lowest, grades.grader.highest),
        hides=is_blind(visit),
    )
