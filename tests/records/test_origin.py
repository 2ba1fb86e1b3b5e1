"""Which models a bank says it was made by, and whether one of them grades it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import exams
import pytest

import exampp
from exampp.llm.base import Ask
from exampp.llm.scripted import ScriptedGrader
from exampp.records.origin import models_in, own_bank, same_model
from exampp.report.page import to_json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gpt-4o", "openai/gpt-4o", True),
        ("gpt-4o", "GPT-4o-2024-08-06", True),
        ("google/flan-t5-large", "/models/flan-t5-large/", True),
        ("llama3:latest", "llama3", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4o", False),
        ("", "", False),
    ],
)
def test_names_of_one_model(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same
    assert same_model(other, one) is same


@pytest.mark.parametrize(
    ("extra", "models"),
    [
        ({"generated": {"model": "m", "prompt": "p"}}, ["m"]),
        ({"info": {"llm_model": "m"}}, ["m"]),
        ({"info": {"gpt_model": "m", "prompt_target": "nuggets"}}, ["m"]),
        ({"generation-model-name": "m", "remodelled": "n"}, ["m"]),
        ({"creator": [{"is_human": False, "assessor": ["m"]}]}, ["m"]),
        ({"creator": [{"is_human": True, "assessor": ["ann"]}]}, []),
        ({"importance": "vital", "assessor": "ann"}, []),
        ({"llm": None}, []),
    ],
)
def test_what_provenance_names(extra: dict[str, Any], models: list[str]) -> None:
    assert list(models_in(extra)) == models


def test_the_warning_counts() -> None:
    assert own_bank("m", {"org/m": 2}, 2).startswith("The bank was made by the model that grades")
    assert own_bank("m", {"m": 1, "n": 1}, 4).startswith("1 of the 4 items of the bank were made")
    assert own_bank("n", {"m": 2}, 2) == ""


def rate(_: Ask) -> str:
    return "4"


def warnings(collection: exampp.Collection, bank: str = "main") -> list[list[str]]:
    """What is told by evaluate, the report and status of a model that made the bank."""
    board = collection.grades(bank=bank).evaluate(["Cover@20"], min_rating=4).notes
    report = to_json(collection.grades(bank=bank).report())
    told = [*board], [report], [*collection.status().notes]
    return [[one for one in some if "made by the model that grades" in one] for some in told]


@pytest.mark.parametrize("made", ["generated", "imported", "edited", "merged"])
def test_who_grades_its_own_bank_is_told(made: str, tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        said = json.dumps(["What is air?", "Why does it snow?"])
        writer = ScriptedGrader(said, record=False)
        collection.bank("own").generate(writer, prompt="dl-questions", model="org/judge")
        bank = "own"
        if made == "imported":
            collection.bank("own").export(tmp_path / "own.jsonl")
            collection.import_files(tmp_path / "own.jsonl", bank="again")
            bank = "again"
        if made == "merged":
            collection.bank("own").export(tmp_path / "own.jsonl")
            with exams.make(tmp_path, "other.exam") as other:
                other.import_files(tmp_path / "own.jsonl", bank="others")
            collection.merge(tmp_path / "other.exam")
            bank = "others"
        if made == "edited":
            for row in collection.bank("own").show().rows:
                collection.bank("own").edit(
                    "reword", str(row[2]), f"{row[4]} Why?", query_id=str(row[0])
                )
        judge = ScriptedGrader(rate, record=False)
        collection.grade(judge, prompt="question-self-rating", model="judge", bank=bank)
        assert all(warnings(collection, bank))


def test_the_generator_that_a_bank_of_the_workbench_names_is_told(tmp_path: Path) -> None:
    lines = (
        {
            "query_id": query,
            "info": {"gpt_model": "gpt-3.5-turbo", "prompt_target": "questions"},
            "items": [{"query_id": query, "question_id": f"{query}/1", "question_text": "Why?"}],
        }
        for query in exams.QUERIES
    )
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with exams.make(tmp_path) as collection:
        collection.import_files(tmp_path / "own.jsonl", bank="own")
        judge = ScriptedGrader(rate, record=False)
        model = "openai/gpt-3.5-turbo-0613"
        collection.grade(judge, prompt="question-self-rating", model=model, bank="own")
        assert all(warnings(collection, "own"))
        collection.bank("own").add("q1", "Who asks?")
        assert "2 of the 3 items" in warnings(collection, "own")[0][0]


def test_a_bank_of_people_is_no_cause_to_warn(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        query = str(collection.bank().show().rows[0][0])
        collection.bank().add(query, "What is air?", author="judge", reason="judge")
        judge = ScriptedGrader(rate, record=False)
        collection.grade(judge, prompt="question-self-rating", model="judge")
        assert not any(warnings(collection))
