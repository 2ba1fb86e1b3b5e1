"""Extracted answers on which the rules for answer keys, or a verifier, differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams, live
from support.commands import Commands

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.review.answers import AnswerDifference

KEYED = (
    "query_id\tquestion\tanswer\n"
    "q1\tWhat does air scatter?\tblue light\n"
    "q1\tWhy are sunsets red?\tlong way\n"
)


def extracted(ask: exampp.Request) -> str:
    if ask.item.startswith("Why"):
        return "a short way"
    return "Air scatters the blue light." if "scatters" in ask.passage else "blue lights"


@pytest.fixture
def collection(tmp_path: Path) -> exampp.Collection:
    """Two keyed questions: the rules differ on one answer to the first."""
    made = exams.make(tmp_path)
    (tmp_path / "keyed.tsv").write_text(KEYED)
    made.import_files(tmp_path / "keyed.tsv", bank="keyed")
    made.grade(ScriptedGrader(extracted), prompt="question-answering", bank="keyed", model="m")
    return made


def verify(collection: exampp.Collection) -> None:
    judge = ScriptedGrader(lambda ask: "yes" if "short" in ask.user else "no")
    collection.grade(
        judge, prompt="answer-verification", bank="keyed", model="judge", answers_of="m"
    )


def test_counts_and_differences_of_both_rules(collection: exampp.Collection) -> None:
    found = collection.grades("m", bank="keyed").answer_differences()
    # three passages by two items; only the sentence is matched by one rule alone
    assert (found.answers, found.papers, found.guarded, found.differ) == (6, 2, 3, 1)
    (one,) = found.rows
    assert (one.answer, one.keys) == ("Air scatters the blue light.", ("blue light",))
    assert (one.papers, one.guarded, one.verifier) == (False, True, None)
    assert one.passages == ("p1",)
    assert found.headline == (
        "Of 6 answers the papers' rule accepts 2 and the guarded rule 3; they differ on 1."
    )
    assert "verifier" not in [column.name for column in found.tables()["answers"].columns]


def test_a_verifier_that_differs_adds_rows(collection: exampp.Collection) -> None:
    verify(collection)
    found = collection.grades("m", bank="keyed").answer_differences()
    assert (found.verified, found.accepted, found.contradicted) == (6, 3, 6)
    assert {(one.answer, one.guarded, one.verifier) for one in found.rows} == {
        ("Air scatters the blue light.", True, False),
        ("blue lights", True, False),
        ("a short way", False, True),
    }
    # passages that more systems return come first, then more cells
    returned = [one.returned for one in found.rows]
    assert returned == sorted(returned, reverse=True)
    assert "judge:answer-verification accepts 3 of 6" in found.headline


def test_decided_cells_are_counted_and_come_last(collection: exampp.Collection) -> None:
    verify(collection)

    def row() -> AnswerDifference:
        rows = collection.grades("m", bank="keyed").answer_differences().rows
        return next(one for one in rows if one.answer == "blue lights")

    before = row()
    first, second = before.passages
    decisions = collection.grades("m", bank="keyed").decisions
    decisions.decide(before.query_id, before.item_id, first, 1, author="ann")
    after = row()
    assert (before.decided, after.decided) == (0, 1)
    assert after.passages == (second, first)


def test_without_extracted_answers_the_error_names_the_prompt(tmp_path: Path) -> None:
    grades = exampp.Collection(live.graded(tmp_path)).grades()
    with pytest.raises(exampp.InputError, match="no extracted answers"):
        grades.answer_differences()


def test_the_same_list_in_the_terminal_and_on_the_page(
    collection: exampp.Collection, exampp_command: Commands
) -> None:
    path = collection.path
    ran = exampp_command.line(f"exampp review {path} answers --bank keyed --grader m")
    assert ran.code == 0
    assert "papers' rule accepts 2 and the guarded rule 3" in ran.out
    ran = exampp_command.line(f"exampp review {path} answers --bank keyed --grader m --format json")
    (row,) = json.loads(ran.out)["answers"]["rows"]
    assert row["answer"] == "Air scatters the blue light."
    with live.visiting(path, grader="m", bank="keyed") as client:
        page = client.get("/lists/answers")
    assert "they differ on 1." in page.text
    assert "Air scatters the blue light." in page.text
