"""How this program was started, for commands that people are told to type."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def command(*arguments: object) -> str:
    """A command of exampp, to be typed in the shell that started this one."""
    return f"{_program()} {shlex.join(map(str, arguments))}"


def this_command() -> str:
    """The command that runs, as it may be typed again."""
    return command(*sys.argv[1:])


def _program() -> str:
    """What to type for `exampp`: the name where the shell finds it, else the way it was called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_typed(Path(sys.executable))} -m exampp"
    return _typed(called)


def _typed(path: Path) -> str:
    """The name alone where the shell finds this file by it, else its path, from here if below."""
    found = shutil.which(path.name)
    if path.name == str(path) or (found and os.path.realpath(found) == os.path.realpath(path)):
        return path.name
    here = Path.cwd()
    absolute = here / path
    return shlex.quote(
        str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
    )
