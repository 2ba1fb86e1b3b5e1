"""`exampp serve`: the review as pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from exampp.cli.board_options import MinRating
from exampp.cli.declare import option
from exampp.cli.options import BankName, CollectionFile, GraderName, ItemKind, PromptName


def serve(
    collection: CollectionFile,
    host: Annotated[str, option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        option(min=0, max=65535, help="The port; 0 takes a free one. [default: 8765]"),
    ] = None,
    assessor: Annotated[
        list[str] | None, option(help="An assessor's name; repeat for several.")
    ] = None,
    blind: Annotated[
        bool, option("--blind", help="Hide automatic grades until one has decided.")
    ] = False,
    shared: Annotated[
        float,
        option(min=0, max=100, help="Percent of the queue's cells that everybody decides, blind."),
    ] = 10,
    guidelines: Annotated[
        Path | None,
        option(exists=True, dir_okay=False, help="A Markdown file that says how to decide."),
    ] = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
) -> None:
    """Open a collection in the browser: judge, edit the bank, see what it changes.

    Prints the address of each assessor, and serves until Ctrl-C.

    Example: exampp serve my.exam --assessor ann --assessor bob
    """
    from exampp import web

    web.serve(
        collection,
        host=host,
        port=web.PORT if port is None else port,
        assessors=assessor or [],
        blind=blind,
        shared=shared / 100,
        guidelines=guidelines,
        min_rating=min_rating,
        grader=grader,
        prompt=prompt,
        kind=kind.value if kind else None,
        bank=bank,
    )
