"""`exampp analyze sensitivity`: what of a leaderboard survives the choices behind it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import exampp
from exampp.cli.command import ASKED_FOR, OptionRule, OptionValues, argument, option, option_rules
from exampp.cli.options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_READING,
    AllMinRatings,
    AtLeast,
    BankName,
    BankNames,
    CollectionFile,
    CollectionOrWorkbench,
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
    MinRating,
    Missing,
    MissingPolicy,
    Officials,
    OnBadLine,
    OnError,
    PromptName,
    RunFiles,
    Scale,
    Style,
    SubtopicMode,
    Subtopics,
    SystemNames,
    TableStyle,
    rating_scale,
)
from exampp.cli.output import end_where_undefined, print_message, show, show_several
from exampp.errors import InputError, Undefined
from exampp.results.result import MACHINES

if TYPE_CHECKING:
    from exampp.analysis.reliability import GraderReliability, Reliability


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    OptionRule(
        ("--limit",),
        "for the formats that people read; tsv and csv hold the systems, json all items",
        lambda given: given["style"] not in MACHINES,
    ),
)
def unsaid(
    collection: CollectionOrWorkbench,
    pair: Annotated[
        list[str] | None,
        option(
            metavar="ANSWER=RETRIEVED",
            help="The system of answers and that of what they were made of; repeat for several. "
            "[default: by their names, NAME and NAME:cited, NAME:response and NAME]",
        ),
    ] = None,
    min_rating: MinRating = None,
    k: Annotated[int, option("-k", min=1, help="Passages of each system that are read.")] = 20,
    limit: Annotated[
        int, option(min=0, help="So many of the items that were left out are shown.")
    ] = 20,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    subtopics: Subtopics = SubtopicMode.auto,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Retrieved but not said: does retrieval or generation lose more of the exam?

    Compares the answers of RAG systems with what they were made of, item by item. tsv and csv have
    a row for every system; json has the items, too.

    Example: exampp analyze unsaid my.exam --pair generated=dense
    """
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            decisions=decisions.value,
        ).unsaid(
            None if pair is None else dict(map(_read_pair, pair)),
            min_rating=min_rating,
            k=k,
            subtopics=subtopics.value,
        )
    if style in (Style.tsv, Style.csv):
        show(found.records()["systems"], style.value, digits)
    elif style is Style.json:
        show_several(found.records(), style.value, digits)
    else:
        show_several(found.tables(limit), style.value, digits)


def _read_pair(text: str) -> tuple[str, str]:
    answer, mark, retrieved = text.partition("=")
    if not (answer and mark and retrieved):
        raise InputError(f"--pair is {text!r}", mend="Give ANSWER=RETRIEVED, two systems")
    return answer, retrieved


def _has_grades(given: OptionValues) -> bool:
    from exampp.formats.score_matrix import is_table

    return not is_table(given["collection"])


OF_GRADES = OptionRule(
    (
        *("--measure", "--min-rating", "--items", "--query-cost", "--item-cost"),
        *("--grader", "--prompt", "--kind", "--bank", "--run", "--system"),
        *("--leave-out", "--subtopics", "--missing", "--label", "--at-least", "--gains"),
        *("--decisions", "--on-error", "--scale"),
    ),
    "for grades, not for a table of scores",
    _has_grades,
)
OF_ITEMS = OptionRule(
    ("--items", "--query-cost", "--item-cost"),
    "for Cover, the mean over items",
    lambda given: given["measure"].startswith("Cover"),
)


@option_rules(
    OF_GRADES,
    OF_ITEMS,
    OF_GRADED_FILES,
    OF_READING,
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
)
def reliability(
    collection: Annotated[
        Path,
        argument(
            metavar="COLLECTION",
            help="A collection, graded passages (graded.jsonl.gz), or a table of scores by query "
            "(FILE or FILE:MEASURE).",
        ),
    ],
    measure: Annotated[
        str,
        option("--measure", "-m", help="Cover@20, or any measure of ir_measures."),
    ] = "Cover@20",
    min_rating: MinRating = None,
    target: Annotated[float, option(help="The reliability that is wanted.")] = 0.95,
    drop: Annotated[
        list[float] | None,
        option(
            help="Leave out this share of the worst systems; repeat for several. "
            "[default: 0, 0.03, 0.25]"
        ),
    ] = None,
    queries: Annotated[
        list[int] | None,
        option(
            help="Foresee an exam of so many queries; repeat for several. "
            "[default: half, as many, twice and four times as many]"
        ),
    ] = None,
    items: Annotated[
        list[int] | None,
        option(
            help="Foresee an exam of so many items per query; repeat for several. "
            "[default: half, as many, twice and four times as many]"
        ),
    ] = None,
    query_cost: Annotated[float, option(help="What one more query costs.")] = 1.0,
    item_cost: Annotated[float, option(help="What one more item of one query costs.")] = 1.0,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    missing: Missing = MissingPolicy.zero,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    samples: Annotated[int, option(help="Bootstrap samples of the queries, 50 or more.")] = 1000,
    seed: Annotated[int, option(help="Seed of the samples.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Show how reliable the order of systems is, and how many queries and items it takes.

    Studies all systems, and the same without the worst. With several graders, graders are a facet.

    Example: exampp analyze reliability my.exam --target 0.9
    """
    from exampp.analysis.reliability import DROPS, ReliabilitySettings, reliability, scored_table

    settings = ReliabilitySettings(
        target=target,
        drop=tuple(drop or DROPS),
        queries=tuple(queries or ()),
        items=tuple(items or ()),
        query_cost=query_cost,
        item_cost=item_cost,
        samples=samples,
        seed=seed,
    )
    if not _has_grades({"collection": collection}):
        _show(reliability(scored_table(collection), settings), style, digits)
        return
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.panel(
            *(grader or ()),
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank or None,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).reliability(
            measure,
            settings=settings,
            min_rating=min_rating,
            subtopics=subtopics.value,
            missing=missing.value,
            labelling=exampp.Labelling(label.value, at_least, gains.value),
        )
    _show(found, style, digits)


def _show(found: Reliability | GraderReliability, style: Style, digits: int | None) -> None:
    tables = found.records() if style.value in MACHINES else found.tables()
    show_several(tables, style.value, digits)
    estimates = [study.erho2 for one in _members(found) for study in one.studies]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


def _members(found: Reliability | GraderReliability) -> list[Reliability]:
    from exampp.analysis.reliability import GraderReliability

    return list(found.members.values()) if isinstance(found, GraderReliability) else [found]


class PredictorName(StrEnum):
    """What grades predict of a unit."""

    calibrated = "calibrated"
    ppi = "ppi"
    grades = "grades"


class ScopeName(StrEnum):
    """What intervals speak of."""

    pool = "pool"
    queries = "queries"


MinRelevant = Annotated[
    int | None,
    option(
        help="Lowest judgment of a relevant passage. [default: that of the plan; 2, or 1 where "
        "none is higher]"
    ),
]


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    OptionRule(
        ("--min-relevant",),
        "for measures of relevant passages, such as P@20",
        lambda given: not str(given["measure"]).lstrip("n").startswith("Cover"),
    ),
    OptionRule(
        ("--over",),
        "for tables that people read: tsv, csv and json hold both",
        lambda given: given["style"] not in MACHINES,
    ),
    OptionRule(
        ("--pairs",),
        "where tables hold systems: json holds both",
        lambda given: given["style"] is not Style.json,
    ),
)
def corrected(
    collection: CollectionOrWorkbench,
    measure: Annotated[
        str,
        option("--measure", "-m", help="P@20, RBP@20 or Cover@20: a sum over passages or items."),
    ] = "P@20",
    min_rating: MinRating = None,
    min_relevant: MinRelevant = None,
    plan: Annotated[
        int | None,
        option(help="The number of the sample. [default: the newest that fits the measure]"),
    ] = None,
    over: Annotated[
        ScopeName,
        option(help="Intervals for these queries and their pool, or for queries like these."),
    ] = ScopeName.pool,
    predictor: Annotated[
        PredictorName,
        option(
            help="What grades predict: what people said of drawn passages with such grades, the "
            "grades' label times the lambda of PPI++, or that label."
        ),
    ] = PredictorName.calibrated,
    alpha: Annotated[float, option(help="An interval misses the truth so often at most.")] = 0.05,
    looks: Annotated[
        int,
        option(help="How often intervals are looked at while the sample grows: alpha/LOOKS."),
    ] = 1,
    seed: Annotated[int, option(help="Seed of the intervals of all pairs at once.")] = 0,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    pairs: Annotated[bool, option("--pairs", help="A row for every pair of systems.")] = False,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Correct the leaderboard by a sample that people decided, beside grades and people alone.

    The sample comes from exampp review COLLECTION plan; where judgments cover the whole pool none
    is needed. tsv and csv have a row a system, way and scope; json has these and the pairs.

    Example: exampp analyze corrected my.exam -m P@20
    """
    from exampp.analysis.corrected import CorrectionSettings

    settings = CorrectionSettings(predictor.value, over.value, alpha, looks, seed=seed)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        grades = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
        )
        found = grades.corrected(
            measure,
            settings=settings,
            min_rating=min_rating,
            min_relevant=min_relevant,
            plan=plan,
        )
    if style is Style.json:
        show_several(found.records(), style.value, digits)
    elif pairs:
        of_pairs = found.records()["pairs"] if style.value in MACHINES else found.compared()
        show(of_pairs, style.value, digits)
    elif style in (Style.tsv, Style.csv):
        show(found.records()["scores"], style.value, digits)
    else:
        show_several(found.tables(), style.value, digits)


class FittedKind(StrEnum):
    """What is fitted."""

    logistic = "logistic"
    isotonic = "isotonic"


@option_rules(OF_GRADED_FILES, OF_READING)
def calibration(
    collection: CollectionOrWorkbench,
    grader: Annotated[
        list[str] | None,
        option(
            help="Whose ratings: a model, model:prompt, or the start of its key; repeat to learn "
            "from several together."
        ),
    ] = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    model: Annotated[
        FittedKind,
        option(
            help="logistic: all ratings of a passage; isotonic: their mean, any curve.",
            panel=ASKED_FOR,
        ),
    ] = FittedKind.logistic,
    min_relevant: Annotated[
        int | None,
        option(
            help="Probabilities are told for judgments of at least this. [default: 2, or 1 where "
            "no judgment is higher]"
        ),
    ] = None,
    folds: Annotated[int, option(min=2, help="Groups of queries, each held out once.")] = 5,
    samples: Annotated[int, option(help="Bootstrap samples of the queries.")] = 1000,
    seed: Annotated[int, option(help="Seed of folds and samples.")] = 0,
    save: Annotated[
        Path | None,
        option(dir_okay=False, help="Write the calibration to this file, for exampp calibrate."),
    ] = None,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Learn people's labels from the ratings of passages, tried on queries that were held out.

    Shows what the calibration is worth, its reliability curve, and labels against people's.
    COLLECTION is only read; exampp calibrate labels passages with what --save writes.

    Example: exampp analyze calibration my.exam --save my.calibration
    """
    from exampp.analysis.calibration import CalibrationSettings
    from exampp.formats.output import check_outputs
    from exampp.records.graders import choose_grader

    check_outputs([save], [collection, bank])
    settings = CalibrationSettings(model.value, folds, min_relevant, samples, seed)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        of_kind = kind.value if kind else None
        names = [
            # one that fits is chosen, and of several one must be named
            choose_grader(opened.graders, grader=name, prompt=prompt, kind=of_kind).key
            for name in grader or (None,)
        ]
        found = opened.panel(*names, bank=bank, decisions=decisions.value).calibration(settings)
    if save:
        found.save(save)
    machine = style in (Style.tsv, Style.csv, Style.json)
    show_several(found.records() if machine else found.tables(), style.value, digits)
    if save:
        print_message(f"{save}: exampp calibrate COLLECTION {save} labels passages with it")


def citations(
    collection: CollectionFile,
    first: Annotated[
        bool,
        option(
            "--first", help="Only the first citation of a sentence counts, as at TREC RAG 2024."
        ),
    ] = False,
    grader: GraderName = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Precision and recall of citations: are sentences supported by what they cite?

    Of a collection that exampp citations made, graded with --prompt citation-support.

    Example: exampp analyze citations cited.exam
    """
    with exampp.Collection(collection) as opened:
        found = opened.grades(grader).citations(first=first)
    if style in MACHINES:
        show(found.records()["citations"], style.value, digits)
    else:
        show_several(found.tables(), style.value, digits)


class CreditName(StrEnum):
    """What an item is worth to a system."""

    covered = "covered"
    graded = "graded"


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    OptionRule(
        ("--limit",),
        "for the formats that people read; tsv, csv and json hold all items",
        lambda given: given["style"] not in MACHINES,
    ),
    OptionRule(
        ("--official", "--splits", "--seed"),
        "where tables hold the exam: tsv and csv have a row for every item",
        lambda given: given["style"] not in (Style.tsv, Style.csv),
    ),
)
def items(
    collection: CollectionOrWorkbench,
    min_rating: MinRating = None,
    k: Annotated[int, option("-k", min=1, help="Passages of each system that are read.")] = 20,
    credit: Annotated[
        CreditName,
        option(help="An item is covered or not, or has its best rating as credit."),
    ] = CreditName.covered,
    official: Officials = None,
    irt: Annotated[
        bool,
        option("--irt", help="Fit the two-parameter model: abilities with standard errors."),
    ] = False,
    min_relevant: Annotated[
        int | None,
        option(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR. "
            "[default: 2, or 1 where none is higher]"
        ),
    ] = None,
    limit: Annotated[int, option(min=0, help="So many of the items to look at are shown.")] = 20,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    splits: Annotated[int, option(min=2, help="Random halves of items and queries.")] = 1000,
    seed: Annotated[int, option(min=0, help="Seed of the halves.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Look at the exam itself: how reliable it is, and which items to look at first.

    Systems are the examinees. tsv and csv have a row for every item; json has everything. With
    --official it is told what an exam of fewer items would gain.

    Example: exampp analyze items my.exam --official leaderboard.json
    """
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
        ).items(
            min_rating=min_rating,
            k=k,
            subtopics=subtopics.value,
            credit=credit.value,
            official=[str(one) for one in official or ()],
            min_relevant=min_relevant,
            irt=irt,
            splits=splits,
            seed=seed,
        )
    if style in (Style.tsv, Style.csv):
        show(found.records()["items"], style.value, digits)
    elif style is Style.json:
        show_several(found.records(), style.value, digits)
    else:
        show_several(found.tables(limit), style.value, digits)
    end_where_undefined([row.alpha for row in found.exams], [found.undefined])


def at_cutoffs(given: OptionValues) -> OptionValues:
    """The values with a cutoff at every measure that is crossed with all of them."""
    from exampp.analysis.sensitivity import takes_cutoff

    measures = [f"{one}@1" if takes_cutoff(one) else one for one in given["measure"] or ()]
    return {**given, "measure": measures}


def _of_measures(rule: OptionRule) -> OptionRule:
    return OptionRule(rule.options, rule.only, lambda given: rule.where(at_cutoffs(given)))


def _crosses_cutoffs(given: OptionValues) -> bool:
    asked = given["measure"]
    return not asked or at_cutoffs(given)["measure"] != asked


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    *map(_of_measures, (*LABELLING, OF_MEASURES["--min-rating"], OF_MEASURES["--missing"])),
    OptionRule(("--cutoff",), "for measures without a cutoff of their own", _crosses_cutoffs),
)
def sensitivity(
    collection: CollectionOrWorkbench,
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover, P, or any measure of ir_measures, without a cutoff for all --cutoff; "
            "repeat for several. [default: Cover, P, nDCG]",
        ),
    ] = None,
    cutoff: Annotated[
        list[int] | None,
        option(help="A cutoff; repeat for several. [default: 5, 10, 20]"),
    ] = None,
    min_rating: AllMinRatings = None,
    missing: Annotated[
        list[MissingPolicy] | None,
        option(help="What cells without a grade are; repeat for several. [default: zero, skip]"),
    ] = None,
    official: Officials = None,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Tell what of the leaderboard survives all choices of thresholds, cutoffs, measures, graders.

    All combinations are evaluated: the range of ranks of each system, how many pairs keep their
    order, what missing cells could change. With --official, Kendall's tau of every one of them.

    Example: exampp analyze sensitivity my.exam -m Cover --cutoff 5 --cutoff 20
    """
    from exampp.analysis.sensitivity import CUTOFFS, MEASURES, POLICIES, Declaration

    declaration = Declaration(
        measures=tuple(measure or MEASURES),
        cutoffs=tuple(cutoff or CUTOFFS),
        min_ratings=tuple(min_rating or ()),
        missing=tuple(one.value for one in missing) if missing else POLICIES,
    )
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.panel(
            *(grader or ()),
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank or None,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).sensitivity(
            declaration,
            official=official or (),
            subtopics=subtopics.value,
            labelling=exampp.Labelling(label.value, at_least, gains.value),
        )
    tables = found.records() if style.value in MACHINES else found.tables()
    show_several(tables, style.value, digits)
    if found.reason:
        raise Undefined(f"nothing could be compared: {found.reason}")
