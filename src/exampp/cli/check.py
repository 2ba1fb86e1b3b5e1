"""`exampp check`: whether a collection is whole."""

from __future__ import annotations

import sys

import click

import exampp
from exampp.cli.options import CollectionFile, Style, TableStyle
from exampp.cli.output import show_several
from exampp.report.table import MACHINES


def check(collection: CollectionFile, style: TableStyle = Style.text) -> None:
    """Check a collection for damage, changes by other programs, and impossible values.

    Reads the whole file: pages, schema, references, values, hashes and checksums. The exit code is
    0 if all is right and 1 if not.

    Example: exampp check my.exam
    """
    found = exampp.check(collection)
    if style in MACHINES:
        show_several(found.records(), style.value)
    else:
        click.echo(found.verdict)
        show_several(found.tables(), style.value)
    if not found.ok:
        sys.stdout.flush()
        raise click.exceptions.Exit(1)
