"""Shared options for selecting grades, evaluating them and showing results.

The fields are keywords in Python, options of the command line and keys of TOML files. Commands use
the smallest record that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from exampp.errors import InputError
from exampp.records.options import argument, keyword
from exampp.sanitize import check_integer

ASKED_FOR = "Computation"

Kind = Literal["question", "nugget", "query"]
Style = Literal["text", "tsv", "csv", "json", "markdown", "latex", "html"]
OnBadLine = Literal["refuse", "skip"]
DuplicateChoice = Literal["each", "once", "found"]
"""Items that count: all, duplicates that are marked once, or found ones, too."""
SubtopicMode = Literal["auto", "query", "subtopic", "pool"]
MissingPolicy = Literal["zero", "skip", "bounds"]
Decisions = Literal["with", "without"]
SearchKind = Literal["queries", "items", "passages", "replies", "decisions", "edits", "systems"]
"""Kinds of records: texts and ids of queries, items and passages, replies of graders, reasons of
decisions and of edits of the bank, names of systems."""
SEARCH_KINDS: tuple[SearchKind, ...] = get_args(SearchKind)

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
    keyword(help="Use the grades of this grader: a model, prompt, model:prompt, kind, or key."),
]
GraderNames = Annotated[
    list[str] | None,
    keyword(
        help="Use the grades of this grader: a model, prompt, model:prompt, kind, or key. Repeat "
        "for several. [default: all]"
    ),
]
BankName = Annotated[str | None, keyword(help="Use this bank, if there are several.")]
BankNames = Annotated[
    list[str] | None,
    keyword(help="Use this bank, if there are several. Repeat for several."),
]
PartName = Annotated[
    Literal["public", "sealed"] | None,
    keyword("--part", help="Only the public or the sealed part of a split bank."),
]
Runs = Annotated[
    list[Path] | None,
    keyword(
        "--run",
        help="Evaluate this run file instead of the stored runs. Repeat for several.",
        rare=True,
    ),
]
Systems = Annotated[
    list[str] | None,
    keyword(
        "--system",
        help="Evaluate only this system, those of a pattern ('bm25-*'), or all answers or "
        "contexts. Repeat for several. [default: all]",
        panel=ASKED_FOR,
    ),
]
Without = Annotated[
    list[str] | None,
    keyword(
        "--leave-out",
        help="Leave out this system, a pattern, or all answers or contexts. Repeat for several.",
    ),
]
DecisionMode = Annotated[
    Decisions,
    keyword(help="Let human decisions override grades, or ignore them.", rare=True),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSelection:
    """Options that select grades and systems in all commands."""

    runs: Runs = None
    systems: Systems = None
    without: Without = None
    decisions: DecisionMode = "with"


@dataclass(frozen=True, slots=True)
class Selection(SharedSelection):
    """Options that select the grades of one grader."""

    collection: ExamFile
    grader: GraderName = None
    bank: BankName = None


@dataclass(frozen=True, slots=True)
class SeveralSelection(SharedSelection):
    """Options that select the grades of several graders and banks."""

    collection: ExamFile
    grader: GraderNames = None
    bank: BankNames = None


@dataclass(frozen=True, slots=True)
class Labels:
    """Options that turn ratings into relevance labels."""

    label: Annotated[
        Literal["best", "count"],
        keyword(
            help="Label a passage by its best rating, or by its number of covered items.",
            rare=True,
        ),
    ] = "best"
    at_least: Annotated[
        int,
        keyword(
            help="Label a passage by its n-th best rating, so that n items reach the label.",
            rare=True,
        ),
    ] = 1
    gains: Annotated[
        Literal["graded", "above", "binary"],
        keyword(
            help="Keep labels, set those below the threshold to 0, or use only 1 and 0.", rare=True
        ),
    ] = "graded"


@dataclass(frozen=True, slots=True)
class ResamplingOptions:
    """Options of bootstrap intervals."""

    samples: Annotated[
        int,
        keyword(help="Draw this many bootstrap samples of the queries (50 or more).", rare=True),
    ] = 1000
    seed: Annotated[int, keyword(help="Seed of the samples.", rare=True)] = 0


@dataclass(frozen=True, slots=True)
class Display:
    """The format of tables; all notes are printed."""

    style: Annotated[Style, keyword("--format", help="Print tables in this format.")] = "text"

    @property
    def for_programs(self) -> bool:
        """Return whether the format is for programs."""
        return self.style in ("tsv", "csv", "json")


@dataclass(frozen=True, slots=True)
class NotesDisplay(Display):
    """Options of the output of tables with many notes."""

    notes: Annotated[
        bool,
        keyword("--notes", help="Print all notes, not only the three most important.", rare=True),
    ] = False


@dataclass(frozen=True, slots=True)
class NumberDisplay(NotesDisplay):
    """Options for the output of numbers."""

    digits: Annotated[
        int | None,
        keyword(min=0, max=15, help="Print numbers with this many decimals.", rare=True),
    ] = None


def columns_of(given: Sequence[str] | None) -> dict[str, str | list[str]]:
    """Return the columns of `--columns NAME=COLUMN`, a list where a name has several.

    Raises InputError for any other value.
    """
    found: dict[str, list[str]] = {}
    for one in given or ():
        name, sign, column = one.partition("=")
        if not (name.strip() and sign and column.strip()):
            hint = 'Give NAME=COLUMN, as in --columns question="Gold question"'
            raise InputError(f"--columns is {one!r}", hint=hint)
        found.setdefault(name.strip(), []).append(column.strip())
    return {name: columns[0] if len(columns) == 1 else columns for name, columns in found.items()}


UNPUBLISHED = "unpublished"
"""Stands for the organization that publishes results, until it is named."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of exports of results; each export uses some.

    Attributes:
        measures: By default those of `evaluate`.
        min_rating: The lowest rating that counts as an answer, by default 4 of 0-5.
        depth: Passages of each ranking that can be hard negatives.
        negatives: Maximum number of hard negatives of a query.
        organization: Who publishes the results.
    """

    measures: Annotated[
        list[str] | None,
        keyword("--measure", "-m", help="Export this measure. Repeat for several."),
    ] = None
    min_rating: Annotated[
        int | None, keyword(help="Lowest rating that counts as an answer. [default: 4 of 0-5]")
    ] = None
    depth: Annotated[
        int,
        keyword("-k", min=1, help="Look for hard negatives in the top passages of each system."),
    ] = 20
    negatives: Annotated[
        int, keyword(min=1, help="Use at most this many hard negatives of a query.")
    ] = 5
    organization: Annotated[
        str, keyword(help="Name the organization that publishes the results.")
    ] = UNPUBLISHED

    def __post_init__(self) -> None:
        check_integer("depth", self.depth, 1)
        check_integer("negatives", self.negatives, 1)
        if not self.organization.strip():
            raise InputError("the organization has no name", field="organization")
