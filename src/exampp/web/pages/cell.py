"""`/cell`: one passage and one item, with everything that is known of the two."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.records.gradebook import Dossier
from exampp.web.cells import cell_of, dossier, is_blind, panel, seen
from exampp.web.page_request import CurrentRequest, PageRequest, is_own
from exampp.web.pages.heat import HeatCell, square
from exampp.web.rendering import link

router = APIRouter()
REPLY = 20_000
"""Characters of a raw reply that a page shows at most."""


class Beside(NamedTuple):
    """Another item on the same passage."""

    number: int
    text: str
    link: str
    square: HeatCell


@router.get("/cell")
def cell(
    visit: CurrentRequest,
    query: str,
    passage: str,
    item: str | None = None,
    whole: bool = False,
    back: str = "",
) -> HTMLResponse:
    """A part for the heat map, or a page of its own; a decision leads `back`, or here again."""
    blind = is_blind(visit)
    with visit.open() as collection:
        found = dossier(visit, collection, query, passage)
    place = cell_of(found, item, passage)
    seen_by = panel(found, place, visit.assessor, blind=blind, whole=whole)
    ids = {"query": query, "item": seen_by.place.item_id, "passage": passage}
    reply = (seen_by.grade.reply or "") if seen_by.grade else ""
    context = {
        "panel": seen_by,
        "reply": reply if whole else reply[:REPLY],
        "here": link("/cell", **ids),
        "whole": link("/cell", **ids, whole=1, back=back or None),
        "back": back if is_own(back) else "",
        "judge": link("/judge", order="cell", **ids),
    }
    if visit.wants_part:
        return visit.page("_panel.html", **context, closable=True)
    return visit.page(
        "cell.html", **context, closable=False, beside=_beside(found, visit, place[0], blind)
    )


def _beside(found: Dossier, visit: PageRequest, passage: int, blind: bool) -> list[Beside]:
    open_to = seen(found, visit, blind=blind)
    ids = {"query": found.query_id, "passage": found.grades.passage_ids[passage]}
    return [
        Beside(
            n + 1,
            one.text or one.item_id,
            link("/cell", **ids, item=one.item_id),
            square(found, (passage, n), open_to),
        )
        for n, one in enumerate(found.items)
    ]
