"""`exampp compare`: the difference of two systems explained."""

from __future__ import annotations

import shutil
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
    RunFiles,
    Scale,
    SubtopicMode,
    Subtopics,
    rating_scale,
)
from exampp.cli.command import counting
from exampp.cli.declare import argument, option
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
from exampp.cli.output import end_where_undefined, show_several
from exampp.errors import InputError

_QUERIES = 5
"""How many queries are explained to people unless they say otherwise."""
_WIDTH, _LEAST_WIDTH = 70, 24
"""Characters of an item or a quote that people are shown in a table, at least in a terminal."""
_BESIDE_TEXTS = 48
"""Columns of a terminal that the rest of such a table takes."""


@counting(OF_GRADED_FILES, OF_READING)
def compare(
    collection: CollectionOrWorkbench,
    first: Annotated[str, argument(metavar="A", help="The system to go from.")],
    second: Annotated[str, argument(metavar="B", help="The system to go to.")],
    measure: Annotated[
        str | None,
        option("--measure", "-m", help="Cover, or any measure of ir_measures. [default: Cover]"),
    ] = None,
    min_rating: MinRating = None,
    k: Annotated[
        int | None,
        option(
            "-k",
            help="Passages of a ranking of which items are explained, and that Cover reads. "
            "[default: the cutoff of the measure, or 20]",
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    subtopics: Subtopics = SubtopicMode.auto,
    queries: Annotated[
        int | None,
        option(
            min=0,
            help="Explain this many queries, the largest differences first; 0: all. "
            "[default: 5 for people; all for tsv, csv, json]",
        ),
    ] = None,
    query: Annotated[
        str | None,
        option(
            "--query",
            help="One query alone, item by item: the best passage of each system with its whole "
            "quote, items that only B covers first.",
        ),
    ] = None,
    seed: Annotated[int, option(min=0, help="Seed of the test and the interval.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Explain the difference of system B to system A: in total, by query, by item.

    An item is gained where B covers it and A does not.

    Example: exampp compare my.exam bm25 dense
    """
    if query is not None and queries is not None:
        raise InputError(
            "--queries says how many are explained, but --query names one",
            mend="Leave one of the two out",
        )
    machine = style in (Style.tsv, Style.csv, Style.json)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            decisions=decisions.value,
        ).compare(
            first,
            second,
            measure or "Cover",
            min_rating=min_rating,
            k=k,
            subtopics=subtopics.value,
            seed=seed,
        )
        if queries is None:
            queries = 0 if machine else _QUERIES
        if query is None:
            several = found.tables(queries or None, None if machine else _width(style))
        else:
            of_query = found.on(query)
            items = of_query.records() if machine else of_query.tables()
            several = {"total": found.tables(0)["total"], **items}
    show_several(several, style.value, digits)
    end_where_undefined(
        [*(mean.mean for mean in found.means), found.pair.difference.value],
        [found.pair.difference.reason],
    )


def _width(style: Style) -> int:
    if style is not Style.text:
        return _WIDTH
    terminal = shutil.get_terminal_size((120, 24)).columns
    return max(_LEAST_WIDTH, (terminal - _BESIDE_TEXTS) // 2)
