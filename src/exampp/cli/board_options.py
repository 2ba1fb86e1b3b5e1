"""Options of the commands that evaluate or analyse, each with one meaning everywhere."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from exampp.cli.command import Counts, Given
from exampp.cli.declare import option
from exampp.cli.options import OnBadLine
from exampp.cli.panels import ASKED_FOR
from exampp.errors import InputError
from exampp.records.grading import RatingScale, check_scale
from exampp.report.table import MACHINES


class SubtopicMode(StrEnum):
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


class DecisionMode(StrEnum):
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
    option(
        help="Which grader: a model, model:prompt, or the start of its key; repeat for "
        "several. [default: all]"
    ),
]
Measures = Annotated[
    list[str] | None,
    option(
        "--measure",
        "-m",
        help="Cover@20, nCover@20, nugget scores (NuggetVital@20), or any measure of "
        "ir_measures; repeat for several. Without a cutoff, Cover and nugget scores read 20 "
        "passages, as in the papers, and other measures the whole ranking. "
        "[default: Cover@20, nCover@20, nDCG@20]",
    ),
]
MinRating = Annotated[
    int | None,
    option(
        help="Lowest rating that counts as an answer. "
        "[default: 4 of 0-5, two thirds up any other scale]"
    ),
]
MinRatings = Annotated[
    list[int] | None,
    option(
        help="Lowest rating that counts as an answer; repeat for several. "
        "[default: 4 of 0-5, two thirds up any other scale]"
    ),
]
RunFiles = Annotated[
    list[Path] | None, option(help="Evaluate this run file instead; repeat for several.")
]
SystemNames = Annotated[
    list[str] | None,
    option(
        "--system",
        help="Only this system; repeat for several. [default: all]",
        panel=ASKED_FOR,
    ),
]
LeftOut = Annotated[list[str] | None, option(help="All systems but this one; repeat for several.")]
Subtopics = Annotated[
    SubtopicMode, option(help="Bank and rankings per query, per subtopic, or pooled.")
]
Missing = Annotated[
    MissingPolicy, option(help="Cells without a grade: not covered, left out, or both.")
]
LabelKind = Annotated[
    Label, option(help="Relevance label: best rating, or number of covered items.")
]
AtLeast = Annotated[
    int, option(help="Items that must reach the threshold: the label is the m-th best.")
]
CountDecisions = Annotated[
    DecisionMode,
    option(help="People's decisions in place of the grader's ratings, or as if none were."),
]
LabelGains = Annotated[Gains, option(help="Labels as they are, 0 below the threshold, or 1 and 0.")]
OnError = Annotated[
    OnBadLine, option(help="A bad line of a graded file: refuse the file, or skip.")
]
Scale = Annotated[
    str | None,
    option(
        metavar="LOW..HIGH",
        help="The scale of a graded file's graders whose prompt is not known, such as 0..3. "
        "[default: 0 to the highest label found]",
    ),
]


Officials = Annotated[
    list[Path] | None,
    option(help="Compare with an official leaderboard, FILE or FILE:MEASURE; repeat for several."),
]
RoundTo = Annotated[
    int | None,
    option(
        "--round",
        min=0,
        max=15,
        metavar="DECIMALS",
        help="Round means to so many decimals before ranking them: 4 is what trec_eval prints.",
    ),
]
Digits = Annotated[
    int | None,
    option(min=0, max=15, help="Decimals of the numbers in tables for people."),
]


def rating_scale(text: str | None) -> RatingScale | None:
    """The scale that `--scale` gives.

    Raises InputError where it is none.
    """
    if text is None:
        return None
    low, dots, high = text.partition("..")
    if not (dots and low.isdecimal() and high.isdecimal() and len(low + high) < _DIGITS):
        raise InputError(f"{text!r} is no scale", field="--scale", mend="Give one as 0..3")
    return check_scale((int(low), int(high)))


_DIGITS = 20


# ---- where these options count -------------------------------------------------------------------


def _graded_file(given: Given) -> bool:
    from exampp.store.connection import is_collection

    paths = given["collection"]
    several = paths if isinstance(paths, list | tuple) else [paths]
    return not all(map(is_collection, several))


OF_GRADED_FILES = Counts(
    ("--on-error", "--scale"), "for graded files, not for collections", _graded_file
)


OF_OFFICIAL = Counts(("--round",), "with --official", lambda given: bool(given["official"]))


OF_READING = Counts(
    ("--digits",),
    "for the formats that people read; tsv, csv and json hold all digits",
    lambda given: given["style"] not in MACHINES,
)


def _influences(option: str) -> Callable[[Given], bool]:
    def holds(given: Given) -> bool:
        from exampp.evaluate.influence import influences
        from exampp.evaluate.measure import as_measures
        from exampp.evaluate.qrels import Labelling

        asked = given["measure"]
        if not asked:
            # the measures by default are of all kinds
            return True
        measures = as_measures([asked] if isinstance(asked, str) else asked)
        if given.get("qrels"):
            # qrels hold the labels that nDCG reads
            measures = (*measures, *as_measures(["nDCG"]))
        labels = (
            given.get("label", "best"),
            given.get("at_least", 1),
            given.get("gains", "graded"),
        )
        return option in influences(measures, Labelling(*labels))

    return holds


_RELEVANT = "for measures of relevant passages, such as AP"
_COVERING = "for Cover, nCover and nugget scores"
_GRADED = "for measures of graded labels, such as nDCG"
OF_MEASURES = {
    "--min-rating": Counts(
        ("--min-rating",),
        f"for Cover, {_RELEVANT}, and for labels by --label count or --gains",
        _influences("min_rating"),
    ),
    "--missing": Counts(("--missing",), _COVERING, _influences("missing")),
    "--compat": Counts(("--compat",), _COVERING, _influences("compat")),
    "--label": Counts(("--label",), f"{_GRADED}, and for --qrels", _influences("label")),
    "--gains": Counts(("--gains",), f"{_GRADED}, and for --qrels", _influences("gains")),
    "--at-least": Counts(
        ("--at-least",),
        f"{_RELEVANT}, and for labels that are not plain counts",
        _influences("at_least"),
    ),
}
"""Where options count that change the values of some measures alone."""
LABELLING = (OF_MEASURES["--label"], OF_MEASURES["--gains"], OF_MEASURES["--at-least"])
