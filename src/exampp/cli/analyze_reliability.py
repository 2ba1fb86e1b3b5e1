"""`exampp analyze reliability`: how many queries and items a leaderboard takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    MinRating,
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
from exampp.cli.command import Counts, Given, counting
from exampp.cli.declare import argument, option
from exampp.cli.methods import BankNames
from exampp.cli.options import (
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, show_several
from exampp.report.table import MACHINES

if TYPE_CHECKING:
    from exampp.analysis.reliability_graders import GraderReliability
    from exampp.analysis.reliability_tables import Reliability


def _has_grades(given: Given) -> bool:
    from exampp.formats.score_matrix import is_table

    return not is_table(given["collection"])


OF_GRADES = Counts(
    (
        *("--measure", "--min-rating", "--items", "--query-cost", "--item-cost"),
        *("--grader", "--prompt", "--kind", "--bank", "--run", "--system"),
        *("--leave-out", "--subtopics", "--missing", "--label", "--at-least", "--gains"),
        *("--decisions", "--on-error", "--scale"),
    ),
    "for grades, not for a table of scores",
    _has_grades,
)
OF_ITEMS = Counts(
    ("--items", "--query-cost", "--item-cost"),
    "for Cover, the mean over items",
    lambda given: given["measure"].startswith("Cover"),
)


@counting(
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
    from exampp.analysis.reliability import reliability, scored_table
    from exampp.analysis.reliability_records import DROPS, ReliabilitySettings

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
    from exampp.analysis.reliability_graders import GraderReliability

    return list(found.members.values()) if isinstance(found, GraderReliability) else [found]
