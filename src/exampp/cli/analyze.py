"""`exampp analyze`: how far a leaderboard can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import exampp
from exampp.cli import audit
from exampp.cli.command import Group, OptionRule, option_rules
from exampp.cli.options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_OFFICIAL,
    Measures,
    MethodSelection,
    MinRatings,
    Missing,
    Officials,
    RoundTo,
    Subtopics,
    labelling,
    opened_grades,
    rating_scale,
)
from exampp.cli.output import end_where_undefined, show
from exampp.errors import InputError
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    BankName,
    DecisionMode,
    GraderNames,
    ItemKind,
    Labels,
    NumberDisplay,
    OnError,
    PromptName,
    Scale,
    Selection,
)

if TYPE_CHECKING:
    from exampp.records import Judgment


def _is_qrels(path: Path) -> bool:
    from exampp.formats.detect import detect

    # what is no file of a known format is refused when it is opened
    with suppress(InputError):
        return path.is_file() and detect(path) == "qrels"
    return False


@option_rules(
    OF_GRADED_FILES,
    OptionRule(
        ("--grader", "--prompt", "--kind", "--bank", "--at-least", "--min-rating", "--decisions"),
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
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    at_least: Annotated[
        list[int] | None,
        keyword(
            help="Use the m-th best rating of a passage as its label; repeat for several. "
            "[default: 1, 2, 5]"
        ),
    ] = None,
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that counts as relevant with STRICT. [default: 4 of 0-5, two "
            "thirds up any other scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        list[int] | None,
        keyword(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR; repeat for "
            "several. [default: 2, or 1 if none is higher]"
        ),
    ] = None,
    layout: Annotated[
        list[Literal["graded", "merge", "lenient", "strict"]] | None,
        keyword(
            help="The papers' tables: each label, merged ones, 1 and more, --min-rating and "
            "more; repeat for several. With this option, graders are compared with each "
            "other too. [default: all]"
        ),
    ] = None,
    against: Annotated[
        Literal["judgments", "graders", "people"] | None,
        keyword(help="Only judgments, only graders, or only people."),
    ] = None,
    decisions: DecisionMode = "with",
    on_error: OnError = "refuse",
    scale: Scale = None,
    *,
    display: NumberDisplay,
) -> None:
    """Compare labels with judgments, graders and people with each other, and qrels with all.

    Confusion tables as the papers print them, Cohen's kappa, weighted kappa, Krippendorff's alpha
    and Gwet's AC1, with 95 % intervals over queries. If systems return judged passages, a last
    table shows whether a grader favours a system.

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
        with exampp.open(source, on_error, rating_scale(scale)) as opened:
            panel = opened.panel(
                *(grader or ()), prompt=prompt, kind=kind, bank=bank, decisions=decisions
            )
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
    OptionRule(("--seed",), "with --samples", lambda values: values["samples"] != 0),
)
def correlation(
    selection: MethodSelection,
    official: Annotated[
        list[Path],
        keyword(help="An official leaderboard, or FILE:MEASURE of one; repeat for several."),
    ],
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20, nCover@20, P@20, nDCG@20]",
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        keyword(
            help="spearman, kendall or tau_ap; repeat for several. [default: spearman, kendall]"
        ),
    ] = None,
    samples: Annotated[
        int, keyword(min=0, help="Resamples for the intervals, at least 50; 0: no intervals.")
    ] = 2000,
    seed: Annotated[int, keyword(help="Seed of the resamples.")] = 0,
    round_to: RoundTo = None,
    *,
    display: NumberDisplay,
) -> None:
    """Correlate all graders, thresholds and measures with official leaderboards.

    The values as in the papers' tables, then the same with 95 % intervals over queries, which
    contain the average of exams with as many queries. tsv, csv and json have one row per value.

    Example: exampp analyze correlation my.exam --official leaderboard.json
    """
    from exampp.analysis.correlation import compare_methods
    from exampp.inputs.officials import read_officials

    methods = selection.methods(measure or ())
    found = compare_methods(
        methods,
        read_officials(official),
        statistic or ("spearman", "kendall"),
        samples=samples,
        seed=seed,
        decimals=round_to,
    )
    show(found.records()["correlation"] if display.for_programs else found, display)
    estimates = [one.estimate for one in found.found]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


@option_rules(OF_MEASURES["--min-rating"], OF_OFFICIAL)
def leaderboards(
    selection: MethodSelection,
    official: Officials = None,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20]",
        ),
    ] = None,
    order: Annotated[
        int,
        keyword(min=0, help="Order by the n-th column of scores; 0: by the official leaderboard."),
    ] = 1,
    round_to: RoundTo = None,
    *,
    display: NumberDisplay,
) -> None:
    """Show all graders and thresholds side by side, with official ranks beside them.

    One row per system, one column per grader, measure and threshold; rank correlations with the
    official leaderboards, and of the graders with each other, below. tsv, csv and json have one row
    per value.

    Example: exampp analyze leaderboards my.exam -m Cover@20 -m P@10
    """
    from exampp.analysis.correlation import side_by_side
    from exampp.inputs.officials import read_officials

    methods = selection.methods(measure or ["Cover@20"])
    found = side_by_side(methods, read_officials(official or ()), order=order, decimals=round_to)
    tables = found.records() if display.for_programs else found.tables()
    show(tables if len(tables) > 1 else tables["leaderboards"], display)
    end_where_undefined(
        [mean.mean for one in found.series for mean in one.means.values()] or [None],
        ["no query counts" if found.systems else "there are no rankings, and so no systems"],
    )


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
def significance(
    selection: Selection,
    measure: Measures = None,
    min_rating: MinRatings = None,
    subtopics: Subtopics = "auto",
    missing: Missing = "zero",
    alpha: Annotated[
        float, keyword(help="Two systems differ if the corrected p-value is at most this.")
    ] = 0.05,
    correction: Annotated[
        Literal["holm", "bh", "none"],
        keyword(help="The correction of p-values for the letters."),
    ] = "holm",
    permutations: Annotated[
        int | None,
        keyword(
            help="Random sign patterns of the randomisation test. [default: 10000, or as many "
            "as the correction needs]"
        ),
    ] = None,
    seed: Annotated[int, keyword(help="Seed of the random sign patterns.")] = 0,
    pairs: Annotated[
        bool, keyword("--pairs", help="Print a row for every pair of systems.")
    ] = False,
    *,
    labels: Labels,
    display: NumberDisplay,
) -> None:
    """Test all pairs of systems: which ones differ, and how much.

    Shows the leaderboard with letters: systems that share one do not differ. tsv, csv and --pairs
    have a row for every pair; json has both.

    Example: exampp analyze significance my.exam -m Cover@20
    """
    from exampp.analysis.significance import SignificanceSettings
    from exampp.measures.leaderboard import DEFAULT_MEASURES

    with opened_grades(selection) as grades:
        found = grades.significance(
            measure or DEFAULT_MEASURES,
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


app = Group("analyze", help="Analyze how far the leaderboard can be trusted.")
for _function in (
    *(leaderboards, correlation, agreement, audit.calibration, significance, audit.reliability),
    *(audit.items, audit.citations, audit.unsaid, audit.sensitivity, audit.attacks),
    audit.corrected,
):
    app.verb(_function.__name__)(_function)
