"""What the commands print: tables to standard output, remarks to standard error."""

from __future__ import annotations

import sys

import typer

from exampp.report.table import Table, render


def show(table: Table, style: str) -> None:
    """Print a table; tsv and csv hold rows alone, so their notes go to standard error."""
    sys.stdout.write(render(table, style))
    if style in ("tsv", "csv"):
        for note in table.notes:
            remark(note)


def remark(text: str) -> None:
    """Say something that is no result."""
    typer.echo(text, err=True)
