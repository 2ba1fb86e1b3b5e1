"""Grading until an order of systems or a gate is decided."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import exams
from support.commands import Commands
from support.forked import forked
from support.replayed import Killed

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.status import grading_status
from exampp.measures.query_sample import random_order

QUERIES, ITEMS, DEPTH = 40, 2, 2
SKILL = {"good": 0.9, "fair": 0.5, "poor": 0.1}


def make(folder: Path, queries: int = QUERIES, skill: dict[str, float] | None = None) -> Path:
    """An exam of systems with passages of their own, which cover items by their skill."""
    path = folder / "until.exam"
    names = [f"q{number}" for number in range(queries)]
    passages = {
        f"{query} {system} {rank}": f"{query} {system} {rank}"
        for query in names
        for system in skill or SKILL
        for rank in range(DEPTH)
    }
    with exampp.create(path) as exam:
        exam.add(
            queries={query: f"about {query}" for query in names},
            passages=passages,
            bank=[
                {"query_id": query, "question": f"item {item} of {query}?"}
                for query in names
                for item in range(ITEMS)
            ],
            runs=[
                {
                    "query_id": name.split()[0],
                    "passage_id": name,
                    "score": -float(name.split()[2]),
                    "system": name.split()[1],
                }
                for name in passages
            ],
        )
    return path


def rating(item: str, passage: str) -> str:
    chance = Random(f"{item} {passage}").random()
    return "5" if chance < SKILL[passage.split()[1]] / DEPTH else "0"


def scripted(**options: Any) -> ScriptedGrader:
    options = {"name": "lazy", "look_ahead": 8, **options}
    return ScriptedGrader(lambda ask: rating(ask.item, ask.passage), **options)


ORDER: dict[str, Any] = {"measures": ["Cover@2"], "until": "order"}
GATE: dict[str, Any] = {"measures": ["Cover@2>=baseline-0.1"], "until": "gate"}
GATE["baseline_system"] = "poor"


def means(grades: exampp.Grades) -> dict[str, float | None]:
    return {row.system: row.mean for row in grades.evaluate(["Cover@2"]).rows}


def test_the_order_is_decided_by_some_queries(tmp_path: Path) -> None:
    with exampp.open(make(tmp_path)) as exam:
        progress = exam.grade(scripted(), name="lazy", **ORDER)
        exam.grade(scripted(), name="full", measures=["Cover@2"])
        assert progress.done < 0.6 * QUERIES * ITEMS * DEPTH * len(SKILL)
        lazy, full = exam.grades("lazy"), exam.grades("full")
        assert list(means(lazy)) == list(means(full)) == ["good", "fair", "poor"]
        graded = {query.query_id for query in lazy.gradebook.queries}
        names = [query.query_id for query in full.gradebook.queries]
        # the first ones of an order by ids, with the values of full grading
        assert graded == {names[at] for at in random_order(names)[: len(graded)].tolist()}
        values = {
            (row.system, row.query_id): row.value for row in full.evaluate(["Cover@2"]).per_query()
        }
        board = lazy.evaluate()
        assert all(values[row.system, row.query_id] == row.value for row in board.per_query())
        sentence = f"Means are over {len(graded)} of 40 queries, in random order: all queries would"
        assert str(board.notes[0]).startswith(sentence)
        assert f"The order is decided after {len(graded)} of 40 queries" in str(progress)
        assert not any("p-value" in str(one) for one in board.notes)
        for test in (lambda: lazy.significance(["Cover@2"]), lazy.reliability, lazy.report):
            with pytest.raises(exampp.InputError, match="Run exampp grade without --until to"):
                test()
        item = exam.bank().items(min(graded))[0].item_id
        effects = exam.bank().trial(lambda bank: bank.edit("retire", item)).effects
        moves = next(one for one in effects if one.grader.model == "lazy").impact.shifts[0].moves
        assert {one.system: one.before for one in moves} == means(lazy)
        (status,) = [one for one in grading_status(exam.connection) if one.not_needed > 150]
        assert (status.pending, status.grader.model) == (0, "lazy")
        again = scripted()
        assert exam.grade(again, name="lazy", **ORDER).done == 0
        assert not again.calls


def test_a_gate_has_the_verdict_of_full_grading(tmp_path: Path) -> None:
    with exampp.open(make(tmp_path)) as exam:
        progress = exam.grade(scripted(), name="lazy", **GATE)
        exam.grade(scripted(), name="full", measures=["Cover@2"])
        assert progress.not_needed > 0
        assert "The gate is decided after" in progress.outcome
        lazy, full = (
            exam.grades(name).gate(GATE["measures"], baseline_system="poor")
            for name in ("lazy", "full")
        )
        assert lazy.verdict == full.verdict == "passed"
        for some, every in zip(lazy.rows, full.rows, strict=True):
            assert some.verdict == every.verdict
            assert some.queries < every.queries == QUERIES
            assert some.low is not None
            assert every.low is not None
            assert some.low <= every.low
        assert any("includes the one that all 40 queries would give" in n for n in lazy.notes)
        # not a mean over all queries that is bounded
        (row, *_) = exam.grades("lazy").gate(["nCover@2>=0.1"]).rows
        assert row.verdict == "missing"


def test_systems_that_are_close_need_a_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = {"good": 0.9, "fair": 0.5, "even": 0.5}
    monkeypatch.setitem(SKILL, "even", 0.5)
    with exampp.open(make(tmp_path, 30, skill)) as exam:
        alone = exam.grade(scripted(), name="alone", **ORDER)
        wide = exam.grade(scripted(), name="wide", margin=0.4, **ORDER)
        assert alone.outcome == (
            "Not decided early: all 30 queries are graded; open after 28 queries: fair and good"
        )
        assert wide.done < alone.done
        assert "unless their means differ by at most 0.4" in str(
            exam.grades("wide").evaluate().notes[0]
        )


def test_a_killed_run_continues_with_the_same_queries(tmp_path: Path) -> None:
    path = make(tmp_path)
    copy = Path(shutil.copy(path, tmp_path / "copy.exam"))
    whole = scripted()
    with exampp.open(path) as exam:
        exam.grade(whole, name="lazy", **ORDER)
    random, calls = Random(3), 0
    while True:
        left = random.randint(30, 90)

        def answer(ask: Request) -> str:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return rating(ask.item, ask.passage)

        grader = ScriptedGrader(answer, name="lazy", look_ahead=8)
        with exampp.open(copy) as exam:
            try:
                exam.grade(grader, name="lazy", **ORDER)
            except Killed:
                calls += 1
                continue
            break
    assert calls > 2
    with exampp.open(path) as one, exampp.open(copy) as other:
        assert list(one.grades().evaluate().per_query()) == list(
            other.grades().evaluate().per_query()
        )


def work(path: Path) -> None:
    with exampp.open(path) as exam:
        exam.grade(scripted(delay=0.001), name="lazy", **ORDER)


def test_several_processes_stop_at_the_same_query(tmp_path: Path) -> None:
    path = make(tmp_path)
    processes = [forked(partial(work, path), tmp_path / f"out {number}") for number in range(3)]
    processes[0].join(0.3)
    processes[0].kill()
    for one in processes:
        one.join()
    work(path)
    with exampp.open(path) as exam:
        assert grading_status(exam.connection)[0].pending == 0
        many = {query.query_id for query in exam.grades().gradebook.queries}
        exam.grade(scripted(), name="alone", **ORDER)
        assert many == {query.query_id for query in exam.grades("alone").gradebook.queries}


def test_a_failed_cell_ends_the_sample(tmp_path: Path) -> None:
    with exampp.open(make(tmp_path)) as exam:
        names = [f"q{number}" for number in range(QUERIES)]
        third = names[random_order(names)[2]]
        cell = (f"item 0 of {third}?", f"{third} poor 0")
        failing = scripted(faults={cell: "down"})
        progress = exam.grade(failing, name="lazy", **ORDER)
        # without this cell nothing is decided, and nothing is left out
        what = "The order is not decided after 2 of 40 queries; open: fair and good, "
        assert progress.outcome.startswith(what)
        assert len(exam.grades().gradebook.queries) == 2
        failing._faults = {}
        assert exam.grade(failing, name="lazy", **ORDER).done == 1


def test_an_edit_opens_the_decision_again(tmp_path: Path) -> None:
    with exampp.open(make(tmp_path)) as exam:
        exam.grade(scripted(), name="lazy", **ORDER)
        first = exam.grades().gradebook.queries[0]
        bank = exam.bank()
        bank.edit("reword", first.item_ids[0], "Something else?", author="me")
        assert grading_status(exam.connection)[0].pending > 0
        assert exam.grade(scripted(), name="lazy", **ORDER).done > 0
        assert grading_status(exam.connection)[0].pending == 0


def test_equal_rankings_need_no_order(tmp_path: Path) -> None:
    with exampp.open(make(tmp_path)) as exam:
        exam.add(
            runs=[
                {
                    "query_id": f"q{n}",
                    "passage_id": f"q{n} good {rank}",
                    "score": rank,
                    "system": "x",
                }
                for n in range(QUERIES)
                for rank in range(DEPTH)
            ]
        )
        assert "is decided after" in exam.grade(scripted(), name="lazy", **ORDER).outcome


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"until": "order"}, "--until needs a measure"),
        ({"until": "best", "measures": ["Cover"]}, "Choose order or gate"),
        ({"until": "order", "measures": ["nDCG@2"]}, "--until does not support nDCG@2"),
        ({"until": "order", "measures": ["nCover@2"]}, "--until does not support nCover@2"),
        ({"until": "order", "measures": ["Cover"], "margin": 1.0}, "less than 1"),
        ({"until": "order", "measures": ["Cover"], "baseline_system": "beta"}, "no effect"),
        ({"until": "gate", "measures": ["Cover"]}, "--until gate needs requirements"),
        ({"until": "gate", "measures": ["Cover>=0.5"], "margin": 0.1}, "its own margin"),
        ({"until": "gate", "measures": ["Cover>=baseline"]}, "Add --baseline-system NAME"),
        ({"until": "gate", "measures": ["Cover>=0.5"], "baseline_system": "beta"}, "no effect"),
        (
            {"until": "gate", "measures": ["Cover>=baseline"], "baseline_system": "x"},
            "unknown system 'x'",
        ),
        ({"until": "gate", "measures": ["Cover>=0.5"], "min_rating": [3, 4]}, "one minimum rating"),
        ({"until": "order", "measures": ["Cover"], "max_queries": 1}, "not support --max-queries"),
        ({"until": "order", "measures": ["Cover"], "shard": "1/2"}, "not support --shard"),
        ({"until": "order", "measures": ["Cover"], "select": "failed"}, "--retry-failed"),
        ({"margin": 0.1}, "no effect without until"),
    ],
)
def test_what_cannot_end_grading_is_refused(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    with exams.make(tmp_path) as exam, pytest.raises(exampp.InputError, match=why):
        exam.grading(scripted(), **options)


def test_the_command(tmp_path: Path, exampp_command: Commands) -> None:
    exams.make(tmp_path).close()
    line = f"exampp grade {tmp_path}/my.exam --grader draft --for Cover@2 --until order"
    assert "requests" in exampp_command.line(f"{line} --margin 0.1 --dry-run").out
    done = exampp_command.line(line).out
    assert "Not decided early: all 2 queries are graded; open after 1 query: alpha and" in done
    refused = exampp_command.line(f"{line} --baseline-system alpha")
    assert refused.code == 2
    assert "--until gate" in refused.err
