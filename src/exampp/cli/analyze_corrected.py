"""`exampp analyze corrected`: the leaderboard that a sample of people's decisions makes true."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_READING,
    Digits,
    LeftOut,
    MinRating,
    OnError,
    RunFiles,
    Scale,
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
from exampp.cli.output import show, show_several
from exampp.report.table import MACHINES


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


@counting(
    OF_GRADED_FILES,
    OF_READING,
    Counts(
        ("--min-relevant",),
        "for measures of relevant passages, such as P@20",
        lambda given: not str(given["measure"]).lstrip("n").startswith("Cover"),
    ),
    Counts(
        ("--over",),
        "for tables that people read: tsv, csv and json hold both",
        lambda given: given["style"] not in MACHINES,
    ),
    Counts(
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
    from exampp.analysis.corrected_records import CorrectionSettings

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
