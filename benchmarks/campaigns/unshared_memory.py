"""Two processes grade one collection without sharing memory, as two machines would.

    python benchmarks/campaigns/unshared_memory.py --rounds 12

Linux and a C compiler are needed: a preloaded library maps every `-shm` file for one process alone.
Both processes import and grade at once, in one of three ways: both without shared memory, one of
them, or the same file by two names (hard links). A collection that `check` or SQLite finds damaged,
or that lacks a grade which a process reported, counts as damage; a refusal does not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import exampp

SOURCE = Path(__file__).with_suffix(".c")
GRADE = """
import sys, exampp
path, grader, patience = sys.argv[1:]
from exampp.store import connection
connection.BUSY_SECONDS = float(patience)
try:
    with exampp.open(path) as exam:
        def rate(item, passage):
            return len(passage.text) % 6
        print(exam.grade(rate, name=grader, kind="question").done)
except exampp.ExamError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""
WAYS = ("both private", "one private", "two names")


def library(folder: Path) -> Path:
    """Compile the library that is preloaded."""
    made = folder / "private.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, SOURCE, "-ldl"], check=True)
    return made


def play(whole: Path, folder: Path, preload: Path, way: str, patience: float) -> str:
    """Grade a copy by two processes at once; returns what became of it."""
    folder.mkdir()
    one = two = Path(shutil.copy(whole, folder / "my.exam"))
    if way == "two names":
        (folder / "other").mkdir()
        two = folder / "other" / "my.exam"
        os.link(one, two)
    runs = []
    for number, path in enumerate((one, two)):
        private = way == "both private" or (way == "one private" and number == 1)
        environment = os.environ | ({"LD_PRELOAD": str(preload)} if private else {})
        runs.append(
            subprocess.Popen(
                [sys.executable, "-c", GRADE, str(path), f"grader{number}", str(patience)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [(*run.communicate(timeout=300), run.returncode) for run in runs]
    if any(code not in (0, 3) for *_, code in said):
        return f"FAULT {said}"
    if two != one:
        two.unlink()
    found = exampp.check(one)
    if not found.ok:
        return f"DAMAGED {found}"
    with exampp.open(one) as exam:
        names = {grader.model for grader in exam.graders}
        done = {f"grader{n}" for n, (*_, code) in enumerate(said) if code == 0}
        if not done <= names:
            return f"LOST {done - names}"
    return {2: "both graded", 1: "one graded, one refused", 0: "both refused"}[len(done)]


def main() -> None:
    """Play all ways so many times; ends with 1 where a collection was damaged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--patience", type=float, default=5)
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        preload, whole = library(folder), folder / "whole.exam"
        subprocess.run(
            [sys.executable, "-m", "exampp", "demo", whole], check=True, capture_output=True
        )
        for way in WAYS:
            for number in range(options.rounds):
                place = folder / f"{way} {number}"
                result = play(whole, place, preload, way, options.patience)
                if result.split()[0].isupper():
                    print(f"{way}: {result}", flush=True)
                    result = result.split()[0]
                counts[way, result] += 1
    for (way, result), count in sorted(counts.items()):
        print(f"{count:5}  {way}: {result}")
    sys.exit(any(result.isupper() for _, result in counts))


if __name__ == "__main__":
    main()
