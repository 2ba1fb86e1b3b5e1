"""`exampp analyze citations`: precision and recall of citations."""

from __future__ import annotations

from typing import Annotated

import exampp
from exampp.cli.board_options import Digits
from exampp.cli.declare import option
from exampp.cli.options import CollectionFile, GraderName, Style, TableStyle
from exampp.cli.output import show, show_several
from exampp.report.table import MACHINES


def citations(
    collection: CollectionFile,
    first: Annotated[
        bool,
        option(
            "--first", help="Only the first citation of a sentence counts, as at TREC RAG 2024."
        ),
    ] = False,
    grader: GraderName = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Precision and recall of citations: are sentences supported by what they cite?

    Of a collection that exampp citations made, graded with --prompt citation-support.

    Example: exampp analyze citations cited.exam
    """
    with exampp.Collection(collection) as opened:
        found = opened.grades(grader).citations(first=first)
    if style in MACHINES:
        show(found.records()["citations"], style.value, digits)
    else:
        show_several(found.tables(), style.value, digits)
