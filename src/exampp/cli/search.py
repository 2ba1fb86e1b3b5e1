"""`exampp search`: where words stand in a collection."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import exampp
from exampp.cli.declare import argument, option
from exampp.cli.options import BankName, CollectionFile, GraderName, Style, TableStyle
from exampp.cli.output import show


class SearchedKind(StrEnum):
    """What is looked through."""

    queries = "queries"
    items = "items"
    passages = "passages"
    replies = "replies"
    decisions = "decisions"
    edits = "edits"
    systems = "systems"


def search(
    collection: CollectionFile,
    words: Annotated[list[str], argument(metavar="WORDS", help="All of them must occur.")],
    kinds: Annotated[
        list[SearchedKind] | None,
        option("--in", help="Look through these alone; may be repeated. [default: all]"),
    ] = None,
    limit: Annotated[int, option(min=1, help="So many of each kind.")] = 10,
    grader: GraderName = None,
    bank: BankName = None,
    style: TableStyle = Style.text,
) -> None:
    """Find queries, items, passages, replies of graders, reasons of decisions and edits.

    Words are found in either case and as parts of longer ones, also in ids and in the names of
    systems. What the shell hands over as one word stands together.

    Example: exampp search my.exam "New York" weather --in passages
    """
    # only now: its library is not needed for the help
    from exampp.searching import found_table

    wanted = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    with exampp.Collection(collection) as opened:
        found = opened.search(
            wanted,
            kinds=[kind.value for kind in kinds or SearchedKind],
            most=limit,
            grader=grader,
            bank=bank,
        )
    whole = style in (Style.tsv, Style.csv, Style.json)
    show(found_table(found, wanted, whole=whole), style.value)
