"""`exampp demo`: the whole path on the bundled example."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.declare import argument, option
from exampp.cli.grade import work
from exampp.cli.output import say, show
from exampp.cli.program import command
from exampp.errors import InputError
from exampp.formats.output import unfinished
from exampp.store.durable import link_collection


def demo(
    collection: Annotated[
        Path | None,
        argument(
            metavar="COLLECTION",
            help="Where to make the example. [default: a temporary file, or demo.exam in --files]",
        ),
    ] = None,
    files: Annotated[
        Path | None,
        option(
            metavar="FOLDER",
            help="Write the files of README and docs/tour.md here, to try their commands on.",
        ),
    ] = None,
) -> None:
    """Import, grade and evaluate a small example, offline, in under a minute.

    Example: exampp demo --files tour
    """
    from exampp.demo import write_tour

    started = time.monotonic()
    path = collection or (files or Path(tempfile.mkdtemp(prefix="exampp-"))) / "demo.exam"
    if path.exists():
        raise InputError("exists already", file=path, mend="Choose another name")
    if files:
        write_tour(files)
    with unfinished(path) as made:
        with exampp.Collection.create(made) as opened:
            _fill(opened)
            if files:
                opened.export(files / "graded.jsonl.gz")
        link_collection(made, path)
    say(f"\nDone in {time.monotonic() - started:.0f} s. The collection is {path}\n\nNext:")
    for arguments, what in _next(path, files):
        say(f"  {command(*arguments)}\n      {what}")


def _fill(opened: exampp.Collection) -> None:
    """Import, grade and evaluate the example."""
    from exampp.demo import demo_files
    from exampp.evaluate.board import wide

    say("1. Import: queries, passages, two banks, judgments and the runs of 5 systems")
    report = opened.import_files(*demo_files())
    say("   " + ", ".join(f"{count} {thing}" for thing, count in report.after.items()))
    say("2. Grade every passage against every question, with the offline draft grader")
    say(f"   {work(opened.grading('draft'))}")
    say("3. Evaluate\n")
    show(wide(opened.grades().evaluate(min_rating=4)), "text")


def _next(path: Path, files: Path | None) -> Iterator[tuple[Sequence[object], str]]:
    """The arguments of commands that go on from here, and what each does."""
    yield ("status", path), "what it holds, what is graded"
    yield ("evaluate", path, "--per-query"), "every system on every topic"
    measures = ("-m", "AP", "-m", "P@10", "--qrels", "exam.qrels")
    yield ("evaluate", path, *measures), "measures, and qrels to keep"
    yield ("grade", path, "--grader", "draft", "--kind", "nugget"), "grade the nuggets too"
    if files is None:
        yield ("demo", "--files", "tour"), "the files of README and docs/tour.md"
    else:
        texts = [files / name for name in ("queries.tsv", "passages.jsonl", "bank.csv", "runs")]
        yield ("import", files / "my.exam", *texts), "the first step of docs/tour.md, in the folder"
