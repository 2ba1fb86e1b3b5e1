"""Options that several commands share, each with one meaning everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CollectionFile = Annotated[
    Path, typer.Argument(metavar="COLLECTION", help="The collection, such as my.exam.")
]
CollectionOrWorkbench = Annotated[
    Path,
    typer.Argument(
        metavar="COLLECTION", help="A collection, or graded passages (graded.jsonl.gz)."
    ),
]
GraderName = Annotated[
    str | None,
    typer.Option(help="Which grader's grades: a model, model:prompt, or the start of its key."),
]
PromptName = Annotated[str | None, typer.Option(help="Grades made with this prompt.")]


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
    nuggetizer = "nuggetizer"
    runs = "runs"
    judgments = "judgments"
    queries = "queries"
    passages = "passages"
    decisions = "decisions"


class Unnumbered(StrEnum):
    """What a text without a number is in reply to a request for a self-rating."""

    answer = "answer"
    unparsed = "unparsed"


class Compat(StrEnum):
    """Whose definitions and rules hold."""

    exam = "exam"
    rubric = "rubric"


ItemKind = Annotated[Kind | None, typer.Option(help="Grades of this kind of item.")]
BankName = Annotated[
    str | None, typer.Option(help="The bank, where the collection has several of this kind.")
]
TableStyle = Annotated[Style, typer.Option("--format", help="How tables are written.")]

# ---- models and servers: what exampp grade and exampp bank generate both take

Model = Annotated[
    str | None, typer.Option(help="A folder, a model hub name, or the server's name for it.")
]
UnnumberedText = Annotated[
    Unnumbered | None,
    typer.Option(
        help="What a self-rating without a number is: an answer, which counts 1, or unparsed. "
        "[default: what the model's kind says]"
    ),
]
Revision = Annotated[str | None, typer.Option(help="The model's revision.")]
Device = Annotated[str | None, typer.Option(help="hf: cpu, cuda, cuda:1, mps.")]
DType = Annotated[str | None, typer.Option(help="hf: float32 or bfloat16.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="openai: the server's address. The key comes from OPENAI_API_KEY and is never stored."
    ),
]
Concurrency = Annotated[int | None, typer.Option(help="openai: requests in flight at most.")]
Retries = Annotated[int | None, typer.Option(help="openai: tries after a failed one.")]
Timeout = Annotated[float | None, typer.Option(help="openai: seconds to wait.")]
Grace = Annotated[
    float,
    typer.Option(
        min=0,
        max=3600,
        metavar="SECONDS",
        help="How long Ctrl-C waits for replies that are in flight.",
    ),
]
RedirectTo = Annotated[
    str | None,
    typer.Option(
        metavar="HOST", help="openai: another host that the server may send passages on to."
    ),
]
MaxRequests = Annotated[int | None, typer.Option(help="openai: stop before more.")]
MaxCost = Annotated[float | None, typer.Option(help="openai: stop before it costs more.")]
PriceRead = Annotated[float | None, typer.Option(help="openai: price of a million tokens read.")]
PriceWritten = Annotated[
    float | None, typer.Option(help="openai: price of a million tokens written.")
]
LIMITS = ("--concurrency", "--retries", "--timeout", "--max-requests", "--max-cost")
"""Options of how a server is asked, and how often."""
