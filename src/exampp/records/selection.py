"""Options that select grades, evaluate them and show results, with one meaning everywhere.

The fields are keywords in Python, options of the command line and keys of TOML files at once. A
command that needs only some of them takes a smaller one of these records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from exampp.records.options import argument, keyword

ASKED_FOR = "What is computed"

Kind = Literal["question", "nugget", "query"]
Style = Literal["text", "tsv", "csv", "json", "markdown", "latex", "html"]
OnBadLine = Literal["refuse", "skip"]
SubtopicMode = Literal["auto", "query", "subtopic", "pool"]
MissingPolicy = Literal["zero", "skip", "bounds"]
Decisions = Literal["with", "without"]

CollectionFile = Annotated[
    Path, argument(metavar="COLLECTION", help="The collection, such as my.exam.")
]
ExamFile = Annotated[
    Path,
    argument(metavar="COLLECTION", help="A collection, or graded passages (graded.jsonl.gz)."),
]
ExamFiles = Annotated[
    list[Path],
    argument(metavar="COLLECTION", help="Collections, or graded passages (graded.jsonl.gz)."),
]
GraderName = Annotated[
    str | None,
    keyword(help="Use the grades of this grader: a model, model:prompt, or the start of its key."),
]
GraderNames = Annotated[
    list[str] | None,
    keyword(
        help="The grader: a model, model:prompt, or the start of its key; repeat for several. "
        "[default: all]"
    ),
]
PromptName = Annotated[str | None, keyword(help="Use grades made with this prompt.")]
ItemKind = Annotated[Kind | None, keyword(help="Use grades of this kind of item.")]
BankName = Annotated[
    str | None, keyword(help="The bank, if the collection has several of this kind.")
]
BankNames = Annotated[
    list[str] | None,
    keyword(help="The bank, if the collection has several of this kind; repeat for several."),
]
Runs = Annotated[
    list[Path] | None,
    keyword("--run", help="Evaluate this run file instead of the stored runs; repeat for several."),
]
Systems = Annotated[
    list[str] | None,
    keyword(
        "--system",
        help="Only this system; repeat for several. [default: all]",
        panel=ASKED_FOR,
    ),
]
Without = Annotated[
    list[str] | None,
    keyword("--leave-out", help="All systems but this one; repeat for several."),
]
DecisionMode = Annotated[
    Decisions,
    keyword(help="Let human decisions override grades, or ignore them."),
]
OnError = Annotated[
    OnBadLine, keyword(help="A bad line of a graded file: refuse the file, or skip.")
]
Scale = Annotated[
    str | None,
    keyword(
        metavar="LOW..HIGH",
        help="The scale of a graded file's graders whose prompt is unknown, such as 0..3. "
        "[default: 0 to the highest label found]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSelection:
    """Options that select grades and systems in all commands alike."""

    prompt: PromptName = None
    kind: ItemKind = None
    runs: Runs = None
    systems: Systems = None
    without: Without = None
    decisions: DecisionMode = "with"
    on_error: OnError = "refuse"
    scale: Scale = None


@dataclass(frozen=True, slots=True)
class Selection(SharedSelection):
    """The grades of one grader, on the systems that are evaluated."""

    collection: ExamFile
    grader: GraderName = None
    bank: BankName = None


@dataclass(frozen=True, slots=True)
class SeveralSelection(SharedSelection):
    """The grades of several graders and banks, on the systems that are evaluated."""

    collection: ExamFile
    grader: GraderNames = None
    bank: BankNames = None


@dataclass(frozen=True, slots=True)
class Labels:
    """Options that turn ratings into relevance labels."""

    label: Annotated[
        Literal["best", "count"],
        keyword(help="Relevance label: best rating, or number of covered items."),
    ] = "best"
    at_least: Annotated[
        int,
        keyword(help="How many items must reach the threshold: the label is the m-th best rating."),
    ] = 1
    gains: Annotated[
        Literal["graded", "above", "binary"],
        keyword(help="Labels as they are, 0 below the threshold, or 1 and 0."),
    ] = "graded"


@dataclass(frozen=True, slots=True)
class ResamplingOptions:
    """Options of bootstrap intervals."""

    samples: Annotated[int, keyword(help="Bootstrap samples of the queries, at least 50.")] = 1000
    seed: Annotated[int, keyword(help="Seed of the samples.")] = 0


@dataclass(frozen=True, slots=True)
class Display:
    """Options of the output of tables."""

    style: Annotated[Style, keyword("--format", help="Format of the tables.")] = "text"
    wide: Annotated[
        bool, keyword("--wide", help="Show whole tables, even in a narrow terminal.")
    ] = False

    notes: Annotated[
        bool, keyword("--notes", help="Print all notes, not only the three most important.")
    ] = False

    @property
    def for_programs(self) -> bool:
        """Return whether the format is for programs."""
        return self.style in ("tsv", "csv", "json")


@dataclass(frozen=True, slots=True)
class NumberDisplay(Display):
    """Options of the output of tables of numbers."""

    digits: Annotated[
        int | None, keyword(min=0, max=15, help="Decimals of the numbers in tables for people.")
    ] = None
