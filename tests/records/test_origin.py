"""Models that made a bank, and the warning if one of them grades it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records.items import models_in, own_bank, same_model
from exampp.results.page import report_json


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
    assert own_bank("m", {"org/m": 2}, 2).startswith("The bank was made by the grading model")
    assert own_bank("m", {"m": 1, "n": 1}, 4).startswith("1 of the 4 items of the bank were made")
    assert own_bank("n", {"m": 2}, 2) == ""


def rate(_: Request) -> str:
    return "4"


def warnings(collection: exampp.Collection, bank: str = "main") -> list[list[str]]:
    """Return the warnings of evaluate and status about a model that made the bank."""
    board = collection.grades(bank=bank).evaluate(["Cover@20"], min_rating=4).notes
    told = [*board], [*collection.status().notes]
    return [[one for one in some if "made by the grading model" in one] for some in told]


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


ROWS = [
    {"query_id": "q1", "question": "What is air?", "model": "org/judge"},
    {"query_id": "q2", "question": "Why does it snow?", "model": "org/judge"},
]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def of_lines(key: str) -> list[dict[str, Any]]:
    return [
        {
            "query_id": row["query_id"],
            key: [
                {"query_id": row["query_id"], "question_text": row["question"], "model": "judge"}
            ],
        }
        for row in ROWS
    ]


FILES = {
    "bank.csv": "query_id,question,model\nq1,What is air?,judge\nq2,Why does it snow?,judge\n",
    "bank.tsv": "qid\tquestion\tGenerator\nq1\tWhat is air?\tjudge\nq2\tWhy snow?\tjudge\n",
    "items.jsonl": jsonl(of_lines("items")),
    "questions.jsonl": jsonl(of_lines("questions")),
    "array.json": json.dumps(of_lines("items")),
    "lines.jsonl": jsonl(ROWS),
    "authors.jsonl": jsonl(
        [{"qid": r["query_id"], "question": r["question"], "llm": "judge"} for r in ROWS]
    ),
    "named.jsonl": jsonl(
        [
            {"query_id": r["query_id"], "info": {"gpt_model": "judge"}, "items": part["items"]}
            for r, part in zip(ROWS, of_lines("items"), strict=True)
        ]
    ).replace('"model"', '"comment"'),
    "nuggets.jsonl": jsonl(
        [
            {
                "qid": r["query_id"],
                "query": "",
                "model": "judge",
                "nuggets": [{"text": r["question"], "importance": "vital", "model": "judge"}],
            }
            for r in ROWS
        ]
    ),
    "argue.json": jsonl(
        [
            {
                "query_id": r["query_id"],
                "creator": [{"is_human": False, "assessor": ["judge"]}],
                "nugget_bank": {
                    r["question"]: {
                        "question": r["question"],
                        "aggregator_type": "OR",
                        "answers": {},
                        "creator": [{"is_human": False, "assessor": ["judge"]}],
                    }
                },
            }
            for r in ROWS
        ]
    ),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("again", ["", ".csv", ".jsonl"])
def test_every_file_that_names_who_made_its_items(file: str, again: str, tmp_path: Path) -> None:
    """Also when the bank was written to another kind of file since, and read from there."""
    (tmp_path / file).write_text(FILES[file])
    with exams.make(tmp_path) as collection:
        collection.import_files(banks=[tmp_path / file], bank="own")
        bank = "own"
        if again:
            bank = "again"
            collection.bank("own").export(tmp_path / f"again{again}")
            collection.import_files(tmp_path / f"again{again}", bank=bank)
        kind = collection.bank(bank).show().rows[0][3]
        judge = ScriptedGrader(rate, record=False)
        collection.grade(judge, prompt=f"{kind}-self-rating", model="judge", bank=bank)
        assert all("The bank was made" in one[0] for one in warnings(collection, bank))


def as_polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def as_pandas(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


@pytest.mark.parametrize("made", [list, as_polars, as_pandas])
@pytest.mark.parametrize("column", ["model", "generator"])
def test_rows_that_name_who_made_their_items(made: Any, column: str, tmp_path: Path) -> None:
    rows = [{("generator" if k == "model" else k): v for k, v in row.items()} for row in ROWS]
    with exams.make(tmp_path) as collection:
        collection.add(bank=made(rows if column == "generator" else ROWS), bank_name="own")
        judge = ScriptedGrader(rate, record=False)
        collection.grade(judge, prompt="question-self-rating", model="judge", bank="own")
        assert all(warnings(collection, "own"))


def test_edits_that_name_who_made_an_item(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        judge = ScriptedGrader(rate, record=False)
        collection.bank().add("q1", "What is air?", model="judge")
        collection.grade(judge, prompt="question-self-rating", model="judge")
        assert all("1 of the 4 items" in one[0] for one in warnings(collection))
        collection.bank().export(tmp_path / "b.csv")
        header, *items, version = (tmp_path / "b.csv").read_text().splitlines()
        assert header.endswith(",model")
        items = [line if line.endswith("judge") else f"{line}org/judge" for line in items]
        (tmp_path / "b.csv").write_text("\n".join([header, *items, version]) + "\n")
        changes = collection.bank().apply(tmp_path / "b.csv")
        assert [row[2:] for row in changes.rows] == [("model", "", "org/judge")] * 3
        assert all("The bank was made" in one[0] for one in warnings(collection))
        collection.bank().split(0.5)
        for part in ("public", "sealed"):
            grades = collection.grades(bank="main", part=part)
            notes = grades.evaluate(["Cover@20"], min_rating=4).notes
            assert any("The bank was made by the grading model" in note for note in notes)
            assert "made by the grading model" in report_json(grades.report())


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


def test_what_people_add_to_a_line_that_names_a_model_is_theirs_in_files_too(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.jsonl").write_text(FILES["named.jsonl"])
    with exams.make(tmp_path) as collection:
        collection.import_files(tmp_path / "own.jsonl", bank="own")
        collection.bank("own").add("q1", "Who asks?")
        for ending in (".csv", ".jsonl"):
            collection.bank("own").export(tmp_path / f"again{ending}")
            collection.import_files(tmp_path / f"again{ending}", bank=f"again{ending}")
            judge = ScriptedGrader(rate, record=False)
            bank = f"again{ending}"
            collection.grade(judge, prompt="question-self-rating", model="judge", bank=bank)
            assert "2 of the 3 items" in warnings(collection, bank)[0][0]
