"""`/export`: the bank, the decisions, the qrels and whatever else others may want, as files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from exampp.measures.board import per_query, tidy, wide
from exampp.measures.qrels import Labelling
from exampp.results.result import render
from exampp.web.page_request import EXPORTS, CurrentRequest, PageRequest, among

router = APIRouter()
Write = Callable[[PageRequest, Path], None]


class ExportFile(NamedTuple):
    """A file that can be taken away: its name, what it is for, and how it is written."""

    name: str
    what: str
    write: Write


def _kind(kind: str) -> Write:
    def write(visit: PageRequest, to: Path) -> None:
        with visit.open() as collection:
            collection.export(to, kind, bank=visit.bank)

    return write


def _bank(visit: PageRequest, to: Path) -> None:
    with visit.open() as collection:
        collection.bank(visit.bank).export(to)


def _qrels(labelling: Labelling) -> Write:
    def write(visit: PageRequest, to: Path) -> None:
        with visit.open() as collection:
            visit.choice.of(collection).write_qrels(to, labelling, visit.min_rating)

    return write


def _leaderboard(style: str) -> Write:
    table = tidy if style in ("tsv", "csv", "json") else wide

    def write(visit: PageRequest, to: Path) -> None:
        to.write_text(render(table(visit.snapshot.board), style), encoding="utf-8")

    return write


def _per_query(visit: PageRequest, to: Path) -> None:
    to.write_text(render(per_query(visit.snapshot.board), "tsv"), encoding="utf-8")


GROUPS: Mapping[str, Sequence[ExportFile]] = {
    "Bank": (
        ExportFile("bank.csv", "to edit in a spreadsheet, and to bring back", _bank),
        ExportFile("bank.yaml", "to edit as text, and to bring back", _bank),
        ExportFile("bank.jsonl.gz", "for other programs of the workbench", _kind("bank")),
    ),
    "Decisions": (
        ExportFile("decisions.tsv", "who decided what, when and why", _kind("decisions")),
    ),
    "EXAM-Qrels": (
        ExportFile("best.qrels", "a passage's label is its best grade", _qrels(Labelling())),
        ExportFile(
            "count.qrels", "its label is how many items it answers", _qrels(Labelling("count"))
        ),
    ),
    "Leaderboard": (
        ExportFile("leaderboard.tsv", "a row for each value", _leaderboard("tsv")),
        ExportFile("leaderboard.json", "the same as JSON", _leaderboard("json")),
        ExportFile("leaderboard.tex", "a table for a paper", _leaderboard("latex")),
        ExportFile("leaderboard.md", "a table for a page", _leaderboard("markdown")),
        ExportFile("per-query.tsv", "a row for each system and query", _per_query),
    ),
    "Everything else": (
        ExportFile(
            "graded.jsonl.gz", "passages with all grades, as of the workbench", _kind("workbench")
        ),
        ExportFile("queries.jsonl", "the queries", _kind("queries")),
        ExportFile("passages.jsonl.gz", "the passages", _kind("passages")),
        ExportFile("systems.run", "the rankings of all systems", _kind("runs")),
        ExportFile("judgments.qrels", "the relevance judgments that came in", _kind("judgments")),
    ),
}
"""The files, by what they hold."""
OF_GRADES = ("EXAM-Qrels", "Leaderboard")
"""Those that there are only once something is graded."""
FILES = {file.name: file for group in GROUPS.values() for file in group}


@router.get("/export")
def exports(visit: CurrentRequest) -> Response:
    """What can be taken away."""
    groups = {
        name: files for name, files in GROUPS.items() if visit.choices or name not in OF_GRADES
    }
    return visit.page("exports.html", groups=groups)


@router.get("/export/{name}")
@among(EXPORTS)
def export(visit: CurrentRequest, name: str) -> Response:
    """One file, written now."""
    if name not in FILES:
        raise HTTPException(404)
    # the name is one of our own: nothing of the request becomes part of a path
    folder = Path(tempfile.mkdtemp(prefix="exampp-"))
    to = folder / FILES[name].name
    try:
        FILES[name].write(visit, to)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    clean = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(
        to,
        media_type="application/octet-stream",
        filename=f"{visit.room.name}-{to.name}",
        background=clean,
    )
