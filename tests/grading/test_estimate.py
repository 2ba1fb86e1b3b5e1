"""What a run would take, told from some cells of it that are graded and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Commands

import exampp
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.estimate import SAMPLE, Prices, estimate, trial
from exampp.grading.run import GradingRun

QUERIES, PASSAGES, ITEMS = 10, 50, 4


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """2,000 cells of 10 queries."""
    queries = {f"q{n}": f"subject {n}" for n in range(QUERIES)}
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(
            queries=queries,
            passages={f"p{n}": f"The text of passage {n}." for n in range(QUERIES * PASSAGES)},
            bank=[
                {"query_id": q, "question": f"What of point {item} of {q}?"}
                for q in queries
                for item in range(ITEMS)
            ],
            runs={
                "bm25": {
                    f"q{n}": {f"p{n * PASSAGES + rank}": -rank for rank in range(PASSAGES)}
                    for n in range(QUERIES)
                }
            },
        )
    return tmp_path / "my.exam"


def counting() -> ScriptedGrader:
    def reply(ask: Request) -> Reply:
        return Reply("4", usage=Usage(read=100, cached=40, written=2))

    return ScriptedGrader(reply)


def done(run: GradingRun) -> None:
    for _ in run.steps():
        pass


def test_a_trial_is_a_shard_and_tells_what_the_rest_takes(exam: Path) -> None:
    grader = counting()
    with exampp.Collection(exam) as opened:
        run = opened.grading(grader, depth=PASSAGES)
        before = estimate(run)
        assert (before.cells, before.replies, before.seconds) == (2000, 0, None)
        part = trial(run)
        assert part is not None
        done(part)
        asked = len(grader.calls)
        assert SAMPLE / 2 < asked < SAMPLE * 2
        # whole passages of most queries, not the first two queries
        assert asked % ITEMS == 0
        assert len({ask.item.split()[-1] for ask in grader.calls}) > QUERIES / 2
        found = estimate(run, Prices(read=1, cached=0.5, written=10, hour=0))
        assert (found.cells, found.asks) == (2000 - asked, 2000 - asked)
        assert (found.tokens, found.written) == (100 * found.asks, 2 * found.asks)
        # 60 fresh at 1, 40 cached at .5, 2 written at 10, in millionths
        assert found.cost == pytest.approx((60 + 20 + 20) * found.asks / 1e6)
        assert found.replies == asked
        spent = found.seconds
        assert spent is not None
        hourly = estimate(run, Prices(hour=3600)).cost
        assert hourly == pytest.approx(spent)
        # what was tried is graded
        done(run)
        assert len(grader.calls) == len({(ask.item, ask.passage) for ask in grader.calls}) == 2000


def test_who_graded_enough_is_not_tried_again(exam: Path) -> None:
    with exampp.Collection(exam) as opened:
        grader = counting()
        done(opened.grading(grader, depth=PASSAGES, max_queries=2))
        assert trial(opened.grading(grader, depth=PASSAGES)) is None


def test_the_trial_of_a_shard_is_a_part_of_it(exam: Path) -> None:
    with exampp.Collection(exam) as opened:
        whole, tried = counting(), counting()
        part = trial(opened.grading(tried, depth=PASSAGES, shard="2/3"))
        assert part is not None
        due = {cell for one in part.due() for cell in one.cells}
        assert due
        assert due < {
            cell
            for one in opened.grading(whole, depth=PASSAGES, shard="2/3").due()
            for cell in one.cells
        }


def test_the_command_says_it_for_several_machines(exam: Path, exampp_command: Commands) -> None:
    grade = ("grade", exam, "--grader", "draft", "--depth", PASSAGES)
    ran = exampp_command(*grade, "--plan", 16, "--price-hour", 2.5)
    assert "cells done" in ran.err
    left = int(ran.out.split()[2])
    assert 1600 < left < 1900
    assert f"requests        {left}\n" in ran.out
    assert f"by {2000 - left} replies" in ran.out
    assert "on 16 machines" in ran.out
    again = exampp_command(*grade, "--plan", 1)
    assert f"cells pending   {left}\n" in again.out
    assert "machines" not in again.out
    refused = exampp_command(*grade, "--price-hour", 1)
    assert (refused.code, "--plan" in refused.err) == (2, True)
