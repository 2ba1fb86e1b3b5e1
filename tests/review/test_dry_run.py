"""What an edit would do is what it does; trying it out leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.bank import Bank
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.results.result import Table

SCATTER = item_id("q1", exams.QUESTIONS["q1"][0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The small exam, p1 and p3 rated 5, all else 0; answers extracted, one key matching."""
    with exams.make(tmp_path) as collection:
        collection.bank().edit("key", SCATTER, "blue light")
        for item in (
            item_id("q1", exams.QUESTIONS["q1"][1]),
            item_id("q2", exams.QUESTIONS["q2"][0]),
        ):
            collection.bank().edit("key", item, "nothing")
        best = ("Air", "Aligned")
        collection.grade(
            ScriptedGrader(lambda ask: "5" if ask.passage.startswith(best) else "0"), model="rater"
        )
        collection.grade(
            ScriptedGrader(lambda ask: " ".join(ask.passage.split()[2:4])),
            prompt="question-answering",
            model="extractor",
        )
    return tmp_path / "my.exam"


EDITS: list[Callable[[Bank], Table]] = [
    lambda bank: bank.edit("retire", SCATTER),
    lambda bank: bank.edit("reword", SCATTER, "What does the air scatter?"),
    lambda bank: bank.edit("key", SCATTER, "green light"),
    lambda bank: bank.edit("weight", SCATTER, "3"),
    lambda bank: bank.add("q1", "What is scattered?", answers=["blue"]),
    lambda bank: bank.revert(3),
    lambda bank: bank.undo(int(str(bank.log(last=1).rows[0][0]))),
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_trial_tells_what_the_edit_does(path: Path, edit: Callable[[Bank], Table]) -> None:
    before = exams.tables(path)
    with exampp.Collection(path) as collection:
        trial = collection.bank().trial(edit)
        assert exams.tables(path) == before
        assert edit(collection.bank()) == trial.changes
        due = dict(
            zip(("rater", "extractor"), [row[2] for row in collection.status().rows], strict=True)
        )
        for one in trial.effects:
            assert one.due_after == due[one.grader.model]
            board = collection.grades(one.grader.model).evaluate(["Cover@20", "nDCG@20"])
            means = {(str(row.measure), row.system): row.mean for row in board.rows}
            told = {
                (str(shift.measure), move.system): move.after
                for shift in one.impact.shifts
                for move in shift.moves
            }
            assert told == pytest.approx(means)


def test_labels_of_a_changed_key_are_listed(path: Path) -> None:
    with exampp.Collection(path) as collection:
        trial = collection.bank().trial(lambda bank: bank.edit("key", SCATTER, "red light"))
        # only the verified grade of p1 ("blue light") changes, and the ratings do not
        labels = trial.tables()["labels"]
        assert [row[1:-1] for row in labels.rows] == [("q1", "p1", 1, 0)]
        assert str(labels.rows[0][0]).startswith("extractor")


def test_the_command_shows_it_and_changes_nothing(path: Path, exampp_command: Commands) -> None:
    before = exams.tables(path)
    ran = exampp_command("bank", "edit", path, "retire", SCATTER, "--dry-run", "--format", "json")
    found = json.loads(ran.out)
    assert list(found) == ["changes", "effects", "labels", "scores"]
    assert "(--dry-run)" in ran.err
    text = exampp_command("bank", "edit", path, "retire", SCATTER, "--dry-run").out
    assert "Passages whose label changes: " in text
    assert exams.tables(path) == before


def test_an_import_of_a_bank_is_tried_out_too(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text(
        f"query_id\tid\tquestion\tanswer\nq1\t{SCATTER}\t{exams.QUESTIONS['q1'][0]}\tred light\n"
    )
    before = exams.tables(path)
    with exampp.Collection(path) as collection:
        report = collection.import_files(tmp_path / "bank.tsv", update=True, dry_run=True)
        assert ("q1", "p1", 1, 0) in [row[1:-1] for row in report.impact["labels"].rows]
        assert json.loads(report.to_json())["impact"]["labels"]
    assert exams.tables(path) == before
