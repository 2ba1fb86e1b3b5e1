"""The overview: how far grading is, the leaderboard, and what to look at next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.verdict import bias_line
from exampp.grading.status import GraderStatus, status_table
from exampp.measures.leaderboard import missing_prerequisite
from exampp.records.gradebook import DecisionChoice
from exampp.records.graders import grader_label
from exampp.web.counts import CollectionCounts
from exampp.web.live_collection import LiveCollection
from exampp.web.page_request import CHOICE, CurrentRequest, PageRequest
from exampp.web.pages.standings import standings
from exampp.web.rendering import link, plural, render

if TYPE_CHECKING:
    from exampp.analysis.significance import Significance

router = APIRouter()
MOST = 500
"""So many cells the queue holds at most."""


GLANCE = 0.3
"""So many seconds a page waits for tests that come later where they are not made yet."""
PATIENCE = 2.0
"""So many seconds the first page waits for a large collection before it says that it does."""


class GraderProgress(NamedTuple):
    """How far one grader is on one bank, in cells; `failed` were tried without a grade."""

    grader: str
    bank: str
    graded: int
    due: int
    failed: int


class WaitingTask(NamedTuple):
    """Something that waits for people: how much of it, where it is, and why it matters."""

    name: str
    figure: str
    address: str
    why: str


@dataclass(frozen=True)
class BoardView:
    """How the leaderboard is looked at.

    `by` is the measure that orders the systems, `min_rating` the lowest rating that covers an item
    (None: the usual one), `decisions` whether people's stand over the grades.
    """

    by: int = 0
    min_rating: int | None = None
    decisions: DecisionChoice = "with"

    def address(self, path: str = "/", **changed: object) -> str:
        """The address of the leaderboard looked at so."""
        given = {
            "by": self.by or None,
            "min_rating": self.min_rating,
            "decisions": None if self.decisions == "with" else self.decisions,
        }
        return link(path, **{**given, **changed})


async def board_view(
    by: int = 0, min_rating: int | None = None, decisions: DecisionChoice = "with"
) -> BoardView:
    """The view that an address asks for."""
    return BoardView(by, min_rating, decisions)


Viewed = Annotated[BoardView, Depends(board_view)]


@router.get("/")
def overview(visit: CurrentRequest, view: Viewed) -> Response:
    """The first page that people see."""
    if not visit.choices:
        return visit.page("ungraded.html")
    if not visit.room.is_ready(visit.choice, PATIENCE):
        return HTMLResponse(render("opening.html", name=visit.room.name, to=view.address()))
    return _shown(visit, "overview.html", view)


@router.get("/overview/live")
def live(visit: CurrentRequest, view: Viewed, seen: str = "") -> Response:
    """The overview as it is now; nothing where that is what the page shows already."""
    if _state(visit, _ties(visit, view)) == seen:
        return Response(status_code=204)
    return _shown(visit, "_overview.html", view)


@router.get("/fresh")
async def fresh(request: Request, at: float) -> Response:
    """What a page that was read `at` a time says once it is older than the collection."""
    room: LiveCollection = request.app.state.room
    if not room.is_older(at):
        return Response(status_code=204)
    return HTMLResponse(render("_older.html"))


@router.post("/choose")
def choose(visit: CurrentRequest, code: Annotated[str, Form()]) -> Response:
    """Look at another grader's grades from now on."""
    answer = visit.go("/")
    if any(one.code == code for one in visit.choices):
        visit.keep(answer, CHOICE, code)
    return answer


def _state(visit: PageRequest, ties: Significance | None) -> str:
    """Changes when the overview does."""
    facts, snapshot = visit.facts, visit.snapshot
    marks = f"{int(ties is not None)}{int(visit.is_older)}"
    return f"{snapshot.made_at:.3f}-{facts.made_at if facts else 0:.3f}-{marks}"


def _ties(visit: PageRequest, view: BoardView) -> Significance | None:
    snapshot = visit.snapshot
    columns = snapshot.board.columns
    chosen = view.by if 0 <= view.by < len(columns) else 0
    if len(snapshot.board.column_systems) < 2:
        return None
    return snapshot.ties(chosen, view.min_rating, view.decisions, GLANCE)


def _shown(visit: PageRequest, template: str, view: BoardView) -> Response:
    # the state is taken first: what changes meanwhile is shown by the next call
    ties = _ties(visit, view)
    state = _state(visit, ties)
    facts, board = visit.facts, visit.snapshot.leaderboard(view.min_rating, view.decisions)
    grader = visit.choice.grader
    return visit.page(
        template,
        state=state,
        view=view,
        board=board,
        standings=standings(board, view.by),
        ties=ties,
        letters={} if ties is None else {one.system: one.letters for one in ties.systems},
        threshold=visit.snapshot.threshold(view.min_rating),
        thresholds=range(grader.lowest + 1, grader.highest + 1),
        oversight=visit.snapshot.gradebook.oversight,
        lacking=missing_prerequisite(visit.snapshot.gradebook),
        bias=bias_line(visit.snapshot.bias),
        progress=None if facts is None else progress(facts.grading),
        tasks=tasks(visit, facts),
        notes=() if facts is None else status_table(facts.grading).notes,
    )


def progress(entries: Sequence[GraderStatus]) -> Sequence[GraderProgress]:
    """How far each grader is, graders that still have work first."""
    found = []
    for one in entries:
        states = dict(one.states)
        graded = states.pop("graded", 0)
        bank = one.bank or "queries"
        failed = sum(states.values())
        found.append(GraderProgress(grader_label(one.grader), bank, graded, one.due, failed))
    return sorted(found, key=lambda one: -one.due)


def _swapping(swaps: int, queued: int) -> str:
    if not swaps:
        return "no single decision would swap systems"
    if swaps == queued:
        return "each could swap systems on the leaderboard"
    return f"{swaps} of them could swap systems on the leaderboard"


def tasks(visit: PageRequest, facts: CollectionCounts | None) -> Sequence[WaitingTask]:
    """What waits for people, what matters most to the leaderboard first."""
    queue = visit.snapshot.queue
    swaps = sum(1 for one in queue if one.swaps)
    found = [
        WaitingTask(
            "Decide on grades",
            plural(len(queue), "cell") if len(queue) < MOST else f"{MOST}+ cells",
            "/queue",
            _swapping(swaps, len(queue)),
        )
    ]
    if facts is None:
        return found
    listed = [
        (
            facts.sampled,
            "Decide the sample",
            "unit",
            "/sample",
            "drawn by chance: what corrects the leaderboard",
        ),
        (facts.disputes, "Settle disputes", "cell", "/disputes", "assessors differ"),
        (
            sum(facts.findings.values()),
            "Mend the bank",
            "finding",
            link("/queries", order="findings"),
            "items that are likely to be wrong",
        ),
        (
            len(facts.oversight.missing),
            "Fill gaps",
            "passage",
            "/lists/missing",
            "good passages that no item covers",
        ),
        (
            len(facts.oversight.spurious),
            "Look at spurious items",
            "item",
            "/lists/spurious",
            "often covered by passages that are not relevant",
        ),
    ]
    found += [
        WaitingTask(name, plural(number, noun), address, why)
        for number, name, noun, address, why in listed
        if number
    ]
    return found
