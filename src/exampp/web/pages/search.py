"""`/search`: queries, items, passages, replies and reasons that hold the words asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fastapi import APIRouter, Response

from exampp.errors import InputError
from exampp.records.search import (
    LONGEST,
    SEARCH_KINDS,
    ExcerptPiece,
    SearchHit,
    SearchKind,
    excerpt_pieces,
    search_words,
)
from exampp.web.cells import is_blind
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.rendering import link

router = APIRouter()
FEW = 5
"""Records of each kind where all kinds are shown."""
PAGE = 50
"""Records on one page of a kind."""
SECONDS = 0.6
"""So long a page looks through what is stored before it says how far it came."""
QUERIES = 5
"""Queries of a passage that are named."""
HEADINGS: Mapping[SearchKind, str] = {
    "queries": "Queries",
    "items": "Items",
    "passages": "Passages",
    "replies": "Replies",
    "decisions": "Decisions",
    "edits": "Edits",
    "systems": "Systems",
}


class ShownRecord(NamedTuple):
    """A record with the address of its page, and where else it belongs: (name, address)."""

    record: SearchHit
    address: str
    pieces: list[ExcerptPiece]
    elsewhere: list[tuple[str, str]]
    more: int


class ShownKind(NamedTuple):
    """What was found of a kind; `more` is the address of the rest, "" where there is none.

    `looked` is the share that was looked through where time ran out, or None.
    """

    kind: SearchKind
    heading: str
    records: list[ShownRecord]
    more: str
    looked: float | None


@router.get("/search")
def search(visit: CurrentRequest, q: str = "", kind: str = "", after: str = "") -> Response:
    """What was found: a few of each kind, or one kind page by page."""
    one = next((known for known in SEARCH_KINDS if known == kind), None)
    words = search_words(q)
    kinds = (one,) if one else SEARCH_KINDS
    trouble, groups = "", list[ShownKind]()
    if words:
        chosen = visit.choice if visit.choices else None
        with visit.open() as collection:
            try:
                found = collection.search(
                    q,
                    kinds=kinds,
                    grader=chosen.grader.key if chosen else None,
                    bank=(chosen.bank or None) if chosen else None,
                    most=PAGE if one else FEW,
                    after=after if one else "",
                    seconds=SECONDS,
                )
            except InputError as error:
                found, trouble = [], str(error)
        groups = [
            ShownKind(
                of.kind,
                HEADINGS[of.kind],
                [_shown(visit, record, words) for record in of.records],
                link(
                    "/search", q=q, kind=of.kind, after=of.after if one or not of.records else None
                )
                if of.after
                else "",
                of.share if of.share < 1 else None,
            )
            for of in found
        ]
    return visit.page(
        "search.html",
        q=q[:LONGEST],
        cut=len(q) > LONGEST,
        words=words,
        kind=one,
        after=after,
        headings=HEADINGS,
        groups=groups,
        trouble=trouble,
        blind=is_blind(visit) and any(group.kind == "replies" for group in groups),
        longest=LONGEST,
    )


def _shown(visit: PageRequest, one: SearchHit, words: tuple[str, ...]) -> ShownRecord:
    named = [(query_id, link("/query", id=query_id)) for query_id in one.query_ids]
    return ShownRecord(
        one,
        _address(one, graded=bool(visit.choices)),
        excerpt_pieces(one.text, words),
        named[:QUERIES] if one.kind != "queries" else [],
        max(0, len(named) - QUERIES),
    )


def _address(one: SearchHit, *, graded: bool) -> str:
    """Where a record is; "" where it has no page, as nothing is graded or it has no query."""
    query = one.query_ids[0] if one.query_ids else None
    if one.kind == "items":
        if one.note:
            return link("/history", what="edits", query=query, item=one.item_id)
        return link("/items", query=query, item=one.item_id, find=one.item_id)
    if one.kind == "edits":
        return link("/history", what="edits", query=query, item=one.item_id)
    if not graded:
        return ""
    if one.kind == "systems":
        return link("/compare", b=one.text)
    if query is None:
        return ""
    if one.kind == "queries":
        return link("/query", id=query)
    return link("/cell", query=query, item=one.item_id or None, passage=one.passage_id)
