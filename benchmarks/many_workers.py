"""Grades by 1 to 64 workers that sleep: what the process that owns the collection keeps up with.

python benchmarks/many_workers.py [--workers 1 4 16 64] [--sleep .1] [--seconds 60]

The workers are threads that sleep as long as their batch would take; the dispatcher, the run and
the collection are real. Prints cells per second and the share of what so many workers could do.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

from million_cells import write_inputs

import exampp
from exampp.graders.base import WRITTEN, Reply, Request
from exampp.grading.plan import join_grading
from exampp.grading.run import GradingRun
from exampp.grading.workers import (
    BatchAnswered,
    SpreadGrader,
    WorkerFacts,
    WorkerJoined,
    WorkerLost,
)
from exampp.prompts import Prompt, load_grading_prompt
from exampp.store.cells import GradingScope
from exampp.store.connection import connect

ITEMS, PASSAGES = 10, 100


class SleepingWorkers:
    """Threads that sleep `seconds` for every ask of a batch."""

    def __init__(self, workers: int, seconds: float) -> None:
        self._seconds = seconds
        self._events: SimpleQueue[WorkerJoined | BatchAnswered] = SimpleQueue()
        self._threads = {f"{number}": ThreadPoolExecutor(1) for number in range(workers)}
        settings = {"name": "sleeping"}
        facts = WorkerFacts(
            "here", exampp.__version__, settings, WRITTEN, "answer", "", False, "", None
        )
        for name in self._threads:
            self._events.put(WorkerJoined(name, facts))

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Nothing is asked."""

    def wait(self, seconds: float) -> WorkerJoined | BatchAnswered | WorkerLost | None:
        """Return the next event, or None after some seconds."""
        try:
            return self._events.get(timeout=seconds) if seconds else self._events.get_nowait()
        except Empty:
            return None

    def give(self, worker: str, batch: int, asks: Sequence[Request]) -> None:
        """Sleep over a batch."""
        replies = [(ask.key, Reply(str(ask.key % 6))) for ask in asks]
        self._threads[worker].submit(self._answer, worker, batch, replies)

    def _answer(self, worker: str, batch: int, replies: list[tuple[int, Reply]]) -> None:
        time.sleep(self._seconds * len(replies))
        self._events.put(BatchAnswered(worker, batch, replies))

    def dismiss(self, worker: str) -> None:
        """Let it go."""
        self._threads.pop(worker).shutdown(wait=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--sleep", type=float, default=0.1, help="seconds of a cell")
    parser.add_argument("--seconds", type=float, default=60, help="that a run takes at best")
    options = parser.parse_args()
    prompt = load_grading_prompt("question-self-rating")
    for workers in options.workers:
        folder = Path(tempfile.mkdtemp())
        queries = max(1, round(options.seconds / options.sleep * workers / (ITEMS * PASSAGES)))
        with exampp.Collection.create(folder / "some.exam") as exam:
            exam.import_files(*write_inputs(folder, queries, PASSAGES, ITEMS))
        grader = SpreadGrader(SleepingWorkers(workers, options.sleep))
        connection = connect(folder / "some.exam")
        run = GradingRun(
            connection,
            join_grading(grader, "sleeping", prompt),
            GradingScope("question", "main", depth=PASSAGES),
        )
        cpu, since = time.process_time(), time.monotonic()
        *_, last = run.steps()
        seconds, cpu = time.monotonic() - since, time.process_time() - cpu
        connection.close()
        best = last.total * options.sleep / workers
        print(
            f"{workers:>4} workers: {last.done} cells in {seconds:.1f} s, "
            f"{last.done / seconds:.0f} a second, {best / seconds:.1%} of what they can; "
            f"CPU {cpu / last.done * 1e6:.0f} µs a cell",
            flush=True,
        )


if __name__ == "__main__":
    main()
