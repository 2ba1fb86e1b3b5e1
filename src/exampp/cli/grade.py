"""`exampp grade` and `exampp status`."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import exampp
from exampp.cli.options import BankName, CollectionFile, Kind, Style, TableStyle
from exampp.cli.output import remark, show
from exampp.errors import Unfinished

if TYPE_CHECKING:
    from exampp.grade.run import GradingRun, Progress


def grade(
    collection: CollectionFile,
    grader: Annotated[
        str, typer.Option(help="Who grades: draft (offline similarity, for trying things out).")
    ],
    kind: Annotated[Kind, typer.Option(help="What is graded.")] = Kind.question,
    bank: BankName = None,
    depth: Annotated[
        int, typer.Option(min=1, help="How many passages of each ranking are graded.")
    ] = 20,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Only cells that were tried and have no grade.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is due.")] = False,
) -> None:
    """Grade every passage against every item of the bank, as far as it is due.

    Stops cleanly at Ctrl-C and continues where it stopped when called again.
    """
    with exampp.Collection(collection) as opened:
        run = opened.grading(
            grader, kind=kind.value, bank=bank, depth=depth, only_failed=retry_failed
        )
        if dry_run:
            due = run.count_due()
            typer.echo(f"{due.cells} cells are due, {due.asks} of them to be asked.")
            return
        progress = work(run)
    typer.echo(summary(progress))
    if run.stopped and progress.done < progress.total:
        raise Unfinished(
            f"stopped with {progress.total - progress.done} cells due; this continues:\n"
            f"  {' '.join(['exampp', *sys.argv[1:]])}"
        )


def summary(progress: Progress) -> str:
    """What a run did, in one line."""
    text = f"{progress.done} of {progress.total} cells done"
    if progress.copied:
        text += f", {progress.copied} copied from equal texts"
    if progress.elsewhere:
        text += f", {progress.elsewhere} by another process"
    failed = sum(count for state, count in progress.states.items() if state)
    return text + (f", {failed} without a grade (they stay due)" if failed else "")


def work(run: GradingRun) -> Progress:
    """Run to the end with a progress bar; the first Ctrl-C stops cleanly, the second at once."""
    with _stopping(run), _bar() as update:
        for progress in run.steps():
            update(progress)
    return progress


@contextmanager
def _stopping(run: GradingRun) -> Iterator[None]:
    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if run.stopped:
            raise KeyboardInterrupt
        run.stop()
        remark("\nStopping: what is in flight is finished and kept. Ctrl-C again leaves at once.")

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar() -> Iterator[Any]:
    """A progress bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _plain_progress()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, rate="")
        started = time.monotonic()

        def update(progress: Any) -> None:
            rate = progress.done / max(time.monotonic() - started, 1e-6)
            bar.update(
                task, total=progress.total, completed=progress.done, rate=f"{rate:.0f} cells/s"
            )

        yield update


def _plain_progress() -> Any:
    state = {"next": time.monotonic() + 10}

    def update(progress: Any) -> None:
        if time.monotonic() >= state["next"]:
            state["next"] = time.monotonic() + 10
            remark(f"grading: {progress.done} of {progress.total} cells")

    return update


def status(collection: CollectionFile, style: TableStyle = Style.text) -> None:
    """What the collection holds, and per grader what is done, due and failed."""
    with exampp.Collection(collection) as opened:
        show(opened.contents(), style.value)
        typer.echo()
        show(opened.status(), style.value)
