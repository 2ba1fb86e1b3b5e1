"""`exampp analyze significance`: which systems of a leaderboard differ."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import exampp
from exampp.cli.board_options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_READING,
    AtLeast,
    CountDecisions,
    DecisionMode,
    Digits,
    Gains,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    Measures,
    MinRatings,
    Missing,
    MissingPolicy,
    OnError,
    RunFiles,
    Scale,
    SubtopicMode,
    Subtopics,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import Counts, counting
from exampp.cli.declare import option
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    GraderName,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, show, show_several


class CorrectionName(StrEnum):
    """What is done about many tests at once."""

    holm = "holm"
    bh = "bh"
    none = "none"


@counting(
    OF_GRADED_FILES,
    OF_READING,
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
    Counts(
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
    from exampp.evaluate.leaderboard import DEFAULT_MEASURES

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
