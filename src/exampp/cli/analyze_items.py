"""`exampp analyze items`: is the exam a good one, and which of its items are not?"""

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
    LeftOut,
    MinRating,
    Officials,
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
from exampp.report.table import MACHINES


class CreditName(StrEnum):
    """What an item is worth to a system."""

    covered = "covered"
    graded = "graded"


@counting(
    OF_GRADED_FILES,
    OF_READING,
    Counts(
        ("--limit",),
        "for the formats that people read; tsv, csv and json hold all items",
        lambda given: given["style"] not in MACHINES,
    ),
    Counts(
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
