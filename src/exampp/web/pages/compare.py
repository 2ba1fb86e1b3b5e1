"""`/compare`: why one system is better than another, down to the sentence of a passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Query, Response

from exampp.analysis.compare import ORDER, BestPassage, CoveredBy, PairedItem, cell, total, verdict
from exampp.errors import InputError
from exampp.measures.leaderboard import missing_prerequisite
from exampp.records.gradebook import DecisionChoice, Dossier, without_decisions
from exampp.web.cells import PassageExcerpt, passage_excerpt, read_query, shorten_excerpt
from exampp.web.page_request import CurrentRequest, PageOfEntries, PageRequest, page_of
from exampp.web.pages.overview import ordered_systems
from exampp.web.rendering import link, sentence

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

    `query_id` is that of the query, even if the bar is that of a subtopic.
    """

    query: QueryDifference
    query_id: str
    text: str
    start: float
    width: float
    page: int


class SystemBest(NamedTuple):
    """The best passage of one system for an item, and the address where it is judged."""

    system: str
    best: BestPassage | None
    shown: PassageExcerpt | None
    judge: str


class Comparison(NamedTuple):
    """Two systems compared over all queries, and on one `query` by its items.

    `groups` have the items, each with the best passages of both systems, by which system covers
    them; those in `opened` are open at first.
    """

    found: SystemComparison
    verdict: str
    notes: Sequence[str]
    sheet: PageOfEntries[DifferenceBar]
    query: str | None
    query_text: str
    groups: Sequence[tuple[CoveredBy, Sequence[tuple[PairedItem, SystemBest, SystemBest]]]]
    opened: Sequence[CoveredBy]


class ComparePage(NamedTuple):
    """The systems to choose from, `a` and `b` the chosen ones, and their comparison."""

    a: str
    b: str
    systems: Sequence[str]
    trouble: str
    comparison: Comparison | None


@router.get("/compare")
def compare(
    request: CurrentRequest,
    a: str = "",
    b: str = "",
    s: Annotated[Sequence[str], Query()] = (),
    measure: str = MEASURE,
    min_rating: int | None = None,
    decisions: DecisionChoice = "with",
    query: str | None = None,
    page: int = 1,
) -> Response:
    """Compare `b` with `a`; `s` are the systems ticked in a table."""
    snapshot = request.snapshot
    board = snapshot.leaderboard(min_rating, decisions)
    systems = [one.system for one in ordered_systems(board, 0)] if board.columns else []
    if len(s) == 2:
        worse, better = sorted(s, key=lambda one: -_place(systems, one))
        return request.redirect(
            "/compare",
            a=worse,
            b=better,
            measure=None if measure == MEASURE else measure,
            min_rating=min_rating,
            decisions=None if decisions == "with" else decisions,
        )
    if b and not a:
        a = next((one for one in systems if one != b), "")
    trouble, comparison = _trouble(s, systems, missing_prerequisite(snapshot.gradebook)), None
    if a and b and len(systems) > 1:
        try:
            found = snapshot.comparison(a, b, measure, min_rating, decisions)
        except InputError as error:
            trouble = sentence(error)
        else:
            comparison = _compared(request, found, query, page)
    # by default the best system, from the one behind it
    a, b = a or next(iter(systems[1:]), ""), b or next(iter(systems), "")
    return request.render("compare.html", ComparePage(a, b, systems, trouble, comparison))


def _place(systems: Sequence[str], system: str) -> int:
    return systems.index(system) if system in systems else len(systems)


def _trouble(ticked: Sequence[str], systems: Sequence[str], missing: object) -> str:
    if missing:
        return str(missing)
    if len(systems) < 2:
        return "There is one system alone. Import another run: exampp import."
    return f"You ticked {len(ticked)}: choose two here." if ticked else ""


def _compared(
    request: PageRequest, found: SystemComparison, query: str | None, page: int
) -> Comparison:
    snapshot = request.snapshot
    chosen = query or next((one.query_id for one in found.changes), None)
    if chosen is None and found.queries:
        chosen = _query_of(found.queries[0].query_id, snapshot.query_index)
    items = [] if chosen is None else _items(request, found, chosen)
    groups = [(kind, [one for one in items if one[0].covered_by == kind]) for kind in ORDER]
    # open are those that make the difference, or the first of all
    full = [kind for kind, of_kind in groups if of_kind]
    opened = [kind for kind in full if kind in ORDER[:2]] or full[:1]
    return Comparison(
        found,
        verdict(found),
        total(found).notes,
        page_of(list(_bars(found, snapshot.texts, snapshot.query_index)), page, PAGE),
        chosen,
        snapshot.texts.get(chosen or "", "") or chosen or "",
        groups,
        opened,
    )


def _bars(
    found: SystemComparison, texts: Mapping[str, str], known: Mapping[str, int]
) -> Iterator[DifferenceBar]:
    """Yield the queries with bars from the middle, the largest as wide as half of the space."""
    differences = [abs(one.difference) for one in found.queries if one.difference is not None]
    largest = max(differences, default=0.0) or 1.0
    for number, one in enumerate(found.queries):
        share = 50 * (one.difference or 0.0) / largest
        query_id = _query_of(one.query_id, known)
        text = texts.get(query_id, "") or query_id
        if query_id != one.query_id:
            text = f"{text} ({one.query_id})"
        page = number // PAGE + 1
        yield DifferenceBar(one, query_id, text, 50 + min(share, 0), abs(share), page)


def _query_of(exam_id: str, known: Mapping[str, int]) -> str:
    """Return the query of an exam, which is `query` or `query/subtopic`."""
    query_id = exam_id
    while query_id not in known and "/" in query_id:
        query_id = query_id.rpartition("/")[0]
    return query_id if query_id in known else exam_id


def _items(
    request: PageRequest, found: SystemComparison, query_id: str
) -> list[tuple[PairedItem, SystemBest, SystemBest]]:
    """Return the items of a query as they are now, with decisions that the leaderboard lacks."""
    with request.open() as collection:
        read = read_query(request, collection, query_id)
    book = replace(found.book, queries=(read.grades,))
    if found.book.left_out.cells:
        book = without_decisions(book)
    fresh = replace(found, book=book, read=lambda _: [read])
    back = f"{request.here(query=query_id)}#items"
    return [
        (
            item,
            _best(read, item, found.first, item.first, back),
            _best(read, item, found.second, item.second, back),
        )
        for item in fresh.on(query_id).items
    ]


def _best(
    read: Dossier, item: PairedItem, system: str, best: BestPassage | None, back: str
) -> SystemBest:
    place = cell(read, item.item_id, best.passage_id) if best else None
    if best is None or place is None:
        return SystemBest(system, best, None, "")
    shown = passage_excerpt(
        read.texts[place[0]],
        read.automatic.get(place) if best.quote.source == "answer" else None,
        item.text if best.quote.source else "",
        extracts=read.grader.highest <= 1,
    )
    ids = {"query": read.query_id, "item": item.item_id, "passage": best.passage_id}
    judge = link("/cell", **ids, back=back)
    return SystemBest(system, best, shown and shorten_excerpt(shown, EXCERPT), judge)
