"""The class that an exported file names is that of the text that was sent, for every prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.prompts import load_grading_prompt, names
from exampp.prompts.catalogue import by_workbench_class

OF_ITEMS = {
    "question-self-rating": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "question-answering": "QuestionCompleteConcisePromptWithAnswerKey2",
    "answer-verification": "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2",
    "nugget-self-rating": "NuggetSelfRatedPrompt",
    "nugget-extraction": "NuggetExtractionPrompt",
    # the Workbench asks of no passage before the item
    **{name: name for name in names() if name.endswith("-passage-first")},
    **{name: name for name in names() if load_grading_prompt(name).reading == "support"},
}
OF_PASSAGES = {
    "faggioli-b": "FagB",
    "faggioli-b-few-workbench": "FagB_few",
    "helm-workbench": "HELM",
    "sun-workbench": "Sun",
    "sun-few-workbench": "Sun_few",
    "thomas-workbench": "Thomas",
    # the wordings of the paper are none of the program's
    **{name: name for name in ("faggioli-b-few", "helm", "sun", "sun-few", "thomas")},
    "umbrela": "umbrela",
}
BANK = (
    "query_id\tquestion\tnugget\tanswer\n"
    "q1\tWhat does air scatter?\t\tblue\n"
    "q1\t\tair scatters blue\t\n"
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The classes that the file names, by the prompt that each grader was given."""
    folder = tmp_path_factory.mktemp("classes")
    (folder / "bank.tsv").write_text(BANK)
    found: dict[str, set[str]] = {}
    with exams.make(folder) as collection:
        collection.import_files(folder / "bank.tsv", bank="keyed")
        for name in (*OF_ITEMS, *OF_PASSAGES):
            grade(collection, name)
        collection.export(folder / "out.jsonl", bank="keyed")
    for line in (folder / "out.jsonl").read_text("utf-8").splitlines():
        for passage in json.loads(line)[1]:
            for entry in (*(passage["exam_grades"] or ()), *(passage["grades"] or ())):
                found.setdefault(entry["llm"], set()).add(entry["prompt_info"]["prompt_class"])
    return found


def grade(collection: exampp.Collection, name: str) -> None:
    options: dict[str, Any] = {
        "model": name,
        "prompt": name,
        "kind": load_grading_prompt(name).grades[0],
    }
    if name == "answer-verification":
        options |= {"kind": "question", "answers_of": "question-answering"}
    if options["kind"] != "query":
        options["bank"] = "keyed"
    said = "support" if load_grading_prompt(name).reading == "support" else "3, yes"
    grader = ScriptedGrader(lambda _: "blue" if name == "question-answering" else said)
    collection.grade(grader, **options)


def test_every_prompt_is_looked_at() -> None:
    assert {*OF_ITEMS, *OF_PASSAGES} == {*names()} - {"draft"}


@pytest.mark.parametrize(("name", "named"), [*OF_ITEMS.items(), *OF_PASSAGES.items()])
def test_the_class_is_that_of_the_text_sent(
    name: str, named: str, exported: dict[str, set[str]]
) -> None:
    assert exported[name] == {named}
    assert (by_workbench_class(named) or named) == name
