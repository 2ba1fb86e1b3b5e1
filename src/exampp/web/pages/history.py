"""`/history`: every decision and every edit, newest first, with undo."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Query, Response

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.decisions import Decision, replaces
from exampp.results.result import Table
from exampp.web.cells import is_blind
from exampp.web.page_request import LARGEST, CurrentRequest, PageRequest, sheet
from exampp.web.rendering import link

router = APIRouter()
PAGE = 100
"""Entries on one page."""
_SHOWN = 4
"""More edits than this that were made at once are shown as one."""
What = Literal["decisions", "edits"]


class Edited(NamedTuple):
    """One edit of the bank."""

    number: int
    query_id: str
    item_id: str
    what: str


class Edits(NamedTuple):
    """Edits of one kind that one person made at once, newest first."""

    at: str
    author: str
    operation: str
    reason: str
    edits: Sequence[Edited]

    @property
    def is_one(self) -> bool:
        """Whether they are few enough to be shown one by one."""
        return len(self.edits) <= _SHOWN


class HistoryEntry(NamedTuple):
    """One decision with what it is about; `can_undo` tells that this person can take it back."""

    decision: Decision
    query_id: str
    item_id: str
    passage_id: str
    item: str
    verdict: bool
    can_undo: bool


@router.get("/history")
def history(
    visit: CurrentRequest,
    what: What = "decisions",
    query: str | None = None,
    author: str | None = None,
    item: str | None = None,
    page: int = 1,
) -> Response:
    """Decisions or edits, newest first: all, of one query, of one item, of one person."""
    query, author, item = query or None, author or None, item or None
    with visit.open() as collection:
        if what == "decisions":
            found = _decisions(visit, collection, query, author)
            entries: Sequence[object] = [one for one in found if item in (None, one.item_id)]
        else:
            entries = edits(collection.bank(visit.bank).log(query), author, item)
    shown = sheet(entries, page, PAGE)
    return visit.page(
        "history.html",
        what=what,
        query=query,
        author=author,
        item=item,
        entries=shown.entries,
        total=shown.total,
        page=shown.page,
        pages=shown.pages,
        blind=is_blind(visit),
        here=lambda **changed: link(
            "/history", **{"what": what, "query": query, "author": author, "item": item, **changed}
        ),
    )


@router.post("/history/undo")
def undo(
    visit: CurrentRequest, what: What, number: Annotated[int, Query(ge=1, le=LARGEST)]
) -> Response:
    """Take a decision or an edit back, by appending what was before it."""
    with visit.open() as collection:
        try:
            if what == "decisions":
                collection.decisions.undo(number, author=visit.assessor)
            else:
                collection.bank(visit.bank).undo(
                    number, author=visit.assessor, reason=f"undo of edit {number}"
                )
        except InputError as error:
            answer = visit.page("undo_failed.html", what=what, text=str(error))
            answer.status_code = 409
            return answer
    visit.room.changed()
    return visit.go("/history", what=what)


def _decisions(
    visit: PageRequest, collection: Collection, query: str | None, author: str | None
) -> list[HistoryEntry]:
    made = collection.decisions.list(query_id=query, author=author)
    on_cell: dict[object, list[Decision]] = {}
    for one in collection.decisions.list(query_id=query):
        on_cell.setdefault((one.versions, one.verdict), []).append(one.decision)
    return [
        HistoryEntry(
            one.decision,
            one.query_id,
            one.item_id,
            one.passage_id,
            one.item,
            one.verdict,
            (one.decision.adjudicates or one.decision.author == visit.assessor)
            and one.decision.rating is not None
            and not _is_replaced(one.decision, on_cell[one.versions, one.verdict]),
        )
        for one in reversed(made)
    ]


def _is_replaced(decision: Decision, on_cell: Sequence[Decision]) -> bool:
    later = on_cell[on_cell.index(decision) + 1 :]
    return any(replaces(one, decision) for one in later)


def edits(log: Table, author: str | None = None, item: str | None = None) -> list[Edits]:
    """The table of `Collection.bank_log`, newest first, what was done at once together."""
    rows = [
        row for row in reversed(log.rows) if author in (None, row[2]) and item in (None, row[5])
    ]
    together = groupby(rows, key=lambda row: (row[1], row[2], row[3], row[7]))
    return [
        Edits(
            str(at),
            str(who),
            str(operation),
            str(reason),
            [Edited(int(str(row[0] or 0)), str(row[4]), str(row[5]), str(row[6])) for row in group],
        )
        for (at, who, operation, reason), group in together
    ]
