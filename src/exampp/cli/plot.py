"""`exampp plot`: one figure as SVG, PDF, PNG, Vega-Lite or data."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import exampp
from exampp.cli.audit import at_cutoffs, check_reference
from exampp.cli.command import OptionRule, OptionValues, option_rules, without_options
from exampp.cli.options import (
    OF_MEASURES,
    MatchBy,
    MinRatings,
    RoundTo,
    Scores,
    Subtopics,
    chosen_panel,
)
from exampp.cli.output import print_message
from exampp.errors import InputError
from exampp.records.options import argument, keyword
from exampp.records.selection import SeveralSelection, SubtopicMode

if TYPE_CHECKING:
    from exampp.collection import Collection
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.measures.board import Leaderboard
    from exampp.records.gradebook import Gradebook
    from exampp.results.plots.figure import Figure


@dataclass(frozen=True)
class PlotRequest:
    """A requested plot: the collection, and the options of the command."""

    opened: Collection
    selection: SeveralSelection
    measures: Sequence[str]
    min_ratings: Sequence[int] | None
    official: Path | None
    scores: Sequence[Path]
    round_to: int | None
    subtopics: SubtopicMode
    reference: str | None
    matcher: str

    @cached_property
    def panel(self) -> Panel:
        """Return the selected grades."""
        return chosen_panel(self.opened, self.selection)

    @property
    def grades(self) -> Grades:
        """Return the first grader's grades."""
        return self.panel.members[0]

    @property
    def book(self) -> Gradebook:
        """Return the first gradebook."""
        return self.grades.gradebook

    @property
    def min_rating(self) -> int | None:
        """Return the only threshold; None for that of the grader."""
        return self.min_ratings[0] if self.min_ratings else None

    @property
    def threshold(self) -> int:
        """Return the threshold, by default the grader's."""
        return self.book.grader.threshold(self.min_rating)

    @cached_property
    def board(self) -> Leaderboard:
        """Return the leaderboard of the first gradebook."""
        from exampp.measures.leaderboard import evaluate_gradebook

        return evaluate_gradebook(
            self.book, self.measures, self.threshold, subtopics=self.subtopics
        )


def _leaderboard(of: PlotRequest) -> Figure:
    from exampp.analysis.figures import leaderboard_figure

    return leaderboard_figure(of.board, of.board.columns[0])


def _scatter(of: PlotRequest) -> Figure:
    from exampp.analysis.figures import scatter_figure
    from exampp.formats import leaderboards

    if of.official is None:
        raise InputError("scatter needs an official leaderboard", hint="Name one with --official")
    ranks = leaderboards.read(of.official)
    return scatter_figure(of.board, of.board.columns[0], ranks, decimals=of.round_to)


def _heatmap(of: PlotRequest) -> Figure:
    from exampp.analysis.figures import heatmap_figure

    return heatmap_figure(of.board, of.board.columns[0], of.opened.query_texts())


def _reliability(of: PlotRequest) -> Figure:
    from exampp.analysis.reliability import scored_column, study_reliability

    return study_reliability(scored_column(of.book, of.board)).plot()


def _grades(of: PlotRequest) -> Figure:
    from exampp.analysis.figures import grades_figure

    return grades_figure([of.book])


def _sensitivity(of: PlotRequest) -> Figure:
    from exampp.analysis.sensitivity import Declaration

    declaration = Declaration(tuple(of.measures), min_ratings=tuple(of.min_ratings or ()))
    return of.panel.sensitivity(declaration, subtopics=of.subtopics).plot()


def _calibration(of: PlotRequest) -> Figure:
    """Draw the curve of a calibrated grader, or that of a calibration of the grader."""
    from exampp.analysis.calibration import calibrate, curve_figure
    from exampp.records.calibration import calibration_of

    known = calibration_of(of.book.grader)
    return curve_figure(known or calibrate([of.book], of.opened.path.name).calibration)


def _improvement(of: PlotRequest) -> Figure:
    return (
        of.opened.bank(of.grades.bank)
        .improve(of.grades.grader.key, min_rating=of.min_rating, official=of.official or ())
        .plot()
    )


def _banks(of: PlotRequest) -> Figure:
    """Draw banks beside a reference bank, or those of a collection of matches."""
    check_reference(of.opened, of.reference)
    return of.opened.compare_banks(
        of.reference,
        of.selection.bank or (),
        matcher=of.matcher,
        grader=next(iter(of.selection.grader or ()), None),
        min_rating=of.min_rating,
    ).plot()


def _sealed(of: PlotRequest) -> Figure:
    """Draw the best scores on the sealed part that was used last."""
    from exampp.items.sealed_use import last_sealed_use, sealed_use_figure

    bank = next(iter(of.selection.bank or ()), None)
    return sealed_use_figure(last_sealed_use(of.opened.connection, bank))


def _methods(of: PlotRequest) -> Figure:
    """Draw every grader, measure and threshold, and leaderboards made elsewhere, as one figure."""
    from exampp.analysis import figures
    from exampp.formats import leaderboards
    from exampp.inputs.officials import leaderboards_by_name
    from exampp.measures.leaderboard import evaluate_gradebook
    from exampp.results.plots.figure import Spread

    members = of.panel.members
    boards = {
        name if len(members) > 1 else "": evaluate_gradebook(
            one.gradebook, of.measures, of.min_ratings, subtopics=of.subtopics
        )
        for name, one in of.panel.named()
    }
    found = figures.series(boards)
    for name, path in leaderboards_by_name(of.scores).items():
        found[name] = [Spread(*one) for one in leaderboards.read_scores(path).items()]
    if len(found) > _SERIES:
        what = f"{len(found)} series are too many for one plot"
        raise InputError(what, hint=f"Name at most {_SERIES}")
    systems = dict.fromkeys(system for board in boards.values() for system in board.systems)
    return figures.methods_figure(
        found,
        list(systems),
        leaderboards.read_scores(of.official) if of.official else None,
        draft=any(one.grader.is_draft for one in members),
    )


class PlotKind(NamedTuple):
    """A kind of plot: its function, its options, and a hint for empty data."""

    draw: Callable[[PlotRequest], Figure]
    options: Container[str]
    fix: str
    measures: Sequence[str] = ("Cover@20",)
    most: int = 1
    """Maximum number of measures."""
    repeated: Container[str] = ()
    """Options that may be repeated, of graders, banks and thresholds."""


_SERIES = 6
_SEVERAL = ("--min-rating", "--grader", "--bank")
_CHOSEN = ("--min-rating", "--run", "--system", "--leave-out")
_POOL = ("--measure", *_CHOSEN)
_BOARD = (*_POOL, "--subtopics")
_AVERAGED = ("Cover@20", "nDCG@20", "P@20", "AP")
KindName = Literal[
    "leaderboard",
    "methods",
    "scatter",
    "grades",
    "heatmap",
    "reliability",
    "sensitivity",
    "calibration",
    "corrected",
    "attacks",
    "improvement",
    "banks",
    "turns",
    "abstention",
    "citations",
    "sealed",
]

KINDS: Mapping[KindName, PlotKind] = {
    "leaderboard": PlotKind(_leaderboard, _BOARD, "Choose another --measure"),
    "methods": PlotKind(
        _methods,
        (*_BOARD, "--official", "--scores"),
        "Choose other measures, or an official leaderboard of these systems",
        _AVERAGED,
        _SERIES,
        _SEVERAL,
    ),
    "scatter": PlotKind(
        _scatter,
        (*_BOARD, "--official", "--round"),
        "Choose an official leaderboard of these systems",
    ),
    "grades": PlotKind(_grades, (), "Add grades"),
    "heatmap": PlotKind(_heatmap, _BOARD, "Choose another --measure"),
    "reliability": PlotKind(_reliability, _BOARD, "Add systems, queries or grades"),
    "sensitivity": PlotKind(
        _sensitivity, _BOARD, "Add systems or grades", ("Cover", "P", "nDCG"), _SERIES, _SEVERAL
    ),
    "calibration": PlotKind(_calibration, (), "Add judgments of passages that were graded"),
    "corrected": PlotKind(
        lambda of: of.grades.corrected(of.measures[0], min_rating=of.min_rating).plot(),
        _POOL,
        "Add systems",
        ("P@20",),
    ),
    "attacks": PlotKind(
        lambda of: of.grades.attacks(min_rating=of.min_rating).plot(),
        ("--min-rating",),
        "Make a battery and have it graded: exampp analyze attacks --help",
    ),
    "improvement": PlotKind(
        _improvement,
        ("--min-rating", "--official"),
        "The reason is shown by: exampp bank improve",
    ),
    "banks": PlotKind(
        _banks,
        ("--min-rating", "--reference", "--by"),
        "Add items of the queries of the reference bank",
        repeated=("--bank",),
    ),
    "turns": PlotKind(
        lambda of: of.grades.turns(min_rating=of.min_rating, subtopics=of.subtopics).plot(),
        (*_CHOSEN, "--subtopics"),
        "Add systems or grades",
    ),
    "abstention": PlotKind(
        lambda of: of.grades.abstention(min_rating=of.min_rating).plot(),
        _CHOSEN,
        "Add responses or grades",
    ),
    "citations": PlotKind(
        lambda of: of.grades.citations().plot(),
        ("--run", "--system", "--leave-out"),
        "Grade the citations: exampp grade --prompt citation-support",
    ),
    "sealed": PlotKind(_sealed, (), "It is drawn once a submission is a new best"),
}


def _of_kinds(option_name: str) -> OptionRule:
    kinds = [name for name, kind in KINDS.items() if option_name in kind.options]
    return OptionRule(
        (option_name,), f"for {', '.join(kinds)}", lambda values: values["what"] in kinds
    )


def _takes_threshold(values: OptionValues) -> bool:
    what = values["what"]
    measures = {"measure": values["measure"] or KINDS[what].measures}
    if what == "banks":
        return values["reference"] is None
    if what in ("corrected", "attacks", "improvement", "turns", "abstention"):
        return True
    return OF_MEASURES["--min-rating"].where(
        at_cutoffs(measures) if what == "sensitivity" else measures
    )


@option_rules(
    *map(_of_kinds, (*_BOARD, "--official", "--scores", "--round", "--reference", "--by")),
    OptionRule(
        ("--grader",),
        "for banks without --reference, and with --by coverage",
        lambda values: (
            values["what"] != "banks" or values["reference"] is None or values["by"] == "coverage"
        ),
    ),
    OptionRule(
        ("--bank", "--by"),
        "for banks with --reference",
        lambda values: values["what"] != "banks" or values["reference"] is not None,
    ),
    OptionRule(("--min-rating",), OF_MEASURES["--min-rating"].only, _takes_threshold),
    OptionRule(
        ("--theme",),
        "for what is drawn, not for .csv and .tsv",
        lambda values: Path(values["output"]).suffix.lower() not in (".csv", ".tsv"),
    ),
)
@without_options("decisions")
def plot(
    what: Annotated[KindName, argument(metavar="KIND", help=f"{', '.join(KINDS)}.")],
    selection: SeveralSelection,
    output: Annotated[
        Path,
        keyword(
            "--output",
            "-o",
            dir_okay=False,
            help="Write this file: .svg, .pdf, .png, .json (Vega-Lite), .csv or .tsv (data).",
        ),
    ],
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Plot this measure. Repeat up to six times for methods and sensitivity. "
            "[default: Cover@20; methods: Cover@20, nDCG@20, P@20, AP; sensitivity: Cover, P, "
            "nDCG; corrected: P@20]",
        ),
    ] = None,
    min_rating: MinRatings = None,
    official: Annotated[
        Path | None,
        keyword(help="Compare with this official leaderboard (scatter, methods, improvement)."),
    ] = None,
    scores: Scores = None,
    round_to: RoundTo = None,
    reference: Annotated[
        str | None,
        keyword(help="Compare banks with this one. Not for a collection of matches.", rare=True),
    ] = None,
    by: MatchBy = "text",
    theme: Annotated[
        Literal["light", "dark"], keyword(help="Draw on white, or on near-black.", rare=True)
    ] = "light",
    subtopics: Subtopics = "auto",
) -> None:
    """Draw one figure.

    For methods and sensitivity, you can repeat --min-rating, --grader and --bank, and --bank for
    banks; methods shows up to six series. corrected uses the newest sample that fits; attacks uses
    the attack collection beside the exam. COLLECTION may be a file of graded passages; --bank then
    names a bank file.

    Example: exampp plot leaderboard my.exam -o leaderboard.svg
    """
    from exampp.formats.leaderboards import leaderboard_files
    from exampp.formats.output import check_outputs, writing
    from exampp.measures.leaderboard import missing_prerequisite
    from exampp.results.plots.figure import writer

    kind = KINDS[what]
    measures = measure or kind.measures
    if len(measures) > kind.most:
        too_many = f"{len(measures)} measures are too many for the plot {what}"
        raise InputError(too_many, hint=f"Name at most {kind.most}")
    several = {"--min-rating": min_rating, "--grader": selection.grader, "--bank": selection.bank}
    for name, values in several.items():
        if name not in kind.repeated and len(values or ()) > 1:
            raise InputError(f"the plot {what} shows one value of {name}", hint="Name one")
    write = writer(output)
    boards = leaderboard_files([*([official] if official else ()), *(scores or ())])
    read = [selection.collection, *boards, *(selection.bank or ()), *(selection.runs or ())]
    check_outputs([output], read)
    with exampp.open(selection.collection) as opened:
        request = PlotRequest(
            opened,
            selection,
            measures,
            min_rating,
            official,
            scores or (),
            round_to,
            subtopics,
            reference,
            by,
        )
        figure = kind.draw(request)
    if not figure.spec:
        missing = missing_prerequisite(request.book) if "--subtopics" in kind.options else None
        cause = f"Nothing to draw. {missing.cause}" if missing else figure.alt
        fix = missing.hint if missing else kind.fix
        raise InputError(cause, file=selection.collection, hint=fix)
    content = write(figure, theme)
    with writing(output, text=False) as stream:
        stream.write(content)
    print_message(f"{output}: {figure.title}")
