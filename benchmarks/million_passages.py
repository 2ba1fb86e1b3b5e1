"""A million passages from files to a report: CPU, wall time and peak memory of every step.

python benchmarks/million_passages.py [--queries 2000] [--passages 500] [--items 10]
                                      [--systems 100] [--only NAME ...] [--keep FOLDER]

Writes graded passages, queries and a bank as files (`large_exam.py`), imports them, lets a scripted
grader grade the pools of a hundredth of the queries, and runs every command once, each as a process
of its own. Then the collection is served: how long the first overview takes, how long until
everything was read, and every page after that. A folder that is kept is used again.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from os import wait4
from pathlib import Path
from urllib.parse import urlsplit

from scaling import run

GRADER = ("--grader", "google/flan-t5-large")
COMMANDS: Mapping[str, Sequence[str]] = {
    "import": ("import", "new.exam", "queries.json", "bank.tsv", "exam.graded.jsonl.gz"),
    "status": ("status", "exam.exam"),
    "evaluate": (
        *("evaluate", "exam.exam", *GRADER, "-m", "Cover@20", "-m", "nDCG@20", "-m", "P@20"),
        *(word for rating in "12345" for word in ("--min-rating", rating)),
    ),
    "export": ("export", "exam.exam", "new.graded.jsonl.gz"),
    "report": ("report", "exam.exam", *GRADER, "-o", "new.html"),
}
STEPS = ("files", "import", "grade", "status", "evaluate", "export", "report", "serve")
PAGES = (
    *("/", "/queries", "/items", "/queue", "/lists/missing", "/lists/spurious", "/lists/verify"),
    *("/lists/grid", "/compare", "/query?id=q0", "/search?q=tides", "/agreement", "/trust"),
)
WAITING = ("Being counted", "being read", "being computed")
"""The text of a page that is not complete yet."""
PATIENCE = 900.0
"""Seconds after which a page that is still being read is given up."""


def write_files(folder: Path, options: argparse.Namespace) -> None:
    """The files that are imported."""
    import large_exam

    options.seed = 0
    large_exam.write_inputs(folder, options)
    large_exam.write_graded(folder / "exam.graded.jsonl.gz", options)


def grade(path: Path, queries: int) -> None:
    """Grade the pools of the first queries by a function."""
    import exampp
    from exampp.graders.base import Request
    from exampp.graders.scripted import ScriptedGrader

    def rate(ask: Request) -> str:
        return str(len(ask.passage) % 6)

    with exampp.Collection(path) as exam:
        run = exam.grading(ScriptedGrader(rate, record=False), max_queries=queries)
        print(sum(len(one.cells) for one in run.pending()), "cells")
        for _ in run.steps():
            pass


def serve(folder: Path) -> None:
    """Print what a person waits for, and what the server takes."""
    words = [sys.executable, "-m", "exampp", "serve", "exam.exam", "--port", "0", *GRADER]
    began = time.monotonic()
    with (folder / "said").open("w") as out:
        server = subprocess.Popen(words, cwd=folder, stdout=out, stderr=out)
    while (found := re.search(r"http://\S+", (folder / "said").read_text())) is None:
        time.sleep(0.05)
    address = found[0]
    said(f"serve: ready to be asked after {time.monotonic() - began:.1f} s")
    place = urlsplit(address)
    connection = HTTPConnection(place.netloc, timeout=PATIENCE)
    connection.request("GET", f"{place.path or '/'}?{place.query}")
    answer = connection.getresponse()
    answer.read()
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]

    def ask(path: str) -> tuple[float, str]:
        start = time.monotonic()
        connection.request("GET", path, headers={"cookie": cookie})
        answer = connection.getresponse()
        page = answer.read().decode()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}\n{page}")
        return time.monotonic() - start, page

    for path in PAGES:
        start = time.monotonic()
        first, page = ask(path)
        while any(word in page for word in WAITING) and time.monotonic() - start < PATIENCE:
            time.sleep(0.5)
            _, page = ask(path)
        whole = time.monotonic() - start
        again, _ = ask(path)
        said(f"serve {path}: first {first:.2f} s, whole after {whole:.1f} s, again {again:.2f} s")
    server.send_signal(signal.SIGINT)
    _, _, used = wait4(server.pid, 0)
    server.returncode = 0
    row("serve", used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024)


def said(text: str) -> None:
    print(text, flush=True)


def row(name: str, spent: float, wall: float, peak: float) -> None:
    said(f"| {name} | {spent:.1f} | {wall:.1f} | {peak:.0f} |")


def step(name: str, folder: Path, options: argparse.Namespace) -> None:
    """One step, and its row of the table."""
    if name == "serve":
        serve(folder)
        return
    own = [sys.executable, str(Path(__file__).resolve()), *sizes(options), "--here", str(folder)]
    words = (
        [sys.executable, "-m", "exampp", *COMMANDS[name]]
        if name in COMMANDS
        else [*own, "--only", name]
    )
    for made in folder.glob("new.*"):
        made.unlink()
    began = time.monotonic()
    spent, peak = run(words, folder)
    row(name, spent, time.monotonic() - began, peak)
    if name == "import":
        (folder / "new.exam").rename(folder / "exam.exam")


def sizes(options: argparse.Namespace) -> list[str]:
    names = ("queries", "passages", "items", "systems")
    return [word for name in names for word in (f"--{name}", str(getattr(options, name)))]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name, default in (("queries", 2000), ("passages", 500), ("items", 10), ("systems", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--keep", type=Path, help="where the files and the collection stay")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here and options.only == ["files"]:
        write_files(options.here, options)
    elif options.here:
        grade(options.here / "exam.exam", max(1, options.queries // 100))
    else:
        with tempfile.TemporaryDirectory() as made:
            folder = options.keep or Path(made)
            folder.mkdir(exist_ok=True)
            said("| step | CPU s | wall s | peak MB |\n|---|---|---|---|")
            for name in options.only:
                step(name, folder, options)


if __name__ == "__main__":
    main()
