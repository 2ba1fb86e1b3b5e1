"""Options that several commands share, each with one meaning everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import exampp
from exampp.cli.command import ASKED_FOR, OptionRule, OptionValues, argument, option
from exampp.errors import InputError
from exampp.records.graders import RatingScale, check_scale
from exampp.results.result import MACHINES

if TYPE_CHECKING:
    from exampp.analysis.correlation import Method
    from exampp.records.gradebook import DecisionChoice


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

Collections = Annotated[
    list[Path],
    argument(metavar="COLLECTION", help="Collections, or graded passages (graded.jsonl.gz)."),
]
AllMinRatings = Annotated[
    list[int] | None,
    option(
        help="Lowest rating that counts as an answer; repeat for several. "
        "[default: all of the scale]"
    ),
]
BankNames = Annotated[
    list[str] | None,
    option(help="The bank, where the collection has several of this kind; repeat for several."),
]
QrelsFiles = Annotated[
    list[Path] | None,
    option(help="Qrels made elsewhere, on the same runs, as one more method; repeat for several."),
]
Scores = Annotated[
    list[Path] | None,
    option(
        help="A leaderboard made elsewhere, FILE or FILE:MEASURE, as one more method; repeat for "
        "several."
    ),
]


def collect_methods(
    collections: Sequence[Path],
    measures: Sequence[str],
    *,
    qrels: Sequence[Path],
    scores: Sequence[Path],
    on_error: str,
    scale: RatingScale | None,
    min_rating: Sequence[int] = (),
    graders: Sequence[str] = (),
    prompt: str | None = None,
    kind: str | None = None,
    bank: str | Sequence[str] | None = None,
    runs: Sequence[str | Path] = (),
    systems: Sequence[str] = (),
    without: Sequence[str] = (),
    decisions: DecisionChoice = "with",
) -> list[Method]:
    """Every grader of some collections, then qrels and leaderboards made elsewhere.

    Takes the options of `Panel.methods`, and of `panel`. Qrels are evaluated on the runs of the
    first collection.
    """
    from exampp.analysis.correlation import listed_method
    from exampp.formats import qrels as qrels_format
    from exampp.inputs.officials import by_name, read_officials

    elsewhere = {name: list(qrels_format.read(path)) for name, path in by_name(qrels).items()}
    found: list[Method] = []
    for path in collections:
        of = f"{path.name}: " if len(collections) > 1 else ""
        with exampp.open(path, on_error, scale) as opened:
            panel = opened.panel(
                *graders,
                prompt=prompt,
                kind=kind,
                bank=bank,
                runs=runs,
                systems=systems,
                without=without,
                decisions=decisions,
            )
            judged = None if found else elsewhere
            found += panel.methods(measures, min_rating=min_rating, qrels=judged, of=of)
    found += [listed_method(name, ranks) for name, ranks in read_officials(scores).items()]
    return found


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


def _graded_file(given: OptionValues) -> bool:
    from exampp.store.connection import is_collection

    paths = given["collection"]
    several = paths if isinstance(paths, list | tuple) else [paths]
    return not all(map(is_collection, several))


OF_GRADED_FILES = OptionRule(
    ("--on-error", "--scale"), "for graded files, not for collections", _graded_file
)


OF_OFFICIAL = OptionRule(("--round",), "with --official", lambda given: bool(given["official"]))


OF_READING = OptionRule(
    ("--digits",),
    "for the formats that people read; tsv, csv and json hold all digits",
    lambda given: given["style"] not in MACHINES,
)


def _influences(option: str) -> Callable[[OptionValues], bool]:
    def holds(given: OptionValues) -> bool:
        from exampp.measures.names import as_measures
        from exampp.measures.qrels import Labelling, relevant_options

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
        return option in relevant_options(measures, Labelling(*labels))

    return holds


_RELEVANT = "for measures of relevant passages, such as AP"
_COVERING = "for Cover, nCover and nugget scores"
_GRADED = "for measures of graded labels, such as nDCG"
OF_MEASURES = {
    "--min-rating": OptionRule(
        ("--min-rating",),
        f"for Cover, {_RELEVANT}, and for labels by --label count or --gains",
        _influences("min_rating"),
    ),
    "--missing": OptionRule(("--missing",), _COVERING, _influences("missing")),
    "--compat": OptionRule(("--compat",), _COVERING, _influences("compat")),
    "--label": OptionRule(("--label",), f"{_GRADED}, and for --qrels", _influences("label")),
    "--gains": OptionRule(("--gains",), f"{_GRADED}, and for --qrels", _influences("gains")),
    "--at-least": OptionRule(
        ("--at-least",),
        f"{_RELEVANT}, and for labels that are not plain counts",
        _influences("at_least"),
    ),
}
"""Where options count that change the values of some measures alone."""
LABELLING = (OF_MEASURES["--label"], OF_MEASURES["--gains"], OF_MEASURES["--at-least"])
