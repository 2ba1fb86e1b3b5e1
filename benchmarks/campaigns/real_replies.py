"""Reads every published reply, and accounts for each rating that differs.

    python benchmarks/campaigns/real_replies.py ../shared/data

Three ratings stand side by side: the one in the file, which the papers' own program gave; the
one by the words of the papers (EXAM++, section 4.2: a lone digit on the scale is the rating, an
expression of unanswerability 0, any other text 1); and what exampp reads. Where they are not all
the same a line gives their number, the rule that spoke, and an example. Exits with 1 if a
difference has no reason in `REASONS`, or if the mode `rubric` misses a rating of a file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from exampp.prompts import by_workbench_class, load_grading_prompt, read_reply
from exampp.prompts.answers import is_unanswerable
from exampp.records import Outcome

FILES = ("dl19/graded.jsonl.gz", "llmjudge/test-graded.jsonl.gz")
LONE = re.compile(r"\W*([0-5])\W*")

REASONS = {
    ("rated", "text"): "a rating with its text behind it",
    ("rated", "same"): "a rating with its text behind it",
    ("answered", "text"): "text without a number: 1 by the papers, 0 by their program",
    ("answered", "same"): "text without a number: 1 by the papers, 0 by their program",
    ("unanswerable", "same"): "no answer: 0 by the papers, 1 by their program",
    ("unanswerable", "text"): "no word, or 'None'",
    ("off-scale", "text"): "a number that is not on the scale is no text without a number",
    ("several", "text"): "several numbers are no text without a number",
    ("no verdict", "text"): "a count, a quantity, a year: no text without a number",
}
"""Reasons why a reading may differ, by its rule and by its use of the papers' words."""


class Row(NamedTuple):
    """Equal replies to one prompt: the rating in the file, by the papers' words, and by exampp."""

    prompt: str
    file: int
    papers: int
    ours: int | None
    rule: str


def replies(file: Path) -> Iterator[tuple[str, str, int]]:
    """Prompt, raw reply and stored rating (a verdict is 0 or 1) of every grade of a file."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            for passage in json.loads(line)[1]:
                for grade in passage.get("exam_grades") or ():
                    yield from _graded(grade)


def _graded(grade: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    prompt = by_workbench_class(grade["prompt_info"]["prompt_class"])
    correct = set(grade["correctAnswered"])
    ratings = {
        rating.get("question_id") or rating["nugget_id"]: rating["self_rating"]
        for rating in grade.get("self_ratings") or ()
    }
    for item, reply in grade["answers"]:
        yield prompt or "", reply, ratings.get(item, int(item in correct))


@cache
def reading(prompt: str, reply: str, mode: str) -> Outcome:
    """Return the reading of exampp."""
    asked = load_grading_prompt(prompt)
    return read_reply(asked.reading, reply, lowest=asked.lowest, highest=asked.highest, mode=mode)


@cache
def by_the_papers(prompt: str, reply: str) -> int:
    """The rating by the words of the papers."""
    lone = LONE.fullmatch(reply) if load_grading_prompt(prompt).reading == "self-rating" else None
    return int(lone[1]) if lone else int(not is_unanswerable(reply))


def count(folder: Path) -> tuple[Counter[Row], dict[Row, str], int, int]:
    """Count replies by their three ratings, with an example each; all; and misses of `rubric`."""
    rows: Counter[Row] = Counter()
    examples: dict[Row, str] = {}
    number = missed = 0
    for name in FILES:
        for prompt, reply, stored in replies(folder / name):
            ours = reading(prompt, reply, "exam")
            row = Row(prompt, stored, by_the_papers(prompt, reply), ours.rating, ours.rule)
            number += 1
            missed += reading(prompt, reply, "rubric").rating != stored
            rows[row] += 1
            examples.setdefault(row, reply)
    return rows, examples, number, missed


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    rows, examples, number, missed = count(parser.parse_args().folder)
    differing = {row: n for row, n in rows.items() if not row.file == row.papers == row.ours}
    print(
        f"{number:,} replies; read as the reference does, {missed} ratings differ from the files'"
    )
    print(f"{number - sum(differing.values()):,} ratings are the same in all three\n")
    print(f"{'prompt':22}{'file':>5}{'papers':>8}{'exampp':>8}  {'rule':14}{'replies':>8}  example")
    unexplained = 0
    for row, n in sorted(differing.items(), key=lambda item: (item[0].prompt, -item[1])):
        reason = REASONS.get((row.rule, "same" if row.ours == row.papers else "text"))
        unexplained += n * (reason is None)
        shown = "-" if row.ours is None else row.ours
        print(
            f"{row.prompt:22}{row.file:>5}{row.papers:>8}{shown:>8}  {row.rule:14}{n:>8}  "
            f"{examples[row][:40]!r}: {reason or 'NO REASON'}"
        )
    print(f"\n{unexplained} without a reason")
    sys.exit(bool(unexplained or missed))


if __name__ == "__main__":
    main()
