"""Human decisions are counted under every leaderboard, and can be left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.board import caption, tidy
from exampp.records import item_id
from exampp.results.page import report_json
from exampp.results.result import render

SCATTER = item_id("q1", exams.QUESTIONS["q1"][0])
MAGNET = item_id("q2", exams.QUESTIONS["q2"][0])
BY_PEOPLE = "3 cells decided by 2 people, 1 of them disputed"


def rated(ask: Request) -> str:
    """The first question of a query is answered by its first passage, and nothing else is."""
    answered = {
        (exams.QUESTIONS["q1"][0], exams.PASSAGES["p1"]),
        (exams.QUESTIONS["q2"][0], exams.PASSAGES["p3"]),
    }
    return "5" if (ask.item, ask.passage) in answered else "1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """By the grader alpha has Cover 1/2 and 1, beta 0 and 0; by people alpha 0 and 0, beta 1/2."""
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader(rated))
        opened.grades().decisions.decide("q1", SCATTER, "p1", 1, author="ann")
        opened.grades().decisions.decide("q2", MAGNET, "p3", 0, author="ann")
        opened.grades().decisions.decide("q1", SCATTER, "p4", 2, author="ann")
        opened.grades().decisions.decide("q1", SCATTER, "p4", 5, author="bob")
    return tmp_path / "my.exam"


def test_the_leaderboard_says_what_people_decided_and_what_it_is_without(path: Path) -> None:
    with exampp.Collection(path) as opened:
        board = opened.grades().evaluate(["Cover@20"], min_rating=4)
        assert board.scores("Cover@20") == {"alpha": 0.0, "beta": 0.25}
        assert (board.oversight.cells, board.oversight.people, board.oversight.disputed) == (
            3,
            2,
            1,
        )
        other = opened.grades(decisions="without").evaluate(["Cover@20"], min_rating=4)
    assert other.scores("Cover@20") == {"alpha": 0.75, "beta": 0.0}
    assert board.without_decisions is not None
    assert board.without_decisions.scores("Cover@20") == other.scores("Cover@20")
    assert f"Human decisions override grades: {BY_PEOPLE}." in board.notes
    assert (
        "Without human decisions means change by up to 0.750 (alpha, Cover@20 \u22654), and 1 "
        "of 1 pairs of systems change places (--decisions without)."
    ) in board.notes
    assert caption(board).endswith(f"; {BY_PEOPLE}")
    assert f"Human decisions are left out: {BY_PEOPLE}." in other.notes
    assert "decided" not in caption(other)


def test_machines_read_who_decided_and_both_means(path: Path) -> None:
    with exampp.Collection(path) as opened:
        board = opened.grades().evaluate(["Cover@20"], min_rating=4)
        other = opened.grades(decisions="without").evaluate(["Cover@20"], min_rating=4)
    row, *_ = json.loads(render(tidy(board), "json"))["rows"]
    assert (row["system"], row["mean"], row["mean_without_decisions"]) == ("beta", 0.25, 0.0)
    assert (row["decided_cells"], row["deciders"], row["disputed_cells"]) == (3, 2, 1)
    assert row["draft"] is False
    row, *_ = json.loads(render(tidy(other), "json"))["rows"]
    assert (row["mean"], row["mean_without_decisions"], row["decided_cells"]) == (0.75, 0.75, 0)
    frame = board.to_polars().to_dicts()[0]
    assert (frame["mean_without_decisions"], frame["deciders"]) == (0.0, 2)


def test_what_changes_nothing_is_said_too(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader(rated))
        untouched = opened.grades().evaluate(["Cover@20"], min_rating=4)
        opened.grades().decisions.decide("q1", SCATTER, "p1", 4, author="ann")
        board = opened.grades().evaluate(["Cover@20", "P@20"], min_rating=4)
    assert untouched.without_decisions is None
    assert not any("decided" in note or "decision" in note for note in untouched.notes)
    assert "No mean changes without human decisions." in board.notes


def test_analyses_and_the_report_take_the_choice(path: Path) -> None:
    official = {"official": {"alpha": 1.0, "beta": 2.0}}
    with exampp.Collection(path) as opened:
        with_them = opened.panel().correlate(official, ["Cover@20"], min_rating=[4], samples=0)
        without = opened.panel(decisions="without").correlate(
            official, ["Cover@20"], min_rating=[4], samples=0
        )
        assert [one.estimate.value for one in with_them.found] == [-1.0, -1.0]
        assert [one.estimate.value for one in without.found] == [1.0, 1.0]
        (tested,) = opened.grades(decisions="without").significance(min_rating=4)
        assert [row.system for row in tested.systems] == ["alpha", "beta"]
        found = opened.grades(decisions="without").compare("alpha", "beta", min_rating=4)
        assert found.pair.difference.value == -0.75
        agreed = opened.panel().agreement(against="judgments")
        assert any(BY_PEOPLE in note for note in agreed.notes)
        # p1 is judged 3: relevant by the grader, not by ann
        labels = [opened.grades(decisions=choice).gradebook for choice in ("with", "without")]
        assert [int(book.queries[0].ratings[0].max()) for book in labels] == [1, 5]
        report = json.loads(report_json(opened.grades().report(min_rating=4)))
        plain = json.loads(report_json(opened.grades(decisions="without").report(min_rating=4)))
    assert "with and without human decisions" in json.dumps(report)
    assert "with and without human decisions" not in json.dumps(plain)
    side = next(
        block
        for section in report["sections"]
        for block in section["blocks"]
        if "without human decisions" in str(block.get("caption"))
    )
    assert [list(row.values()) for row in side["rows"]] == [
        ["beta", 0.25, 0.0, 0.25, 1, 2],
        ["alpha", 0.0, 0.75, -0.75, 2, 1],
    ]


def test_a_graded_file_knows_of_no_decisions(path: Path, tmp_path: Path) -> None:
    graded = tmp_path / "graded.jsonl.gz"
    with exampp.Collection(path) as opened:
        opened.export(graded)
    with (
        exampp.open(graded) as opened,
        pytest.raises(InputError, match="no human decisions"),
    ):
        opened.grades(decisions="without").evaluate()
    with exampp.Collection(path) as opened, pytest.raises(InputError, match="'never'"):
        opened.grades(decisions="never")  # type: ignore[arg-type]
