"""`/score`: score a pasted text by the items of a query; nothing is stored.

As for clients of the service, sealed items are neither graded nor shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from threading import Timer
from typing import Any, NamedTuple

from anyio import CapacityLimiter
from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.errors import ExamError, InputError
from exampp.measures.text_scores import TextScore
from exampp.scorer import Scorer
from exampp.service import LONGEST_ANSWER
from exampp.web.forms import (
    GRADERS,
    SubmittedForm,
    checked_choice,
    form_of_grader,
    grader_options,
)
from exampp.web.live_collection import Choice
from exampp.web.page_request import CurrentRequest, PageRequest, limited_by

router = APIRouter()
DRAFT = "draft"
SERVER = ("base_url", "api_key")
"""Fields of a model that the collection does not store."""
SCORES = CapacityLimiter(2)
"""Graders may take long, and must not delay pages."""
SECONDS = 60.0
"""Time for the grader."""


class ScoredItem(NamedTuple):
    """A public item with its best rating in the text; None without a grade."""

    item_id: str
    text: str
    weight: float
    rating: int | None
    is_covered: bool


class ScoredText(NamedTuple):
    """The score of a text, its items, and the number of sealed items that are left out."""

    score: TextScore
    scorer: Scorer
    items: list[ScoredItem]
    sealed: int


@router.get("/score")
def score(request: CurrentRequest, query: str = "") -> HTMLResponse:
    """Show the form; `query` is chosen in it."""
    return _page(request, {"query": query})


@router.post("/score")
@limited_by(SCORES)
def score_text(request: CurrentRequest, form: SubmittedForm) -> HTMLResponse:
    """Score the text of a form."""
    try:
        choice, text = _chosen(request, form), _checked_text(form)
        bank = request.bank if choice is None else choice.bank
        with request.open() as collection:
            scorer = collection.scorer(
                **_options(choice, form),
                bank=bank or None,
                min_rating=None if choice is None else request.live.min_rating(choice),
            )
            found = _scored(collection, scorer, form.get("query", ""), text)
    except InputError as error:
        return _page(request, form, HTTPStatus.BAD_REQUEST, trouble=str(error))
    except ExamError as error:
        return _page(request, form, HTTPStatus.SERVICE_UNAVAILABLE, trouble=str(error))
    return _page(request, form, found=found)


def _checked_text(form: Mapping[str, str]) -> str:
    text = form.get("text", "")
    if not any(map(str.isalnum, text)):
        raise InputError("the text has no words", hint="Paste an answer to the query")
    if len(text) > LONGEST_ANSWER:
        what = f"the text has {len(text):,} characters"
        raise InputError(what, hint=f"Paste at most {LONGEST_ANSWER:,}")
    return text


def _chosen(request: PageRequest, form: Mapping[str, str]) -> Choice | None:
    graders = _graders(request)
    return graders[checked_choice("grader", form.get("grader", ""), tuple(graders))]


def _options(choice: Choice | None, form: Mapping[str, str]) -> dict[str, Any]:
    """Return a grader and its options for a scorer; the server of a model is in the form."""
    chosen = {"grader": DRAFT} if choice is None else form_of_grader(choice.grader)
    chosen |= {name: form.get(name, "") for name in SERVER}
    return {"grader": chosen["grader"], **grader_options(chosen)}


def _scored(collection: Collection, scorer: Scorer, query: str, text: str) -> ScoredText:
    """Return the score of a text by the public items of a query."""
    query_id = scorer.query_id(query)
    part = "public" if scorer.is_split else None
    items = scorer.items(query_id, part)
    if not items:
        raise InputError("all items of the query are sealed", hint="Choose another query")
    timer = Timer(SECONDS, scorer.stop, [1.0])
    timer.start()
    try:
        found = scorer.score(query_id, [text], part=part)[0]
    finally:
        timer.cancel()
    weights = {one.item_id: one.weight for one in collection.bank(scorer.bank).items(query_id)}
    rated = [
        ScoredItem(
            *(item_id, of_item, weights.get(item_id, 1.0), rating),
            rating is not None and rating >= scorer.min_rating,
        )
        for item_id, of_item in items.items()
        for rating in [found.ratings.get(item_id)]
    ]
    return ScoredText(found, scorer, rated, len(scorer.items(query_id)) - len(items))


def _graders(request: PageRequest) -> dict[str, Choice | None]:
    """Return the graders that the person can use, by code; None is a draft grader without grades.

    A model on a server may cost money: only owners may use it.
    """
    found: dict[str, Choice | None] = {}
    for one in request.choices:
        kind = form_of_grader(one.grader).get("grader")
        if one.grades_items and (kind == DRAFT or (kind and request.may("manage"))):
            found[one.code] = one
    if not any(one and one.grader.is_draft for one in found.values()):
        found[DRAFT] = None
    return found


def _page(
    request: PageRequest,
    form: Mapping[str, str],
    status: int = 200,
    *,
    trouble: str = "",
    found: ScoredText | None = None,
) -> HTMLResponse:
    with request.open() as collection:
        queries = collection.query_texts()
    graders = _graders(request)
    usual = request.choice.code if request.choices else DRAFT
    return request.render(
        "score.html",
        status,
        form={"grader": usual, **form},
        queries=queries,
        has_models=any(one and not one.grader.is_draft for one in graders.values()),
        graders={code: one.label if one else GRADERS[DRAFT] for code, one in graders.items()},
        trouble=trouble,
        found=found,
    )
