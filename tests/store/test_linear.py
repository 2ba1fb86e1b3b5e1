"""The work of the database, counted: as many grades in more queries are no more work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.status import grading_status
from exampp.store.cells import pending_cells, scope_of
from exampp.store.connection import connect
from exampp.store.grades import graders
from exampp.store.pools import read_pools
from exampp.store.read_model import read_gradebook

CELLS = 1024
STEP = 100


def rate(ask: Request) -> str:
    return str(len(ask.passage) % 6)


def exam(path: Path, queries: int) -> Path:
    """So many queries, all with the same number of passages and items, and CELLS grades."""
    each = int((CELLS / queries) ** 0.5)
    names = [f"q{number}" for number in range(queries)]
    with exampp.create(path) as made:
        made.add(
            queries={name: f"what of {name}" for name in names},
            passages={f"{q}-{n}": f"Passage {n} of {q}." for q in names for n in range(each)},
            bank={q: [f"What of {q}, {n}?" for n in range(each)] for q in names},
            runs={"all": {q: {f"{q}-{n}": each - n for n in range(each)} for q in names}},
        )
        made.grade(ScriptedGrader(rate, record=False))
    return path


def steps(path: Path, work: Callable[..., object]) -> int:
    """The steps of the database's machine, in hundreds."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    connection = connect(path)
    # checksums read every row once, of whatever query
    connection.verified = True
    connection.set_progress_handler(step, STEP)
    work(connection)
    connection.close()
    return count


WORK: dict[str, Callable[..., object]] = {
    "export": lambda connection: list(read_pools(connection)),
    "status": grading_status,
    "grade": lambda connection: [
        list(pending_cells(connection, grader.key, scope_of(connection, grader, "main")))
        for grader in graders(connection)
    ],
    "evaluate": lambda connection: [
        read_gradebook(connection, grader, "main") for grader in graders(connection)
    ],
}


MOST = {"status": 4000, "evaluate": 500}
"""Hundreds of steps for 64 queries, where so few are for the grades that those for their four times
as many items and passages are more than half of all."""


@pytest.mark.parametrize("name", WORK)
def test_as_many_grades_in_more_queries_are_no_more_work(name: str, tmp_path: Path) -> None:
    few, many = (steps(exam(tmp_path / f"{n}.exam", n), WORK[name]) for n in (4, 64))
    assert many < MOST.get(name, 2 * few)


def import_steps(folder: Path, queries: int) -> int:
    """Import ten judged and graded passages of each query; return the steps, in hundreds."""
    folder.mkdir()
    grade = {"llm": "m", "correctAnswered": ["a"], "wrongAnswered": [], "answers": [["a", "yes"]]}
    with (folder / "graded.jsonl").open("w") as file:
        for query in range(queries):
            passages = [
                {
                    "paragraph_id": f"{query}-{number}",
                    "text": f"Passage {number} of {query}.",
                    "paragraph_data": {"judgments": [{"relevance": number % 2}]},
                    "exam_grades": [grade],
                }
                for number in range(10)
            ]
            file.write(json.dumps([f"q{query}", passages]) + "\n")
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with exampp.create(folder / "my.exam") as made:
        made.connection.set_progress_handler(step, STEP)
        made.import_files(folder / "graded.jsonl")
    return count


def test_an_import_reads_no_earlier_query_again(tmp_path: Path) -> None:
    few, many = (import_steps(tmp_path / str(n), n) for n in (50, 200))
    assert many < 4.4 * few
