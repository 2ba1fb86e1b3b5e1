"""`exampp analyze agreement`: graders against judgments and against each other."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    GraderNames,
    OnError,
    Scale,
    rating_scale,
)
from exampp.cli.command import Counts, counting
from exampp.cli.declare import option
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, show_several


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


@counting(
    OF_GRADED_FILES,
    OF_READING,
    Counts(
        ("--at-least",),
        "for labels of passages, not for --against people",
        lambda given: given["against"] != AgainstWhat.people,
    ),
    Counts(
        ("--min-relevant",),
        "for --against judgments",
        lambda given: given["against"] in (None, AgainstWhat.judgments),
    ),
    Counts(
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
    collection: CollectionOrWorkbench,
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
    """Compare labels with judgments, graders with each other, people with graders.

    Confusion tables as the papers print them, Cohen's kappa, weighted kappa, Krippendorff's alpha
    and Gwet's AC1, with 95 % intervals over queries.

    Example: exampp analyze agreement graded.jsonl.gz
    """
    from exampp.stats.estimate import undefined

    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.panel(
            *(grader or ()),
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            decisions=decisions.value,
        ).agreement(
            at_least=at_least or (),
            min_rating=min_rating,
            min_relevant=min_relevant or (),
            layouts=[one.value for one in layout or ()],
            against=against.value if against else None,
        )
    if style in (Style.json, Style.tsv, Style.csv):
        show_several(found.records(), style.value, digits)
    else:
        show_several(found.tables(mutual_counts=bool(layout)), style.value, digits)
    estimates = found.estimates() or [undefined("; ".join(found.notes))]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])
