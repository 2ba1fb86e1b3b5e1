"""`exampp merge`: collections that were copied, or filled in shards, brought together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.declare import argument, option
from exampp.cli.options import Style, TableStyle
from exampp.cli.output import show_several
from exampp.report.table import MACHINES


def merge(
    into: Annotated[Path, argument(metavar="INTO", help="The collection that is filled.")],
    others: Annotated[
        list[Path], argument(metavar="OTHER", help="Collections; they are only read.")
    ],
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would come; change nothing.")
    ] = False,
    style: TableStyle = Style.text,
) -> None:
    """Bring what other collections hold into one: copies of it, or shards of one exam.

    Grades, decisions, banks with their history, texts, rankings, judgments, runs. All of it or,
    after an error, nothing, ten at a time; merging again changes nothing. What two collections
    differ in is listed with what is kept: a grade before none, of an item's edits the newest, else
    INTO's.

    Example: exampp merge my.exam copy.exam
    """
    with exampp.Collection(into) as opened:
        found = opened.merge(*others, dry_run=dry_run)
    show_several(found.records() if style in MACHINES else found.tables(), style.value)
