"""Commands of `exampp analyze` that look at the exam and the grader rather than at systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import exampp
from exampp.cli.command import ASKED_FOR, OptionRule, OptionValues, option_rules, without_options
from exampp.cli.options import (
    OF_MEASURES,
    AllMinRatings,
    Depth,
    MatchBy,
    MinRating,
    Officials,
    Subtopics,
    for_people,
    opened_grades,
    opened_panel,
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
    Kind,
    MissingPolicy,
    NumberDisplay,
    ResamplingOptions,
    Selection,
    SeveralSelection,
)


@option_rules(
    OptionRule(
        (
            "--prompt",
            "--kind",
            "--targets",
            "--seed",
            "--attack",
            "--rating",
            "--texts",
            "--dry-run",
        ),
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
        lambda values: not values["build"],
    ),
    OptionRule(
        ("--battery",),
        "where a battery is read or written, not with --dry-run",
        lambda values: not (values["build"] and values["dry_run"]),
    ),
)
@without_options("runs", "systems", "without", "decisions")
def attacks(
    selection: Selection,
    build: Annotated[
        bool,
        keyword("--build", help="Build the collection of attacks; then grade it."),
    ] = False,
    battery: Annotated[
        Path | None,
        keyword(help="Use this collection of attacks. [default: my.attacks.exam beside my.exam]"),
    ] = None,
    min_rating: MinRating = None,
    prompt: Annotated[
        str | None,
        keyword(
            help="Imitate the delimiters of this prompt. [default: question-self-rating]",
            panel=ASKED_FOR,
            rare=True,
        ),
    ] = None,
    kind: Annotated[
        Kind | None,
        keyword(help="Attack items of this kind.", panel=ASKED_FOR, rare=True),
    ] = None,
    targets: Annotated[
        int, keyword(min=1, help="Attack this many passages of each query.", rare=True)
    ] = 20,
    attack: Annotated[
        list[str] | None,
        keyword(
            help="Build only this attack, such as A3. Repeat for several. [default: all]",
            rare=True,
        ),
    ] = None,
    rating: Annotated[
        int, keyword(min=0, help="Claim this rating in forged verdicts.", rare=True)
    ] = 5,
    seed: Annotated[int, keyword(min=0, help="Seed of the attacks.", rare=True)] = 0,
    texts: Annotated[
        Path | None, keyword(help="Write the attack texts to this JSONL file.", rare=True)
    ] = None,
    dry_run: Annotated[
        bool,
        keyword("--dry-run", help="Print what --build would make, and its grading cost."),
    ] = False,
    *,
    display: NumberDisplay,
) -> None:
    """Test whether the grader can be gamed.

    Takes three steps: build attack texts (--build), grade them like the exam (exampp grade), and
    show the effect of attacks beside benign controls.

    Example: exampp analyze attacks my.exam --build
    """
    if build:
        from exampp.analysis.attacks.battery import PROMPT, BatterySettings

        how = BatterySettings(targets, seed, tuple(attack or ()), prompt or PROMPT, rating)
        with exampp.Collection(selection.collection) as opened:
            battery_result = opened.bank(selection.bank).build_battery(
                battery, settings=how, kind=kind, texts=texts, dry_run=dry_run
            )
        show(battery_result, display)
        return
    with opened_grades(selection) as grades:
        show(grades.attacks(battery, min_rating=min_rating), display)


def check_reference(opened: exampp.Collection, reference: str | None) -> list[str]:
    """Return the names of the banks.

    Raises InputError if none of several is named as the reference bank.
    """
    known = list(dict.fromkeys(str(name) for name, *_ in opened.banks().rows))
    if reference is None and (len(known) > 1 or not opened.graders):
        names = ", ".join(known)
        hint = f"Name it with --reference: {names}" if names else "Import one: exampp import"
        raise InputError("no reference bank", file=opened.path, hint=hint)
    return known


@option_rules(
    OptionRule(
        ("--bank", "--effect"),
        "with --reference",
        lambda values: values["reference"] is not None,
    ),
    OptionRule(
        ("--by",),
        "with --reference, which matches banks without a grader, and without --effect",
        lambda values: values["reference"] is not None and not values["effect"],
    ),
    OptionRule(
        ("--min-rating",),
        "for a collection of matches (exampp bank match), without --reference, and for --effect",
        lambda values: values["reference"] is None or bool(values["effect"]),
    ),
    OptionRule(
        ("--grader",),
        "for a collection of matches, without --reference, for --by coverage and for --effect",
        lambda values: (
            values["reference"] is None or bool(values["effect"]) or values["by"] == "coverage"
        ),
    ),
    OptionRule(("--measure", "--official"), "with --effect", lambda values: bool(values["effect"])),
    OptionRule(
        ("-k", "--best", "--shared", "--table"),
        "for matched items, not with --effect",
        lambda values: not values["effect"],
    ),
)
def banks(
    collection: CollectionFile,
    reference: Annotated[
        str | None,
        keyword(help="Compare with this bank, by texts or keys. Not for a collection of matches."),
    ] = None,
    bank: Annotated[
        list[str] | None,
        keyword(help="Compare this bank. Repeat for several. [default: all others]"),
    ] = None,
    by: MatchBy = "text",
    k: Annotated[
        int | None,
        keyword("-k", min=1, help="Count only the first k items of each bank and query."),
    ] = None,
    best: Annotated[
        int,
        keyword(min=0, help="List the best items of each query, so many, from all banks."),
    ] = 0,
    shared: Annotated[
        bool,
        keyword("--shared", help="Leave out queries of which no other bank has items.", rare=True),
    ] = False,
    grader: GraderName = None,
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that is the same, on another scale than that of item-match.",
            rare=True,
        ),
    ] = None,
    table: Annotated[
        Literal["banks", "missing", "new", "pairs", "best"] | None,
        keyword(help="Print this table alone, in full."),
    ] = None,
    effect: Annotated[
        bool,
        keyword("--effect", help="Compare the leaderboards of banks that one grader has graded."),
    ] = False,
    measure: Annotated[
        str, keyword("--measure", "-m", help="Rank systems by this measure.", rare=True)
    ] = "Cover@20",
    official: Officials = None,
    *,
    display: NumberDisplay,
) -> None:
    """Compare banks with a reference bank.

    Shows recall, precision, redundancy and novelty of each bank, and the items behind them. To
    match items by a model or by people, make a collection of matches with exampp bank match. Grade
    it, and analyze it without --reference. --effect compares the order of systems.

    Example: exampp analyze banks teams.exam --reference main
    """
    with exampp.Collection(collection) as opened:
        known = check_reference(opened, reference)
        if effect and reference is not None:
            panel = opened.panel(*filter(None, [grader]), bank=[reference, *(bank or known)])
            show(
                panel.bank_effects(
                    reference, measure, min_rating=min_rating, official=official or ()
                ),
                display,
            )
            return
        found = opened.compare_banks(
            reference,
            bank or (),
            matcher=by,
            grader=grader,
            k=k,
            best=best,
            shared=shared,
            min_rating=min_rating,
        )
    if table is None and display.style not in ("tsv", "csv"):
        show(found, display)
        return
    records, name = found.records(), table or "banks"
    if name not in records:
        raise InputError("no items were chosen", hint="Choose some: --best 5")
    show(records[name], display)


def calibration(
    collection: ExamFile,
    grader: Annotated[
        list[str] | None,
        keyword(
            help="Learn from this grader: a model, prompt, model:prompt, kind, or key. Repeat to "
            "learn from several together."
        ),
    ] = None,
    bank: BankName = None,
    model: Annotated[
        Literal["logistic", "isotonic"],
        keyword(
            help="Fit a logistic model of all ratings, or an isotonic curve of their mean.",
            panel=ASKED_FOR,
            rare=True,
        ),
    ] = "logistic",
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment that is relevant. [default: 2, or 1 if none is higher]",
            rare=True,
        ),
    ] = None,
    folds: Annotated[
        int,
        keyword(min=2, help="Test on this many groups of queries, each held out once.", rare=True),
    ] = 5,
    save: Annotated[
        Path | None,
        keyword(dir_okay=False, help="Write the calibration to this file, for exampp calibrate."),
    ] = None,
    decisions: DecisionMode = "with",
    *,
    resampling: ResamplingOptions,
    display: NumberDisplay,
) -> None:
    """Learn human labels from the ratings of passages, tested on held-out queries.

    Shows the quality of the calibration, its reliability curve, and labels beside human labels. To
    label passages, pass the file of --save to exampp calibrate.

    Example: exampp analyze calibration my.exam --save my.calibration
    """
    from exampp.analysis.calibration import CalibrationSettings
    from exampp.formats.output import check_outputs
    from exampp.records.graders import choose_grader

    check_outputs([save], [collection, bank])
    settings = CalibrationSettings(model, folds, min_relevant, resampling.samples, resampling.seed)
    with exampp.open(collection) as opened:
        names = [
            # one that fits is chosen, and of several one must be named
            choose_grader(opened.graders, grader=name).key
            for name in grader or (None,)
        ]
        found = opened.panel(*names, bank=bank, decisions=decisions).calibration(settings)
    if save:
        found.save(save)
    show(found, display)
    if save:
        print_message(f"{save}: exampp calibrate COLLECTION {save} labels passages with it")


def abstention(
    selection: Selection,
    level: Annotated[
        float, keyword(help="Lowest Cover of a right answer, above 0 and at most 1.", rare=True)
    ] = 0.5,
    by: Annotated[
        str | None,
        keyword(
            help="Recognise abstentions by this grader, or by rule. [default: a grader with the "
            "prompt abstention, if there is one]"
        ),
    ] = None,
    min_rating: MinRating = None,
    k: Depth = 20,
    *,
    display: NumberDisplay,
) -> None:
    """Count right answers, right abstentions, and wrong responses, beside Cover.

    Mark unanswerable queries in a query file: "answerable": false.

    Example: exampp analyze abstention museum.exam
    """
    with opened_grades(selection) as grades:
        show(grades.abstention(min_rating=min_rating, k=k, level=level, by=by), display)


def citations(
    collection: CollectionFile,
    first: Annotated[
        bool,
        keyword(
            "--first", help="Count only the first citation of a sentence, as in TREC RAG 2024."
        ),
    ] = False,
    grader: GraderName = None,
    *,
    display: NumberDisplay,
) -> None:
    """Measure precision and recall of citations.

    A citation is right if its passage supports the sentence. Make the collection with exampp
    citations and grade it with --prompt citation-support.

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
        keyword("--measure", "-m", help="P@20, RBP@20 or Cover@20."),
    ] = "P@20",
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment of a relevant passage. [default: as in the sample; 2, or 1 if "
            "none is higher]",
            rare=True,
        ),
    ] = None,
    plan: Annotated[
        int | None,
        keyword(
            "--sample",
            help="Use the sample with this number. [default: the newest that fits the measure]",
            rare=True,
        ),
    ] = None,
    over: Annotated[
        Literal["pool", "queries"],
        keyword(
            help="Print intervals for these queries and their pool, or for queries like these.",
            rare=True,
        ),
    ] = "pool",
    alpha: Annotated[float, keyword(help="Use intervals of level 1 - alpha.", rare=True)] = 0.05,
    pairs: Annotated[
        bool, keyword("--pairs", help="Print a row for every pair of systems.")
    ] = False,
    *,
    display: NumberDisplay,
) -> None:
    """Correct the leaderboard with a sample of human judgments.

    Shows the scores beside those by grades alone and by people alone. Draw the sample with exampp
    review COLLECTION sample; judgments of the whole pool need none. tsv and csv have a row per
    system, estimate and scope; json has these and the pairs.

    Example: exampp analyze corrected my.exam -m P@20
    """
    from exampp.analysis.corrected import CorrectionSettings

    settings = CorrectionSettings(over, alpha)
    with opened_grades(selection, [measure]) as grades:
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
        ("--official",),
        "where tables hold the exam: tsv and csv have a row for every item",
        lambda values: values["style"] not in ("tsv", "csv"),
    ),
)
@without_options("decisions")
def items(
    selection: Selection,
    min_rating: MinRating = None,
    k: Depth = 20,
    official: Officials = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR. [default: 2, "
            "or 1 if none is higher]",
            rare=True,
        ),
    ] = None,
    limit: Annotated[int, keyword(min=0, help="Show this many of the items to review.")] = 20,
    subtopics: Subtopics = "auto",
    *,
    display: NumberDisplay,
) -> None:
    """Analyze the exam itself: its reliability, and the items to review first.

    tsv and csv have a row for every item; json has everything. With --official, the table also
    shows the gain from an exam of fewer items.

    Example: exampp analyze items my.exam --official leaderboard.json
    """
    with opened_grades(selection) as grades:
        found = grades.items(
            min_rating=min_rating,
            k=k,
            subtopics=subtopics,
            official=[str(one) for one in official or ()],
            min_relevant=min_relevant,
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
    OF_MEASURES["--min-rating"],
)
@without_options("decisions")
def reliability(
    selection: Selection,
    measure: Annotated[
        str,
        keyword("--measure", "-m", help="Cover@20, or any measure of ir_measures."),
    ] = "Cover@20",
    min_rating: MinRating = None,
    target: Annotated[float, keyword(help="Find the exams that reach this reliability.")] = 0.95,
    drop: Annotated[
        list[float] | None,
        keyword(
            help="Leave out this share of the worst systems. Repeat for several. "
            "[default: 0, 0.03, 0.25]",
            rare=True,
        ),
    ] = None,
    queries: Annotated[
        list[int] | None,
        keyword(
            help="Project an exam of this many queries. Repeat for several. [default: half, as "
            "many, twice and four times as many]"
        ),
    ] = None,
    items: Annotated[
        list[int] | None,
        keyword(
            help="Project an exam of this many items per query. Repeat for several. "
            "[default: half, as many, twice and four times as many]"
        ),
    ] = None,
    subtopics: Subtopics = "auto",
    *,
    resampling: ResamplingOptions,
    display: NumberDisplay,
) -> None:
    """Show how reliable the ranking of systems is, and how many queries and items it needs.

    Studies all systems, and then all but the worst.

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
    with opened_grades(selection, [measure]) as grades:
        found = grades.reliability(
            measure,
            settings=settings,
            min_rating=min_rating,
            subtopics=subtopics,
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
    *map(_at_cutoffs, (OF_MEASURES["--min-rating"], OF_MEASURES["--missing"])),
    OptionRule(
        ("--cutoff",),
        "for measures without a cutoff",
        lambda values: not values["measure"] or at_cutoffs(values)["measure"] != values["measure"],
    ),
)
@without_options("decisions")
def sensitivity(
    selection: SeveralSelection,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover, P, or any measure of ir_measures; without a cutoff, all of --cutoff "
            "apply. Repeat for several. [default: Cover, P, nDCG]",
        ),
    ] = None,
    cutoff: Annotated[
        list[int] | None,
        keyword(help="Try this cutoff. Repeat for several. [default: 5, 10, 20]"),
    ] = None,
    min_rating: AllMinRatings = None,
    missing: Annotated[
        list[MissingPolicy] | None,
        keyword(
            help="Count cells without a grade as not covered, skip them, or use both bounds. "
            "Repeat for several. [default: zero, skip]",
            rare=True,
        ),
    ] = None,
    official: Officials = None,
    subtopics: Subtopics = "auto",
    *,
    display: NumberDisplay,
) -> None:
    """Show which results survive all choices of thresholds, cutoffs, measures and graders.

    Evaluates all combinations: the range of ranks of each system, the pairs that keep their order,
    the possible effect of missing cells. With --official, shows Kendall's tau of every combination.

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
@without_options("runs", "systems", "without", "decisions")
def unsaid(
    selection: Selection,
    pair: Annotated[
        list[str] | None,
        keyword(
            metavar="ANSWER=RETRIEVED",
            help="Compare the system of answers with the system of its source passages. Repeat "
            "for several. [default: NAME and NAME:contexts or NAME:cited]",
        ),
    ] = None,
    min_rating: MinRating = None,
    k: Depth = 20,
    limit: Annotated[int, keyword(min=0, help="Show this many items of each list.")] = 20,
    subtopics: Subtopics = "auto",
    *,
    display: NumberDisplay,
) -> None:
    """Show whether retrieval or generation loses more.

    Compares the answers of RAG systems with their source passages, item by item. Lists the items
    that each step misses. tsv and csv have a row for every system; json has the items, too.

    Example: exampp analyze unsaid demo.exam --pair chat-v2=rerank
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
