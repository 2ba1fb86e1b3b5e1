"""`/lists`: the four analyses of the workbench paper as pages, each also as a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from exampp.collection import Collection
from exampp.records.inputs import relevance_threshold
from exampp.results.result import render
from exampp.review.evidence import BASES, Criteria
from exampp.review.lists import (
    Answers,
    CellRecord,
    QueryView,
    chosen_items,
    grid,
    seen_queries,
    verify,
)
from exampp.store.inputs import highest_judgment
from exampp.web.cells import is_blind
from exampp.web.live_collection import NothingYet
from exampp.web.oversight import MissingAndSpurious
from exampp.web.page_request import CurrentRequest, PageRequest, sheet
from exampp.web.rendering import link
from exampp.web.rendering import render as render_page

router = APIRouter()

NAMES = {
    "verify": ("Verify grading", "every reply and grade of an item, the best and the worst first"),
    "grid": ("Grid", "the passages of a query by its items"),
    "missing": ("Missing", "relevant passages that no item covers: what the bank lacks"),
    "spurious": ("Spurious", "items that passages cover which are not relevant"),
}
"""The lists: what they are called, and what they hold."""
KINDS = {"tsv": "text/tab-separated-values", "json": "application/json", "md": "text/markdown"}
_STYLES = {"md": "markdown"}
PATIENCE = 3.0
"""So many seconds a page waits for all queries to be looked through before it says that it does."""
PAGE = 50
"""Passages or items on one page."""
FEW = 6
"""Cells of each item where several items are shown."""
By = Literal["auto", "judgments", "systems", "graders", "decisions"]


@dataclass(frozen=True)
class ListRequest:
    """What a list was asked for.

    `min_rating` is the lowest rating that covers an item, `min_relevant` the lowest judgment of a
    relevant passage, `by` the basis of relevance; `at` is the place of a query in the gradebook,
    which a form can name without changing an id.
    """

    min_rating: int
    min_relevant: int
    by: By = "auto"
    query: str | None = None
    item: str | None = None

    def criteria(self, visit: PageRequest, collection: Collection) -> Criteria:
        """It as what counts, to be used while the collection is open."""
        return visit.choice.of(collection).criteria(
            min_rating=self.min_rating, min_relevant=self.min_relevant, by=self.by
        )

    def address(self, path: str, **changed: object) -> str:
        """The address of this list, or of another, asked for the same."""
        given = {
            "min_rating": self.min_rating,
            "min_relevant": self.min_relevant,
            "by": None if self.by == "auto" else self.by,
            "query": self.query,
            "item": self.item,
        }
        return link(path, **{**given, **changed})


@router.get("/lists")
def lists(visit: CurrentRequest) -> Response:
    """The first list."""
    return visit.go("/lists/verify")


@router.get("/lists/{name}.{kind}")
def list_file(
    visit: CurrentRequest,
    name: str,
    kind: str,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    by: By = "auto",
    query: str | None = None,
    item: str | None = None,
) -> Response:
    """A list as a file, whole."""
    if name not in NAMES or kind not in KINDS:
        raise HTTPException(404)
    with visit.open() as collection:
        table = visit.choice.of(collection).review(
            name,
            min_rating=visit.min_rating if min_rating is None else min_rating,
            min_relevant=min_relevant,
            by=by,
            query_id=query or None,
            item=item or None,
        )
    file = f"{visit.room.name}-{name}.{kind}"
    return Response(
        render(table, _STYLES.get(kind, kind)),
        media_type=f"{KINDS[kind]}; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{_plain(file)}"'},
    )


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "_" for c in name)


@router.get("/lists/{name}")
def one_list(
    visit: CurrentRequest,
    name: str,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    by: By = "auto",
    query: str | None = None,
    item: str | None = None,
    at: int | None = None,
    page: int = 1,
) -> Response:
    """A list as a page."""
    if name not in NAMES:
        raise HTTPException(404)
    queries = visit.snapshot.gradebook.queries
    if at is not None and 0 <= at < len(queries):
        query, item = queries[at].query_id, None
    if min_rating is None:
        min_rating = visit.min_rating
    with visit.open() as collection:
        relevant = relevance_threshold(min_relevant, highest_judgment(collection.connection))
    asked = ListRequest(min_rating, relevant, by, query or None, item or None)
    contents = _CONTENTS[name](visit, asked, page)
    if contents is None:
        again = asked.address(f"/lists/{name}", page=page)
        return HTMLResponse(render_page("opening.html", name=visit.room.name, to=again))
    return visit.page(
        f"list_{name}.html",
        name=name,
        names=NAMES,
        bases=("auto", *BASES),
        kinds=KINDS,
        asked=asked,
        scale=(visit.choice.grader.lowest, visit.choice.grader.highest),
        blind=is_blind(visit),
        **contents,
    )


# ---- the lists of all queries --------------------------------------------------------------------


def _oversight(visit: PageRequest, asked: ListRequest) -> MissingAndSpurious | None:
    """What is missing and spurious: counted already where it is what the overview counts.

    None while all queries are looked through.
    """
    facts = visit.facts
    if asked.query is not None:
        with visit.open() as collection:
            criteria = asked.criteria(visit, collection)
            return MissingAndSpurious.of(visit.choice.of(collection), criteria, [asked.query])
    known = Criteria(asked.min_rating, asked.min_relevant, asked.by)
    if facts is not None and facts.oversight.criteria == known:
        return facts.oversight
    return visit.snapshot.oversight(known, PATIENCE)


def _missing(visit: PageRequest, asked: ListRequest, page: int) -> dict[str, object] | None:
    found = _oversight(visit, asked)
    if found is None:
        return None
    shown = sheet(found.missing, page, PAGE)
    groups = [
        (query_id, text, list(entries))
        for (query_id, text), entries in groupby(
            shown.entries, key=lambda entry: (entry.query_id, entry.query_text)
        )
    ]
    return {"found": found, "sheet": shown, "groups": groups}


def _spurious(visit: PageRequest, asked: ListRequest, page: int) -> dict[str, object] | None:
    found = _oversight(visit, asked)
    if found is None:
        return None
    entries = [e for e in found.spurious if asked.item in (None, e.item.item_id)]
    return {"found": found, "sheet": sheet(entries, page, PAGE)}


# ---- the lists of one query ----------------------------------------------------------------------


def _one(visit: PageRequest, asked: ListRequest) -> tuple[QueryView, Answers, dict[str, object]]:
    """The query asked for, or the first, with the answers extracted; and with its neighbours."""
    queries = visit.snapshot.gradebook.queries
    if not queries:
        raise NothingYet("there are no queries yet", mend="Import some: exampp import")
    query_id = queries[0].query_id if asked.query is None else asked.query
    with visit.open() as collection:
        dossier, answers = next(seen_queries(visit.choice.of(collection), [query_id], None))
        sight = QueryView(dossier, asked.criteria(visit, collection))
    at = visit.snapshot.query_index.get(query_id)
    texts = visit.snapshot.texts
    return (
        sight,
        answers,
        {
            "dossier": dossier,
            "at": at,
            "choices": [texts.get(q.query_id) or q.query_id for q in queries],
            "before": queries[at - 1].query_id if at else None,
            "after": queries[at + 1].query_id if at is not None and at + 1 < len(queries) else None,
        },
    )


class ItemCells(NamedTuple):
    """An item with its cells, and how many of them there are."""

    item_id: str
    text: str
    cells: Sequence[CellRecord]
    total: int
    spread: Sequence[tuple[int, int]]


def _verify(visit: PageRequest, asked: ListRequest, page: int) -> dict[str, object]:
    sight, answers, around = _one(visit, asked)
    dossier = sight.dossier
    grouped = {
        item_id: list(cells)
        for item_id, cells in groupby(
            verify(sight, answers=answers, item_id=asked.item), key=lambda cell: cell.item.item_id
        )
    }
    shown = None
    items = []
    for column in chosen_items(dossier, asked.item):
        item = dossier.items[column]
        cells = grouped.get(item.item_id, [])
        spread = sorted(Counter(c.rating for c in cells if c.rating is not None).items())
        if asked.item is not None:
            shown = sheet(cells, page, PAGE)
        part = cells[:FEW] if shown is None else shown.entries
        items.append(ItemCells(item.item_id, item.text, part, len(cells), spread))
    return {**around, "items": items, "sheet": shown}


def _grid(visit: PageRequest, asked: ListRequest, page: int) -> dict[str, object]:
    sight, answers, around = _one(visit, asked)
    whole = grid(sight, answers=answers)
    return {**around, "grid": whole, "sheet": sheet(whole.rows, page, PAGE)}


_CONTENTS: Mapping[str, Callable[[PageRequest, ListRequest, int], dict[str, object] | None]] = {
    "verify": _verify,
    "grid": _grid,
    "missing": _missing,
    "spurious": _spurious,
}
