"""Tables of people's own: their columns are recognised by usual names, or an error names them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from support.commands import Commands

import exampp
from exampp.errors import InputError
from exampp.formats.columns import SYNONYMS

QUESTIONS = ("What is BM25?", "Why is the sky blue?")
ANSWERS = {"v1": ("A ranking function.", "Air scatters light."), "v2": ("A bike.", "The sea.")}
ROWS = [(QUESTIONS[n], name, ANSWERS[name][n]) for name in ANSWERS for n in (0, 1)]
OF_ANSWERS = {"queries": 2, "responses": 4}
RESPONSES = ["v1", "v2"]
CHUNKS = [(QUESTIONS[0], "BM25 ranks."), (QUESTIONS[0], "BM25 has k1."), (QUESTIONS[1], "Light.")]
HITS = [(question, name, chunk) for name in ANSWERS for question, chunk in CHUNKS]


def table(header: str, rows: Any, separator: str = ",", start: str = "") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerows([header.split(","), *rows])
    return start + text.getvalue()


def objects(header: str, rows: Any) -> str:
    names = header.split(",")
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


def plus(rows: Any, *more: Any) -> list[Any]:
    return [(*row, *more) for row in rows]


READ: dict[str, tuple[str, str, dict[str, int], list[str]]] = {
    "answers": ("a.csv", table("question,model,answer", ROWS), OF_ANSWERS, RESPONSES),
    "tabs": ("a.tsv", table("question,variant,response", ROWS, "\t"), OF_ANSWERS, RESPONSES),
    "semicolons and a byte order mark": (
        "a.csv",
        table("Prompt,Experiment,Output", ROWS, ";", "\ufeff"),
        OF_ANSWERS,
        RESPONSES,
    ),
    "bars": ("a.txt", table("query,pipeline,prediction", ROWS, "|"), OF_ANSWERS, RESPONSES),
    "spaced names": ("a.csv", table("Question Text,Model Name,Final Answer", ROWS), OF_ANSWERS,
                     RESPONSES),
    "line breaks": (
        "a.csv",
        table("question,config,answer", [(q, m, f'{a},\n"x"') for q, m, a in ROWS]),
        OF_ANSWERS,
        RESPONSES,
    ),
    "an array": (
        "a.json",
        json.dumps([dict(zip(("question", "run", "generated"), r, strict=True)) for r in ROWS]),
        OF_ANSWERS,
        RESPONSES,
    ),
    "ids and no bank": (
        "a.jsonl",
        objects("question,pipeline,generated,qid", plus(ROWS[:1], 1) + plus(ROWS[1:2], 2)),
        {"queries": 2, "responses": 2},
        ["v1"],
    ),
    "a ragas file with systems": (
        "a.csv",
        table("question,model,answer,contexts", plus(ROWS, '["Light.", "Air."]')),
        {"queries": 2, "candidates": 8, "responses": 4},
        ["v1", "v1:contexts", "v2", "v2:contexts"],
    ),
    "contexts of systems": (
        "a.csv",
        table("question,model,contexts", [(q, m, "Light.") for q, m, _ in ROWS]),
        {"queries": 2, "candidates": 4},
        ["v1", "v2"],
    ),
    "references": (
        "a.csv",
        table("question,model,answer,ground_truth", plus(ROWS, "x")),
        {"queries": 2, "plain-bank": 2, "responses": 4},
        RESPONSES,
    ),
    "references alone": (
        "a.csv",
        table("question,expected_answer", [(q, "x") for q in QUESTIONS]),
        {"queries": 2, "plain-bank": 2},
        [],
    ),
    "ids of questions alone": (
        "a.csv",
        table("query_id,model,answer", [(1, "m", "x"), (2, "m", "y")]),
        {"responses": 2},
        ["m"],
    ),
    "ranked chunks": (
        "a.csv",
        table("question,model,chunk,rank", [(*row, n + 1) for n, row in enumerate(HITS)]),
        {"queries": 2, "passages": 3, "run": 6},
        ["v1", "v2"],
    ),
    "chunks in order": (
        "a.jsonl",
        objects("question,variant,content,similarity", plus(HITS, 0.5)),
        {"queries": 2, "passages": 3, "run": 6},
        ["v1", "v2"],
    ),
    "chunks with ids": (
        "a.jsonl",
        objects("query,system,chunk,chunk_id", [(*row, f"c{n % 3}") for n, row in enumerate(HITS)]),
        {"queries": 2, "passages": 3, "run": 6},
        ["v1", "v2"],
    ),
    "judged chunks": (
        "a.csv",
        table("question,chunk,label", plus(CHUNKS, 2)),
        {"queries": 2, "passages": 3, "qrels": 3},
        [],
    ),
    "a pool": ("a.csv", table("query,chunk", CHUNKS), {"queries": 2, "pool": 3}, []),
    "questions": ("a.csv", table("question", [(q,) for q in QUESTIONS]), {"queries": 2}, []),
    "passages": ("a.csv", table("id,content", [("c1", "x"), ("c2", "y")]), {"passages": 2}, []),
    "chunks": ("a.tsv", table("chunk_id,chunk", [("c1", "x")], "\t"), {"passages": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_usual_names_of_columns_are_recognised(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    file, content, kinds, systems = READ[name]
    if "queries" not in kinds:
        empty_exam.add(queries={"1": "a b", "2": "c d"})
    (tmp_path / file).write_text(content)
    report = empty_exam.import_files(tmp_path / file)
    assert {one.kind: one.records for one in report.files} == kinds
    assert [one.system for one in empty_exam.systems] == systems
    assert empty_exam.import_files(tmp_path / file).changes == 0


REFUSED = {
    "unknown names": (
        table("Frage,Modell,Antwort", ROWS),
        r"columns found: Frage, Modell, Antwort.*--columns question=Frage",
    ),
    "a column per system": (
        table("question,gpt,mistral", [("Why?", "a", "b")]),
        r"one system: --columns answer=gpt --columns answer=mistral",
    ),
    "two answers": (
        table("question,model,answer,response", plus(ROWS, "x")),
        r"'response' and 'answer' may both be the answer\. Choose one: --columns answer=",
    ),
    "two systems": (
        table("question,model,pipeline,answer", [(q, m, f"{m}x", a) for q, m, a in ROWS]),
        r"'model' and 'pipeline' may both be the system",
    ),
    "an answer or a passage": (
        table("question,model,text", ROWS),
        r"'text' may hold answers or retrieved passages. Choose one: --columns answer=text or",
    ),
    "scores or judgments": (
        table("question,chunk,score", plus(CHUNKS, 1)),
        r"'score' may hold scores of a ranking or judgments",
    ),
    "the same question twice": (
        table("question,model,answer", [*ROWS, ROWS[0]]),
        r"a.csv:6: the question 'What is BM25\?' .*line 2",
    ),
    "no answer": (
        table("question,model,answer", [*ROWS, ("Who?", "v1", "")]),
        r"a.csv:6, answer: the system returned nothing: answer is empty. --on-error skip",
    ),
    "a blank system": (
        table("question,model,answer", [*ROWS, ("Who?", "", "x")]),
        r"a.csv:6, system: the row has no system",
    ),
    "no rows": (
        table("question,model,answer", []),
        "a.csv: the table has no rows below its header",
    ),
    "a column twice": (
        table("question,answer,answer", [("Why?", "a", "b")]),
        r"duplicate column 'answer'. Rename one of them",
    ),
    "answers with a chunk each": (
        table("question,answer,chunk", [("Why?", "a", "b"), ("Why?", "a", "c")]),
        "unknown file type",
    ),
    "no answer column": (
        table("question,model", [("Why?", "a")]),
        "No column holds an answer, contexts or a passage",
    ),
    "Markdown": ("| question | answer |\n|---|---|\n| Why? | a |\n", "unknown file type"),
    "no chunk": (
        table("question,model,chunk", [*HITS, ("Who?", "v1", "")]),
        "a.csv:8, text: .* no",
    ),
    "an id of two texts": (
        table("question,model,chunk,chunk_id,rank", [(*row, "c", 1) for row in HITS]),
        r"a.csv:3, passage_id: passage 'c' has another text on line 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_is_refused_with_the_option_that_decides(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    content, message = REFUSED[name]
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        empty_exam.import_files(tmp_path / "a.csv")
    assert not any(count for _, count in empty_exam.contents().rows)


@pytest.mark.parametrize(
    ("header", "rows", "columns", "systems"),
    [
        ("Frage,Modell,Antwort", ROWS,
         {"question": "Frage", "system": "Modell", "answer": "Antwort"}, RESPONSES),
        ("Frage,Modell,Antwort", ROWS,
         {"query": "Frage", "model": "Modell", "response": "Antwort"}, ["v1", "v2"]),
        ("question,model,text", ROWS, {"answer": "text"}, RESPONSES),
        ("question,model,text", ROWS, {"text": "text"}, ["v1", "v2"]),
        ("question,gpt,mistral", [("Why?", "a", "b"), ("Who?", "c", "d")],
         {"answer": ["gpt", "mistral"]}, ["gpt", "mistral"]),
        ("Topic,Treffer,Wert,Lauf", [("Why not?", "Because.", 0.5, "a")],
         {"question": "Topic", "text": "Treffer", "score": "Wert", "system": "Lauf"}, ["a"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame"])
def test_columns_decide_in_every_kind_of_table(
    tmp_path: Path,
    empty_exam: exampp.Collection,
    header: str,
    rows: Any,
    columns: Any,
    systems: list[str],
    form: str,
) -> None:
    path = tmp_path / f"a.{form}"
    if form == "frame":
        empty_exam.add(pd.DataFrame(rows, columns=header.split(",")), columns=columns)
    else:
        if form == "parquet":
            pl.DataFrame(rows, schema=header.split(","), orient="row").write_parquet(path)
        else:
            path.write_text(table(header, rows) if form == "csv" else objects(header, rows))
        empty_exam.import_files(path, columns=columns)
    assert [one.system for one in empty_exam.systems] == systems


RANKED = table("query_id,passage_id,rank,score", [("1", "p1", 1, 2.5), ("1", "p2", 2, 1.5)])
JUDGED = table("query_id,passage_id,relevance", [("1", "p1", 1), ("1", "p2", 0)])


@pytest.mark.parametrize("stated", [{}, {"role": "qrels"}, {"kind": "qrels"}])
@pytest.mark.parametrize("name", ["judged.csv", "qrels.csv"])
def test_a_table_of_judgments_is_read_under_its_role_and_kind(
    tmp_path: Path, empty_exam: exampp.Collection, stated: Any, name: str
) -> None:
    empty_exam.add(queries={"1": "a b"}, passages={"p1": "x", "p2": "y"})
    (tmp_path / name).write_text(JUDGED)
    report = imported(empty_exam, tmp_path / name, **stated)
    assert {one.kind: one.records for one in report.files} == {"qrels": 2}


@pytest.mark.parametrize("stated", [{}, {"role": "runs"}, {"kind": "run"}])
def test_a_table_of_rankings_is_read_under_its_role_and_kind(
    tmp_path: Path, empty_exam: exampp.Collection, stated: Any
) -> None:
    empty_exam.add(queries={"1": "a b"}, passages={"p1": "x", "p2": "y"})
    (tmp_path / "dense.csv").write_text(RANKED)
    report = imported(empty_exam, tmp_path / "dense.csv", **stated)
    assert {one.kind: one.records for one in report.files} == {"run": 2}
    assert [one.system for one in empty_exam.systems] == ["dense"]


@pytest.mark.parametrize("stated", [{}, {"role": "responses"}, {"kind": "responses"}])
@pytest.mark.parametrize("header", ["query_id,question,model,answer", "query_id,model,answer"])
def test_a_table_of_answers_is_read_under_its_role_and_kind(
    tmp_path: Path, empty_exam: exampp.Collection, stated: Any, header: str
) -> None:
    rows = [(str(QUESTIONS.index(question)), question, *rest) for question, *rest in ROWS]
    if "question" not in header:
        empty_exam.add(queries=dict(zip("01", QUESTIONS, strict=True)))
        rows = [(number, *rest) for number, _, *rest in rows]
    (tmp_path / "a.csv").write_text(table(header, rows))
    report = imported(empty_exam, tmp_path / "a.csv", **stated)
    assert {one.kind: one.records for one in report.files}["responses"] == 4
    assert [one.system for one in empty_exam.systems] == RESPONSES


def test_a_ranking_is_not_read_as_judgments_or_answers(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    empty_exam.add(queries={"1": "a b"}, passages={"p1": "x", "p2": "y"})
    (tmp_path / "a.csv").write_text(RANKED)
    with pytest.raises(InputError, match=r"no column holds the relevance\. Name it: --columns rel"):
        empty_exam.import_files(qrels=[tmp_path / "a.csv"])
    with pytest.raises(InputError, match=r"no column holds the answer\. Name it: --columns answer"):
        empty_exam.import_files(responses=[tmp_path / "a.csv"])
    (tmp_path / "c.csv").write_text("Frage,Antwort\nWhy?,So.\n")
    with pytest.raises(InputError, match=r"columns found: Frage, Antwort; unknown file type"):
        empty_exam.import_files(responses=[tmp_path / "c.csv"])
    (tmp_path / "b.csv").write_text(table("query_id,passage_id,rank,label", [("1", "p1", 1, 2)]))
    report = empty_exam.import_files(tmp_path / "b.csv")
    assert report.remarks == (f"{tmp_path / 'b.csv'}: 1 field not read: rank (1 record)",)


def imported(exam: exampp.Collection, path: Path, **stated: Any) -> exampp.ImportReport:
    role = stated.pop("role", None)
    if role:
        stated[role] = [path]
    return exam.import_files(*(() if role else (path,)), **stated)


def test_columns_of_objects_of_a_known_kind_are_renamed(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "a.jsonl").write_text(objects("nr,narrative,x", [("7", "coral reefs", 1)]))
    empty_exam.import_files(tmp_path / "a.jsonl", columns={"query_id": "nr"})
    assert empty_exam.query_texts() == {"7": "coral reefs"}


@pytest.mark.parametrize("name", ["id", "query_id"])
def test_numbers_of_rows_are_no_ids_of_questions(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    numbered = [(n, *row) for n, row in enumerate(ROWS)]
    (tmp_path / "a.csv").write_text(table(f"{name},question,variant,answer", numbered))
    report = empty_exam.import_files(tmp_path / "a.csv")
    assert len(empty_exam.query_texts()) == 2
    assert f"the column '{name}' numbers the rows" in report.remarks[0]
    # one system was asked the same twice: the ids tell the queries apart
    named = [(f"q{n}", ROWS[0][0], "v3", "x") for n in range(2)]
    (tmp_path / "b.csv").write_text(table(f"{name},question,variant,answer", named))
    empty_exam.import_files(tmp_path / "b.csv")
    assert {"q0", "q1"} <= empty_exam.query_texts().keys()


def test_a_row_without_an_id_has_that_of_its_question(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    rows = [("7", *ROWS[0]), ("", *ROWS[2])]
    (tmp_path / "a.csv").write_text(table("id,question,model,answer", rows))
    empty_exam.import_files(tmp_path / "a.csv")
    assert empty_exam.query_texts() == {"7": QUESTIONS[0]}


def test_items_that_a_model_made_stay_a_bank_unless_models_answer_the_same(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    header = "query_id,question,model,answer"
    (tmp_path / "a.csv").write_text(table(header, [("1", *ROWS[0]), ("2", *ROWS[1])]))
    report = empty_exam.import_files(tmp_path / "a.csv", dry_run=True)
    assert [one.kind for one in report.files] == ["plain-bank"]
    assert "if systems gave the answers, say --as answers" in report.remarks[0]
    rows = [(str(n % 2), *row) for n, row in enumerate(ROWS)]
    (tmp_path / "a.csv").write_text(table(header, rows))
    report = empty_exam.import_files(tmp_path / "a.csv")
    assert {one.kind: one.records for one in report.files} == OF_ANSWERS


def test_columns_that_are_not_used_are_named_once(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "a.csv").write_text(table("question,model,answer,tokens", plus(ROWS, 12)))
    report = empty_exam.import_files(tmp_path / "a.csv")
    assert report.remarks == (f"{tmp_path / 'a.csv'}: 1 field not read: tokens (4 records)",)


def test_an_import_prints_one_line_per_file(tmp_path: Path, exampp_command: Commands) -> None:
    for name in ("a", "b"):
        rows = [(question, f"of {name}", "gold") for question in QUESTIONS]
        (tmp_path / f"{name}.csv").write_text(table("question,response,reference", rows))
    ran = exampp_command("import", tmp_path / "my.exam", tmp_path / "a.csv", tmp_path / "b.csv")
    assert ran.out.splitlines()[:2] == [
        f"{tmp_path / 'a.csv'}: 2 queries, 2 bank questions, 2 answers",
        f"{tmp_path / 'b.csv'}: 2 queries, 2 bank questions, 2 answers",
    ]


# ---- from memory ---------------------------------------------------------------------------------


FRAME = pd.DataFrame(ROWS, columns=["question", "model", "answer"])


@pytest.mark.parametrize(
    "data",
    [FRAME, pl.DataFrame(FRAME), FRAME.to_dict("list"), FRAME.to_dict("records")],
    ids=["pandas", "polars", "lists", "dicts"],
)
def test_a_table_in_memory_is_recognised_as_a_file_is(
    empty_exam: exampp.Collection, data: Any
) -> None:
    assert {one.kind: one.records for one in empty_exam.add(data).files} == OF_ANSWERS
    assert empty_exam.add(responses=data).changes == 0
    assert [one.system for one in empty_exam.systems] == RESPONSES


def test_results_in_memory_name_their_system(empty_exam: exampp.Collection) -> None:
    one = pd.DataFrame({"question": QUESTIONS, "answer": ANSWERS["v1"]})
    assert "pass responses=..." in empty_exam.add(one, dry_run=True).remarks[0]
    with pytest.raises(InputError, match=r"responses, system: the row has no system"):
        empty_exam.add(responses=one)
    empty_exam.add(responses=one, system="v1")
    empty_exam.add(responses={"v2": one})
    hits = pd.DataFrame(CHUNKS, columns=["question", "chunk"])
    empty_exam.add(runs={"bm25": hits})
    assert [one.system for one in empty_exam.systems] == ["bm25", *RESPONSES]
    with pytest.raises(InputError, match="a dict, but not of columns"):
        empty_exam.add({"question": "Why?"})
    with pytest.raises(InputError, match=r"nothing to add\. Pass a table, or one of queries"):
        empty_exam.add()


def test_the_documentation_lists_the_names() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text()
    for role, tiers in SYNONYMS.items():
        names = "; ".join(" ".join(f"`{name}`" for name in tier) for tier in tiers)
        assert f"| `{role}` | {names} |" in text


@pytest.mark.parametrize("name", ["queries.csv", "list.csv", "list.jsonl"])
def test_questions_of_one_word_are_questions(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    rows = [["gravity"], ["photosynthesis"]]
    content = objects("query", rows) if name.endswith("jsonl") else table("query", rows)
    (tmp_path / name).write_text(content)
    empty_exam.import_files(tmp_path / name)
    assert {*empty_exam.query_texts().values()} == {"gravity", "photosynthesis"}


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_question(
    tmp_path: Path, empty_exam: exampp.Collection, value: bool
) -> None:
    (tmp_path / "list.jsonl").write_text(json.dumps({"query": value}) + "\n")
    with pytest.raises(InputError, match=r"list.jsonl:1, query: must be a text"):
        empty_exam.import_files(tmp_path / "list.jsonl")
