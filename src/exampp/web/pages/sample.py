"""`/sample`: people decide what was drawn by chance, blind, one unit after the other.

Nothing here says what the grader said, neither before a decision nor after it: what comes next is
to be decided without having learnt how the grader thinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.decisions import SamplePlan
from exampp.records.gradebook import Dossier
from exampp.records.inputs import DEFAULT_MIN_RELEVANT
from exampp.results.html import view_html
from exampp.review.sampling import SampleProgress, open_cells
from exampp.store.bank import known_queries
from exampp.store.inputs import highest_judgment
from exampp.web.cells import (
    CellIds,
    PassageExcerpt,
    RatingMark,
    cell_of,
    dossier,
    marks,
    show,
    versions,
)
from exampp.web.page_request import DECISIONS, LARGEST, CurrentRequest, PageRequest, among
from exampp.web.pages.judging_sessions import (
    RECENT,
    JudgingSession,
    RecentDecision,
    recent_cells,
    start_session,
    steps,
)
from exampp.web.rendering import link, shade

router = APIRouter()
LENGTH = 100
"""Cells of a walk; when they are done, the next ones are asked for."""
_MEANINGS = ("not relevant", "related", "relevant", "perfectly relevant")
"""What relevances of 0 to 3 mean. Source: the passage task of TREC Deep Learning 2019."""


@dataclass(frozen=True, slots=True)
class SampledCell:
    """What a person looks at to decide a drawn unit: nothing of what is known of it.

    A passage as a whole has the item id "". `versions` are the texts that are decided about;
    `least` is the lowest rating that counts as answered, or as relevant.
    """

    place: CellIds
    query_text: str
    asked: str
    question: str
    shown: PassageExcerpt | None
    marks: tuple[RatingMark, ...]
    versions: tuple[int, int] | None
    sample: str
    least: int


@router.get("/sample")
def sample(visit: CurrentRequest) -> HTMLResponse:
    """What was drawn, how far it is decided, and the leaderboard that it gives."""
    with visit.open() as collection:
        found = _progress(visit, collection)
        corrected = trouble = None
        if found is not None and not found.open:
            try:
                measure = found.plan.measure
                result = visit.choice.of(collection).corrected(measure, plan=found.plan.number)
                corrected = [Markup(view_html(table.view())) for table in result.tables().values()]
            except InputError as error:
                trouble = str(error)
    facts = () if found is None else next(iter(found.tables().values())).rows
    return visit.page(
        "sample.html",
        found=found,
        facts=facts,
        corrected=corrected,
        trouble=trouble,
        path=visit.room.path,
    )


@router.get("/sample/judge")
def judge(visit: CurrentRequest) -> HTMLResponse:
    """The page of the walk through the sample, with its first cell."""
    with visit.open() as collection:
        found = _progress(visit, collection)
        places = _walk(found)
        first = None
        if found is not None and places:
            first = _case(
                collection, found.plan, dossier(visit, collection, places[0][0]), places[0]
            )
        recent = _recent(visit, collection, found.plan) if found else None
    return visit.page(
        "sample_judge.html",
        case=first,
        walk=[(_address(one.place), one.left) for one in steps(places)],
        found=found,
        sitting=recent,
    )


@router.get("/sample/case")
def case(
    visit: CurrentRequest, query: str, passage: str, item: str = "", whole: bool = False
) -> HTMLResponse:
    """One drawn cell to decide, to be put on the stage."""
    place = CellIds(query, item, passage)
    with visit.open() as collection:
        plan = _plan(visit, collection)
        shown = _case(collection, plan, dossier(visit, collection, query), place, whole=whole)
        if visit.wants_part:
            return visit.page("_sample_case.html", case=shown)
        found = _progress(visit, collection)
        recent = _recent(visit, collection, plan)
    walked = [(_address(place), 1)]
    return visit.page("sample_judge.html", case=shown, walk=walked, found=found, sitting=recent)


@router.get("/sample/progress")
def progress_part(visit: CurrentRequest) -> HTMLResponse:
    """How far the sample is decided, to be put beside the cells."""
    with visit.open() as collection:
        return visit.page("_sample_progress.html", found=_progress(visit, collection))


@router.post("/sample/decide")
@among(DECISIONS)
def decide(
    visit: CurrentRequest,
    cell: Annotated[str, Form()],
    sample: Annotated[str, Form()],
    versions: Annotated[str, Form()],
    rating: Annotated[int, Form(ge=-LARGEST, le=LARGEST)],
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Keep one decision about a drawn cell."""
    place = CellIds.unpacked(cell)
    seen = _versions(versions)
    with visit.open() as collection:
        grades = visit.choice.of(collection)
        plan = _plan(visit, collection)
        if plan.sample != sample:
            raise InputError("another sample was drawn meanwhile", mend="Load the page again")
        author, reason = visit.assessor, reason.strip()
        if plan.unit == "passage":
            grades.decisions.judge(
                plan,
                place.query_id,
                place.passage_id,
                rating,
                seen=seen[1],
                author=author,
                reason=reason,
            )
        else:
            if not any((one.query_id, one.unit_id) == place[:2] for one in plan.drawn):
                raise InputError("this item is not in the sample", field="cell")
            grades.decisions.decide(
                *place,
                rating,
                blind=True,
                sample=plan.sample,
                versions=seen,
                author=author,
                reason=reason,
            )
        recent = _recent(visit, collection, plan)
    visit.room.changed()
    if not visit.wants_part:
        return visit.go("/sample/judge")
    return visit.page("_recent.html", sitting=recent)


@router.post("/sample/undo")
@among(DECISIONS)
def undo(
    visit: CurrentRequest,
    number: Annotated[int, Form(ge=1, le=LARGEST)],
    back: Annotated[str, Form()] = "/sample/judge",
) -> Response:
    """Take a decision about a drawn cell back, and go back to it."""
    with visit.open() as collection:
        plan = _plan(visit, collection)
        if plan.unit == "passage":
            visit.choice.of(collection).decisions.unjudge(number, author=visit.assessor)
        else:
            collection.decisions.undo(number, author=visit.assessor)
        recent = _recent(visit, collection, plan)
    visit.room.changed()
    if visit.wants_part:
        return visit.page("_recent.html", sitting=recent)
    return visit.back(back, "/sample/judge")


def _plan(visit: PageRequest, collection: Collection) -> SamplePlan:
    """The newest sample. InputError where there is none."""
    plans = visit.choice.of(collection).decisions.plans()
    if not plans:
        raise InputError("no sample was drawn", mend="Draw one: exampp review COLLECTION plan")
    return plans[-1]


def _progress(visit: PageRequest, collection: Collection) -> SampleProgress | None:
    """How far the newest sample is decided; None where none was drawn."""
    grades = visit.choice.of(collection)
    return (
        grades.decisions.sample(gradebook=visit.snapshot.gradebook)
        if grades.decisions.plans()
        else None
    )


def _recent(visit: PageRequest, collection: Collection, plan: SamplePlan) -> JudgingSession:
    """What this person decided last of a sample; how far it is decided stands elsewhere."""
    if plan.unit == "item":
        start = visit.room.sittings.get(visit.assessor) or start_session(visit, collection)
        decided = [
            one
            for one in collection.decisions.since(start.after, author=visit.assessor)
            if one.decision.sample == plan.sample
        ]
        recent = recent_cells(decided, visit.choice.grader, None, "/sample/case")
    else:
        texts = known_queries(collection.connection)
        said = visit.choice.of(collection).decisions.judged_by(plan, visit.assessor)
        recent = [
            RecentDecision(
                one.number,
                _address(CellIds(one.query_id, "", one.passage_id)),
                texts.get(one.query_id) or one.query_id,
                one.relevance or 0,
                _level(plan, one.relevance or 0),
            )
            for one in reversed(said[-RECENT:])
        ]
    return JudgingSession(0, 0, recent, undo="/sample/undo")


def _walk(found: SampleProgress | None) -> Sequence[CellIds]:
    return [] if found is None else [CellIds(*one) for one in open_cells(found, LENGTH)]


def _address(place: CellIds) -> str:
    query, item, passage = place
    return link("/sample/case", query=query, item=item, passage=passage)


def _case(
    collection: Collection,
    plan: SamplePlan,
    found: Dossier,
    place: CellIds,
    *,
    whole: bool = False,
) -> SampledCell:
    if plan.unit == "passage":
        passages = found.grades.passage_ids
        if place.passage_id not in passages:
            raise InputError("no such passage", field="passage")
        row = passages.index(place.passage_id)
        asked, question = found.query_text or found.query_id, "How relevant is this passage to it?"
        of_texts = found.passage_versions[row] if found.passage_versions else None
        texts = None if of_texts is None else (0, of_texts)
        scale = _relevances(plan, highest_judgment(collection.connection))
    else:
        cell = cell_of(found, place.item_id, place.passage_id)
        row, item = cell[0], found.items[cell[1]]
        asked = item.text or item.item_id
        nugget = item.kind == "nugget"
        question = "Is it in this passage?" if nugget else "How well does this passage answer it?"
        texts, scale = versions(found, cell), marks(found.grader)
    return SampledCell(
        place=place,
        query_text=found.query_text,
        asked=asked,
        question=question,
        shown=show(found.texts[row], whole=whole),
        marks=scale,
        versions=texts,
        sample=plan.sample,
        least=plan.min_relevant if plan.unit == "passage" else plan.min_rating,
    )


def _relevances(plan: SamplePlan, highest: int | None) -> tuple[RatingMark, ...]:
    """The scale of judgments: that of those there are, or 0 to 3."""
    top = max(plan.min_relevant, len(_MEANINGS) - 1 if highest is None else highest)
    known = top == len(_MEANINGS) - 1
    return tuple(
        RatingMark(
            one,
            str(one) if one <= 9 else "",
            shade(one, 0, top),
            str(one),
            _MEANINGS[one] if known else "",
        )
        for one in range(top + 1)
    )


def _level(plan: SamplePlan, rating: int) -> int:
    top = max(DEFAULT_MIN_RELEVANT + 1, rating) if plan.unit == "passage" else max(5, rating)
    return shade(rating, 0, top)


def _versions(text: str) -> tuple[int, int]:
    """The texts that a person decided about. InputError where a form does not say it."""
    parts = text.split(",")
    if len(parts) != 2 or not all(one.isascii() and one.isdigit() for one in parts):
        raise InputError("those are no versions of texts", field="versions")
    return int(parts[0]), int(parts[1])
