"""Runs the command line in this process."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from exampp.cli.main import main


class Ran(NamedTuple):
    """Output and exit code of a command."""

    code: int
    out: str
    err: str


class Commands:
    """Runs `exampp` with arguments."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.patch = patch

    def __call__(self, *arguments: object) -> Ran:
        self.patch.setattr(sys, "argv", ["exampp", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = self.capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def line(self, line: str) -> Ran:
        """A command as one types it in a shell: quotes, `*`, and `> FILE` are understood."""
        words, _, to = line.removeprefix("exampp ").partition(" > ")
        ran = self(*(path for word in shlex.split(words) for path in expanded(word)))
        if to:
            Path(to).write_text(ran.out)
        return ran


def expanded(word: str) -> list[str]:
    """The files that a word with `*` stands for, as a shell has it."""
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]
