"""`/items`: all items of all queries in one table, before and after they are graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.items import ItemList, ListedItem, item_list
from exampp.review.lists import CellRecord, QueryView, item_errors
from exampp.web.cells import dossier, is_blind
from exampp.web.live_collection import NothingYet
from exampp.web.page_request import CurrentRequest, PageRequest, sheet
from exampp.web.pages.bank import typed_lines
from exampp.web.pages.bank_form import FormLine
from exampp.web.pages.basket import basket_of, gathered
from exampp.web.rendering import link, render

router = APIRouter()
PAGE = 100
"""Items on one page."""
WORST = 20
"""So many items has the list of the worst."""
PATIENCE = 3.0
"""So many seconds the page waits before it says that the items are being looked at."""


class ItemColumn(NamedTuple):
    """A column: its heading, what it orders by, what it means, which end comes first."""

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
    ItemColumn("Lint", "lint", "what is likely wrong with its text", lambda one: len(one.lint)),
    ItemColumn(
        "Overturned", "overturned", "cells where the grader saw an answer and people none",
        lambda one: one.overturned,
    ),
    ItemColumn("State", "state", "", lambda one: len(one.state)),
)  # fmt: skip
ORDERS: Mapping[str, tuple[Callable[[ListedItem], Any], bool]] = {
    **{one.order: (one.key, one.largest_first) for one in COLUMNS},
    "worst": (
        lambda one: None if one.worst is None else (one.worst, one.query_id, one.item_id),
        False,
    ),
}
FILTERS: Mapping[str, tuple[str, Callable[[ListedItem], bool]]] = {
    "": ("all items", lambda _: True),
    "lint": ("with findings of lint", lambda one: bool(one.lint)),
    "negative": ("against the rest", lambda one: (one.discrimination or 0) < 0),
    "vain": ("gap of 0 or less", lambda one: one.gap is not None and one.gap <= 0),
    "overturned": ("overturned by people", lambda one: bool(one.overturned)),
    "ungraded": ("not graded", lambda one: one.cells is None),
}


@dataclass(frozen=True)
class ItemsAsked:
    """What the address asks for; `query` and `item` name the row that is open."""

    find: str = ""
    only: str = ""
    order: str = ""
    page: int = 1
    query: str | None = None
    item: str | None = None

    @property
    def is_worst(self) -> bool:
        """Whether the worst are asked for, and nothing else."""
        return self.order == "worst"

    def address(self, **changed: object) -> str:
        """The address of this list with some of it changed."""
        given = {
            "find": self.find or None,
            "only": self.only or None,
            "order": self.order or None,
            "page": self.page if self.page > 1 else None,
            "query": self.query,
            "item": self.item,
        }
        return link("/items", **{**given, **changed})

    def is_open(self, one: ListedItem) -> bool:
        """Whether the row of an item is open."""
        return (self.query, self.item) == (one.query_id, one.item_id)


def items_asked(
    find: str = "",
    only: str = "",
    order: str = "",
    page: int = 1,
    query: str | None = None,
    item: str | None = None,
) -> ItemsAsked:
    """What an address asks for; what it does not know is left out."""
    only, order = (only if only in FILTERS else ""), (order if order in ORDERS else "")
    return ItemsAsked(find, only, order, page, query, item)


class OpenedItem(NamedTuple):
    """An item looked at: what covers it in vain, what it misses, where it is edited."""

    in_vain: list[CellRecord]
    missed: list[CellRecord]
    basis: str


@router.get("/items")
def items(visit: CurrentRequest, asked: Annotated[ItemsAsked, Depends(items_asked)]) -> Response:
    """The items that match, in an order."""
    found = _found(visit)
    if found is None:
        return HTMLResponse(render("opening.html", name=visit.room.name, to=asked.address()))
    if not found.items:
        raise NothingYet("there are no items yet", mend="Import a bank: exampp import")
    looked_at = next((one for one in found.items if asked.is_open(one)), None)
    words = asked.find.casefold().split()
    keep = FILTERS[asked.only][1]
    rows = [one for one in found.items if keep(one) and _matches(one, words)]
    if asked.order:
        rows = _ordered(rows, *ORDERS[asked.order])
    if asked.is_worst:
        rows = [one for one in rows if one.worst is not None][:WORST]
    return visit.page(
        "items.html",
        asked=asked,
        found=found,
        columns=COLUMNS,
        filters=FILTERS,
        orders=ORDERS,
        sheet=sheet(rows, asked.page, PAGE),
        opened=_opened(visit, looked_at) if looked_at and looked_at.cells is not None else None,
        line=_line(visit, asked),
        # the field that gets the focus brings the row into sight
        edits=bool(visit.choices) and visit.choice.grades_items,
        gathered=gathered(visit),
        worst=WORST,
        blind=bool(visit.choices) and is_blind(visit),
        scale=(visit.choice.grader.lowest, visit.choice.grader.highest)
        if visit.choices
        else (0, 5),
    )


def _found(visit: PageRequest) -> ItemList | None:
    if visit.choices:
        return visit.snapshot.items(visit.bank, PATIENCE)
    with visit.open() as collection:
        return item_list(collection.bank(visit.bank).texts())


def _matches(one: ListedItem, words: list[str]) -> bool:
    inside = f"{one.text}\n{one.query_text}\n{one.query_id}\n{one.item_id}".casefold()
    return all(word in inside for word in words)


def _ordered(
    rows: list[ListedItem], key: Callable[[ListedItem], Any], largest_first: bool
) -> list[ListedItem]:
    """The rows by a key; those where it is undefined come last, whichever end is first."""
    known = [one for one in rows if key(one) is not None]
    return [
        *sorted(known, key=key, reverse=largest_first),
        *(one for one in rows if key(one) is None),
    ]


def _line(visit: PageRequest, asked: ItemsAsked) -> FormLine | None:
    """The open item as it is edited here, as it stands in the basket where it does."""
    if asked.query is None or asked.item is None or not visit.choices:
        return None
    if not visit.choice.grades_items:
        return None
    with visit.open() as collection:
        fields = basket_of(visit).get(asked.query, {})
        lines = typed_lines(visit, collection, asked.query, fields)
    return next((one for one in lines if one.state and one.state.item_id == asked.item), None)


def _opened(visit: PageRequest, one: ListedItem) -> OpenedItem:
    with visit.open() as collection:
        read = dossier(visit, collection, one.query_id)
        criteria = visit.choice.of(collection).criteria(min_rating=visit.min_rating)
        sight = QueryView(read, criteria)
    return OpenedItem(*item_errors(sight, one.item_id), basis=sight.evidence.by)
