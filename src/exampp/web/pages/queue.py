"""`/queue`: the cells that are most worth a decision, and what a decision could change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.review.queue import Candidate
from exampp.store.read_model import read_texts
from exampp.web.cells import brief, is_blind
from exampp.web.page_request import CurrentRequest, PageRequest, sheet
from exampp.web.pages.judging_sessions import assignment, waiting
from exampp.web.rendering import shade

router = APIRouter()
PER_PAGE = 50
START = 600
"""Characters of a passage of which the queue shows the first words."""


class Waiting(NamedTuple):
    """A candidate with its texts; `hidden`: it is decided blind, so its grade is not shown."""

    candidate: Candidate
    place: int
    query: str
    item: str
    start: str
    level: int | None
    hidden: bool


@router.get("/queue")
def queue(visit: CurrentRequest, query: str | None = None, page: int = 1) -> HTMLResponse:
    """One page of the queue, of all queries or of one."""
    with visit.open() as collection:
        found = waiting(visit, collection, query)
    shown = sheet(found, page, PER_PAGE)
    return visit.page(
        "queue.html",
        waiting=list(_with_texts(visit, shown.entries, shown.first)),
        total=shown.total,
        page=shown.page,
        pages=shown.pages,
        query=query,
        blind=is_blind(visit),
        share=visit.room.shared,
    )


def _with_texts(visit: PageRequest, found: Sequence[Candidate], first: int) -> Iterator[Waiting]:
    cells = [one.cell for one in found]
    grader, shares, blind = visit.choice.grader, assignment(visit), is_blind(visit)
    with visit.open() as collection:
        bank = visit.choice.of(collection).bank
        texts = read_texts(collection.connection, bank, grader.kind, cells, START)
    for place, (one, cell) in enumerate(zip(found, cells, strict=True), first + 1):
        if cell in texts:
            said = texts[cell]
            level = None if one.rating is None else shade(one.rating, grader.lowest, grader.highest)
            query = said.query or one.query_id
            hidden = blind or shares.is_shared(cell)
            yield Waiting(one, place, query, said.item, brief(said.start, 160), level, hidden)
