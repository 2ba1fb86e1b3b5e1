"""`/basket`: edits of items of several queries, tried out and saved together.

A basket holds the forms of banks as they were typed; it is one person's, and kept while the server
runs. Edits made by others meanwhile are shown as on the page of a bank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from exampp.collection import Collection
from exampp.errors import EditConflict, InputError
from exampp.grading.status import grading_status
from exampp.records.graders import grade_command
from exampp.review.impact import Impact
from exampp.store.bank import MAIN_BANK
from exampp.web.live_collection import Basket
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.pages.bank import (
    LABELS,
    MOVES,
    BankForm,
    Fields,
    FormLine,
    impact_of,
    save,
    typed_lines,
)

router = APIRouter()


class BasketPage(NamedTuple):
    """The edits by query, and what saving all of them would do.

    After `saved` edits, `pending` cells wait for the `command` that grades them.
    """

    texts: Mapping[str, str]
    queries: Mapping[str, Sequence[FormLine]]
    changes: int
    impact: Impact | None
    to_grade: int
    trouble: str
    reason: str
    saved: int
    pending: int
    command: str
    moves: int = MOVES
    labels: int = LABELS


def basket_of(request: PageRequest) -> Basket:
    """Return the basket of this person for the grades that are looked at."""
    if not request.choices:
        return {}
    return request.live.baskets.setdefault((request.assessor, request.choice.code), {})


def count_edits(basket: Basket) -> int:
    """Count the items with edits in a basket, new ones included."""
    return sum(
        1 if name.startswith("seen-") else sum(map(bool, values)) if name == "new-text" else 0
        for fields in basket.values()
        for name, values in fields.items()
    )


@router.get("/basket")
def basket(request: CurrentRequest, saved: int = 0) -> HTMLResponse:
    """Show the edits in the basket, and what saving all of them would do."""
    with request.open() as collection:
        return _page(request, collection, _lines(request, collection), saved=saved)


@router.post("/basket/put")
def put(request: CurrentRequest, query: str, form: BankForm) -> RedirectResponse:
    """Put what was typed about items of a query into the basket; nothing is saved.

    Items that the form leaves as they are in the bank stay as they are in the basket, unless the
    form shows them as that (`queued`).
    """
    held = basket_of(request)
    with request.open() as collection:
        lines = typed_lines(request, collection, query, form)
        added = form if "queued" in form else _changed_fields(form, lines)
        fields = merge_fields(held.get(query, {}), added)
        lines = typed_lines(request, collection, query, fields)
        held[query] = _changed_fields(fields, lines)
    if not held[query]:
        del held[query]
    return request.redirect_back("".join(form.get("back", ())), "/basket")


@router.post("/basket/drop")
def drop(
    request: CurrentRequest, query: Annotated[str, Form()], key: Annotated[str, Form()] = ""
) -> RedirectResponse:
    """Drop the edits of an item; key 0 means the new items of the query."""
    held = basket_of(request)
    left = {name: said for name, said in held.pop(query, {}).items() if _key(name) != key}
    if left:
        held[query] = left
    return request.redirect("/basket")


@router.post("/basket/save")
def save_basket(request: CurrentRequest, reason: Annotated[str, Form()] = "") -> Response:
    """Save all edits, or nothing if one is refused or conflicts with another."""
    trouble = ""
    with request.open() as collection:
        queries = _lines(request, collection)
        if not any(one.fault or one.is_conflict for lines in queries.values() for one in lines):
            try:
                saved = save(request, collection, queries, reason.strip())
                basket_of(request).clear()
                return request.redirect("/basket", saved=saved)
            except EditConflict:
                queries = _lines(request, collection)
            except InputError as error:
                trouble = str(error)
        return _page(request, collection, queries, 400 if trouble else 409, trouble, reason)


def merge_fields(old: Fields, new: Fields) -> Fields:
    """Merge a form with what was typed later: of each item, and of the new items, the later one."""
    later = {_key(name) for name in new}
    return {
        **{name: said for name, said in old.items() if _key(name) not in later},
        **{name: said for name, said in new.items() if _key(name)},
    }


def _changed_fields(fields: Fields, lines: Sequence[FormLine]) -> Fields:
    """Return the fields of the lines that change something, or are wrong."""
    keys = {str(one.key) for one in lines if one.changes}
    return {name: said for name, said in fields.items() if _key(name) in keys}


def _key(name: str) -> str:
    """Return the key of the item of a field; 0 for new items, "" for other fields."""
    kind, _, key = name.partition("-")
    return "0" if kind == "new" else key if kind in ("seen", "text", "weight", "retired") else ""


def _lines(request: PageRequest, collection: Collection) -> dict[str, list[FormLine]]:
    """Return the lines in the basket that change something, by query."""
    found = {
        query_id: [one for one in typed_lines(request, collection, query_id, fields) if one.changes]
        for query_id, fields in basket_of(request).items()
    }
    return {query_id: lines for query_id, lines in found.items() if lines}


def _page(
    request: PageRequest,
    collection: Collection,
    queries: Mapping[str, Sequence[FormLine]],
    status: int = 200,
    trouble: str = "",
    reason: str = "",
    saved: int = 0,
) -> HTMLResponse:
    impact, to_grade, pending, command = None, 0, 0, ""
    try:
        if queries:
            impact, to_grade = impact_of(request, collection, queries)
    except InputError as error:
        trouble = trouble or str(error)
    if saved:
        grader, bank = request.choice
        for one in grading_status(collection.connection, keep=False):
            if (one.grader.key, one.bank) == (grader.key, bank):
                pending = one.due
        command = grade_command(grader, request.live.path, "" if bank == MAIN_BANK else bank)
    context = BasketPage(
        request.snapshot.texts if queries else {},
        queries,
        sum(map(len, queries.values())),
        impact,
        to_grade,
        trouble,
        reason,
        saved,
        pending,
        command,
    )
    return request.render("basket.html", context, status)
