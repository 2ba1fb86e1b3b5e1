"""Grading for some measures: equal values from fewer cells, and no cell that was not needed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from support.replayed import Killed, NeededOracle, RandomExam, graded_cells, scores

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.run import GradingRun
from exampp.grading.status import grading_status

MEASURES = (
    ["Cover"],
    ["Cover", "Cover@1"],
    ["NuggetAll"],
    ["NuggetAll(strict=True)", "Cover@1"],
)


def planned(
    collection: exampp.Collection, exam: RandomExam, measures: list[str], thresholds: list[int]
) -> GradingRun:
    chosen = [one if "@" in one else f"{one}@{exam.k}" for one in measures]
    return collection.grading(
        exam.grader(), name="replay", measures=chosen, min_rating=thresholds, depth=exam.depth
    )


def finish(run: GradingRun, exam: RandomExam, stop_after: int | None = None) -> int:
    """Run to its end, or until it is killed; every request is checked."""
    oracle = NeededOracle(exam, run, stop_after)
    assert isinstance(run.grading.grader, ScriptedGrader)
    run.grading.grader._line = oracle
    try:
        for _ in run.steps():
            pass
    except Killed:
        pass
    return oracle.asked


def change(collection: exampp.Collection, exam: RandomExam, path: Path) -> None:
    """Edit the bank, add a run, decide a cell, or merge a copy that was graded in part."""
    random, bank = exam.random, collection.bank()
    items = [item for query in exam.queries for item in bank.items(query) if item.active]
    item = random.choice(items)
    match random.randrange(6):
        case 0:
            bank.edit("reword", item.item_id, f"changed {random.random()}?", author="me")
        case 1:
            if len(items) > 1:
                bank.edit("retire", item.item_id, author="me")
        case 2:
            bank.add(random.choice(exam.queries), f"new {random.random()}?", author="me")
        case 3:
            collection.add(runs=exam.runs([f"new{random.random()}"]))
        case 4:
            if collection.graders:
                grades = collection.grades()
                passage = random.choice(list(exam.passages))
                rating = random.randint(0, 5)
                with suppress(exampp.InputError):  # the query may not have the passage
                    grades.decisions.decide(
                        item.query_id, item.item_id, passage, rating, author="me"
                    )
        case 5:
            copy = Path(shutil.copy(path, path.with_suffix(f".{random.random()}")))
            with exampp.Collection(copy) as other:
                run = planned(other, exam, ["Cover"], [3])
                finish(run, exam, random.randint(1, 9))
            collection.merge(copy)


def check_random_exam(folder: Path, seed: int) -> tuple[int, int]:
    """Grade a random exam with kills and changes in between; the requests, and all cells."""
    path = folder / f"{seed}.exam"
    exam = RandomExam(path, seed)
    measures = exam.random.choice(MEASURES)
    thresholds = exam.random.choice([[1], [3], [4], [5], [2, 4]])
    asked = 0
    with exampp.Collection(path) as collection:
        for _ in range(exam.random.choice([0, 0, 1, 3])):
            run = planned(collection, exam, measures, thresholds)
            asked += finish(run, exam, exam.random.randint(0, 12))
            change(collection, exam, path)
        run = planned(collection, exam, measures, thresholds)
        most, least = run.count_pending().requests, run.count_pending().at_least
        last = finish(run, exam)
        assert least <= last <= most
        again = planned(collection, exam, measures, thresholds)
        assert again.count_pending().cells == 0
        assert [one.pending for one in grading_status(collection.connection)] in ([], [0])
        if not collection.graders:
            return 0, 0  # no item has a weight
        lazy = scores(collection.grades("replay"), run)
        for _ in collection.grading(exam.grader("full"), name="full", depth=exam.depth).steps():
            pass
        assert lazy == scores(collection.grades("full"), run)
        return asked + last, graded_cells(collection.grades("full").gradebook)


@pytest.mark.parametrize("seed", range(150))
def test_random_exams(tmp_path: Path, seed: int) -> None:
    check_random_exam(tmp_path, seed)
