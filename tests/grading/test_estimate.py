"""What a run would take, told from what was graded before."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Commands

import exampp
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.plan import Prices, estimate
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


def test_what_was_graded_tells_what_the_rest_takes(exam: Path) -> None:
    grader = counting()
    with exampp.Collection(exam) as opened:
        run = opened.grading(grader, depth=PASSAGES)
        before = estimate(run)
        assert (before.cells, before.replies, before.seconds) == (2000, 0, None)
        done(opened.grading(grader, depth=PASSAGES, max_queries=1))
        asked = len(grader.calls)
        found = estimate(run, Prices(read=1, cached=0.5, written=10, hour=0))
        assert (found.cells, found.asks) == (2000 - asked, 2000 - asked)
        assert (found.tokens, found.written) == (100 * found.asks, 2 * found.asks)
        # 60 fresh at 1, 40 cached at .5, 2 written at 10, in millionths
        assert found.cost == pytest.approx((60 + 20 + 20) * found.asks / 1e6)
        assert found.replies == asked
        assert estimate(run, Prices(hour=3600)).cost == pytest.approx(found.seconds)


def test_the_command_needs_a_dry_run_for_its_price(exam: Path, exampp_command: Commands) -> None:
    grade = ("grade", exam, "--grader", "draft", "--depth", PASSAGES)
    assert exampp_command(*grade, "--max-queries", 1).code == 0
    ran = exampp_command(*grade, "--dry-run", "--price-hour", 2.5)
    assert "requests        1800\n" in ran.out
    assert "by 200 replies" in ran.out
    refused = exampp_command(*grade, "--price-hour", 1)
    assert (refused.code, "--dry-run" in refused.err) == (2, True)
