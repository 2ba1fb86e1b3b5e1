"""`/judge/all`: judge all passages of an item, or all items of a passage, on one page.

Decisions go to `/judge/decide`, like those of `/judge`. In blind mode the page shows no grade at
all, not even of decided cells: they would influence the decisions next to them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.records.gradebook import Cell, Dossier
from exampp.review.evidence import passage_order
from exampp.web.cells import (
    CellIds,
    PassageExcerpt,
    cell_of,
    panel,
    passage_excerpt,
    read_query,
    shorten_excerpt,
)
from exampp.web.page_request import CurrentRequest, page_of
from exampp.web.pages.judge import assignment, current_session
from exampp.web.rendering import link

router = APIRouter()
ROWS = 25
"""Cells per page."""
LENGTH = 900
"""Characters of each passage shown at first."""
By = Literal["item", "passage"]


@router.get("/judge/all")
def judge_all(
    request: CurrentRequest,
    query: str,
    by: By = "item",
    item: str | None = None,
    passage: str | None = None,
    page: int | None = None,
    whole: bool = False,
) -> HTMLResponse:
    """Show the cells of one item or one passage; a part of the page is a single cell.

    Without `page`, it is the page of the cell that `item` and `passage` name.
    """
    order = "item" if by == "item" else "query"
    with request.open() as collection:
        dossier = read_query(request, collection, query, passage if by == "passage" else None)
        order_of_passages = _passages(dossier, request.min_rating)
        session = current_session(request, collection, order)
    if not order_of_passages or not dossier.items:
        cells, at = list[Cell](), 0
    else:
        names = dossier.grades.passage_ids
        start = cell_of(dossier, item, passage or names[order_of_passages[0]])
        cells = _cells(order_of_passages, dossier, start, by)
        at = cells.index(start) if start in cells else 0
    listing = page_of(cells, page or at // ROWS + 1, ROWS)
    if request.wants_part:
        if not cells:
            raise InputError("the passage has no text to judge", field="passage")
        listing = page_of(cells, at + 1, 1)
    shares, blind, rows = assignment(request), request.is_blind, []
    for number, (row, column) in enumerate(listing.entries, listing.first + 1):
        place = CellIds(query, dossier.items[column].item_id, dossier.grades.passage_ids[row])
        hidden = blind or shares.is_shared(place)
        shown = panel(
            dossier,
            (row, column),
            request.assessor,
            blind=hidden,
            reveals=not blind,
            whole=whole or by == "passage",
        )
        if by == "item" and not whole and shown.shown is not None:
            shown = replace(shown, shown=_shortened(shown.shown))
        rows.append((number, shown))
    if request.wants_part:
        ((number, cell),) = rows
        return request.render("_judge_row.html", by=by, order=order, number=number, cell=cell)
    before, after = _beside(dossier, order_of_passages, cells, by)
    return request.render(
        "judge_all.html",
        by=by,
        order=order,
        cells=rows,
        listing=listing,
        open=sum(one.own is None for _, one in rows),
        text=passage_excerpt(dossier.texts[cells[0][0]], guesses=False, whole=True)
        if cells
        else None,
        before=before,
        after=after,
        session=session,
        without_text=len(dossier.texts) - len(order_of_passages) if by == "item" else 0,
    )


def _shortened(excerpt: PassageExcerpt) -> PassageExcerpt:
    """Cut a passage around its mark, and count what is left out."""
    short = shorten_excerpt(excerpt, LENGTH)
    full, left = (len(one.before + one.marked + one.after) for one in (excerpt, short))
    return replace(short, hidden=excerpt.hidden + max(0, full - left))


def _passages(dossier: Dossier, min_rating: int) -> list[int]:
    """Return the passages with a text, most returned first."""
    order = passage_order(dossier.grades, "agreement", min_rating)
    return [one for one in order if dossier.texts[one] is not None]


def _cells(passages: list[int], dossier: Dossier, start: Cell, by: By) -> list[Cell]:
    """Return the cells that share an item or a passage with `start`."""
    row, column = start
    if by == "item":
        return [(one, column) for one in passages]
    return [(row, one) for one in dossier.bank_order if row in passages]


def _beside(
    dossier: Dossier, passages: list[int], cells: list[Cell], by: By
) -> tuple[str | None, str | None]:
    """Return the addresses of the item or passage before and after that of the cells."""
    if not cells:
        return None, None
    row, column = cells[0]
    if by == "item":
        names = [dossier.items[one].item_id for one in dossier.bank_order]
        at = dossier.bank_order.index(column)
    else:
        names = [dossier.grades.passage_ids[one] for one in passages]
        at = passages.index(row)
    before, after = (
        link("/judge/all", by=by, query=dossier.query_id, **{by: names[near]})
        if 0 <= near < len(names)
        else None
        for near in (at - 1, at + 1)
    )
    return before, after
