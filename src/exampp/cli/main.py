"""The `exampp` command: parse arguments, run a command, print errors as one sentence."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from exampp.cli import output
from exampp.cli.command import Group
from exampp.cli.output import SIGNALLED, printable_text, this_command
from exampp.errors import ExamError, Unfinished, environment_fault
from exampp.version import __version__

PURPOSES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "demo": (
            "collection:demo",
            "Import, grade and evaluate a small example, offline, in under a minute.",
        ),
        "import": (
            "collection:import_",
            "Import files into a collection; the first import creates it.",
        ),
        "bank": ("bank:app", "Generate, show, edit and check the questions of the exam."),
    },
    "Grade": {
        "grade": ("grade:grade", "Grade all pending passage-question pairs."),
        "status": (
            "grade:status",
            "Show the contents, and the graded, pending and failed cells of each grader.",
        ),
    },
    "Evaluate": {
        "evaluate": (
            "evaluate:evaluate",
            "Score all systems: EXAM-Cover, and ranking measures on EXAM-Qrels.",
        ),
        "compare": (
            "evaluate:compare",
            "Explain the difference between systems A and B: in total, by query, by item.",
        ),
        "analyze": ("analyze:app", "Analyze how far the leaderboard can be trusted."),
        "gate": (
            "evaluate:gate",
            "Pass or fail systems by requirements, such as Cover@20>=0.7 or no worse than before.",
        ),
    },
    "Review": {
        "review": (
            "review:app",
            "List grades and decisions that reveal mistakes of the grader or the bank.",
        ),
        "record": (
            "review:record",
            "Show one query of a RAG collection: answers, contexts, reference, items.",
        ),
        "serve": (
            "review:serve",
            "Open a collection in the browser: add files, grade, judge, edit the bank, see the "
            "effect.",
        ),
        "people": (
            "review:people",
            "List, invite and revoke the people who may open a collection in the browser.",
        ),
    },
    "Service": {
        "api": (
            "service:api",
            "Offer an exam to programs, by HTTP and by MCP: grade answers, compare systems, gate.",
        ),
        "clients": (
            "service:clients",
            "List, add and revoke the programs that may use the exam through exampp api.",
        ),
    },
    "Publish": {
        "report": (
            "evaluate:report",
            "Write one self-contained page: tables, plots, warnings, methods and references.",
        ),
        "export": (
            "collection:export",
            "Write a collection, or a part of it, in a standard format.",
        ),
    },
    "More on collections": {
        "search": (
            "review:search",
            "Search queries, items, passages, replies, reasons of decisions, and edits.",
        ),
        "systems": ("collection:systems", "List the systems, or remove some."),
        "merge": ("collection:merge", "Merge copies or shards of a collection."),
        "check": (
            "collection:check",
            "Check a collection for damage, a bank for mistakes, a gate file, or a preset.",
        ),
        "citations": (
            "collection:citations",
            "Make a collection from the sentences of answers and the passages they cite.",
        ),
    },
    "More on graders": {
        "prompts": ("grade:prompts", "List the prompts, or print one."),
        "reparse": ("grade:reparse", "Parse the stored replies again, without a model."),
        "calibrate": (
            "grade:calibrate",
            "Predict relevance labels from grades; the result is stored as a new grader.",
        ),
        "vote": (
            "grade:vote",
            "Combine several graders by voting; the result is stored as a new grader.",
        ),
        "finetune": ("grade:finetune", "Train a model to extract answers (SQuAD 2.0)."),
        "plugins": (
            "collection:plugins",
            "List the graders, prompts, formats, presets and measures that other packages add.",
        ),
    },
    "More on results": {
        "plot": ("plot:plot", "Draw one figure."),
        "reproduce": (
            "evaluate:reproduce",
            "Recompute the papers' tables and compare them with the printed values.",
        ),
    },
}
"""The verbs by purpose: name, (where it is, what it does). A verb's module is imported only when
the verb runs or its own help is shown; the help of `exampp` itself uses these lines alone."""


RENAMED = {"pool": "exampp status COLLECTION --pool"}
"""Former commands, and what to type instead."""
CONTINUES = "Finished work is stored; this continues"
STORED: Mapping[str, str] = {
    "grade": CONTINUES,
    "bank generate": CONTINUES,
    "serve": CONTINUES,
    "import": "An import is all or nothing; run it again",
}
"""Parts that an interrupted command has stored; other commands store nothing by parts."""
GARBAGE = 100_000
"""New objects between two searches for reference cycles."""
COMPLETING = "_EXAMPP_COMPLETE"
"""The variable by which a shell requests completions."""


class Verbs(Group):
    """The verbs by purpose; only the one that runs is imported."""

    def __init__(self, **options: Any) -> None:
        homes = {name: home for of in PURPOSES.values() for name, (home, _) in of.items()}
        super().__init__(
            "exampp",
            homes,
            more=[purpose for purpose in PURPOSES if purpose.startswith("More")],
            renamed=RENAMED,
            **options,
        )

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """Yield the verbs with their summaries, by purpose."""
        for purpose, verbs in PURPOSES.items():
            yield purpose, [(name, summary) for name, (_, summary) in verbs.items()]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the summaries of verbs for shell completion; none of them is imported."""
        return [
            *(
                CompletionItem(name, help=summary)
                for _, verbs in self.sections()
                for name, summary in verbs
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def _completion(ctx: click.Context, _option: click.Parameter, shell: str | None) -> None:
    """Print the shell completion script, and exit."""
    if shell is not None and (of_shell := get_completion_class(shell)) is not None:
        click.echo(of_shell(app, {}, "exampp", COMPLETING).source())
        ctx.exit()


app = Verbs(
    help="Evaluate retrieval, generation and RAG systems by an exam.",
    epilog="More commands: exampp --help-all. Options and an example: exampp COMMAND --help.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(__version__, message="exampp %(version)s", help="Print the version.")(app)
click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    expose_value=False,
    is_eager=True,
    callback=_completion,
    help="Print a shell completion script.",
)(app)


def main() -> None:
    """Run the command line; the exit code is 0 done, 1 unfinished, 2 bad input, 130 interrupted.

    A command may declare another for its errors (`command.error_exit_code`). After another signal
    than that of Ctrl-C it is `SIGNALLED` plus the number of the signal.
    """
    output.prepare()
    # a large exam is many objects, none of which is garbage: they are gone through less often
    gc.set_threshold(GARBAGE)
    code, text = _outcome()
    try:
        output.flush()
    except Unfinished as error:
        code, text = code or error.exit_code, text or str(error)
    # either stream may be closed; there is nothing to print to then
    with contextlib.suppress(AttributeError, ValueError, OSError):
        if text:
            print(printable_text(f"exampp: {text}"), file=sys.stderr)
    sys.exit(code)


def _outcome() -> tuple[int, str]:
    """Run the command; return its exit code, and the sentence of an error."""
    try:
        return _run(), ""
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
        return _interrupted(code) if code > SIGNALLED else (code, "")
    except ExamError as error:
        return error.exit_code, str(error)
    except KeyboardInterrupt:
        return _interrupted(SIGNALLED + signal.SIGINT)
    except Exception as error:
        # a bug, or a fault of the environment under any class
        code = getattr(error, "exit_code", 1)
        if (reason := environment_fault(error)) is not None:
            return code, reason
        if os.environ.get("EXAMPP_DEBUG"):
            raise
        from exampp.plugins import describe_error, failed_plugin

        if plugin := failed_plugin(error):
            return code, (
                f"{plugin} failed: {describe_error(error)}\n"
                "Finished work is stored. Report this to the authors of the package; "
                "EXAMPP_DEBUG=1 shows where."
            )
        return code, (
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a defect of exampp. EXAMPP_DEBUG=1 shows where; please report it."
        )


def _run() -> int:
    """Run the command of the arguments; return the exit code."""
    try:
        return app.main(prog_name="exampp", complete_var=COMPLETING, standalone_mode=False) or 0
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(printable_text(shown.getvalue()), err=True, nl=False)
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        print("Aborted.", file=sys.stderr)
        return 1


def _interrupted(code: int) -> tuple[int, str]:
    told = STORED.get(" ".join(sys.argv[1:2])) or STORED.get(" ".join(sys.argv[1:3]))
    return code, f"interrupted. {told}:\n  {this_command()}" if told else "interrupted."
