"""`/items` and `/lists`: a table of all items, and the four lists of the Workbench paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from exampp.analysis.items import ItemList, ListedItem, item_list
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.records.gradebook import Dossier, check_all_items_graded, untestable
from exampp.records.inputs import relevance_threshold
from exampp.review.answers import AnswerDifferences
from exampp.review.evidence import BASES, Criteria
from exampp.review.lists import (
    UNKNOWN_RELEVANCE,
    MissingAndSpurious,
    basis_notes,
    chosen_items,
    grid,
    item_errors,
    verification_list,
)
from exampp.review.missing import FIRST, KINDS, MissingEntry, queries_by_effect
from exampp.review.query_view import CellRecord, QueryView
from exampp.review.spurious import ADVICE
from exampp.store.inputs import highest_judgment
from exampp.web.cells import read_query
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import (
    CurrentRequest,
    PageRequest,
    StillComputing,
    TableColumn,
    computed,
    page_of,
)

router = APIRouter()
PAGE = 100
"""Items per page."""
WORST = 20
"""Number of worst items."""


COLUMNS = (
    TableColumn("Item", "item", "", lambda one: one.text.casefold(), largest_first=False),
    TableColumn("Query", "query", "", lambda one: one.query_text.casefold(), largest_first=False),
    TableColumn(
        "Covered by", "not_relevant", "shares of relevant and non-relevant passages that cover it",
        lambda one: one.not_relevant,
    ),
    TableColumn(
        "Gap", "gap", "relevant minus non-relevant", lambda one: one.gap, largest_first=False
    ),
    TableColumn(
        "Discr.", "discrimination", "correlation with the rest of the exam over systems",
        lambda one: one.discrimination, largest_first=False,
    ),
    TableColumn("Cells", "cells", "graded passages in a top 20", lambda one: one.cells),
    TableColumn("Swaps", "swaps", "pairs of systems that swap without it", lambda one: one.swaps),
    TableColumn("Lint", "lint", "likely faults of the text", lambda one: len(one.lint)),
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
    "lint": ("with lint findings", lambda one: bool(one.lint)),
    "negative": ("negative discrimination", lambda one: (one.discrimination or 0) < 0),
    "vain": ("gap of 0 or less", lambda one: one.gap is not None and one.gap <= 0),
    "overturned": ("overturned by people", lambda one: bool(one.overturned)),
    "ungraded": ("not graded", lambda one: one.cells is None),
}


class OpenItem(NamedTuple):
    """The errors of an item: covering non-relevant and non-covering relevant passages.

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
    statistics = _items(request)
    if not statistics.items:
        raise NothingYet("no items yet", hint="Import a bank: exampp import")
    words, matches = find.casefold().split(), FILTERS[only][1]
    rows = [one for one in statistics.items if matches(one) and _contains(one, words)]
    if order:
        rows = _ordered(rows, ORDERS[order])
    if order == "worst":
        rows = [one for one in rows if one.worst is not None][:WORST]
    row = (query, item)
    open_item = next((one for one in statistics.items if (one.query_id, one.item_id) == row), None)
    return request.render(
        "items.html",
        statistics=statistics,
        trouble=untestable(request.snapshot.gradebook) if request.choices else None,
        listing=page_of(rows, page, PAGE),
        columns=COLUMNS,
        filters=FILTERS,
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
    return computed(request.snapshot.items(request.bank, request.patience))


def _contains(one: ListedItem, words: Sequence[str]) -> bool:
    inside = f"{one.text}\n{one.query_text}\n{one.query_id}\n{one.item_id}".casefold()
    return all(word in inside for word in words)


def _ordered(rows: Sequence[ListedItem], by: TableColumn) -> list[ListedItem]:
    """Sort rows; those with an undefined value always come last."""
    defined = [one for one in rows if by.key(one) is not None]
    undefined = [one for one in rows if by.key(one) is None]
    return sorted(defined, key=by.key, reverse=by.largest_first) + undefined


def _editable(request: PageRequest, query: str | None) -> list[tuple[str, str]]:
    """Return the items of a query for the selected grader, including retired ones."""
    if query is None:
        return []
    with request.open() as collection:
        states = collection.bank(request.choice.bank).items(query)
    kind = request.choice.grader.kind
    return [(one.query_id, one.item_id) for one in states if one.kind == kind]


def _open(request: PageRequest, one: ListedItem) -> OpenItem:
    with request.open() as collection:
        dossier = read_query(request, collection, one.query_id)
        criteria = request.choice.of(collection).criteria(min_rating=request.min_rating)
        view = QueryView(dossier, criteria)
    return OpenItem(*item_errors(view, one.item_id), basis=view.evidence.by)


# ---- the four lists ------------------------------------------------------------------------------

NAMES = {
    "verify": ("Verify grading", "all replies and grades of an item, best and worst first"),
    "grid": ("Grid", "passages by items for one query"),
    "missing": ("Missing", "relevant passages that no item covers"),
    "spurious": ("Spurious", "items covered by non-relevant passages"),
    "answers": ("Answers", "extracted answers on which the rules for answer keys differ"),
}
"""The lists: title and content."""
ENTRIES = 50
"""Passages or items per page."""
QUERIES = 10
"""Queries with missing passages per page."""
FEW = 6
"""Cells per item if several items are shown."""
By = Literal["auto", "judgments", "systems", "graders", "decisions"]


class ListRequest(NamedTuple):
    """The parameters of a list: thresholds, basis of relevance, query, item, and part."""

    min_rating: int
    min_relevant: int | None
    by: By
    query: str | None
    item: str | None
    advice: str | None = None
    kind: str | None = None

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
    advice: str | None = None,
    kind: str | None = None,
) -> ListRequest:
    """Return the parameters in an address."""
    has_threshold = min_rating is not None
    least = request.choice.grader.threshold(min_rating) if has_threshold else request.min_rating
    return ListRequest(least, min_relevant, by, query or None, item or None, advice, kind)


AskedList = Annotated[ListRequest, Depends(list_request)]


@router.get("/lists")
def lists(request: CurrentRequest) -> Response:
    """Redirect to the first list."""
    return request.redirect("/lists/verify")


class ItemCells(NamedTuple):
    """An item with some of its `total` cells, and the count of each rating."""

    item_id: str
    text: str
    cells: Sequence[CellRecord]
    total: int
    spread: Sequence[tuple[int, int]]


class QueryOfList(NamedTuple):
    """The query of a list, its index, the texts of all queries, and its neighbours."""

    dossier: Dossier
    at: int | None
    texts: Sequence[str]
    before: str | None
    after: str | None


@router.get("/lists/{name}")
def list_page(
    request: CurrentRequest, name: str, list_of: AskedList, at: int | None = None, page: int = 1
) -> Response:
    """Show a list; `at` is the index of the query in the form."""
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
    context = _FILL[name](request, list_of, page)
    bases = ("auto", *BASES)
    return request.render(
        f"list_{name}.html", name=name, names=NAMES, bases=bases, options=list_of, **context
    )


def _oversight(request: PageRequest, options: ListRequest) -> MissingAndSpurious:
    """Return missing and spurious entries, of one query or of all."""
    check_all_items_graded(request.snapshot.gradebook, "missing passages and spurious items")
    if options.query is not None:
        with request.open() as collection:
            return request.choice.of(collection).oversight(options.criteria, [options.query])
    counts = request.counts
    if counts and counts.oversight and counts.oversight.criteria == options.criteria:
        return counts.oversight
    return computed(request.snapshot.oversight(options.criteria, request.patience))


def _missing(request: PageRequest, options: ListRequest, page: int) -> dict[str, Any]:
    oversight = _oversight(request, options)
    queries = tuple(queries_by_effect(oversight.missing))
    kind = options.kind if options.kind in KINDS else None
    listing = page_of(queries, page, len(queries) or 1 if kind else QUERIES)
    first = FIRST * QUERIES if options.query is None else len(oversight.missing)
    limit, criteria = None if kind else first, options.criteria
    entries = computed(
        request.snapshot.soon(
            ("missing", listing.entries, criteria, limit),
            lambda grades: grades.missing(listing.entries, criteria, limit),
            request.patience,
        )
    )
    by_query: dict[str, list[MissingEntry]] = {query: [] for query in listing.entries}
    for one in entries:
        if not one.same_as and kind in (None, one.kind):
            by_query[one.query_id].append(one)
    totals = Counter(one.query_id for one in oversight.missing)
    groups = [(of, totals[query]) for query, of in by_query.items() if of]
    return {
        "oversight": oversight,
        "notes": [*basis_notes(oversight.bases, oversight.criteria)],
        "unknown": UNKNOWN_RELEVANCE,
        "listing": listing,
        "groups": groups,
        "kinds": KINDS,
        "kind": kind,
    }


def _spurious(request: PageRequest, options: ListRequest, page: int) -> dict[str, Any]:
    oversight, item = _oversight(request, options), options.item
    entries = [one for one in oversight.spurious if item in (None, one.item.item_id)]
    advised = Counter(one.advice for one in entries)
    advice = options.advice if options.advice in ADVICE else None
    chosen = [one for one in entries if advice in (None, one.advice)]
    return {
        "oversight": oversight,
        "notes": [*basis_notes(oversight.bases, oversight.criteria)],
        "unknown": UNKNOWN_RELEVANCE,
        "listing": page_of(chosen, page, ENTRIES),
        "advised": advised,
        "advice": advice,
        "meanings": ADVICE,
    }


def _read(
    request: PageRequest, options: ListRequest
) -> tuple[QueryView, Mapping[tuple[int, int], str], QueryOfList]:
    """Read the query of a list, or the first one, with extracted answers."""
    snapshot = request.snapshot
    queries = snapshot.gradebook.queries
    if not queries:
        raise NothingYet("no queries yet", hint="Import queries: exampp import")
    query_id = queries[0].query_id if options.query is None else options.query
    with request.open() as collection:
        dossier, answers = next(request.choice.of(collection).with_answers([query_id]))
        view = QueryView(dossier, options.criteria)
    at = snapshot.query_index.get(query_id)
    texts = [snapshot.texts.get(one.query_id) or one.query_id for one in queries]
    before = queries[at - 1].query_id if at else None
    after = queries[at + 1].query_id if at is not None and at + 1 < len(queries) else None
    return view, answers, QueryOfList(dossier, at, texts, before, after)


def _verify(request: PageRequest, options: ListRequest, page: int) -> dict[str, Any]:
    view, answers, query = _read(request, options)
    item_prefix = options.item
    cells = groupby(
        verification_list(view, answers=answers, item_id=item_prefix),
        key=lambda cell: cell.item.item_id,
    )
    by_item, listing, items = {item_id: list(of_item) for item_id, of_item in cells}, None, []
    for column in chosen_items(query.dossier, item_prefix):
        item = query.dossier.items[column]
        of_item = by_item.get(item.item_id, [])
        spread = sorted(Counter(one.rating for one in of_item if one.rating is not None).items())
        listing = None if item_prefix is None else page_of(of_item, page, ENTRIES)
        part = of_item[:FEW] if listing is None else listing.entries
        items.append(ItemCells(item.item_id, item.text, part, len(of_item), spread))
    return {"query": query, "items": items, "listing": listing}


def _grid(request: PageRequest, options: ListRequest, page: int) -> dict[str, Any]:
    view, answers, query = _read(request, options)
    rows_by_item = grid(view, answers=answers)
    return {
        "query": query,
        "items": rows_by_item.items,
        "listing": page_of(rows_by_item.rows, page, ENTRIES),
    }


def _answers(request: PageRequest, options: ListRequest, page: int) -> dict[str, Any]:
    def find(grades: Grades) -> AnswerDifferences | str:
        try:
            return grades.answer_differences(options.query)
        except InputError as error:
            return str(error)

    key = ("answers", options.query)
    found = request.snapshot.soon(key, find, request.patience)
    if found is None:
        raise StillComputing
    if isinstance(found, str):
        return {"reason": found, "differences": None, "listing": None}
    return {"reason": "", "differences": found, "listing": page_of(found.rows, page, ENTRIES)}


_FILL = {
    "verify": _verify,
    "grid": _grid,
    "missing": _missing,
    "spurious": _spurious,
    "answers": _answers,
}
