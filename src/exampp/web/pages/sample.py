"""`/sample`: draw a random sample, judge it blind, and see what it shows.

Pages of a sample never reveal grades.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, get_args

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.sampling import DEFAULT_MEASURE, SampleProgress, open_cells
from exampp.records.decisions import Design, SamplePlan
from exampp.records.inputs import DEFAULT_MIN_RELEVANT
from exampp.results.result import Table
from exampp.review.assessor_agreement import EVERYBODY, PersonComparison
from exampp.review.queue import Assignment
from exampp.store.bank import known_queries
from exampp.store.inputs import highest_judgment
from exampp.web.cells import (
    CellIds,
    PassageExcerpt,
    RatingMark,
    cell_of,
    marks,
    marks_of,
    parse_versions,
    passage_excerpt,
    read_query,
    versions_of,
)
from exampp.web.forms import SubmittedForm, checked_choice, whole
from exampp.web.page_request import LARGEST, CurrentRequest, PageRequest, in_turn
from exampp.web.pages.judge import (
    LENGTH,
    RECENT,
    JudgingSession,
    RecentDecision,
    case_address,
    comparison_of,
    recent_decisions,
    start_session,
    steps,
    undo_decision,
)
from exampp.web.rendering import rating_shade

router = APIRouter()
SAMPLED_CASE = "/sample/case"
_RELEVANCES = ("not relevant", "related", "relevant", "perfectly relevant")
"""The meaning of relevances 0 to 3. Source: the passage task of TREC Deep Learning 2019."""


# ---- the sample ----------------------------------------------------------------------------------


@router.get("/sample")
def sample(request: CurrentRequest) -> HTMLResponse:
    """Show the newest sample, what it shows once it is decided, and the form that draws one."""
    return _page(request)


@router.post("/sample/draw")
def draw(request: CurrentRequest, form: SubmittedForm) -> Response:
    """Draw a sample, as `exampp review COLLECTION sample --labels` does."""
    try:
        design = _DESIGNS[checked_choice("design", form.get("design", ""), tuple(_DESIGNS))]
        with request.open() as collection:
            request.choice.of(collection).decisions.plan(
                whole("labels", form),
                form.get("measure", "").strip() or DEFAULT_MEASURE,
                design=design,
                seed=whole("seed", form),
                min_rating=whole("min_rating", form) or None,
                min_relevant=whole("min_relevant", form) or None,
                author=request.assessor,
            )
    except InputError as error:
        return _page(request, form, 400, refused=str(error))
    request.live.changed()
    return request.redirect("/sample")


def _page(
    request: PageRequest,
    form: Mapping[str, str] | None = None,
    status: int = 200,
    refused: str = "",
) -> HTMLResponse:
    corrected, trouble, agreement = list[Table](), "", None
    with request.open() as collection:
        progress = _progress(request, collection)
        if progress is not None and not progress.open:
            grades, plan = request.choice.of(collection), progress.plan
            try:
                result = grades.corrected(plan.measure, plan=plan.number)
                corrected = list(result.tables().values())
            except InputError as error:
                trouble = str(error)
            agreement = _agreement(request, collection, plan)
    facts = () if progress is None else next(iter(progress.tables().values())).rows
    units = progress.units if progress else ()
    deciders = Counter(one for unit in units for one in unit.deciders)
    return request.render(
        "sample.html",
        status,
        progress=progress,
        facts=facts,
        deciders={one: deciders[one] for one in (*request.people, *deciders)},
        corrected=corrected,
        trouble=trouble,
        agreement=agreement,
        form={**_drawn(progress.plan if progress else None), **(form or {})},
        designs=_DESIGNS,
        measures=_MEASURES,
        refused=refused,
    )


_DESIGNS: Mapping[str, Design] = {one: one for one in get_args(Design)}
_MEASURES = (DEFAULT_MEASURE, "RBP@20", "Cover@20")
"""Measures that the form suggests."""


def _drawn(plan: SamplePlan | None) -> Mapping[str, object]:
    """Return the form that draws a plan again: with more labels it is extended."""
    return {
        "labels": round(plan.expected) if plan else 400,
        "measure": plan.measure if plan else DEFAULT_MEASURE,
        "design": plan.design if plan else "influence",
        "seed": plan.seed if plan else 0,
        "min_rating": "",
        "min_relevant": "",
    }


def _agreement(
    request: PageRequest, collection: Collection, plan: SamplePlan
) -> PersonComparison | None:
    """Return the agreement of people with the grader on the cells of a sample of items."""
    cells = frozenset(
        (one.query_id, one.item_id, one.passage_id)
        for one in collection.decisions.list()
        if one.decision.sample == plan.sample
    )
    decisions = request.choice.of(collection).decisions
    compared = decisions.judging(min_rating=plan.min_rating, cells=cells, intervals=True)
    return comparison_of(compared.blind, EVERYBODY)


def _plan(request: PageRequest, collection: Collection) -> SamplePlan:
    """Return the newest sample. InputError without one."""
    plans = request.choice.of(collection).decisions.plans()
    if not plans:
        raise InputError(
            "no sample has been drawn", hint="Draw one: exampp review COLLECTION sample"
        )
    return plans[-1]


def _progress(request: PageRequest, collection: Collection) -> SampleProgress | None:
    """Return the progress of the newest sample; None without one."""
    grades = request.choice.of(collection).using(request.snapshot.gradebook)
    return grades.decisions.sample() if grades.decisions.plans() else None


# ---- judging the sample --------------------------------------------------------------------------


class SampledCell(NamedTuple):
    """A drawn unit as shown to the person who decides it, without its grade.

    A passage as a whole has the item id "". `versions` are the keys of the texts; `least` is the
    lowest rating that counts as answered or relevant.
    """

    place: CellIds
    query_text: str
    text: str
    question: str
    shown: PassageExcerpt | None
    marks: Sequence[RatingMark]
    versions: tuple[int, int] | None
    sample: str
    least: int


@router.get("/sample/judge")
def judge_sample(request: CurrentRequest) -> HTMLResponse:
    """Show the next cells of the sample."""
    with request.open() as collection:
        progress = _progress(request, collection)
        places = [] if progress is None else _next_cells(request, progress)
        case = None
        if progress is not None and places:
            case = _sampled_case(request, collection, progress.plan, places[0])
        return _judging_page(request, collection, progress, case, steps(places))


def _next_cells(request: PageRequest, progress: SampleProgress) -> list[CellIds]:
    """Return the next cells for a person: those of units assigned to others come last."""
    shares, is_passage = Assignment(request.people, share=0.0), progress.plan.unit == "passage"

    def is_of_others(cell: CellIds) -> bool:
        unit = cell if is_passage else cell._replace(passage_id="")
        return shares.owner(unit) not in (None, request.assessor)

    return sorted((CellIds(*one) for one in open_cells(progress, LENGTH)), key=is_of_others)


@router.get(SAMPLED_CASE)
def sample_case(
    request: CurrentRequest, query: str, passage: str, item: str = "", whole: bool = False
) -> HTMLResponse:
    """Show one drawn cell to decide."""
    place = CellIds(query, item, passage)
    with request.open() as collection:
        plan = _plan(request, collection)
        case = _sampled_case(request, collection, plan, place, whole=whole)
        if request.wants_part:
            return request.render("_sample_case.html", case=case)
        progress = _progress(request, collection)
        return _judging_page(request, collection, progress, case, [(place, 1)])


def _judging_page(
    request: PageRequest,
    collection: Collection,
    progress: SampleProgress | None,
    case: SampledCell | None,
    cells: Sequence[tuple[CellIds, int]],
) -> HTMLResponse:
    return request.render(
        "sample_judge.html",
        case=case,
        next_cells=[(case_address(place, path=SAMPLED_CASE), left) for place, left in cells],
        progress=progress,
        session=progress and _recent_sampled(request, collection, progress.plan),
    )


@router.get("/sample/progress")
def progress_part(request: CurrentRequest) -> HTMLResponse:
    """Show the progress of the sample."""
    with request.open() as collection:
        return request.render("_sample_progress.html", progress=_progress(request, collection))


@router.post("/sample/decide")
@in_turn
def decide_sampled(
    request: CurrentRequest,
    cell: Annotated[str, Form()],
    sample: Annotated[str, Form()],
    versions: Annotated[str, Form()],
    rating: Annotated[int, Form(ge=-LARGEST, le=LARGEST)],
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Store a decision on a drawn cell."""
    place, texts, author = CellIds.unpacked(cell), parse_versions(versions), request.assessor
    reason = reason.strip()
    with request.live.deciding() as collection:
        grades = request.live.grades_of(collection, request.choice)
        plan = _plan(request, collection)
        if plan.sample != sample:
            raise InputError("a new sample has been drawn", hint="Reload the page")
        query_id, _, passage_id = place
        if plan.unit == "passage":
            grades.decisions.judge(
                plan, query_id, passage_id, rating, seen=texts[1], author=author, reason=reason
            )
        elif not any((one.query_id, one.unit_id) == place[:2] for one in plan.drawn):
            raise InputError("this item is not in the sample", field="cell")
        else:
            grades.decisions.decide(
                *place,
                rating,
                blind=True,
                sample=plan.sample,
                versions=texts,
                author=author,
                reason=reason,
            )
        return _sample_decided(request, collection, plan, "/sample/judge")


@router.post("/sample/undo")
@in_turn
def undo_sampled(
    request: CurrentRequest,
    number: Annotated[int, Form(ge=1, le=LARGEST)],
    back: Annotated[str, Form()] = "/sample/judge",
) -> Response:
    """Undo a decision on a drawn cell and return to it."""
    with request.live.deciding() as collection:
        plan = _plan(request, collection)
        if plan.unit == "passage":
            request.choice.of(collection).decisions.unjudge(number, author=request.assessor)
        else:
            undo_decision(request, collection, number)
        return _sample_decided(request, collection, plan, back)


def _sample_decided(
    request: PageRequest, collection: Collection, plan: SamplePlan, to: str
) -> Response:
    request.live.changed()
    if request.wants_part:
        return request.render("_recent.html", session=_recent_sampled(request, collection, plan))
    return request.redirect_back(to, "/sample/judge")


def _recent_sampled(
    request: PageRequest, collection: Collection, plan: SamplePlan
) -> JudgingSession:
    """Return the last decisions of this person about a sample."""
    if plan.unit == "item":
        start = request.live.sessions.get(request.assessor) or start_session(request, collection)
        decisions = [
            one
            for one in collection.decisions.since(start.after, author=request.assessor)
            if one.decision.sample == plan.sample
        ]
        recent = recent_decisions(decisions, request.choice.grader, None, SAMPLED_CASE)
    else:
        texts = known_queries(collection.connection)
        judged = request.choice.of(collection).decisions.judged_by(plan, request.assessor)
        recent = [
            RecentDecision(
                one.number,
                case_address(CellIds(one.query_id, "", one.passage_id), path=SAMPLED_CASE),
                texts.get(one.query_id) or one.query_id,
                rating,
                rating_shade(rating, 0, max(DEFAULT_MIN_RELEVANT + 1, rating)),
            )
            for one in reversed(judged[-RECENT:])
            for rating in [one.relevance or 0]
        ]
    return JudgingSession(0, 0, recent, undo="/sample/undo")


def _sampled_case(
    request: PageRequest,
    collection: Collection,
    plan: SamplePlan,
    place: CellIds,
    *,
    whole: bool = False,
) -> SampledCell:
    dossier = read_query(request, collection, place.query_id)
    if plan.unit == "passage":
        passages = dossier.grades.passage_ids
        if place.passage_id not in passages:
            raise InputError("unknown passage", field="passage")
        row = passages.index(place.passage_id)
        shown_text = dossier.query_text or dossier.query_id
        question, least = "How relevant is this passage to it?", plan.min_relevant
        text = dossier.passage_versions[row] if dossier.passage_versions else None
        versions = None if text is None else (0, text)
        # the scale of the existing judgments, or 0 to 3
        highest = highest_judgment(collection.connection)
        top = max(plan.min_relevant, len(_RELEVANCES) - 1 if highest is None else highest)
        scale = marks(0, top, _RELEVANCES)
    else:
        cell = row, column = cell_of(dossier, place.item_id, place.passage_id)
        item = dossier.items[column]
        shown_text = item.text or item.item_id
        question, least = "How well does this passage answer it?", plan.min_rating
        if item.kind == "nugget":
            question = "Is it in this passage?"
        versions, scale = versions_of(dossier, cell), marks_of(dossier)
    return SampledCell(
        place,
        dossier.query_text,
        shown_text,
        question,
        passage_excerpt(dossier.texts[row], whole=whole),
        scale,
        versions,
        plan.sample,
        least,
    )
