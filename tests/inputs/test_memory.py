"""Frames, dicts and iterables: what comes out of memory is what would have come out of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pandas as pd
import polars
import polars as pl
import pyarrow as pa
import pytest

import exampp
from exampp import Collection
from exampp.errors import InputError
from exampp.inputs.officials import read_officials

QUERIES: list[dict[str, Any]] = [
    {"query_id": 7, "text": "Why is the sky blue?"},
    {"query_id": 8, "text": "Bread"},
]
PASSAGES: list[dict[str, Any]] = [
    {"docno": "p1", "text": "Air scatters blue light.", "title": "Sky"},
    {"docno": "p2", "text": "Yeast makes gas \U0001f35e.", "title": None},
]
BANK: list[dict[str, Any]] = [
    {"query_id": 7, "question": "What scatters?", "answer": "air | the air", "weight": 2.0},
    {"query_id": 8, "question": "What makes gas?", "answer": None, "weight": None},
]
RUN = [
    {"qid": 7, "query": "as typed", "docno": "p2", "score": 0.5},
    {"qid": 7, "query": "as typed", "docno": "p1", "score": 1.25},
    {"qid": 8, "query": "as typed", "docno": "p2", "score": 3.0},
]
QRELS = [{"query_id": 7, "doc_id": "p1", "relevance": 2}]
PARTS = ("queries", "passages", "bank", "runs", "judgments")


SHAPES: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "list": list,
    "generator": lambda rows: (row for row in rows),
    "pandas": pd.DataFrame,
    "pandas strings": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "batch": pa.RecordBatch.from_pylist,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "series": lambda rows: dict(pl.DataFrame(rows).to_dict()),
}


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "my.exam") as opened:
        yield opened


def written(exam: Collection, folder: Path, *parts: str) -> dict[str, str]:
    found = {}
    for kind in parts or PARTS:
        path = folder / f"written-{kind}.jsonl" if kind != "bank" else folder / "written.csv"
        exam.export(path, kind)
        found[kind] = path.read_text()
    return found


@pytest.fixture(scope="module")
def from_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the same data as files."""
    folder = tmp_path_factory.mktemp("files")
    rows: dict[str, Iterable[dict[str, Any]]] = {"queries": QUERIES, "passages": PASSAGES}
    for name, some in rows.items():
        text = "".join(json.dumps(row) + "\n" for row in some)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "bank.csv").write_text(
        "query_id,question,answer,weight\n7,What scatters?,air | the air,2\n8,What makes gas?,,\n"
    )
    run = "7 Q0 p1 1 1.25 bm25\n7 Q0 p2 2 0.5 bm25\n8 Q0 p2 1 3.0 bm25\n"
    (folder / "bm25.run").write_text(run)
    (folder / "qrels.txt").write_text("7 0 p1 2\n")
    with Collection.create(folder / "my.exam") as exam:
        exam.import_files(
            *(folder / f"{name}.jsonl" for name in rows),
            folder / "bank.csv",
            folder / "bm25.run",
            folder / "qrels.txt",
        )
        return written(exam, folder)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_added_is_what_files_would_bring(
    shape: str, exam: Collection, tmp_path: Path, from_files: dict[str, str]
) -> None:
    of = SHAPES[shape]
    report = exam.add(
        queries=of(QUERIES),
        passages=of(PASSAGES),
        bank=of(BANK),
        runs={"bm25": of(RUN)},
        qrels=of(QRELS),
    )
    assert written(exam, tmp_path) == from_files
    assert {file.file: file.records for file in report.files} == {
        "queries": 2,
        "passages": 2,
        "bank": 2,
        "qrels": 1,
        "runs['bm25']": 3,
    }
    again = exam.add(queries=of(QUERIES), passages=of(PASSAGES), bank=of(BANK))
    assert again.changes == 0


def test_dicts_are_ids_and_what_they_stand_for(exam: Collection, tmp_path: Path) -> None:
    exam.add(
        queries={7: "Why is the sky blue?", "8": {"text": "Bread"}},
        passages={"p1": "Air scatters.", "p2": {"text": "Yeast.", "title": "Gas"}},
        bank={7: ["What scatters?"], "8": [{"nugget": "gas", "answers": ["CO2", "gas | air"]}]},
        runs={
            "scored": {7: {"p1": 1.5, "p2": 2.5}},
            "listed": {7: ["p2", "p1"], "8": np.array(["p2"])},
        },
        qrels={7: {"p1": 1, "p2": 0}},
        responses={"chat": {7: "Air scatters blue light most."}},
    )
    found = written(exam, tmp_path)
    assert [json.loads(row)["text"] for row in found["queries"].splitlines()] == [
        "Why is the sky blue?",
        "Bread",
    ]
    assert found["bank"].splitlines()[2] == "8,Bread,,gas,CO2 | gas \\| air"
    assert found["runs"].splitlines()[1:] == [
        "7 Q0 p2 1 2.5 scored",
        "7 Q0 p1 2 1.5 scored",
        "7 Q0 p2 1 1.0 listed",
        "7 Q0 p1 2 0.5 listed",
        "8 Q0 p2 1 1.0 listed",
    ]
    assert found["judgments"] == "7 0 p1 1\n7 0 p2 0\n"
    assert found["runs"].splitlines()[0].endswith(" 1 1.0 chat")


def test_ids_stay_what_they_are(exam: Collection, tmp_path: Path) -> None:
    rows = {"id": [2**62, 2**62 + 1, 3], "text": ["a", "b", "c"]}
    exam.add(passages=pd.DataFrame(rows))
    exam.add(passages=[{"id": 2**70, "text": "d"}, {"id": np.int64(9), "text": "e"}])
    exam.add(passages=pd.DataFrame({"id": ["007", "7.0"], "text": ["f", "g"]}, dtype="category"))
    exam.add(
        passages=pl.DataFrame({"id": ["x"], "text": ["h"]}, schema_overrides={"id": pl.Enum(["x"])})
    )
    ids = [
        json.loads(row)["passage_id"]
        for row in written(exam, tmp_path, "passages")["passages"].splitlines()
    ]
    whole = [str(2**62), str(2**62 + 1), "3", str(2**70), "9"]
    assert ids == [*whole, "007", "7.0", "x"]


def test_parts_of_a_dict_may_be_frames(exam: Collection) -> None:
    """As `groupby` gives them: rows, and not the names of their columns."""
    bank = pd.DataFrame({"query_id": ["1", "2", "2"], "question": ["Why?", "How?", "When?"]})
    run = pl.DataFrame({"docno": ["p", "o"], "score": [1.0, 2.0]})
    exam.add(
        queries={"1": "a", "2": "b"},
        passages={"p": "x", "o": "y"},
        bank=dict(iter(bank.groupby("query_id"))),
        runs={"frame": {"1": run}, "dicts": {"1": run.to_dicts()}, "series": {"1": run["docno"]}},
        responses={"mine": [{"query_id": "1", "text": "hello", "run_id": "prod"}]},
    )
    texts = {item.text for entry in exam.bank().texts().entries for item in entry.items}
    assert texts == {"Why?", "How?", "When?"}
    assert {one.system for one in exam.systems} == {"frame", "dicts", "series", "mine"}
    exam.export(exam.path.with_name("all.run"), "runs")
    ranked = [line.split() for line in exam.path.with_name("all.run").read_text().splitlines()]
    found = {(system, passage, rank) for _, _, passage, rank, _, system in ranked}
    assert {("frame", "o", "1"), ("dicts", "o", "1"), ("series", "p", "1")} <= found


def test_what_is_missing_is_missing(exam: Collection, tmp_path: Path) -> None:
    rows = {
        "id": ["p1", "p2"],
        "text": ["a", "b"],
        "year": [1999.0, float("nan")],
        "seen": pd.to_datetime(["2020-01-02", None]),
        "more": [None, pd.NA],
    }
    exam.add(passages=pd.DataFrame(rows))
    first, second = map(json.loads, written(exam, tmp_path, "passages")["passages"].splitlines())
    assert first == {
        "passage_id": "p1",
        "text": "a",
        "year": 1999.0,
        "seen": "2020-01-02 00:00:00",
    }
    assert second == {"passage_id": "p2", "text": "b"}


def two(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an id with gaps": (
        {"queries": two(query_id=[1, None], text=["a", "b"])},
        r"^queries:1, query_id: the id is 1\.0, .*astype\('Int64'\)",
    ),
    "no id": ({"queries": two(query_id=["1", None], text=["a", "b"])}, "^queries:2, query_id: no"),
    "queries of unknown columns": (
        {"queries": two(qq=["1", "2"], body=["a", "b"])},
        "^queries:1, query_id: no id .any of query_id, qid,",
    ),
    "an id twice": (
        {"queries": two(query_id=["1", "1"], text=["a", "b"])},
        "^queries:2, query_id: query '1' was already on line 1",
    ),
    "an index": (
        {"queries": two(query_id=["1"], text=["a"]).set_index("query_id")},
        r"^queries: the index query_id is not a column.*reset_index\(\)",
    ),
    "a column twice": (
        {"queries": pd.DataFrame([["1", "a", "b"]], columns=["query_id", "text", "text"])},
        "^queries, text: duplicate column 'text'",
    ),
    "columns of two lengths": (
        {"queries": {"query_id": ["1", "2"], "text": ["a"]}},
        "^queries: the columns differ in length: query_id 2, text 1",
    ),
    "columns without an order": (
        {"queries": {"query_id": {"1", "2"}, "text": {"a", "b"}}},
        "^queries:1, text: ",
    ),
    "columns of numbers": ({"queries": pd.DataFrame([["1", "a"]])}, "is not a text"),
    "a path": ({"queries": "queries.tsv"}, "^queries: is str.*import_files takes files"),
    "no rows": ({"queries": 3}, "^queries: int has no rows"),
    "nothing": ({}, "^nothing to add"),
    "an empty list": ({"queries": []}, "^queries: there are no rows"),
    "pairs": ({"queries": [("1", "a")]}, "^queries:1: a row is tuple"),
    "a series": ({"queries": pd.Series({"1": "a"})}, "^queries:1: a row is str"),
    "a lazy frame": ({"queries": pl.LazyFrame({"query_id": ["1"]})}, "LazyFrame has no rows"),
    "bytes": ({"queries": [{"query_id": "1", "text": b"a"}]}, "^queries:1, text: .* is bytes"),
    "a number for a text": ({"queries": {"1": 5}}, "^queries:1, text: must be a string"),
    "an unknown column": (
        {"bank": [{"query_id": "1", "question": "Why?", "note": "x"}]},
        "^bank:1, note: unknown column 'note'. Known columns: query_id, ",
    ),
    "a bank without text": ({"bank": [{"query_id": "1"}]}, "^bank:1, question: .*no text"),
    "no system": (
        {"runs": [{"qid": "1", "docno": "p", "score": 1}]},
        r"^runs:1: the row has no system.*runs=\{\"bm25\": frame\}",
    ),
    "a run in place of runs": ({"runs": {"1": {"p": 1.0}}}, r"^runs\['1'\], 'p': must be passages"),
    "no score": (
        {"queries": {"1": "a"}, "runs": {"s": [{"qid": "1", "docno": "p"}]}},
        r"^runs\['s'\]:1, score: neither a rank nor a score",
    ),
    "an endless score": (
        {"queries": {"1": "a"}, "runs": {"s": {"1": {"p": float("inf")}}}},
        r"^runs\['s'\]:1, score: 'inf' is not a finite number",
    ),
    "a passage twice": (
        {"queries": {"1": "a"}, "passages": {"p": "a"}, "runs": {"s": {"1": ["p", "p"]}}},
        r"^runs\['s'\]:2, passage: passage 'p' of query '1' and system 's' was already on line 1",
    ),
    "an unknown query": (
        {"passages": {"p": "a"}, "runs": {"s": {"1": ["p"]}}},
        r"^runs\['s'\]:1, query_id: query '1' is not in the collection",
    ),
    "a set for a ranking": (
        {"queries": {"1": "a"}, "passages": {"p": "a"}, "runs": {"s": {"1": {"p"}}}},
        r"^runs\['s'\], '1': a set has no order",
    ),
    "an item under another query": (
        {"queries": {"1": "a", "2": "b"}, "bank": {"1": [{"qid": "2", "question": "Why?"}]}},
        "^bank, qid: the key is '1', but the row has '2'",
    ),
    "a query under another id": (
        {"queries": {"1": {"query_id": "2", "text": "b"}}},
        "^queries, query_id: the key is '1', but the row has '2'",
    ),
    "half a judgment": ({"queries": {"1": "a"}, "qrels": {"1": {"p": 1.5}}}, "^qrels:1, relevance"),
    "no text in a response": (
        {"queries": {"1": "a"}, "responses": {"chat": {"1": " "}}},
        r"^responses\['chat'\]:1, text: the response is empty",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_argument_and_the_row(case: str, exam: Collection) -> None:
    given, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        exam.add(**given)
    assert not any(count for _, count in exam.contents().rows)


def test_a_generator_that_breaks_leaves_nothing(exam: Collection) -> None:
    def rows() -> Iterator[dict[str, str]]:
        yield {"passage_id": "p1", "text": "a"}
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        exam.add(queries={"1": "a"}, passages=rows())
    assert not any(count for _, count in exam.contents().rows)


def test_bad_rows_can_be_left_out(exam: Collection) -> None:
    rows = [
        {"query_id": "1", "text": "a"},
        ("2", "b"),
        {"query_id": 1.5, "text": "c"},
        {"text": "d"},
    ]
    report = exam.add(queries=rows, on_error="skip")
    assert report.skipped == 3
    assert [error.line for error in report.skipped_first] == [2, 3, 4]
    assert ("queries", 1) in exam.contents().rows


def test_a_dry_run_says_it_and_changes_nothing(exam: Collection) -> None:
    report = exam.add(queries={"1": "a"}, dry_run=True)
    assert report.dry_run
    assert report.changes
    assert not any(count for _, count in exam.contents().rows)


def test_what_is_graded_changes_only_with_update(exam: Collection) -> None:
    bank = {"1": ["Why?"]}
    exam.add(queries={"1": "a"}, passages={"p": "b"}, bank=bank, runs={"s": {"1": ["p"]}})
    exam.grade("draft")
    with pytest.raises(InputError, match="would overwrite graded"):
        exam.add(passages={"p": "another text"})
    assert exam.add(passages={"p": "another text"}, update=True).changes


def test_items_go_into_the_bank_that_is_named(exam: Collection) -> None:
    exam.add(queries={"1": "a"}, bank={"1": ["Why?"]}, bank_name="mine")
    assert [row[0] for row in exam.banks().rows] == ["mine"]


def test_rows_of_a_bank_file_are_what_they_are_in_the_file(exam: Collection) -> None:
    rows = [{"query_id": "1", "query_text": "a", "qid": "i1", "question": "Why?", "choices": {}}]
    report = exam.add(bank=rows)
    assert report.files[0].kind == "questions"
    nested = [
        {"query_id": "2", "query_text": "b", "nuggets": [{"text": "c"}], "qid": "2", "query": "b"}
    ]
    assert exam.add(bank=nested, bank_name="n").files[0].kind == "nuggetizer"


def test_no_library_of_frames_is_loaded(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, exampp\n"
        f"exam = exampp.Collection.create({str(tmp_path / 'a.exam')!r})\n"
        "exam.add(queries={'1': 'a'})\n"
        "print({'pandas', 'polars', 'pyarrow'} & set(sys.modules))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_a_file_of_the_same_name_is_not_what_is_read(
    exam: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").write_text("9\tfrom the file\n")
    (tmp_path / "passages").mkdir()
    exam.add(queries={"1": "a"}, passages={"p": "b"})
    assert [
        json.loads(row)["query_id"]
        for row in written(exam, tmp_path, "queries")["queries"].splitlines()
    ] == ["1"]


def test_columns_of_frames_may_have_names_of_their_own(exam: Collection) -> None:
    frame = pd.DataFrame({"Topic": ["1"], "Narrative": ["a"], "Author": ["ada"]})
    report = exam.add(queries=frame, columns={"query_id": "Topic", "text": "Narrative"})
    assert report.files[0].records == 1
    assert report.remarks == ("queries: columns not read: Author",)
    with pytest.raises(InputError, match=r"no table has the column 'Topics'.*queries: Topic, Narr"):
        exam.add(queries=frame, columns={"query_id": "Topics", "text": "Narrative"})


# ---- officials -----------------------------------------------------------------------------------


SCORES = {"bm25": 0.25, "dense": 0.5, "sparse": 0.25}
RANKS = {"bm25": 2.5, "dense": 1.0, "sparse": 2.5}
ROWS = [{"system": system, "nDCG@10": score} for system, score in SCORES.items()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table of systems and scores."""
    path = tmp_path / "official.tsv"
    path.write_text("system\tnDCG@10\n" + "".join(f"{s}\t{v}\n" for s, v in SCORES.items()))
    return path


@pytest.mark.parametrize(
    "data",
    [
        pandas.DataFrame(ROWS),
        pandas.DataFrame(ROWS)[["nDCG@10", "system"]],
        polars.DataFrame(ROWS),
        polars.DataFrame(ROWS).to_arrow(),
        ROWS,
        iter(ROWS),
        RANKS,
        pandas.DataFrame({"Run_ID": list(RANKS), "Rank": list(RANKS.values())}),
        {"system": list(SCORES), "score": list(SCORES.values())},
        pandas.DataFrame(ROWS).to_dict("series"),
        {"rank": tuple(RANKS.values()), "run": tuple(RANKS)},
        [{"system": s, "measure": "MAP", "value": v} for s, v in SCORES.items()],
        pandas.DataFrame(
            [
                {"run": s, "topic": t, "metric": "MAP", "score": v + d}
                for s, v in SCORES.items()
                for t, d in (("1", 0.1), ("2", -0.1))
            ]
        ),
    ],
    ids=[
        "pandas",
        "other order",
        "polars",
        "arrow",
        "dicts",
        "iterable",
        "ranks",
        "a rank column",
        "a dict of columns",
        "a dict of series",
        "a dict of ranks",
        "a measure",
        "a measure of topics",
    ],
)
def test_rows_are_a_leaderboard(data: object, file: Path) -> None:
    assert read_officials(file) == {"official.tsv": RANKS}
    assert read_officials(data) == {"official": RANKS}


def test_several_have_names(file: Path, tmp_path: Path) -> None:
    given = {"TREC": RANKS, "MAP": polars.DataFrame(ROWS), "file": file}
    assert read_officials(given) == {"TREC": RANKS, "MAP": RANKS, "file": RANKS}
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"bm25": 1}))
    assert read_officials([file, str(other)]) == {"official.tsv": RANKS, "other.json": {"bm25": 1}}
    assert read_officials(sorted(tmp_path.glob("o*"))) == read_officials([file, other])
    assert read_officials(iter([file])) == {"official.tsv": RANKS}
    assert read_officials({"run": ROWS}) == {"run": RANKS}
    assert read_officials(()) == read_officials({}) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"bm25": 0.5}, r"official:1, rank: rank 0\.5 of system 'bm25'.*name the column"),
        (
            pandas.DataFrame({"system": ["a", "a"], "score": [1, 2]}),
            r"official:2.*'a' was already on line 1",
        ),
        (pandas.DataFrame({"system": ["a"], "score": [1], "n": [1]}), r"two columns.*'score', 'n'"),
        (pandas.DataFrame({"team": ["a"], "score": [1]}), r"two columns.*'team', 'score'"),
        (
            pandas.DataFrame({"system": ["a", "b"], "score": [1, None]}),
            r"official:2, score.*number",
        ),
        (
            pandas.DataFrame({"system": ["a"], "score": ["1"]}),
            r"official:1, score: must be a number",
        ),
        (pandas.DataFrame({"system": ["a"], "MRR rank": [1]}), r"may mean ranks or scores"),
        (
            pandas.DataFrame({"system": [7], "score": [1]}),
            "system: '7' is not a system",
        ),
        ({"TREC": {"a": True}}, r"official\['TREC'\]:1, rank: must be a number"),
        (pandas.DataFrame(), "two columns"),
        (None, "official: NoneType has no rows"),
        (0.5, "official: float has no rows"),
    ],
)
def test_what_is_none_is_said(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_officials(data)


def test_leaderboards_of_exampp(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    empty_exam.add(
        queries={"q": "what is it"},
        passages={"p1": "1", "p2": "2", "p3": "3"},
        bank={"q": ["1", "2", "3"]},
        runs={f"s{at}": {"q": [f"p{at}"]} for at in (1, 2, 3)},
    )
    empty_exam.grade(lambda item, passage: 4 * (int(item.text) <= int(passage.text)), name="up")
    empty_exam.grade(lambda item, passage: 4 * (int(item.text) >= int(passage.text)), name="down")
    up, down = empty_exam.grades("up"), empty_exam.grades("down")
    board = down.evaluate(["Cover@5"])
    ranks = {"s1": 1.0, "s2": 2.0, "s3": 3.0}
    for given in (board, board.to_frame(), board.to_polars()):
        assert read_officials(given) == {"official": ranks}
    assert read_officials({"down": board, "other": board}) == {"down": ranks, "other": ranks}
    assert "-1.00" in str(up.correlate(board, ["Cover@5"]))
    with pytest.raises(InputError, match=r"official: several measures: Cover@5, nDCG@5"):
        read_officials(down.evaluate(["Cover@5", "nDCG@5"]))
    with pytest.raises(InputError, match="Cover@5 \u22652, Cover@5 \u22654"):
        read_officials(down.evaluate(["Cover@5"], min_rating=[2, 4]))


@dataclass
class TestCase:
    """As DeepEval has it."""

    __test__ = False
    input: str
    actual_output: str
    retrieval_context: list[str]
    expected_output: str | None = None
    _uuid: str = "u"


class Dataset:
    """As ragas has it: models of pydantic, and two ways to get rows."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def to_list(self) -> list[dict[str, Any]]:
        return self._rows

    def to_pandas(self) -> Any:
        raise NotImplementedError


class Model:
    """A model of pydantic."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def model_dump(self) -> dict[str, Any]:
        return self._values


RAGAS = {"user_input": "why?", "response": "So.", "retrieved_contexts": ["Air is blue."]}


@pytest.mark.parametrize(
    "data",
    [
        [TestCase("why?", "So.", ["Air is blue."])],
        Dataset([RAGAS]),
        [Model(**RAGAS)],
    ],
)
def test_objects_of_programs_are_their_records(empty_exam: Collection, data: object) -> None:
    empty_exam.add(data, system="mine")
    assert [*empty_exam.query_texts().values()] == ["why?"]
    assert {one.system for one in empty_exam.systems} == {"mine", "mine:contexts"}
