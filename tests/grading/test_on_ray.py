"""Grading on a Ray cluster of three nodes: what the pool of processes cannot show.

Skipped where Ray is not installed: it is no part of `dev`, being large.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records import State

pytest.importorskip("ray", reason="ray is not installed")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        found.add_node(num_cpus=1, object_store_memory=80_000_000)
    yield found
    ray.shutdown()
    found.shutdown()


def rater(seconds: float = 0.0) -> Callable[..., int]:
    # made here, so that it goes to the workers by value
    def rate(item: Any, passage: Any) -> int:
        time.sleep(seconds)
        return len(item.text + passage.text) % 6

    return rate


def large(folder: Path, name: str) -> exampp.Collection:
    """Two queries of 100 passages, three items each."""
    exam = exampp.Collection.create(folder / name)
    texts = {f"p{number}": f"Passage number {number}." for number in range(200)}
    bank = {query: [f"Point {number} of {query}?" for number in range(3)] for query in ("a", "b")}
    names = list(texts)
    runs = {"one": {"a": names[:100], "b": names[100:]}}
    exam.add(queries={"a": "first", "b": "second"}, passages=texts, bank=bank, runs=runs)
    return exam


def test_a_node_is_killed_and_one_is_added_and_the_end_is_that_of_one_process(
    tmp_path: Path, cluster: Any
) -> None:
    with large(tmp_path, "alone.exam") as exam:
        exam.grade(rater(), name="rate", depth=100)
    with large(tmp_path, "ray.exam") as exam:
        run = exam.grading(rater(0.01), name="rate", depth=100, on=exampp.Cluster(cluster.address))
        changed = False
        for progress in run.steps():
            if progress.done > 100 and not changed:
                changed = True
                cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
                cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
        assert changed
        assert progress.states == {State.GRADED: 600}
        assert re.search(
            r"\d workers? lost \(the last: its process or node was lost", run.late_note
        )
    alone, spread = (
        sorted(exams.tables(tmp_path / name)["grade"]) for name in ("alone.exam", "ray.exam")
    )
    assert alone == spread


def test_the_command_grades_and_goes_on(
    tmp_path: Path, cluster: Any, exampp_command: Commands
) -> None:
    exams.make(tmp_path).close()
    command = ["grade", str(tmp_path / "my.exam"), "--grader", "draft", "--on", cluster.address]
    first = exampp_command(*command, "--max-queries", "1")
    assert (first.code, first.out.splitlines()[:1]) == (0, ["6 of 6 cells done"]), first.err
    second = exampp_command(*command, "--workers", "1")
    assert (second.code, second.out.splitlines()[:1]) == (0, ["2 of 2 cells done"]), second.err
    with exampp.Collection(tmp_path / "my.exam") as exam:
        assert exam.grade("draft").total == 0, "the grader is another one on a cluster"


def test_what_cannot_be_is_told_in_a_sentence(tmp_path: Path, cluster: Any) -> None:
    class Broken(ScriptedGrader):
        def __reduce__(self) -> Any:
            return eval, ("1/0",)

    with exams.make(tmp_path) as exam:
        with pytest.raises(InputError, match="no node of the cluster has 64 CPUs"):
            exam.grade("draft", on=exampp.Cluster(cluster.address, cpus=64))
        with pytest.raises(InputError, match=r"a worker cannot grade: .*division by zero"):
            exam.grade(Broken("4"), on=cluster.address, prompt="question-self-rating")
        with pytest.raises(InputError, match="requests to a server are sent from this machine"):
            exam.grade("openai", model="m", base_url="http://localhost:1/v1", on=cluster.address)
