"""`/runs`: what models are doing, and the graders of the collection; stop, resume, combine."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.grading.derived import RULES
from exampp.grading.status import runs_elsewhere
from exampp.results.view import GRADER_KEY
from exampp.stopping import GRACE_SECONDS
from exampp.web.background import BackgroundTask
from exampp.web.forms import form_of_grader
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.rendering import sentence

router = APIRouter()
Number = Annotated[int, Form(ge=1)]


@router.get("/runs")
def runs(request: CurrentRequest) -> HTMLResponse:
    """Show the runs, and the graders with their numbers of cells."""
    return _page(request)


@router.get("/runs/live")
def live(request: CurrentRequest, seen: str = "") -> Response:
    """Return the runs as they are now; nothing if the page is up to date."""
    context = _runs(request)
    if context["state"] == seen:
        return Response(status_code=204)
    return request.render("_runs.html", **context)


@router.post("/runs/stop")
def stop(request: CurrentRequest, number: Number) -> Response:
    """Stop a run: the replies to active requests are stored, the rest stays pending."""
    request.live.tasks.find(number).stop(GRACE_SECONDS)
    return request.redirect("/runs")


@router.post("/runs/resume")
def resume(request: CurrentRequest, number: Number) -> Response:
    """Continue a run that was stopped or failed, with the same options."""
    try:
        request.live.tasks.start(request.live.tasks.find(number).plan)
    except InputError as error:
        return _page(request, 409, refused=str(error))
    return request.redirect("/runs")


@router.post("/runs/undo")
def undo(request: CurrentRequest, number: Number) -> Response:
    """Undo the edits of a generation, all or none."""
    task = request.live.tasks.find(number)
    if task.outcome is not None and task.outcome.edits:
        reason = f"undo of {task.plan.title}"
        with request.open() as collection:
            bank = collection.bank(task.outcome.bank)
            try:
                bank.undo(*task.outcome.edits, author=request.assessor, reason=reason)
            except InputError as error:
                return _page(request, 409, refused=f"Nothing was undone: {error}")
        task.outcome = None
        request.live.changed()
    return request.redirect("/runs")


@router.post("/runs/vote")
def vote(
    request: CurrentRequest,
    grader: Annotated[list[str] | None, Form()] = None,
    rule: Annotated[str, Form()] = "majority",
    at_least: Annotated[str, Form()] = "",
) -> Response:
    """Combine several graders by a vote, which is stored as a new grader."""
    try:
        if not grader:
            raise InputError("no grader is ticked", hint="Tick the graders to combine")
        least = int(at_least) if at_least.strip() else None
        with request.open() as collection:
            voted = collection.panel(*grader).vote(rule, at_least=least)
    except (InputError, ValueError) as error:
        number = "The number of votes must be a whole number."
        text = sentence(error) if isinstance(error, InputError) else number
        return _page(request, 400, trouble=text)
    request.live.changed()
    return _page(request, voted=voted.tables())


def _page(request: PageRequest, status: int = 200, **more: Any) -> HTMLResponse:
    with request.open() as collection:
        graders = [(one.key, one.name) for one in collection.graders]
        offered = {one.key for one in collection.graders if form_of_grader(one)}
    tables = request.live.status()
    status_of = tables["graders"]
    rows = [dict(zip(status_of.headings(), row, strict=True)) for row in status_of.rows]
    unfinished = [one for one in rows if one["due"] and one[GRADER_KEY.heading] in offered]
    context = {
        "trouble": "",
        "refused": "",
        "voted": {},
        "rules": RULES,
        "graders": graders,
        "unfinished": [(one["grader"], one["bank"], one[GRADER_KEY.heading]) for one in unfinished],
        **more,
    }
    return request.render("runs.html", status, tables=tables, **context, **_runs(request))


def _runs(request: PageRequest) -> dict[str, Any]:
    """Return the tasks of this server and the runs elsewhere; `state` changes with them."""
    tasks = list(request.live.tasks)
    with request.open() as collection:
        elsewhere = runs_elsewhere(collection.connection)
    state = [*map(_state, tasks), *(f"{one[2].done}-{one[2].requests}" for one in elsewhere)]
    return {"tasks": tasks, "elsewhere": elsewhere, "state": ".".join(state)}


def _state(task: BackgroundTask) -> str:
    now, failed = task.progress, sum(task.progress.failed.values())
    counts = (task.number, task.state, now.done, now.requests, failed, task.outcome is None)
    return "-".join(map(str, counts))
