"""`exampp reproduce`: the papers' printed tables, recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.declare import argument, option
from exampp.cli.options import GraderName, Style, TableStyle
from exampp.cli.output import show_several


def reproduce(
    collection: Annotated[
        list[Path] | None,
        argument(
            metavar="[COLLECTION]...",
            help="Graded passages of a paper's collection, or a collection with them.",
        ),
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        option(help="A published qrels file, under its published name; repeat for several."),
    ] = None,
    official: Annotated[
        list[Path] | None,
        option(help="An official leaderboard of the same systems; repeat for several."),
    ] = None,
    grader: GraderName = None,
    style: TableStyle = Style.text,
) -> None:
    """Recompute the papers' printed tables and set them beside the print.

    Without files, this computes what follows from printed numbers alone: correlations from printed
    scores, kappas from printed counts. Graded passages, qrels and official leaderboards of a
    paper's collection add what they allow. Every other table is listed with what it needs.

    Example: exampp reproduce graded.jsonl.gz --official leaderboard.json
    """
    from exampp.analysis.reproduce import Inputs
    from exampp.analysis.reproduce import reproduce as recompute
    from exampp.formats import qrels as qrels_format
    from exampp.inputs.officials import by_name, read_officials

    books = {}
    for name, path in by_name(collection or []).items():
        with exampp.open(path) as opened:
            books[name] = opened.grades(grader).gradebook
    judgments = {path.stem: list(qrels_format.read(path)) for path in qrels or []}
    found = recompute(Inputs(books, judgments, read_officials(official or [])))
    machine = style in (Style.tsv, Style.csv, Style.json)
    show_several(found.records() if machine else found.tables(), style.value)
