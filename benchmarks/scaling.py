"""Measure commands as an exam grows: CPU seconds, peak memory, and the exponent of growth.

python benchmarks/scaling.py [--only status evaluate] [--over queries systems] [--repeat 3]

Exams of four sizes, each three times the one before, over passages of a query, items of a query
(grades), queries and systems. Every command is a process of its own; its CPU time is that of its
fastest run. The exponent is the slope of log CPU over log size, less what the command takes on an
exam of next to nothing: 1 is linear, 0 is a cost that does not depend on the size, and - says that
the largest exam takes hardly more than an empty one.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

NOTHING = {"queries": 4, "passages": 6, "items": 3, "systems": 4}
LEAST = {"queries": 10, "passages": 50, "items": 4, "systems": 10}
SIZES = (1, 3, 9, 27)
LITTLE = 0.15
"""CPU seconds beyond those of an empty exam that are too few for an exponent."""
OVER = {"passages": "passages", "grades": "items", "queries": "queries", "systems": "systems"}
INPUTS = ("queries.json", "bank.tsv", "passages.jsonl", "runs.run", "judgments.qrels")
TWO = ("bm25-tuned-run000", "splade-run001")
"""Systems of every size."""
RATERS = ("--grader", "google/flan-t5-large", "--grader", "ScriptedGrader")
OFFICIAL = ("--official", "exam.official.json")
COMMANDS: Mapping[str, Sequence[str]] = {
    "import": ("import", "new.exam", *INPUTS),
    "import graded": ("import", "new.exam", "exam.graded.jsonl.gz"),
    "grade": ("grade", "new.exam"),
    "status": ("status", "exam.exam"),
    "pool": ("status", "exam.exam", "--pool"),
    "systems": ("systems", "exam.exam"),
    "search in vain": ("search", "exam.exam", "zzqx"),
    "evaluate": (
        *("evaluate", "exam.exam", "-m", "Cover@20", "-m", "nDCG@20", "-m", "P@20"),
        *(word for rating in "12345" for word in ("--min-rating", rating)),
    ),
    "evaluate a file": ("evaluate", "exam.graded.jsonl.gz"),
    "export": ("export", "exam.exam", "new.jsonl.gz"),
    "merge": ("merge", "new.exam", "exam.exam"),
    "vote": ("vote", "new.exam", *RATERS, "--rule", "mean"),
    "calibrate": ("calibrate", "new.exam", "exam.calibration"),
    "reparse": ("reparse", "exam.exam", "--dry-run"),
    "compare": ("compare", "exam.exam", *TWO),
    "gate": ("gate", "exam.exam", "-r", "Cover@20>=0", "--allow-missing", "0.9"),
    "plot": ("plot", "leaderboard", "exam.exam", "-o", "new.svg"),
    "report": ("report", "exam.exam", "-o", "new.html", *OFFICIAL),
    "correlation": ("analyze", "correlation", "exam.exam", *OFFICIAL),
    "agreement": ("analyze", "agreement", "exam.exam"),
    "items": ("analyze", "items", "exam.exam", *OFFICIAL),
    "reliability": ("analyze", "reliability", "exam.exam"),
    "significance": ("analyze", "significance", "exam.exam"),
    "sensitivity": ("analyze", "sensitivity", "exam.exam"),
    "calibration": ("analyze", "calibration", "exam.exam"),
    "corrected": ("analyze", "corrected", "exam.exam"),
    "attacks": ("analyze", "attacks", "two.exam", *RATERS[2:]),
    "unsaid": ("analyze", "unsaid", "exam.exam", "--pair", "=".join(TWO)),
    "review verify": ("review", "exam.exam", "verify", "--limit", "5"),
    "review grid": ("review", "exam.exam", "grid", "--limit", "5"),
    "review missing": ("review", "exam.exam", "missing", "--limit", "5"),
    "review spurious": ("review", "exam.exam", "spurious", "--limit", "5"),
    "review plan": ("review", "new.exam", "sample", "--labels", "100"),
    "bank show": ("bank", "show", "exam.exam"),
    "export bank": ("export", "exam.exam", "new.csv"),
    "bank lint": ("bank", "lint", "exam.exam"),
    "bank split": ("bank", "split", "new.exam", "--secret", "0.5"),
    "bank compare": ("bank", "compare", "split.exam", "-m", "Cover@20"),
    "bank duplicates": ("bank", "duplicates", "exam.exam"),
    "bank list": ("bank", "list", "exam.exam"),
    "bank log": ("bank", "log", "exam.exam"),
    "bank diff": ("bank", "diff", "exam.exam", "1"),
    "bank apply": ("bank", "apply", "exam.exam", "exam.csv", "--dry-run"),
    "bank edit": ("bank", "edit", "new.exam", "add", "q0", "Why?"),
    "bank revert": ("bank", "revert", "exam.exam", "--to", "1", "--dry-run"),
    "changes": ("analyze", "changes", "two.exam", "--since", "exam.exam", *RATERS[:2]),
    "check": ("check", "exam.exam"),
    "record": ("record", "exam.exam", "q0"),
    "review decisions": ("review", "exam.exam", "decisions"),
    "people": ("people", "exam.exam"),
}
"""Commands to run in the folder of an exam; a file called new is made before it, or by it.

Not here: `serve` is measured by `review_load.py` and `million_passages.py`; `bank generate`,
`finetune` and `attacks --build` take what the model takes; `citations` and `reproduce` read other
files; `bank verify` reads only sealed items; `demo`, `prompts` and `plugins` read no exam.
"""
BEFORE = {
    "grade": "inputs.exam",
    "merge": "inputs.exam",
    "vote": "two.exam",
    "calibrate": "exam.exam",
    "review plan": "exam.exam",
    "bank split": "exam.exam",
    "bank edit": "exam.exam",
}
"""Of which collection `new.exam` is a copy."""


def make(folder: Path, shape: Mapping[str, int]) -> None:
    """An exam graded from a file, one graded twice, one with plain inputs alone, their files."""
    import json
    import sqlite3

    import large_exam

    import exampp

    sys.argv = ["", str(folder / "exam.exam")]
    for name, size in shape.items():
        sys.argv += [f"--{name}", str(size)]
    large_exam.main()
    options = argparse.Namespace(**shape)
    large_exam.write_inputs(folder, options)
    with exampp.Collection(folder / "exam.exam") as exam:
        for kind, file in (("runs", INPUTS[3]), ("judgments", INPUTS[4])):
            exam.export(folder / file, kind)
    with sqlite3.connect(folder / "exam.exam") as connection, (folder / INPUTS[2]).open("w") as out:
        for name, text in connection.execute(
            "SELECT passage_id, text FROM passage JOIN passage_version USING (version)"
        ):
            out.write(json.dumps({"passage_id": name, "text": text}) + "\n")
    with exampp.create(folder / "inputs.exam") as exam:
        exam.import_files(*(folder / name for name in INPUTS))
    shutil.copy(folder / "exam.exam", folder / "two.exam")
    grade(folder / "two.exam")
    shutil.copy(folder / "exam.exam", folder / "split.exam")
    for words in (
        ("analyze", "calibration", "exam.exam", "--save", "exam.calibration"),
        ("bank", "split", "split.exam", "--secret", "0.5"),
        ("export", "exam.exam", "exam.csv"),
        ("analyze", "attacks", "two.exam", "--build", "--targets", "1"),
    ):
        run([sys.executable, "-m", "exampp", *words], folder)
    grade(folder / "two.attacks.exam")


def grade(path: Path) -> None:
    """Grade all of a collection by a function."""
    import exampp
    from exampp.graders.base import Request
    from exampp.graders.scripted import ScriptedGrader

    def rate(ask: Request) -> str:
        return str(len(ask.passage) % 6)

    with exampp.Collection(path) as exam:
        exam.grade(ScriptedGrader(rate, record=False))


def run(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """The CPU seconds of a process and its peak memory in MB."""
    # an installed package is compiled
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(
            arguments, cwd=folder, stdout=output, stderr=output, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        # 1 is an answer too: conflicts of a merge, findings of a lint
        if process.returncode not in (0, 1):
            output.seek(0)
            raise SystemExit(f"{' '.join(arguments)}\n{output.read()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(name: str, folder: Path, repeat: int) -> tuple[float, float]:
    """The CPU seconds and the memory of a command in the folder of an exam, fastest of several."""
    found = []
    for _ in range(repeat):
        for made in folder.glob("new.*"):
            made.unlink()
        if name in BEFORE:
            shutil.copy(folder / BEFORE[name], folder / "new.exam")
        words = [sys.executable, "-m", "exampp", *COMMANDS[name]]
        if name == "grade":
            words = [sys.executable, str(Path(__file__).resolve()), "--grade", "new.exam"]
        found.append(run(words, folder))
    return min(found)


def exponent(nothing: float, taken: Sequence[float]) -> float | None:
    """The slope of log CPU over log size, without the cost of an empty exam.

    By least squares in which a size counts as its CPU time squared, as the noise of a measurement
    does not grow with it; None where even the largest exam takes little more than an empty one.
    """
    seconds = [max(one - nothing, 0.005) for one in taken]
    if seconds[-1] < LITTLE:
        return None
    x, y = [math.log(size) for size in SIZES], [math.log(one) for one in seconds]
    weights = [one**2 for one in seconds]
    mean_x, mean_y = (
        sum(w * one for w, one in zip(weights, values, strict=True)) / sum(weights)
        for values in (x, y)
    )
    above = sum(w * (a - mean_x) * (b - mean_y) for w, a, b in zip(weights, x, y, strict=True))
    return above / sum(w * (a - mean_x) ** 2 for w, a in zip(weights, x, strict=True))


def compare(over: str, commands: Sequence[str], folder: Path, repeat: int) -> None:
    """Print the table of one dimension."""
    shapes = [NOTHING, *({**LEAST, OVER[over]: LEAST[OVER[over]] * size} for size in SIZES)]
    folders = [folder / "-".join(map(str, shape.values())) for shape in shapes]
    for at, shape in zip(folders, shapes, strict=True):
        if not at.exists():
            at.mkdir()
            words = [word for name, size in shape.items() for word in (name, str(size))]
            make_it = [sys.executable, str(Path(__file__).resolve()), "--make", str(at), *words]
            subprocess.run(make_it, check=True, stdout=subprocess.DEVNULL)
    sizes = ", ".join(f"{shape[OVER[over]]}" for shape in shapes[1:])
    print(f"\n{over}: {sizes} {OVER[over]}\n")
    print("| command | CPU s of nothing | of the four | exponent | MB of the largest |")
    print("|---|---|---|---|---|", flush=True)
    for name in commands:
        measured = [measure(name, at, repeat) for at in folders]
        nothing, *taken = (seconds for seconds, _ in measured)
        steps = ", ".join(f"{seconds:.2f}" for seconds in taken)
        slope = exponent(nothing, taken)
        said = "-" if slope is None else f"{slope:.2f}"
        print(f"| {name} | {nothing:.2f} | {steps} | {said} | {measured[-1][1]:.0f} |")
        sys.stdout.flush()
    for at in folders[2:]:
        shutil.rmtree(at)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--over", nargs="+", choices=OVER, default=list(OVER))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--make", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--grade", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.grade:
        grade(options.grade)
    elif options.make:
        at, *words = options.make
        make(Path(at), dict(zip(words[::2], map(int, words[1::2]), strict=True)))
    else:
        with tempfile.TemporaryDirectory() as folder:
            for over in options.over:
                compare(over, options.only, Path(folder), options.repeat)


if __name__ == "__main__":
    main()
