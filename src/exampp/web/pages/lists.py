"""`/lists`: the four analyses of the workbench paper as pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Response
from starlette.exceptions import HTTPException

from exampp.collection import Collection
from exampp.records.gradebook import Dossier
from exampp.records.inputs import relevance_threshold
from exampp.review.evidence import BASES, Criteria
from exampp.review.lists import (
    CellRecord,
    MissingAndSpurious,
    MissingEntry,
    QueryItem,
    QueryView,
    chosen_items,
    grid,
    seen_queries,
    verification_list,
)
from exampp.store.inputs import highest_judgment
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import (
    CurrentRequest,
    PageOfEntries,
    PageRequest,
    StillComputing,
    page_of,
)

router = APIRouter()
NAMES = {
    "verify": ("Verify grading", "every reply and grade of an item, the best and the worst first"),
    "grid": ("Grid", "the passages of a query by its items"),
    "missing": ("Missing", "relevant passages that no item covers"),
    "spurious": ("Spurious", "items covered by passages that are not relevant"),
}
"""The lists: title and content."""
PATIENCE = 3.0
"""Seconds that a page waits for the lists of all queries."""
PAGE = 50
"""Passages or items on one page."""
FEW = 6
"""Cells of each item if several items are shown."""
By = Literal["auto", "judgments", "systems", "decisions"]


class ListRequest(NamedTuple):
    """The parameters of a list: thresholds, basis of relevance, query and item."""

    min_rating: int | None
    min_relevant: int | None
    by: By
    query: str | None
    item: str | None

    def criteria(self, request: PageRequest, collection: Collection) -> Criteria:
        """Return the criteria, to be used while the collection is open."""
        return request.choice.of(collection).criteria(
            min_rating=self.min_rating, min_relevant=self.min_relevant, by=self.by
        )


async def list_request(
    request: CurrentRequest,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    by: By = "auto",
    query: str | None = None,
    item: str | None = None,
) -> ListRequest:
    """Return the parameters in an address."""
    least = request.min_rating if min_rating is None else min_rating
    return ListRequest(least, min_relevant, by, query or None, item or None)


AskedList = Annotated[ListRequest, Depends(list_request)]


@router.get("/lists")
def lists(request: CurrentRequest) -> Response:
    """Lead to the first list."""
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


class ListPage(NamedTuple):
    """A list as a page: a sheet of its entries, with what belongs to the kind of list."""

    name: str
    names: Mapping[str, tuple[str, str]]
    bases: Sequence[str]
    asked: ListRequest
    sheet: PageOfEntries[Any] | None
    query: QueryOfList | None = None
    items: Sequence[ItemCells] | Sequence[QueryItem] = ()
    found: MissingAndSpurious | None = None
    groups: Sequence[tuple[str, str, Sequence[MissingEntry]]] = ()


@router.get("/lists/{name}")
def list_page(
    request: CurrentRequest, name: str, asked: AskedList, at: int | None = None, page: int = 1
) -> Response:
    """Show a list; a form names the query by its place, which changes no id."""
    if name not in NAMES:
        raise HTTPException(404)
    queries = request.snapshot.gradebook.queries
    if at is not None and 0 <= at < len(queries):
        to = request.here(query=queries[at].query_id, item=None, at=None)
        return request.redirect_back(to, "/lists")
    with request.open() as collection:
        relevant = relevance_threshold(asked.min_relevant, highest_judgment(collection.connection))
    asked = asked._replace(min_relevant=relevant)
    context = ListPage(name, NAMES, ("auto", *BASES), asked, None)
    fill = {"verify": _verify, "grid": _grid, "missing": _missing, "spurious": _spurious}[name]
    return request.render(f"list_{name}.html", fill(request, context, page))


def _oversight(request: PageRequest, asked: ListRequest) -> MissingAndSpurious:
    """Return missing and spurious entries, of one query or of all."""
    if asked.query is not None:
        with request.open() as collection:
            dossiers = request.choice.of(collection).dossiers([asked.query], ())
            return MissingAndSpurious.of(dossiers, asked.criteria(request, collection))
    criteria = Criteria(asked.min_rating or 0, asked.min_relevant or 0, asked.by)
    counts = request.counts
    if counts is not None and counts.oversight.criteria == criteria:
        return counts.oversight
    found = request.snapshot.oversight(criteria, PATIENCE)
    if found is None:
        raise StillComputing
    return found


def _missing(request: PageRequest, context: ListPage, page: int) -> ListPage:
    found = _oversight(request, context.asked)
    sheet = page_of(found.missing, page, PAGE)
    groups = [
        (query_id, text, list(entries))
        for (query_id, text), entries in groupby(
            sheet.entries, key=lambda one: (one.item.query_id, one.item.query_text)
        )
    ]
    return context._replace(found=found, sheet=sheet, groups=groups)


def _spurious(request: PageRequest, context: ListPage, page: int) -> ListPage:
    found, item = _oversight(request, context.asked), context.asked.item
    entries = [one for one in found.spurious if item in (None, one.item.item_id)]
    return context._replace(found=found, sheet=page_of(entries, page, PAGE))


def _read(
    request: PageRequest, asked: ListRequest
) -> tuple[QueryView, Mapping[tuple[int, int], str], QueryOfList]:
    """Read the query of a list, or the first one, with the answers that were extracted."""
    snapshot = request.snapshot
    queries = snapshot.gradebook.queries
    if not queries:
        raise NothingYet("there are no queries yet", hint="Import some: exampp import")
    query_id = queries[0].query_id if asked.query is None else asked.query
    with request.open() as collection:
        dossier, answers = next(seen_queries(request.choice.of(collection), [query_id]))
        view = QueryView(dossier, asked.criteria(request, collection))
    at = snapshot.query_index.get(query_id)
    texts = [snapshot.texts.get(one.query_id) or one.query_id for one in queries]
    before = queries[at - 1].query_id if at else None
    after = queries[at + 1].query_id if at is not None and at + 1 < len(queries) else None
    return view, answers, QueryOfList(dossier, at, texts, before, after)


def _verify(request: PageRequest, context: ListPage, page: int) -> ListPage:
    view, answers, query = _read(request, context.asked)
    chosen = context.asked.item
    cells = groupby(
        verification_list(view, answers=answers, item_id=chosen), key=lambda cell: cell.item.item_id
    )
    by_item, sheet, items = {item_id: list(found) for item_id, found in cells}, None, []
    for column in chosen_items(query.dossier, chosen):
        item = query.dossier.items[column]
        found = by_item.get(item.item_id, [])
        spread = sorted(Counter(one.rating for one in found if one.rating is not None).items())
        sheet = None if chosen is None else page_of(found, page, PAGE)
        part = found[:FEW] if sheet is None else sheet.entries
        items.append(ItemCells(item.item_id, item.text, part, len(found), spread))
    return context._replace(query=query, items=items, sheet=sheet)


def _grid(request: PageRequest, context: ListPage, page: int) -> ListPage:
    view, answers, query = _read(request, context.asked)
    found = grid(view, answers=answers)
    return context._replace(query=query, items=found.items, sheet=page_of(found.rows, page, PAGE))
