"""Grading by several workers: each cell once, whoever is lost, and by one and the same grader."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.contract import GraderContract, Make, make_ask, make_asks, passage_text
from support.process_workers import ProcessWorkers
from support.replayed import RandomExam

import exampp
from exampp.errors import InputError, Unfinished
from exampp.graders.base import Grader, Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading import workers
from exampp.grading.costs import estimate
from exampp.grading.plan import join_grading
from exampp.grading.run import GradingRun
from exampp.grading.workers import SpreadGrader, WorkerJoined
from exampp.prompts import load_grading_prompt
from exampp.records import State
from exampp.records.graders import GradingTarget
from exampp.store.cells import GradingScope

PROMPT = load_grading_prompt("question-self-rating")


def rating(ask: Request) -> str:
    return str(len(ask.item + ask.passage) % 6)


def scripted(delay: float = 0.0, name: str = "scripted") -> Grader:
    return ScriptedGrader(rating, delay=delay, name=name)


def limited(limit: int) -> Grader:
    """A grader that takes so many characters."""

    class Characters(ScriptedGrader):
        def offsets(self, text: str) -> list[tuple[int, int]]:
            return [(place, place + 1) for place in range(len(text))]

        def length(self, user: str, system: str = "") -> int:
            return len(user) + len(system)

    grader = Characters(lambda ask: str(len(ask.user) % 6))
    vars(grader)["limit"] = limit
    return grader


@pytest.fixture
def start() -> Iterator[Callable[..., ProcessWorkers]]:
    pools: list[ProcessWorkers] = []

    def begin(*makes: Make) -> ProcessWorkers:
        pools.append(ProcessWorkers(*makes))
        return pools[-1]

    yield begin
    for pool in pools:
        pool.close()


def spread(pool: ProcessWorkers) -> SpreadGrader:
    grader = SpreadGrader(pool)
    grader.ask_by(PROMPT, "question")
    return grader


class TestSpreadContract(GraderContract):
    look_ahead = 2 * 2 * workers.MOST

    @pytest.fixture
    def make(self, start: Callable[..., ProcessWorkers]) -> Make:
        return lambda: spread(start(scripted, scripted))


def test_a_lost_worker_costs_what_it_had_and_nothing_is_lost_or_doubled(
    start: Callable[..., ProcessWorkers],
) -> None:
    pool = start(partial(scripted, 0.001), partial(scripted, 0.001))
    grader = spread(pool)
    found: Counter[int] = Counter()
    asks = list(make_asks(300))
    for ask, reply in grader.answer(iter(asks)):
        if len(found) == 100:
            pool.kill("worker 1")
            pool.start(partial(scripted, 0.001))
        found[ask.key] += 1
        assert reply.text == rating(ask)
    assert found == Counter(range(900))
    times = Counter(key for _, keys in pool.given for key in keys)
    again = sum(times.values()) - 900
    assert 0 < again <= 2 * workers.MOST
    assert f"1 worker lost (the last: its process is gone), {again} requests" in grader.note
    assert {worker for worker, _ in pool.given} == {"worker 1", "worker 2", "worker 3"}


def test_a_passage_goes_to_one_worker_in_its_order(start: Callable[..., ProcessWorkers]) -> None:
    pool = start(scripted, scripted)
    assert len(list(spread(pool).answer(make_asks(200, items=7)))) == 1400
    for _, keys in pool.given:
        assert keys == list(range(keys[0], keys[-1] + 1))
        assert (keys[0] % 7, keys[-1] % 7) == (0, 6)


def test_a_request_has_as_many_items_as_the_workers_take(
    tmp_path: Path, start: Callable[..., ProcessWorkers]
) -> None:
    def shared() -> Grader:
        grader = scripted()
        vars(grader)["most_items"] = 10
        return grader

    with exams.make(tmp_path) as exam:
        planned = estimate(exam.grading(spread(start(shared)), prompt="question-rating-many"))
        # two queries with items about three and two passages
        assert (planned.cells, planned.requests) == (8, 5)


def test_what_kills_every_worker_is_given_up(start: Callable[..., ProcessWorkers]) -> None:
    class Deadly(ScriptedGrader):
        def _reply(self, ask: Request) -> Reply:
            if ask.passage == "deadly":
                import os

                os._exit(9)
            return super()._reply(ask)

    pool = start(*[partial(Deadly, rating)] * 4)
    asks = [make_ask(key, "Why?", passage_text(key)) for key in range(100)]
    asks[0] = replace(asks[0], passage="deadly")
    found = {ask.key: reply.fault for ask, reply in spread(pool).answer(asks)}
    assert found.keys() == set(range(100))
    assert found[0] == "3 workers were lost with it, the last: its process is gone"
    assert {found[key] for key in range(50, 100)} == {""}


def test_another_grader_among_the_workers_is_left_out(
    start: Callable[..., ProcessWorkers],
) -> None:
    pool = start(scripted)
    grader = spread(pool)
    pool.start(partial(scripted, 0.0, "another"))
    time.sleep(0.2)
    assert len(list(grader.answer(make_asks(500)))) == 1500
    assert (
        "is not used, because its grader differs: name is 'another' instead of 'script"
        in grader.note
    )
    assert {worker for worker, _ in pool.given} == {"worker 1"}


def test_versions_that_differ_are_told(
    start: Callable[..., ProcessWorkers], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start(scripted)
    monkeypatch.setattr("exampp.grading.workers.__version__", "7.0")
    assert spread(pool).note.endswith("has exampp 0.1.0, this machine 7.0")


def test_a_grader_that_cannot_be_made_is_told_in_a_sentence(
    start: Callable[..., ProcessWorkers],
) -> None:
    def broken() -> Grader:
        raise OSError("no weights in /models/t5")

    with pytest.raises(InputError, match="a worker cannot grade: OSError: no weights in /models"):
        spread(start(broken))


def test_without_workers_a_run_ends_and_the_same_grader_goes_on_when_there_are_some(
    start: Callable[..., ProcessWorkers], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start(partial(scripted, 0.01))
    grader = spread(pool)
    monkeypatch.setattr(workers, "PATIENCE", 0.1)
    found: set[int] = set()

    def until_it_is_killed() -> None:
        for ask, _ in grader.answer(make_asks(50)):
            found.add(ask.key)
            pool.kill("worker 1")

    with pytest.raises(Unfinished, match=r"no worker for 0 s; the last was lost: its process is"):
        until_it_is_killed()
    rest = [ask for ask in make_asks(50) if ask.key not in found]
    pool.start(scripted)
    again = {ask.key for ask, _ in grader.answer(rest)}
    assert found | again == set(range(150))
    assert found & again == set()


def test_a_stop_gives_nothing_more_and_ends_in_time(start: Callable[..., ProcessWorkers]) -> None:
    pool = start(partial(scripted, 0.02))
    grader = spread(pool)
    stream = grader.answer(make_asks(500))
    next(stream)
    grader.stop(0.0)
    given, began = len(pool.given), time.monotonic()
    list(stream)
    assert time.monotonic() - began < 2
    assert len(pool.given) == given


def cells(path: Path) -> list[Any]:
    """The grades as they are kept, whatever number their texts have."""
    return sorted(exams.tables(path)["grade"])


def test_the_end_is_that_of_a_single_process(
    tmp_path: Path, start: Callable[..., ProcessWorkers]
) -> None:
    # there is room for some of the passages, so that workers cut as one process does
    make = partial(limited, len(PROMPT.user) + len(PROMPT.system) + 45)
    for name, grader in {"alone": make(), "spread": SpreadGrader(start(make, make))}.items():
        with exams.make(tmp_path, f"{name}.exam") as exam:
            how = join_grading(grader, "scripted", PROMPT)
            *_, last = GradingRun(exam.connection, how, GradingScope("question", "main")).steps()
            assert last.states == {State.GRADED: 8}
    alone, spread_out = (cells(tmp_path / f"{name}.exam") for name in ("alone", "spread"))
    assert alone == spread_out
    assert any("kept" in str(row) for row in alone)


def test_rounds_of_a_target_survive_a_lost_worker(
    tmp_path: Path, start: Callable[..., ProcessWorkers]
) -> None:
    exam = RandomExam(tmp_path / "my.exam", 14)
    target = GradingTarget((f"Cover@{exam.k}",), (4,))
    counts = []
    for name in ("alone", "spread"):
        make = partial(scripted, 0.001, name)
        pool = start(make, make)
        grader = SpreadGrader(pool) if name == "spread" else make()
        with exampp.Collection(exam.path) as collection:
            how = join_grading(grader, name, PROMPT)
            scope = GradingScope("question", "main", exam.depth)
            steps = GradingRun(collection.connection, how, scope, target=target).steps()
            next(steps)
            pool.kill("worker 1")
            *_, last = steps
            counts.append((last.done, last.not_needed, last.states))
            board = collection.grades(name).evaluate(target.measures)
            assert all(row.missing_cells == 0 for row in board.rows)
    assert counts[0] == counts[1]


def test_joined_is_told_apart_from_what_was_lost_before_it(
    start: Callable[..., ProcessWorkers],
) -> None:
    pool = start(scripted)
    event = pool.wait(5)
    assert isinstance(event, WorkerJoined)
    assert event.facts.settings["name"] == "scripted"
