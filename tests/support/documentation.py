"""Pages of the documentation: their blocks, and the output that they show."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from exampp.cli.main import main
from support.waiting import wait_for

LEFT_OUT = "..."
"""A line of shown output that stands for any number of lines."""
_BLOCK = re.compile(
    r"^(?P<free><!-- output not compared: [^\n]+ -->\n)?```(?P<language>console|python)\n"
    r"(?P<text>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_OF_A_SHELL = re.compile(r"[|;&`]|\$\(|\d>|\$\?")


@dataclass
class Block:
    """A block of a page that is run."""

    language: str
    text: str
    output: str | None
    compared: bool
    span: tuple[int, int]
    """Return the place of the output: in a console block, or after one of Python."""


@dataclass
class Step:
    """A command of a console block and the lines of output shown after it."""

    command: str
    shown: list[str]

    @property
    def line(self) -> str:
        """The command on one line."""
        return self.command.replace("\\\n", "")


def blocks(page: str) -> Iterator[Block]:
    """Yield the console and Python blocks of a page, in order.

    The output of a Python block is the text block that follows it.
    """
    for found in _BLOCK.finditer(page):
        console = found["language"] == "console"
        span = found.span("text" if console else "output")
        yield Block(found["language"], found["text"], found["output"], not found["free"], span)


def steps(block: str) -> list[Step]:
    """Return the commands of a console block; a command may continue after a backslash."""
    found: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), []))
        elif found and found[-1].command.endswith("\\"):
            found[-1].command += f"\n{line}"
        else:
            assert found, f"output before the first command: {line}"
            found[-1].shown.append(line)
    return found


def matches(shown: Sequence[str], real: Sequence[str]) -> bool:
    """Compare shown output with the real one, except lines left out."""
    shown, real = [line.rstrip() for line in shown], [line.rstrip() for line in real]
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first == real
    if real[: len(first)] != first:
        return False
    at, end = len(first), len(real) - len(last)
    for part in parts[1:-1]:
        places = range(at, end - len(part) + 1)
        place = next((n for n in places if real[n : n + len(part)] == part), None)
        if place is None:
            return False
        at = place + len(part)
    return at <= end and real[end:] == last


def renewed(shown: Sequence[str], real: Sequence[str]) -> list[str]:
    """Return what is to be shown of the real output: as many lines at both ends as before."""
    if LEFT_OUT not in shown:
        return list(real)
    head = shown.index(LEFT_OUT)
    tail = list(reversed(shown)).index(LEFT_OUT)
    if head + tail >= len(real):
        return list(real)
    return [*real[:head], LEFT_OUT, *real[len(real) - tail :]]


class Shell:
    """Runs lines as a shell does; commands of exampp run in this process.

    A line that ends with `&` starts a server, whose output goes to a file; it ends with `stop`.
    Servers of pages listen on a free port instead of `PORT`.
    """

    PORT = "8766"

    def __init__(self) -> None:
        self.code = 0
        self._servers: list[subprocess.Popen[str]] = []
        self._port = ""

    def run(self, line: str) -> list[str]:
        """Run a line; return the lines of both streams, as a terminal shows them."""
        if line.endswith(" &"):
            return self._start(line.removesuffix(" &"))
        if self._servers:
            shown = self._by_bash(line.replace(self.PORT, self._port))
            return [one.replace(self._port, self.PORT) for one in shown]
        if not line.startswith("exampp ") or _OF_A_SHELL.search(re.sub("'.*?'", "", line)):
            return self._by_bash(line)
        line, _, to = line.partition(" > ")
        words = [path for word in shlex.split(line) for path in _expanded(word)]
        printed = io.StringIO()
        out = io.StringIO() if to else printed
        self.code = _call(words, out, printed)
        if to:
            Path(to).write_text(out.getvalue(), encoding="utf-8")
        return printed.getvalue().splitlines()

    def stop(self) -> None:
        """End the servers."""
        for one in self._servers:
            one.terminate()
            one.wait()

    def _start(self, line: str) -> list[str]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        log = Path(line.rpartition(" > ")[2])
        command = f"exec {line.replace(self.PORT, self._port)}"
        server = subprocess.Popen(["bash", "-c", command], text=True, env=self._environment())
        self._servers.append(server)
        wait_for(
            lambda: (log.exists() and "Ctrl-C" in log.read_text()) or server.poll() is not None
        )
        return []

    @staticmethod
    def _environment() -> dict[str, str]:
        folder = Path(sys.executable).parent
        return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

    def _by_bash(self, line: str) -> list[str]:
        ran = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {line}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment(),
        )
        self.code = ran.returncode
        return ran.stdout.splitlines()


def _content(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _expanded(word: str) -> list[str]:
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]


def _call(words: list[str], out: io.StringIO, err: io.StringIO) -> int:
    typed, sys.argv = sys.argv, words
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = typed
    return 0


def run_cell(source: str, names: dict[str, object]) -> tuple[str, object]:
    """Run Python as a notebook does; return what it prints, and the value of its last line."""
    cell = ast.parse(source)
    last = cell.body[-1] if cell.body else None
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            cell.body.pop()
        exec(compile(cell, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue(), value
