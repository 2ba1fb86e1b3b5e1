"""Files of other programs for RAG systems: one made by hand of each, imported and looked at."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.errors import InputError
from exampp.formats.rag_records import KINDS, kind_of

ASKED, LIGHT, CATS, SAID = "What do plants need?", "Plants need light.", "Cats sleep.", "Light."
RAGAS = {
    "user_input": ASKED,
    "retrieved_contexts": [CATS, LIGHT],
    "response": SAID,
    "reference": "light",
    "reference_contexts": [LIGHT],
}
OLDER = {
    "question": ASKED,
    "contexts": [CATS, LIGHT],
    "answer": SAID,
    "ground_truth": "light",
}
DEEPEVAL = {
    "input": ASKED,
    "actual_output": SAID,
    "expected_output": "light",
    "retrieval_context": [CATS, {"context": LIGHT, "source": "d1"}],
    "context": [CATS],
}
TURNS = [
    {"speaker": "user", "text": "Hi"},
    {"speaker": "agent", "text": "Hello"},
    {"speaker": "user", "text": ASKED},
]
MTRAG = {
    "conversation_id": "c",
    "task_id": "c<::>2",
    "contexts": [
        {"document_id": "d0", "text": CATS, "score": float("nan")},
        {"document_id": "d1", "text": LIGHT},
    ],
    "input": TURNS,
    "targets": [{"text": "light"}],
    "predictions": [{"text": SAID}],
}
LANGSMITH = {
    "inputs": {"question": ASKED},
    "outputs": {
        "answer": SAID,
        "documents": [
            {"page_content": CATS},
            {"page_content": LIGHT, "metadata": {"source": "d1"}},
        ],
    },
    "reference_outputs": {"answer": "light"},
}
ROOT = {
    "name": "chain",
    "context": {"trace_id": "t", "span_id": "a"},
    "span_kind": "CHAIN",
    "parent_id": None,
    "attributes": {"input": {"value": ASKED}, "output.value": SAID},
}
RETRIEVER = {
    "name": "search",
    "context": {"trace_id": "t", "span_id": "b"},
    "span_kind": "RETRIEVER",
    "parent_id": "a",
    "attributes": {
        "input.value": "plants need",
        "retrieval.documents.1.document.content": LIGHT,
        "retrieval.documents.1.document.id": "d1",
        "retrieval.documents.0.document.content": CATS,
    },
}
NESTED = {
    **RETRIEVER,
    "attributes": {
        "retrieval": {
            "documents": [
                {"document": {"content": CATS}},
                {"document": {"id": "d1", "content": LIGHT}},
            ]
        }
    },
}


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


# name, content, kind, id of the question, ids of what was retrieved
SAMPLES = {
    "ragas": ("rag.jsonl", lines(RAGAS), "ragas", "", ("", "")),
    "ragas, as an array": ("rag.json", json.dumps([RAGAS], indent=1), "ragas", "", ("", "")),
    "ragas, its older names": (
        "rag.jsonl",
        lines(
            {"question": ASKED, "contexts": [CATS, LIGHT], "answer": SAID, "ground_truth": "light"}
        ),
        "ragas",
        "",
        ("", ""),
    ),
    "ragas, as a table": (
        "rag.csv",
        "user_input,retrieved_contexts,response,reference\n"
        f"{ASKED},\"['{CATS}', '{LIGHT}']\",{SAID},light\n",
        "ragas",
        "",
        ("", ""),
    ),
    "DeepEval": ("rag.json", json.dumps([DEEPEVAL]), "deepeval", "", ("", "d1")),
    "DeepEval, as a table": (
        "rag.csv",
        f"input,actual_output,expected_output,retrieval_context\n{ASKED},{SAID},light,{CATS}|{LIGHT}\n",
        "deepeval",
        "",
        ("", ""),
    ),
    "MTRAG": ("rag.jsonl", lines(MTRAG), "mtrag", "c<::>2", ("d0", "d1")),
    "LangSmith": ("rag.jsonl", lines(LANGSMITH), "langsmith", "", ("", "d1")),
    "OpenInference": ("rag.jsonl", lines(ROOT, RETRIEVER), "openinference", "", ("", "d1")),
    "OpenInference, nested": ("rag.jsonl", lines(NESTED, ROOT), "openinference", "", ("", "d1")),
}


def runs(exam: exampp.Collection, folder: Path) -> dict[str, list[str]]:
    exam.export(folder / "out.run", "runs")
    found: dict[str, list[str]] = {}
    for line in (folder / "out.run").read_text().splitlines():
        _, _, passage, _, _, system = line.split()
        found.setdefault(system, []).append(passage)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_contexts_are_a_system_and_the_answer_is_another(tmp_path: Path, name: str) -> None:
    file, content, kind, query, ids = SAMPLES[name]
    (tmp_path / file).write_text(content)
    assert kind_of(tmp_path / file) == kind
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / file)
        assert exam.query_texts() == {query or digest(ASKED): ASKED}
        expected = [given or digest(text) for given, text in zip(ids, (CATS, LIGHT), strict=True)]
        assert runs(exam, tmp_path) == {"rag": expected, "rag:response": [digest(SAID)]}
        if (
            "ground_truth" in content
            or "reference" in content
            or "expected" in content
            or "targets" in content
        ):
            (entry,) = exam.bank().texts().entries
            assert [(item.text, item.answers) for item in entry.items] == [(ASKED, ("light",))]
        exam.import_files(tmp_path / file)
        exam.grade(
            lambda _, passage: 5 if "ight" in passage.text else 0, name="mine", **_kind(exam)
        )
        board = exam.grades().evaluate(["Success@2"] if _kind(exam) else ["Cover@2"])
        assert {row.system: row.mean for row in board.rows} == {"rag": 1, "rag:response": 1}


def _kind(exam: exampp.Collection) -> dict[str, Any]:
    """The query itself is graded where there is no reference to make an item of."""
    return {} if exam.bank_names("question") else {"kind": "query"}


def test_contexts_of_a_reference_are_relevant_passages(tmp_path: Path) -> None:
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl", system="mine")
        exam.export(tmp_path / "out.qrels", "judgments")
        assert (tmp_path / "out.qrels").read_text().split()[2:] == [digest(LIGHT), "1"]
        assert set(runs(exam, tmp_path)) == {"mine", "mine:response"}


def test_parquet_has_the_columns_of_json(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame([RAGAS]).write_parquet(tmp_path / "rag.parquet")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.parquet")
        assert runs(exam, tmp_path) == {
            "rag": [digest(CATS), digest(LIGHT)],
            "rag:response": [digest(SAID)],
        }
        polars.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
        (tmp_path / "cut.parquet").write_bytes((tmp_path / "rag.parquet").read_bytes()[:40])
        for name in ("other.parquet", "cut.parquet"):
            with pytest.raises(InputError, match="is a Parquet file"):
                exam.import_files(tmp_path / name)


def test_a_reranker_decides_what_was_retrieved(tmp_path: Path) -> None:
    reranker = {
        "context": {"trace_id": "t", "span_id": "c"},
        "span_kind": "RERANKER",
        "parent_id": "a",
        "name": "rerank",
        "attributes": {"reranker.output_documents.0.document.content": LIGHT},
    }
    (tmp_path / "rag.jsonl").write_text(lines(ROOT, RETRIEVER, reranker))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl")
        assert runs(exam, tmp_path)["rag"] == [digest(LIGHT)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"user_input": "Q?", "retrieved_contexts": []}, r"rag.jsonl:2, .*nothing that a system"),
        ({"user_input": " ", "response": "A"}, r"rag.jsonl:2, .*no question \(any of user_input"),
        ({"user_input": None, "response": "A"}, r"rag.jsonl:2, .*no question"),
    ],
)
def test_what_a_record_lacks_is_told_and_may_be_left_out(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS, row))
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=said):
            exam.import_files(tmp_path / "rag.jsonl")
        assert exam.query_texts() == {}
        exam.import_files(tmp_path / "rag.jsonl", on_error="skip")
        assert len(exam.query_texts()) == 1


def test_a_question_that_comes_twice_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS, RAGAS))
    with exampp.create(tmp_path / "my.exam") as exam, pytest.raises(InputError) as error:
        exam.import_files(tmp_path / "rag.jsonl")
    assert "rag.jsonl" in str(error.value)
    assert ":2" in str(error.value)


def test_every_kind_may_be_named(tmp_path: Path) -> None:
    assert {sample[2] for sample in SAMPLES.values()} == set(KINDS)
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl", kind="ragas")
        assert len(exam.query_texts()) == 1
