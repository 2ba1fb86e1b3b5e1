"""Counts of grades by the rule of reading: in the status, under leaderboards, in the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import estimate
from exampp.records import GraderIdentity, State
from exampp.records.readings import (
    WITHOUT_EXAMPLE,
    RuleCount,
    describe_readings,
    reading_warnings,
    without_grade,
)

SCRIPT: dict[str, str | Reply] = {
    "What does air scatter?": "It scatters\nblue \x1b[mlight",
    "Why are sunsets red?": "7",
    "What makes a magnet?": "4",
}
"""Three cells each of the first two, which are text and off the scale; two of the last."""
GRADES = (
    "Of 5 grades 2 are ratings stated in the reply, 3 are 1 because the reply is text without a "
    r"number (such as 'It scatters blue \x1b[mlight')."
)
UNPARSED = (
    "Cells without a grade in the whole collection: 3 unparsed (3 off the scale, such as '7')."
)


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader(SCRIPT), model="m")
    return tmp_path / "my.exam"


def test_a_leaderboard_says_which_rules_made_its_grades(
    exam: Path, exampp_command: Commands
) -> None:
    with exampp.Collection(exam) as collection:
        notes = collection.grades().evaluate(["Cover@20"]).notes
    assert {GRADES, UNPARSED} <= set(notes)
    assert GRADES in exampp_command("evaluate", exam, "--notes").out
    written = json.loads(exampp_command("evaluate", exam, "--format", "json").out)
    assert {GRADES, UNPARSED} <= set(written["notes"])


def test_status_says_it_per_grader_and_rule(exam: Path, exampp_command: Commands) -> None:
    written = json.loads(exampp_command("status", exam, "--format", "json").out)
    rows = written["readings"]["rows"]
    found = {(r["state"], r["rule"], r["rating"], r["cells"], r["example"]) for r in rows}
    assert found == {
        ("graded", "answered", 1, 3, r"It scatters blue \x1b[mlight"),
        ("graded", "rated", 4, 2, None),
        ("unparsed", "off-scale", None, 3, "7"),
    }
    assert {row["grader"][:24] for row in rows} == {"m:question-self-rating ("}
    assert "the reply is text without a number" in exampp_command("status", exam).out


def test_texts_that_changed_since_do_not_count(exam: Path) -> None:
    with exampp.Collection(exam) as collection:
        item = collection.grades().gradebook.queries[1].item_ids[0]
        collection.bank().edit("reword", item, "What is a magnet made of?", query_id="q2")
        (note,) = [
            n
            for n in collection.grades().evaluate(["Cover@20"]).notes
            if n.startswith("All 3 grades")
        ]
    assert note.startswith("All 3 grades are 1 because the reply is text without a number (such")


def of_others(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object as written by a program without exampp's key that takes every 4 for a 2."""
    whole = {name: value for name, value in pairs if name != "exampp"}
    return whole | ({"self_rating": 2} if whole.get("self_rating") == 4 else {})


def test_a_file_of_others_is_told_by_the_replies_in_it(tmp_path: Path, exam: Path) -> None:
    out = tmp_path / "graded.jsonl"
    with exampp.Collection(exam) as collection:
        collection.export(out)
    lines = [json.loads(line, object_pairs_hook=of_others) for line in out.read_text().splitlines()]
    out.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    expected = (
        "Of 5 grades 3 are 1 because the reply is text without a number (such as "
        r"'It scatters blue \x1b[mlight'), 2 are 2 in the file, but exampp reads the reply "
        "differently (such as '4')."
    )
    with exampp.open(out) as graded:
        assert expected in graded.grades().evaluate(["Cover@20"]).notes
    with exampp.Collection.create(tmp_path / "other.exam") as other:
        other.import_files(out)
        assert expected in other.grades().evaluate(["Cover@20"]).notes


def test_draft_grades_follow_from_no_reply(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        assert not [
            n for n in collection.grades().evaluate(["Cover@20"]).notes if "grades are" in n[4:]
        ]


GRADER = GraderIdentity("m", "question-self-rating", "question")
VERDICT = GraderIdentity("m", "question-answering", "question", 0, 1)


def counts(*rules: tuple[str, int | None, int]) -> list[RuleCount]:
    return [
        RuleCount(State.GRADED, rule, rating, n, None if rule in WITHOUT_EXAMPLE else "x")
        for rule, rating, n in rules
    ]


@pytest.mark.parametrize(
    ("readings", "grader", "said"),
    [
        (counts(("voted", 4, 1000)), GRADER, "All 1,000 grades are combined from other grades."),
        (counts(("voted", 4, 1)), GRADER, "The only grade is combined from other grades."),
        (
            counts(("rated", 4, 92128), ("rated", 5, 2), ("unanswerable", 0, 60)),
            GRADER,
            "Of 92,190 grades 92,130 are ratings stated in the reply, 60 are 0 because the reply "
            "says that there is no answer (such as 'x').",
        ),
        (
            counts(("answered", 1, 1), ("new rule", 0, 2)),
            VERDICT,
            "Of 3 grades 2 are 0 because of the rule 'new rule' (such as 'x'), 1 is 1 because the "
            "reply is an answer (such as 'x').",
        ),
    ],
)
def test_sentences(readings: Sequence[RuleCount], grader: GraderIdentity, said: str) -> None:
    assert list(describe_readings(readings, grader)) == [said]


@pytest.mark.parametrize(
    ("matching", "unmatched", "warns"),
    [(0, 20, True), (0, 19, False), (1, 20, True), (1, 19, False), (2, 38, False), (2, 39, True)],
)
def test_keys_that_no_answer_matches_are_told(matching: int, unmatched: int, warns: bool) -> None:
    """Less than 5 % of at least 20 extracted answers."""
    readings = counts(("exact", 1, matching), ("unmatched", 0, unmatched), ("unanswerable", 0, 9))
    notes = list(reading_warnings(readings, VERDICT))
    assert len(notes) == warns
    if warns:
        command = f"--prompt answer-verification --answers-of {VERDICT.key[:8]}"
        assert command in notes[0]


def test_status_and_leaderboard_name_the_command_that_verifies(
    tmp_path: Path, exampp_command: Commands
) -> None:
    texts = {
        "passages.jsonl": "".join(f'{{"id": "p{n}", "text": "Air {n}."}}\n' for n in range(25)),
        "a.run": "".join(f"q1 Q0 p{n} {n + 1} {99 - n} alpha\n" for n in range(25)),
        "bank.tsv": "query_id\tquestion\tanswer\nq1\tWhat is air?\tnitrogen mostly\n",
        "queries.tsv": "q1\tair\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with exampp.create(tmp_path / "keyed.exam") as collection:
        collection.import_files(*(tmp_path / name for name in texts))
        extracting = ScriptedGrader("N2 and some O2")
        collection.grade(extracting, prompt="question-answering", model="m", depth=25)
        (grader,) = collection.graders
        command = f"--prompt answer-verification --answers-of {grader.key[:8]}"
        notes = collection.grades().evaluate(["Cover@20"]).notes
        (note,) = [one for one in notes if "verification" in one]
        assert note.startswith("Of 25 extracted answers none matches the answer key")
        assert command in note
        # the key in the command finds the grader
        run = collection.grading(
            ScriptedGrader("yes"), prompt="answer-verification", answers_of=grader.key[:8]
        )
        found = estimate(run)
        assert (found.cells, found.requests) == (25, 1)
    assert command in exampp_command("status", tmp_path / "keyed.exam").out
    assert command in exampp_command("evaluate", tmp_path / "keyed.exam", "--notes").out


def test_states_without_a_grade() -> None:
    readings = [
        RuleCount(State.UNPARSED, "several", None, 3, "3 or 4"),
        RuleCount(State.UNPARSED, "my rule", None, 5),
        RuleCount(State.REFUSED, "refused", None, 2, "No."),
    ]
    said = without_grade({"unparsed": 8, "refused": 2}, readings)
    assert said == "8 unparsed (5 my rule; 3 several ratings, such as '3 or 4'), 2 refused"
    short = without_grade({"unparsed": 8, "refused": 2}, readings, most=1)
    rest = "3 for other reasons (see the report)"
    assert short == f"8 unparsed (5 my rule; {rest}), 2 refused"


def test_the_report_says_it_with_a_table(exam: Path, exampp_command: Commands) -> None:
    written = exam.with_name("report.json")
    page = exam.with_name("report.html")
    assert exampp_command("report", exam, "-o", page, "--json", written).code == 0
    text = written.read_text()
    assert json.dumps(GRADES, ensure_ascii=False)[1:-1] in text
    assert "the reply is text without a number" in text
    assert "3 unparsed (3 off the scale, such as '7')" in text
    assert "the reply is text without a number" in page.read_text()


def test_the_share_of_replies_with_little_mass_is_told(tmp_path: Path) -> None:
    def unsure(ask: Request) -> Reply:
        outside = 0.75 if "air" in ask.item else 0.25
        return Reply("4", {"0": 0.1, "4": 0.9}, detail={"outside": outside})

    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader(unsure, name="hf"), model="m")
        # "What does air scatter?" on three passages of q1, of eight cells
        said = "In 3 of 8 cells (37.5%) the model most likely replies something other"
        (note,) = [
            n for n in collection.grades().evaluate(["Cover@20"]).notes if n.startswith("In ")
        ]
        assert note.startswith(said)
        assert "--decode generate" in note
        (named,) = [n for n in collection.status().notes if "likely" in n]
        assert named.startswith("m:question-self-rating (question, ")
        assert said in named
        assert collection.status().rows[0][2] == 3


def test_plain_ratings_need_no_sentence() -> None:
    assert not list(describe_readings(counts(("rated", 4, 1000), ("json", 3, 2)), GRADER))


def test_it_is_told_where_nothing_has_a_grade() -> None:
    readings = (RuleCount(State.UNPARSED, "little mass", None, 7, "4"),)
    (said,) = reading_warnings(readings, VERDICT)
    assert said.startswith("In 7 of 7 cells (100.0%)")


@pytest.mark.parametrize(
    ("model", "settings", "options"),
    [
        ("gpt x", {"name": "openai"}, "--grader openai --model 'gpt x' "),
        ("google/t5", {"name": "hf", "revision": "1"}, "--grader hf --model google/t5 "),
        ("t5", {"name": "hf", "content": "c0"}, "--grader hf --model FOLDER "),
        ("roberta", {"name": "hf", "decode": "span"}, "--grader GRADER --model MODEL "),
        ("Rubric", {"llm_options": {}}, "--grader GRADER --model MODEL "),
    ],
)
def test_the_grader_that_extracted_is_named_where_it_can_verify(
    model: str, settings: Mapping[str, object], options: str
) -> None:
    grader = GraderIdentity(model, "question-answering", "question", 0, 1, settings)
    (said,) = reading_warnings(counts(("unmatched", 0, 20)), grader)
    assert f"exampp grade COLLECTION {options}--prompt answer-verification" in said
