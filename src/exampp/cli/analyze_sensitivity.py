"""`exampp analyze sensitivity`: what of a leaderboard survives the choices behind it."""

from __future__ import annotations

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
    GraderNames,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    MissingPolicy,
    Officials,
    OnError,
    RunFiles,
    Scale,
    SubtopicMode,
    Subtopics,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import Counts, Given, counting
from exampp.cli.declare import option
from exampp.cli.methods import AllMinRatings, BankNames
from exampp.cli.options import (
    CollectionOrWorkbench,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import show_several
from exampp.errors import Undefined
from exampp.report.table import MACHINES


def at_cutoffs(given: Given) -> Given:
    """The values with a cutoff at every measure that is crossed with all of them."""
    from exampp.analysis.sensitivity import takes_cutoff

    measures = [f"{one}@1" if takes_cutoff(one) else one for one in given["measure"] or ()]
    return {**given, "measure": measures}


def _of_measures(rule: Counts) -> Counts:
    return Counts(rule.options, rule.only, lambda given: rule.where(at_cutoffs(given)))


def _crosses_cutoffs(given: Given) -> bool:
    asked = given["measure"]
    return not asked or at_cutoffs(given)["measure"] != asked


@counting(
    OF_GRADED_FILES,
    OF_READING,
    *map(_of_measures, (*LABELLING, OF_MEASURES["--min-rating"], OF_MEASURES["--missing"])),
    Counts(("--cutoff",), "for measures without a cutoff of their own", _crosses_cutoffs),
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
