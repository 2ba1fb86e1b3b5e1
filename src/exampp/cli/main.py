"""The `exampp` command: arguments in, errors as one clear sentence out."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any, NoReturn, cast

import click
from click.shell_completion import CompletionItem, get_completion_class

import exampp
from exampp.cli import streams
from exampp.cli.command import Group, Unloaded
from exampp.cli.program import this_command
from exampp.cli.streams import SIGNALLED
from exampp.cli.verbs import PURPOSES
from exampp.errors import ExamError, environment_fault

GARBAGE = 100_000
"""Objects that come to be before those that refer to each other are looked for."""
COMPLETING = "_EXAMPP_COMPLETE"
"""The variable by which a shell asks what may come next."""


class Verbs(Group):
    """The verbs by purpose, of which only the one that runs is imported."""

    def __init__(self, **options: Any) -> None:
        homes = {name: verb.home for verbs in PURPOSES.values() for name, verb in verbs.items()}
        super().__init__(commands=cast("Any", Unloaded(homes)), **options)

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """The verbs with their summaries, by purpose."""
        for purpose, verbs in PURPOSES.items():
            yield purpose, [(name, verb.summary) for name, verb in verbs.items()]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What a shell is told of the verbs: their summaries, none of them imported."""
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
    """Print what a shell runs to complete commands, and end."""
    if shell is not None and (of_shell := get_completion_class(shell)) is not None:
        click.echo(of_shell(app, {}, "exampp", COMPLETING).source())
        ctx.exit()


app = Verbs(
    name="exampp",
    help="Evaluate retrieval, generation and RAG systems by an exam.",
    epilog="exampp COMMAND --help says more, with an example.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(exampp.__version__, message="exampp %(version)s", help="Print the version.")(
    app
)
click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    expose_value=False,
    is_eager=True,
    callback=_completion,
    help="Print what has a shell complete commands, options and files.",
)(app)


def main() -> None:
    """Run the command line; the exit code is 0 done, 1 unfinished, 2 bad input, 130 interrupted.

    A command may declare another for its errors (`command.failing`).

    After another signal than that of Ctrl-C it is `SIGNALLED` and the number of that one.
    """
    streams.prepare()
    # a large exam is many objects, none of which is garbage: they are gone through less often
    gc.set_threshold(GARBAGE)
    try:
        code = _run()
        sys.exit(code if streams.flush() else code or 1)
    except SystemExit as end:
        if isinstance(end.code, int) and end.code > SIGNALLED:
            _interrupted(end.code)
        raise
    except ExamError as error:
        _fail(f"exampp: {error}", error.exit_code)
    except KeyboardInterrupt:
        _interrupted(SIGNALLED + signal.SIGINT)
    except Exception as error:
        if (reason := environment_fault(error)) is not None:
            _fail(f"exampp: {reason}", _code(error))
        if os.environ.get("EXAMPP_DEBUG"):
            raise
        _fail(
            f"exampp: unexpected {type(error).__name__}: {error}\n"
            "This is a defect of exampp. EXAMPP_DEBUG=1 shows where; please report it.",
            _code(error),
        )


def _run() -> int:
    """Do what the arguments say; the exit code."""
    try:
        return app.main(prog_name="exampp", complete_var=COMPLETING, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        print("Aborted.", file=sys.stderr)
        return 1


def _code(error: Exception) -> int:
    """What to end with: 1, or what the command declares for its errors (see `command.failing`)."""
    code: int = getattr(error, "exit_code", 1)
    return code


def _interrupted(code: int) -> NoReturn:
    what = "interrupted. What was done is kept, and nothing is half done; this goes on"
    _fail(f"exampp: {what}:\n  {this_command()}", code)


def _fail(text: str, code: int) -> NoReturn:
    # either stream may be closed: there is nobody to tell then
    streams.flush()
    with contextlib.suppress(AttributeError, ValueError, OSError):
        print(text, file=sys.stderr)
    sys.exit(code)
