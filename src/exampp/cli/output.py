"""What the commands print: tables to standard output, remarks to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from exampp.cli import streams, terminal
from exampp.cli.streams import printable
from exampp.errors import Undefined
from exampp.formats.output import descriptor
from exampp.report.notes import grouped
from exampp.report.styles import rounded
from exampp.report.table import Table, render
from exampp.report.text import as_text


def show(table: Table, style: str, digits: int | None = None) -> None:
    """Print a table; tsv and csv hold rows alone, so their notes go to standard error."""
    _write(_rendered(table, style, digits), style)
    if style in ("tsv", "csv"):
        for note in table.notes:
            remark(note)


def _rendered(table: Table, style: str, digits: int | None) -> str:
    if style != "text":
        return render(table, style, digits)
    return as_text(rounded(table, digits), terminal.room(), terminal.is_styled())


def _write(text: str, style: str) -> None:
    # tsv and csv hold names as they are; text has codes of its own
    safe = style == "text" or not sys.stdout.isatty()
    streams.write(text if safe else printable(text))


def show_several(tables: Mapping[str, Table], style: str, digits: int | None = None) -> None:
    """Print tables that belong together, none left out.

    In json they are one object, by name; in the other formats they follow each other with an empty
    line between, in tsv and csv each with its line of headings.
    """
    if style == "json":
        found = {name: json.loads(render(table, style)) for name, table in tables.items()}
        streams.write(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        return
    _write("\n".join(_rendered(table, style, digits) for table in tables.values()), style)
    if style in ("tsv", "csv"):
        for note in grouped(note for table in tables.values() for note in table.notes):
            remark(note)


def end_where_undefined(values: Iterable[object], reasons: Iterable[str]) -> None:
    """End where there are values and every one is undefined, saying the reasons.

    Called when the tables are printed: they say so of each value. Raises Undefined.
    """
    found = list(values)
    if found and all(value is None for value in found):
        why = "; ".join(dict.fromkeys(filter(None, reasons))) or "the notes say why"
        raise Undefined(f"nothing could be computed: {why}")


def told(path: Path, text: str) -> None:
    """Say what was written; beside it, where standard output itself was written to."""
    if descriptor(path) == 1:
        remark(text)
    else:
        say(text)


def say(text: str) -> None:
    """Print a line of a result in prose."""
    streams.write(f"{printable(text)}\n")
    # remarks on the other stream come in order
    streams.flush()


def remark(text: str) -> None:
    """Say something that is no result."""
    # nobody may be reading remarks: no reason to end what is being done
    with contextlib.suppress(OSError, ValueError):
        click.echo(printable(text), err=True)
