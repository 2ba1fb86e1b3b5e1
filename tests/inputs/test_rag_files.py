"""Files of other programs for RAG systems: one made by hand of each, imported and looked at."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.errors import InputError
from exampp.formats import rag, tables
from exampp.store.bank import bank_names

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
TURNS = [{"speaker": "user", "text": ASKED}]
CHAT = [
    {"speaker": "user", "text": "Hi"},
    {"speaker": "agent", "text": "Hello"},
    *TURNS,
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

PROMPTFOO: dict[str, Any] = {
    "vars": {"query": ASKED, "context": [CATS, LIGHT]},
    "prompt": {"raw": "Answer {{query}}", "label": "Answer {{query}}"},
    "promptIdx": 0,
    "testIdx": 0,
    "provider": {"id": "openai:gpt-4o", "label": ""},
    "response": {"output": SAID, "tokenUsage": {"total": 12}},
    "success": True,
    "error": None,
}
PROMPTFOO_FILE = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "prompts": [{"raw": "Answer {{query}}", "label": "Answer {{query}}"}],
        "results": [PROMPTFOO],
        "stats": {"successes": 1},
    },
    "config": {"tests": []},
}
OBSERVATIONS: list[dict[str, Any]] = [
    {
        "id": "o1",
        "traceId": "t",
        "type": "SPAN",
        "name": "rag",
        "startTime": "2026-05-01T10:00:00.000Z",
        "parentObservationId": None,
        "input": {"question": ASKED},
        "output": {"answer": SAID},
    },
    {
        "id": "o2",
        "traceId": "t",
        "type": "RETRIEVER",
        "name": "search",
        "startTime": "2026-05-01T10:00:00.100Z",
        "parentObservationId": "o1",
        "input": "plants need",
        "output": [
            {"page_content": CATS, "metadata": {}},
            {"page_content": LIGHT, "metadata": {"source": "d1"}},
        ],
    },
]
BASE = "ai.observability"


def event(kind: str, attributes: dict[str, Any], parent: str, version: str = "v1") -> Any:
    return {
        "event_id": kind,
        "record": {"name": kind},
        "record_attributes": {
            f"{BASE}.span_type": kind,
            f"{BASE}.record_id": f"r-{version}",
            **{f"{BASE}.{name}": value for name, value in attributes.items()},
        },
        "resource_attributes": {f"{BASE}.app_name": "rag", f"{BASE}.app_version": version},
        "trace": {"trace_id": f"t-{version}", "parent_id": parent, "span_id": kind},
    }


def events(version: str = "v1", said: str = SAID) -> list[Any]:
    root = {"record_root.input": ASKED, "record_root.output": said}
    retrieved = {"retrieval.query_text": "need", "retrieval.retrieved_contexts": [CATS, LIGHT]}
    return [
        event("record_root", root, "", version),
        event("retrieval", retrieved, "record_root", version),
    ]


AUTORAG = {
    "qid": "7",
    "query": ASKED,
    "retrieval_gt": [["d1"]],
    "generation_gt": ["light"],
    "retrieved_contents": [CATS, LIGHT],
    "retrieved_ids": ["d0", "d1"],
    "generated_texts": SAID,
}
TRULENS = {
    "app_name": "rag",
    "app_version": "v1",
    "record_id": "r1",
    "input": ASKED,
    "output": SAID,
    "tags": "",
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
    "promptfoo": ("rag.json", json.dumps(PROMPTFOO_FILE, indent=2), "promptfoo", "", ("", "")),
    "promptfoo, on one line": ("rag.json", json.dumps(PROMPTFOO_FILE), "promptfoo", "", ("", "")),
    "promptfoo, as lines": ("rag.jsonl", lines(PROMPTFOO), "promptfoo", "", ("", "")),
    "Langfuse, as lines": ("rag.jsonl", lines(*OBSERVATIONS), "langfuse", "", ("", "d1")),
    "Langfuse, a trace": (
        "rag.json",
        json.dumps({"id": "t", "name": "rag", "observations": OBSERVATIONS}, indent=2),
        "langfuse",
        "",
        ("", "d1"),
    ),
    "Langfuse, a page": (
        "rag.json",
        json.dumps({"data": OBSERVATIONS, "meta": {"limit": 50}}),
        "langfuse",
        "",
        ("", "d1"),
    ),
    "Langfuse, as stored": (
        "rag.jsonl",
        lines(
            *(
                {
                    "trace_id": one["traceId"],
                    "parent_observation_id": one["parentObservationId"] or "",
                    "start_time": one["startTime"],
                    "type": one["type"],
                    "input": json.dumps(one["input"]),
                    "output": json.dumps(one["output"]),
                }
                for one in OBSERVATIONS
            )
        ),
        "langfuse",
        "",
        ("", "d1"),
    ),
    "AutoRAG": ("rag.jsonl", lines(AUTORAG), "autorag", "7", ("d0", "d1")),
    "TruLens, events": ("rag.jsonl", lines(*events()), "trulens-events", "", ("", "")),
    "answers": (
        "rag.csv",
        "Question;Model answer;Context 1;Context 2;Ground Truth\n"
        f"{ASKED};{SAID};{CATS};{LIGHT};light\n",
        "answers",
        "",
        ("", ""),
    ),
    "answers, as JSON": (
        "rag.jsonl",
        lines({"query_id": 7, "Query": ASKED, "retrievedDocuments": [CATS, LIGHT], "Answer": SAID}),
        "answers",
        "7",
        ("", ""),
    ),
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
    assert rag.detect_preset(tmp_path / file)[0] == rag.presets()[kind]
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
            or "generation_gt" in content
            or "Truth" in content
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
    return {} if bank_names(exam.connection, "question") else {"kind": "query"}


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
        with pytest.raises(InputError, match="fields found: x; that is of no kind"):
            exam.import_files(tmp_path / "other.parquet")
        (tmp_path / "cut.parquet").write_bytes((tmp_path / "rag.parquet").read_bytes()[:40])
        with pytest.raises(InputError, match="is a damaged Parquet file"):
            exam.import_files(tmp_path / "cut.parquet")


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


def test_every_kind_may_be_named(tmp_path: Path) -> None:
    # the table of records of TruLens has no contexts
    assert {sample[2] for sample in SAMPLES.values()} | {"trulens"} == set(rag.presets())
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl", kind="ragas")
        assert len(exam.query_texts()) == 1


HELPDESK = """
system = [["release"]]

[fields]
query = ["ticket.question"]
query_id = ["ticket.number"]
contexts = ["snippets"]
ids = ["snippet_ids"]
response = ["reply", "draft"]
reference = ["expected"]
"""


@pytest.mark.parametrize("rows", ["", 'rows = ["log.entries"]'])
def test_a_preset_of_the_user_reads_the_files_of_any_program(tmp_path: Path, rows: str) -> None:
    (tmp_path / "helpdesk.toml").write_text(rows + HELPDESK)
    row = {
        "ticket": {"number": 7, "question": ASKED},
        "snippets": [CATS, LIGHT],
        "snippet_ids": ["s1", "s2"],
        "draft": SAID,
        "expected": "light",
        "release": "v1",
    }
    other = {**row, "snippets": [LIGHT], "snippet_ids": ["s2"], "release": "v2"}
    whole = json.dumps({"version": 1, "log": {"entries": [row, other]}}, indent=1)
    (tmp_path / "log.jsonl").write_text(whole if rows else lines(row, other))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "helpdesk.toml"))
        assert exam.query_texts() == {"7": ASKED}
        assert runs(exam, tmp_path) == {
            "v1": ["s1", "s2"],
            "v2": ["s2"],
            "v1:response": [digest(SAID)],
            "v2:response": [digest(SAID)],
        }
        (item,) = exam.bank().items("7")
        assert item.answers == ("light",)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("", "is not a preset of RAG files: Object missing required field `fields`"),
        ("[fields", "broken TOML"),
        ("fields = 3", "fields: is not a preset of RAG files: Expected `object`, got `int`"),
        ('[fields]\ncontexts = ["c"]', "fields: .* missing required field `query`"),
        ("[fields]\nquery = []", "fields.query: .*Expected `array` of length >= 1"),
        ('[fields]\nquery = "q"', "fields.query: .*Expected `array`, got `str`"),
        ('[fields]\nquerry = ["q"]', "fields: .*unknown field `querry`"),
        ('[fields]\nquery = ["q"]', "fields: names neither contexts nor a response. Add one"),
        ('rank = 1\n[fields]\nquery = ["q"]', "unknown field `rank`"),
        ('system = ["s"]\n[fields]\nquery = ["q"]', r"system\[0\]: .*Expected `array`, got `str`"),
        ('spans = {}\n[fields]\nquery = ["q"]', "spans: .* missing required field `trace`"),
    ],
)
def test_a_wrong_preset_is_a_sentence(tmp_path: Path, toml: str, said: str) -> None:
    (tmp_path / "p.toml").write_text(toml)
    (tmp_path / "log.jsonl").write_text(lines({"q": ASKED, "c": [LIGHT]}))
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=f"p.toml.*{said}"):
            exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
        with pytest.raises(InputError, match=r"none.toml: no such file"):
            exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "none.toml"))


def test_a_column_that_holds_something_else_leaves_no_question(tmp_path: Path) -> None:
    (tmp_path / "rag.jsonl").write_text(lines(DEEPEVAL))
    with (
        exampp.create(tmp_path / "my.exam") as exam,
        pytest.raises(InputError, match=r"rag.jsonl:1: no question; fields found: input"),
    ):
        exam.import_files(tmp_path / "rag.jsonl", kind="deepeval", columns={"reference": "input"})


def test_systems_of_one_file_are_named_by_what_differs(tmp_path: Path) -> None:
    other = {**PROMPTFOO, "provider": {"id": "local", "label": "my model"}}
    other["response"] = {"output": "Water."}
    (tmp_path / "rag.jsonl").write_text(lines(PROMPTFOO, other))
    (tmp_path / "events.jsonl").write_text(lines(*events(), *events("v2", "Water.")))
    (tmp_path / "records.csv").write_text(
        "app_name,app_version,record_id,input,output\n"
        f"rag,v1,r1,{ASKED},{SAID}\nrag,v2,r2,{ASKED},Water.\n"
    )
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl")
        assert set(runs(exam, tmp_path)) == {
            *("my_model", "my_model:response"),
            *("openai:gpt-4o", "openai:gpt-4o:response"),
        }
    with exampp.create(tmp_path / "two.exam") as exam:
        exam.import_files(tmp_path / "events.jsonl")
        assert set(runs(exam, tmp_path)) == {
            *("rag/v1", "rag/v1:response"),
            *("rag/v2", "rag/v2:response"),
        }
    with exampp.create(tmp_path / "three.exam") as exam:
        exam.import_files(tmp_path / "records.csv")
        assert set(runs(exam, tmp_path)) == {"v1:response", "v2:response"}


FAULTS: dict[str, tuple[Any, str]] = {
    "a number for a question": ({"user_input": 7}, "user_input: must be a text, and is '7'"),
    "a list for an answer": ({"response": ["a", "b"]}, "response: is a list of 2, where one"),
    "a number for an answer": ({"response": 4.5}, "response: must be a text, and is '4.5'"),
    "true for an answer": ({"response": True}, "response: must be a text, and is 'True'"),
    "an object without a text": ({"response": {"x": 1}}, "response: is an object without text"),
    "a number for a context": (
        {"retrieved_contexts": [CATS, 3]},
        r"retrieved_contexts\[1\]: must be a text",
    ),
    "fewer ids than contexts": (
        {"retrieved_context_ids": ["a"]},
        "retrieved_contexts: 2 texts, and 1 ids",
    ),
    "an id that is a fraction": (
        {"retrieved_context_ids": [1.5, 2]},
        r"retrieved_contexts\[0\]: an id must be a text or a whole number, and is '1.5'",
    ),
    "an id of two texts": (
        {"retrieved_context_ids": [1, 1]},
        r"retrieved_contexts\[1\]: the id '1' has another text, too",
    ),
    "nothing returned": (
        {"retrieved_contexts": [], "response": None},
        "retrieved_contexts: nothing that a system returned",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_line_and_field_and_takes_nothing(tmp_path: Path, name: str) -> None:
    changed, said = FAULTS[name]
    other = {**RAGAS, "user_input": "Another?", **changed}
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS, other))
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=rf"rag.jsonl:2, {said}"):
            exam.import_files(tmp_path / "rag.jsonl")
        assert exam.query_texts() == {}
        report = exam.import_files(tmp_path / "rag.jsonl", on_error="skip")
        assert len(exam.query_texts()) == 1
        assert report.skipped == 1


def test_what_is_no_fault_is_read(tmp_path: Path) -> None:
    row = {
        "user_input": ASKED,
        "retrieved_contexts": [CATS, None, " ", f"NaN: NaN {'x' * 10_000_000}"],
        "retrieved_context_ids": [1, 2, 3, 4],
        "response": f"\ufeff{SAID} \ud800",
        "reference": None,
        "score": float("nan"),
    }
    (tmp_path / "rag.jsonl").write_bytes(b"\xef\xbb\xbf" + lines(row).encode())
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / "rag.jsonl")
        assert [*runs(exam, tmp_path)["rag"]] == ["1", "4"]
        assert [*exam.query_texts().values()] == [ASKED]
        assert any("rag.jsonl:1: 2 contexts have no text" in one for one in report.remarks)
        exam.export(tmp_path / "out.jsonl", "passages")
    passages = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    texts = {one["passage_id"]: one["text"] for one in passages}
    assert texts["4"].startswith("NaN: NaN xxx")


@pytest.mark.parametrize("name", ["promptfoo", "Langfuse, a trace", "ragas, as an array"])
def test_a_file_that_is_cut_off_says_on_which_line(tmp_path: Path, name: str) -> None:
    file, content, kind, *_ = SAMPLES[name]
    (tmp_path / file).write_text(content[: len(content) * 2 // 3])
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=rf"{file}:\d+: broken JSON"):
            exam.import_files(tmp_path / file, kind=kind)
        assert exam.query_texts() == {}


def test_references_of_several_files_are_all_right_answers(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(lines({**RAGAS, "reference": "light | water"}))
    (tmp_path / "two.jsonl").write_text(lines({**RAGAS, "reference": "sun"}))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
        (entry,) = exam.bank().texts().entries
        assert [item.answers for item in entry.items] == [("light | water", "sun")]
        assert set(runs(exam, tmp_path)) == {"one", "one:response", "two", "two:response"}


def test_a_column_with_an_endless_number_is_no_context(tmp_path: Path) -> None:
    name = f"Context {'9' * 5000}"
    (tmp_path / "a.csv").write_text(f"question,response,{name}\n{ASKED},{SAID},{CATS}\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "a.csv", kind="answers")
        assert runs(exam, tmp_path) == {"a:response": [digest(SAID)]}


def test_answers_that_may_be_a_bank_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text(f"question,answer\n{ASKED},{SAID}\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=r"nearest: answers \(question, contexts, answer\)"):
            exam.import_files(tmp_path / "qa.csv")
        exam.import_files(tmp_path / "qa.csv", kind="answers")
        assert runs(exam, tmp_path) == {"qa:response": [digest(SAID)]}
    (tmp_path / "bank.csv").write_text(f"query_id,question,answer\nq1,{ASKED},{SAID}\n")
    with exampp.create(tmp_path / "two.exam") as exam:
        report = exam.import_files(tmp_path / "bank.csv")
        assert [one.kind for one in report.files] == ["plain-bank"]


def test_a_file_of_no_kind_lists_its_fields_and_what_comes_near(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(lines({"vars": {}, "provider": "x", "verdict": 1}))
    with (
        exampp.create(tmp_path / "my.exam") as exam,
        pytest.raises(
            InputError, match=r"fields found: vars, provider, verdict; .*nearest: promptfoo"
        ),
    ):
        exam.import_files(tmp_path / "x.jsonl")


def test_a_question_that_is_asked_twice_is_named_by_its_text(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text((json.dumps(RAGAS) + "\n") * 2)
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(
            InputError, match=r"twice.jsonl:2: the question 'What do plants need\?'"
        ):
            exam.import_files(path)
        assert exam.import_files(path, on_error="skip").skipped == 1


def test_a_bank_names_the_questions_of_such_files_by_their_text(tmp_path: Path) -> None:
    ragas, own = tmp_path / "ragas.jsonl", tmp_path / "bank.csv"
    ragas.write_text(json.dumps(RAGAS) + "\n")
    own.write_text(f"query,question\n{ASKED},What gives plants energy?\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(own, ragas)
        exam.export(tmp_path / "out.csv", "bank")
        own.write_text("query,question\nAnother?,What gives plants energy?\n")
        with pytest.raises(InputError, match=r"no query has the text 'Another\?'"):
            exam.import_files(own)
    of_query = hashlib.md5(ASKED.encode()).hexdigest()
    assert [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == [
        of_query,
        of_query,
    ]


def test_a_table_that_pandas_wrote_column_by_column_is_told(tmp_path: Path) -> None:
    path = tmp_path / "frame.json"
    path.write_text(json.dumps({name: {"0": value} for name, value in RAGAS.items()}))
    with (
        exampp.create(tmp_path / "my.exam") as exam,
        pytest.raises(InputError, match=r"column by column. Write it .*orient='records'"),
    ):
        exam.import_files(path)


def test_a_file_at_which_polars_panics_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "answers.parquet"
    polars.DataFrame({"question": ["why?"], "answer": ["so"]}).write_parquet(path)

    def panic(*_: object) -> None:
        raise polars.exceptions.PanicException("assertion failed: offset + length <= self.length")

    monkeypatch.setattr(polars.LazyFrame, "collect", panic)
    with pytest.raises(InputError, match=r"is a damaged Parquet file \(assertion failed"):
        list(tables.read_rows(path))
