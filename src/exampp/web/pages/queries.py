"""`/queries`: every query with how far it is, how well systems do, and what is odd about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Response

from exampp.records.gradebook import MISSING, QueryGrades
from exampp.web.counts import CollectionCounts
from exampp.web.page_request import CurrentRequest, sheet
from exampp.web.rendering import link
from exampp.web.snapshot import Snapshot

router = APIRouter()
PAGE = 200
"""Queries on one page."""


class ListedQuery(NamedTuple):
    """One query of the list.

    `missing` counts its cells without a grade; `covered` its items that any passage answers.
    `mean` and `spread` are the mean and the standard deviation of the systems' Cover on it, None
    where the query does not count. `findings` are those of the bank's lint.
    """

    query_id: str
    text: str
    items: int
    passages: int
    cells: int
    missing: int
    covered: int
    mean: float | None
    spread: float | None
    decided: int
    findings: int | None


class SortHeading(NamedTuple):
    """A heading of the list: what it orders by, how, and whether it does so now."""

    name: str
    order: str
    explanation: str
    number: bool = True


HEADS = (
    SortHeading("Query", "id", "", number=False),
    SortHeading("Items", "items", "active items of the bank"),
    SortHeading("Passages", "passages", "passages with a text in the pool"),
    SortHeading("Graded", "graded", "share of the cells that have a grade"),
    SortHeading("Answered", "covered", "items that at least one passage answers"),
    SortHeading("Cover", "cover", "mean over systems of the first measure"),
    SortHeading(
        "Spread", "spread", "how much systems differ: standard deviation of the first measure"
    ),
    SortHeading("Decided", "decided", "cells on which people have decided"),
    SortHeading("Findings", "findings", "what lint found in the items"),
)
_LEAST = float("-inf")
ORDERS: Mapping[str, tuple[Callable[[ListedQuery], Any], bool]] = {
    "id": (lambda row: row.query_id, False),
    "items": (lambda row: row.items, True),
    "passages": (lambda row: row.passages, True),
    "graded": (lambda row: row.missing / row.cells if row.cells else 0.0, True),
    "covered": (lambda row: row.covered / row.items if row.items else 0.0, False),
    "cover": (lambda row: _LEAST if row.mean is None else row.mean, False),
    "spread": (lambda row: _LEAST if row.spread is None else row.spread, True),
    "decided": (lambda row: row.decided, True),
    "findings": (lambda row: row.findings or 0, True),
}
"""What the list can be ordered by, and whether from the largest: what needs people comes first."""


@router.get("/queries")
def queries(visit: CurrentRequest, find: str = "", order: str = "", page: int = 1) -> Response:
    """The queries, those that match first to last, or ordered otherwise."""
    snapshot = visit.snapshot
    rows = [row for row in query_rows(snapshot, visit.facts) if _matches(row, find)]
    if order in ORDERS:
        key, largest_first = ORDERS[order]
        rows.sort(key=key, reverse=largest_first)
    shown = sheet(rows, page, PAGE)
    return visit.page(
        "_queries.html" if visit.wants_part else "queries.html",
        heads=HEADS,
        orders=ORDERS,
        order=order if order in ORDERS else "",
        find=find,
        rows=shown.entries,
        total=shown.total,
        page=shown.page,
        pages=shown.pages,
        here=lambda **changed: link(
            "/queries", **{"find": find or None, "order": order or None, **changed}
        ),
    )


def _matches(row: ListedQuery, find: str) -> bool:
    wanted = find.casefold().split()
    inside = f"{row.query_id}\n{row.text}".casefold()
    return all(word in inside for word in wanted)


def query_rows(snapshot: Snapshot, facts: CollectionCounts | None) -> list[ListedQuery]:
    """One row per query of a snapshot, in the order of the gradebook."""
    decided = Counter(query_id for query_id, _, _ in snapshot.decided)
    column = snapshot.board.columns[0]
    place = {query_id: i for i, query_id in enumerate(column.query_ids)}
    return [
        _row(query, snapshot, column.values.values, column.values.counts, place, decided, facts)
        for query in snapshot.gradebook.queries
    ]


def _row(
    query: QueryGrades,
    snapshot: Snapshot,
    values: np.ndarray[Any, np.dtype[np.float64]],
    counts: np.ndarray[Any, np.dtype[np.bool_]],
    place: Mapping[str, int],
    decided: Mapping[str, int],
    facts: CollectionCounts | None,
) -> ListedQuery:
    ratings = query.ratings[: query.pool_size]
    at = place.get(query.query_id)
    scores = values[counts[:, at], at] if at is not None else np.empty(0)
    findings = None if facts is None else facts.findings
    return ListedQuery(
        query.query_id,
        snapshot.texts.get(query.query_id, ""),
        len(query.item_ids),
        query.pool_size,
        ratings.size,
        int((ratings == MISSING).sum()),
        int((ratings >= snapshot.min_rating).any(axis=0).sum()),
        float(scores.mean()) if scores.size else None,
        float(scores.std(ddof=1)) if scores.size > 1 else None,
        decided.get(query.query_id, 0),
        None if findings is None else findings.get(query.query_id, 0),
    )
