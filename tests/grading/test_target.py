"""Grading for some measures: equal values from fewer cells, and no cell that was not needed."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.batch_servers import OpenAIStub
from support.commands import Commands
from support.forked import forked
from support.replayed import CheckedGrader, Killed, NeededOracle, RandomExam, graded_cells, scores

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.batches import Batches
from exampp.grading.costs import estimate
from exampp.grading.run import GradingRun
from exampp.grading.status import grading_status
from exampp.records.graders import GradingTarget

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


def finish(run: GradingRun, exam: RandomExam, stop_after: int | None = None) -> NeededOracle:
    """Run to its end, or until it is killed; every request is checked."""
    oracle = NeededOracle(exam, run, stop_after)
    assert isinstance(run.grading.grader, CheckedGrader)
    run.grading.grader.oracle = oracle
    try:
        for _ in run.steps():
            pass
    except Killed:
        pass
    return oracle


def requests_for(oracle: NeededOracle, most_items: int) -> int:
    """Count the requests if consecutive items of a passage share one."""
    sizes = [len(list(group)) for _, group in groupby(oracle.passages)]
    return sum(-(-size // most_items) for size in sizes)


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


def check_random_exam(folder: Path, seed: int, most_items: int = 1) -> tuple[int, int]:
    """Grade a random exam with kills and changes in between; the graded, and all cells."""
    path = folder / f"{seed}.exam"
    exam = RandomExam(path, seed)
    exam.most_items = most_items
    measures = exam.random.choice(MEASURES)
    thresholds = exam.random.choice([[1], [3], [4], [5], [2, 4]])
    asked = 0
    with exampp.Collection(path) as collection:
        for _ in range(exam.random.choice([0, 0, 1, 3])):
            run = planned(collection, exam, measures, thresholds)
            asked += finish(run, exam, exam.random.randint(0, 12)).asked
            change(collection, exam, path)
        run = planned(collection, exam, measures, thresholds)
        bounds = estimate(run)
        last = finish(run, exam)
        assert bounds.at_least <= requests_for(last, most_items) <= bounds.requests
        again = planned(collection, exam, measures, thresholds)
        assert list(again.pending()) == []
        assert [one.pending for one in grading_status(collection.connection)] in ([], [0])
        if not collection.graders:
            return 0, 0  # no item has a weight
        lazy = scores(collection.grades("replay"), run)
        for _ in collection.grading(exam.grader("full"), name="full", depth=exam.depth).steps():
            pass
        assert lazy == scores(collection.grades("full"), run)
        return asked + last.asked, graded_cells(collection.grades("full").gradebook)


# 10735: the grade of an equal text, which is copied, closes the only request
@pytest.mark.parametrize("seed", [*range(60), 10735])
def test_random_exams(tmp_path: Path, seed: int) -> None:
    check_random_exam(tmp_path, seed)


# 322 and 333: replies close items of passages of the same round
@pytest.mark.parametrize("seed", [*range(30), 322, 333])
def test_random_exams_with_several_items_a_request(tmp_path: Path, seed: int) -> None:
    check_random_exam(tmp_path, seed, most_items=3)


def by_hand(item: str, passage: str) -> str:
    """p1 answers the first question of q1; nothing else answers anything."""
    return "5" if (item, passage) == (exams.QUESTIONS["q1"][0], exams.PASSAGES["p1"]) else "0"


@pytest.fixture
def grader() -> ScriptedGrader:
    return ScriptedGrader(lambda ask: by_hand(ask.item, ask.passage), name="by hand")


def test_a_covered_item_needs_no_other_passage(tmp_path: Path, grader: ScriptedGrader) -> None:
    # q1: alpha returned p1, p2; beta p4. q2: alpha returned p3; beta p4. One item is covered by p1,
    # so that p2 is not needed for it; all other items are open to the end
    with exams.make(tmp_path) as exam:
        progress = exam.grade(grader, measures=["Cover"], min_rating=4)
        assert (progress.done, progress.total, progress.not_needed) == (7, 7, 1)
        left = (exams.QUESTIONS["q1"][0], exams.PASSAGES["p2"])
        assert left not in {(ask.item, ask.passage) for ask in grader.calls}
        (status,) = grading_status(exam.connection)
        assert (status.pending, status.not_needed, status.states["graded"]) == (0, 1, 7)
        assert exam.status().verdict.endswith("1 are not needed.")
        grid = str(exam.grades().review("grid", query_id="q1"))
        assert "not graded" in grid
        assert "pending" not in grid
        again = exam.grade(grader, measures=["Cover"], min_rating=4)
        assert str(again) == "Nothing to grade: 1 pending cell is not needed (--for or --after)"
        board = exam.grades().evaluate()
        # half of q1 and nothing of q2
        assert {row.system: row.mean for row in board.rows} == {"alpha": 0.25, "beta": 0.0}
        assert {row.measure for row in board.rows} == {"Cover@20"}
        assert all(row.missing_cells == 0 and row.low is None for row in board.rows)
        assert "Only cells that Cover@20 at min rating 4 needs are graded." in map(str, board.notes)
        # the pool has no other passages than the rankings, so nCover and lower thresholds follow
        assert exam.grades().evaluate(["nCover@20"], min_rating=[1, 4]).rows
        # all that is pending is graded without a target, and nothing is left out any more
        assert exam.grade(grader).done == 1
        assert len({row.measure for row in exam.grades().evaluate().rows}) == 3
        assert grading_status(exam.connection)[0].not_needed == 0


def test_a_reply_closes_the_rest_of_its_round(tmp_path: Path) -> None:
    # a round has z for s1 to s4, then x for s5 and y for s6; requests are sent by passage
    read = {"s1": "zx", "s2": "zx", "s3": "zy", "s4": "zy", "s5": "x", "s6": "y"}
    grader = ScriptedGrader("5", name="all")
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q": "reefs"},
            passages={name: f"text {name}" for name in "xyz"},
            bank={"q": ["What is a reef?"]},
            runs={system: {"q": list(names)} for system, names in read.items()},
        )
        progress = exam.grade(grader, measures=["Cover"], min_rating=4)
        # x and y answer the question for all systems, so that z is not needed any more
        assert [ask.passage_id for ask in grader.calls] == ["x", "y"]
        assert (progress.done, progress.total, progress.not_needed) == (2, 2, 1)


def test_a_decided_cell_does_not_need_a_grade_for_scores_with_decisions(
    tmp_path: Path, grader: ScriptedGrader
) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"], min_rating=4)
        (item, *_) = exam.bank().items("q1")
        decisions = exam.grades().decisions
        # the grade of p1 answers the item; people decide that neither p1 nor p2 does
        for passage in ("p1", "p2"):
            decisions.decide("q1", item.item_id, passage, 0, author="me")
        assert exam.grade(grader, measures=["Cover"], min_rating=4).done == 0


def test_an_edit_makes_the_needed_cells_pending(tmp_path: Path, grader: ScriptedGrader) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"])
        first = exam.bank().items("q1")[0]
        exam.bank().edit("reword", first.item_id, "What else?", author="me")
        assert grading_status(exam.connection)[0].pending == 3
        # the new text has no answer: p1, p2 and p4 are all needed
        assert exam.grade(grader, measures=["Cover"]).done == 3


def test_the_effect_of_an_edit_is_that_on_the_measures_of_the_target(
    tmp_path: Path, grader: ScriptedGrader
) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"])
        bank, first = exam.bank(), exam.bank().items("q1")[0]
        (effect,) = bank.trial(lambda bank: bank.edit("retire", first.item_id)).effects
        assert [str(one.measure) for one in effect.impact.shifts] == ["Cover@20"]
        with pytest.raises(InputError, match="nDCG@20 needs 1 cell without a grade"):
            bank.trial(lambda bank: bank.edit("retire", first.item_id), measures=["nDCG@20"])


def test_measures_that_need_other_cells_are_refused(tmp_path: Path, grader: ScriptedGrader) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"], min_rating=3)
        grades = exam.grades()
        with pytest.raises(
            exampp.InputError,
            match=r"nDCG@20 needs 1 cell .*--for 'Cover@20' --for 'nDCG@20' --min-rating 4",
        ):
            grades.evaluate(["Cover@20", "nDCG@20"], min_rating=4)
        with pytest.raises(exampp.InputError, match="labels of passages need the grades"):
            grades.write_qrels(tmp_path / "x.qrels")
        for refused, why in (
            (grades.calibration, "labels of passages need the grades"),
            (grades.agreement, "labels by .* need the grades of all items. Only cells that Cover"),
            (partial(grades.corrected, "P@2"), "P@2 ≥4 needs 1 cell "),
            (partial(grades.decisions.plan, 2, "P@2"), "P@2 ≥4 needs 1 cell "),
            (partial(grades.review_tables, "missing"), "missing passages and spurious items need"),
            (partial(grades.review_tables, "spurious"), "missing passages and spurious items need"),
        ):
            with pytest.raises(exampp.InputError, match=why):
                refused()
        assert grades.bias().headline.startswith("Not checked: only cells that Cover@20 at")
        items = grades.items()
        assert not items.floor.values
        assert all(row.not_relevant is None for row in items.items)
        exam.grade(grader, measures=["Cover", "nDCG@20"])
        assert grades.evaluate(["Cover@20", "nDCG@20"], min_rating=4).rows


def test_a_failed_cell_is_neither_covered_nor_lost(tmp_path: Path) -> None:
    cell = (exams.QUESTIONS["q1"][0], exams.PASSAGES["p1"])
    failing = ScriptedGrader(lambda ask: by_hand(ask.item, ask.passage), faults={cell: "down"})
    with exams.make(tmp_path) as exam:
        progress = exam.grade(failing, measures=["Cover"])
        # p2 is needed as long as p1 has no grade
        assert (progress.done, progress.ungraded, progress.not_needed) == (8, 1, 0)
        assert grading_status(exam.connection)[0].pending == 1
        failing._faults = {}
        assert exam.grade(failing, measures=["Cover"]).done == 1
        assert exam.grades().evaluate().rows[0].mean == 0.25


def test_options_that_make_no_sense_are_refused(tmp_path: Path, grader: ScriptedGrader) -> None:
    with exams.make(tmp_path) as exam:
        for options, why in (
            ({"min_rating": 4}, "--min-rating has no effect without --for"),
            ({"measures": ["Cover@30"]}, "Set --depth 30"),
            ({"measures": ["Cover"], "min_rating": 6}, "invalid minimum rating 6"),
            ({"measures": ["Cove"]}, "Did you mean Cover"),
            ({"measures": ["Cover@30>=0.7"]}, "Set --depth 30"),
            ({"measures": ["Cover"], "prompt": "thomas"}, "Remove --for"),
        ):
            with pytest.raises(exampp.InputError, match=why):
                exam.grading(grader, **options)


def test_the_command(tmp_path: Path, exampp_command: Commands) -> None:
    exams.make(tmp_path).close()
    line = f"exampp grade {tmp_path}/my.exam --grader draft --for Cover@2 --min-rating 1"
    assert "at most 8" in exampp_command.line(f"{line} --dry-run").out
    assert "cells done" in exampp_command.line(line).out
    assert "Cover@2" in exampp_command.line(f"exampp evaluate {tmp_path}/my.exam").out
    wrote = exampp_command.line(f"exampp export {tmp_path}/my.exam {tmp_path}/graded.jsonl")
    assert "pending" not in wrote.err
    with pytest.raises(exampp.InputError, match=r"nDCG@2 needs .* only cells that Cover@2 at"):
        exampp.open(tmp_path / "graded.jsonl").grades().evaluate(["nDCG@2"], min_rating=1)


def test_a_file_of_grades_has_their_target(tmp_path: Path, grader: ScriptedGrader) -> None:
    file, again = tmp_path / "graded.jsonl", tmp_path / "again.jsonl"
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"], min_rating=[2, 3])
        exam.export(file)
        target = exam.grades().gradebook.target
        assert target == GradingTarget(("Cover@20",), (2, 3))
        with exampp.create(tmp_path / "other.exam") as other:
            for _ in range(2):
                other.import_files(file)
                assert other.grades().gradebook.target == target
            with pytest.raises(exampp.InputError, match="nDCG@20 needs 1 cell without a grade"):
                other.grades().evaluate(["nDCG@20"])
            other.export(again)
        assert again.read_bytes() == file.read_bytes()
        exam.grade(grader)
        assert exam.grades().gradebook.target is None
        exam.export(again)
        assert b'"for"' not in again.read_bytes()
        # an older file does not make graded cells needless
        exam.import_files(file)
        assert exam.grades().gradebook.target is None


@pytest.mark.parametrize("graded_in_part", ["main", "other"])
def test_a_file_has_the_target_of_one_of_two_banks(
    tmp_path: Path, grader: ScriptedGrader, graded_in_part: str
) -> None:
    questions = tmp_path / "other.csv"
    questions.write_text("query_id,item_id,question\nq1,o1,Is it a pole?\nq2,o2,Is it hot?\n")
    with exams.make(tmp_path) as exam:
        exam.import_files(questions, bank="other")
        for bank in ("main", "other"):
            more: dict[str, Any] = {"measures": ["Cover"]} if bank == graded_in_part else {}
            exam.grade(grader, bank=bank, **more)
        exam.export(tmp_path / "graded.jsonl")
    assert '"for":' in (tmp_path / "graded.jsonl").read_text()


@pytest.mark.parametrize(
    "stated", [1, [], {}, {"measures": "Cover"}, {"measures": [], "min_ratings": []}]
)
def test_a_broken_target_of_a_file_is_refused(
    tmp_path: Path, grader: ScriptedGrader, stated: object
) -> None:
    file = tmp_path / "graded.jsonl"
    with exams.make(tmp_path) as exam:
        exam.grade(grader, measures=["Cover"])
        exam.export(file)
    written = '"for":{"measures":["Cover@20"],"min_ratings":[4]}'
    text = file.read_text()
    assert written in text
    file.write_text(text.replace(written, f'"for":{json.dumps(stated)}'))
    with pytest.raises(exampp.InputError, match=r"jsonl:1, .*llm_options\.exampp\.for: these are"):
        exampp.open(file).grades()


def test_each_batch_is_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    name: Any = "openai"
    with OpenAIStub() as stub, exams.make(tmp_path) as exam:
        options: dict[str, Any] = {"model": "tiny", "base_url": stub.url, "decode": "text"}
        progress = exam.grade(name, batches=Batches(poll=0), measures=["Cover"], **options)
        assert 1 <= len(stub.batches) <= 2
        assert set(stub.paid.values()) == {1}
        assert len(stub.paid) == progress.done
        lazy = exam.grades().evaluate().rows
        exam.grade(name, batches=Batches(poll=0), **options)
        full = exam.grades().evaluate(["Cover@20"]).rows
        assert [row.mean for row in lazy] == [row.mean for row in full]


def work(path: Path, seed: int) -> None:
    grader = ScriptedGrader(lambda ask: str((len(ask.item) + seed) % 6), name="many", delay=0.002)
    with exampp.Collection(path) as exam:
        exam.grade(grader, name="many", measures=["Cover@3"], depth=3)


def test_several_processes_share_the_rounds(tmp_path: Path) -> None:
    exam = RandomExam(tmp_path / "my.exam", 14)
    processes = [
        forked(partial(work, exam.path, 3), tmp_path / f"said {number}") for number in range(3)
    ]
    processes[0].join(0.3)
    processes[0].kill()
    for one in processes:
        one.join()
    work(exam.path, 3)
    with exampp.Collection(exam.path) as collection:
        assert grading_status(collection.connection)[0].pending == 0
        board = collection.grades().evaluate()
        assert all(row.missing_cells == 0 for row in board.rows)


def test_shards_and_their_merge_equal_one_run(tmp_path: Path) -> None:
    exam = RandomExam(tmp_path / "my.exam", 14)
    copies = [Path(shutil.copy(exam.path, tmp_path / f"{n}.exam")) for n in (1, 2)]
    for number, copy in enumerate(copies, 1):
        with exampp.Collection(copy) as part:
            part.grade(
                exam.grader(),
                name="replay",
                measures=[f"Cover@{exam.k}"],
                shard=f"{number}/2",
                depth=exam.depth,
            )
    with exampp.Collection(exam.path) as whole:
        whole.merge(*copies)
        run = planned(whole, exam, ["Cover"], [4])
        # each shard closed all items that its passages can close
        assert list(run.pending()) == []
        lazy = scores(whole.grades("replay"), run)
        whole.grade(exam.grader("full"), name="full", depth=exam.depth)
        assert lazy == scores(whole.grades("full"), run)


def test_a_changed_query_makes_the_cells_of_a_function_needed(tmp_path: Path) -> None:
    def judge(item: Any, passage: Any) -> int:
        return int(by_hand(item.text, passage.text))

    with exams.make(tmp_path) as exam:
        assert exam.grade(judge, name="judge", measures=["Cover"]).done == 7
        exam.add(queries={"q1": "a new text", "q2": exams.QUERIES["q2"]}, update=True)
        # of q1, the cell that was not needed is still not needed
        assert exam.grade(judge, name="judge", measures=["Cover"]).done == 5
        assert exam.grade(judge, name="judge", measures=["Cover"]).done == 0
