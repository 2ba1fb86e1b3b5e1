"""A model writes items on trial: what it is shown, what is stored, and what becomes of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from support.planted_collection import collected, question, rater
from support.planted_items import planted_exam

import exampp
from exampp.analysis.item_trials import ADDED
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.items.generation import GenerationRun


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded collection of eight queries; saturated items give systems equal scores."""
    book = planted_exam(3, {"saturated": 3, "reversed": 1}, systems=12, queries=8, items=4)
    with collected(tmp_path_factory.mktemp("planted") / "exam", book) as exam:
        return exam.path


@pytest.fixture
def exam(made: Path, tmp_path: Path) -> Iterator[exampp.Collection]:
    with exampp.Collection(shutil.copy(made, tmp_path / "my.exam")) as opened:
        yield opened


def writer() -> ScriptedGrader:
    numbers = count()

    def write(_: Request) -> str:
        names = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel", "ivy")
        first, second = (names[(next(numbers)) % 9] for _ in range(2))
        return f'{{"questions": ["Who sold {first} in camp?", "When did {second} burn down?"]}}'

    return ScriptedGrader(write)


def run_of(exam: exampp.Collection, grader: ScriptedGrader) -> GenerationRun:
    return exam.bank().generation(grader, prompt="trial-questions", model="gpt-5-mini")


def test_the_writer_sees_items_and_passages_of_tied_systems(exam: exampp.Collection) -> None:
    grader = writer()
    run = run_of(exam, grader)
    outcomes = list(run.steps())
    assert outcomes
    assert run.tasks is not None
    book = exam.grades().gradebook
    for call, outcome in zip(grader.calls, outcomes, strict=True):
        query = next(q for q in book.queries if q.query_id == outcome.subject.query_id)
        task = run.tasks[query.query_id]
        graded = zip(query.item_ids, query.weights.tolist(), strict=True)
        assert all(question(name) in call.user for name, weight in graded if weight)
        returned = {
            ranking.system: {query.passage_ids[at] for at in ranking.passages[:20].tolist()}
            for ranking in query.rankings
        }
        one, other = (returned[name] for name in task.systems)
        for passage in task.passages:
            number = passage.split("p")[-1].partition(" ")[0]
            passage_id = f"{query.query_id}-{number}"
            mine, others = (one, other) if "(system A)" in passage else (other, one)
            assert passage_id in mine - others
        covered = [
            {
                item
                for item in range(len(query.item_ids))
                if query.weights[item] > 0
                and any(query.ratings[query.passage_ids.index(p), item] >= 4 for p in side)
            }
            for side in (one, other)
        ]
        assert covered[0] == covered[1]


def test_new_items_are_on_trial_and_do_not_count(exam: exampp.Collection) -> None:
    before = exam.grades().evaluate(["Cover@20"]).columns[0].values.means()
    outcomes = list(run_of(exam, writer()).steps())
    made = [item for one in outcomes for item in one.items]
    assert made
    states = [one for outcome in outcomes for one in exam.bank().items(outcome.subject.query_id)]
    on_trial = {one.item_id: one for one in states if not one.weight}
    assert set(on_trial) == {one.item_id for one in made}
    assert all(len(one.extra["improves"]) == 2 for one in on_trial.values())
    exam.grade(rater({}), model="scripted")
    assert exam.grades().evaluate(["Cover@20"]).columns[0].values.means() == before


def test_an_interrupted_writer_continues_with_the_same_tasks(exam: exampp.Collection) -> None:
    first = run_of(exam, writer())
    stored = next(first.steps()).subject.query_id
    second = run_of(exam, writer())
    assert second.tasks == first.tasks
    assert stored not in [one.query_id for one in second.pending]
    assert len(second.pending) == len(first.pending) - 1


def test_trials_are_written_for_whole_queries(exam: exampp.Collection) -> None:
    with pytest.raises(InputError, match="is for whole queries"):
        exam.bank().generation(writer(), prompt="trial-questions", model="m", per="subtopic")


def test_a_graded_round_is_tried_on_systems_that_the_writer_did_not_see(
    exam: exampp.Collection,
) -> None:
    """Ungraded items stay on trial; graded ones are tried by all rules."""
    list(run_of(exam, writer()).steps())
    bank = exam.bank()
    ungraded = bank.improve()
    assert not [one for one in ungraded.proposals if one.change == "add"]
    exam.grade(rater({}), model="scripted")
    found = bank.improve()
    assert "on trial" in found.caption
    assert len(found.tried) > len(ADDED)


def test_a_bank_without_grades_has_no_trial(small_exam: exampp.Collection) -> None:
    with pytest.raises(InputError, match="no grades of questions"):
        run_of(small_exam, writer())
    small_exam.grade("draft")
    with pytest.raises(InputError, match="no grades of nuggets"):
        small_exam.bank().generation(writer(), prompt="trial-nuggets", model="m")


KILLED = """
import sys
import exampp
from exampp.graders.scripted import ScriptedGrader

with exampp.Collection(sys.argv[1]) as exam:
    def write(request):
        return '{"questions": ["Who sold alder in camp?", "When did birch burn down?"]}'

    grader = ScriptedGrader(write)
    run = exam.bank().generation(grader, prompt="trial-questions", model="gpt-5-mini")
    for at, one in enumerate(run.steps()):
        print(one.subject.query_id, flush=True)
        if at == 1:
            sys.stdin.read()
"""


def test_a_killed_writer_is_continued_and_undone_to_the_byte(exam: exampp.Collection) -> None:
    bank = exam.bank()
    before, number = exported(exam), bank.version().number
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(exam.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        stored = [process.stdout.readline().strip() for _ in range(2)]
        process.kill()
    assert exported(exam) != before
    rest = run_of(exam, writer())
    assert rest.tasks is not None
    assert {one.query_id for one in rest.pending} == set(rest.tasks) - set(stored)
    list(rest.steps())
    assert not run_of(exam, writer()).pending
    exam.grade(rater({}), model="scripted")
    bank.improve()
    bank.revert(number)
    assert exported(exam) == before


def exported(exam: exampp.Collection) -> bytes:
    """The bank as a file."""
    path = exam.path.with_name("bank.jsonl")
    exam.bank().export(path)
    return path.read_bytes()
