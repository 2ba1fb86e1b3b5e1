"""Cells that `exampp grade --for Cover@20` grades, and whether the leaderboard is the same.

    export PYTHONPATH=tests:tests/grading
    python benchmarks/lazy_grading.py replay     # DL 2019 and LLMJudge, real grades replayed
    python benchmarks/lazy_grading.py random --count 1000   # with kills, edits and merges
    python benchmarks/lazy_grading.py large --count 1000000   # CPU of planning at a million cells

`replay` needs data sets (`--data`). LLMJudge has no runs: 30 systems are drawn by a seed, each
ranks 20 passages of the pool, better ones more often high.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from support.replayed import scores
from test_target import check_random_exam

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import estimate
from exampp.records.gradebook import MISSING, Gradebook

SYSTEMS = 30


def ratings_of(book: Gradebook) -> dict[tuple[str, str, str], str]:
    return {
        (query.query_id, query.item_ids[column], query.passage_ids[row]): str(rating)
        for query in book.queries
        for (row, column), rating in np.ndenumerate(query.ratings)
        if rating != MISSING
    }


def drawn_runs(book: Gradebook, seed: int = 7) -> list[dict[str, object]]:
    """Rankings of random systems over the pools: noise plus more or less of the best rating."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for system in range(SYSTEMS):
        skill = random.uniform(0, 1.5)
        for query in book.queries:
            best = query.ratings[: query.pool_size].max(axis=1, initial=0)
            score = skill * np.maximum(best, 0) + random.normal(0, 1.5, len(best))
            rows += (
                {
                    "query_id": query.query_id,
                    "passage_id": query.passage_ids[at],
                    "score": float(score[at]),
                    "system": f"s{system}",
                }
                for at in np.argsort(-score)[:20]
            )
    return rows


def data_sets(folder: Path, only: str = "") -> Iterator[tuple[str, exampp.Collection, str | None]]:
    """Yield the data sets whose name begins with `only`: name, exam with runs, and grader."""
    llmjudge = "science/llmjudge-dev-graded.jsonl.gz"
    for name, files, grader in (
        ("DL 2019", ["dl19/graded.jsonl.gz", "dl19/questions.jsonl.gz"], None),
        ("LLMJudge dev", [llmjudge], "google/flan-t5-large:question-self-rating"),
    ):
        paths = [folder / file for file in files]
        if not name.startswith(only):
            continue
        if not all(path.exists() for path in paths):
            print(f"{name}: {paths[0]} is absent")
            continue
        with TemporaryDirectory() as place, exampp.create(Path(place, "my.exam")) as exam:
            exam.import_files(*paths)
            book = exam.grades(grader).gradebook
            if not book.systems:
                # items of a graded file have no text: their ids stand for them
                items = [
                    {"query_id": query.query_id, "item_id": item, "question": item}
                    for query in book.queries
                    for item in query.item_ids
                ]
                exam.add(bank=items, update=True)
                exam.add(runs=drawn_runs(book))
            yield name, exam, grader


def replay(folder: Path) -> None:
    for name, exam, grader in data_sets(folder):
        ratings = ratings_of(exam.grades(grader).gradebook)

        def rating(ask: Request, ratings: dict[tuple[str, str, str], str] = ratings) -> str:
            return ratings.get((ask.query_id, ask.item_id, ask.passage_id), "0")

        full = ScriptedGrader(rating, name="full", look_ahead=64, record=False)
        before = time.process_time()
        done = exam.grade(full, name="full").done
        took = time.process_time() - before
        print(f"{name}: all cells {done:,}, {1e6 * took / done:.0f} us of CPU a cell")
        for least in range(1, 6):
            lazy = ScriptedGrader(rating, name=f"lazy {least}", look_ahead=64, record=False)
            run = exam.grading(lazy, name=f"lazy {least}", measures=["Cover@20"], min_rating=least)
            bounds = estimate(run)
            before = time.process_time()
            *_, progress = run.steps()
            took = time.process_time() - before
            same = scores(exam.grades(f"lazy {least}"), run) == scores(exam.grades("full"), run)
            print(
                f"  from {least}: {progress.done:,} cells, {progress.done / done:.3f} of all, "
                f"{progress.done / bounds.cells:.3f} of the top 20 (at least {bounds.at_least:,}, "
                f"at most {bounds.cells:,}); {1e6 * took / progress.done:.0f} us of CPU a cell; "
                f"leaderboard {'equal' if same else 'DIFFERENT'}",
                flush=True,
            )


def random_exams(count: int) -> None:
    asked = cells = 0
    for seed in range(10_000, 10_000 + count):
        with TemporaryDirectory() as folder:
            requests, total = check_random_exam(Path(folder), seed)
            asked, cells = asked + requests, cells + total
        if seed % 100 == 99:
            print(
                f"{seed - 9_999} exams, {asked:,} requests, {cells:,} cells of full exams",
                flush=True,
            )


def large(cells: int) -> None:
    """An exam of 50 queries, 10 items and 40 systems of overlapping runs."""
    random = np.random.default_rng(1)
    queries, items = 50, 10
    pool = cells // queries // items
    with TemporaryDirectory() as folder, exampp.create(Path(folder, "my.exam")) as exam:
        names = [f"q{number}" for number in range(queries)]
        exam.add(
            queries={name: name for name in names},
            passages={f"{name}p{p}": f"{name} passage {p}" for name in names for p in range(pool)},
            bank=[
                {"query_id": name, "question": f"item {item} of {name}?"}
                for name in names
                for item in range(items)
            ],
            runs=[
                {
                    "query_id": name,
                    "passage_id": f"{name}p{p}",
                    "score": float(-rank),
                    "system": f"s{system}",
                }
                for system in range(pool * 2 // 100)
                for name in names
                for rank, p in enumerate(random.permutation(pool)[:100])
            ],
        )
        grader = ScriptedGrader(
            lambda ask: "5" if hash((ask.item_id, ask.passage_id)) % 10 == 0 else "0",
            name="large",
            look_ahead=64,
            record=False,
        )
        run = exam.grading(grader, name="large", measures=["Cover@100"], depth=100, min_rating=4)
        before = time.process_time()
        cells = sum(len(one.cells) for one in run.pending())
        counted = time.process_time() - before
        *_, progress = run.steps()
        took = time.process_time() - before - counted
        before = time.process_time()
        exam.status()
        print(
            f"{cells:,} cells at most, counted in {counted:.1f} s; {progress.done:,} graded "
            f"in {took:.1f} s, {1e6 * took / progress.done:.0f} us of CPU a cell; status "
            f"{time.process_time() - before:.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "random", "large"])
    parser.add_argument("--count", type=int, help="exams of random, cells of large")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    if options.what == "random":
        random_exams(options.count or 1000)
    elif options.what == "large":
        large(options.count or 1_000_000)
    else:
        replay(options.data)


if __name__ == "__main__":
    main()
