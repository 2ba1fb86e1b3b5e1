"""The shell completes verbs, commands, options and choices, without importing every verb."""

from __future__ import annotations

from typing import Any

import click
import pytest
from support.commands import Commands

from exampp.cli.main import PURPOSES, Verbs

VERBS = [name for verbs in PURPOSES.values() for name in verbs]


def completed(run: Commands, line: str) -> list[str]:
    """Return the words that bash offers for the last word of a line, or "file" for file names."""
    run.patch.setenv("_EXAMPP_COMPLETE", "bash_complete")
    run.patch.setenv("COMP_WORDS", line)
    run.patch.setenv("COMP_CWORD", str(line.count(" ")))
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    offered = [one.split(",", 1) for one in ran.out.split()]
    return [value if kind == "plain" else kind for kind, value in offered]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("exampp ", VERBS),
        ("exampp ev", ["evaluate"]),
        ("exampp --vers", ["--version"]),
        ("exampp analyze correl", ["correlation"]),
        ("exampp bank edit my.exam re", ["reword", "retire", "restore"]),
        ("exampp evaluate my.exam --off", ["--official"]),
        ("exampp evaluate my.exam --note", ["--notes"]),
        ("exampp evaluate my.exam --format la", ["latex"]),
        ("exampp evaluate my", ["file"]),
    ],
)
def test_what_is_offered(exampp_command: Commands, line: str, offered: list[str]) -> None:
    assert completed(exampp_command, line) == offered


def test_the_verbs_are_offered_without_importing_one() -> None:
    group: Any = Verbs()
    offered = group.shell_complete(click.Context(group), "re")
    summaries = {name: text for of in PURPOSES.values() for name, (_, text) in of.items()}
    assert [(one.value, one.help) for one in offered] == [
        (name, summaries[name]) for name in ("review", "record", "report", "reparse", "reproduce")
    ]
    assert not group.commands.loaded
