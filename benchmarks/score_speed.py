"""Measure the CPU time of scoring the texts of one training step.

A step has 64 texts of about 60 words for one query with 10 items. It is scored by `Scorer`, and by
importing the texts as systems, grading and evaluating them. The time of the grader alone is that of
its `answer` for the same cells, so the difference is the cost of exampp.

    python benchmarks/score_speed.py [--texts 64] [--items 10] [--repeat 5]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import exampp
from exampp.graders.base import Grader, Request
from exampp.graders.draft import DraftGrader
from exampp.graders.scripted import ScriptedGrader

TOUR = Path(exampp.__file__).with_name("demo") / "tour"


def cpu_of(run: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, of all threads."""
    start = time.process_time()
    run()
    return time.process_time() - start


def step_texts(number: int, chance: random.Random) -> list[str]:
    """Return new texts of sentences in the words of the demo."""
    words = (TOUR / "passages.jsonl").read_text().split()
    words = [word for word in words if word.isalpha()]
    return [
        ". ".join(" ".join(chance.choices(words, k=12)) for _ in range(5)) for _ in range(number)
    ]


def imported(exam: exampp.Collection, grader: Any, texts: Sequence[str]) -> None:
    """Import texts as systems, grade and evaluate them."""
    systems = {f"s{number}": {"q": text} for number, text in enumerate(texts)}
    exam.add(responses=systems, update=True)
    exam.grade(grader)
    exam.grades().evaluate(["Cover@20"])


def requests_of(texts: Sequence[str], items: Sequence[str]) -> list[Request]:
    """Return the requests for all cells."""
    cells = [(text, item) for text in texts for item in items]
    return [Request(key, item, text, query="why?") for key, (text, item) in enumerate(cells)]


def answer_all(grader: Grader, requests: Sequence[Request]) -> None:
    """Read all replies of a grader."""
    for _ in grader.answer(requests):
        pass


def measure(grader: Any, alone: Grader, items: Sequence[str], texts: int, repeat: int) -> str:
    """Return the median CPU seconds of each way as a sentence."""
    chance = random.Random(1)
    seconds: dict[str, list[float]] = {"scorer": [], "again": [], "alone": [], "import": []}
    with tempfile.TemporaryDirectory() as folder, exampp.create(f"{folder}/a.exam") as exam:
        exam.add(queries={"q": "why?"}, bank={"q": [{"question": one} for one in items]})
        scorer = exam.scorer(grader)
        scorer.score("q", step_texts(1, chance))
        for _ in range(repeat):
            some = step_texts(texts, chance)
            score = partial(scorer.score, "q", some)
            requests = requests_of(some, items)
            seconds["scorer"].append(cpu_of(score))
            seconds["again"].append(cpu_of(score))
            seconds["alone"].append(cpu_of(partial(answer_all, alone, requests)))
            seconds["import"].append(cpu_of(partial(imported, exam, grader, some)))
    median = {way: statistics.median(some) for way, some in seconds.items()}
    beside = {way: median[way] - median["alone"] for way in ("scorer", "import")}
    return (
        f"scorer {median['scorer']:.3f} CPU s, of which beside the grader {beside['scorer']:.3f}; "
        f"again from the cache {median['again']:.3f}; import, grade and evaluate "
        f"{median['import']:.3f}, of which beside the grader {beside['import']:.3f}"
    )


def main() -> None:
    """Print a line for every grader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    questions = (TOUR / "bank.csv").read_text().splitlines()[1:]
    items = [line.partition(",")[2] for line in questions][: options.items]
    scripted = ScriptedGrader("4", record=False)
    graders: dict[str, tuple[Any, Grader]] = {
        "scripted": (scripted, scripted),
        "draft": ("draft", DraftGrader()),
    }
    for name, pair in graders.items():
        print(f"{name}: {measure(*pair, items, options.texts, options.repeat)}")


if __name__ == "__main__":
    main()
