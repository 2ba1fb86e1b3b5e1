"""`exampp demo`: the whole path on the bundled example."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

import exampp
from exampp.cli.grade import summary, work
from exampp.cli.output import show


def demo(
    collection: Annotated[
        Path | None,
        typer.Argument(
            metavar="COLLECTION", help="Where to make the example. [default: a temporary file]"
        ),
    ] = None,
) -> None:
    """Import, grade and evaluate a small example, offline, in under a minute."""
    from exampp.demo import demo_files
    from exampp.evaluate import tables

    started = time.monotonic()
    path = collection or Path(tempfile.mkdtemp(prefix="exampp-")) / "demo.exam"
    with exampp.Collection.create(path) as opened:
        typer.echo("1. Import: queries, passages, two banks, judgments and the runs of 5 systems")
        report = opened.import_files(*demo_files())
        typer.echo("   " + ", ".join(f"{count} {thing}" for thing, count in report.after.items()))
        typer.echo("2. Grade every passage against every question, with the offline draft grader")
        typer.echo("   " + summary(work(opened.grading("draft"))))
        typer.echo("3. Evaluate\n")
        show(tables.wide(opened.grades().evaluate(min_rating=4)), "text")
    typer.echo(f"\nDone in {time.monotonic() - started:.0f} s. The collection is {path}\n\nNext:")
    for command, what in (
        (f"exampp status {path}", "what it holds, what is graded"),
        (f"exampp evaluate {path} --per-query", "every system on every topic"),
        (f"exampp evaluate {path} -m AP -m P@10 --qrels exam.qrels", "measures, and qrels to keep"),
        (f"exampp grade {path} --grader draft --kind nugget", "grade the nuggets too"),
        ("exampp import my.exam queries.tsv passages.jsonl bank.csv *.run", "your own data"),
    ):
        typer.echo(f"  {command}\n      {what}")
