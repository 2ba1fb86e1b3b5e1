"""Options of the commands that evaluate or analyse, each with one meaning everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from exampp.cli.options import OnBadLine


class FacetMode(StrEnum):
    """How subtopics count."""

    auto = "auto"
    query = "query"
    subtopic = "subtopic"
    pool = "pool"


class MissingPolicy(StrEnum):
    """How cells without a grade count."""

    zero = "zero"
    skip = "skip"
    bounds = "bounds"


class Label(StrEnum):
    """How ratings become a relevance label."""

    BEST = "best"
    COUNT = "count"


class Decisions(StrEnum):
    """Whether people's decisions take the place of automatic grades."""

    WITH = "with"
    WITHOUT = "without"


class Gains(StrEnum):
    """How labels become gains."""

    graded = "graded"
    above = "above"
    binary = "binary"


GraderNames = Annotated[
    list[str] | None,
    typer.Option(
        help="Which grader: a model, model:prompt, or the start of its key; repeat for "
        "several. [default: all]"
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
        "[default: Cover@20, nCover@20, nDCG@20]",
    ),
]
MinRating = Annotated[
    int | None,
    typer.Option(
        help="Lowest rating that counts as an answer. "
        "[default: 4, or the highest of a shorter scale]"
    ),
]
MinRatings = Annotated[
    list[int] | None,
    typer.Option(
        help="Lowest rating that counts as an answer; repeat for several. "
        "[default: 4, or the highest of a shorter scale]"
    ),
]
RunFiles = Annotated[
    list[Path] | None, typer.Option(help="Evaluate this run file instead; repeat for several.")
]
Facets = Annotated[
    FacetMode, typer.Option(help="Bank and rankings per query, per subtopic, or pooled.")
]
Missing = Annotated[
    MissingPolicy, typer.Option(help="Cells without a grade: not covered, left out, or both.")
]
LabelKind = Annotated[
    Label, typer.Option(help="Relevance label: best rating, or number of covered items.")
]
AtLeast = Annotated[
    int, typer.Option(help="Items that must reach the threshold: the label is the m-th best.")
]
CountDecisions = Annotated[
    Decisions,
    typer.Option(help="People's decisions in place of the grader's ratings, or as if none were."),
]
LabelGains = Annotated[
    Gains, typer.Option(help="Labels as they are, 0 below the threshold, or 1 and 0.")
]
OnError = Annotated[
    OnBadLine, typer.Option(help="A bad line of a graded file: refuse the file, or skip.")
]
