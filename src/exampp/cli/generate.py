"""`exampp bank generate`: a model makes the items of a bank."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli.backend_options import backend_options
from exampp.cli.command import Counts, Given, counting
from exampp.cli.declare import option
from exampp.cli.interrupting import interruptible
from exampp.cli.options import (
    LIMITS,
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
    from exampp.bank.generating import GenerationRun, Settled

PROGRESS_SECONDS = 10


class Per(StrEnum):
    """What one request is about."""

    query = "query"
    subtopic = "subtopic"


def _asks(given: Given) -> bool:
    return not given["dry_run"]


@counting(
    Counts(
        ("--author", "--reason", "--format", "--grace", "--keep-near", *LIMITS),
        "where something is asked, not with --dry-run",
        _asks,
    ),
)
@backend_options(writes=True, says={"max_new_tokens": "Tokens of a reply at most. [default: 2048]"})
def generate_bank(
    collection: CollectionFile,
    grader: Annotated[
        str,
        option(
            help="Who writes: hf (a model on this machine), openai (any OpenAI-compatible server)."
        ),
    ],
    prompt: Annotated[
        str,
        option(
            help="car-questions, car-nuggets, dl-questions, dl-nuggets, or a TOML file of yours."
        ),
    ],
    *,
    options: Mapping[str, Any],
    bank: Annotated[str, option(help="The bank that the items are added to.")] = "main",
    per: Annotated[
        Per | None, option(help="What a request is about. [default: as the prompt asks]")
    ] = None,
    keys: Annotated[
        bool, option("--keys", help="Ask for answer keys, too; they are marked machine-made.")
    ] = False,
    query: Annotated[str | None, option(help="Only this query.")] = None,
    more: Annotated[
        int | None,
        option(min=1, help="With --query: so many others than the bank has already."),
    ] = None,
    keep_near: Annotated[
        bool,
        option("--keep-near", help="Keep items that ask the same as others, too, marked."),
    ] = False,
    grounded: Annotated[
        int | None,
        option(min=1, help="Show so many of the query's best passages with the prompt."),
    ] = None,
    author: Annotated[str | None, option(help="Who edits. [default: the user]")] = None,
    reason: Annotated[
        str, option(help="Why; kept with every edit. [default: model and prompt]")
    ] = "",
    grace: Grace = GRACE_SECONDS,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would be asked; ask nothing.")
    ] = False,
    style: TableStyle = Style.text,
) -> None:
    """Let a model make questions or nuggets for every query or subtopic.

    Every reply is kept as it comes: the same command continues after an interrupt, and asks again
    only where the last reply failed. Items that ask the same as others of the query are dropped,
    those that differ in a name, a number, a negation, an order or a word are kept and marked:
    exampp bank near lists both.

    Example: exampp bank generate my.exam --grader openai --model gpt-5-mini --prompt dl-questions
    --dry-run
    """
    with exampp.Collection(collection) as opened:
        run = opened.bank(bank).generation(
            grader,
            prompt=prompt,
            per=per.value if per else None,
            keys=keys,
            query_id=query,
            more=more or 0,
            grounded=grounded or 0,
            keep_near=keep_near,
            author=author,
            reason=reason,
            **options,
        )
        if dry_run:
            _preview(run, options["price_read"], options["price_written"])
            return
        _show(run, make(run, grace), style)


def make(run: GenerationRun, grace: float) -> list[Settled]:
    """Run to the end, unless it is stopped, within `grace` seconds; what became of each request."""
    settled, due = [], time.monotonic() + PROGRESS_SECONDS
    with interruptible(run, grace):
        for one in run.steps():
            settled.append(one)
            if time.monotonic() >= due:
                due = time.monotonic() + PROGRESS_SECONDS
                remark(f"generating: {len(settled)} of {len(run.due)} requests")
    return settled


def _show(run: GenerationRun, settled: list[Settled], style: Style) -> None:
    from exampp.bank.generating import generation_tables

    requests, near = generation_tables(run, settled)
    tables = {"near": near} if near.rows or style is Style.json else {}
    show_several({**tables, "requests": requests}, style.value)
    if run.left:
        why = f" ({run.why_stopped})" if run.why_stopped else ""
        raise Unfinished(
            f"stopped with {run.left} requests left{why}; this continues:\n  {this_command()}"
        )


def _preview(run: GenerationRun, price_read: float | None, price_written: float | None) -> None:
    found = run.preview(price_read, price_written)
    about = "" if found.exact else "about "
    cost = "unknown (no prices given)" if found.cost is None else f"about {found.cost:.4f}"
    say(f"requests        {found.requests}, one per {run.per}")
    say(f"prompt tokens   {about}{found.tokens}")
    say(f"cost            {cost}")
    for note in found.notes:
        remark(note)
    for number, text in enumerate(found.prompts, 1):
        say(f"\n--- prompt {number} ---\n{text}")
