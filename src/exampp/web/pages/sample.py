"""`/sample`: people decide what was drawn by chance, blind, one unit after the other.

Nothing here reveals the grades, neither before a decision nor after it: the next decision is to be
made without having learnt how the grader thinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.decisions import SamplePlan
from exampp.records.inputs import DEFAULT_MIN_RELEVANT
from exampp.results.result import Table
from exampp.results.view import Cell
from exampp.review.sampling import SampleProgress, open_cells
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
from exampp.web.page_request import DECISIONS, LARGEST, CurrentRequest, PageRequest, limited_by
from exampp.web.pages.judge import (
    LENGTH,
    RECENT,
    JudgingSession,
    RecentDecision,
    case_address,
    recent_decisions,
    start_session,
    steps,
)
from exampp.web.rendering import rating_shade

router = APIRouter()
CASE = "/sample/case"
_MEANINGS = ("not relevant", "related", "relevant", "perfectly relevant")
"""The meaning of relevances 0 to 3. Source: the passage task of TREC Deep Learning 2019."""


# ---- the sample ----------------------------------------------------------------------------------


class SamplePage(NamedTuple):
    """What was drawn, how far it is decided, and the leaderboard that it gives, or why not yet."""

    found: SampleProgress | None
    facts: Sequence[Sequence[Cell]]
    corrected: Sequence[Table]
    trouble: str


@router.get("/sample")
def sample(request: CurrentRequest) -> HTMLResponse:
    """Show the newest sample."""
    corrected, trouble = list[Table](), ""
    with request.open() as collection:
        found = _progress(request, collection)
        if found is not None and not found.open:
            grades, plan = request.choice.of(collection), found.plan
            try:
                result = grades.corrected(plan.measure, plan=plan.number)
                corrected = list(result.tables().values())
            except InputError as error:
                trouble = str(error)
    facts = () if found is None else next(iter(found.tables().values())).rows
    return request.render("sample.html", SamplePage(found, facts, corrected, trouble))


def _plan(request: PageRequest, collection: Collection) -> SamplePlan:
    """Return the newest sample. InputError if there is none."""
    plans = request.choice.of(collection).decisions.plans()
    if not plans:
        raise InputError("no sample was drawn", hint="Draw one: exampp review COLLECTION plan")
    return plans[-1]


def _progress(request: PageRequest, collection: Collection) -> SampleProgress | None:
    """Return how far the newest sample is decided; None if none was drawn."""
    grades = request.choice.of(collection).using(request.snapshot.gradebook)
    return grades.decisions.sample() if grades.decisions.plans() else None


# ---- judging -------------------------------------------------------------------------------------


class SampledCell(NamedTuple):
    """What a person looks at to decide a drawn unit: nothing of what is known of it.

    A passage as a whole has the item id "". `versions` are the texts to decide about; `least` is
    the lowest rating that counts as answered, or as relevant.
    """

    place: CellIds
    query_text: str
    asked: str
    question: str
    shown: PassageExcerpt | None
    marks: Sequence[RatingMark]
    versions: tuple[int, int] | None
    sample: str
    least: int


class SampleJudgePage(NamedTuple):
    """The next cells of a sample, the first of them to be decided now."""

    case: SampledCell | None
    walk: Sequence[tuple[str, int]]
    found: SampleProgress | None
    session: JudgingSession | None


@router.get("/sample/judge")
def judge_sample(request: CurrentRequest) -> HTMLResponse:
    """Show the next cells of the sample."""
    with request.open() as collection:
        found = _progress(request, collection)
        places = [] if found is None else [CellIds(*one) for one in open_cells(found, LENGTH)]
        case = recent = None
        if found is not None:
            recent = _recent(request, collection, found.plan)
            case = _case(request, collection, found.plan, places[0]) if places else None
    walk = [(case_address(place, path=CASE), left) for place, left in steps(places)]
    return request.render("sample_judge.html", SampleJudgePage(case, walk, found, recent))


@router.get(CASE)
def sample_case(
    request: CurrentRequest, query: str, passage: str, item: str = "", whole: bool = False
) -> HTMLResponse:
    """Show one drawn cell to decide."""
    place = CellIds(query, item, passage)
    with request.open() as collection:
        plan = _plan(request, collection)
        case = _case(request, collection, plan, place, whole=whole)
        if request.wants_part:
            return request.render("_sample_case.html", case=case)
        found, recent = _progress(request, collection), _recent(request, collection, plan)
    walk = [(case_address(place, path=CASE), 1)]
    return request.render("sample_judge.html", SampleJudgePage(case, walk, found, recent))


@router.get("/sample/progress")
def progress_part(request: CurrentRequest) -> HTMLResponse:
    """Show how far the sample is decided."""
    with request.open() as collection:
        return request.render("_sample_progress.html", found=_progress(request, collection))


@router.post("/sample/decide")
@limited_by(DECISIONS)
def decide(
    request: CurrentRequest,
    cell: Annotated[str, Form()],
    sample: Annotated[str, Form()],
    versions: Annotated[str, Form()],
    rating: Annotated[int, Form(ge=-LARGEST, le=LARGEST)],
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Store a decision about a drawn cell."""
    place, texts, author = CellIds.unpacked(cell), parse_versions(versions), request.assessor
    reason = reason.strip()
    with request.open() as collection:
        grades, plan = request.choice.of(collection), _plan(request, collection)
        if plan.sample != sample:
            raise InputError("another sample was drawn meanwhile", hint="Load the page again")
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
        return _decided(request, collection, plan, "/sample/judge")


@router.post("/sample/undo")
@limited_by(DECISIONS)
def undo(
    request: CurrentRequest,
    number: Annotated[int, Form(ge=1, le=LARGEST)],
    back: Annotated[str, Form()] = "/sample/judge",
) -> Response:
    """Take a decision about a drawn cell back, and go back to it."""
    with request.open() as collection:
        plan = _plan(request, collection)
        if plan.unit == "passage":
            request.choice.of(collection).decisions.unjudge(number, author=request.assessor)
        else:
            collection.decisions.undo(number, author=request.assessor)
        return _decided(request, collection, plan, back)


def _decided(request: PageRequest, collection: Collection, plan: SamplePlan, to: str) -> Response:
    request.live.changed()
    if request.wants_part:
        return request.render("_recent.html", session=_recent(request, collection, plan))
    return request.redirect_back(to, "/sample/judge")


def _recent(request: PageRequest, collection: Collection, plan: SamplePlan) -> JudgingSession:
    """Return the last decisions of this person about a sample."""
    if plan.unit == "item":
        start = request.live.sessions.get(request.assessor) or start_session(request, collection)
        made = [
            one
            for one in collection.decisions.since(start.after, author=request.assessor)
            if one.decision.sample == plan.sample
        ]
        recent = recent_decisions(made, request.choice.grader, None, CASE)
    else:
        texts = known_queries(collection.connection)
        judged = request.choice.of(collection).decisions.judged_by(plan, request.assessor)
        recent = [
            RecentDecision(
                one.number,
                case_address(CellIds(one.query_id, "", one.passage_id), path=CASE),
                texts.get(one.query_id) or one.query_id,
                rating,
                rating_shade(rating, 0, max(DEFAULT_MIN_RELEVANT + 1, rating)),
            )
            for one in reversed(judged[-RECENT:])
            for rating in [one.relevance or 0]
        ]
    return JudgingSession(0, 0, recent, undo="/sample/undo")


def _case(
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
            raise InputError("no such passage", field="passage")
        row = passages.index(place.passage_id)
        asked = dossier.query_text or dossier.query_id
        question, least = "How relevant is this passage to it?", plan.min_relevant
        text = dossier.passage_versions[row] if dossier.passage_versions else None
        versions = None if text is None else (0, text)
        # the scale of the judgments that there are, or 0 to 3
        known = highest_judgment(collection.connection)
        top = max(plan.min_relevant, len(_MEANINGS) - 1 if known is None else known)
        scale = marks(0, top, _MEANINGS)
    else:
        cell = row, column = cell_of(dossier, place.item_id, place.passage_id)
        item = dossier.items[column]
        asked = item.text or item.item_id
        question, least = "How well does this passage answer it?", plan.min_rating
        if item.kind == "nugget":
            question = "Is it in this passage?"
        versions, scale = versions_of(dossier, cell), marks_of(dossier)
    return SampledCell(
        place,
        dossier.query_text,
        asked,
        question,
        passage_excerpt(dossier.texts[row], whole=whole),
        scale,
        versions,
        plan.sample,
        least,
    )
