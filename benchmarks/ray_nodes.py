"""Grades on three Ray nodes of this machine, one of them killed half-way and another added.

python benchmarks/ray_nodes.py [--cells 50000] [--sleep .002] [--only all|needed|many]

Grades all cells, only those that Cover@10 needs (`--for`), and all cells with ten items a request.
Prints for each the cells that were requested, requested twice and lost, whether Cover is that of
all cells graded in one process, and the CPU seconds of the process that owns the collection.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

from million_cells import write_inputs

import exampp
from exampp.graders.base import Grader, Reply, Request
from exampp.graders.function import ItemToGrade, PassageToGrade
from exampp.grading.run import GradingRun
from exampp.grading.status import GraderStatus, grading_status

QUERIES, ITEMS, SYSTEMS = 50, 10, 8
RUNS: Mapping[str, Mapping[str, Any]] = {
    "all": {},
    "needed": {"measures": ["Cover@10"], "min_rating": 5},
    "many": {},
}


def rating(item: str, passage: str) -> int:
    """A rating by the lengths of the texts and the letters of the passage."""
    return (len(item) * 7 + len(passage) + sum(map(ord, passage))) % 6


def note_request(log: Path, cells: Iterable[tuple[str, str]]) -> None:
    """Append the cells of a request to the log, which all workers share."""
    line = "".join(f"{item}\t{passage}\n" for item, passage in cells).encode()
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)


def rate(log: Path, sleep: float, item: ItemToGrade, passage: PassageToGrade) -> int:
    """Rate one cell, after some sleep."""
    note_request(log, [(item.text, passage.passage_id)])
    time.sleep(sleep)
    return rating(item.text, passage.text)


class SharedRequests(Grader):
    """Sleeps once for all items of a passage, at most ten a request."""

    most_items = 10
    settings: Mapping[str, Any] = {"name": "many"}

    def __init__(self, log: Path, sleep: float) -> None:
        self._log, self._sleep = log, sleep

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Reply to all items of a passage at once."""
        for _, same in groupby(requests, attrgetter("passage")):
            bundle = list(same)
            note_request(self._log, ((one.item, one.passage_id) for one in bundle))
            time.sleep(self._sleep * len(bundle) / self.most_items)
            for one in bundle:
                yield one, Reply(str(rating(one.item, one.passage)))


def write_runs(path: Path, depth: int) -> Path:
    """Rankings of some systems: each returns half of the passages of a query, in its own order."""
    random = Random(1)
    with path.open("w") as file:
        for query in range(QUERIES):
            for system in range(SYSTEMS):
                ranked = random.sample(range(depth), max(1, depth // 2))
                for rank, passage in enumerate(ranked, 1):
                    name = f"p{query}-{passage}"
                    file.write(f"q{query} Q0 {name} {rank} {len(ranked) - rank} s{system}\n")
    return path


def stored(path: Path) -> list[Any]:
    """Every stored grade."""
    with sqlite3.connect(path) as opened:
        return opened.execute(
            "SELECT item_version, passage_version, state, rating, reply, detail FROM grade "
            "ORDER BY item_version, passage_version"
        ).fetchall()


def cover(exam: exampp.Collection) -> list[tuple[object, ...]]:
    """Cover@10 of each system, to the last digit."""
    rows = exam.grades().evaluate(["Cover@10"], min_rating=5).rows
    return [(row.system, row.mean, row.stderr) for row in rows]


def status_of(exam: exampp.Collection) -> GraderStatus:
    """The status of the only grader."""
    (status,) = grading_status(exam.connection)
    return status


def graded(exam: exampp.Collection) -> int:
    """The number of graded cells."""
    return status_of(exam).states["graded"]


def timed(steps: Iterator[Any], half: Callable[[], None] | None) -> tuple[float, float]:
    """(CPU seconds of this process, seconds) of a run; calls `half` when half of it is done."""
    cpu, since = time.process_time(), time.monotonic()
    for progress in steps:
        if half is not None and progress.done * 2 > progress.total:
            half()
            half = None
    print(f"  {progress}")
    if half is not None:
        print("  NO NODE WAS KILLED: the run ended too early")
    return time.process_time() - cpu, time.monotonic() - since


def grading(
    exam: exampp.Collection, way: str, log: Path, sleep: float, **options: Any
) -> GradingRun:
    """The run of one of the ways."""
    if way == "many":
        options |= {"prompt": "question-rating-many", "name": "many"}
        return exam.grading(SharedRequests(log, sleep), **options)
    return exam.grading(partial(rate, log, sleep), name="rate", **options, **RUNS[way])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=50_000)
    parser.add_argument("--sleep", type=float, default=0.002, help="seconds of a cell")
    parser.add_argument("--only", choices=list(RUNS), help="one of the ways")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    depth = options.cells // (QUERIES * ITEMS)
    files = write_inputs(folder, QUERIES, depth, ITEMS)
    files[2] = write_runs(folder / "runs.run", depth)
    with exampp.Collection.create(folder / "empty.exam") as exam:
        exam.import_files(*files)

    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(3)]

    def half() -> None:
        print("  half done: a node is killed and one is added")
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=1, object_store_memory=80_000_000))

    for way in [options.only] if options.only else RUNS:
        alone, spread = (folder / f"{way}-{name}.exam" for name in ("alone", "ray"))
        for path in (alone, spread):
            path.write_bytes((folder / "empty.exam").read_bytes())
        print(f"{way}: one process, all cells, no sleep")
        full = "all" if way == "needed" else way
        with exampp.Collection(alone) as exam:
            run = grading(exam, full, folder / f"{way}-alone.log", 0, depth=depth)
            cpu, _ = timed(run.steps(), None)
            count = graded(exam)
            print(f"  CPU {cpu:.1f} s, {cpu / count * 1e6:.0f} µs a cell")
            expected = cover(exam)
        print(f"{way}: three nodes, {options.sleep:g} s a cell")
        log = folder / f"{way}-ray.log"
        with exampp.Collection(spread) as exam:
            on = exampp.Cluster(cluster.address)
            run = grading(exam, way, log, options.sleep, depth=depth, on=on)
            cpu, seconds = timed(run.steps(), half)
            print(f"  {run.late_note}")
            pending, count = status_of(exam).pending, graded(exam)
            same = cover(exam) == expected
        asked = Counter(log.read_text().splitlines())
        print(f"  CPU {cpu:.1f} s, {cpu / count * 1e6:.0f} µs a cell; {seconds:.0f} s")
        print(
            f"  {len(asked):,} cells requested, {asked.total() - len(asked):,} once more, "
            f"{pending:,} lost, {len(asked) - count:,} without a grade"
        )
        print(f"  Cover {'equal' if same else 'NOT EQUAL'}")
        if way != "needed":
            equal = stored(alone) == stored(spread)
            print(f"  grades {'equal' if equal else 'NOT EQUAL'}")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
