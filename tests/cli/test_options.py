"""Every option has its line in the campaign of options, and a few commands are run with it."""

from __future__ import annotations

import pytest
from options import (
    ALL,
    ELSEWHERE,
    OPTIONS,
    Run,
    _read_once,
    check_uses,
    example,
    run,
    spellings,
)

from exampp.cli.command import Command

__all__ = ["_read_once", "example", "run"]


def test_every_option_has_its_line() -> None:
    assert set(OPTIONS) == set(ALL)
    for name, command in ALL.items():
        assert isinstance(command, Command), name
        for names in spellings(command):
            tried = ELSEWHERE | set(OPTIONS[name].options)
            assert set(names) & tried, f"{name} {names[0]} has no line"
        known = {name for names in spellings(command) for name in names}
        assert set(OPTIONS[name].options) <= known, name


@pytest.mark.parametrize("name", ["import", "bank edit"])
def test_every_option_changes_something_or_is_refused(name: str, run: Run) -> None:
    """A short form of the campaign."""
    check_uses(name, run)
