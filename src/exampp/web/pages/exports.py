"""`/export`, `/plots` and `/trust`: files, plots, and how far the leaderboard can be trusted."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from exampp.analysis import figures, verdict
from exampp.analysis.attacks.battery import beside
from exampp.analysis.verdict import TrustAnswer
from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.measures.board import Leaderboard, per_query, tidy, wide_leaderboard
from exampp.measures.names import heading
from exampp.measures.qrels import Labelling
from exampp.results.plots.figure import Figure
from exampp.results.result import Table, render
from exampp.web.live_collection import Snapshot
from exampp.web.page_request import EXPORTS, CurrentRequest, PageRequest, StillComputing, limited_by
from exampp.web.rendering import FIGURE_TYPES, Theme, figure_file, render_figure, sentence

router = APIRouter()
Write = Callable[[PageRequest, Collection, Path], object]


class ExportFile(NamedTuple):
    """A file to download: its name, purpose, writer, and whether it needs grades."""

    name: str
    purpose: str
    write: Write
    of_grades: bool = False


def _kind(kind: str) -> Write:
    return lambda request, collection, to: collection.export(to, kind, bank=request.bank)


def _bank(request: PageRequest, collection: Collection, to: Path) -> object:
    return collection.bank(request.bank).export(to)


def _qrels(labelling: Labelling) -> Write:
    return lambda request, collection, to: request.choice.of(collection).write_qrels(
        to, labelling, request.min_rating
    )


def _board(table: Callable[[Leaderboard], Table], style: str) -> Write:
    return lambda request, _, to: to.write_text(
        render(table(request.snapshot.board), style), encoding="utf-8"
    )


def _report(request: PageRequest, collection: Collection, to: Path) -> object:
    grades = request.choice.of(collection)
    return grades.report(to, min_rating=request.min_rating, interactive=True)


GROUPS: Mapping[str, Sequence[ExportFile]] = {
    "Result": (
        ExportFile(
            "result.html",
            "one page to send: sort, filter, read quotes and judge without a server",
            _report,
            of_grades=True,
        ),
    ),
    "Bank": (
        ExportFile("bank.csv", "to edit in a spreadsheet and apply again", _bank),
        ExportFile("bank.jsonl.gz", "for other programs of the Workbench", _kind("bank")),
    ),
    "Decisions": (
        ExportFile("decisions.tsv", "who decided what, when and why", _kind("decisions")),
    ),
    "EXAM-Qrels": (
        ExportFile("best.qrels", "the label is the best grade", _qrels(Labelling()), True),
        ExportFile("count.qrels", "the number of items answered", _qrels(Labelling("count")), True),
    ),
    "Leaderboard": (
        ExportFile("leaderboard.tsv", "one row per value", _board(tidy, "tsv"), True),
        ExportFile("leaderboard.json", "the same as JSON", _board(tidy, "json"), True),
        ExportFile(
            "leaderboard.tex", "a table for a paper", _board(wide_leaderboard, "latex"), True
        ),
        ExportFile(
            "leaderboard.md", "a table for a page", _board(wide_leaderboard, "markdown"), True
        ),
        ExportFile("per-query.tsv", "one row per query", _board(per_query, "tsv"), True),
    ),
    "Everything else": (
        ExportFile(
            "graded.jsonl.gz",
            "passages with all grades, as Workbench file",
            _kind("workbench"),
        ),
        ExportFile("queries.jsonl", "the queries", _kind("queries")),
        ExportFile("passages.jsonl.gz", "the passages", _kind("passages")),
        ExportFile("systems.run", "the rankings of all systems", _kind("runs")),
        ExportFile("judgments.qrels", "the imported relevance judgments", _kind("judgments")),
    ),
}
"""The files, in groups."""
FILES = {file.name: file for group in GROUPS.values() for file in group}


@router.get("/export")
def exports(request: CurrentRequest) -> HTMLResponse:
    """List the files."""
    has_grades = bool(request.choices)
    groups = {
        name: available
        for name, files in GROUPS.items()
        if (available := [file for file in files if has_grades or not file.of_grades])
    }
    return request.render("exports.html", groups=groups)


@router.get("/export/{name}")
@limited_by(EXPORTS)
def export(request: CurrentRequest, name: str) -> Response:
    """Write one file."""
    if name not in FILES:
        raise HTTPException(404)
    # a known name: no part of the path comes from the request
    folder = Path(tempfile.mkdtemp(prefix="exampp-"))
    to = folder / FILES[name].name
    try:
        with request.open() as collection:
            FILES[name].write(request, collection, to)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        to,
        media_type="application/octet-stream",
        filename=f"{request.live.name}-{to.name}",
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


# ---- plots ---------------------------------------------------------------------------------------

PLOTS: Mapping[str, Callable[[Snapshot, int], Figure]] = {
    "leaderboard": lambda of, by: figures.leaderboard_figure(of.board, of.board.columns[by]),
    "heatmap": lambda of, by: figures.heatmap_figure(of.board, of.board.columns[by], of.texts),
    "grades": lambda of, _: figures.grades_figure([of.gradebook]),
}
BY_MEASURE = ("leaderboard", "heatmap")


def _figure(snapshot: Snapshot, name: str, by: int) -> Figure:
    return snapshot.cache.get(("plot", name, by), lambda: PLOTS[name](snapshot, by))


@router.get("/plots")
def plots(request: CurrentRequest, by: int = 0) -> HTMLResponse:
    """Show all plots by one measure."""
    snapshot = request.snapshot
    columns = snapshot.board.columns
    by = by if 0 <= by < len(columns) else 0
    return request.render(
        "plots.html",
        plots=[
            (name, _figure(snapshot, name, by), by if name in BY_MEASURE else None)
            for name in PLOTS
        ],
        headings=[heading(str(one.measure), one.min_rating) for one in columns],
        by=by,
    )


@router.get("/plots/{name}.{kind}")
def plot(
    request: CurrentRequest, name: str, kind: str, by: int = 0, theme: Theme = "light"
) -> Response:
    """Return one plot as a file."""
    snapshot = request.snapshot
    if name not in PLOTS or kind not in FIGURE_TYPES or not 0 <= by < len(snapshot.board.columns):
        raise HTTPException(404)
    content = snapshot.cache.get(
        ("drawn", name, by, kind, theme),
        lambda: render_figure(_figure(snapshot, name, by), kind, theme),
    )
    return figure_file(content, f"{name}-{by}" if name in BY_MEASURE else name, kind)


PATIENCE = 3.0
"""Seconds to wait for an answer before the page says that it is being computed."""
GLANCE = 0.3
"""The same for the list of questions, which is filled as answers arrive."""
MEASURE_OF_PEOPLE = "P@20"
"""The corrected measure if no sample is for another one."""


# ---- trust ---------------------------------------------------------------------------------------


class Question(NamedTuple):
    """A question about trust, and the function that answers it for a minimum rating.

    `command` is the subcommand of `exampp analyze`; `elsewhere` is the page with the records.
    """

    text: str
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
        "ratings of each system's passages compared with human judgments",
        "agreement",
        lambda grades, _: verdict.about_bias(grades.bias()),
        ("/agreement", "Agreement with people"),
    ),
    "reliability": Question(
        "Would other queries show the same order?",
        "how many queries and items are needed, and what to add next",
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
        "items that separate systems, and items that contradict the rest",
        "items",
        lambda grades, least: verdict.about_items(grades.items(min_rating=least)),
        ("/items?order=worst", "The worst items"),
    ),
    "attacks": Question(
        "Can the grader be gamed?",
        "attacks compared with benign controls, and guessing",
        "attacks",
        lambda grades, least: verdict.about_attacks(grades.attacks(min_rating=least)),
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
                result = question.find(grades, snapshot.min_rating)
            return result._replace(line=verdict.not_green(result.line, snapshot.bias))
        except InputError as error:
            return verdict.not_yet(question.text, key, f"{sentence(error)}.")

    return snapshot.cache.soon(("trust", key), find, patience, tuple(state))


# ---- pages ---------------------------------------------------------------------------------------


@router.get("/trust")
def all_questions(request: CurrentRequest) -> HTMLResponse:
    """Show all questions with their answers."""
    return request.render("trust.html", answers=_answered_questions(request))


@router.get("/trust/answers")
def answers(request: CurrentRequest) -> HTMLResponse:
    """Show the list of questions as answers arrive."""
    return request.render("_trust_answers.html", answers=_answered_questions(request))


def _answered_questions(request: PageRequest) -> list[tuple[str, Question, TrustAnswer | None]]:
    """Return the questions in order, computing one answer at a time."""
    answers: list[tuple[str, Question, TrustAnswer | None]] = []
    for key, one in QUESTIONS.items():
        waits = bool(answers) and answers[-1][2] is None
        answers.append((key, one, None if waits else answer(request.snapshot, key, GLANCE)))
    return answers


@router.get("/trust/{key}.{kind}")
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
    trust_answer = answer(request.snapshot, key, PATIENCE)
    if trust_answer is None:
        raise StillComputing
    path, grader = shlex.quote(str(request.live.path)), request.choice.grader.name
    command = f"exampp analyze {QUESTIONS[key].command} {path}"
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
