"""`/items`: all items of all queries in one table, before and after they are graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.analysis.items import ItemList, ListedItem, item_list
from exampp.review.lists import CellRecord, QueryView, item_errors
from exampp.web.cells import read_query
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import (
    CurrentRequest,
    PageOfEntries,
    PageRequest,
    StillComputing,
    page_of,
)

router = APIRouter()
PAGE = 100
"""Items on one page."""
WORST = 20
"""Items in the list of the worst."""
PATIENCE = 3.0
"""Seconds that the page waits for the statistics of items."""


class ItemColumn(NamedTuple):
    """A column: heading, name of the order, explanation, sort key, whether it sorts descending."""

    name: str
    order: str
    explanation: str
    key: Callable[[ListedItem], Any]
    largest_first: bool = True


COLUMNS = (
    ItemColumn("Item", "item", "", lambda one: one.text.casefold(), largest_first=False),
    ItemColumn("Query", "query", "", lambda one: one.query_text.casefold(), largest_first=False),
    ItemColumn(
        "Covered by", "not_relevant", "shares covered of relevant and of not relevant passages",
        lambda one: one.not_relevant,
    ),
    ItemColumn(
        "Gap", "gap", "relevant minus not relevant", lambda one: one.gap, largest_first=False
    ),
    ItemColumn(
        "Discr.", "discrimination", "correlation with the rest of the exam over systems",
        lambda one: one.discrimination, largest_first=False,
    ),
    ItemColumn("Cells", "cells", "graded passages in a top 20", lambda one: one.cells),
    ItemColumn("Swaps", "swaps", "pairs of systems that swap without it", lambda one: one.swaps),
    ItemColumn("Lint", "lint", "likely faults of its text", lambda one: len(one.lint)),
    ItemColumn(
        "Overturned", "overturned", "cells where the grader saw an answer and people none",
        lambda one: one.overturned,
    ),
    ItemColumn("State", "state", "", lambda one: len(one.state)),
)  # fmt: skip
WORST_FIRST = ItemColumn(
    "Worst",
    "worst",
    "",
    lambda one: None if one.worst is None else (one.worst, one.query_id, one.item_id),
    largest_first=False,
)
ORDERS = {one.order: one for one in (*COLUMNS, WORST_FIRST)}
FILTERS: Mapping[str, tuple[str, Callable[[ListedItem], bool]]] = {
    "": ("all items", lambda _: True),
    "lint": ("with findings of lint", lambda one: bool(one.lint)),
    "negative": ("against the rest", lambda one: (one.discrimination or 0) < 0),
    "vain": ("gap of 0 or less", lambda one: one.gap is not None and one.gap <= 0),
    "overturned": ("overturned by people", lambda one: bool(one.overturned)),
    "ungraded": ("not graded", lambda one: one.cells is None),
}


class OpenItem(NamedTuple):
    """The errors of an item: passages that cover it though not relevant, and relevant ones not.

    `basis` says by what relevance is known.
    """

    spurious: Sequence[CellRecord]
    missed: Sequence[CellRecord]
    basis: str


class ItemsPage(NamedTuple):
    """The items that match, in an order; `open` belongs to the row that is open.

    `is_graded_here` tells whether the grader grades items of its kind.
    """

    found: ItemList
    sheet: PageOfEntries[ListedItem]
    columns: Sequence[ItemColumn]
    filters: Mapping[str, tuple[str, Callable[[ListedItem], bool]]]
    worst: int
    find: str
    only: str
    order: str
    open_row: tuple[str | None, str | None]
    open: OpenItem | None
    is_graded_here: bool


@router.get("/items")
def items(
    request: CurrentRequest,
    find: str = "",
    only: str = "",
    order: str = "",
    page: int = 1,
    query: str | None = None,
    item: str | None = None,
) -> HTMLResponse:
    """List the items that match; the row of `item` is open."""
    only, order = (only if only in FILTERS else ""), (order if order in ORDERS else "")
    found = _items(request)
    if not found.items:
        raise NothingYet("there are no items yet", hint="Import a bank: exampp import")
    words, matches = find.casefold().split(), FILTERS[only][1]
    rows = [one for one in found.items if matches(one) and _contains(one, words)]
    if order:
        rows = _ordered(rows, ORDERS[order])
    if order == "worst":
        rows = [one for one in rows if one.worst is not None][:WORST]
    row = (query, item)
    chosen = next((one for one in found.items if (one.query_id, one.item_id) == row), None)
    context = ItemsPage(
        found,
        page_of(rows, page, PAGE),
        COLUMNS,
        FILTERS,
        WORST,
        find,
        only,
        order,
        row,
        _open(request, chosen) if chosen and chosen.cells is not None else None,
        bool(chosen and request.choices) and row in _editable(request, query),
    )
    return request.render("items.html", context)


def _items(request: PageRequest) -> ItemList:
    if not request.choices:
        with request.open() as collection:
            return item_list(collection.bank(request.bank).texts())
    found = request.snapshot.items(request.bank, PATIENCE)
    if found is None:
        raise StillComputing
    return found


def _contains(one: ListedItem, words: Sequence[str]) -> bool:
    inside = f"{one.text}\n{one.query_text}\n{one.query_id}\n{one.item_id}".casefold()
    return all(word in inside for word in words)


def _ordered(rows: Sequence[ListedItem], by: ItemColumn) -> list[ListedItem]:
    """Sort rows; those with an undefined value come last, whichever end is first."""
    known = [one for one in rows if by.key(one) is not None]
    undefined = [one for one in rows if by.key(one) is None]
    return sorted(known, key=by.key, reverse=by.largest_first) + undefined


def _editable(request: PageRequest, query: str | None) -> list[tuple[str, str]]:
    """Return the items of a query that the grader grades, retired ones too."""
    with request.open() as collection:
        found = collection.bank(request.choice.bank).items(query)
    kind = request.choice.grader.kind
    return [(one.query_id, one.item_id) for one in found if one.kind == kind]


def _open(request: PageRequest, one: ListedItem) -> OpenItem:
    with request.open() as collection:
        dossier = read_query(request, collection, one.query_id)
        criteria = request.choice.of(collection).criteria(min_rating=request.min_rating)
        view = QueryView(dossier, criteria)
    return OpenItem(*item_errors(view, one.item_id), basis=view.evidence.by)
