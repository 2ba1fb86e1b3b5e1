"""`exampp analyze`: how far a leaderboard can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli import attacks, audit
from exampp.cli.command import Group, OptionRule, argument, option, option_rules
from exampp.cli.options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_OFFICIAL,
    OF_READING,
    AllMinRatings,
    AtLeast,
    BankName,
    BankNames,
    CollectionOrWorkbench,
    Collections,
    CountDecisions,
    DecisionMode,
    Digits,
    Gains,
    GraderName,
    GraderNames,
    ItemKind,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    Measures,
    MinRatings,
    Missing,
    MissingPolicy,
    Officials,
    OnBadLine,
    OnError,
    PromptName,
    QrelsFiles,
    RoundTo,
    RunFiles,
    Scale,
    Scores,
    Style,
    SubtopicMode,
    Subtopics,
    SystemNames,
    TableStyle,
    collect_methods,
    rating_scale,
)
from exampp.cli.output import end_where_undefined, show, show_several
from exampp.errors import InputError

if TYPE_CHECKING:
    from exampp.analysis.agreement import Against
    from exampp.records import Judgment


@option_rules(OF_GRADED_FILES, OF_READING, OF_MEASURES["--min-rating"], OF_OFFICIAL)
def leaderboards(
    collection: Collections,
    official: Officials = None,
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20]",
        ),
    ] = None,
    min_rating: AllMinRatings = None,
    order: Annotated[
        int,
        option(min=0, help="Order by the n-th column of scores; 0: by the official leaderboard."),
    ] = 1,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    qrels: QrelsFiles = None,
    scores: Scores = None,
    decisions: CountDecisions = DecisionMode.WITH,
    round_to: RoundTo = None,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Show all graders and thresholds side by side, with official ranks beside them.

    A row a system, a column a grader, measure and threshold; rank correlations with the official
    leaderboards, and of the graders with each other, below. tsv, csv and json hold a row a value.

    Example: exampp analyze leaderboards my.exam -m Cover@20 -m P@10
    """
    from exampp.analysis.side_by_side import side_by_side
    from exampp.inputs.officials import read_officials

    methods = collect_methods(
        collection,
        measure or ["Cover@20"],
        qrels=qrels or (),
        scores=scores or (),
        on_error=on_error.value,
        scale=rating_scale(scale),
        min_rating=min_rating or (),
        graders=grader or (),
        prompt=prompt,
        kind=kind.value if kind else None,
        bank=bank or None,
        runs=run or (),
        systems=system or (),
        without=leave_out or (),
        decisions=decisions.value,
    )
    officials = read_officials(official or ())
    found = side_by_side(methods, officials, order=order, decimals=round_to)
    machine = style in (Style.tsv, Style.csv, Style.json)
    shown = found.records() if machine else found.tables()
    if len(shown) == 1:
        show(shown["leaderboards"], style.value, digits)
    else:
        show_several(shown, style.value, digits)
    end_where_undefined(
        [mean.mean for one in found.series for mean in one.means.values()] or [None],
        ["no query counts" if found.systems else "there are no rankings, and so no systems"],
    )


class CorrectionName(StrEnum):
    """What is done about many tests at once."""

    holm = "holm"
    bh = "bh"
    none = "none"


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
    OptionRule(
        ("--pairs",),
        "where tables hold systems: tsv and csv have a row for every pair anyway",
        lambda given: given["style"] not in (Style.tsv, Style.csv),
    ),
)
def significance(
    collection: CollectionOrWorkbench,
    measure: Measures = None,
    min_rating: MinRatings = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    missing: Missing = MissingPolicy.zero,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    alpha: Annotated[
        float, option(help="Systems differ where the corrected p-value is at most this.")
    ] = 0.05,
    correction: Annotated[
        CorrectionName, option(help="Letters follow p-values corrected in this way.")
    ] = CorrectionName.holm,
    permutations: Annotated[
        int | None,
        option(
            help="Random sign patterns of the randomisation test. "
            "[default: 10000, or what the correction needs for so many pairs]"
        ),
    ] = None,
    seed: Annotated[int, option(help="Seed of the random sign patterns.")] = 0,
    pairs: Annotated[bool, option("--pairs", help="A row for every pair of systems.")] = False,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Test all pairs of systems: who differs from whom, and how much.

    Shows the leaderboard with letters: systems that share one do not differ. tsv, csv and --pairs
    have a row for every pair; json has both.

    Example: exampp analyze significance my.exam -m Cover@20
    """
    from exampp.analysis.significance import SignificanceSettings
    from exampp.measures.leaderboard import DEFAULT_MEASURES

    settings = SignificanceSettings(alpha, correction.value, permutations, seed)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).significance(
            measure or DEFAULT_MEASURES,
            settings=settings,
            min_rating=min_rating,
            subtopics=subtopics.value,
            missing=missing.value,
            labelling=exampp.Labelling(label.value, at_least, gains.value),
        )
    if style is Style.json and not pairs:
        show_several({**found.tables(), **found.records()}, style.value, digits)
    elif pairs or style in (Style.tsv, Style.csv):
        show(found.records()["pairs"], style.value, digits)
    else:
        show_several(found.tables(), style.value, digits)
    pairs_found = [pair for one in found for pair in one.pairs]
    end_where_undefined(
        [pair.p for pair in pairs_found], [pair.difference.reason for pair in pairs_found]
    )


class AgainstWhat(StrEnum):
    """What labels are compared with."""

    judgments = "judgments"
    graders = "graders"
    people = "people"


class LayoutName(StrEnum):
    """The papers' tables."""

    graded = "graded"
    merge = "merge"
    lenient = "lenient"
    strict = "strict"


def _is_qrels(path: Path) -> bool:
    from exampp.formats.detect import detect

    # what is no file of a known format is refused when it is opened
    with suppress(InputError):
        return path.is_file() and detect(path) == "qrels"
    return False


def _has_grades(given: Mapping[str, Any]) -> bool:
    return not all(map(_is_qrels, given["collection"]))


@option_rules(
    OF_GRADED_FILES,
    OptionRule(
        ("--grader", "--prompt", "--kind", "--bank", "--at-least", "--min-rating", "--decisions"),
        "with a collection or graded passages",
        _has_grades,
    ),
    OF_READING,
    OptionRule(
        ("--at-least",),
        "for labels of passages, not for --against people",
        lambda given: given["against"] != AgainstWhat.people,
    ),
    OptionRule(
        ("--min-relevant",),
        "for --against judgments",
        lambda given: given["against"] in (None, AgainstWhat.judgments),
    ),
    OptionRule(
        ("--min-rating",),
        "for the layouts strict and merge, and for people",
        lambda given: (
            not given["layout"]
            or not {LayoutName.strict, LayoutName.merge}.isdisjoint(given["layout"])
            or given["against"] in (None, AgainstWhat.people)
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
        option(
            help="The label is the m-th best rating of a passage; repeat for several. "
            "[default: 1, 2, 5]"
        ),
    ] = None,
    min_rating: Annotated[
        int | None,
        option(
            help="Lowest rating that STRICT takes as relevant. "
            "[default: 4 of 0-5, two thirds up any other scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        list[int] | None,
        option(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR; repeat for "
            "several. [default: 2, or 1 where none is higher]"
        ),
    ] = None,
    layout: Annotated[
        list[LayoutName] | None,
        option(
            help="The papers' tables: each label, merged ones, 1 and more, --min-rating and more; "
            "repeat for several. Named, they show graders against each other too. [default: all]"
        ),
    ] = None,
    against: Annotated[
        AgainstWhat | None, option(help="Only judgments, only graders, or only people.")
    ] = None,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Compare labels with judgments, graders with each other, people with graders, qrels with all.

    Confusion tables as the papers print them, Cohen's kappa, weighted kappa, Krippendorff's alpha
    and Gwet's AC1, with 95 % intervals over queries. Where systems return judged passages, a last
    table shows whether a grader favours a system.

    Example: exampp analyze agreement graded.jsonl.gz
    """
    from exampp.analysis.agreement import find_agreements
    from exampp.analysis.raters import LAYOUTS
    from exampp.stats.estimate import undefined

    source, qrels = _sources(collection)
    cuts = min_relevant or ()
    against_what: Against | None = against.value if against else None
    layouts = [one.value for one in layout or ()]
    if source is None:
        found = find_agreements(
            [],
            qrels=qrels,
            min_relevant=cuts,
            layouts=layouts or LAYOUTS,
            against=against_what,
        )
    else:
        with exampp.open(source, on_error.value, rating_scale(scale)) as opened:
            found = opened.panel(
                *(grader or ()),
                prompt=prompt,
                kind=kind.value if kind else None,
                bank=bank,
                decisions=decisions.value,
            ).agreement(
                at_least=at_least or (),
                min_rating=min_rating,
                min_relevant=cuts,
                layouts=layouts,
                against=against_what,
                qrels=qrels,
            )
    if style in (Style.json, Style.tsv, Style.csv):
        show_several(found.records(), style.value, digits)
    else:
        show_several(found.tables(mutual_counts=bool(layout)), style.value, digits)
    estimates = found.estimates() or [undefined("; ".join(found.notes))]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


def _sources(paths: Sequence[Path]) -> tuple[Path | None, Mapping[str, Sequence[Judgment]]]:
    """Return the collection, if there is one, and the judgments of the qrels files by name."""
    from exampp.formats import qrels
    from exampp.inputs.officials import by_name

    files = [path for path in paths if _is_qrels(path)]
    others = [path for path in paths if path not in files]
    if len(others) > 1:
        raise InputError(
            f"{others[1]} is a second collection: agreement is that of one",
            mend="Name one collection, and any number of qrels files",
        )
    if not others and len(by_name(files)) < 2:
        raise InputError(
            f"{files[0]} has nothing to be compared with",
            mend="Name a second qrels file, a collection or graded passages",
        )
    judgments = {name: list(qrels.read(path)) for name, path in by_name(files).items()}
    return (others[0] if others else None), judgments


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    OF_MEASURES["--min-rating"],
    OptionRule(("--seed",), "with --samples", lambda given: given["samples"] != 0),
)
def correlation(
    collection: Collections,
    official: Annotated[
        list[Path],
        option(help="An official leaderboard, or FILE:MEASURE of one; repeat for several."),
    ],
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20, nCover@20, P@20, nDCG@20]",
        ),
    ] = None,
    min_rating: AllMinRatings = None,
    statistic: Annotated[
        list[str] | None,
        option(
            help="spearman, kendall, tau_ap, rbo, rbo(p=0.8), kendall@10 (the 10 officially best); "
            "repeat for several. [default: spearman, kendall]"
        ),
    ] = None,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    qrels: QrelsFiles = None,
    scores: Scores = None,
    samples: Annotated[
        int, option(min=0, help="Resamples for the intervals, 50 or more; 0: no intervals.")
    ] = 2000,
    seed: Annotated[int, option(help="Seed of the resamples.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    round_to: RoundTo = None,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Correlate all graders, thresholds and measures with official leaderboards.

    The values as in the papers' tables, then the same with 95 % intervals over queries, which hold
    what exams of as many queries show on average. tsv, csv and json hold a row a value.

    Example: exampp analyze correlation my.exam --official leaderboard.json
    """
    from exampp.analysis.correlation import compare_methods
    from exampp.inputs.officials import read_officials

    methods = collect_methods(
        collection,
        measure or (),
        qrels=qrels or (),
        scores=scores or (),
        on_error=on_error.value,
        scale=rating_scale(scale),
        min_rating=min_rating or (),
        graders=grader or (),
        prompt=prompt,
        kind=kind.value if kind else None,
        bank=bank or None,
        runs=run or (),
        systems=system or (),
        without=leave_out or (),
        decisions=decisions.value,
    )
    officials = read_officials(official)
    compared = compare_methods(
        methods,
        officials,
        statistic or ("spearman", "kendall"),
        samples=samples,
        seed=seed,
        decimals=round_to,
    )
    if style in (Style.tsv, Style.csv, Style.json):
        show(compared.records()["correlation"], style.value, digits)
    else:
        show_several(compared.tables(), style.value, digits)
    end_where_undefined(
        [one.estimate.value for one in compared.found],
        [one.estimate.reason for one in compared.found],
    )


app = Group("analyze", help="Ask how far the leaderboard can be trusted.")
app.verb("leaderboards")(leaderboards)
app.verb("correlation")(correlation)
app.verb("agreement")(agreement)
app.verb("calibration")(audit.calibration)
app.verb("significance")(significance)
app.verb("reliability")(audit.reliability)
app.verb("items")(audit.items)
app.verb("citations")(audit.citations)
app.verb("unsaid")(audit.unsaid)
app.verb("sensitivity")(audit.sensitivity)
app.verb("attacks")(attacks.attacks)
app.verb("corrected")(audit.corrected)
