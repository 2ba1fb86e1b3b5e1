"""`exampp grade` and `exampp status`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli.backend_options import backend_options
from exampp.cli.command import Counts, Given, counting, moved
from exampp.cli.declare import option
from exampp.cli.interrupting import interruptible
from exampp.cli.options import (
    LIMITS,
    BankName,
    CollectionFile,
    Grace,
    Style,
    TableStyle,
)
from exampp.cli.output import remark, say, show_several
from exampp.cli.program import this_command
from exampp.errors import Unfinished
from exampp.stopping import GRACE_SECONDS

if TYPE_CHECKING:
    from exampp.grade.estimate import GradingEstimate
    from exampp.grade.progress import Progress
    from exampp.grade.run import GradingRun


class GradedPool(StrEnum):
    """Which passages are graded."""

    ranked = "ranked"
    judged = "judged"
    all = "all"


def _asks(given: Given) -> bool:
    return not given["dry_run"]


def _by_batches(given: Given) -> bool:
    return bool(given["batch"] or given["cancel_batches"])


@counting(
    Counts(
        (*LIMITS, "--max-failures", "--price-cached", "--grace", "--take-over"),
        "where something is asked, not with --dry-run",
        _asks,
    ),
    Counts(
        ("--price-cached",),
        "beside --price-read and --price-written",
        lambda given: None not in (given["price_read"], given["price_written"]),
    ),
    Counts(("--plan",), "without --dry-run, which asks nobody", _asks),
    Counts(
        ("--workers", "--worker-cpus", "--worker-gpus"),
        "beside --on",
        lambda given: given["on"] is not None,
    ),
    Counts(("--poll",), "beside --batch or --cancel-batches", _by_batches),
    Counts(("--price-hour",), "beside --plan", lambda given: given["plan"] is not None),
)
@backend_options(writes=False)
@moved("exampp reparse COLLECTION --grader NAME", "--reparse", "--compat")
@moved("exampp calibrate COLLECTION FILE", "--calibrate")
def grade(
    collection: CollectionFile,
    grader: Annotated[
        str,
        option(
            help="Who grades: hf (a model on this machine), openai (any OpenAI-compatible server), "
            "draft (offline similarity, for trying things out), or one that a package adds."
        ),
    ],
    *,
    options: Mapping[str, Any],
    bank: BankName = None,
    depth: Annotated[int, option(min=1, help="How many passages of each ranking are graded.")] = 20,
    pool: Annotated[
        GradedPool,
        option(
            help="Passages to grade: those that a run ranks, those that people judged, or both. "
            "Without any run, ranked includes the judged ones."
        ),
    ] = GradedPool.ranked,
    answers_of: Annotated[
        str | None,
        option(help="Verify the answers that this grader extracted (answer-verification)."),
    ] = None,
    max_failures: Annotated[int, option(min=1, help="Stop after so many failures in a row.")] = 20,
    max_queries: Annotated[
        int | None,
        option(min=1, help="Grade the first so many queries only: a trial. [default: all]"),
    ] = None,
    shard: Annotated[
        str | None,
        option(
            metavar="N/OF",
            help="One of so many parts of the passages, the same on every copy: 3/16. "
            "[default: all]",
        ),
    ] = None,
    retry_failed: Annotated[
        bool, option("--retry-failed", help="Only cells that were tried and have no grade.")
    ] = False,
    take_over: Annotated[
        bool,
        option("--take-over", help="Also what another run holds that is known to be gone."),
    ] = False,
    batch: Annotated[
        bool,
        option(
            "--batch",
            help="By batches of the provider, at half the price: wait for them. Ctrl-C leaves them "
            "running, and the same command goes on.",
        ),
    ] = False,
    batch_file: Annotated[
        Path | None,
        option(metavar="FILE", help="Write the requests there, as for vllm run-batch; ask nobody."),
    ] = None,
    replies: Annotated[
        Path | None,
        option(metavar="FILE", help="Read what came back for a file of --batch-file."),
    ] = None,
    cancel_batches: Annotated[
        bool,
        option("--cancel-batches", help="End the batches that are out; keep what came."),
    ] = False,
    poll: Annotated[
        float | None,
        option(
            min=0, max=86400, metavar="SECONDS", help="Between two looks. [default: 15, growing]"
        ),
    ] = None,
    grace: Grace = GRACE_SECONDS,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what is due, what it takes, what is asked.")
    ] = False,
    plan: Annotated[
        int | None,
        option(
            min=1,
            metavar="MACHINES",
            panel="Cost and stopping",
            help="Grade some 200 cells, and say what the rest takes on so many machines like this.",
        ),
    ] = None,
    price_hour: Annotated[
        float | None, option(min=0, help="What a machine costs in an hour.")
    ] = None,
    on: Annotated[
        str | None,
        option(
            metavar="CLUSTER",
            help="Grade by workers on a Ray cluster: its address, or ray for the one here.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        option(
            min=1,
            help="So many workers at most. [default: as many as the nodes have room for]",
        ),
    ] = None,
    worker_cpus: Annotated[
        int | None,
        option(min=0, help="CPUs of a worker. [default: 1]"),
    ] = None,
    worker_gpus: Annotated[
        int | None,
        option(
            min=0,
            help="Cards of a worker. [default: 1 for hf where a node has any]",
        ),
    ] = None,
) -> None:
    """Grade every passage against every item of the bank, as far as it is due.

    Stops cleanly at Ctrl-C or SIGTERM, within --grace, and continues where it stopped when called
    again. Several processes may grade one collection and share the work.

    Example: exampp grade my.exam --grader draft
    """
    from exampp.grade.batches import Batches

    batches = batch or batch_file is not None or replies is not None or cancel_batches
    with exampp.Collection(collection) as opened:
        run = opened.grading(
            grader,
            bank=bank,
            depth=depth,
            pool=pool.value,
            select="failed" if retry_failed else "due",
            answers_of=answers_of,
            max_failures=max_failures,
            max_queries=max_queries,
            shard=shard,
            take_over=take_over,
            on=None if on is None else exampp.Cluster(on, workers, worker_cpus, worker_gpus),
            batches=Batches(batch_file, replies, cancel_batches, poll) if batches else False,
            **options,
        )
        if dry_run or plan:
            _say_notes(run)
            if plan:
                _try_out(run, grace)
            _estimate(run, options, price_hour, plan or 1)
            return
        progress = work(run, grace)
    if note := run.late_note:
        remark(note)
    say(str(progress))
    _unfinished(run, progress)


_BATCH_OPTIONS = {"--batch-file": True, "--replies": True, "--cancel-batches": False}
"""Options that a run does not always go on with, and whether they have a value."""


def _unfinished(run: GradingRun, progress: Progress) -> None:
    from exampp.grade.batch_choice import other_options

    left = progress.total - progress.done
    if run.stopped and left:
        why = f" ({run.why_stopped})" if run.why_stopped else ""
        due = left + progress.ungraded
        other = other_options(run.grading)
        again = this_command() if other is None else this_command(_BATCH_OPTIONS, other)
        raise Unfinished(f"stopped with {due} cells due{why}; this continues:\n  {again}")


def _try_out(run: GradingRun, grace: float) -> None:
    """Grade what tells what the rest takes."""
    from exampp.grade.estimate import trial

    part = trial(run)
    if part is not None:
        progress = work(part, grace)
        remark(str(progress))
        _unfinished(part, progress)


def _estimate(
    run: GradingRun, options: Mapping[str, Any], price_hour: float | None, machines: int
) -> None:
    from exampp.grade.estimate import Prices, estimate

    read, cached, written = (options[f"price_{name}"] for name in ("read", "cached", "written"))
    found = estimate(run, Prices(read, cached, written, price_hour))
    about = "" if found.exact else "about "
    seconds = "unknown (no earlier run)"
    if found.seconds is not None:
        seconds = f"{_duration(found.seconds / machines)}, by {found.replies} replies"
        if machines > 1:
            seconds += f": {_duration(found.seconds)} on {machines} machines"
    cost = "unknown (no prices given)" if found.cost is None else f"{found.cost:.2f}"
    say(f"cells due       {found.cells}")
    if found.judged_only:
        say(f"judged only     {_judged_only(run, found)}")
    say(f"to be asked     {found.asks}")
    say(f"prompt tokens   {about}{found.tokens}")
    say(f"reply tokens    about {found.written}")
    say(f"time            {seconds}")
    say(f"cost            {cost}")
    for number, text in enumerate(found.prompts, 1):
        say(f"\n--- prompt {number} ---\n{text}")


def _judged_only(run: GradingRun, found: GradingEstimate) -> str:
    """Say how many pending cells belong to passages that are judged and not ranked."""
    if run.exam.pool == "ranked":
        share = found.judged_only / (found.cells + found.judged_only)
        which, end = f"more ({share:.0%} of all)", "no run ranks their passages; --pool all"
    else:
        which, end = (
            f"of these ({found.judged_only / found.cells:.0%})",
            "no run ranks their passages",
        )
    return f"{found.judged_only} {which}: {end}"


def _duration(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


def work(run: GradingRun, grace: float = GRACE_SECONDS) -> Progress:
    """Run to the end with a progress bar, unless it is stopped, within `grace` seconds."""
    _say_notes(run)
    progress, told, awaited = None, "", ""
    try:
        with interruptible(run, grace), _bar() as update:
            for progress in run.steps():
                told = _tell_holders(progress, told)
                awaited = _tell_batches(progress, awaited)
                update(progress)
    except KeyboardInterrupt:
        if progress is not None:
            remark(str(progress))
        raise
    if progress is None:
        raise KeyboardInterrupt
    return progress


def _tell_holders(progress: Progress, told: str) -> str:
    """Say who else holds queries, unless it was told; returns what has been told."""
    if not progress.held_by:
        return told
    end = "Waiting for that" if progress.waits else "That is left to it"
    gone = any(not holder.is_here for holder in progress.held_by)
    mend = "; if it is gone, --take-over grades it now" if gone else ""
    said = "\n".join(f"{holder}. {end}{mend}" for holder in progress.held_by)
    if said != told:
        remark(said)
    return said


def _tell_batches(progress: Progress, told: str) -> str:
    """Say how batches are doing, unless it was told; returns what has been told."""
    if progress.awaits and progress.awaits != told:
        remark(f"Out: {progress.awaits}")
    return progress.awaits or told


def _say_notes(run: GradingRun) -> None:
    for note in run.notes:
        remark(note)


Update = Callable[["Progress"], None]


@contextmanager
def _bar() -> Iterator[Update]:
    """A progress bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _plain_progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, rate="")
        started = time.monotonic()

        def update(progress: Progress) -> None:
            rate = progress.done / max(time.monotonic() - started, 1e-6)
            bar.update(
                task, total=progress.total, completed=progress.done, rate=f"{rate:.0f} cells/s"
            )

        yield update


def _plain_progress() -> Update:
    due = time.monotonic() + 10

    def update(progress: Progress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 10
            remark(f"grading: {progress.done} of {progress.total} cells")

    return update


def status(collection: CollectionFile, style: TableStyle = Style.text) -> None:
    """Show what the collection holds, and per grader what is done, due and failed, and why.

    Example: exampp status my.exam
    """
    with exampp.Collection(collection) as opened:
        tables = {"contents": opened.contents(), **opened.status_tables()}
    show_several(tables, style.value)
