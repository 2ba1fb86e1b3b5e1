"""`exampp init`, `import`, `export`: files in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import exampp
from exampp.cli.options import BankName, CollectionFile, ExportFormat, OnBadLine, UnknownPassages
from exampp.cli.output import remark


def init(collection: CollectionFile) -> None:
    """Make an empty collection."""
    exampp.Collection.create(collection).close()
    typer.echo(f"{collection}: an empty collection. Next: exampp import {collection} FILE ...")


def import_(
    collection: CollectionFile,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Queries, passages, banks, runs, qrels, graded passages, in any known format.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--as", help="What the files are, where it cannot be told from them."),
    ] = None,
    bank: Annotated[str, typer.Option(help="The name of the bank that bank files go into.")] = (
        "main"
    ),
    on_error: Annotated[
        OnBadLine, typer.Option(help="Refuse everything at a bad line, or skip and count it.")
    ] = OnBadLine.refuse,
    unknown_passages: Annotated[
        UnknownPassages,
        typer.Option(help="Ranked passages without a text: an error, or kept as ungraded."),
    ] = UnknownPassages.error,
) -> None:
    """Bring files into a collection, which is made if there is none.

    All files or none: after an error the collection is as it was. Importing a file again changes
    nothing; a changed text makes exactly its cells due again.
    """
    with exampp.Collection.create(collection, exist_ok=True) as opened:
        report = opened.import_files(
            *files,
            kind=kind,
            bank=bank,
            on_error=on_error.value,
            unknown_passages=unknown_passages.value,
        )
    for file in report.files:
        typer.echo(f"{file.file}: {file.kind}, {file.records} records")
    for error in report.skipped_first:
        remark(f"skipped: {error}")
    if report.skipped:
        remark(f"{report.skipped} bad lines were skipped")
    for thing, now in report.after.items():
        new = now - report.before[thing]
        typer.echo(f"{thing:>10}  {now:>9}" + (f"  ({new:+})" if new else ""))
    if report.retired:
        typer.echo(f"{report.retired} items that the bank's file no longer holds were retired.")
    if not report.changes:
        typer.echo("Nothing changed.")


def export(
    collection: CollectionFile,
    to: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write (.gz packs it).")],
    kind: Annotated[
        ExportFormat, typer.Option("--format", help="What is written.")
    ] = ExportFormat.workbench,
    bank: BankName = None,
) -> None:
    """Write a collection, or a part of it, in a format of the field."""
    with exampp.Collection(collection) as opened:
        count = opened.export(to, kind.value, bank=bank)
    typer.echo(f"{to}: {kind.value}, {count} records")
