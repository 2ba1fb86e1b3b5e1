"""`/items` and `/lists`: all items in one table, and the four lists of the workbench paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from exampp.analysis.items import ItemList, ListedItem, item_list
from exampp.records.gradebook import Dossier
from exampp.records.inputs import relevance_threshold
from exampp.review.evidence import BASES, Criteria
from exampp.review.lists import (
    CellRecord,
    MissingAndSpurious,
    QueryView,
    chosen_items,
    grid,
    item_errors,
    verification_list,
)
from exampp.store.inputs import highest_judgment
from exampp.web.cells import read_query
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import (
    CurrentRequest,
    PageRequest,
    StillComputing,
    TableColumn,
    page_of,
)

router = APIRouter()
PAGE = 100
"""Items on one page."""
WORST = 20
"""Items in the list of the worst."""
PATIENCE = 3.0
"""Seconds that a page waits for the statistics of items, or for the lists of all queries."""


COLUMNS = (
    TableColumn("Item", "item", "", lambda one: one.text.casefold(), largest_first=False),
    TableColumn("Query", "query", "", lambda one: one.query_text.casefold(), largest_first=False),
    TableColumn(
        "Covered by", "not_relevant", "shares covered of relevant and of not relevant passages",
        lambda one: one.not_relevant,
    ),
    TableColumn(
        "Gap", "gap", "relevant minus not relevant", lambda one: one.gap, largest_first=False
    ),
    TableColumn(
        "Discr.", "discrimination", "correlation with the rest of the exam over systems",
        lambda one: one.discrimination, largest_first=False,
    ),
    TableColumn("Cells", "cells", "graded passages in a top 20", lambda one: one.cells),
    TableColumn("Swaps", "swaps", "pairs of systems that swap without it", lambda one: one.swaps),
    TableColumn("Lint", "lint", "likely faults of its text", lambda one: len(one.lint)),
    TableColumn(
        "Overturned", "overturned", "cells where the grader saw an answer and people none",
        lambda one: one.overturned,
    ),
    TableColumn("State", "state", "", lambda one: len(one.state)),
)  # fmt: skip
WORST_FIRST = TableColumn(
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

    `basis` is the source of relevance.
    """

    spurious: Sequence[CellRecord]
    missed: Sequence[CellRecord]
    basis: str


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
    open_item = next((one for one in found.items if (one.query_id, one.item_id) == row), None)
    return request.render(
        "items.html",
        found=found,
        sheet=page_of(rows, page, PAGE),
        columns=COLUMNS,
        filters=FILTERS,
        worst=WORST,
        find=find,
        only=only,
        order=order,
        open_row=row,
        open=_open(request, open_item) if open_item and open_item.cells is not None else None,
        is_graded_here=bool(open_item and request.choices) and row in _editable(request, query),
    )


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


def _ordered(rows: Sequence[ListedItem], by: TableColumn) -> list[ListedItem]:
    """Sort rows; those with an undefined value come last, whichever end is first."""
    known = [one for one in rows if by.key(one) is not None]
    undefined = [one for one in rows if by.key(one) is None]
    return sorted(known, key=by.key, reverse=by.largest_first) + undefined


def _editable(request: PageRequest, query: str | None) -> list[tuple[str, str]]:
    """Return the items of a query that the grader grades, retired ones too."""
    if query is None:
        return []
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


# ---- the four lists ------------------------------------------------------------------------------

NAMES = {
    "verify": ("Verify grading", "every reply and grade of an item, the best and the worst first"),
    "grid": ("Grid", "the passages of a query by its items"),
    "missing": ("Missing", "relevant passages that no item covers"),
    "spurious": ("Spurious", "items covered by passages that are not relevant"),
}
"""The lists: title and content."""
ENTRIES = 50
"""Passages or items on one page."""
FEW = 6
"""Cells of each item if several items are shown."""
By = Literal["auto", "judgments", "systems", "graders", "decisions"]


class ListRequest(NamedTuple):
    """The parameters of a list: thresholds, basis of relevance, query and item."""

    min_rating: int
    min_relevant: int | None
    by: By
    query: str | None
    item: str | None

    @property
    def criteria(self) -> Criteria:
        """Return the criteria of answers and relevance."""
        return Criteria(self.min_rating, self.min_relevant or 0, self.by)


async def list_request(
    request: CurrentRequest,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    by: By = "auto",
    query: str | None = None,
    item: str | None = None,
) -> ListRequest:
    """Return the parameters in an address."""
    has_threshold = min_rating is not None
    least = request.choice.grader.threshold(min_rating) if has_threshold else request.min_rating
    return ListRequest(least, min_relevant, by, query or None, item or None)


AskedList = Annotated[ListRequest, Depends(list_request)]


@router.get("/lists")
def lists(request: CurrentRequest) -> Response:
    """Redirect to the first list."""
    return request.redirect("/lists/verify")


class ItemCells(NamedTuple):
    """An item with some of its `total` cells, and how often each rating occurs."""

    item_id: str
    text: str
    cells: Sequence[CellRecord]
    total: int
    spread: Sequence[tuple[int, int]]


class QueryOfList(NamedTuple):
    """The query of a list: its place among all, their texts, and the queries before and after."""

    dossier: Dossier
    at: int | None
    texts: Sequence[str]
    before: str | None
    after: str | None


@router.get("/lists/{name}")
def list_page(
    request: CurrentRequest, name: str, list_of: AskedList, at: int | None = None, page: int = 1
) -> Response:
    """Show a list; a form names the query by its place, which changes no id."""
    if name not in NAMES:
        raise HTTPException(404)
    queries = request.snapshot.gradebook.queries
    if at is not None and 0 <= at < len(queries):
        to = request.here(query=queries[at].query_id, item=None, at=None)
        return request.redirect_back(to, "/lists")
    with request.open() as collection:
        relevant = relevance_threshold(
            list_of.min_relevant, highest_judgment(collection.connection)
        )
    list_of = list_of._replace(min_relevant=relevant)
    fill = {"verify": _verify, "grid": _grid, "missing": _missing, "spurious": _spurious}[name]
    context = fill(request, list_of, page)
    bases = ("auto", *BASES)
    return request.render(
        f"list_{name}.html", name=name, names=NAMES, bases=bases, asked=list_of, **context
    )


def _oversight(request: PageRequest, wanted: ListRequest) -> MissingAndSpurious:
    """Return missing and spurious entries, of one query or of all."""
    if wanted.query is not None:
        with request.open() as collection:
            dossiers = request.choice.of(collection).dossiers([wanted.query], ())
            return MissingAndSpurious.of(dossiers, wanted.criteria)
    counts = request.counts
    if counts is not None and counts.oversight.criteria == wanted.criteria:
        return counts.oversight
    found = request.snapshot.oversight(wanted.criteria, PATIENCE)
    if found is None:
        raise StillComputing
    return found


def _missing(request: PageRequest, wanted: ListRequest, page: int) -> dict[str, Any]:
    found = _oversight(request, wanted)
    sheet = page_of(found.missing, page, ENTRIES)
    groups = [
        (query_id, text, list(entries))
        for (query_id, text), entries in groupby(
            sheet.entries, key=lambda one: (one.item.query_id, one.item.query_text)
        )
    ]
    return {"found": found, "sheet": sheet, "groups": groups}


def _spurious(request: PageRequest, wanted: ListRequest, page: int) -> dict[str, Any]:
    found, item = _oversight(request, wanted), wanted.item
    entries = [one for one in found.spurious if item in (None, one.item.item_id)]
    return {"found": found, "sheet": page_of(entries, page, ENTRIES)}


def _read(
    request: PageRequest, wanted: ListRequest
) -> tuple[QueryView, Mapping[tuple[int, int], str], QueryOfList]:
    """Read the query of a list, or the first one, with the answers that were extracted."""
    snapshot = request.snapshot
    queries = snapshot.gradebook.queries
    if not queries:
        raise NothingYet("there are no queries yet", hint="Import some: exampp import")
    query_id = queries[0].query_id if wanted.query is None else wanted.query
    with request.open() as collection:
        dossier, answers = next(request.choice.of(collection).with_answers([query_id]))
        view = QueryView(dossier, wanted.criteria)
    at = snapshot.query_index.get(query_id)
    texts = [snapshot.texts.get(one.query_id) or one.query_id for one in queries]
    before = queries[at - 1].query_id if at else None
    after = queries[at + 1].query_id if at is not None and at + 1 < len(queries) else None
    return view, answers, QueryOfList(dossier, at, texts, before, after)


def _verify(request: PageRequest, wanted: ListRequest, page: int) -> dict[str, Any]:
    view, answers, query = _read(request, wanted)
    chosen = wanted.item
    cells = groupby(
        verification_list(view, answers=answers, item_id=chosen), key=lambda cell: cell.item.item_id
    )
    by_item, sheet, items = {item_id: list(found) for item_id, found in cells}, None, []
    for column in chosen_items(query.dossier, chosen):
        item = query.dossier.items[column]
        found = by_item.get(item.item_id, [])
        spread = sorted(Counter(one.rating for one in found if one.rating is not None).items())
        sheet = None if chosen is None else page_of(found, page, ENTRIES)
        part = found[:FEW] if sheet is None else sheet.entries
        items.append(ItemCells(item.item_id, item.text, part, len(found), spread))
    return {"query": query, "items": items, "sheet": sheet}


def _grid(request: PageRequest, wanted: ListRequest, page: int) -> dict[str, Any]:
    view, answers, query = _read(request, wanted)
    found = grid(view, answers=answers)
    return {"query": query, "items": found.items, "sheet": page_of(found.rows, page, ENTRIES)}
