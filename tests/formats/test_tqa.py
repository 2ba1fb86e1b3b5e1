"""TQA lessons as a bank: ids of TREC CAR, keys spelled out, choices out of the question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.formats.bank import read_tqa
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.records import BankEntry, Item


def question(text: str, choices: dict[str, str], correct: str, **more: Any) -> dict[str, Any]:
    return {
        "beingAsked": {"processedText": text, "rawText": f"1. {text}"},
        "answerChoices": {letter: {"processedText": c} for letter, c in choices.items()},
        "correctAnswer": {"processedText": correct},
        **more,
    }


def lesson(questions: dict[str, Any], name: str = "L_0002") -> dict[str, Any]:
    return {
        "globalID": name,
        "lessonName": "earth science and its branches",
        "questions": {"nonDiagramQuestions": questions, "diagramQuestions": {}},
    }


ROCKS = {"a": "rocks", "b": "oceans", "c": "both", "d": "all of the above"}
GOOD = {
    "NDQ_000001": question("Geologists study", ROCKS, "a", questionType="Multiple Choice"),
    "NDQ_000002": question("Science asks about", ROCKS, "d"),
    "NDQ_000003": question("Rocks float.", {"a": "true", "b": "false"}, "b"),
    "NDQ_000004": question("Oceans are", {"a": "wet", "b": "none of the above"}, "b"),
    "NDQ_000005": question("Capital letter", {"a": "x", "b": "y"}, "B."),
    "NDQ_000006": question("Key by its text", {"a": "true", "b": "false"}, "False"),
}


def write(folder: Path, *lessons: Any) -> Path:
    return file(folder, json.dumps(list(lessons)), "tqa_v1_train.json")


def test_a_lesson_is_a_query_with_keys_in_words(tmp_path: Path) -> None:
    path = write(tmp_path, lesson(GOOD))
    assert detect(path) == "tqa"
    (entry,) = read_tqa(path)
    assert (entry.query_id, entry.query_text) == ("tqa2:L_0002", "earth science and its branches")
    assert entry.items[0] == Item(
        "NDQ_000001",
        "tqa2:L_0002",
        "Geologists study",
        answers=("rocks",),
        extra={"choices": ROCKS, "correct": "a", "question_type": "Multiple Choice"},
    )
    assert {item.item_id[-1]: item.answers for item in entry.items} == {
        "1": ("rocks",),
        "2": ("all of rocks and oceans and both",),
        "3": ("false",),
        "4": ("neither wet",),
        "5": ("y",),
        "6": ("false",),
    }
    for item in entry.items:
        assert not any(choice in item.text for choice in item.extra["choices"].values())


BAD = {
    "NDQ_1": (question("x", ROCKS, "e"), "the key 'e' is not among the choices a, b, c, d"),
    "NDQ_2": (question("x", {}, "a"), "the key 'a' is not among the choices "),
    "NDQ_3": (question(" ", ROCKS, "a"), "the text is blank"),
    "NDQ_4": ({"answerChoices": {}}, "no `beingAsked`"),
    "NDQ_5": ({**question("x", ROCKS, "a"), "correctAnswer": "a"}, "must be an object"),
    "NDQ_6": (["x"], "must be an object"),
    "NDQ_7": (question("x", ROCKS, ""), "the text is blank"),
    "NDQ_8": ({**question("x", ROCKS, "a"), "answerChoices": {"a": {}}}, "no `processedText`"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_question_is_named_and_can_be_skipped(tmp_path: Path, name: str) -> None:
    value, what = BAD[name]
    path = write(tmp_path, lesson({name: value, "NDQ_9": GOOD["NDQ_000001"]}))
    error = fault(read_tqa, path)
    assert error.what == f"lesson L_0002, question {name}: {what}"
    skipped = Skipped()
    (entry,) = read_tqa(path, skipped)
    assert [item.item_id for item in entry.items] == ["NDQ_9"]
    assert [str(one) for one in skipped.first] == [str(error)]


@pytest.mark.parametrize(
    ("lessons", "field", "what"),
    [
        ([lesson(GOOD), lesson(GOOD)], "[1].globalID", "lesson 'L_0002' occurs twice"),
        ([{"lessonName": "x"}], "[0].globalID", "no `globalID`"),
        ([{"globalID": "L"}], "[0].questions", "no `questions`"),
        (["x"], "[0]", "must be an object"),
        ([lesson([])], "[0].questions.nonDiagramQuestions", "must be an object"),  # type: ignore[arg-type]
    ],
)
def test_bad_lessons(tmp_path: Path, lessons: list[Any], field: str, what: str) -> None:
    error = fault(read_tqa, write(tmp_path, *lessons))
    assert (error.field, error.what) == (field, what)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{}", "must be a list of lessons"),
        ("[{", "broken JSON (Expecting property name enclosed in double quotes)"),
        ("[NaN]", "broken JSON (NaN is no number of JSON)"),
        ("[" * 100_000, "broken JSON"),
        ("", "the file is empty"),
    ],
)
def test_files_that_are_refused_whole(tmp_path: Path, content: str, what: str) -> None:
    assert fault(read_tqa, file(tmp_path, content), on_error=Skipped()).what.startswith(what)


def test_a_pretty_printed_file_is_known_for_what_it_is(tmp_path: Path) -> None:
    value = [{"adjunctTopics": {}, **lesson(GOOD)}]
    path = file(tmp_path, json.dumps(value, indent=2), "x.json")
    assert detect(path) == "tqa"
    assert isinstance(next(read_tqa(path)), BankEntry)
