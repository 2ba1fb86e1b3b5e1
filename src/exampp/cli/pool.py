"""`exampp pool`: the judgment pool before it is graded."""

from __future__ import annotations

from typing import Annotated

import exampp
from exampp.cli.declare import option
from exampp.cli.options import CollectionFile, Style, TableStyle
from exampp.cli.output import show_several


def pool(
    collection: CollectionFile,
    depth: Annotated[
        int, option(min=1, help="How many passages of each ranking belong to the pool.")
    ] = 20,
    style: TableStyle = Style.text,
) -> None:
    """Show the judgment pool: its size, what each system brings, and the cells to grade.

    Example: exampp pool my.exam --depth 10
    """
    with exampp.Collection(collection) as opened:
        found = opened.pool(depth)
    show_several(found.tables(), style.value)
