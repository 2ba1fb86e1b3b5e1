"""`/trust`: how far the leaderboard can be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from exampp.analysis import verdict
from exampp.analysis.attacks.battery import beside
from exampp.analysis.verdict import LAYOUTS, TrustAnswer
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.results.plots.figure import Figure
from exampp.web.live_collection import Snapshot
from exampp.web.page_request import (
    PATIENCE,
    PICTURES,
    CurrentRequest,
    PageRequest,
    computed,
    limited_by,
)
from exampp.web.rendering import FIGURE_TYPES, Theme, figure_file, render_figure, sentence

router = APIRouter()
PART = 0.3
"""Seconds to wait for an answer before the list of questions is shown without it."""
MEASURE_OF_PEOPLE = "P@20"
"""The corrected measure if no sample is for another one."""


class Question(NamedTuple):
    """A question about trust, and the function that answers it.

    `command` is the subcommand of `exampp analyze`; `elsewhere` is the page with the records.
    """

    text: str
    about: str
    command: str
    find: Callable[[Grades, Snapshot], TrustAnswer]
    elsewhere: tuple[str, str] = ("", "")


def _official(grades: Grades, of: Snapshot) -> TrustAnswer:
    if not of.official:
        raise InputError(
            "no official leaderboard given", hint="Give one: exampp serve --official FILE"
        )
    return verdict.about_official(grades.correlate(of.official, min_rating=of.min_rating))


def _corrected(grades: Grades, _: Snapshot) -> TrustAnswer:
    plan = next(reversed(grades.decisions.plans()), None)
    measure, number = (plan.measure, plan.number) if plan else (MEASURE_OF_PEOPLE, None)
    return verdict.about_corrected(grades.corrected(measure, plan=number))


QUESTIONS: Mapping[str, Question] = {
    "bias": Question(
        "Does the grader favour a system?",
        "ratings of each system's passages compared with human judgments",
        "agreement",
        lambda _, of: verdict.about_bias(of.bias),
        ("/agreement", "Agreement with people"),
    ),
    "official": Question(
        verdict.OFFICIAL,
        "rank correlation with the leaderboards given by exampp serve --official",
        "correlation",
        _official,
    ),
    "people": Question(
        verdict.PEOPLE,
        "labels made of ratings compared with human judgments, by Cohen's kappa",
        "agreement",
        lambda grades, of: verdict.about_people(
            grades.agreement(
                at_least=(1,), min_rating=of.min_rating, layouts=LAYOUTS, against="judgments"
            )
        ),
        ("/agreement", "Agreement with people"),
    ),
    "reliability": Question(
        "Would other queries show the same order?",
        "how many queries and items are needed, and what to add next",
        "reliability",
        lambda grades, of: verdict.about_reliability(grades.reliability(min_rating=of.min_rating)),
    ),
    "sensitivity": Question(
        "What survives other choices?",
        "the ranks of systems over thresholds, cutoffs, measures and missing cells",
        "sensitivity",
        lambda grades, _: verdict.about_sensitivity(grades.sensitivity()),
    ),
    "items": Question(
        "Is the exam a good one?",
        "items that separate systems, and items that contradict the rest",
        "items",
        lambda grades, of: verdict.about_items(grades.items(min_rating=of.min_rating)),
        ("/items?order=worst", "The worst items"),
    ),
    "attacks": Question(
        "Can the grader be gamed?",
        "attacks compared with benign controls, and guessing",
        "attacks",
        lambda grades, of: verdict.about_attacks(grades.attacks(min_rating=of.min_rating)),
    ),
    "corrected": Question(
        "What would people say of all of it?",
        "the leaderboard by grades, corrected by decisions, and by human decisions alone",
        "corrected",
        _corrected,
        ("/sample", "The sample"),
    ),
    "calibration": Question(
        "Do ratings predict people's judgments?",
        "probabilities of human labels, tested on held-out queries",
        "calibration",
        lambda grades, _: verdict.about_calibration(grades.calibration()),
        ("/agreement", "Agreement with people"),
    ),
}
"""The questions by their name in the address, in the order of the page."""


def answer(snapshot: Snapshot, key: str, patience: float) -> TrustAnswer | None:
    """Return the answer to one of the `QUESTIONS`; None until it is computed."""
    state: list[int] = []
    if key == "attacks":
        # attacks are in a separate file
        path = beside(snapshot.path)
        files = (path, path.with_name(f"{path.name}-wal"))
        state = [file.stat().st_mtime_ns for file in files if file.exists()]

    def find() -> TrustAnswer:
        question = QUESTIONS[key]
        try:
            with snapshot.grades() as grades:
                result = question.find(grades, snapshot)
            return result._replace(line=verdict.not_green(result.line, snapshot.bias))
        except InputError as error:
            return verdict.not_yet(question.text, key, f"{sentence(error)}.")

    return snapshot.cache.soon(("trust", key), find, patience, tuple(state))


# ---- pages ---------------------------------------------------------------------------------------


@router.get("/trust")
def all_questions(request: CurrentRequest) -> HTMLResponse:
    """Show all questions with their answers."""
    return request.render("trust.html", answers=_answered_questions(request, 0.0))


@router.get("/trust/answers")
def answers(request: CurrentRequest) -> HTMLResponse:
    """Show the list of questions as answers arrive."""
    return request.render("_trust_answers.html", answers=_answered_questions(request, PART))


def _answered_questions(
    request: PageRequest, patience: float
) -> list[tuple[str, Question, TrustAnswer | None]]:
    """Return the questions in order, computing one answer at a time."""
    found = answers_soon(request.snapshot, QUESTIONS, patience)
    return [(key, one, found[key]) for key, one in QUESTIONS.items()]


def answers_soon(
    snapshot: Snapshot, keys: Iterable[str], patience: float
) -> dict[str, TrustAnswer | None]:
    """Return the answers to some `QUESTIONS` in order, computing one at a time; None until then."""
    found: dict[str, TrustAnswer | None] = {}
    for key in keys:
        waits = None in found.values()
        found[key] = None if waits else answer(snapshot, key, patience)
    return found


@router.get("/trust/{key}.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, key: str, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of an answer as a file."""
    if key not in QUESTIONS or kind not in FIGURE_TYPES:
        raise HTTPException(404)
    trust_answer = answer(request.snapshot, key, PATIENCE)
    blocks = trust_answer.section.blocks if trust_answer else ()
    figure = next((one for one in blocks if isinstance(one, Figure) and one.spec), None)
    if figure is None:
        raise HTTPException(404)
    content = request.snapshot.cache.get(
        ("drawn", key, kind, theme), lambda: render_figure(figure, kind, theme)
    )
    return figure_file(content, figure.name, kind)


@router.get("/trust/{key}")
def one_question(request: CurrentRequest, key: str) -> HTMLResponse:
    """Show one question with all results about it."""
    if key not in QUESTIONS:
        raise HTTPException(404)
    trust_answer = computed(answer(request.snapshot, key, request.patience))
    path, grader = shlex.quote(str(request.live.path)), request.choice.grader.name
    command = f"exampp analyze {QUESTIONS[key].command} {path}"
    if key == "official":
        command += " --official FILE"
    if len(request.choices) > 1:
        command += f" --grader {shlex.quote(grader)}"
    return request.render(
        "trust_question.html",
        kind=lambda block: type(block).__name__.lower(),
        key=key,
        question=QUESTIONS[key],
        questions=QUESTIONS,
        answer=trust_answer,
        command=command,
    )
