"""Kills `exampp import` and `exampp grade` at random moments and checks what is left.

    python benchmarks/kill.py GRADED.jsonl.gz BANK.jsonl.gz [--kills 10] [--seed 1]

After every kill -9 the collection must open, pass `PRAGMA integrity_check`, and hold every grade
it held before; the rerun that is let through must end with the grades of an undisturbed run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPP = [sys.executable, "-m", "exampp"]
Grades = dict[tuple[str, str], tuple[int, int | None, str | None]]


def ungraded(graded: Path, to: Path) -> Path:
    """The graded file without its grades: passages, rankings and judgments."""
    with gzip.open(graded, "rt") as source, to.open("w") as target:
        for line in source:
            query, passages = json.loads(line)
            for passage in passages:
                passage.pop("exam_grades", None)
            target.write(json.dumps([query, passages]) + "\n")
    return to


def grades(collection: Path) -> Grades:
    """(item id, passage id) -> state, rating, reply; checks the file on the way."""
    opened = sqlite3.connect(collection)
    (verdict,) = opened.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise SystemExit(f"integrity_check: {verdict}")
    try:
        rows = opened.execute(
            "SELECT i.item_id, p.passage_id, g.state, g.rating, g.reply FROM grade g "
            "JOIN item_version iv ON iv.version = g.item_version JOIN item i USING (item) "
            "JOIN passage_version pv ON pv.version = g.passage_version "
            "JOIN passage p USING (passage)"
        ).fetchall()
    except sqlite3.OperationalError:
        rows = []  # killed before the schema was made
    opened.close()
    return {(item, passage): tuple(rest) for item, passage, *rest in rows}


def killed_after(arguments: list[str], seconds: float) -> bool:
    """Run a command and kill it after a while; whether it was still running then."""
    child = subprocess.Popen(
        [*EXAMPP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
        return True
    return False


def timed(arguments: list[str]) -> float:
    """Run a command to its end; its wall-clock seconds."""
    started = time.monotonic()
    subprocess.run([*EXAMPP, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def trial(
    name: str,
    prepare: list[str],
    command: list[str],
    kills: int,
    reach: float,
    chance: random.Random,
) -> None:
    """Kill `command` some times on one collection, then let it through; compare with undisturbed.

    The moments are drawn from the first `reach` of the time that an undisturbed run takes.
    """
    folder = Path(tempfile.mkdtemp())
    calm, torn = folder / "calm.exam", folder / "torn.exam"
    for path in (calm, torn):
        if prepare:
            timed([*prepare[:1], str(path), *prepare[1:]])
    seconds = timed([*command[:1], str(calm), *command[1:]])
    print(f"{name}: undisturbed {seconds:.1f} s, {len(grades(calm))} grades")
    before: Grades = grades(torn) if torn.exists() else {}
    for kill in range(kills):
        after = chance.uniform(0.05, seconds * reach)
        was_running = killed_after([*command[:1], str(torn), *command[1:]], after)
        now = grades(torn) if torn.exists() else {}
        lost = [cell for cell, grade in before.items() if now.get(cell) != grade]
        verdict = "killed" if was_running else "finished"
        print(f"  {kill + 1}: {verdict} after {after:.1f} s, {len(now)} grades, {len(lost)} lost")
        if lost:
            raise SystemExit("committed grades were lost")
        before = now
    timed([*command[:1], str(torn), *command[1:]])
    same = grades(torn) == grades(calm)
    print(f"  rerun: {len(grades(torn))} grades, {'the same' if same else 'NOT THE SAME'}")
    if not same:
        raise SystemExit(1)


def main() -> None:
    """Both trials."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("graded", type=Path)
    parser.add_argument("bank", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    bare = ungraded(options.graded, Path(tempfile.mkdtemp()) / "ungraded.jsonl")
    trial("import", [], ["import", str(options.graded)], options.kills, 1.0, chance)
    # every killed run leaves less to do: spread the kills over the whole of the work
    reach = 2 / (options.kills + 1)
    prepare = ["import", str(bare), str(options.bank)]
    trial("grade", prepare, ["grade", "--grader", "draft"], options.kills, reach, chance)


if __name__ == "__main__":
    main()
