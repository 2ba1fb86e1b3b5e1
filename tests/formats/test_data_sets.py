"""Data sets as they are published: Parquet and Arrow with the columns of BEIR; umbrela's lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import exampp
from exampp.errors import InputError
from exampp.inputs.corpus import find_passages

polars = pytest.importorskip("polars")

QUERIES = [{"_id": "q1", "title": "", "text": "What do plants need?"}]
CORPUS = [
    {"_id": "d1", "title": "Plants", "text": "They need light."},
    {"_id": "d2", "title": "", "text": "Cats sleep."},
]
QRELS = [{"query-id": "q1", "corpus-id": "d1", "score": 1}]
RUN = "q1 Q0 d2 1 2 a\nq1 Q0 d1 2 1 a\n"
JUDGED: list[dict[str, Any]] = [
    {"query": QUERIES[0]["text"], "passage": "They need light.", "judgment": 3},
    {"query": QUERIES[0]["text"], "passage": "Cats sleep.", "judgment": 0, "result_status": 1},
    {"query": "Why?", "passage": "Because.", "judgment": 0, "result_status": 0},
]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    frame = polars.DataFrame(rows)
    if name.endswith(".parquet"):
        frame.write_parquet(path)
    elif name.endswith(".feather"):
        frame.write_ipc(path)
    else:
        frame.write_ipc_stream(path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_beir_in_columns_is_taken_like_its_lines(
    tmp_path: Path, empty_exam: exampp.Collection, ending: str
) -> None:
    (tmp_path / "a.run").write_text(RUN)
    files = [
        write(tmp_path, f"queries.{ending}", QUERIES),
        write(tmp_path, f"corpus.{ending}", CORPUS),
        write(tmp_path, f"test.{ending}", QRELS),
    ]
    report = empty_exam.import_files(*files, tmp_path / "a.run")
    assert {one.kind for one in report.files} == {"queries", "passages", "qrels", "run"}
    empty_exam.export(tmp_path / "out.qrels", "judgments")
    assert (tmp_path / "out.qrels").read_text() == "q1 0 d1 1\n"
    assert empty_exam.query_texts() == {"q1": QUERIES[0]["text"]}
    empty_exam.grade(lambda _, passage: 5 if "light" in passage.text else 0, name="m", kind="query")
    board = empty_exam.grades().evaluate(["Success@2", "Success@1"])
    assert [row.mean for row in board.rows] == [1, 0]


def test_a_corpus_of_parquet_is_looked_up(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    (tmp_path / "a.run").write_text(RUN)
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder, "part-0.parquet", CORPUS[:1])
    write(folder, "part-1.parquet", [{"_id": 7, "title": "", "text": "x"}])
    write(folder, "part-2.parquet", CORPUS[1:])
    queries = write(tmp_path, "queries.parquet", QUERIES)
    report = empty_exam.import_files(queries, tmp_path / "a.run", corpus=str(folder))
    assert report.missing == ()
    found = find_passages(str(folder), {"7", "d1", "none"}, lambda error: pytest.fail(str(error)))
    assert [(one.passage_id, one.title) for one in found] == [("d1", "Plants"), ("7", "")]
    other = write(tmp_path, "other.parquet", [{"x": 1}])
    with pytest.raises(InputError, match=r"no id .*columns found: x"):
        list(find_passages(str(other), {"d1"}, lambda _: None))


def states(exam: exampp.Collection) -> dict[str, Any]:
    table = exam.status()
    (row,) = table.rows
    named = dict(zip(table.headings(), row, strict=True))
    return {name: named[name] for name in ("graded", "unparsed")}


def umbrela(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "judged.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_umbrela_grades_what_has_its_texts(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    (tmp_path / "a.run").write_text(RUN)
    files = (write(tmp_path, "queries.parquet", QUERIES), write(tmp_path, "c.parquet", CORPUS))
    judged = umbrela(tmp_path, *({**one, "model": "gpt-4o", "prediction": "3"} for one in JUDGED))
    report = empty_exam.import_files(*files, tmp_path / "a.run", judged)
    assert [(one.kind, one.records) for one in report.files][-1] == ("umbrela", 3)
    board = empty_exam.grades().evaluate(["Precision@2", "Success@1"], min_rating=3)
    assert [row.mean for row in board.rows] == [0.5, 0]
    # what umbrela could not read is no grade of 0
    assert states(empty_exam) == {"graded": 2, "unparsed": 1}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": "", "passage": "x", "judgment": 1}, "query: the text is blank"),
        ({"query": "x", "passage": ["x"], "judgment": 1}, "passage: must be a string"),
        ({"query": {"qid": "1"}, "passage": "x", "judgment": 1}, "query.text: no `text`"),
        ({**JUDGED[0], "judgment": 2}, "passage: passage 'They need light.' was already on line 1"),
        ({"query": "x", "passage": "x"}, "judgment: missing `judgment`"),
    ],
)
def test_a_fault_in_a_judgment_names_its_line(
    tmp_path: Path, empty_exam: exampp.Collection, row: Any, said: str
) -> None:
    path = umbrela(tmp_path, JUDGED[0], row)
    with pytest.raises(InputError, match=rf"judged.jsonl:2, {said}"):
        empty_exam.import_files(path)
    assert empty_exam.query_texts() == {}


@pytest.mark.parametrize("judgment", [7, "3", None, True, 1.5])
def test_a_judgment_off_the_scale_is_no_grade(
    tmp_path: Path, empty_exam: exampp.Collection, judgment: Any
) -> None:
    path = umbrela(tmp_path, {**JUDGED[0], "judgment": judgment})
    empty_exam.import_files(path)
    assert states(empty_exam) == {"graded": 0, "unparsed": 1}


# ---- data set folder -----------------------------------------------------------------------------


def test_a_data_set_comes_back(
    demo_exam: Path, tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    with exampp.Collection(demo_exam) as exam:
        count = exam.export(tmp_path / "my-set", "beir")
        exam.export(tmp_path / "one.run", "runs")
        exam.export(tmp_path / "one.qrels", "judgments")
        exam.export(tmp_path / "one.bank", "bank")
    folder = tmp_path / "my-set"
    card = (folder / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    named = {one["config_name"]: one["data_files"][0]["path"] for one in head["configs"]}
    assert named.keys() == {"queries", "corpus", "default", "bank"}
    assert all((folder / path).stat().st_size for path in named.values())
    assert count == sum(
        int(line.split("|")[2].replace(",", "")) for line in card.splitlines() if ".jsonl`" in line
        or ".tsv`" in line or ".run` |" in line
    )  # fmt: skip
    empty_exam.import_files(folder, banks=[folder / "bank.jsonl"], runs=[folder / "systems.run"],
                      corpus=str(folder / "corpus.jsonl"))  # fmt: skip
    for name, kind in (("run", "runs"), ("qrels", "judgments"), ("bank", "bank")):
        empty_exam.export(tmp_path / f"two.{name}", kind)
        one, two = ((tmp_path / f"{file}.{name}").read_text() for file in ("one", "two"))
        assert sorted(one.splitlines()) == sorted(two.splitlines())
    with pytest.raises(InputError, match="already exists"):
        empty_exam.export(folder, "beir")
    assert not list(tmp_path.glob(".*"))


def test_what_is_not_there_has_no_file(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    empty_exam.add(queries={"q1": "a"})
    assert empty_exam.export(tmp_path / "set", "beir") == 1
    assert {one.name for one in (tmp_path / "set").iterdir()} == {
        *("README.md", "queries.jsonl", "qrels"),
    }
