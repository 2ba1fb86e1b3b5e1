"""How this program was started, for commands that people are told to type."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from exampp.installed import typed


def command(*arguments: object) -> str:
    """A command of exampp, to be typed in the shell that started this one."""
    return f"{_program()} {shlex.join(map(str, arguments))}"


def this_command(without: Mapping[str, bool] | None = None, more: Iterable[str] = ()) -> str:
    """The command that runs, as it may be typed again.

    `without` are options that it does not have then, by whether they have a value, and `more` what
    it has in their place.
    """
    kept, given = list[str](), iter(sys.argv[1:])
    for argument in given:
        name, joined, _ = argument.partition("=")
        if name not in (without or {}):
            kept.append(argument)
        elif (without or {})[name] and not joined:
            next(given, None)
    return command(*kept, *more)


def _program() -> str:
    """What to type for `exampp`: the name where the shell finds it, else the way it was called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{typed(Path(sys.executable))} -m exampp"
    return typed(called)
