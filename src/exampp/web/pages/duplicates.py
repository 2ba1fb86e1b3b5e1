"""`/duplicates`: groups of items that ask the same thing, to merge, count once or keep apart."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.selection import DuplicateChoice
from exampp.results.result import Table
from exampp.web.page_request import CurrentRequest, PageRequest, computed, page_of

router = APIRouter()
PAGE = 50
"""Groups per page."""
MEASURES = ("Cover@20", "nCover@20")


@router.get("/duplicates")
def duplicates(
    request: CurrentRequest,
    query: str | None = None,
    count: DuplicateChoice = "each",
    page: int = 1,
    saved: int = 0,
) -> HTMLResponse:
    """List the groups of duplicates in the bank; `count` adds the scores that count them once."""
    return _page(request, query=query, count=count, page=page, saved=saved)


@router.post("/duplicates/settle")
def settle(
    request: CurrentRequest,
    query: str,
    operation: Annotated[Literal["merge", "same", "different"], Form()],
    item: Annotated[list[str], Form()],
    first: Annotated[str, Form()],
    seen: Annotated[int, Form()],
    kind: Annotated[str, Form()],
) -> Response:
    """Merge the items of a group into `first`, or mark them as the same or as different."""
    others = [one for one in item if one != first]
    with request.open() as collection:
        bank = collection.bank(request.bank)
        try:
            saved = bank.edit(
                operation,
                first,
                *others,
                query_id=query,
                kind=kind,
                author=request.assessor,
                reason="duplicates",
                seen=seen,
            ).rows
        except InputError as error:
            return _page(request, query=query, trouble=str(error))
    request.live.changed()
    return request.redirect("/duplicates", saved=len(saved))


def _page(
    request: PageRequest,
    *,
    query: str | None = None,
    count: DuplicateChoice = "each",
    page: int = 1,
    saved: int = 0,
    trouble: str = "",
) -> HTMLResponse:
    snapshot, name = request.snapshot, request.bank
    with request.open() as collection:
        number = collection.bank(name).version().number

    def compute() -> Table:
        # in a thread, which needs a separate connection
        with Collection(snapshot.path) as collection:
            return collection.bank(name).duplicates()

    key = ("duplicates", name, number)
    found = computed(snapshot.cache.soon(key, compute, request.patience))
    groups = [[*rows] for _, rows in groupby(found.rows, key=itemgetter(0))]
    board = None
    if count != "each" and snapshot.gradebook.is_graded:
        with snapshot.grades() as grades:
            board = grades.evaluate(
                MEASURES, min_rating=snapshot.min_rating, duplicates=count
            ).tables()["leaderboard"]
    of_query = [rows for rows in groups if query in (None, rows[0][1])]
    return request.render(
        "duplicates.html",
        400 if trouble else 200,
        listing=page_of(of_query, page, PAGE),
        verdict=found.verdict,
        query=query,
        count=count,
        board=board,
        seen=number,
        saved=saved,
        trouble=trouble,
    )
