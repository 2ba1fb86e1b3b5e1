"""Flip bits of a collection at random: `exampp check` must see every flip that changes a number.

    python benchmarks/campaigns/bit_flips.py --flips 300 --seed 0

Each flip changes one bit of a copy of the demo collection, with decisions of two people. The oracle
is the output of `status`, `evaluate` and five exports of the unflipped file. Where a flip changes
the numbers of `evaluate`, it must end in an error; `check` must find every flip that changes any
output.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import exampp
from exampp.errors import ExamError

LIMIT_SECONDS = 30
CRASH = "unexpected"
EXPORTS = ("workbench", "bank", "runs", "judgments", "decisions")


class Hang(Exception):
    """A command took longer than `LIMIT_SECONDS`."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise Hang in a block that takes too long."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _export(kind: str) -> Callable[[exampp.Collection], str]:
    def export(exam: exampp.Collection) -> str:
        to = exam.path.with_suffix(".out")
        exam.export(to, kind)
        return to.read_bytes().hex()

    return export


COMMANDS: dict[str, Callable[[exampp.Collection], str]] = {
    "status": lambda exam: "".join(
        table.to_json() for table in (exam.contents(), *exam.status_tables().values())
    ),
    "evaluate": lambda exam: exam.grades().evaluate().to_json(),
    **{kind: _export(kind) for kind in EXPORTS},
}


def outputs(path: Path) -> Iterator[tuple[str, str]]:
    """The output of every command, "" for one that was refused."""
    for name, command in COMMANDS.items():
        try:
            with limited(), exampp.Collection(path) as exam:
                yield name, command(exam)
        except ExamError:
            yield name, ""
        except Exception as error:
            yield name, f"{CRASH} {type(error).__name__}: {error}"


def outcome(path: Path, expected: dict[str, str]) -> str:
    """Return the outcome of one flip."""
    try:
        found = dict(outputs(path))
        with limited():
            ok = exampp.check(path).ok
    except ExamError:
        ok = False
    except Exception as error:
        return f"FAULT {type(error).__name__}: {error}"
    if crashed := [text for text in found.values() if text.startswith(CRASH)]:
        return f"MISSED {crashed[0]}" if ok else "unexpected error, found by check"
    wrong = [name for name, text in found.items() if text and text != expected[name]]
    if wrong:
        missed = ok or "evaluate" in wrong
        return f"MISSED {' '.join(wrong)}" if missed else "other status or export, found by check"
    if not all(found.values()):
        return "refused by a command" + (", check says OK" if ok else "")
    return "same numbers" + ("" if ok else ", found by check")


def make(path: Path) -> None:
    """Make the demo collection, with decisions of two people."""
    from exampp.cli.collection import demo

    with contextlib.redirect_stdout(io.StringIO()):
        demo(path)
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        query = grades.gradebook.queries[0]
        for author, rating in (("ann", 1), ("bob", 4)):
            cell = (query.query_id, query.item_ids[0], query.passage_ids[0])
            grades.decisions.decide(*cell, rating, author=author)
        exam.status()


def main() -> None:
    """Flip, compare and count; ends with 1 where a flip was missed or a command failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    choose = random.Random(options.seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        whole, path = Path(folder) / "whole.exam", Path(folder) / "flipped.exam"
        make(whole)
        original = whole.read_bytes()
        expected = dict(outputs(whole))
        if not all(expected.values()) or not exampp.check(whole).ok:
            sys.exit(f"the unflipped collection is refused: {exampp.check(whole)}")
        for _ in range(options.flips):
            for file in Path(folder).glob("flipped.exam*"):
                file.unlink()
            bit = choose.randrange(len(original) * 8)
            content = bytearray(original)
            content[bit // 8] ^= 1 << bit % 8
            path.write_bytes(content)
            result = outcome(path, expected)
            if result.startswith(("FAULT", "MISSED")):
                print(f"bit {bit}: {result}", flush=True)
                result = result.partition(" ")[0]
            counts[result] += 1
    for result, count in counts.most_common():
        print(f"{count:5}  {result}")
    sys.exit(bool(counts["MISSED"] + counts["FAULT"]))


if __name__ == "__main__":
    main()
