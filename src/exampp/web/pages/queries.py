"""`/queries`, `/query`, `/cell`, `/search`: queries, passages by items, cells, any record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.records.gradebook import MISSING, Dossier
from exampp.records.inputs import read_sentence
from exampp.records.selection import SEARCH_KINDS, SearchKind
from exampp.records.turns import turns_of
from exampp.records.wording import cut_text
from exampp.review.evidence import item_coverage, passage_order, returned
from exampp.store.inputs import unanswerable_queries
from exampp.store.search import (
    LONGEST,
    SearchHit,
    SearchPage,
    excerpt_pieces,
    search_words,
)
from exampp.web.cells import (
    HeatCell,
    cell_of,
    heat_cell,
    marks_of,
    panel,
    read_query,
    visible_cells,
)
from exampp.web.page_request import CurrentRequest, TableColumn, is_own, page_of
from exampp.web.rendering import link

router = APIRouter()
QUERIES = 200
"""Queries per page."""
PASSAGES = 100
"""Passages per page of the heat map."""
START = 120
"""Characters of the start of a passage."""
REPLY = 20_000
"""Maximum characters of a reply on a page."""

# ---- all queries ---------------------------------------------------------------------------------


_LEAST = float("-inf")
COLUMNS = (
    TableColumn("Query", "id", "", lambda row: row.query_id, largest_first=False),
    TableColumn("Items", "items", "active items of the bank", lambda row: row.items),
    TableColumn(
        "Passages", "passages", "passages with a text in the pool", lambda row: row.passages
    ),
    TableColumn(
        "Graded",
        "graded",
        "share of the cells that have a grade",
        lambda row: row.missing / row.cells if row.cells else 0.0,
    ),
    TableColumn(
        "Answered",
        "covered",
        "items answered by at least one passage, without items to avoid",
        lambda row: row.covered / row.wanted if row.wanted else 0.0,
        largest_first=False,
    ),
    TableColumn(
        "Cover",
        "cover",
        "mean over systems of the first measure",
        lambda row: _LEAST if row.mean is None else row.mean,
        largest_first=False,
    ),
    TableColumn(
        "Spread",
        "spread",
        "how much systems differ: standard deviation of the first measure",
        lambda row: _LEAST if row.spread is None else row.spread,
    ),
    TableColumn("Decided", "decided", "cells with human decisions", lambda row: row.decided),
    TableColumn(
        "Findings", "findings", "lint findings on the items", lambda row: row.findings or 0
    ),
)


@router.get("/queries")
def queries(
    request: CurrentRequest, find: str = "", order: str = "", page: int = 1
) -> HTMLResponse:
    """List the queries."""
    rows, counts = request.snapshot.query_summaries, request.counts
    if counts is not None:
        rows = [row._replace(findings=counts.findings.get(row.query_id, 0)) for row in rows]
    words = find.casefold().split()
    rows = [
        row
        for row in rows
        if all(word in f"{row.query_id}\n{row.text}".casefold() for word in words)
    ]
    for one in COLUMNS:
        if one.order == order:
            rows.sort(key=one.key, reverse=one.largest_first)
    return request.render(
        "_queries.html" if request.wants_part else "queries.html",
        columns=COLUMNS,
        order=order,
        find=find,
        listing=page_of(rows, page, QUERIES),
        has_turns=any(turns_of(row.text) for row in rows),
        has_sentences=bool(rows) and read_sentence(rows[0].query_id) is not None,
    )


# ---- one query -----------------------------------------------------------------------------------

ORDERS = {
    "agreement": "systems that return it",
    "rating": "best ratings",
    "judgment": "judged relevance",
    "rank": "best rank",
    "pool": "passage id",
}
"""Orders of the passages, with their names."""
REVEALING = ("rating", "judgment")
"""Orders that reveal grades to people who decide blind."""


class HeatRow(NamedTuple):
    """A passage: the start of its text, the systems that return it, its relevance, its cells."""

    passage_id: str
    start: str
    systems: int
    best_rank: int
    relevance: int | None
    cells: Sequence[HeatCell]


class HeatColumn(NamedTuple):
    """An item: its number, weight, and the number of graded passages that cover it."""

    number: int
    item_id: str
    text: str
    weight: float
    turn: int | None
    covered: int
    graded: int


@router.get("/query")
def query(
    request: CurrentRequest,
    query_id: Annotated[str, Query(alias="id")],
    order: str = "agreement",
    page: int = 1,
) -> HTMLResponse:
    """Show the heat map of a query."""
    with request.open() as collection:
        dossier = read_query(request, collection, query_id)
        unanswerable = unanswerable_queries(collection.connection)
    visible = visible_cells(dossier, request)
    orders = {k: v for k, v in ORDERS.items() if visible is None or k not in REVEALING}
    order = order if order in orders else "agreement"
    listing = page_of(passage_order(dossier.grades, order, request.min_rating), page, PASSAGES)
    return request.render(
        "query.html",
        dossier=dossier,
        is_unanswerable=unanswerable.get(query_id, False),
        columns=heat_columns(dossier, request.min_rating),
        rows=heat_rows(dossier, listing.entries, visible),
        listing=listing,
        order=order,
        orders=orders,
        marks=marks_of(dossier),
    )


def heat_columns(dossier: Dossier, min_rating: int) -> list[HeatColumn]:
    """Return the items of a query in the order of the bank."""
    coverage, weights = item_coverage(dossier.grades, min_rating), dossier.grades.weights
    return [
        HeatColumn(number, one.item_id, one.text, float(weights[at]), one.turn, *coverage[at])
        for number, at in enumerate(dossier.bank_order, 1)
        for one in [dossier.items[at]]
    ]


def heat_rows(
    dossier: Dossier, passages: Sequence[int], visible: frozenset[tuple[int, int]] | None
) -> list[HeatRow]:
    """Return some passages by all items; only `visible` cells have a grade, or all if None."""
    grades = dossier.grades
    by, relevance = returned(grades, None), grades.judgments.max(axis=0, initial=MISSING)
    return [
        HeatRow(
            grades.passage_ids[passage],
            _start(dossier, passage),
            int(by.counts[passage]),
            int(by.best[passage]),
            None
            if visible is not None or relevance[passage] == MISSING
            else int(relevance[passage]),
            [heat_cell(dossier, (passage, item), visible) for item in dossier.bank_order],
        )
        for passage in passages
    ]


def _start(dossier: Dossier, passage: int) -> str:
    text = dossier.texts[passage]
    return (
        ""
        if text is None
        else cut_text(f"{text.title}: {text.text}" if text.title else text.text, START)
    )


@router.get("/query/square")
def query_cell(request: CurrentRequest, query: str, item: str, passage: str) -> HTMLResponse:
    """Return one cell of the heat map, to replace it after a decision."""
    with request.open() as collection:
        dossier = read_query(request, collection, query)
    cell, visible = cell_of(dossier, item, passage), visible_cells(dossier, request)
    return request.render("_heat_cell.html", cell=heat_cell(dossier, cell, visible))


# ---- one cell ------------------------------------------------------------------------------------


@router.get("/cell")
def cell(
    request: CurrentRequest,
    query: str,
    passage: str,
    item: str | None = None,
    whole: bool = False,
    back: str = "",
) -> HTMLResponse:
    """Show a cell as a page, or as a panel next to the heat map."""
    with request.open() as collection:
        dossier = read_query(request, collection, query, passage)
    at = cell_of(dossier, item, passage)
    cell_panel = panel(dossier, at, request.assessor, blind=request.is_blind, whole=whole)
    ids = {"query": query, "item": cell_panel.place.item_id, "passage": passage}
    reply, visible = (
        (cell_panel.grade and cell_panel.grade.reply) or "",
        visible_cells(dossier, request),
    )
    columns = heat_columns(dossier, request.min_rating)
    return request.render(
        "_panel.html" if request.wants_part else "cell.html",
        panel=cell_panel,
        reply=reply if whole else reply[:REPLY],
        here=link("/cell", **ids),
        whole=link("/cell", **ids, whole=1, back=back or None),
        back=back if is_own(back) else "",
        judge=link("/judge", order="cell", **ids),
        beside=[
            (column, heat_cell(dossier, (at[0], place), visible))
            for column, place in zip(columns, dossier.bank_order, strict=True)
        ],
    )


# ---- search -------------------------------------------------------------------------------------

FEW = 5
"""Records per kind if all kinds are shown."""
PAGE = 50
"""Records if one kind is shown."""
HEADINGS: Mapping[SearchKind, str] = {
    "queries": "Queries",
    "items": "Items",
    "passages": "Passages",
    "replies": "Replies",
    "decisions": "Decisions",
    "edits": "Edits",
    "systems": "Systems",
}


@router.get("/search")
def search(request: CurrentRequest, q: str = "", kind: str = "") -> HTMLResponse:
    """Show the search results: a few records of each kind, or more of one kind."""
    one = next((known for known in SEARCH_KINDS if known == kind), None)
    words, trouble, groups = search_words(q), "", list[SearchPage]()
    if words:
        choice = request.choice if request.choices else None
        with request.open() as collection:
            try:
                groups = collection.search(
                    q,
                    kinds=(one,) if one else SEARCH_KINDS,
                    grader=choice.grader.key if choice else None,
                    bank=(choice.bank or None) if choice else None,
                    most=PAGE if one else FEW,
                )
            except InputError as error:
                trouble = str(error)
    return request.render(
        "search.html",
        address=_address,
        pieces=excerpt_pieces,
        q=q,
        words=words,
        kind=one,
        headings=HEADINGS,
        groups=groups,
        trouble=trouble,
        longest=LONGEST,
    )


def _address(one: SearchHit, graded: bool) -> str:
    """Return the page of a record; "" if nothing is graded or the record has no query."""
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
