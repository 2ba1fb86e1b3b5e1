"""`/disputes`: cells on which assessors differ, to be settled by whoever adjudicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.review.queue import WeighedDispute
from exampp.web.cells import CellPanel, is_blind, panel
from exampp.web.page_request import CurrentRequest, PageRequest, sheet

router = APIRouter()
SHOWN = 10
"""Disputes of one page."""


@router.get("/disputes")
def disputes(visit: CurrentRequest, query: str | None = None, page: int = 1) -> HTMLResponse:
    """One page of the disputes: the passage, what each assessor said, and why."""
    with visit.open() as collection:
        found = visit.snapshot.disputes(
            collection.decisions.disputes(query_id=query, **visit.choice._asdict())
        )
        shown = sheet(found, page, SHOWN)
        panels = list(_panels(visit, collection, shown.entries))
    return visit.page(
        "disputes.html",
        panels=panels,
        total=shown.total,
        page=shown.page,
        pages=shown.pages,
        query=query,
        blind=is_blind(visit) and bool(panels),
    )


def _panels(
    visit: PageRequest, collection: Collection, wanted: Sequence[WeighedDispute]
) -> Iterator[tuple[CellPanel, WeighedDispute, bool]]:
    ids = list(dict.fromkeys(one.dispute.query_id for one in wanted))
    dossiers = visit.choice.of(collection).dossiers(ids, ())
    known = {one.query_id: one for one in dossiers}
    for one in wanted:
        query_id, item_id, passage_id = one.dispute.cell
        found = known[query_id]
        items, passages = found.grades.item_ids, found.grades.passage_ids
        if item_id in items and passage_id in passages:
            cell = passages.index(passage_id), items.index(item_id)
            mine = visit.assessor in {made.author for made in one.dispute.decisions}
            yield panel(found, cell, visit.assessor), one, mine
