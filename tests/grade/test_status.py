"""Where grading stands: what is counted is what would be asked."""

from __future__ import annotations

from pathlib import Path

import exams
import pytest

from exampp.llm.scripted import ScriptedGrader
from exampp.store.cells import DEPTH, GradingScope, count_due, due, exam_of
from exampp.store.connection import connect
from exampp.store.grades import graders


def asked(path: Path, depth: int = DEPTH) -> list[tuple[int, int]]:
    """(counted, due one by one) of every grader."""
    connection = connect(path)
    found = []
    for grader in graders(connection):
        exam: GradingScope = exam_of(connection, grader, "main", depth)
        listed = sum(len(one.cells) for one in due(connection, grader.key, exam))
        found.append((count_due(connection, grader.key, exam), listed))
    connection.close()
    return found


def test_cells_are_counted_as_they_would_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4", faults={"What makes a magnet?": "a fault"}))
        assert asked(path) == [(2, 2)]
        item = collection.grades().gradebook.queries[0].item_ids[0]
        collection.bank().edit("reword", item, "What does the air scatter?", query_id="q1")
        assert asked(path) == [(5, 5)]
        collection.bank().edit("retire", item, query_id="q1")
        assert asked(path) == [(2, 2)]
        assert asked(path, depth=0) == [(1, 1)]  # what was judged
        (status,) = collection.grader_statuses()
        assert status.due == 2


@pytest.mark.parametrize("depth", [1, 20])
def test_half_graded_queries_are_counted_by_their_pool(tmp_path: Path, depth: int) -> None:
    with exams.make(tmp_path) as collection:
        for number, _ in enumerate(collection.grading(ScriptedGrader("4"), depth=depth).steps()):
            if number == 1:
                break
    ((counted, listed),) = asked(tmp_path / "my.exam", depth)
    assert counted == listed
