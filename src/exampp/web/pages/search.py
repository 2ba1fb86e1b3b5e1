"""`/search`: queries, items, passages, replies and reasons that contain some words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.records.search import (
    LONGEST,
    SEARCH_KINDS,
    SearchHit,
    SearchKind,
    SearchPage,
    excerpt_pieces,
    search_words,
)
from exampp.web.page_request import CurrentRequest
from exampp.web.rendering import link

router = APIRouter()
FEW = 5
"""Records of each kind if all kinds are shown."""
PAGE = 50
"""Records that are shown of one kind."""
HEADINGS: Mapping[SearchKind, str] = {
    "queries": "Queries",
    "items": "Items",
    "passages": "Passages",
    "replies": "Replies",
    "decisions": "Decisions",
    "edits": "Edits",
    "systems": "Systems",
}


class FoundPage(NamedTuple):
    """Records by kind; `kind` is the only one that is shown, if any."""

    q: str
    words: Sequence[str]
    kind: SearchKind | None
    headings: Mapping[SearchKind, str]
    found: Sequence[SearchPage]
    trouble: str
    longest: int


@router.get("/search")
def search(request: CurrentRequest, q: str = "", kind: str = "") -> HTMLResponse:
    """Show what was found: a few records of each kind, or more of one kind."""
    one = next((known for known in SEARCH_KINDS if known == kind), None)
    words, trouble, found = search_words(q), "", list[SearchPage]()
    if words:
        chosen = request.choice if request.choices else None
        with request.open() as collection:
            try:
                found = collection.search(
                    q,
                    kinds=(one,) if one else SEARCH_KINDS,
                    grader=chosen.grader.key if chosen else None,
                    bank=(chosen.bank or None) if chosen else None,
                    most=PAGE if one else FEW,
                )
            except InputError as error:
                trouble = str(error)
    context = FoundPage(q, words, one, HEADINGS, found, trouble, LONGEST)
    return request.render("search.html", context, address=_address, pieces=excerpt_pieces)


def _address(one: SearchHit, graded: bool) -> str:
    """Return the page of a record; "" if it has none, as nothing is graded or it has no query."""
    query = one.query_ids[0] if one.query_ids else None
    if one.kind == "edits" or (one.kind == "items" and one.note):
        return link("/history", what="edits", query=query, item=one.item_id)
    if one.kind == "items":
        return link("/items", query=query, item=one.item_id, find=one.item_id)
    if graded and one.kind == "systems":
        return link("/compare", b=one.text)
    if not graded or query is None:
        return ""
    if one.kind == "queries":
        return link("/query", id=query)
    return link("/cell", query=query, item=one.item_id or None, passage=one.passage_id)
