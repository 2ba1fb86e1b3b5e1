"""The commands that make a report and its parts again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from exampp.analysis import agreement as agreements
from exampp.analysis.agreement import AgreementBlock
from exampp.analysis.attacks.result import AttackReport
from exampp.analysis.corrected import Corrected
from exampp.analysis.correlation import (
    Correlations,
    SideBySide,
    board_method,
    compare_methods,
    side_by_side,
)
from exampp.analysis.grader_bias import DEPTH, GraderBias, grader_bias
from exampp.analysis.items import ItemAnalysis, ItemSettings, analyze
from exampp.analysis.raters import Layout
from exampp.analysis.reliability import Reliability, scored_column, study_reliability
from exampp.analysis.sensitivity import Declaration, Evaluated, Sensitivity, evaluate_specifications
from exampp.analysis.significance import Significance, significance
from exampp.analysis.significance import SignificanceSettings as Testing
from exampp.measures.board import Leaderboard
from exampp.measures.exams import SubtopicChoice
from exampp.measures.item_scores import item_scores
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import as_measures
from exampp.measures.qrels import Labelling, relevant_options
from exampp.measures.values import MeasureColumn
from exampp.records.calibration import Calibration
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.inputs import relevance_threshold
from exampp.records.items import BankTexts
from exampp.results.notes import labelled
from exampp.stats.estimate import SAMPLES

MEASURES = ("Cover@20", "nCover@20", "nDCG@20", "P@20", "AP")
SPECIFICATIONS = Declaration(missing=("zero",))
"""Those of a report: few enough to be quick."""
LAYOUTS: tuple[Layout, ...] = ("STRICT", "LENIENT")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """How systems are evaluated: the first measure at `min_rating` is the one in the figures.

    `official` are official leaderboards by name, system to rank; `min_relevant` is the judgment
    from which on a passage counts as relevant.
    """

    min_rating: int
    measures: tuple[str, ...] = MEASURES
    subtopics: SubtopicChoice = "auto"
    labelling: Labelling = field(default_factory=Labelling)
    testing: Testing = field(default_factory=Testing)
    official: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    min_relevant: int | None = None
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class ReportSource:
    """What is known besides the grades: where they come from, and how to get them again.

    `own_bank` warns that the model that grades made the bank; `graders` are the names of all who
    graded. `gaming` is what attacks on the grader showed, None where none were tried. `corrected`
    are the leaderboards that samples give, or why one gives none. `calibrations` are those that the
    grades are labels of, or that are made from them; `texts` are the queries', by their ids, and
    `bank` those of the items.
    """

    name: str
    title: str = ""
    bank_version: str = ""
    own_bank: str = ""
    graders: tuple[str, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    commands: tuple[str, ...] = ()
    made: str = ""
    gaming: AttackReport | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    bank: BankTexts = field(default_factory=BankTexts)
    corrected: tuple[Corrected | str, ...] = ()


@dataclass(frozen=True)
class ReportData:
    """All that was computed, once, for the sections to tell.

    `everywhere` is the board at every threshold: of all measures where they are correlated with
    official leaderboards, else of the first. `correlation` is that of `board`, with intervals;
    `beside` is the board beside those of other graders, None where there are none.
    """

    book: Gradebook
    settings: ReportSettings
    source: ReportSource
    board: Leaderboard
    everywhere: Leaderboard
    tested: Significance
    items: ItemAnalysis
    reliability: Reliability
    sensitivity: Sensitivity
    agreement: tuple[AgreementBlock, ...]
    bias: GraderBias
    correlation: Correlations | None = None
    correlation_everywhere: Correlations | None = None
    beside: SideBySide | None = None

    @property
    def main(self) -> MeasureColumn:
        """The column of the figures."""
        return self.board.columns[0]

    @property
    def name(self) -> str:
        """What the column of the figures is called."""
        return self.main.name


def compute_report_data(
    book: Gradebook,
    settings: ReportSettings,
    source: ReportSource,
    others: Sequence[Gradebook] = (),
) -> ReportData:
    """Compute what a report needs; `others` are what other graders said of the same exam.

    Raises:
        InputError: A measure or the threshold makes no sense.
    """
    board = _board(book, settings)
    everywhere = evaluate(
        book,
        settings.measures if settings.official else settings.measures[:1],
        range(book.grader.lowest + 1, book.grader.highest + 1),
        subtopics=settings.subtopics,
        labelling=settings.labelling,
    )
    agreement = agreements.find_agreements(
        [book],
        at_least=tuple(dict.fromkeys((settings.labelling.at_least, 1, 2))),
        min_rating=settings.min_rating,
        min_relevant=() if settings.min_relevant is None else (settings.min_relevant,),
        layouts=LAYOUTS,
        against="judgments",
    )
    return ReportData(
        book=book,
        settings=settings,
        source=source,
        board=board,
        everywhere=everywhere,
        tested=significance(book, board.columns[0], board.column_systems, settings.testing),
        reliability=study_reliability(scored_column(book, board, texts=source.bank)),
        sensitivity=evaluate_specifications(
            [Evaluated(book.grader.name, book, board.subtopics, settings.labelling)], SPECIFICATIONS
        ),
        agreement=tuple(block for block in agreement.judged if block.units),
        bias=grader_bias(book, board.columns[0].measure.cutoff or DEPTH),
        items=_items(book, settings, source.bank),
        correlation=_correlation(board, settings, SAMPLES),
        correlation_everywhere=_correlation(everywhere, settings, 0),
        beside=_beside(board, others, settings),
    )


def _items(book: Gradebook, settings: ReportSettings, texts: BankTexts) -> ItemAnalysis:
    """The exam behind the first Cover of the report, from fewer halves than a command draws."""
    covers = [one for one in as_measures(settings.measures) if one.name == "Cover"]
    k = (covers[0].cutoff if covers else None) or DEPTH
    scores = item_scores(book, settings.min_rating, k, subtopics=settings.subtopics)
    highest = max((int(query.judgments.max(initial=MISSING)) for query in book.queries), default=0)
    relevant = relevance_threshold(settings.min_relevant, highest if highest != MISSING else None)
    return analyze(book, scores, "", ItemSettings(relevant, splits=_SPLITS), texts=texts)


_SPLITS = 200


def _board(book: Gradebook, settings: ReportSettings, min_rating: int | None = None) -> Leaderboard:
    return evaluate(
        book,
        settings.measures,
        [settings.min_rating if min_rating is None else min_rating],
        subtopics=settings.subtopics,
        labelling=settings.labelling,
    )


def _beside(
    board: Leaderboard, others: Sequence[Gradebook], settings: ReportSettings
) -> SideBySide | None:
    """The board beside those of the others: at its threshold on its scale, else at their usual."""
    if not others:
        return None
    scale = (board.grader.lowest, board.grader.highest)
    boards = [board]
    for book in others:
        grader = book.grader
        usual = grader.default_min_rating
        same = (grader.lowest, grader.highest) == scale
        boards.append(_board(book, settings, None if same else usual))
    methods = [
        board_method(one, labelled(one.grader.name, draft=one.grader.is_draft)) for one in boards
    ]
    return side_by_side(methods, settings.official, decimals=settings.decimals)


def _correlation(board: Leaderboard, settings: ReportSettings, samples: int) -> Correlations | None:
    """Every column of a board against the official leaderboards, if there are any."""
    if not settings.official:
        return None
    return compare_methods(
        [board_method(board, board.grader.name)],
        settings.official,
        samples=samples,
        seed=settings.testing.seed,
        level=1 - settings.testing.alpha,
        decimals=settings.decimals,
    )


_ALL = ("Cover", "AP", "nDCG")
"""Measures that all options change something about, as they do about a report."""


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a report was made from: paths, and whose grades (`grader`, `bank` ...)."""

    path: str
    grades: Mapping[str, str | None]
    runs: Sequence[str] = ()
    official: Sequence[str] = ()
    systems: Sequence[str] = ()
    without: Sequence[str] = ()


def commands(
    given: ReportInputs, settings: ReportSettings, *, judged: bool, beside: Sequence[str] = ()
) -> tuple[str, ...]:
    """One line for the report, and one for each of its parts.

    `judged`: there are judgments; `beside` are the keys of the graders that stand side by side.
    """
    who = _options({f"--{name}": [value] for name, value in given.grades.items() if value})
    ran = _options({"--run": given.runs, "--system": given.systems, "--leave-out": given.without})
    official = _options({"--official": given.official})
    measures = _options({"-m": settings.measures})
    threshold = ["--min-rating", str(settings.min_rating)]
    relevant = settings.min_relevant
    cut = [] if relevant is None else ["--min-relevant", str(relevant)]
    first = replace(settings, measures=settings.measures[:1])
    rounded = [] if settings.decimals is None else ["--round", str(settings.decimals)]
    common = [given.path, *who, *ran]
    how = _how(settings, *_ALL)
    subtopics = ["--subtopics", settings.subtopics]
    lines = [
        ["report", *common, *how, *cut, *measures, *official, *rounded, "-o", "report.html"],
        ["evaluate", *common, *_how(settings, "nDCG"), *measures, "--qrels", "exam.qrels"],
        ["analyze", "significance", *common, *_how(first), *_options({"-m": first.measures})],
        ["analyze", "items", *common, *subtopics, *threshold, *cut, *official],
    ]
    if beside:
        bank = given.grades.get("bank")
        of_grades = _options({"--grader": beside, "--bank": [bank] if bank else []})
        shown = [*ran, *threshold, *measures, *official, *rounded]
        lines.append(["analyze", "leaderboards", given.path, *of_grades, *shown])
    if official:
        lines.append(["analyze", "correlation", *common, *measures, *official, *rounded])
    if judged:
        lines.append(["analyze", "agreement", given.path, *who, *threshold, *cut])
    return tuple(shlex.join(["exampp", *line]) for line in lines)


def _how(settings: ReportSettings, *more: str) -> list[str]:
    """The options that change something about the measures and some more."""
    changing = relevant_options(as_measures([*settings.measures, *more]), settings.labelling)
    values = {"min_rating": str(settings.min_rating), **_label_options(settings.labelling)}
    usual = _label_options(Labelling())
    found = {
        f"--{name.replace('_', '-')}": [value]
        for name, value in values.items()
        if name in changing and value != usual.get(name)
    }
    return ["--subtopics", settings.subtopics, *_options(found)]


def _label_options(labels: Labelling) -> dict[str, str]:
    return {"label": labels.kind, "at_least": str(labels.at_least), "gains": labels.gains}


def _options(values: Mapping[str, Sequence[str]]) -> list[str]:
    return [part for name, several in values.items() for one in several for part in (name, one)]
