"""Options that several commands share, each with one meaning everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from exampp.cli.declare import argument, option

CollectionFile = Annotated[
    Path, argument(metavar="COLLECTION", help="The collection, such as my.exam.")
]
CollectionOrWorkbench = Annotated[
    Path,
    argument(metavar="COLLECTION", help="A collection, or graded passages (graded.jsonl.gz)."),
]
GraderName = Annotated[
    str | None,
    option(help="Which grader's grades: a model, model:prompt, or the start of its key."),
]
PromptName = Annotated[str | None, option(help="Grades made with this prompt.")]


class Kind(StrEnum):
    """What a grader grades passages against."""

    question = "question"
    nugget = "nugget"
    query = "query"


class Style(StrEnum):
    """How a table is written."""

    text = "text"
    tsv = "tsv"
    csv = "csv"
    json = "json"
    markdown = "markdown"
    latex = "latex"
    html = "html"


class OnBadLine(StrEnum):
    """What becomes of a bad line."""

    refuse = "refuse"
    skip = "skip"


class UnknownPassages(StrEnum):
    """What becomes of ranked passages without a text."""

    error = "error"
    keep = "keep"


class ExportFormat(StrEnum):
    """What a collection can be written as."""

    workbench = "workbench"
    bank = "bank"
    questions = "questions"
    nuggetizer = "nuggetizer"
    assignments = "assignments"
    argue = "argue"
    trec_nuggets = "trec-nuggets"
    runs = "runs"
    ir_metadata = "ir-metadata"
    ranx = "ranx"
    candidates = "candidates"
    judgments = "judgments"
    queries = "queries"
    passages = "passages"
    decisions = "decisions"
    beir = "beir"


class Unnumbered(StrEnum):
    """What a text without a number is in reply to a request for a self-rating."""

    answer = "answer"
    unparsed = "unparsed"


class Compat(StrEnum):
    """Whose definitions and rules hold."""

    exam = "exam"
    rubric = "rubric"


class Definitions(StrEnum):
    """Whose definitions a leaderboard follows."""

    exam = "exam"
    rubric = "rubric"
    nuggetizer = "nuggetizer"


class VotingRule(StrEnum):
    """What several graders say together."""

    majority = "majority"
    median = "median"
    mean = "mean"


ItemKind = Annotated[Kind | None, option(help="Grades of this kind of item.")]
BankName = Annotated[
    str | None, option(help="The bank, where the collection has several of this kind.")
]
TableStyle = Annotated[Style, option("--format", help="How tables are written.")]

UnnumberedText = Annotated[
    Unnumbered | None,
    option(
        help="What a self-rating without a number is: an answer, which counts 1, or unparsed. "
        "[default: what the model's kind says]"
    ),
]
Grace = Annotated[
    float,
    option(
        min=0,
        max=3600,
        metavar="SECONDS",
        help="How long Ctrl-C waits for replies that are in flight.",
    ),
]
LIMITS = ("--concurrency", "--retries", "--timeout", "--max-requests", "--max-cost")
"""Options of how a server is asked, and how often."""
