"""The overview: the leaderboard, the progress of grading, and what to look at next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.analysis import figures
from exampp.analysis.verdict import about_bias
from exampp.grading.status import GraderStatus, status_table
from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import MissingPrerequisite, missing_prerequisite
from exampp.measures.names import heading
from exampp.measures.values import Mean
from exampp.records.gradebook import DecisionChoice
from exampp.results.page import Line
from exampp.results.plots.figure import Spread, round_axis
from exampp.web.page_request import CHOICE, CurrentRequest, PageRequest
from exampp.web.rendering import link, plural

if TYPE_CHECKING:
    from exampp.analysis.significance import Significance

router = APIRouter()
LONGEST_QUEUE = 500
"""Cells in the queue at most."""
PATIENCE = 0.3
"""Seconds that a page waits for significance tests, which it shows later."""


Task = tuple[str, str, str, str]


class ErrorBar(NamedTuple):
    """A mean and the ends of its error bar, in percent of the width of the axis.

    `beyond` is an arrow if the mean lies left or right of the axis.
    """

    at: float
    low: float
    high: float
    beyond: str = ""


class RankedSystem(NamedTuple):
    """A system: its place by the chosen measure, its means, its error bar (None: undefined)."""

    place: int
    system: str
    means: Sequence[Mean]
    bar: ErrorBar | None


class OverviewPage(NamedTuple):
    """The leaderboard by the column `chosen`, at a threshold; `state` changes when the page does.

    `ticks` are the labels of the axis with their places in percent, `letters` the ties by system;
    `ties` are None while they are tested, `grading` while it is counted. `tasks` wait for people:
    name, amount, address, why it matters.
    """

    state: str
    board: Leaderboard
    headings: Sequence[str]
    chosen: int
    ticks: Sequence[tuple[float, float]]
    systems: Sequence[RankedSystem]
    ties: Significance | None
    letters: Mapping[str, str]
    threshold: int
    decisions: DecisionChoice
    lacking: MissingPrerequisite | None
    bias: Line | None
    grading: Sequence[GraderStatus] | None
    tasks: Sequence[Task]
    notes: Sequence[str]


@router.get("/")
def overview(
    request: CurrentRequest,
    by: int = 0,
    min_rating: int | None = None,
    decisions: DecisionChoice = "with",
) -> HTMLResponse:
    """Show the first page."""
    if not request.choices:
        return request.render("ungraded.html")
    return request.render("overview.html", _context(request, by, min_rating, decisions))


@router.get("/overview/live")
def live(
    request: CurrentRequest,
    by: int = 0,
    min_rating: int | None = None,
    decisions: DecisionChoice = "with",
    seen: str = "",
) -> Response:
    """Show the overview as it is now; nothing if the page shows that already."""
    context = _context(request, by, min_rating, decisions)
    if context.state == seen:
        return Response(status_code=204)
    return request.render("_overview.html", context)


@router.post("/choose")
def choose(request: CurrentRequest, code: Annotated[str, Form()]) -> Response:
    """Look at another grader's grades from now on."""
    answer = request.redirect("/")
    if any(one.code == code for one in request.choices):
        request.set_cookie(answer, CHOICE, code)
    return answer


def _context(
    request: PageRequest, by: int, min_rating: int | None, decisions: DecisionChoice
) -> OverviewPage:
    snapshot, counts = request.snapshot, request.counts
    board = snapshot.leaderboard(min_rating, decisions)
    chosen = by if 0 <= by < len(board.columns) else 0
    ties = None
    if len(board.column_systems) > 1:
        ties = snapshot.ties(chosen, min_rating, decisions, PATIENCE)
    # the state is taken before the page is rendered: a later change is shown by the next call
    counted = counts.read_at if counts else 0
    state = f"{snapshot.read_at:.3f}-{counted:.3f}-{ties is not None:d}"
    bias = about_bias(snapshot.bias)
    ticks, systems = ranked_systems(board, chosen)
    return OverviewPage(
        state,
        board,
        [heading(str(one.measure), one.min_rating) for one in board.columns],
        chosen,
        ticks,
        systems,
        ties,
        {} if ties is None else {one.system: one.letters or "" for one in ties.systems},
        snapshot.threshold(min_rating),
        decisions,
        missing_prerequisite(snapshot.gradebook),
        bias.line if bias.known else None,
        None if counts is None else sorted(counts.grading, key=lambda one: -one.due),
        tasks(request),
        () if counts is None else status_table(counts.grading).notes,
    )


def ordered_systems(board: Leaderboard, column: int) -> list[Spread]:
    """Return every system's mean in a column with its standard error, best first."""
    found = figures.spreads(board.columns[column], board.column_systems)
    return sorted(found, key=lambda one: (one.value is None, -(one.value or 0.0), one.system))


def ranked_systems(
    board: Leaderboard, column: int
) -> tuple[list[tuple[float, float]], list[RankedSystem]]:
    """Return the ticks of the axis, and the systems with error bars on it, best first."""
    found = ordered_systems(board, column)
    columns = [one.values.means() for one in board.columns]
    means = dict(zip(board.column_systems, zip(*columns, strict=True), strict=True))
    start, end, ticks = round_axis(found)
    return [(tick, _percent(tick, start, end)) for tick in ticks], [
        RankedSystem(place, one.system, means[one.system], error_bar(one, start, end))
        for place, one in enumerate(found, 1)
    ]


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
    """Return what waits for people, by its effect on the leaderboard."""
    queue, counts = request.snapshot.queue, request.counts
    swaps = sum(1 for one in queue if one.swaps)
    why = f"{swaps} of them could swap systems on the leaderboard"
    if swaps in (0, len(queue)):
        why = "each could swap systems on the leaderboard"
    if not swaps:
        why = "no single decision would swap systems"
    cells = plural(len(queue), "cell") if len(queue) < LONGEST_QUEUE else f"{LONGEST_QUEUE}+ cells"
    found = [("Decide on grades", cells, "/queue", why)]
    if counts is None:
        return found
    findings, oversight = sum(counts.findings.values()), counts.oversight
    for number, noun, name, address, why in (
        (
            counts.sampled,
            "unit",
            "Decide the sample",
            "/sample",
            "drawn by chance: corrects the leaderboard",
        ),
        (counts.disputes, "cell", "Settle disputes", "/disputes", "assessors differ"),
        (
            findings,
            "finding",
            "Fix the bank",
            link("/queries", order="findings"),
            "items that are likely to be wrong",
        ),
        (
            len(oversight.missing),
            "passage",
            "Fill gaps",
            "/lists/missing",
            "good passages that no item covers",
        ),
        (
            len(oversight.spurious),
            "item",
            "Look at spurious items",
            "/lists/spurious",
            "often covered by passages that are not relevant",
        ),
    ):
        if number:
            found.append((name, plural(number, noun), address, why))
    return found
