"""`/grade`: choose a grader, see the price, and start grading in the background."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grading.costs import Prices, describe_estimate, estimate
from exampp.grading.run import GradingRun
from exampp.records import ITEM_KINDS
from exampp.records.cascade import UNSURE_WITHIN
from exampp.store.cells import DEPTH
from exampp.web.background import TaskOutcome, TaskPlan
from exampp.web.forms import (
    GRADERS,
    NO_PRICE,
    SubmittedForm,
    form_of_grader,
    fraction,
    grader_options,
    grading_prompts,
    model_fields,
    whole,
)
from exampp.web.page_request import CurrentRequest, PageRequest

router = APIRouter()


@router.get("/grade")
def grade(request: CurrentRequest, grader: str = "", bank: str = "") -> HTMLResponse:
    """Show the form; to continue, with the options of a `grader`, named by its key."""
    with request.open() as collection:
        known = [one for one in collection.graders if one.key == grader]
    form = form_of_grader(known[0]) if known else {}
    return _page(request, {**form, "bank": bank})


@router.post("/grade/price")
def show_price(request: CurrentRequest, form: SubmittedForm) -> HTMLResponse:
    """Show what grading will send and cost; nothing is sent."""
    try:
        options = grader_options(form)
        with request.open() as collection:
            run = _plan(form, options, collection, dry_run=True)
            found = estimate(run, Prices.of_options(options))
            costs = collection.grading_costs(form["grader"], **_choices(form), **options)
    except InputError as error:
        return _page(request, form, 400, trouble=str(error))
    table = costs.tables()["ways"] if len(costs.ways) > 1 else None
    price = {"found": found, "facts": describe_estimate(run, found), "table": table}
    return _page(request, form, price={**price, "notes": run.notes})


@router.post("/grade/start")
def start(request: CurrentRequest, form: SubmittedForm) -> Response:
    """Start grading in the background."""
    try:
        options = grader_options(form)
        with request.open() as collection:
            run = _plan(form, options, collection, dry_run=True)
        who = run.grading.identity
        what = "queries" if who.kind == "query" else f"{who.kind}s of {run.exam.bank}"
        title = f"Grade {what} with {who.name}"
        plan = TaskPlan(title, request.assessor, partial(_plan, form, options), _outcome)
        request.live.tasks.start(plan)
    except InputError as error:
        return _page(request, form, 400, trouble=str(error))
    return request.redirect("/runs")


def _plan(
    form: Mapping[str, str],
    options: Mapping[str, Any],
    collection: Collection,
    dry_run: bool = False,
) -> GradingRun:
    """Plan the grading of a form: the call of `Collection.grading`."""
    return collection.grading(form["grader"], dry_run=dry_run, **_choices(form), **options)


def _choices(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what is graded, as options of `Collection.grading`."""
    unsure = fraction("unsure", form)
    return {
        "bank": form.get("bank") or None,
        "measures": form.get("measures", "").split(),
        "min_rating": whole("min_rating", form) or None,
        "may_miss": fraction("may_miss", form),
        "after": form.get("after") or None,
        "unsure": UNSURE_WITHIN if unsure is None else unsure,
        "audit": fraction("audit", form),
        "until": form.get("until") or None,
        "margin": fraction("margin", form),
        "baseline_system": form.get("baseline_system") or None,
        "select": "failed" if form.get("retry_failed") else "pending",
        "max_queries": whole("max_queries", form) or None,
        "depth": whole("depth", form) or DEPTH,
    }


def _outcome(run: GradingRun, steps: list[Any]) -> TaskOutcome:
    parts = [str(steps[-1])] if steps else []
    if run.cascaded is not None:
        parts.append(run.cascaded.tables()["cascade"].verdict)
    return TaskOutcome(". ".join(parts))


def _page(
    request: PageRequest,
    form: Mapping[str, str],
    status: int = 200,
    *,
    trouble: str = "",
    price: Mapping[str, Any] = NO_PRICE,
) -> HTMLResponse:
    price = {**price, "trouble": trouble}
    if request.wants_part:
        return request.render("_price.html", **price)
    with request.open() as collection:
        contents = {str(name): count for name, count in collection.contents().rows}
        earlier = collection.graders
        banks = list(dict.fromkeys(str(row[0]) for row in collection.banks().rows))
    return request.render(
        "grade.html",
        status,
        form=form,
        graders=GRADERS,
        kinds=ITEM_KINDS,
        fields=model_fields(form, writes=False),
        prompts=grading_prompts(),
        banks=banks,
        earlier=earlier,
        contents=contents,
        **price,
    )
