"""Grades on three Ray nodes of this machine, one of them killed half-way and another added.

python benchmarks/ray_nodes.py [--cells 50000] [--sleep .002]

Says whether the collection ends as after a run in one process, what was asked twice, and the CPU
seconds of the process that owns the collection, for each cell, beside those of a run without Ray.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from million_cells import write_inputs

import exampp
from exampp.graders.function import ItemToGrade, PassageToGrade

QUERIES, ITEMS = 50, 10


def rate(sleep: float, item: ItemToGrade, passage: PassageToGrade) -> int:
    """A rating by the lengths of the texts, after some sleep."""
    if sleep:
        time.sleep(sleep)
    return (len(item.text) * 7 + len(passage.text) + sum(map(ord, passage.passage_id))) % 6


def kept(path: Path) -> list[Any]:
    """Every grade as it is kept."""
    with sqlite3.connect(path) as opened:
        return opened.execute(
            "SELECT item_version, passage_version, state, rating, reply, detail FROM grade "
            "ORDER BY item_version, passage_version"
        ).fetchall()


def rater(sleep: float) -> Callable[[ItemToGrade, PassageToGrade], int]:
    """The function to grade with."""
    return partial(rate, sleep)


def timed(steps: Iterator[Any], half: Callable[[], None] | None) -> tuple[float, float]:
    """(CPU seconds of this process, seconds) of a run; calls `half` when half of it is done."""
    cpu, since = time.process_time(), time.monotonic()
    for progress in steps:
        if half is not None and progress.done * 2 > progress.total:
            half()
            half = None
    print(f"  {progress}")
    return time.process_time() - cpu, time.monotonic() - since


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=50_000)
    parser.add_argument("--sleep", type=float, default=0.002, help="seconds of a cell")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    depth = options.cells // (QUERIES * ITEMS)
    files = write_inputs(folder, QUERIES, depth, ITEMS)
    with exampp.Collection.create(folder / "alone.exam") as exam:
        exam.import_files(*files)
    (folder / "ray.exam").write_bytes((folder / "alone.exam").read_bytes())
    with exampp.Collection(folder / "alone.exam") as exam:
        print("one process, no sleep")
        alone, _ = timed(exam.grading(rater(0), name="rate", depth=depth).steps(), None)
        print(f"  CPU {alone:.1f} s, {alone / options.cells * 1e6:.0f} µs a cell")

    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(3)]

    def half() -> None:
        print("  half done: a node is killed and one is added")
        cluster.remove_node(nodes[0], allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=80_000_000)

    with exampp.Collection(folder / "ray.exam") as exam:
        print(f"three nodes, {options.sleep:g} s a cell")
        on = exampp.Cluster(cluster.address)
        run = exam.grading(rater(options.sleep), name="rate", depth=depth, on=on)
        cpu, seconds = timed(run.steps(), half)
        print(f"  {run.late_note}")
    ideal = options.cells * options.sleep / 3
    print(f"  CPU {cpu:.1f} s, {cpu / options.cells * 1e6:.0f} µs a cell")
    print(f"  of which for Ray {(cpu - alone) / options.cells * 1e6:.0f} µs a cell")
    print(f"  {seconds:.0f} s, where three workers sleep {ideal:.0f} s")
    print("equal" if kept(folder / "ray.exam") == kept(folder / "alone.exam") else "NOT EQUAL")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
