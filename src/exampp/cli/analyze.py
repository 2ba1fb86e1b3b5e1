"""`exampp analyze`: how far a leaderboard can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import exampp
from exampp.cli import audit
from exampp.cli.command import Group, OptionRule, option_rules, without_options
from exampp.cli.options import (
    LABELLING,
    OF_MEASURES,
    OF_OFFICIAL,
    Measures,
    MethodSelection,
    MinRating,
    MinRatings,
    Missing,
    Officials,
    RoundTo,
    Subtopics,
    labelling,
    opened_grades,
)
from exampp.cli.output import end_where_undefined, show
from exampp.errors import InputError
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    BankName,
    DecisionMode,
    GraderNames,
    Labels,
    NumberDisplay,
    Selection,
)

if TYPE_CHECKING:
    from exampp.records import Judgment


def _is_qrels(path: Path) -> bool:
    from exampp.formats.detect import detect

    # files of unknown formats are refused when they are opened
    with suppress(InputError):
        return path.is_file() and detect(path) == "qrels"
    return False


@option_rules(
    OptionRule(
        ("--grader", "--bank", "--at-least", "--min-rating", "--decisions"),
        "with a collection or graded passages",
        lambda values: not all(map(_is_qrels, values["collection"])),
    ),
    OptionRule(
        ("--at-least",),
        "for labels of passages, not for --against people",
        lambda values: values["against"] != "people",
    ),
    OptionRule(
        ("--min-relevant",),
        "for --against judgments",
        lambda values: values["against"] in (None, "judgments"),
    ),
    OptionRule(
        ("--min-rating",),
        "for the layouts strict and merge, and for people",
        lambda values: (
            not values["layout"]
            or not {"strict", "merge"}.isdisjoint(values["layout"])
            or values["against"] in (None, "people")
        ),
    ),
)
def agreement(
    collection: Annotated[
        list[Path],
        argument(
            metavar="COLLECTION",
            help="A collection, or graded passages (graded.jsonl.gz), and qrels to compare with "
            "them; or two or more qrels files.",
        ),
    ],
    grader: GraderNames = None,
    bank: BankName = None,
    at_least: Annotated[
        list[int] | None,
        keyword(
            help="Label a passage by its n-th best rating. Repeat for several. [default: 1, 2, 5]",
            rare=True,
        ),
    ] = None,
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that counts as relevant in strict tables. "
            "[default: 4 on a scale of 0-5, two thirds up another scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        list[int] | None,
        keyword(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR. Repeat for "
            "several. [default: 2, or 1 if none is higher]"
        ),
    ] = None,
    layout: Annotated[
        list[Literal["graded", "merge", "lenient", "strict"]] | None,
        keyword(
            help="Print this table of the papers, also for pairs of graders. Repeat for several. "
            "[default: all]",
            rare=True,
        ),
    ] = None,
    against: Annotated[
        Literal["judgments", "graders", "people"] | None,
        keyword(help="Compare only with judgments, graders or people.", rare=True),
    ] = None,
    decisions: DecisionMode = "with",
    *,
    display: NumberDisplay,
) -> None:
    """Measure the agreement of graders with judgments, with people and with each other.

    Shows confusion tables, Cohen's kappa, weighted kappa, Krippendorff's alpha and Gwet's AC1, with
    95 % intervals over queries. If systems return judged passages, a table shows the graders that
    favour a system. For graders of several items a request, the last tables test whether ratings
    depend on the order of the items.

    Example: exampp analyze agreement graded.jsonl.gz
    """
    from exampp.analysis.agreement import find_agreements
    from exampp.analysis.raters import LAYOUTS

    source, qrels = _sources(collection)
    cuts = min_relevant or ()
    if source is None:
        found = find_agreements(
            [], qrels=qrels, min_relevant=cuts, layouts=layout or LAYOUTS, against=against
        )
    else:
        with exampp.open(source) as opened:
            panel = opened.panel(*(grader or ()), bank=bank, decisions=decisions)
            found = panel.agreement(
                at_least=at_least or (),
                min_rating=min_rating,
                min_relevant=cuts,
                layouts=layout or (),
                against=against,
                qrels=qrels,
            )
    for_people = not display.for_programs
    show(found.tables(mutual_counts=bool(layout)) if for_people else found.records(), display)
    estimates = found.estimates()
    end_where_undefined(
        [one.value for one in estimates] or [None],
        [one.reason for one in estimates] or ["; ".join(found.notes)],
    )


def _sources(paths: Sequence[Path]) -> tuple[Path | None, Mapping[str, Sequence[Judgment]]]:
    """Return the collection, if there is one, and the judgments of the qrels files by name."""
    from exampp.formats import trec
    from exampp.inputs.officials import leaderboards_by_name

    files = [path for path in paths if _is_qrels(path)]
    others = [path for path in paths if path not in files]
    if len(others) > 1:
        raise InputError(
            f"{others[1]} is a second collection: agreement is that of one",
            hint="Name one collection, and any number of qrels files",
        )
    if not others and len(leaderboards_by_name(files)) < 2:
        raise InputError(
            f"{files[0]} has nothing to be compared with",
            hint="Name a second qrels file, a collection or graded passages",
        )
    judgments = {
        name: list(trec.read_qrels(path)) for name, path in leaderboards_by_name(files).items()
    }
    return (others[0] if others else None), judgments


@option_rules(
    OF_MEASURES["--min-rating"],
    OF_OFFICIAL,
    OptionRule(
        ("--statistic", "--samples", "--seed"),
        "with --official",
        lambda values: bool(values["official"]),
    ),
    OptionRule(("--seed",), "with --samples", lambda values: values["samples"] != 0),
    OptionRule(
        ("--order",),
        "where the output holds leaderboards, not tsv and csv with --official",
        lambda values: not (values["official"] and values["style"] in ("tsv", "csv")),
    ),
)
@without_options("decisions")
def correlation(
    selection: MethodSelection,
    official: Officials = None,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures. Repeat for several. "
            "[default: Cover@20, with --official also nCover@20, P@20, nDCG@20]",
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        keyword(
            help="Correlate by spearman, kendall or tau_ap. Repeat for several. "
            "[default: spearman, kendall]",
            rare=True,
        ),
    ] = None,
    order: Annotated[
        int,
        keyword(
            min=0,
            help="Sort systems by this column of scores; 0: by the official leaderboard.",
            rare=True,
        ),
    ] = 1,
    samples: Annotated[
        int,
        keyword(
            min=0,
            help="Draw this many resamples for the intervals (50 or more); 0: no intervals.",
            rare=True,
        ),
    ] = 2000,
    seed: Annotated[int, keyword(help="Seed of the resamples.", rare=True)] = 0,
    round_to: RoundTo = None,
    *,
    display: NumberDisplay,
) -> None:
    """Correlate all graders, thresholds and measures with each other and official leaderboards.

    Shows the leaderboards side by side. With --official, shows the correlations as in the papers'
    tables, and with 95 % intervals over queries. tsv and csv then have one row per correlation,
    otherwise one per score; json has everything.

    Example: exampp analyze correlation my.exam --official leaderboard.json
    """
    from exampp.analysis.correlation import compare_methods
    from exampp.analysis.side_by_side import side_by_side
    from exampp.inputs.officials import read_officials

    officials = read_officials(official or ())
    methods = selection.methods(measure or (() if selection.qrels else ["Cover@20"]))
    boards = side_by_side(methods, officials, order=order, decimals=round_to)
    tables = dict(boards.records() if display.for_programs else boards.tables())
    values = [mean.mean for one in boards.series for mean in one.means.values()]
    reasons = ["no query counts" if boards.systems else "no ranking is imported"]
    if officials:
        found = compare_methods(
            methods if measure else selection.methods(()),
            officials,
            statistic or ("spearman", "kendall"),
            samples=samples,
            seed=seed,
            decimals=round_to,
        )
        tables |= found.records() if display.for_programs else found.tables()
        if display.style in ("tsv", "csv"):
            tables = {"correlation": tables["correlation"]}
        values = [one.estimate.value for one in found.found]
        reasons = [one.estimate.reason for one in found.found]
    show(tables if len(tables) > 1 else next(iter(tables.values())), display)
    end_where_undefined(values or [None], reasons)


@option_rules(
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
    OptionRule(
        ("--pairs",),
        "where tables hold systems: tsv and csv have a row for every pair anyway",
        lambda values: values["style"] not in ("tsv", "csv"),
    ),
)
@without_options("decisions")
def significance(
    selection: Selection,
    measure: Measures = None,
    min_rating: MinRatings = None,
    subtopics: Subtopics = "auto",
    missing: Missing = "zero",
    alpha: Annotated[
        float,
        keyword(help="Report a difference if the corrected p-value is at most this.", rare=True),
    ] = 0.05,
    correction: Annotated[
        Literal["holm", "bh", "none"],
        keyword(help="Correct p-values for several pairs by this method."),
    ] = "holm",
    permutations: Annotated[
        int | None,
        keyword(
            help="Draw this many sign patterns in the randomisation test. [default: 10000, or as "
            "many as the correction needs]",
            rare=True,
        ),
    ] = None,
    seed: Annotated[int, keyword(help="Seed of the sign patterns.", rare=True)] = 0,
    pairs: Annotated[
        bool, keyword("--pairs", help="Print a row for every pair of systems.")
    ] = False,
    *,
    labels: Labels,
    display: NumberDisplay,
) -> None:
    """Test all pairs of systems for significant differences.

    Shows the leaderboard with letters: systems that share one do not differ significantly. --pairs,
    tsv and csv have a row for every pair; json has both.

    Example: exampp analyze significance my.exam -m Cover@20
    """
    from exampp.analysis.significance import SignificanceSettings
    from exampp.measures.leaderboard import default_measures

    with opened_grades(selection, measure) as grades:
        found = grades.significance(
            measure or default_measures(grades.gradebook),
            settings=SignificanceSettings(alpha, correction, permutations, seed),
            min_rating=min_rating,
            subtopics=subtopics,
            missing=missing,
            labelling=labelling(labels),
        )
    if display.style == "json" and not pairs:
        show({**found.tables(), **found.records()}, display)
    elif pairs or display.for_programs:
        show(found.records()["pairs"], display)
    else:
        show(found, display)
    tested = [pair for one in found for pair in one.pairs]
    end_where_undefined([pair.p for pair in tested], [pair.difference.reason for pair in tested])


@option_rules(OF_MEASURES["--min-rating"])
@without_options("decisions")
def changes(
    selection: Selection,
    since: Annotated[
        Path,
        keyword(
            help="Compare with an earlier copy of the collection, graded passages, or output of "
            "evaluate --per-query --format json. A date (2026-11-03) means the bank and decisions "
            "before it.",
        ),
    ],
    measure: Annotated[
        str | None,
        keyword(
            "--measure",
            "-m",
            help="Cover@20, or any measure of ir_measures. [default: that of the stored scores, "
            "or Cover@20]",
        ),
    ] = None,
    min_rating: MinRating = None,
    subtopics: Subtopics = "auto",
    *,
    display: NumberDisplay,
) -> None:
    """Show what changed since an earlier version, and which scores differ by more than noise.

    Compares systems, queries, items, passages, grades and decisions. Each cause shows how far it
    moved a score: responses of the system, bank, grades, human decisions.

    Example: exampp analyze changes my.exam --since last-week.exam
    """
    with opened_grades(selection, None if measure is None else [measure]) as grades:
        found = grades.changes(since, measure, min_rating=min_rating, subtopics=subtopics)
    show(found, display)
    estimates = [one.difference for one in found.systems]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


app = Group(
    "analyze",
    help="Analyze how far the leaderboard can be trusted.",
    renamed={"leaderboards": "exampp analyze correlation COLLECTION"},
)
for _function in (
    *(
        correlation,
        agreement,
        significance,
        changes,
        audit.reliability,
        audit.items,
        audit.sensitivity,
    ),
    *(audit.corrected, audit.calibration, audit.attacks, audit.unsaid),
):
    app.verb(_function.__name__)(_function)
app.verb("banks", rare=True)(audit.banks)
app.verb("citations", rare=True)(audit.citations)
app.verb("abstention", rare=True)(audit.abstention)
