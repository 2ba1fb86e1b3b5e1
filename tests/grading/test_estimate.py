"""Estimates of the cost of a run, from earlier grades."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.commands import Commands
from support.servers import FaultServer, capable, rating

import exampp
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import Prices, estimate
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
        assert (found.cells, found.requests) == (2000 - asked, 2000 - asked)
        # the texts of later queries are a little longer
        assert found.tokens == pytest.approx(100 * found.requests, rel=0.005)
        assert found.written == 2 * found.requests
        # 60 fresh at 1, 40 cached at .5, 2 written at 10, in millionths
        assert found.cost == pytest.approx((60 + 20 + 20) * found.requests / 1e6, rel=0.005)
        assert found.replies == asked
        assert estimate(run, Prices(hour=3600)).cost == pytest.approx(found.seconds)


def test_requests_without_a_reply_do_not_make_the_rest_seem_cheap(exam: Path) -> None:
    def dying(ask: Request) -> Reply:
        usage = Usage(read=100, written=2)
        return Reply("4", usage=usage) if len(grader.calls) <= 100 else Reply("", fault="no server")

    grader = ScriptedGrader(dying)
    with exampp.Collection(exam) as opened:
        with pytest.raises(exampp.Unfinished):
            done(opened.grading(grader, depth=PASSAGES))
        found = estimate(opened.grading(grader, depth=PASSAGES))
    assert len(grader.calls) > 100
    assert found.replies == 100
    assert found.tokens == pytest.approx(100 * found.requests, rel=0.005)
    assert found.written == 2 * found.requests


def test_a_dry_run_in_python_sends_and_stores_nothing(exam: Path) -> None:
    grader = counting()
    with exampp.Collection(exam) as opened:
        before = opened.contents()
        progress = opened.grade(grader, depth=PASSAGES, dry_run=True)
        assert (progress.total, progress.done) == (2000, 0)
        generated = opened.bank().generate(grader, prompt="dl-questions", dry_run=True)
        assert generated["replies"].rows == ()
        assert (grader.calls, opened.contents(), opened.graders) == ([], before, ())


def test_the_command_needs_a_dry_run_for_its_price(exam: Path, exampp_command: Commands) -> None:
    grade = ("grade", exam, "--grader", "draft", "--depth", PASSAGES)
    assert exampp_command(*grade, "--max-queries", 1).code == 0
    ran = exampp_command(*grade, "--dry-run", "--price-hour", 2.5)
    assert "requests        1800\n" in ran.out
    assert "by 200 replies" in ran.out
    refused = exampp_command(*grade, "--price-hour", 1)
    assert (refused.code, "--dry-run" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        "grade --grader openai",
        "grade --grader openai --decode json",
        "grade --grader openai --batch",
        "bank generate --grader openai --prompt dl-questions",
    ],
)
def test_a_dry_run_opens_no_connection(exam: Path, exampp_command: Commands, line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        options = ("--model", "m", "--base-url", url, "--dry-run")
        command = line.split()
        at = 2 if command[0] == "bank" else 1
        ran = exampp_command(*command[:at], exam, *command[at:], *options)
        assert ran.code == 0, ran.err
        assert "--- prompt 1 ---" in ran.out
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_dry_run_assumes_the_mode_of_the_last_run(exam: Path, exampp_command: Commands) -> None:
    grade = ("grade", exam, "--grader", "openai", "--model", "m", "--depth", 1)
    unknown = exampp_command(*grade, "--dry-run")
    assert "assuming --decode labels" in unknown.err
    assert "cells pending   40\n" in unknown.out
    with FaultServer(rating) as server:
        assert exampp_command(*grade, "--base-url", server.url).code == 0
    again = exampp_command(*grade, "--dry-run")
    assert "Grader: m:question-self-rating (decode text), on the questions of the bank" in again.err
    assert "cells pending   0\n" in again.out


PROMPT = """
name = "mine"
title = "Mine"
grades = "question"
reading = "rating"
scale = { lowest = 0, highest = 2 }
labels = ["0", "1", "2"]
cut = "context"
user = "Rate {context} for {question}."
"""


def test_a_custom_prompt_with_labels_is_read_from_json(
    exam: Path, exampp_command: Commands, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(PROMPT)
    grade = ("grade", exam, "--grader", "openai", "--model", "m", "--depth", 1)
    with capable("json") as server:
        options = ("--prompt", tmp_path / "mine.toml", "--base-url", server.url)
        ran = exampp_command(*grade, *options)
    assert ran.code == 0, ran.err
    assert "(decode json)" in ran.err
    assert ran.out.startswith("40 of 40 cells done\n")
