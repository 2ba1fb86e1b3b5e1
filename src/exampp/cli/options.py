"""Options that several commands share, the rules that limit them, and the grades they select."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import exampp
from exampp.cli.command import RULES_OF, OptionRule, OptionValues
from exampp.records.options import keyword
from exampp.records.selection import (
    BankNames,
    ExamFiles,
    GraderNames,
    Labels,
    MissingPolicy,
    NotesDisplay,
    NumberDisplay,
    Selection,
    SeveralSelection,
    SharedSelection,
    SubtopicMode,
)
from exampp.results.result import MACHINES

if TYPE_CHECKING:
    from exampp.analysis.correlation import Method
    from exampp.collection import Collection
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.measures.qrels import Labelling

Measures = Annotated[
    list[str] | None,
    keyword(
        "--measure",
        "-m",
        help="Cover@20, nCover@20, NuggetVital@20, or any measure of ir_measures. Repeat for "
        "several. Without a cutoff, Cover and nugget scores use 20 passages, other measures the "
        "whole ranking. [default: Cover@20, nCover@20, nDCG@20]",
    ),
]
MinRating = Annotated[
    int | None,
    keyword(
        help="Lowest rating that counts as an answer. "
        "[default: 4 on a scale of 0-5, two thirds up another scale]"
    ),
]
MinRatings = Annotated[
    list[int] | None,
    keyword(
        help="Lowest rating that counts as an answer. Repeat for several. "
        "[default: 4 on a scale of 0-5, two thirds up another scale]"
    ),
]
AllMinRatings = Annotated[
    list[int] | None,
    keyword(
        help="Lowest rating that counts as an answer. Repeat for several. "
        "[default: all of the scale]"
    ),
]
Depth = Annotated[
    int, keyword("-k", min=1, help="Use this many passages of each system.", rare=True)
]
Subtopics = Annotated[
    SubtopicMode,
    keyword(help="Evaluate each query, each subtopic, or all subtopics pooled.", rare=True),
]
MatchBy = Annotated[
    Literal["text", "similarity", "keys", "coverage"],
    keyword(
        help="Match items with equal texts or paraphrases, similar texts, equal answer keys, or "
        "the same covering passages."
    ),
]
Missing = Annotated[
    MissingPolicy,
    keyword(
        help="Count cells without a grade as not covered, skip them, or print both bounds.",
        rare=True,
    ),
]
Officials = Annotated[
    list[Path] | None,
    keyword(help="Compare with an official leaderboard: FILE or FILE:MEASURE. Repeat for several."),
]
Scores = Annotated[
    list[Path] | None,
    keyword(
        help="Add a leaderboard made elsewhere as a method: FILE or FILE:MEASURE. Repeat for "
        "several.",
        rare=True,
    ),
]
RoundTo = Annotated[
    int | None,
    keyword(
        "--round",
        min=0,
        max=15,
        metavar="DECIMALS",
        help="Round means to this many decimals before ranking systems; trec_eval prints 4.",
        rare=True,
    ),
]
UnnumberedText = Annotated[
    Literal["answer", "unparsed"] | None,
    keyword(
        help="Read a self-rating without a number as an answer, which counts 1, or as unparsed. "
        "[default: depends on the model]",
        rare=True,
    ),
]
AnswerMatching = Annotated[
    Literal["guarded", "papers"] | None,
    keyword(
        help="Match extracted answers with the answer key by this rule. [default: that of the "
        "grader]",
        rare=True,
    ),
]
GraderToRun = Annotated[
    str,
    keyword(
        help="Grade with hf (on this machine), openai (any OpenAI-compatible server), draft "
        "(offline, for trials) or a grader of a package."
    ),
]
AccessLog = Annotated[
    Path | None,
    keyword(dir_okay=False, help="Append one line of JSON per request to this file.", rare=True),
]
Grace = Annotated[
    float,
    keyword(
        min=0,
        max=3600,
        metavar="SECONDS",
        help="Wait this long for requests in flight after Ctrl-C.",
        rare=True,
    ),
]
LIMITS = ("--concurrency", "--retries", "--timeout", "--max-requests", "--max-cost")
"""Options for the rate and the form of requests to a server."""


@dataclass(frozen=True, slots=True)
class MethodSelection(SharedSelection):
    """Scoring methods: graders of collections, qrels and leaderboards made elsewhere."""

    collection: ExamFiles
    min_rating: AllMinRatings = None
    grader: GraderNames = None
    bank: BankNames = None
    qrels: Annotated[
        list[Path] | None,
        keyword(
            help="Add qrels made elsewhere on the same runs as a method. Repeat for several.",
            rare=True,
        ),
    ] = None
    scores: Scores = None

    def methods(self, measures: Sequence[str]) -> list[Method]:
        """Return every grader of the collections, then qrels and leaderboards made elsewhere.

        Qrels are evaluated on the runs of the first collection.
        """
        from exampp.analysis.correlation import listed_method
        from exampp.formats import trec
        from exampp.inputs.officials import leaderboards_by_name, read_officials

        paths = leaderboards_by_name(self.qrels or ())
        judged = {name: list(trec.read_qrels(path)) for name, path in paths.items()}
        found: list[Method] = []
        for path in self.collection:
            prefix = f"{path.name}: " if len(self.collection) > 1 else ""
            with opened_panel(self, path) as panel:
                qrels = None if found else judged
                found += panel.methods(
                    measures, min_rating=self.min_rating or (), qrels=qrels, of=prefix
                )
        return found + [listed_method(*one) for one in read_officials(self.scores or ()).items()]


@contextmanager
def opened_grades(selection: Selection, measures: Sequence[str] | None = None) -> Iterator[Grades]:
    """Open the collection or graded file of a selection; yields the grades of its grader.

    Misspelt measures are reported before the grader is chosen.
    """
    if measures:
        from exampp.measures.names import as_measures

        as_measures(measures)
    with exampp.open(selection.collection) as opened:
        yield opened.grades(
            selection.grader,
            bank=selection.bank,
            runs=selection.runs or (),
            systems=selection.systems or (),
            without=selection.without or (),
            decisions=selection.decisions,
        )


@contextmanager
def opened_panel(selection: SeveralSelection | MethodSelection, path: Path) -> Iterator[Panel]:
    """Open a collection or graded file; yields the selected graders side by side."""
    with exampp.open(path) as opened:
        yield _panel(opened, selection, selection.grader or ())


def chosen_panel(opened: Collection, selection: SeveralSelection) -> Panel:
    """Return the selected graders side by side; unless several are named, only one may fit."""
    from exampp.records.graders import choose_grader

    graders = selection.grader or []
    if len(graders) < 2:
        name = graders[0] if graders else None
        graders = [choose_grader(opened.graders, grader=name).key]
    return _panel(opened, selection, graders)


def _panel(
    opened: Collection,
    selection: SeveralSelection | MethodSelection,
    graders: Sequence[str],
) -> Panel:
    return opened.panel(
        *graders,
        bank=selection.bank or None,
        runs=selection.runs or (),
        systems=selection.systems or (),
        without=selection.without or (),
        decisions=selection.decisions,
    )


def labelling(labels: Labels) -> Labelling:
    """Return how ratings become labels."""
    return exampp.Labelling(labels.label, labels.at_least, labels.gains)


# ---- where these options count -----------------------------------------------------------------


def _relevant(option_name: str) -> Callable[[OptionValues], bool]:
    """Return whether an option changes the values of the requested measures."""

    def holds(values: OptionValues) -> bool:
        from exampp.measures.names import as_measures
        from exampp.measures.qrels import Labelling, relevant_options

        asked = values["measure"]
        if not asked:
            # the measures by default are of all kinds
            return True
        measures = as_measures([asked] if isinstance(asked, str) else asked)
        if values.get("qrels"):
            # qrels hold the labels that nDCG reads
            measures = (*measures, *as_measures(["nDCG"]))
        defaults = Labels()
        labels = (values.get(name, getattr(defaults, name)) for name in _LABELS)
        return option_name in relevant_options(measures, Labelling(*labels))

    return holds


_LABELS = ("label", "at_least", "gains")
_FOR_RELEVANT = "for measures of relevant passages, such as AP"
_COVERING = "for Cover, nCover and nugget scores"
_GRADED = "for measures of graded labels, such as nDCG"
OF_MEASURES = {
    name: OptionRule((name,), only, _relevant(name.removeprefix("--").replace("-", "_")))
    for name, only in {
        "--min-rating": f"for Cover, {_FOR_RELEVANT}, and for labels by --label count or --gains",
        "--missing": _COVERING,
        "--compat": _COVERING,
        "--duplicates": "for Cover and nCover",
        "--label": f"{_GRADED}, and for --qrels",
        "--gains": f"{_GRADED}, and for --qrels",
        "--at-least": f"{_FOR_RELEVANT}, and for labels that are not plain counts",
    }.items()
}
"""Rules of options that change the values of some measures only."""
LABELLING = tuple(OF_MEASURES[name] for name in ("--label", "--gains", "--at-least"))
OF_OFFICIAL = OptionRule(("--round",), "with --official", lambda values: bool(values["official"]))


def for_people(*options: str, only: str = "for the formats that people read") -> OptionRule:
    """Return the rule of options that have no effect on tsv, csv and json."""
    return OptionRule(options, only, lambda values: values["style"] not in MACHINES)


OF_TEXT = OptionRule(("--notes",), "for tables as text", lambda values: values["style"] == "text")
OF_READING = for_people(
    "--digits", only="for the formats that people read; tsv, csv and json hold all digits"
)
RULES_OF |= {
    NotesDisplay: (OF_TEXT,),
    NumberDisplay: (OF_READING, OF_TEXT),
}
