"""`exampp analyze unsaid`: what RAG systems retrieved and did not say."""

from __future__ import annotations

from typing import Annotated

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    MinRating,
    OnError,
    Scale,
    SubtopicMode,
    Subtopics,
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
from exampp.errors import InputError
from exampp.report.table import MACHINES


@counting(
    OF_GRADED_FILES,
    OF_READING,
    Counts(
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
