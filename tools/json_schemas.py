"""Writes docs/schemas: what every JSON that exampp writes looks like, as JSON Schema.

    python tools/json_schemas.py

The types are declared here, where readers have none of their own; the tests validate what is really
written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

from exampp.formats.workbench_graders import JudgmentJson, RankingJson

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
Value = str | int | float | bool | None
Whole = Annotated[int, msgspec.Meta(ge=0)]


class Mark(TypedDict):
    """A cell that is set apart."""

    row: Whole
    column: str
    mark: Literal["best", "near", "weak", "noted"]


class TableFile(TypedDict):
    """A table: rows as objects by heading; a note gives the reason of null.

    `verdict` is the result in one sentence.
    """

    verdict: NotRequired[str]
    caption: str
    rows: list[dict[str, Value]]
    notes: list[str]
    marks: NotRequired[list[Mark]]
    legend: NotRequired[dict[str, str]]


class BlockJson(TypedDict):
    """A part of a section; its other keys go by its kind."""

    kind: str


class SectionJson(TypedDict):
    """A section of a report."""

    key: str
    title: str
    verdict: str
    blocks: list[BlockJson]


class ReportFile(TypedDict):
    """A report: the same sections, tables and figures as its page."""

    title: str
    subtitle: str
    sections: list[SectionJson]
    colophon: Any


class ImportedFile(TypedDict):
    """A file that was taken over."""

    file: str
    kind: str
    records: Whole
    by_name: bool


class ChangedThings(TypedDict):
    """Changes of one kind of record."""

    before: Whole
    after: Whole
    added: Whole
    changed: Whole
    removed: Whole
    examples: list[dict[str, Any]]


class ImportFile(TypedDict):
    """Changes by an import, made or planned."""

    dry_run: bool
    files: list[ImportedFile]
    changes: dict[str, ChangedThings]
    retired: Whole
    missing: list[str]
    findings: list[dict[str, Value]]
    remarks: list[str]
    unread: dict[str, dict[str, int]]
    stored: dict[str, dict[str, int]]
    skipped: Whole
    skipped_first: list[str]
    bad_cells: Whole
    bad_cells_first: list[str]
    impact: dict[str, TableFile]


class SubtopicLine(TypedDict):
    """A subtopic of a query."""

    subtopic_id: str
    text: str


class QueryLine(TypedDict):
    """A query."""

    query_id: str
    text: str
    subtopics: list[SubtopicLine]


class PassageLine(TypedDict):
    """A passage, with whatever else its file said of it."""

    passage_id: str
    text: str
    title: NotRequired[str]


class NamedQuery(TypedDict):
    """A query of candidates."""

    qid: str
    text: str


class Candidate(TypedDict):
    """A retrieved passage; `doc` holds its text, or nothing where that is not known."""

    docid: str
    score: float
    doc: dict[str, str]


class CandidatesLine(TypedDict):
    """Passages that a system retrieved for a query, best first."""

    query: NamedQuery
    candidates: list[Candidate]
    run_id: str


class BankLine(TypedDict):
    """The items of a query, or of one of its subtopics."""

    query_id: str
    query_text: str
    items: list[dict[str, Any]]


class QuestionLine(TypedDict):
    """One item of a bank."""

    query_id: str
    query_text: str
    qid: str
    question: NotRequired[str]
    nugget: NotRequired[str]


class Nugget(TypedDict):
    """A nugget; with an `assignment` where an answer was judged."""

    text: str
    importance: str
    assignment: NotRequired[str]


class NuggetsLine(TypedDict):
    """The nuggets of a query; with an answer and its system where it was judged."""

    query: str
    qid: str
    nuggets: list[Nugget]
    answer_text: NotRequired[str]
    response_length: NotRequired[int]
    run_id: NotRequired[str]


class PassageData(TypedDict):
    """Judgment of people, and the systems that returned the passage."""

    judgments: NotRequired[list[JudgmentJson]]
    rankings: NotRequired[list[RankingJson]]


class GradedPassage(TypedDict):
    """A passage of a workbench file, with its grades by item and its direct grades."""

    paragraph_id: str
    text: str
    paragraph_data: PassageData
    exam_grades: NotRequired[list[dict[str, Any]] | None]
    grades: NotRequired[list[dict[str, Any]] | None]


class ArgueLine(TypedDict):
    """A NuggetBank v3."""

    query_id: str
    format_version: Literal["v3"]
    nugget_bank: NotRequired[dict[str, dict[str, Any]]]
    claim_bank: NotRequired[dict[str, dict[str, Any]]]


KINDS: dict[str, tuple[str, Any]] = {
    "table": ("Results: a table (--style json, to_json)", TableFile),
    "tables": ("Results: several tables, by name", dict[str, TableFile]),
    "report": ("exampp report --json", ReportFile),
    "import": ("exampp import --format json", ImportFile),
    "queries": ("A line of export --format queries", QueryLine),
    "passages": ("A line of export --format passages", PassageLine),
    "candidates": ("A line of export --format candidates", CandidatesLine),
    "ranx": ("export --format ranx", dict[str, dict[str, float]]),
    "bank": ("A line of export --format bank", BankLine),
    "questions": ("A line of export --format questions", QuestionLine),
    "nuggetizer": ("A line of export --format nuggetizer or assignments", NuggetsLine),
    "argue": ("A line of export --format argue", ArgueLine),
    "workbench": (
        "A line of graded passages (export --format workbench)",
        tuple[str, list[GradedPassage]],
    ),
}
"""Every JSON that is written: its title, and its type."""


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schema of every kind."""
    return {
        name: {
            "$schema": _DIALECT,
            "$id": f"{name}.v1.json",
            "title": title,
            **msgspec.json.schema(kind),
        }
        for name, (title, kind) in KINDS.items()
    }


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, ensure_ascii=False, indent=1) + "\n"
        (FOLDER / f"{name}.v1.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
