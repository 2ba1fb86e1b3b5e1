"""`/record`: one query of a RAG collection with answers, contexts, reference and items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.review.record import default_systems
from exampp.web.page_request import CurrentRequest, PageRequest, computed

router = APIRouter()


@router.get("/record")
def record(
    request: CurrentRequest,
    query_id: Annotated[str, Query(alias="id")] = "",
    a: str = "",
    b: str = "",
) -> HTMLResponse:
    """Show the record of a query for two systems, by default the best two."""
    queries = _queries(request)
    query_id = query_id or next(iter(queries), "")
    if not query_id:
        raise InputError("the collection has no queries", hint="Add files")
    chosen, systems = [one for one in dict.fromkeys((a, b)) if one], list[str]()
    with request.open() as collection:
        if request.choices:
            snapshot = request.snapshot
            grades = request.choice.of(collection).using(snapshot.gradebook)
            systems = computed(
                snapshot.soon("best first", lambda grades: grades.best_first(), None)
            )
            if not chosen and (at := snapshot.query_index.get(query_id)) is not None:
                chosen = default_systems(snapshot.gradebook.queries[at], systems)
            found = grades.record(query_id, chosen, min_rating=snapshot.min_rating)
        else:
            found = collection.record(query_id, chosen)
            systems = [one.system for one in collection.systems]
    at = queries.index(query_id) if query_id in queries else 0
    return request.render(
        "record.html",
        record=found,
        systems=systems,
        before=queries[at - 1] if at else "",
        after=next(iter(queries[at + 1 : at + 2]), ""),
        place=(at + 1, len(queries)),
    )


def _queries(request: PageRequest) -> list[str]:
    """Return the ids of the queries, in order."""
    if request.choices:
        return list(request.snapshot.query_index)
    with request.open() as collection:
        return sorted(collection.query_texts())
