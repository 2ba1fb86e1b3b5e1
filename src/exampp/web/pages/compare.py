"""`/compare`: why one system is better than another, down to the sentence of a passage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Query, Response

from exampp.analysis.compare import ORDER, BestPassage, CoveredBy, PairedItem, cell, total, verdict
from exampp.errors import InputError
from exampp.measures.leaderboard import missing_prerequisite
from exampp.records.gradebook import DecisionChoice, Dossier, without_decisions
from exampp.web.cells import PassageExcerpt, around, dossier, is_blind, show
from exampp.web.page_request import CurrentRequest, PageRequest, sheet
from exampp.web.pages.standings import spreads
from exampp.web.rendering import link, shade

if TYPE_CHECKING:
    from exampp.analysis.compare import QueryDifference, SystemComparison

router = APIRouter()
PAGE = 15
"""Queries on one page."""
EXCERPT = 320
"""Characters of a passage beside an item."""
MEASURE = "Cover@20"


class DifferenceBar(NamedTuple):
    """A query with its bar, in percent of the width: where it starts, and how wide it is.

    `query_id` is that of the query, even where the bar is that of a subtopic.
    """

    query: QueryDifference
    query_id: str
    text: str
    start: float
    width: float
    address: str


class SystemBest(NamedTuple):
    """The best passage of one system for an item, as the page shows it."""

    system: str
    best: BestPassage | None
    level: int
    shown: PassageExcerpt | None
    judge: str


class ItemBeside(NamedTuple):
    """An item with both sides."""

    item: PairedItem
    sides: tuple[SystemBest, SystemBest]


@router.get("/compare")
def compare(
    visit: CurrentRequest,
    a: str = "",
    b: str = "",
    s: Annotated[Sequence[str], Query()] = (),
    measure: str = MEASURE,
    min_rating: int | None = None,
    decisions: DecisionChoice = "with",
    query: str | None = None,
    page: int = 1,
) -> Response:
    """Two systems: `a` is where the difference starts from; `s` are those ticked in a table."""
    snapshot = visit.snapshot
    board = snapshot.leaderboard(min_rating, decisions)
    systems = [one.system for one in spreads(board, 0)] if board.columns else []
    given: dict[str, object] = {
        "measure": None if measure == MEASURE else measure,
        "min_rating": min_rating,
        "decisions": None if decisions == "with" else decisions,
    }
    if len(s) == 2:
        worse, better = sorted(s, key=lambda one: -_place(systems, one))
        return visit.go("/compare", a=worse, b=better, **given)
    if b and not a:
        a = next((one for one in systems if one != b), "")
    context: dict[str, object] = {
        # what one is likely to ask for: the best system, from the one behind it
        "a": a or next((one for one in systems[1:]), ""),
        "b": b or next(iter(systems), ""),
        "systems": systems,
        "asked": given,
        "trouble": _trouble(s, systems, missing_prerequisite(snapshot.gradebook)),
        "found": None,
    }
    if a and b and len(systems) > 1:
        try:
            found = snapshot.comparison(a, b, measure, min_rating, decisions)
        except InputError as error:
            context["trouble"] = f"{str(error)[:1].upper()}{str(error)[1:]}"
        else:
            context |= _explained(visit, found, given, query, page)
    return visit.page("compare.html", **context)


def _place(systems: Sequence[str], system: str) -> int:
    return systems.index(system) if system in systems else len(systems)


def _trouble(ticked: Sequence[str], systems: Sequence[str], missing: object) -> str:
    if missing:
        return str(missing)
    if len(systems) < 2:
        return "There is one system alone. Import another run: exampp import."
    return f"You ticked {len(ticked)}: choose two here." if ticked else ""


def _explained(
    visit: PageRequest,
    found: SystemComparison,
    given: Mapping[str, object],
    query: str | None,
    page: int,
) -> dict[str, object]:
    texts = visit.snapshot.texts

    def here(**changed: object) -> str:
        return link("/compare", **{"a": found.first, "b": found.second, **given, **changed})

    shown = sheet(list(_bars(found, visit, here)), page, PAGE)
    chosen = query or next((change.query_id for change in found.changes), None)
    if chosen is None and found.queries:
        chosen = _query_of(found.queries[0].query_id, visit.snapshot.query_index)
    beside = [] if chosen is None else _beside(visit, found, chosen, here(query=chosen, page=page))
    groups = [(kind, [one for one in beside if one.item.covered_by == kind]) for kind in ORDER]
    return {
        "found": found,
        "verdict": verdict(found),
        "notes": total(found).notes,
        "sheet": shown,
        "here": here,
        "query": chosen,
        "query_text": texts.get(chosen or "", "") or chosen,
        "groups": groups,
        "opened": _opened(groups),
        "scale": (visit.choice.grader.lowest, visit.choice.grader.highest),
        "blind": is_blind(visit),
    }


def _opened(groups: Sequence[tuple[CoveredBy, Sequence[ItemBeside]]]) -> Sequence[CoveredBy]:
    """The groups that are open at first: those that make the difference, or the first of all."""
    telling = [kind for kind, items in groups[:2] if items]
    return telling or [kind for kind, items in groups if items][:1]


def _bars(
    found: SystemComparison, visit: PageRequest, here: Callable[..., str]
) -> Iterator[DifferenceBar]:
    """The queries with bars from the middle, the largest as wide as half of the room."""
    known = [abs(one.difference) for one in found.queries if one.difference is not None]
    largest = max(known, default=0.0) or 1.0
    for number, one in enumerate(found.queries):
        share = 50 * (one.difference or 0.0) / largest
        query_id = _query_of(one.query_id, visit.snapshot.query_index)
        text = visit.snapshot.texts.get(query_id, "") or query_id
        if query_id != one.query_id:
            text = f"{text} ({one.query_id})"
        address = here(query=query_id, page=number // PAGE + 1) + "#items"
        yield DifferenceBar(one, query_id, text, 50 + min(share, 0), abs(share), address)


def _query_of(exam_id: str, known: Mapping[str, int]) -> str:
    """The query of an exam, which is `query` or `query/subtopic`."""
    query_id = exam_id
    while query_id not in known and "/" in query_id:
        query_id = query_id.rpartition("/")[0]
    return query_id if query_id in known else exam_id


def _beside(
    visit: PageRequest, found: SystemComparison, query_id: str, back: str
) -> list[ItemBeside]:
    """The items of a query as they are now, decisions that the leaderboard lacks among them."""
    with visit.open() as collection:
        read = dossier(visit, collection, query_id)
    book = replace(found.book, queries=(read.grades,))
    if found.book.left_out.cells:
        book = without_decisions(book)
    fresh = replace(found, book=book, read=lambda _: [read])
    return [
        ItemBeside(
            item,
            (
                _side(read, item, found.first, item.first, back),
                _side(read, item, found.second, item.second, back),
            ),
        )
        for item in fresh.on(query_id).items
    ]


def _side(
    read: Dossier, item: PairedItem, system: str, best: BestPassage | None, back: str
) -> SystemBest:
    place = cell(read, item.item_id, best.passage_id) if best else None
    if best is None or place is None:
        return SystemBest(system, best, 0, None, "")
    grader = read.grader
    text, quoted = read.texts[place[0]], bool(best.quote.source)
    shown = show(
        text,
        read.automatic.get(place) if best.quote.source == "answer" else None,
        item.text if quoted else "",
        extracts=grader.highest <= 1,
    )
    ids = {"query": read.query_id, "item": item.item_id, "passage": best.passage_id}
    return SystemBest(
        system,
        best,
        shade(best.rating, grader.lowest, grader.highest),
        shown and around(shown, EXCERPT),
        link("/cell", **ids, back=back + "#items"),
    )
