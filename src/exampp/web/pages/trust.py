"""`/trust`: how far the leaderboard can be trusted: a sentence a question, a page behind each."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.exceptions import HTTPException

from exampp.analysis.verdict import TrustAnswer
from exampp.results.html import view_html
from exampp.results.plots.figure import Figure
from exampp.results.result import Table
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.rendering import TYPES, Theme, draw, link, render
from exampp.web.trust_answers import QUESTIONS, Question, answer

router = APIRouter()
PATIENCE = 3.0
"""So many seconds a page waits before it says that the answer is being found out."""
GLANCE = 0.3
"""The same for the list of questions, which shows what there is and fills up."""


class Asked(NamedTuple):
    """A question of the list with its answer; None while that is being found out."""

    key: str
    question: Question
    answer: TrustAnswer | None


@router.get("/trust")
def trust(visit: CurrentRequest) -> HTMLResponse:
    """All questions, each with its answer in a sentence."""
    return visit.page("trust.html", asked=_asked(visit))


@router.get("/trust/answers")
def answers(visit: CurrentRequest) -> HTMLResponse:
    """The list of questions alone, as it fills up."""
    return visit.page("_trust_answers.html", asked=_asked(visit))


@router.get("/trust/{key}.{kind}")
def picture(visit: CurrentRequest, key: str, kind: str, theme: Theme = "light") -> Response:
    """The figure of an answer as a file."""
    if key not in QUESTIONS or kind not in TYPES:
        raise HTTPException(404)
    found = answer(visit.snapshot, key, PATIENCE)
    figure = found and _figure(found)
    if figure is None:
        raise HTTPException(404)
    content = visit.snapshot.kept.get(
        ("drawn", key, kind, theme), lambda: draw(figure, kind, theme)
    )
    headers = {"content-disposition": f'inline; filename="{figure.name}.{kind}"'}
    return Response(content, media_type=TYPES[kind], headers=headers)


@router.get("/trust/{key}")
def question(visit: CurrentRequest, key: str) -> Response:
    """One question with all that is known of it."""
    if key not in QUESTIONS:
        raise HTTPException(404)
    found = answer(visit.snapshot, key, PATIENCE)
    if found is None:
        to = link(f"/trust/{key}")
        return HTMLResponse(render("opening.html", name=visit.room.name, to=to))
    return visit.page(
        "trust_question.html",
        key=key,
        question=QUESTIONS[key],
        questions=QUESTIONS,
        found=found,
        table=_table,
        is_figure=lambda block: isinstance(block, Figure),
        kind=lambda block: type(block).__name__.lower(),
        command=_command(visit, QUESTIONS[key]),
    )


def _asked(visit: PageRequest) -> list[Asked]:
    """The questions in order; each is begun when the one before it is answered."""
    found: list[Asked] = []
    for key, one in QUESTIONS.items():
        waits = bool(found) and found[-1].answer is None
        known = None if waits else answer(visit.snapshot, key, GLANCE)
        found.append(Asked(key, one, known))
    return found


def _figure(found: TrustAnswer) -> Figure | None:
    figures = (block for block in found.section.blocks if isinstance(block, Figure))
    return next((one for one in figures if one.spec), None)


def _table(table: Table) -> Markup:
    return Markup(view_html(table.view()))


def _command(visit: PageRequest, asked: Question) -> str:
    """What says the same on the command line."""
    named = f" --grader {shlex.quote(visit.choice.grader.name)}" if len(visit.choices) > 1 else ""
    return f"exampp analyze {asked.command} {shlex.quote(str(visit.room.path))}{named}"
