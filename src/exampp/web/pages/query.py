"""`/query`: the bank of a query beside the heat map of its passages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from exampp.web.cells import cell_of, dossier, is_blind, marks, seen
from exampp.web.page_request import CurrentRequest
from exampp.web.pages.heat import ORDERS, heat_map, square

router = APIRouter()
TELLING = frozenset({"rating", "judgment"})
"""Orders that say what those who decide blind must not see."""


@router.get("/query")
def query(
    visit: CurrentRequest,
    query_id: Annotated[str, Query(alias="id")],
    order: str = "agreement",
    page: int = 1,
) -> HTMLResponse:
    """One page of the passages of a query."""
    blind = is_blind(visit)
    with visit.open() as collection:
        found = dossier(visit, collection, query_id)
    orders = {name: said for name, said in ORDERS.items() if not (blind and name in TELLING)}
    if order not in orders:
        order = "agreement"
    shown = heat_map(
        found,
        min_rating=visit.min_rating,
        order=order,
        page=page,
        seen=seen(found, visit, blind=blind),
    )
    return visit.page(
        "query.html",
        dossier=found,
        map=shown,
        orders=orders,
        marks=marks(found.grader),
        min_rating=visit.min_rating,
        blind=blind,
    )


@router.get("/query/square")
def one_square(visit: CurrentRequest, query: str, item: str, passage: str) -> HTMLResponse:
    """One cell of the heat map, to be put in place after a decision."""
    with visit.open() as collection:
        found = dossier(visit, collection, query)
    cell = cell_of(found, item, passage)
    said = square(found, cell, seen(found, visit, blind=is_blind(visit)))
    return visit.page("_square.html", s=said)
