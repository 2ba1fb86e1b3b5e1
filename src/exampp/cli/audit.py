"""Commands of `exampp analyze` that look at the exam and the grader rather than at systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import exampp
from exampp.cli.command import ASKED_FOR, OptionRule, OptionValues, option_rules, without_options
from exampp.cli.options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    AllMinRatings,
    MinRating,
    Missing,
    Officials,
    Subtopics,
    for_people,
    labelling,
    opened_grades,
    opened_panel,
    rating_scale,
)
from exampp.cli.output import end_where_undefined, print_message, show
from exampp.errors import InputError, Undefined
from exampp.records.options import keyword
from exampp.records.selection import (
    BankName,
    CollectionFile,
    DecisionMode,
    ExamFile,
    GraderName,
    ItemKind,
    Labels,
    MissingPolicy,
    NumberDisplay,
    OnError,
    PromptName,
    ResamplingOptions,
    Scale,
    Selection,
    SeveralSelection,
)


def _shows(values: OptionValues) -> bool:
    return not values["build"]


@option_rules(
    OptionRule(
        ("--targets", "--seed", "--attack", "--rating", "--texts", "--dry-run"),
        "where a battery is made, with --build",
        lambda values: bool(values["build"]),
    ),
    OptionRule(
        (
            "--grader",
            "--min-rating",
            "--digits",
        ),
        "where results are shown, not with --build",
        _shows,
    ),
    OptionRule(
        ("--battery",),
        "where a battery is read or written, not with --dry-run",
        lambda values: _shows(values) or not values["dry_run"],
    ),
)
@without_options("runs", "systems", "without", "decisions", "on_error", "scale")
def attacks(
    selection: Selection,
    build: Annotated[
        bool,
        keyword("--build", help="Build the collection of attacks, to be graded by exampp grade."),
    ] = False,
    battery: Annotated[
        Path | None,
        keyword(help="The collection of attacks. [default: my.attacks.exam beside my.exam]"),
    ] = None,
    min_rating: MinRating = None,
    targets: Annotated[int, keyword(min=1, help="Passages of each query that are attacked.")] = 20,
    attack: Annotated[
        list[str] | None,
        keyword(help="Only this attack, such as A3; repeat for several. [default: all]"),
    ] = None,
    rating: Annotated[int, keyword(min=0, help="The rating in forged verdicts.")] = 5,
    seed: Annotated[int, keyword(min=0, help="Seed of all draws.")] = 0,
    texts: Annotated[
        Path | None, keyword(help="Write the texts to this file, for people to read (JSONL).")
    ] = None,
    dry_run: Annotated[
        bool,
        keyword("--dry-run", help="Print what --build would make and what grading it would cost."),
    ] = False,
    *,
    display: NumberDisplay,
) -> None:
    """Test whether the grader can be gamed.

    In three steps: make attack texts (--build), grade them as the exam was graded (exampp grade),
    and show the effect of attacks beside benign controls. With --build, --prompt is the prompt
    whose delimiters are imitated (question-self-rating by default).

    Example: exampp analyze attacks my.exam --build
    """
    if build:
        from exampp.analysis.attacks.battery import PROMPT, BatterySettings

        how = BatterySettings(
            targets, seed, tuple(attack or ()), selection.prompt or PROMPT, rating
        )
        with exampp.Collection(selection.collection) as opened:
            battery_result = opened.bank(selection.bank).build_battery(
                battery, settings=how, kind=selection.kind, texts=texts, dry_run=dry_run
            )
        show(battery_result, display)
        return
    with opened_grades(selection) as grades:
        show(grades.attacks(battery, min_rating=min_rating), display)


@option_rules(OF_GRADED_FILES)
def calibration(
    collection: ExamFile,
    grader: Annotated[
        list[str] | None,
        keyword(
            help="The grader: a model, model:prompt, or the start of its key; repeat to learn "
            "from several together."
        ),
    ] = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    model: Annotated[
        Literal["logistic", "isotonic"],
        keyword(
            help="logistic: all ratings of a passage; isotonic: their mean, any curve.",
            panel=ASKED_FOR,
        ),
    ] = "logistic",
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment for which probabilities are reported. [default: 2, or 1 if no "
            "judgment is higher]"
        ),
    ] = None,
    folds: Annotated[int, keyword(min=2, help="Groups of queries; each is held out once.")] = 5,
    save: Annotated[
        Path | None,
        keyword(dir_okay=False, help="Write the calibration to this file, for exampp calibrate."),
    ] = None,
    decisions: DecisionMode = "with",
    on_error: OnError = "refuse",
    scale: Scale = None,
    *,
    resampling: ResamplingOptions,
    display: NumberDisplay,
) -> None:
    """Learn human labels from the ratings of passages, tested on held-out queries.

    Shows the quality of the calibration, its reliability curve, and labels beside human ones.
    COLLECTION is only read; exampp calibrate labels passages with the file of --save.

    Example: exampp analyze calibration my.exam --save my.calibration
    """
    from exampp.analysis.calibration import CalibrationSettings
    from exampp.formats.output import check_outputs
    from exampp.records.graders import choose_grader

    check_outputs([save], [collection, bank])
    settings = CalibrationSettings(model, folds, min_relevant, resampling.samples, resampling.seed)
    with exampp.open(collection, on_error, rating_scale(scale)) as opened:
        names = [
            # one that fits is chosen, and of several one must be named
            choose_grader(opened.graders, grader=name, prompt=prompt, kind=kind).key
            for name in grader or (None,)
        ]
        found = opened.panel(*names, bank=bank, decisions=decisions).calibration(settings)
    if save:
        found.save(save)
    show(found, display)
    if save:
        print_message(f"{save}: exampp calibrate COLLECTION {save} labels passages with it")


def citations(
    collection: CollectionFile,
    first: Annotated[
        bool,
        keyword(
            "--first", help="Count only the first citation of a sentence, as at TREC RAG 2024."
        ),
    ] = False,
    grader: GraderName = None,
    *,
    display: NumberDisplay,
) -> None:
    """Measure precision and recall of citations: do cited passages support the sentences?

    The collection is one that exampp citations made, graded with --prompt citation-support.

    Example: exampp analyze citations cited.exam
    """
    with exampp.Collection(collection) as opened:
        found = opened.grades(grader).citations(first=first)
    show(found.records()["citations"] if display.for_programs else found, display)


@option_rules(
    OptionRule(
        ("--min-relevant",),
        "for measures of relevant passages, such as P@20",
        lambda values: not str(values["measure"]).lstrip("n").startswith("Cover"),
    ),
    for_people("--over", only="for tables that people read: tsv, csv and json hold both"),
    OptionRule(
        ("--pairs",),
        "where tables hold systems: json holds both",
        lambda values: values["style"] != "json",
    ),
)
@without_options("decisions")
def corrected(
    selection: Selection,
    measure: Annotated[
        str,
        keyword("--measure", "-m", help="P@20, RBP@20 or Cover@20: a sum over passages or items."),
    ] = "P@20",
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment of a relevant passage. [default: that of the plan; 2, or 1 if "
            "none is higher]"
        ),
    ] = None,
    plan: Annotated[
        int | None,
        keyword(help="The number of the sample. [default: the newest that fits the measure]"),
    ] = None,
    over: Annotated[
        Literal["pool", "queries"],
        keyword(help="Intervals for these queries and their pool, or for queries like these."),
    ] = "pool",
    alpha: Annotated[
        float, keyword(help="The share of intervals that may miss the true value.")
    ] = 0.05,
    seed: Annotated[int, keyword(help="Seed of the simultaneous intervals of all pairs.")] = 0,
    pairs: Annotated[
        bool, keyword("--pairs", help="Print a row for every pair of systems.")
    ] = False,
    *,
    display: NumberDisplay,
) -> None:
    """Correct the leaderboard by a sample of human decisions, beside grades and people alone.

    The sample comes from exampp review COLLECTION plan; if judgments cover the whole pool none is
    needed. tsv and csv have a row per system, estimate and scope; json has these and the pairs.

    Example: exampp analyze corrected my.exam -m P@20
    """
    from exampp.analysis.corrected import CorrectionSettings

    settings = CorrectionSettings(over, alpha, seed=seed)
    with opened_grades(selection) as grades:
        found = grades.corrected(
            measure,
            settings=settings,
            min_rating=min_rating,
            min_relevant=min_relevant,
            plan=plan,
        )
    if display.style == "json" or not (pairs or display.for_programs):
        show(found, display)
    elif not display.for_programs:
        show(found.compared(), display)
    else:
        show(found.records()["pairs" if pairs else "scores"], display)


@option_rules(
    for_people(
        "--limit", only="for the formats that people read; tsv, csv and json hold all items"
    ),
    OptionRule(
        ("--official", "--splits", "--seed"),
        "where tables hold the exam: tsv and csv have a row for every item",
        lambda values: values["style"] not in ("tsv", "csv"),
    ),
)
def items(
    selection: Selection,
    min_rating: MinRating = None,
    k: Annotated[int, keyword("-k", min=1, help="How many passages of each system count.")] = 20,
    official: Officials = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR. [default: 2, "
            "or 1 if none is higher]"
        ),
    ] = None,
    limit: Annotated[int, keyword(min=0, help="How many of the items to review are shown.")] = 20,
    subtopics: Subtopics = "auto",
    splits: Annotated[
        int, keyword(min=2, help="How many random halves of items and queries are drawn.")
    ] = 1000,
    seed: Annotated[int, keyword(min=0, help="Seed of the halves.")] = 0,
    *,
    display: NumberDisplay,
) -> None:
    """Analyze the exam itself: its reliability, and the items to review first.

    Systems are the examinees. tsv and csv have a row for every item; json has everything. With
    --official it shows the gain from an exam of fewer items.

    Example: exampp analyze items my.exam --official leaderboard.json
    """
    with opened_grades(selection) as grades:
        found = grades.items(
            min_rating=min_rating,
            k=k,
            subtopics=subtopics,
            official=[str(one) for one in official or ()],
            min_relevant=min_relevant,
            splits=splits,
            seed=seed,
        )
    if display.style in ("tsv", "csv"):
        show(found.records()["items"], display)
    else:
        show(found if display.for_programs else found.tables(limit), display)
    end_where_undefined([row.alpha for row in found.exams], [found.undefined])


@option_rules(
    OptionRule(
        ("--items",),
        "for Cover, the mean over items",
        lambda values: values["measure"].startswith("Cover"),
    ),
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
)
def reliability(
    selection: Selection,
    measure: Annotated[
        str,
        keyword("--measure", "-m", help="Cover@20, or any measure of ir_measures."),
    ] = "Cover@20",
    min_rating: MinRating = None,
    target: Annotated[float, keyword(help="The target reliability.")] = 0.95,
    drop: Annotated[
        list[float] | None,
        keyword(
            help="Leave out this share of the worst systems; repeat for several. "
            "[default: 0, 0.03, 0.25]"
        ),
    ] = None,
    queries: Annotated[
        list[int] | None,
        keyword(
            help="Project an exam of so many queries; repeat for several. [default: half, as "
            "many, twice and four times as many]"
        ),
    ] = None,
    items: Annotated[
        list[int] | None,
        keyword(
            help="Project an exam of so many items per query; repeat for several. "
            "[default: half, as many, twice and four times as many]"
        ),
    ] = None,
    subtopics: Subtopics = "auto",
    missing: Missing = "zero",
    *,
    labels: Labels,
    resampling: ResamplingOptions,
    display: NumberDisplay,
) -> None:
    """Show how reliable the order of systems is, and how many queries and items it takes.

    Studies all systems, and the same without the worst.

    Example: exampp analyze reliability my.exam --target 0.9
    """
    from exampp.analysis.reliability import DROPS, ReliabilitySettings

    settings = ReliabilitySettings(
        target=target,
        drop=tuple(drop or DROPS),
        queries=tuple(queries or ()),
        items=tuple(items or ()),
        samples=resampling.samples,
        seed=resampling.seed,
    )
    with opened_grades(selection) as grades:
        found = grades.reliability(
            measure,
            settings=settings,
            min_rating=min_rating,
            subtopics=subtopics,
            missing=missing,
            labelling=labelling(labels),
        )
    show(found, display)
    estimates = [one.erho2 for one in found.studies]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


def at_cutoffs(values: OptionValues) -> OptionValues:
    """Return the values, with every cutoff at each measure that has none."""
    from exampp.analysis.sensitivity import takes_cutoff

    measures = [f"{one}@1" if takes_cutoff(one) else one for one in values["measure"] or ()]
    return {**values, "measure": measures}


def _at_cutoffs(rule: OptionRule) -> OptionRule:
    return OptionRule(rule.options, rule.only, lambda values: rule.where(at_cutoffs(values)))


@option_rules(
    *map(_at_cutoffs, (*LABELLING, OF_MEASURES["--min-rating"], OF_MEASURES["--missing"])),
    OptionRule(
        ("--cutoff",),
        "for measures without a cutoff",
        lambda values: not values["measure"] or at_cutoffs(values)["measure"] != values["measure"],
    ),
)
def sensitivity(
    selection: SeveralSelection,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover, P, or any measure of ir_measures, without a cutoff for all --cutoff; "
            "repeat for several. [default: Cover, P, nDCG]",
        ),
    ] = None,
    cutoff: Annotated[
        list[int] | None,
        keyword(help="A cutoff; repeat for several. [default: 5, 10, 20]"),
    ] = None,
    min_rating: AllMinRatings = None,
    missing: Annotated[
        list[MissingPolicy] | None,
        keyword(
            help="Treatment of cells without a grade; repeat for several. [default: zero, skip]"
        ),
    ] = None,
    official: Officials = None,
    subtopics: Subtopics = "auto",
    *,
    labels: Labels,
    display: NumberDisplay,
) -> None:
    """Show which results survive all choices of thresholds, cutoffs, measures, graders.

    All combinations are evaluated: the range of ranks of each system, how many pairs keep their
    order, the possible effect of missing cells. With --official, Kendall's tau of every
    combination.

    Example: exampp analyze sensitivity my.exam -m Cover --cutoff 5 --cutoff 20
    """
    from exampp.analysis.sensitivity import CUTOFFS, MEASURES, POLICIES, Declaration

    declaration = Declaration(
        measures=tuple(measure or MEASURES),
        cutoffs=tuple(cutoff or CUTOFFS),
        min_ratings=tuple(min_rating or ()),
        missing=tuple(missing or POLICIES),
    )
    with opened_panel(selection, selection.collection) as panel:
        found = panel.sensitivity(
            declaration,
            official=official or (),
            subtopics=subtopics,
            labelling=labelling(labels),
        )
    show(found, display)
    if found.reason:
        raise Undefined(f"nothing could be compared: {found.reason}")


@option_rules(
    for_people(
        "--limit",
        only="for the formats that people read; tsv and csv hold the systems, json all items",
    )
)
@without_options("runs", "systems", "without")
def unsaid(
    selection: Selection,
    pair: Annotated[
        list[str] | None,
        keyword(
            metavar="ANSWER=RETRIEVED",
            help="The system of answers and the system of its source passages; repeat for "
            "several. [default: by name, NAME and NAME:cited, NAME:response and NAME]",
        ),
    ] = None,
    min_rating: MinRating = None,
    k: Annotated[int, keyword("-k", min=1, help="How many passages of each system count.")] = 20,
    limit: Annotated[int, keyword(min=0, help="How many of the items left out are shown.")] = 20,
    subtopics: Subtopics = "auto",
    *,
    display: NumberDisplay,
) -> None:
    """Show whether retrieval or generation loses more of the exam.

    Compares the answers of RAG systems with their source passages, item by item. tsv and csv have a
    row for every system; json has the items, too.

    Example: exampp analyze unsaid my.exam --pair generated=dense
    """
    pairs = None if pair is None else dict(map(_read_pair, pair))
    with opened_grades(selection) as grades:
        found = grades.unsaid(pairs, min_rating=min_rating, k=k, subtopics=subtopics)
    if display.style in ("tsv", "csv"):
        show(found.records()["systems"], display)
    else:
        show(found if display.for_programs else found.tables(limit), display)


def _read_pair(text: str) -> tuple[str, str]:
    answer, mark, retrieved = text.partition("=")
    if not (answer and mark and retrieved):
        raise InputError(f"--pair is {text!r}", hint="Give ANSWER=RETRIEVED, two systems")
    return answer, retrieved
