"""`/trust`: how far the leaderboard can be trusted: a sentence a question, a page behind each."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from exampp.analysis import verdict
from exampp.analysis.attacks.battery import beside
from exampp.analysis.verdict import TrustAnswer
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.results.plots.figure import Figure
from exampp.web.page_request import CurrentRequest, PageRequest, StillComputing
from exampp.web.rendering import FIGURE_TYPES, Theme, figure_file, render_figure, sentence
from exampp.web.snapshot import Snapshot

router = APIRouter()
PATIENCE = 3.0
"""Seconds that a page waits for an answer before it says that it is being computed."""
GLANCE = 0.3
"""The same for the list of questions, which fills up."""
MEASURE_OF_PEOPLE = "P@20"
"""The measure that is corrected if nobody drew a sample for another one."""


# ---- questions -----------------------------------------------------------------------------------


class Question(NamedTuple):
    """A question, what its answer is made of, and how it is found, given the lowest rating.

    `command` is that of `exampp analyze`; `elsewhere` is the page of its records.
    """

    asked: str
    about: str
    command: str
    find: Callable[[Grades, int], TrustAnswer]
    elsewhere: tuple[str, str] = ("", "")


def _corrected(grades: Grades, _min_rating: int) -> TrustAnswer:
    plan = next(reversed(grades.decisions.plans()), None)
    measure, number = (plan.measure, plan.number) if plan else (MEASURE_OF_PEOPLE, None)
    return verdict.about_corrected(grades.corrected(measure, plan=number))


QUESTIONS: Mapping[str, Question] = {
    "bias": Question(
        "Does the grader favour a system?",
        "ratings of each system's passages beside people's judgments of them",
        "agreement",
        lambda grades, _: verdict.about_bias(grades.bias()),
        ("/agreement", "Agreement with people"),
    ),
    "reliability": Question(
        "Would other queries show the same order?",
        "how many queries and items it takes, and what to add next",
        "reliability",
        lambda grades, least: verdict.about_reliability(grades.reliability(min_rating=least)),
    ),
    "sensitivity": Question(
        "What survives other choices?",
        "the ranks of systems over thresholds, cutoffs, measures and missing cells",
        "sensitivity",
        lambda grades, _: verdict.about_sensitivity(grades.sensitivity()),
    ),
    "items": Question(
        "Is the exam a good one?",
        "items that tell systems apart, and items that contradict the rest",
        "items",
        lambda grades, least: verdict.about_items(grades.items(min_rating=least)),
        ("/items?order=worst", "The worst items"),
    ),
    "attacks": Question(
        "Can the grader be gamed?",
        "attacks beside benign controls, and guessing",
        "attacks",
        lambda grades, least: verdict.about_attacks(grades.attacks(min_rating=least)),
    ),
    "corrected": Question(
        "What would people say of all of it?",
        "the leaderboard by grades, corrected by decisions, and by people alone",
        "corrected",
        _corrected,
        ("/sample", "The sample"),
    ),
    "calibration": Question(
        "Do ratings predict people's judgments?",
        "probabilities of people's labels, tried on queries that were held out",
        "calibration",
        lambda grades, _: verdict.about_calibration(grades.calibration()),
        ("/agreement", "Agreement with people"),
    ),
}
"""By the name in the address, in the order of the page."""


def answer(snapshot: Snapshot, key: str, patience: float) -> TrustAnswer | None:
    """Return the answer to one of the `QUESTIONS`; None while it is computed."""
    state: list[int] = []
    if key == "attacks":
        # the attacks beside the exam are a file of their own
        path = beside(snapshot.path)
        files = (path, path.with_name(f"{path.name}-wal"))
        state = [file.stat().st_mtime_ns for file in files if file.exists()]

    def find() -> TrustAnswer:
        question = QUESTIONS[key]
        try:
            with snapshot.grades() as grades:
                found = question.find(grades, snapshot.min_rating)
            return found._replace(line=verdict.not_green(found.line, snapshot.bias))
        except InputError as error:
            return verdict.not_yet(question.asked, key, f"{sentence(error)}.")

    return snapshot.cache.soon(("trust", key), find, patience, tuple(state))


# ---- pages ---------------------------------------------------------------------------------------


class TrustPage(NamedTuple):
    """All questions, each with its answer; None while that is computed."""

    asked: Sequence[tuple[str, Question, TrustAnswer | None]]


class QuestionPage(NamedTuple):
    """One question with all that is known of it, and the command that prints the same."""

    key: str
    question: Question
    questions: Mapping[str, Question]
    found: TrustAnswer
    command: str


@router.get("/trust")
def all_questions(request: CurrentRequest) -> HTMLResponse:
    """Show all questions, each with its answer in a sentence."""
    return request.render("trust.html", _asked(request))


@router.get("/trust/answers")
def answers(request: CurrentRequest) -> HTMLResponse:
    """Show the list of questions alone, as it fills up."""
    return request.render("_trust_answers.html", _asked(request))


def _asked(request: PageRequest) -> TrustPage:
    """Return the questions in order; each is begun when the one before it is answered."""
    found: list[tuple[str, Question, TrustAnswer | None]] = []
    for key, one in QUESTIONS.items():
        waits = bool(found) and found[-1][2] is None
        found.append((key, one, None if waits else answer(request.snapshot, key, GLANCE)))
    return TrustPage(found)


@router.get("/trust/{key}.{kind}")
def picture(request: CurrentRequest, key: str, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of an answer as a file."""
    if key not in QUESTIONS or kind not in FIGURE_TYPES:
        raise HTTPException(404)
    found = answer(request.snapshot, key, PATIENCE)
    blocks = found.section.blocks if found else ()
    figure = next((one for one in blocks if isinstance(one, Figure) and one.spec), None)
    if figure is None:
        raise HTTPException(404)
    content = request.snapshot.cache.get(
        ("drawn", key, kind, theme), lambda: render_figure(figure, kind, theme)
    )
    return figure_file(content, figure.name, kind)


@router.get("/trust/{key}")
def one_question(request: CurrentRequest, key: str) -> HTMLResponse:
    """Show one question with all that is known of it."""
    if key not in QUESTIONS:
        raise HTTPException(404)
    found = answer(request.snapshot, key, PATIENCE)
    if found is None:
        raise StillComputing
    path, grader = shlex.quote(str(request.live.path)), request.choice.grader.name
    command = f"exampp analyze {QUESTIONS[key].command} {path}"
    if len(request.choices) > 1:
        command += f" --grader {shlex.quote(grader)}"
    context = QuestionPage(key, QUESTIONS[key], QUESTIONS, found, command)
    return request.render(
        "trust_question.html", context, kind=lambda block: type(block).__name__.lower()
    )
