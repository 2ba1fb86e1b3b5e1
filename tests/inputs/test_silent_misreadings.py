"""Files that could be misread without a word: read rightly, or refused with their fields."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.errors import InputError

ASKED, LIGHT, SAID = "What do plants need?", "Plants need light.", "Light."
DOORS = Path(__file__).parents[3] / "shared" / "data" / "doors"


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def span(value: Any, mime: str = "application/json") -> dict[str, Any]:
    said = {"output.value": '{"answer": "Light."}', "output.mime_type": "application/json"}
    asked = {"input.value": value, "input.mime_type": mime}
    place = {"trace_id": "t", "span_id": "a"}
    return {"context": place, "span_kind": "CHAIN", "name": "x", "attributes": asked | said}


def texts(exam: exampp.Collection, folder: Path) -> dict[str, str]:
    exam.export(folder / "texts.jsonl", "passages")
    rows = map(json.loads, (folder / "texts.jsonl").read_text().splitlines())
    return {row["passage_id"]: row["text"] for row in rows}


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"question": ASKED}),
        json.dumps({"input": {"query": ASKED}}),
        json.dumps(ASKED),
        json.dumps(
            {"messages": [{"role": "system", "content": "Be brief."},
                          {"role": "user", "content": ASKED}]}
        ),
    ],
)  # fmt: skip
def test_json_in_a_span_is_opened(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.jsonl").write_text(lines(span(value)))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "a.jsonl")
        assert exam.query_texts() == {digest(ASKED): ASKED}
        assert [*texts(exam, tmp_path).values()] == [SAID]


CHAT = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": ASKED},
]
REFUSED: dict[str, tuple[Any, str]] = {
    "unknown fields": (span('{"a": "x", "b": "y"}'), "object with the fields a, b.*no known"),
    "two questions": (span('{"question": "A", "query": "B"}'), "different texts under question"),
    "JSON that is cut off": (span('{"question": "A'), "broken JSON, or cut off"),
    "a conversation in a span": (span(json.dumps({"messages": CHAT})), "conversation of 2 turns"),
    "a conversation": (
        {"task_id": "t", "input": CHAT, "contexts": [{"text": LIGHT}]},
        "conversation of 2 turns",
    ),
    "a question with its history": (
        {"question": "And then?", "response": SAID, "chat_history": CHAT},
        "chat_history.*other turns",
    ),
    "a query with earlier turns": (
        {"user_input": CHAT, "retrieved_contexts": [LIGHT]},
        "conversation of 2 turns",
    ),
    "messages for contexts": (
        {"user_input": ASKED, "retrieved_contexts": [{"role": "system", "content": "Be brief."}]},
        r"retrieved_contexts\[0\]: is a chat message \(system\)",
    ),
    "gold contexts": (
        {"question": ASKED, "context": LIGHT, "answers": {"text": ["light"]}},
        "'context' may be what a system returned, or the gold",
    ),
    "gold contexts and answers": (
        {"question": ASKED, "context": LIGHT, "answer": "light"},
        "reference_contexts=context --columns reference=answer",
    ),
    "an object of fields": ({"conversation_id": "c", "task": "t"}, "of no kind that is known"),
    "averages": ({"average_scores": {"recall": 0.5}}, "of no kind that is known"),
    "assignments without a text": (
        {"qid": "q", "query": "x", "nuggets": [{"text": "a", "assignment": "support"}]},
        "no text that they are of",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_misread_is_refused(tmp_path: Path, name: str) -> None:
    row, said = REFUSED[name]
    (tmp_path / "a.jsonl").write_text(lines(row))
    with exampp.create(tmp_path / "my.exam") as exam:
        with pytest.raises(InputError, match=said):
            exam.import_files(tmp_path / "a.jsonl")
        assert exam.query_texts() == {}


def test_an_empty_response_is_not_replaced_by_the_reference(tmp_path: Path) -> None:
    row = {"question": ASKED, "prediction": "", "answer": "light"}
    (tmp_path / "a.jsonl").write_text(lines(row))
    with (
        exampp.create(tmp_path / "my.exam") as exam,
        pytest.raises(InputError, match="nothing that a system returned"),
    ):
        exam.import_files(tmp_path / "a.jsonl", kind="answers")


def test_columns_name_the_system_of_answers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,variant,answer\nWhy?,a,Because.\nWhy?,b,So.\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "a.csv", kind="answers", columns={"system": "variant"})
        exam.export(tmp_path / "out.run", "runs")
    assert (tmp_path / "out.run").read_text().split()[5::6] == ["a:response", "b:response"]


def test_gold_contexts_are_judgments_and_answers_keys(tmp_path: Path) -> None:
    row = {"question": ASKED, "context": LIGHT, "answer": "light"}
    (tmp_path / "a.jsonl").write_text(lines(row))
    named = {"reference_contexts": "context", "reference": "answer"}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "a.jsonl", kind="answers", columns=named)
        (entry,) = exam.bank().texts().entries
        assert [(one.text, one.answers) for one in entry.items] == [(ASKED, ("light",))]
        exam.export(tmp_path / "out.qrels", "judgments")
        assert (tmp_path / "out.qrels").read_text().split()[2:] == [digest(LIGHT), "1"]
        assert ("systems", 0) in [row[:2] for row in exam.contents().rows]


def test_passages_with_assignments_are_graded(tmp_path: Path) -> None:
    nuggets = [
        {"text": "light", "importance": "vital", "assignment": "support"},
        {"text": "soil", "importance": "okay", "assignment": "not_support"},
    ]
    row = {"text": ASKED, "qid": "q", "candidate_text": LIGHT, "docid": "d", "nuggets": nuggets}
    (tmp_path / "a.jsonl").write_text(lines(row))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "a.jsonl")
        assert exam.query_texts() == {"q": ASKED}
        assert texts(exam, tmp_path) == {"d": LIGHT}
        assert ("grades", 2) in [row[:2] for row in exam.contents().rows]


@pytest.mark.parametrize("topics_first", [True, False])
def test_equal_questions_are_one_query_in_either_order(tmp_path: Path, topics_first: bool) -> None:
    (tmp_path / "topics.tsv").write_text(f"query_id\ttext\n7\t{ASKED}\n")
    record = {"user_input": ASKED, "retrieved_contexts": [LIGHT], "reference": "light"}
    (tmp_path / "rag.jsonl").write_text(lines(record))
    files = [tmp_path / "topics.tsv", tmp_path / "rag.jsonl"]
    with exampp.create(tmp_path / "my.exam") as exam:
        for file in files if topics_first else reversed(files):
            exam.import_files(file)
        assert exam.query_texts() == {"7": ASKED}
        exam.export(tmp_path / "out.run", "runs")
        assert (tmp_path / "out.run").read_text().split()[:3] == ["7", "Q0", digest(LIGHT)]
        (entry,) = exam.bank().texts().entries
        assert [one.item_id for one in entry.items] == [f"7/{digest(ASKED)}"]
        assert exam.import_files(*files).changes == 0


def test_unused_fields_are_counted_and_named_once(tmp_path: Path) -> None:
    row = {"user_input": ASKED, "response": SAID, "expected_ids": ["d"], "grading_notes": "x"}
    path = tmp_path / "a.jsonl"
    path.write_text(lines(row, {**row, "user_input": "Why?", "grading_notes": None}))
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(path)
    assert report.remarks == (
        f"{path}: 2 fields not read: expected_ids (2 records), grading_notes (1 record)",
    )
    unread = json.loads(report.to_json())["unread"]
    assert unread == {str(path): {"expected_ids": 2, "grading_notes": 1}}


def test_responses_are_counted_and_not_their_passages(tmp_path: Path) -> None:
    long = " ".join(f"Sentence {number} about light." for number in range(40))
    row = {"query_id": "1", "query": ASKED, "system": "a", "text": long}
    (tmp_path / "a.jsonl").write_text(lines(row))
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / "a.jsonl", passage_tokens=0)
        assert [one.records for one in report.files] == [1]


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("header", ["query_id{}text", "qid{}query", "id{}question"])
def test_tables_of_queries_have_any_separator(tmp_path: Path, mark: str, header: str) -> None:
    (tmp_path / "queries.csv").write_text(f"{header.format(mark)}\n7{mark}{ASKED}\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "queries.csv")
        assert exam.query_texts() == {"7": ASKED}


POOL = [("1", "p1", "Reefs."), ("2", "p1", "Reefs."), ("1", "p2", "Bread.")]
POOL_FILES = {
    "a.csv": "query_id,passage_id,text\n" + "".join(",".join(row) + "\n" for row in POOL),
    "a.tsv": "qid\tdocid\ttext\n" + "".join("\t".join(row) + "\n" for row in POOL),
    "a.jsonl": lines(*(dict(zip(("query_id", "pid", "passage"), r, strict=True)) for r in POOL)),
}


@pytest.mark.parametrize("name", POOL_FILES)
def test_passages_with_their_query_are_graded_for_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(POOL_FILES[name])
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"1": "reefs", "2": "bread"}, bank={"1": ["A?", "B?"], "2": ["C?"]})
        report = exam.import_files(tmp_path / name)
        assert [(one.kind, one.records) for one in report.files] == [("pool", 3)]
        asked: list[tuple[str, str]] = []

        def grade(item: exampp.Item, passage: exampp.Passage) -> int:
            asked.append((item.text, passage.text))
            return 5

        exam.grade(grade, name="mine")
        assert sorted(asked) == [
            *(("A?", "Bread."), ("A?", "Reefs."), ("B?", "Bread."), ("B?", "Reefs.")),
            ("C?", "Reefs."),
        ]
        assert exam.import_files(tmp_path / name).changes == 0


def test_a_passage_id_with_two_texts_names_both_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("query_id,passage_id,text\n1,p,A.\n1,p,B.\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"1": "reefs"})
        with pytest.raises(InputError, match=r"a\.csv:3, text: passage 'p' has another text on l"):
            exam.import_files(tmp_path / "a.csv")


READ = {
    *("langsmith-ui.csv", "nuggetizer-retrieval-assignments.jsonl"),
    *("phoenix-mime0.json", "phoenix-msg.json"),
}


@pytest.mark.skipif(not DOORS.is_dir(), reason="no shared data")
def test_files_of_programs_are_read_rightly_or_refused(tmp_path: Path) -> None:
    for file in sorted(DOORS.iterdir()):
        if file.name == "README.md":
            continue
        with exampp.create(tmp_path / f"{file.name}.exam") as exam:
            if file.name not in READ:
                with pytest.raises(InputError, match=file.name):
                    exam.import_files(file)
                continue
            exam.import_files(file)
            assert {*exam.query_texts().values()} <= {"What builds reefs?", "What is Python?"}
            assert not any(text.startswith("{") for text in texts(exam, tmp_path).values())
