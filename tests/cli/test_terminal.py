"""On a terminal tables fit and have colours; in a pipe they are whole and plain."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exampp import create
from exampp.cli.main import main

NAME = "neural-reranker-with-a-name-that-says-all-there-is-to-say-of-it"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


OnTerminal = Callable[..., str]


@pytest.fixture
def on_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """Runs a command on a terminal of so many columns, and gives what it shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with create("my.exam") as exam:
        exam.add(
            queries={"q1": "what is it"},
            passages={"p1": "It is this."},
            runs={NAME: {"q1": ["p1"]}, "bm25": {"q1": ["p1"]}},
        )

    def run(line: str, columns: int = 50, stream: io.StringIO | None = None) -> str:
        shown = stream or Terminal()
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", shown)
        monkeypatch.setattr(sys, "argv", ["exampp", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return shown.getvalue()

    return run


def test_a_terminal_shows_what_it_has_room_for_and_a_pipe_all(on_terminal: OnTerminal) -> None:
    shown = on_terminal("systems my.exam")
    assert "\x1b[1msystem" in shown
    assert NAME not in shown
    assert max(map(len, shown.splitlines())) <= 50 + len("\x1b[1m\x1b[0m") * 3
    piped = on_terminal("systems my.exam", stream=io.StringIO())
    assert NAME in piped
    assert "\x1b" not in piped


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_left_out_where_they_are_not_wanted(
    on_terminal: OnTerminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    shown = on_terminal("systems my.exam")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 50


def test_formats_of_programs_are_the_same_on_a_terminal(on_terminal: OnTerminal) -> None:
    for style in ("tsv", "json", "markdown"):
        line = f"systems my.exam --format {style}"
        assert on_terminal(line) == on_terminal(line, stream=io.StringIO())
