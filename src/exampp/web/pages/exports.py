"""`/export` and `/plots`: files and plots."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from exampp.analysis import figures
from exampp.collection import Collection
from exampp.exports.table import RESULT_EXPORTS
from exampp.measures.board import Leaderboard, per_query, tidy, wide_leaderboard
from exampp.measures.names import heading
from exampp.measures.qrels import Labelling
from exampp.records.systems import ShownSystems
from exampp.results.plots.figure import Figure
from exampp.results.result import Table, render
from exampp.web.live_collection import Snapshot
from exampp.web.page_request import (
    EXPORTS,
    PICTURES,
    BoardSelection,
    CurrentBoard,
    CurrentRequest,
    PageRequest,
    limited_by,
)
from exampp.web.pages.overview import ordered_systems
from exampp.web.rendering import FIGURE_TYPES, Theme, figure_file, render_figure

router = APIRouter()
T = TypeVar("T")
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


def _result(kind: str) -> ExportFile:
    """Return an export of results for the page; a folder becomes an archive."""
    form = RESULT_EXPORTS[kind]

    def write(request: PageRequest, collection: Collection, to: Path) -> object:
        return request.choice.of(collection).export(to, kind, min_rating=request.min_rating)

    if Path(form.file).suffix:
        return ExportFile(form.file, form.purpose, write, True)
    return ExportFile(f"{form.file}.zip", form.purpose, _zipped(write), True)


def _zipped(write: Write) -> Write:
    """Return a writer of the archive of a folder."""

    def write_archive(request: PageRequest, collection: Collection, to: Path) -> object:
        folder = to.with_suffix("")
        write(request, collection, folder)
        return shutil.make_archive(str(folder), "zip", folder.parent, folder.name)

    return write_archive


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
    "Results for other programs": (_result("gen-ai-events"), _result("every-eval-ever")),
    "Training data": (_result("triplets"), _result("beir-train")),
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
        ExportFile(
            "data-set.zip",
            "a data set in the layout of BEIR, with a Croissant description",
            _zipped(_kind("croissant")),
        ),
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
        # nobody else removes the folder, also after an interrupt
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        to,
        media_type="application/octet-stream",
        filename=f"{request.live.name}-{to.name}",
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


# ---- plots ---------------------------------------------------------------------------------------

PLOTS: Mapping[str, Callable[[Snapshot, Leaderboard, int, frozenset[str]], Figure]] = {
    "leaderboard": lambda _, board, by, shown: figures.leaderboard_figure(
        board, board.columns[by], shown=shown
    ),
    "heatmap": lambda of, board, by, shown: figures.heatmap_figure(
        board, board.columns[by], of.texts, shown
    ),
    "grades": lambda of, *_: figures.grades_figure([of.gradebook]),
}
BY_MEASURE = ("leaderboard", "heatmap")


@dataclass(frozen=True)
class _Plots:
    """The plots of a page: of a leaderboard by one of its measures, of some systems."""

    snapshot: Snapshot
    selection: BoardSelection

    @cached_property
    def board(self) -> Leaderboard:
        return self.snapshot.leaderboard(self.selection.min_rating, self.selection.decisions)

    @cached_property
    def shown(self) -> ShownSystems:
        return self.selection.systems.of(
            [one.system for one in ordered_systems(self.board, self.selection.by)]
        )

    def figure(self, name: str) -> Figure:
        return self._cached(
            name,
            lambda: PLOTS[name](self.snapshot, self.board, self.selection.by, self.shown.names),
        )

    def drawn(self, name: str, kind: str, theme: Theme) -> bytes:
        return self._cached(
            name, lambda: render_figure(self.figure(name), kind, theme), kind, theme
        )

    def _cached(self, name: str, make: Callable[[], T], *form: str) -> T:
        _, by, min_rating, decisions = self.selection
        least = self.snapshot.threshold(min_rating)
        key = ("plot", name, by, least, decisions, self.shown.names, *form)
        return self.snapshot.cache.get(key, make)


@router.get("/plots")
def plots(request: CurrentRequest, selection: CurrentBoard) -> HTMLResponse:
    """Show all plots by one measure."""
    columns = request.snapshot.leaderboard(selection.min_rating, selection.decisions).columns
    by = selection.by if 0 <= selection.by < len(columns) else 0
    of = _Plots(request.snapshot, selection._replace(by=by))
    return request.render(
        "plots.html",
        plots=[(name, of.figure(name), by if name in BY_MEASURE else None) for name in PLOTS],
        headings=[heading(str(one.measure), one.min_rating) for one in columns],
        by=by,
        narrowed=selection.systems,
        shown=of.shown,
        selected=selection.parameters,
    )


@router.get("/plots/{name}.{kind}")
@limited_by(PICTURES)
def plot(
    request: CurrentRequest,
    selection: CurrentBoard,
    name: str,
    kind: str,
    theme: Theme = "light",
) -> Response:
    """Return one plot as a file."""
    of, by = _Plots(request.snapshot, selection), selection.by
    if name not in PLOTS or kind not in FIGURE_TYPES or not 0 <= by < len(of.board.columns):
        raise HTTPException(404)
    file = f"{name}-{by}" if name in BY_MEASURE else name
    return figure_file(of.drawn(name, kind, theme), file, kind)
