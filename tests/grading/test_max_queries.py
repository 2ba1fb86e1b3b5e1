"""A trial of the first queries: what is asked, what stays due, what the leaderboard says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.graders.scripted import ScriptedGrader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The exam, with a query before the others that has no items, so that nothing is graded."""
    files = exams.write_files(tmp_path / "files")
    (tmp_path / "first.json").write_text(json.dumps({"q0": "a query without items"}))
    with exampp.Collection.create(tmp_path / "my.exam") as made:
        made.import_files(tmp_path / "first.json")
        made.import_files(*files)
    return tmp_path / "my.exam"


def test_the_first_queries_that_can_be_graded_are(path: Path) -> None:
    with exampp.Collection(path) as collection:
        grader = ScriptedGrader("4")
        # q1: three passages by two items; q2: two passages by one item
        assert collection.grade(grader, max_queries=1).done == 6
        assert {ask.item for ask in grader.calls} == set(exams.QUESTIONS["q1"])
        assert collection.grade(grader, max_queries=1).total == 0
        assert collection.status().rows[0][2] == 2
        notes = collection.grades().evaluate(["Cover@20"]).notes
        # half of the mean: q2 has no grade at all
        # beta returned three of the cells, and the one of q2 has no grade
        assert any("33.3% (beta) of the cells behind Cover@20" in note for note in notes)
        assert collection.grade(grader, max_queries=2).done == 2
        assert collection.status().rows[0][2] == 0
        assert collection.grade(grader).total == 0


def test_the_command(path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    ran = exampp_command("grade", path, "--grader", "draft", "--max-queries", 1, "--dry-run")
    assert "cells pending   6" in ran.out


@pytest.mark.parametrize("wrong", [0, -1, 2**40])
def test_no_such_number_of_queries(path: Path, wrong: int) -> None:
    with (
        exampp.Collection(path) as collection,
        pytest.raises(exampp.InputError, match="max_queries are at least 1"),
    ):
        collection.grading(ScriptedGrader("4"), max_queries=wrong)
