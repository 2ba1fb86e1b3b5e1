"""The shell completes verbs, commands, options and choices, without importing every verb."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from commands import Commands

from exampp.cli.main import app
from exampp.cli.verbs import PURPOSES

VERBS = [name for verbs in PURPOSES.values() for name in verbs]


def completed(run: Commands, line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    run.patch.setenv("_EXAMPP_COMPLETE", "complete_bash")
    run.patch.setenv("COMP_WORDS", line)
    run.patch.setenv("COMP_CWORD", str(line.count(" ")))
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("exampp ", VERBS),
        ("exampp ev", ["evaluate"]),
        ("exampp --vers", ["--version"]),
        ("exampp analyze lead", ["leaderboards"]),
        ("exampp bank edit my.exam re", ["reword", "retire", "restore"]),
        ("exampp evaluate my.exam --off", ["--official"]),
        ("exampp evaluate my.exam --wi", ["--wide"]),
        ("exampp evaluate my.exam --format la", ["latex"]),
        # nothing is offered for a file, and so the shell itself offers files
        ("exampp evaluate my", []),
    ],
)
def test_what_is_offered(exampp_command: Commands, line: str, offered: list[str]) -> None:
    assert completed(exampp_command, line) == offered


def test_the_verbs_are_offered_without_importing_one() -> None:
    group: Any = typer.main.get_command(app)
    offered = group.shell_complete(typer.Context(group), "re")
    assert [(one.value, (one.help or "").partition("...")[0]) for one in offered] == [
        ("reparse", "Read the kept replies of a grader again,"),
        ("report", "Write one self-contained page: tables,"),
        ("review", "Look at grades and decisions: four lists"),
    ]
    assert not group.commands.loaded
