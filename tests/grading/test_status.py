"""Status of grading: the counts are those of the requests to come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import estimate
from exampp.grading.status import grading_status
from exampp.measures.qrels import exam_labels
from exampp.store.cells import DEPTH, GradingScope, count_pending, pending_cells, scope_of
from exampp.store.connection import connect
from exampp.store.grades import graders


def asked(path: Path, depth: int = DEPTH) -> list[tuple[int, int]]:
    """(counted, due one by one) of every grader."""
    connection = connect(path)
    found = []
    for grader in graders(connection):
        exam: GradingScope = scope_of(connection, grader, "main", depth)
        listed = sum(len(one.cells) for one in pending_cells(connection, grader.key, exam))
        found.append((count_pending(connection, grader.key, exam), listed))
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
        assert asked(path, depth=0) == [(0, 0)]
        (status,) = grading_status(collection.connection)
        assert status.pending == 2


@pytest.mark.parametrize("depth", [1, 20])
def test_half_graded_queries_are_counted_by_their_pool(tmp_path: Path, depth: int) -> None:
    with exams.make(tmp_path) as collection:
        for number, _ in enumerate(collection.grading(ScriptedGrader("4"), depth=depth).steps()):
            if number == 1:
                break
    ((counted, listed),) = asked(tmp_path / "my.exam", depth)
    assert counted == listed


RUN = "".join(f"q1 Q0 p{n} {n} {9 - n}.0 alpha\n" for n in (1, 2, 3)) + "q2 Q0 p4 1 1.0 alpha\n"
JUDGED = "q1 0 p1 3\nq1 0 p4 0\nq1 0 p5 1\nq2 0 p4 1\nq3 0 p1 2\n"


def ranked_and_judged(folder: Path, *names: str) -> exampp.Collection:
    """q1: 2 items, p1 to p3 ranked, p1, p4 and p5 judged; q2: 1 item on p4; q3: 1 item, no ranking.

    Of six cells of judged passages that no run ranks, q1 has p4 and p5 and q3 has p1.
    """
    contents = {
        "queries.json": json.dumps({"q1": "a", "q2": "b", "q3": "c"}),
        "passages.jsonl": "".join(f'{{"id": "p{n}", "text": "text {n}"}}\n' for n in range(1, 6)),
        "questions.tsv": "query_id\tquestion\nq1\tone?\nq1\ttwo?\nq2\tthree?\nq3\tfour?\n",
        "systems.run": RUN,
        "judged.qrels": JUDGED,
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    collection = exampp.create(folder / "pools.exam")
    files = [name for name in contents if not names or name in names]
    collection.import_files(*(folder / name for name in files))
    return collection


@pytest.mark.parametrize(
    ("pool", "depth", "cells"),
    # q1: 2 items x passages, q2: 1 x p4, q3: 1 x p1 where it is judged
    [
        ("ranked", 20, 2 * 3 + 1),
        ("ranked", 1, 2 * 1 + 1),
        ("judged", 20, 2 * 3 + 1 + 1),
        ("judged", 1, 2 * 3 + 1 + 1),
        ("all", 20, 2 * 5 + 1 + 1),
        ("all", 1, 2 * 3 + 1 + 1),
    ],
)
def test_judged_passages_that_no_run_ranks_are_graded_on_request(
    tmp_path: Path, pool: str, depth: int, cells: int
) -> None:
    with ranked_and_judged(tmp_path) as collection:
        run = collection.grading("draft", pool=pool, depth=depth)
        found = estimate(run)
        assert found.cells == cells
        every = 12 if depth == 20 else 8
        ranked = 7 if depth == 20 else 3
        assert (found.cells, found.judged_only) == (cells, every - ranked)
        assert collection.grade("draft", pool=pool, depth=depth).done == cells


def test_grades_outside_the_pool_stay_and_status_counts_what_is_left(tmp_path: Path) -> None:
    with ranked_and_judged(tmp_path) as collection:
        collection.grade("draft")
        (status,) = grading_status(collection.connection)
        assert (status.pending, status.judged_only) == (0, (5, 12))
        assert any("5 cells (42% of 12)" in note for note in collection.status().notes)
        assert collection.grade("draft", pool="judged").done == 5
        (status,) = grading_status(collection.connection)
        assert (status.pending, status.judged_only) == (0, (0, 12))
        assert collection.grade("draft").total == 0
        labelled = exam_labels(collection.grades().gradebook)
        assert {one[:2] for one in labelled} >= {("q1", "p5"), ("q3", "p1")}


def test_without_any_run_the_judged_passages_are_graded(tmp_path: Path) -> None:
    files = ("queries.json", "passages.jsonl", "questions.tsv", "judged.qrels")
    with ranked_and_judged(tmp_path, *files) as collection:
        assert estimate(collection.grading("draft")).cells == 2 * 3 + 1 + 1
        collection.grade("draft", max_queries=1)
        assert grading_status(collection.connection)[0].pending == 2
        # the first run makes the judged passages of all queries a matter of request
        collection.import_files(tmp_path / "systems.run")
        assert estimate(collection.grading("draft")).cells == 2 * 2 + 1
        assert grading_status(collection.connection)[0].pending == 2 * 2 + 1
        collection.systems.remove("alpha")
        assert grading_status(collection.connection)[0].pending == 2


def test_the_pool_is_an_option_with_a_known_name(tmp_path: Path, exampp_command: Commands) -> None:
    with ranked_and_judged(tmp_path) as collection:
        path = collection.path
        with pytest.raises(
            exampp.InputError, match=r"pool is 'ranks'\. Choose ranked, judged or all"
        ):
            collection.grading("draft", pool="ranks")
    command = ("grade", path, "--grader", "draft", "--dry-run")
    out = exampp_command(*command).out
    assert "cells pending   7\njudged only     5 more (42% of all): no run ranks" in out
    out = exampp_command(*command, "--pool", "all").out
    assert "cells pending   12\njudged only     5 of these (42%): no run ranks" in out
