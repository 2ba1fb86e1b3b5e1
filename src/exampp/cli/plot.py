"""`exampp plot`: one figure as SVG, PDF, PNG, Vega-Lite or data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import exampp
from exampp.cli.audit import at_cutoffs
from exampp.cli.command import OptionRule, OptionValues, argument, option, option_rules
from exampp.cli.options import (
    OF_GRADED_FILES,
    OF_MEASURES,
    BankNames,
    CollectionOrWorkbench,
    CountDecisions,
    DecisionMode,
    ItemKind,
    LeftOut,
    MinRatings,
    OnBadLine,
    OnError,
    PromptName,
    RoundTo,
    RunFiles,
    Scale,
    Scores,
    SubtopicMode,
    Subtopics,
    SystemNames,
    rating_scale,
)
from exampp.cli.output import print_message

if TYPE_CHECKING:
    from exampp.grades.grades import Grades
    from exampp.measures.exams import SubtopicChoice
    from exampp.records.gradebook import Gradebook
    from exampp.results.plots.figure import ColumnWidth, Figure


class PlotKind(StrEnum):
    """What is drawn."""

    leaderboard = "leaderboard"
    methods = "methods"
    scatter = "scatter"
    grades = "grades"
    labels = "labels"
    curve = "curve"
    heatmap = "heatmap"
    reliability = "reliability"
    sensitivity = "sensitivity"
    calibration = "calibration"
    corrected = "corrected"
    attacks = "attacks"


class Theme(StrEnum):
    """Ink and ground of a figure."""

    light = "light"
    dark = "dark"


class Width(StrEnum):
    """How wide a figure is."""

    own = "own"
    single = "single"
    double = "double"


class _Kind(NamedTuple):
    """Options of one kind of plot, and what helps where there is nothing to draw."""

    options: Collection[str]
    mend: str
    measures: Sequence[str] = ("Cover@20",)
    most: int = 1
    """Measures, and series in all."""


_POOL = ("--measure", "--min-rating", "--run", "--system", "--leave-out")
_BOARD = (*_POOL, "--subtopics", "--decisions")
_DECIDED = ("--decisions",)
_KINDS: Mapping[PlotKind, _Kind] = {
    PlotKind.leaderboard: _Kind(_BOARD, "Choose another --measure"),
    PlotKind.methods: _Kind(
        (*_BOARD, "--official", "--scores"),
        "Choose other measures, or an official leaderboard of these systems",
        ("Cover@20", "nDCG@20", "P@20", "AP"),
        6,
    ),
    PlotKind.scatter: _Kind(
        (*_BOARD, "--official", "--round"),
        "Choose an official leaderboard of these systems",
    ),
    PlotKind.grades: _Kind(_DECIDED, "Add grades"),
    PlotKind.labels: _Kind(_DECIDED, "Add judgments and grades of the same passages"),
    PlotKind.curve: _Kind(_BOARD, "Add the rankings of systems"),
    PlotKind.heatmap: _Kind(_BOARD, "Choose another --measure"),
    PlotKind.reliability: _Kind(_BOARD, "Add systems, queries or grades"),
    PlotKind.sensitivity: _Kind(
        _BOARD,
        "Add systems or grades",
        ("Cover", "P", "nDCG"),
        6,
    ),
    PlotKind.calibration: _Kind(_DECIDED, "Add judgments of passages that were graded"),
    PlotKind.corrected: _Kind(_POOL, "Add systems", ("P@20",)),
    PlotKind.attacks: _Kind(
        ("--min-rating",),
        "Make a battery and have it graded: exampp analyze attacks --help",
    ),
}


_COLUMNS: Mapping[Width, ColumnWidth | None] = {
    Width.own: None,
    Width.single: "single",
    Width.double: "double",
}
_SEVERAL = frozenset({PlotKind.methods, PlotKind.sensitivity})
"""Those of several graders, banks and thresholds at once."""


def _of_kinds(option: str) -> OptionRule:
    kinds = [kind for kind in PlotKind if option in _KINDS[kind].options]
    return OptionRule((option,), f"for {', '.join(kinds)}", lambda given: given["what"] in kinds)


def _takes_threshold(given: OptionValues) -> bool:
    measures = given["measure"] or _KINDS[given["what"]].measures
    if given["what"] in _FROM_GRADES:
        return True
    if given["what"] is PlotKind.sensitivity:
        return OF_MEASURES["--min-rating"].where(at_cutoffs({"measure": measures}))
    return OF_MEASURES["--min-rating"].where({"measure": measures})


def _is_drawn(given: OptionValues) -> bool:
    return Path(given["output"]).suffix.lower() not in (".csv", ".tsv")


@option_rules(
    OF_GRADED_FILES,
    *map(_of_kinds, (*_BOARD, "--official", "--scores", "--round")),
    OptionRule(("--min-rating",), OF_MEASURES["--min-rating"].only, _takes_threshold),
    OptionRule(
        ("--theme", "--width", "--no-title"),
        "for what is drawn, not for .csv and .tsv",
        _is_drawn,
    ),
)
def plot(
    what: Annotated[PlotKind, argument(metavar="KIND", help="; ".join(PlotKind))],
    collection: CollectionOrWorkbench,
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            dir_okay=False,
            help="The file: .svg, .pdf, .png, .json (Vega-Lite), .csv or .tsv (data).",
        ),
    ],
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="The measure; for methods and sensitivity, repeat for up to six; for curve, "
            "Cover@k with the last k; for corrected P@k, RBP@k or Cover@k; not for grades, labels, "
            "calibration and attacks. [default: Cover@20; for methods Cover@20, nDCG@20, P@20, AP; "
            "for sensitivity Cover, P, nDCG; for corrected P@20]",
        ),
    ] = None,
    min_rating: MinRatings = None,
    official: Annotated[
        Path | None, option(help="The official leaderboard, for scatter and methods.")
    ] = None,
    scores: Scores = None,
    round_to: RoundTo = None,
    theme: Annotated[Theme, option(help="Dark ink on white, or light ink on near-black.")] = (
        Theme.light
    ),
    width: Annotated[
        Width,
        option(
            help="As wide as a column of a paper (3.33 in), as both (7 in), or as it is drawn best."
        ),
    ] = Width.own,
    no_title: Annotated[
        bool, option("--no-title", help="Leave out the title: a paper has a caption.")
    ] = False,
    grader: Annotated[
        list[str] | None,
        option(
            help="Which grader's grades: a model, model:prompt, or the start of its key; for "
            "methods and sensitivity, repeat for several."
        ),
    ] = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
) -> None:
    """Draw one figure.

    For methods and sensitivity --min-rating, --grader and --bank may be repeated, for methods up to
    six series in all.
    Corrected takes the newest sample that fits, attacks the battery beside the exam.
    COLLECTION may be a file of graded passages; --bank then names a bank file.

    Example: exampp plot leaderboard my.exam -o leaderboard.svg
    """
    from exampp.formats import leaderboards
    from exampp.formats.output import check_outputs, writing
    from exampp.measures.leaderboard import missing_prerequisite
    from exampp.records.graders import choose_grader
    from exampp.results.plots.figure import writer

    measures = _checked(what, measure)
    _check_one(what, {"--min-rating": min_rating, "--grader": grader, "--bank": bank})
    write = writer(output)
    if what is PlotKind.scatter and official is None:
        raise exampp.InputError(
            f"{what.value} needs an official leaderboard", mend="Name one with --official"
        )
    boards = leaderboards.files_of([*([official] if official else ()), *(scores or ())])
    check_outputs([output], [collection, *boards, *(bank or ()), *(run or ())])
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        of_kind = kind.value if kind else None
        graders = list(grader or [])
        if len(graders) < 2:
            # of several that fit one must be chosen
            name = graders[0] if graders else None
            one = choose_grader(opened.graders, grader=name, prompt=prompt, kind=of_kind)
            graders = [one.key]
        panel = opened.panel(
            *graders,
            prompt=prompt,
            kind=of_kind,
            bank=bank or None,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        )
        named = dict(panel.named())
        grades = next(iter(named.values()))
        books = {name: one.gradebook for name, one in named.items()}
        book = grades.gradebook
        threshold = min_rating[0] if min_rating else None
        if what in _FROM_GRADES:
            figure = _FROM_GRADES[what](grades, measures[0], threshold)
        elif what is PlotKind.methods:
            figure = _methods(books, measures, min_rating, official, scores or (), subtopics.value)
        elif what is PlotKind.sensitivity:
            figure = _sensitivity(books, measures, min_rating, subtopics.value)
        elif what is PlotKind.calibration:
            figure = _calibration(book, opened.path.name)
        else:
            texts = grades.query_texts() if what is PlotKind.heatmap else {}
            figure = _figure(
                what, book, measures, threshold, official, round_to, subtopics.value, texts
            )
    if not figure.spec:
        missing = missing_prerequisite(book) if "--subtopics" in _KINDS[what].options else None
        cause = f"Nothing to draw. {missing.cause}" if missing else figure.alt
        mend = missing.mend if missing else _KINDS[what].mend
        raise exampp.InputError(cause, file=collection, mend=mend)
    if no_title or width is not Width.own:
        figure = figure.on_paper(_COLUMNS[width], title=not no_title)
    content = write(figure, theme.value)
    with writing(output, text=False) as stream:
        stream.write(content)
    print_message(f"{output}: {figure.title}")


def _corrected(grades: Grades, measure: str, min_rating: int | None) -> Figure:
    return grades.corrected(measure, min_rating=min_rating).figure()


def _attacks(grades: Grades, _measure: str, min_rating: int | None) -> Figure:
    from exampp.analysis.attacks.result import GamingSettings

    return grades.attacks(settings=GamingSettings(min_rating)).figure()


_FROM_GRADES: Mapping[PlotKind, Callable[[Grades, str, int | None], Figure]] = {
    PlotKind.corrected: _corrected,
    PlotKind.attacks: _attacks,
}
"""Those that ask a collection for more than its gradebook."""


def _sensitivity(
    books: Mapping[str, Gradebook],
    measures: Sequence[str],
    min_ratings: Sequence[int] | None,
    subtopics: SubtopicChoice,
) -> Figure:
    from exampp.analysis.sensitivity import Declaration, Evaluated, sensitivity

    declaration = Declaration(tuple(measures), min_ratings=tuple(min_ratings or ()))
    given = [Evaluated(name, book, subtopics) for name, book in books.items()]
    return sensitivity(given, declaration).figure()


def _checked(what: PlotKind, measures: Sequence[str] | None) -> Sequence[str]:
    """The measures to be drawn. Raises InputError where they are too many."""
    kind = _KINDS[what]
    measures = measures or kind.measures
    if len(measures) > kind.most:
        raise exampp.InputError(
            f"{len(measures)} measures are too many for the plot {what.value}",
            mend=f"Name at most {kind.most}",
        )
    return measures


def _check_one(what: PlotKind, given: Mapping[str, Sequence[object] | None]) -> None:
    """Raise InputError where a plot of one series is asked for several."""
    for name, values in given.items():
        if what not in _SEVERAL and len(values or ()) > 1:
            raise exampp.InputError(
                f"the plot {what.value} shows one value of {name}", mend="Name one"
            )


def _depth(measure: str) -> int:
    """The last k of the curve of Cover@k."""
    from exampp.measures.names import parse_measure

    parsed = parse_measure(measure)
    if parsed.name != "Cover" or parsed.cutoff is None or parsed.weights:
        raise exampp.InputError(
            f"the plot curve shows Cover@k, not {measure}",
            mend="Name the last k, such as --measure Cover@20",
        )
    return parsed.cutoff


def _calibration(book: Gradebook, source: str) -> Figure:
    """The curve that a calibrated grader came with; of any other grader that of a calibration."""
    from exampp.analysis.calibration import calibrate, curve_figure
    from exampp.records.calibration import calibration_of

    return curve_figure(calibration_of(book.grader) or calibrate([book], source).calibration)


def _methods(
    books: Mapping[str, Gradebook],
    measures: Sequence[str],
    min_ratings: Sequence[int] | None,
    official: Path | None,
    scores: Sequence[Path],
    subtopics: SubtopicChoice,
) -> Figure:
    """Every grader, measure and threshold, and leaderboards made elsewhere, as one figure."""
    from exampp.analysis import figures
    from exampp.formats import leaderboards
    from exampp.inputs.officials import by_name
    from exampp.measures.leaderboard import evaluate_gradebook
    from exampp.results.plots.figure import Spread

    boards = {
        name if len(books) > 1 else "": evaluate_gradebook(
            book, measures, min_ratings, subtopics=subtopics
        )
        for name, book in books.items()
    }
    found = figures.series(boards)
    for name, path in by_name(scores).items():
        elsewhere = leaderboards.read_scores(path)
        found[name] = [Spread(system, score) for system, score in elsewhere.items()]
    most = _KINDS[PlotKind.methods].most
    if len(found) > most:
        raise exampp.InputError(
            f"{len(found)} series are too many for one plot", mend=f"Name at most {most}"
        )
    systems = dict.fromkeys(system for board in boards.values() for system in board.systems)
    return figures.methods_figure(
        found,
        list(systems),
        leaderboards.read_scores(official) if official else None,
        draft=any(book.grader.is_draft for book in books.values()),
    )


def _figure(
    what: PlotKind,
    book: Gradebook,
    measures: Sequence[str],
    min_rating: int | None,
    official: Path | None,
    round_to: int | None,
    subtopics: SubtopicChoice,
    texts: Mapping[str, str],
) -> Figure:
    from exampp.analysis import figures
    from exampp.analysis.reliability import reliability, scored_column
    from exampp.formats import leaderboards
    from exampp.measures.leaderboard import evaluate_gradebook

    threshold = book.grader.threshold(min_rating)
    if what is PlotKind.grades:
        return figures.grades_figure([book])
    if what is PlotKind.labels:
        return figures.labels_figure(book, exampp.Labelling(), threshold)
    if what is PlotKind.curve:
        return figures.curves_figure(
            book, threshold, depth=_depth(measures[0]), subtopics=subtopics
        )
    board = evaluate_gradebook(book, measures, threshold, subtopics=subtopics)
    first = board.columns[0]
    ranks = leaderboards.read(official) if official else None
    if what is PlotKind.scatter and ranks is not None:
        return figures.scatter_figure(board, first, ranks, decimals=round_to)
    if what is PlotKind.heatmap:
        return figures.heatmap_figure(board, first, texts)
    if what is PlotKind.reliability:
        return reliability(scored_column(book, board)).figure()
    return figures.leaderboard_figure(board, first)
