"""`/` and `/compare`: the leaderboard, the next tasks, and a comparison of two systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.compare import ORDER, BestPassage, CoveredBy, PairedItem, cell, total
from exampp.analysis.verdict import (
    APART,
    about_best,
    about_differences,
    about_missing,
    not_yet,
)
from exampp.errors import InputError
from exampp.grading.status import status_table
from exampp.measures.board import Leaderboard
from exampp.measures.cover import FEW_MISSING
from exampp.measures.leaderboard import missing_prerequisite
from exampp.measures.names import heading
from exampp.measures.values import Mean, MeasureColumn, best_first
from exampp.records.gradebook import DecisionChoice, Dossier, check_testable, without_decisions
from exampp.records.systems import SystemFilter
from exampp.records.wording import counted
from exampp.results.notes import by_severity
from exampp.results.plots.figure import Spread, round_axis
from exampp.results.view import HasInterval
from exampp.web.cells import PassageExcerpt, passage_excerpt, read_query, shorten_excerpt
from exampp.web.page_request import (
    CHOICE,
    BoardSelection,
    CurrentBoard,
    CurrentRequest,
    PageOfEntries,
    PageRequest,
    computed,
    page_of,
)
from exampp.web.pages.trust import QUESTIONS, answers_soon
from exampp.web.rendering import link, sentence

if TYPE_CHECKING:
    from exampp.analysis.compare import QueryDifference, SystemComparison
    from exampp.analysis.significance import Significance

router = APIRouter()
LONGEST_QUEUE = 500
"""Maximum number of cells in the queue."""

STRIP = {
    "differences": ("Significant differences", "of systems"),
    "official": ("Official order", "Kendall's tau-b with the official leaderboard"),
    "people": ("Agreement with people", "kappa of labels with human judgments"),
    "reliability": ("Reliability", "of the order on other queries, without and with weak systems"),
    "bias": ("Favoured system", "ratings compared with judgments, system by system"),
    "missing": ("Grades missing", "of the cells or passages behind a score, at most"),
}
"""The answers in the strip above the leaderboard, with title and meaning."""
MOST_BANDS = 8
"""Maximum number of groups of tied systems drawn as bands; more are shown by their letters."""


Task = tuple[str, str, str, str]


class ErrorBar(NamedTuple):
    """A mean and its error bar, in percent of the width of the axis.

    `beyond` is an arrow if the mean lies left or right of the axis.
    """

    at: float
    low: float
    high: float
    beyond: str = ""


class RankedSystem(NamedTuple):
    """A system with its place, its means and its error bar (None: undefined).

    The place is "" while missing grades may change it; `bounds` are then the lowest and the highest
    possible mean. `corrected` is Cover corrected for skipped cells.
    """

    place: str
    system: str
    means: Sequence[Mean]
    bar: ErrorBar | None
    bounds: tuple[float, float] | None = None
    corrected: HasInterval | None = None


@router.get("/")
def overview(request: CurrentRequest, selection: CurrentBoard) -> HTMLResponse:
    """Show the overview."""
    if not request.choices:
        with request.open() as collection:
            contents = {str(name): count for name, count in collection.contents().rows}
        return request.render("ungraded.html", contents=contents)
    return request.render("overview.html", **_context(request, selection))


@router.get("/overview/started")
def started(request: CurrentRequest) -> Response:
    """Let the page reload itself once there are grades."""
    return Response(status_code=204, headers={"HX-Refresh": "true"} if request.choices else None)


@router.get("/overview/live")
def live(request: CurrentRequest, selection: CurrentBoard, seen: str = "") -> Response:
    """Return the current overview; nothing if the page is up to date."""
    context = _context(request, selection)
    if context["state"] == seen:
        return Response(status_code=204)
    return request.render("_overview.html", **context)


@router.post("/choose")
def choose(request: CurrentRequest, code: Annotated[str, Form()]) -> Response:
    """Select another grader and bank."""
    answer = request.redirect("/")
    if any(one.code == code for one in request.choices):
        request.set_cookie(answer, CHOICE, code)
    return answer


def _context(request: PageRequest, selection: BoardSelection) -> dict[str, Any]:
    """Return the selected part of a leaderboard; `state` changes with the page.

    `ties` are None while they are tested, `grading` while it is counted.
    """
    snapshot, counts = request.snapshot, request.counts
    narrowed, by, min_rating, decisions = selection
    board = snapshot.leaderboard(min_rating, decisions)
    column = by if 0 <= by < len(board.columns) else 0
    ties, partial = None, bool(board.columns) and is_partial(board.columns[column])
    untested = "Not tested while grades are missing." if partial else ""
    if len(board.column_systems) < 2:
        untested = "Two systems are needed."
    elif not partial:
        try:
            check_testable(snapshot.gradebook)
            ties = snapshot.ties(column, min_rating, decisions, request.patience)
        except InputError as error:
            untested = f"{sentence(error)}."
    # read the state before rendering: later changes show in the next call
    counted_at = counts.read_at if counts else 0
    missing = missing_behind(board.columns[column]) if board.columns else 0.0
    best = about_best(ties) if ties else None
    apart = about_differences(ties) if ties else None
    if untested:
        apart = not_yet(APART, "", untested)
    strip = {
        "differences": apart,
        # bias first: a favoured system is a warning
        **answers_soon(snapshot, sorted(filter(QUESTIONS.get, STRIP), key="bias".__ne__), 0.0),
        "missing": about_missing(missing),
    }
    bias = strip["bias"]
    ticks, systems = ranked_systems(board, column)
    shown = narrowed.of([one.system for one in systems])
    row_of = {one.system: one for one in systems}
    # the bands need a note, too
    first, others = by_severity(
        [*(ties.untestable if ties else ()), *board.notes], 2 if ties else 3
    )
    return {
        "state": f"{snapshot.read_at:.3f}-{counted_at:.3f}-{ties is not None:d}"
        f"-{sum(one is not None for one in strip.values())}",
        "board": board,
        "first_notes": first,
        "other_notes": others,
        "headings": [heading(str(one.measure), one.min_rating) for one in board.columns],
        "chosen": column,
        "ticks": ticks,
        "systems": systems,
        "narrowed": narrowed,
        "selected": selection.parameters,
        "shown": shown,
        "parts": [[row_of[name] for name in names] for names in (shown.pinned, shown.rest) if names]
        or [[]],
        "ties": ties,
        "tied": frozenset(ties.tied) if ties else frozenset(),
        "untested": untested,
        "missing": missing if partial else None,
        "best": f"{best.answer} {_about_ties(ties)}".strip() if best and ties else "",
        "strip": [(*about, strip[key]) for key, about in STRIP.items()],
        "favoured": snapshot.bias.headline if bias and bias.known and snapshot.bias.found else "",
        "waiting": None in strip.values(),
        "letters": {one.system: one.letters or "" for one in ties.systems} if ties else {},
        "bands": _bands(ties) if ties else (),
        "threshold": snapshot.threshold(min_rating),
        "decisions": decisions,
        "no_scores": missing_prerequisite(snapshot.gradebook),
        "grading": counts and sorted(counts.grading, key=lambda one: -one.pending),
        "tasks": tasks(request),
        "notes": status_table(counts.grading).notes if counts else (),
    }


def _about_ties(ties: Significance) -> str:
    """Count the systems that differ significantly from the best one; "" where none can."""
    rest, lower = len(ties.systems) - 1, len(ties.systems) - len(ties.tied)
    if rest < 1 or not ties.tied:
        return ""
    if rest == 1:
        return f"The two systems {'differ' if lower else 'do not differ'} significantly."
    if lower == rest:
        return "Every other system differs significantly from it."
    differ = "differs" if lower < 2 else "differ"
    return f"{lower or 'None'} of the other {rest} {differ} significantly from it."


def _bands(ties: Significance) -> str:
    """Return the letters of the groups of tied systems, to be drawn as bands; "" if too many."""
    letters = "".join(dict.fromkeys("".join(one.letters or "" for one in ties.systems)))
    return letters if len(letters) <= MOST_BANDS else ""


def ordered_systems(board: Leaderboard, column: int) -> list[Spread]:
    """Return the systems with mean and standard error in a column, best first."""
    of = board.columns[column]
    spreads = of.spreads(board.column_systems)
    return [spreads[at] for at in best_first(board.column_systems, of.values.means())]


def missing_behind(column: MeasureColumn) -> float:
    """Return the largest share of a system's cells or passages that have no grade."""
    return max((one or 0.0 for one in (*column.missing_cells, *column.ungraded)), default=0.0)


def is_partial(column: MeasureColumn) -> bool:
    """Return whether missing grades may change the scores of a column."""
    return column.low is not None or missing_behind(column) > FEW_MISSING


def ranked_systems(
    board: Leaderboard, column: int
) -> tuple[list[tuple[float, float]], list[RankedSystem]]:
    """Return the ticks of the axis, and the systems with error bars, best first.

    Of a partial column the bars are the bounds, and only places that no missing grade can change
    are shown.
    """
    of, systems = board.columns[column], board.column_systems
    partial, bounds = is_partial(of), dict(zip(systems, of.bounds(), strict=True))
    ranks = dict(zip(systems, of.possible_ranks() or (), strict=False))
    spreads = [
        one._replace(low=ends[0], high=ends[1]) if (ends := bounds[one.system]) else one
        for one in ordered_systems(board, column)
    ]
    columns = [one.values.means() for one in board.columns]
    means = dict(zip(systems, zip(*columns, strict=True), strict=True))
    corrected = dict(zip(systems, of.corrected, strict=False))
    start, end, ticks = round_axis(spreads)
    values = [None if one.value is None else round(one.value, 10) for one in spreads]
    return [(tick, _percent(tick, start, end)) for tick in ticks], [
        RankedSystem(
            # equal systems share a place
            _rank_shown(1 + values.index(value), partial, ranks.get(one.system)),
            one.system,
            means[one.system],
            error_bar(one, start, end),
            bounds[one.system],
            corrected.get(one.system),
        )
        for one, value in zip(spreads, values, strict=True)
    ]


def _rank_shown(place: int, partial: bool, ranks: tuple[int, int] | None) -> str:
    if not partial:
        return str(place)
    return str(ranks[0]) if ranks and ranks[0] == ranks[1] else ""


def error_bar(one: Spread, start: float, end: float) -> ErrorBar | None:
    """Return the error bar of a mean on an axis; None if the mean is undefined."""
    if one.value is None:
        return None
    if not start <= one.value <= end:
        edge = 0.0 if one.value < start else 100.0
        return ErrorBar(edge, edge, edge, beyond="\u2039" if edge == 0 else "\u203a")
    low = max(one.value if one.low is None else one.low, start)
    high = min(one.value if one.high is None else one.high, end)
    at, left, right = (_percent(place, start, end) for place in (one.value, low, high))
    return ErrorBar(at, left, right)


def _percent(value: float, start: float, end: float) -> float:
    return round(100 * (value - start) / (end - start), 2)


def tasks(request: PageRequest) -> list[Task]:
    """Return the tasks for people, largest effect on the leaderboard first."""
    queue, counts = request.snapshot.queue, request.counts
    swaps = sum(1 for one in queue if one.swaps)
    why = f"{swaps} of them could swap systems on the leaderboard"
    if swaps in (0, len(queue)):
        why = "each could swap systems on the leaderboard"
    if not swaps:
        why = "no single decision would swap systems"
    cells = counted(len(queue), "cell") if len(queue) < LONGEST_QUEUE else f"{LONGEST_QUEUE}+ cells"
    tasks = [("Decide on grades", cells, "/queue", why)]
    if counts is None:
        return tasks
    findings, oversight = sum(counts.findings.values()), counts.oversight
    for number, noun, name, address, why in (
        (
            counts.sampled,
            "unit",
            "Decide the sample",
            "/sample",
            "a random sample that corrects the leaderboard",
        ),
        (counts.disputes, "cell", "Resolve disputes", "/disputes", "assessors disagree"),
        (
            findings,
            "finding",
            "Fix the bank",
            link("/queries", order="findings"),
            "items that are probably faulty",
        ),
        (
            len(oversight.missing) if oversight else 0,
            "passage",
            "Fill gaps",
            "/lists/missing",
            "relevant passages that no item covers",
        ),
        (
            len(oversight.spurious) if oversight else 0,
            "item",
            "Check spurious items",
            "/lists/spurious",
            "often covered by non-relevant passages",
        ),
    ):
        if number:
            tasks.append((name, counted(number, noun), address, why))
    return tasks


# ---- two systems compared ------------------------------------------------------------------------

PAGE = 15
"""Queries per page."""
EXCERPT = 320
"""Characters of a passage shown with an item."""
MEASURE = "Cover@20"


class DifferenceBar(NamedTuple):
    """A query with the start and the width of its bar, in percent.

    `query_id` names the query even if the bar is for a subtopic.
    """

    query: QueryDifference
    query_id: str
    text: str
    start: float
    width: float
    page: int


class SystemBest(NamedTuple):
    """The best passage of a system for an item, and the address for judging it."""

    system: str
    best: BestPassage | None
    shown: PassageExcerpt | None
    judge: str


class Comparison(NamedTuple):
    """Two systems compared over all queries, and on one `query` by its items.

    `groups` have the items, each with the best passages of both systems, by which system covers
    them; those in `opened` are open at first.
    """

    result: SystemComparison
    notes: Sequence[str]
    listing: PageOfEntries[DifferenceBar]
    query: str | None
    query_text: str
    groups: Sequence[tuple[CoveredBy, Sequence[tuple[PairedItem, SystemBest, SystemBest]]]]
    opened: Sequence[CoveredBy]


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
    pin: Annotated[Sequence[str], Query()] = (),
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
            pin=pin,
        )
    # by default the best system, compared with the second best
    b = b or next((one for one in systems if one != a), "")
    a = a or next((one for one in systems if one != b), "")
    trouble, comparison = _trouble(s, systems, missing_prerequisite(snapshot.gradebook)), None
    if not s and a and b and len(systems) > 1:
        try:
            result = snapshot.comparison(a, b, measure, min_rating, decisions, request.patience)
        except InputError as error:
            trouble = sentence(error)
        else:
            comparison = _compared(request, computed(result), query, page)
    return request.render(
        "compare.html",
        a=a,
        b=b,
        systems=systems,
        shown=SystemFilter(pin=pin).of(systems),
        trouble=trouble,
        comparison=comparison,
    )


def _place(systems: Sequence[str], system: str) -> int:
    return systems.index(system) if system in systems else len(systems)


def _trouble(ticked: Sequence[str], systems: Sequence[str], missing: object) -> str:
    if missing:
        return str(missing)
    if len(systems) < 2:
        return "Only one system has a run. Import another run: exampp import."
    return f"You ticked {len(ticked)} systems. Choose two here." if ticked else ""


def _compared(
    request: PageRequest, result: SystemComparison, query: str | None, page: int
) -> Comparison:
    snapshot = request.snapshot
    query_id = query or next((one.query_id for one in result.changes), None)
    if query_id is None and result.queries:
        query_id = _query_of(result.queries[0].query_id, snapshot.query_index)
    items = [] if query_id is None else _items(request, result, query_id)
    groups = [(kind, [one for one in items if one[0].covered_by == kind]) for kind in ORDER]
    # open the groups that make the difference, else the first one
    full = [kind for kind, of_kind in groups if of_kind]
    opened = [kind for kind in full if kind in ORDER[:2]] or full[:1]
    return Comparison(
        result,
        total(result).notes,
        page_of(list(_bars(result, snapshot.texts, snapshot.query_index)), page, PAGE),
        query_id,
        snapshot.texts.get(query_id or "", "") or query_id or "",
        groups,
        opened,
    )


def _bars(
    result: SystemComparison, texts: Mapping[str, str], query_index: Mapping[str, int]
) -> Iterator[DifferenceBar]:
    """Yield the queries with bars from the middle; the largest fills half of the width."""
    differences = [abs(one.difference) for one in result.queries if one.difference is not None]
    largest = max(differences, default=0.0) or 1.0
    for number, one in enumerate(result.queries):
        share = 50 * (one.difference or 0.0) / largest
        query_id = _query_of(one.query_id, query_index)
        text = texts.get(query_id, "") or query_id
        if query_id != one.query_id:
            text = f"{text} ({one.query_id})"
        page = number // PAGE + 1
        yield DifferenceBar(one, query_id, text, 50 + min(share, 0), abs(share), page)


def _query_of(exam_id: str, query_index: Mapping[str, int]) -> str:
    """Return the query of an exam id, `query` or `query/subtopic`."""
    query_id = exam_id
    while query_id not in query_index and "/" in query_id:
        query_id = query_id.rpartition("/")[0]
    return query_id if query_id in query_index else exam_id


def _items(
    request: PageRequest, result: SystemComparison, query_id: str
) -> list[tuple[PairedItem, SystemBest, SystemBest]]:
    """Return the current items of a query, including decisions missing from the leaderboard."""
    with request.open() as collection:
        read = read_query(request, collection, query_id)
    book = replace(result.book, queries=(read.grades,))
    if result.book.left_out.cells:
        book = without_decisions(book)
    fresh = replace(result, book=book, read=lambda _: [read])
    back = f"{request.here(query=query_id)}#items"
    return [
        (
            item,
            _best(read, item, result.first, item.first, back),
            _best(read, item, result.second, item.second, back),
        )
        for item in fresh.on(query_id).items
    ]


def _best(
    read: Dossier, item: PairedItem, system: str, best: BestPassage | None, back: str
) -> SystemBest:
    place = cell(read, item.item_id, best.passage_id) if best else None
    if best is None or place is None:
        return SystemBest(system, best, None, "")
    excerpt = passage_excerpt(
        read.texts[place[0]],
        read.automatic.get(place) if best.quote.source == "answer" else None,
        item.text if best.quote.source else "",
        extracts=read.grader.highest <= 1,
    )
    ids = {"query": read.query_id, "item": item.item_id, "passage": best.passage_id}
    judge = link("/cell", **ids, back=back)
    return SystemBest(system, best, excerpt and shorten_excerpt(excerpt, EXCERPT), judge)
