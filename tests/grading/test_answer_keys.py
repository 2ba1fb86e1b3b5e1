"""A change of an answer key makes exactly the verified grades due; nobody pays twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import estimate
from exampp.records.gradebook import MISSING
from exampp.results.result import Table

KEYED = (
    "query_id\tquestion\tanswer\n"
    "q1\tWhat does air scatter?\tblue light\n"
    "q1\tWhy are sunsets red?\tlong way\n"
)
SCATTER, SUNSET = "What does air scatter?", "Why are sunsets red?"
PASSAGES = 3
"""Of the query, in the pool."""
UNKNOWN = [MISSING] * PASSAGES


def extracted(ask: exampp.Request) -> str:
    return "the blue part of it" if "scatters" in ask.passage else "unanswerable"


def judged(ask: exampp.Request) -> str:
    return (
        "yes" if 'answer is "the blue part of it"' in ask.user and "blue" in ask.passage else "no"
    )


@pytest.fixture
def collection(tmp_path: Path) -> exampp.Collection:
    """Two keyed questions, extracted, verified by a model, and rated by another."""
    made = exams.make(tmp_path)
    (tmp_path / "keyed.tsv").write_text(KEYED)
    made.import_files(tmp_path / "keyed.tsv", bank="keyed")
    made.grade(ScriptedGrader(extracted), prompt="question-answering", bank="keyed", model="m")
    made.grade(
        ScriptedGrader(judged),
        prompt="answer-verification",
        answers_of="m",
        bank="keyed",
        model="judge",
    )
    made.grade(ScriptedGrader("5"), bank="keyed", model="rater")
    return made


def rows_of(table: Table) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def item(collection: exampp.Collection, text: str) -> str:
    rows = rows_of(collection.bank("keyed").show())
    return str(next(row["item"] for row in rows if row["text"] == text))


def column(collection: exampp.Collection, grader: str, text: str) -> list[int]:
    """Return the ratings of the passages p1, p2, p4 for a question (MISSING: no reply)."""
    query = collection.grades(grader, bank="keyed").gradebook.queries[0]
    place = query.item_ids.index(item(collection, text))
    return [int(one) for one in query.ratings[: query.pool_size, place]]


def due(collection: exampp.Collection) -> dict[str, int]:
    return {
        str(row["grader"]): int(row["pending"])
        for row in rows_of(collection.status())
        if row["bank"] == "keyed"
    }


def verify(collection: exampp.Collection) -> ScriptedGrader:
    judge = ScriptedGrader(judged)
    collection.grade(
        judge, prompt="answer-verification", answers_of="m", bank="keyed", model="judge"
    )
    return judge


def test_a_change_of_a_key_verifies_again_and_asks_only_for_verdicts(
    collection: exampp.Collection,
) -> None:
    names = list(due(collection))
    assert list(due(collection).values()) == [0, 0, 0]
    assert column(collection, "m", SCATTER) == [0, 0, 0]
    collection.bank("keyed").edit("key", item(collection, SCATTER), "white light")
    # by words at once, without a model; the verdicts of the model about the other key are gone
    assert column(collection, "m", SCATTER) == [0, 0, 0]
    collection.bank("keyed").edit("key", item(collection, SCATTER), "the blue part of it")
    assert column(collection, "m", SCATTER) == [1, 0, 0]
    assert column(collection, "judge", SCATTER) == UNKNOWN
    assert column(collection, "judge", SUNSET) == [0, 0, 0]
    assert column(collection, "rater", SCATTER) == [5, 5, 5]
    assert due(collection) == dict(zip(names, [0, PASSAGES, 0], strict=True))
    run = collection.grading(
        ScriptedGrader(judged),
        prompt="answer-verification",
        answers_of="m",
        bank="keyed",
        model="judge",
    )
    # two passages have the same answer, that there is none: nobody is asked about that
    found = estimate(run)
    assert (found.cells, found.requests) == (PASSAGES, 1)
    judge = verify(collection)
    assert len(judge.calls) == 1
    assert column(collection, "judge", SCATTER) == [1, 0, 0]


def test_an_undone_edit_of_a_key_finds_its_grades_again(collection: exampp.Collection) -> None:
    before = {name: column(collection, name, SCATTER) for name in ("m", "judge", "rater")}
    collection.bank("keyed").edit("key", item(collection, SCATTER), "the blue part of it")
    verify(collection)
    number = rows_of(collection.bank("keyed").log())[-1]["edit"]
    collection.bank("keyed").undo(int(number))
    assert {name: column(collection, name, SCATTER) for name in before} == before
    assert sum(due(collection).values()) == 0
    assert verify(collection).calls == []


def test_items_without_a_key_are_named_and_never_counted(collection: exampp.Collection) -> None:
    collection.bank("keyed").edit("key", item(collection, SCATTER))
    name = item(collection, SCATTER)
    assert column(collection, "m", SCATTER) == UNKNOWN
    assert column(collection, "judge", SCATTER) == UNKNOWN
    assert sum(due(collection).values()) == 0
    assert verify(collection).calls == []
    run = collection.grading(
        ScriptedGrader(judged), prompt="answer-verification", answers_of="m", bank="keyed"
    )
    assert "1 item has no answer key, so answers to it cannot be verified" in run.notes[0]
    notes = [note for note in collection.status().notes if "no answer key" in note]
    assert len(notes) == 2
    assert all(name in note for note in notes)
    board = collection.grades("m", bank="keyed").evaluate(["Cover@20"], min_rating=1)
    assert any("1 item has no answer key" in note for note in board.notes)
    rated = collection.grades("rater", bank="keyed").evaluate(["Cover@20"], min_rating=4)
    assert not any("answer key" in note for note in rated.notes)


def test_where_no_item_has_a_key_an_answer_counts(collection: exampp.Collection) -> None:
    asked = len(collection.grades("m", bank="keyed").gradebook.queries)
    assert asked
    for text in (SCATTER, SUNSET):
        collection.bank("keyed").edit("key", item(collection, text))
    # the replies that are known say whether there is an answer
    assert column(collection, "m", SCATTER) == [1, 0, 0]
    assert column(collection, "m", SUNSET) == [1, 0, 0]
    assert sum(due(collection).values()) == 0


@pytest.mark.parametrize("way", ["apply", "revert", "import"])
def test_every_way_of_editing_keys_verifies_again(
    collection: exampp.Collection, tmp_path: Path, way: str
) -> None:
    last = collection.bank("keyed").version().number
    if way == "apply":
        file = tmp_path / "bank.csv"
        collection.bank("keyed").export(file)
        file.write_text(file.read_text().replace("blue light", "the blue part of it"))
        collection.bank("keyed").apply(file)
    elif way == "revert":
        collection.bank("keyed").edit("key", item(collection, SCATTER), "the blue part of it")
        changed = collection.bank("keyed").version().number
        collection.bank("keyed").revert(last)
        assert column(collection, "m", SCATTER) == [0, 0, 0]
        collection.bank("keyed").revert(changed)
    else:
        (tmp_path / "keyed.tsv").write_text(KEYED.replace("blue light", "the blue part of it"))
        collection.import_files(tmp_path / "keyed.tsv", bank="keyed")
    assert column(collection, "m", SCATTER) == [1, 0, 0]


OWN = """
name = "mine"
title = "Mine"
grades = "question"
reading = "extraction"
verdict = true
slots = ["question", "context"]
cut = "context"
field = "found"
user = "Answer {question} from {context} as JSON."
"""


def test_a_prompt_of_ones_own_is_verified_again_by_its_own_rules(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    reply = '{"found": "the blue part of it", "why": "it says so"}'
    collection.grade(
        ScriptedGrader(reply), prompt=str(tmp_path / "mine.toml"), bank="keyed", model="own"
    )
    assert column(collection, "own", SCATTER) == [0, 0, 0]
    (tmp_path / "mine.toml").unlink()
    collection.bank("keyed").edit("key", item(collection, SCATTER), "the blue part of it")
    assert column(collection, "own", SCATTER) == [1, 1, 1]


def test_other_rules_of_the_same_prompt_read_its_replies_again(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        OWN.replace("{context} as JSON", "{context}, correct: {correct_answer}").replace(
            '"context"]', '"context", "correct_answer"]'
        )
    )
    first = ScriptedGrader("yes")
    collection.grade(first, prompt=str(file), bank="keyed", model="own", matching="papers")
    assert column(collection, "own", SCATTER) == [0, 0, 0]
    file.write_text(file.read_text().replace('"extraction"', '"yes-no"'))
    second = ScriptedGrader("yes")
    collection.grade(second, prompt=str(file), bank="keyed", model="own")
    assert second.calls == []
    assert column(collection, "own", SCATTER) == [1, 1, 1]


KEY2 = "QuestionCompleteConcisePromptWithAnswerKey2"
"""The Workbench's name for question answering with known answers."""


def test_verified_answers_are_exported_as_the_class_of_them_and_read_back_as_such(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    collection.grade(
        ScriptedGrader("error: 500"), prompt="question-answering", bank="keyed", model="broken"
    )
    collection.export(out)
    entries = [
        entry
        for line in out.read_text().splitlines()
        for passage in json.loads(line)[1]
        for entry in passage.get("exam_grades") or ()
    ]
    said = {entry["llm"]: entry["prompt_info"] for entry in entries}
    assert said["m"]["prompt_class"] == said["broken"]["prompt_class"] == KEY2
    assert (said["m"]["check_answer_key"], said["m"]["check_unanswerable"]) == (True, False)
    assert said["judge"]["prompt_class"] == KEY2.replace("With", "WithT5Verified")
    assert said["judge"]["check_answer_key"] is True
    # as the Workbench's program says it of answers that it verified later
    assert said["judge"]["orig_prompt_class"] == KEY2
    assert said["judge"]["prompt_style"] == said["m"]["prompt_style"]
    assert "orig_prompt_class" not in said["m"]
    assert said["rater"]["prompt_class"] == "QuestionSelfRatedUnanswerablePromptWithChoices"
    again = exampp.open(out)
    assert {one.key for one in again.graders} >= {one.key for one in collection.graders}
    with exampp.create(tmp_path / "back.exam") as back:
        back.import_files(out)
        back.export(tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == out.read_bytes()
    # and as another program writes it, without what exampp says of its own graders
    bare = tmp_path / "bare.jsonl"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        for passage in line[1]:
            for entry in passage.get("exam_grades") or ():
                entry["llm_options"] = {}
    bare.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = (one for one in exampp.open(bare).graders if one.model == "m")
    assert (found.prompt, found.highest) == ("question-answering", 1)
    assert found.settings["prompt_info"]["check_answer_key"] is True


def test_answers_without_keys_are_exported_as_the_class_that_has_none(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader(extracted), prompt="question-answering", model="m")
        collection.export(tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text()
    assert '"QuestionCompleteConciseUnanswerablePromptWithChoices"' in text
    assert KEY2 not in text


def test_an_answer_that_says_there_is_none_needs_no_model(tmp_path: Path) -> None:
    said = ["unanswerable", "There is no answer.", "N/A", "the blue part of it"]
    with exams.make(tmp_path) as collection:
        (tmp_path / "keyed.tsv").write_text(KEYED)
        collection.import_files(tmp_path / "keyed.tsv", bank="keyed")
        _, *rest = sorted({row["item"] for row in rows_of(collection.bank("keyed").show())})
        for one in rest:
            collection.bank("keyed").edit("retire", str(one))
        extractor = ScriptedGrader(said, record=False)
        collection.grade(extractor, prompt="question-answering", bank="keyed", model="m")
        judge = verify(collection)
        assert all("blue" in ask.user for ask in judge.calls)
        assert len(judge.calls) <= 1
        readings = rows_of(collection.status_tables()["readings"])
        (told,) = [row for row in readings if row["rule"] == "no answer"]
        assert told["cells"] == PASSAGES - len(judge.calls)
        ratings = collection.grades("judge", bank="keyed").gradebook.queries[0].ratings
        assert {int(one) for one in ratings.ravel()} == {0}
        assert verify(collection).calls == []
