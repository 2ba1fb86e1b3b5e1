"""Cost of grading: printed at the end of a run, and in the status for all runs of a grader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams, servers
from support.commands import Commands

from exampp.errors import InputError


def test_tokens_and_cost_at_the_end_of_a_run_and_in_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> None:
    """Every reply of the server takes 20 tokens, 5 of them cached, and has 2."""
    exams.make(tmp_path).close()
    path = tmp_path / "my.exam"
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with servers.FaultServer(lambda _: servers.Answer(servers.completion("4"))) as server:
        grade = ["grade", path, "--grader", "openai", "--model", "chat", "--decode", "text"]
        grade += ["--base-url", server.url, "--concurrency", 1]
        priced = ["--price-read", 1, "--price-written", 4, "--price-cached", 0]
        first = exampp_command(*grade, *priced, "--max-requests", 3)
        # 3 x (15 x 1 + 5 x 0 + 2 x 4) millionths
        assert "3 replies to 3 requests, 60 tokens read (15 cached), 6 written\ncost: 6.9e-05" in (
            first.out
        )
        second = exampp_command(*grade)
        assert "5 replies to 5 requests, 100 tokens read (25 cached), 10 written\n" in second.out
        assert (
            "cost: not known without prices (--price-read, --price-written; in Python" in second.out
        )
    spent = json.loads(exampp_command("status", path, "--format", "json").out)["spent"]
    (row,) = spent["rows"]
    assert {name: row[name] for name in row if name not in ("grader", "grader key", "seconds")} == {
        "replies": 8,
        "requests": 8,
        "tokens read": 160,
        "tokens cached": 40,
        "share cached": 0.25,
        "tokens written": 16,
        "cost": pytest.approx(6.9e-05),
    }
    (note,) = spent["notes"]
    assert note.endswith(": the cost excludes 1 run without prices")


def test_a_limit_below_one_request_leaves_everything_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> None:
    exams.make(tmp_path).close()
    path = tmp_path / "my.exam"
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with servers.FaultServer() as server:
        grade = ["grade", path, "--grader", "openai", "--model", "chat", "--decode", "text"]
        grade += ["--base-url", server.url, "--price-read", 10, "--price-written", 30]
        for batch in ([], ["--batch"], ["--batch-file", tmp_path / "r.jsonl"]):
            refused = exampp_command(*grade, *batch, "--max-cost", 0.0001)
            assert refused.code == 2
            assert "a single request may cost 0.0" in refused.err
            assert "max_cost is 0.0001. Increase --max-cost" in refused.err
        assert not server.requests
    status = json.loads(exampp_command("status", path, "--format", "json").out)
    assert status["spent"]["rows"] == []
    assert status["graders"]["rows"] == []


def test_what_came_before_a_request_that_is_too_dear_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    long, run = tmp_path / "passages.jsonl", tmp_path / "long.run"
    long.write_text(json.dumps({"docid": "long", "text": "air " * 50_000}) + "\n")
    run.write_text("q2 Q0 long 1 9.0 gamma\n")
    with servers.FaultServer() as server, exams.make(tmp_path) as exam:
        exam.import_files(long, run)
        limits: Any = {"max_cost": 0.2, "price_read": 1.0, "price_written": 1.0}
        grading = exam.grading("openai", model="chat", decode="text", base_url=server.url, **limits)
        with pytest.raises(InputError, match="a single request may cost"):
            list(grading.steps())
        states = [state for (state,) in exam.connection.execute("SELECT state FROM grade")]
    assert len(states) >= 6, "the cells of the first query"
    assert not any(states), "graded, none failed"
