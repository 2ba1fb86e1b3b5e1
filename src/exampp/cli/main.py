"""The `exampp` command: arguments in, errors as one clear sentence out."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import exampp
from exampp.cli import streams
from exampp.cli.command import Commands, Group, Unloaded
from exampp.cli.program import this_command
from exampp.cli.streams import SIGNALLED
from exampp.cli.verbs import PURPOSES
from exampp.errors import ExamError

GARBAGE = 100_000
"""Objects that come to be before those that refer to each other are looked for."""


class Verbs(Group):
    """The verbs by purpose, of which only the one that runs is imported."""

    def __init__(self, **options: Any) -> None:
        homes = {name: verb.home for verbs in PURPOSES.values() for name, verb in verbs.items()}
        super().__init__(**{**options, "commands": Unloaded(homes)})

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """The verbs with their summaries, by purpose."""
        for purpose, verbs in PURPOSES.items():
            yield purpose, [(name, verb.summary) for name, verb in verbs.items()]

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ARG002
        """What a shell is told of the verbs: their summaries, none of them imported."""
        told = TyperGroup(params=self.params)
        for _, verbs in self.sections():
            for name, summary in verbs:
                told.add_command(TyperCommand(name, help=summary))
        return told.shell_complete(typer.Context(told), incomplete)


app = Commands(
    cls=Verbs,
    name="exampp",
    help="Evaluate retrieval, generation and RAG systems by an exam.",
    epilog="exampp COMMAND --help says more, with an example.",
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"exampp {exampp.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Evaluate retrieval, generation and RAG systems by an exam."""


@functools.cache
def command() -> Callable[[], None]:
    """What `app` declares, as a program: reading all the declarations anew is slow."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; the exit code is 0 done, 1 unfinished, 2 bad input, 130 interrupted.

    A command may declare another for its errors (`command.failing`).

    After another signal than that of Ctrl-C it is `SIGNALLED` and the number of that one.
    """
    streams.prepare()
    # a large exam is many objects, none of which is garbage: they are gone through less often
    gc.set_threshold(GARBAGE)
    try:
        command()()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code > SIGNALLED:
            # typer has seen the KeyboardInterrupt first, or another signal has come
            _interrupted(end.code)
        if not streams.flush():
            sys.exit(end.code or 1)
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


def _code(error: Exception) -> int:
    """What to end with: 1, or what the command declares for its errors (see `command.failing`)."""
    code: int = getattr(error, "exit_code", 1)
    return code


def environment_fault(error: Exception) -> str | None:
    """What is wrong with the machine rather than with exampp or its input: a full disk, say."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this ({error or 'no more could be had'})"
    # slow to load, and few commands without a collection need it
    import sqlite3

    if isinstance(error, sqlite3.OperationalError):
        return f"the collection cannot be read or written: {error}"
    return None


def _interrupted(code: int) -> NoReturn:
    what = "interrupted. What was done is kept, and nothing is half done; this goes on"
    _fail(f"exampp: {what}:\n  {this_command()}", code)


def _fail(text: str, code: int) -> NoReturn:
    # either stream may be closed: there is nobody to tell then
    streams.flush()
    with contextlib.suppress(AttributeError, ValueError, OSError):
        print(text, file=sys.stderr)
    sys.exit(code)
