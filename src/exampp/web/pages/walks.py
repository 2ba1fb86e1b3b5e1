"""In which order a person goes through cells: by the queue, a query, an item, the disputes."""

from __future__ import annotations

from collections.abc import Iterator

from exampp.collection import Collection
from exampp.records.decisions import standing
from exampp.records.dossier import Dossier
from exampp.review.queue import Candidate
from exampp.web.cell_access import dossier
from exampp.web.live_collection import decided_cells
from exampp.web.page_request import PageRequest
from exampp.web.pages.cells import CellIds, cell_of
from exampp.web.pages.heat import ordered

LENGTH = 100
"""Cells of a walk; when they are done, the next ones are asked for."""
ORDERS = {
    "queue": "what a decision could change",
    "query": "one query, passage by passage",
    "item": "one item, on all passages",
    "disputes": "what assessors differ on",
    "cell": "one cell, then its passage",
}
"""The orders of a walk, and what people read of them."""


def walk(
    visit: PageRequest,
    collection: Collection,
    order: str,
    query_id: str | None,
    item_id: str | None,
    passage_id: str | None,
) -> list[CellIds]:
    """The next cells that this person has not decided yet, at most `LENGTH`.

    A cell that is asked for comes first, decided or not.
    """
    if order == "queue" or (query_id is None and order != "disputes"):
        return _by_queue(visit, collection, query_id)
    if order == "disputes":
        return _disputed(visit, collection, query_id)
    found = dossier(visit, collection, query_id or "")
    if order == "cell" and passage_id is not None:
        cell = cell_of(found, item_id, passage_id)
        first = CellIds(found.query_id, found.items[cell[1]].item_id, passage_id)
        rest = (one for one in _open(found, visit, None, passage_id) if one != first)
        return [first, *rest][:LENGTH]
    return list(_open(found, visit, item_id if order == "item" else None, None))[:LENGTH]


def waiting(visit: PageRequest, collection: Collection, query_id: str | None) -> list[Candidate]:
    """The queue, of all queries or of one, without what has been decided since it was made."""
    decided = decided_cells(collection, visit.choice)
    return [
        one
        for one in visit.snapshot.queue
        if query_id in (None, one.query_id) and one.cell not in decided
    ]


def _by_queue(visit: PageRequest, collection: Collection, query_id: str | None) -> list[CellIds]:
    return [CellIds(*one.cell) for one in waiting(visit, collection, query_id)[:LENGTH]]


def _disputed(visit: PageRequest, collection: Collection, query_id: str | None) -> list[CellIds]:
    found = collection.decisions.disputes(query_id=query_id, **visit.choice._asdict())
    return [CellIds(one.query_id, one.item_id, one.passage_id) for one in found][:LENGTH]


def _open(
    found: Dossier, visit: PageRequest, item_id: str | None, passage_id: str | None
) -> Iterator[CellIds]:
    """Cells that this person has not decided: passage by passage, the most returned first."""
    columns = [
        (n, one.item_id) for n, one in enumerate(found.items) if item_id in (None, one.item_id)
    ]
    for passage in ordered(found.grades, "agreement", visit.min_rating).tolist():
        name = found.grades.passage_ids[passage]
        if found.texts[passage] is None or passage_id not in (None, name):
            continue
        for column, item in columns:
            if visit.assessor not in standing(found.decisions.get((passage, column), ())):
                yield CellIds(found.query_id, item, name)
