"""What a file is: told from its content, or said; and never read as something that it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp

P = exams.PASSAGES


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as opened:
        yield opened


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def lines(collection: exampp.Collection, kind: str) -> list[str]:
    out = collection.path.parent / f"out.{kind}"
    collection.export(out, kind)
    return out.read_text().splitlines()


ANSWERS = '{"query_id": "q1", "text": "Because of the air."}\n'


def test_answers_of_a_system_are_responses(
    collection: exampp.Collection, tmp_path: Path, exampp_command: Commands
) -> None:
    """They have the fields of queries; taken for these, they replaced the texts of all queries."""
    queries = lines(collection, "queries")
    answers = written(tmp_path / "a4.jsonl", ANSWERS)
    ran = exampp_command("import", collection.path, answers)
    assert ran.code == 2
    assert ran.err == (
        f"exampp: {answers}: fields found: query_id, text; that may be queries or responses. Say "
        "what it is: --queries a4.jsonl or --responses a4.jsonl, or name their --system\n"
    )
    ran = exampp_command("import", collection.path, answers, "--system", "foo")
    assert (ran.code, ran.out.splitlines()[0]) == (0, f"{answers}: responses, 1 record")
    assert lines(collection, "queries") == queries
    assert any(line.endswith(" 1 1.0 foo") for line in lines(collection, "runs"))


def test_qrels_of_beir_are_judgments(
    collection: exampp.Collection, tmp_path: Path, exampp_command: Commands
) -> None:
    qrels = written(
        tmp_path / "qrels" / "test.tsv",
        "query-id\tcorpus-id\tscore\nq2\tp4\t1\nq1\tp1\t2\n",
    )
    for option in ("--passages", "--queries"):
        ran = exampp_command("import", collection.path, option, qrels)
        assert ran.code == 2
        assert "test.tsv:1: the columns are query-id, corpus-id, score, which are not" in ran.err
    assert exampp_command("import", collection.path, qrels).code == 0
    assert lines(collection, "judgments") == [
        "q1 0 p1 2",
        "q1 0 p2 1",
        "q1 0 p4 0",
        "q2 0 p3 2",
        "q2 0 p4 1",
    ]


def test_roles_are_said_of_some_files_and_told_of_others(
    tmp_path: Path, exampp_command: Commands
) -> None:
    """Lines of id and text, and MS MARCO's columns without a header, may be several things."""
    path = tmp_path / "my.exam"
    texts = [json.dumps({"id": key, "text": text}) + "\n" for key, text in P.items()]
    files = {
        "topics": "".join(f"{key}\t{text}\n" for key, text in exams.QUERIES.items()),
        "a": "".join(texts[:2]),
        "b": "".join(f"{key}\t{P[key]}\n" for key in ("p3", "p4")),
        "x.run": exams.RUN,
        "y": exams.QRELS,
        "z": "query_id\tquestion\nq1\tWhy?\n",
        "w": ANSWERS,
    }
    for name, content in files.items():
        written(tmp_path / name, content)
    given = {"--queries": "topics", "--bank": "z", "--qrels": "y", "--responses": "w"}
    options = [part for option, name in given.items() for part in (option, tmp_path / name)]
    several = ["--passages", tmp_path / "a", "--passages", tmp_path / "b"]
    named = ["--system", "mine", "--bank-name", "second"]
    ran = exampp_command("import", path, tmp_path / "x.run", *options, *several, *named)
    assert ran.code == 0, ran.err
    kinds = dict(line.split(": ") for line in ran.out.splitlines()[:7])
    assert {Path(name).name: kind.split(",")[0] for name, kind in kinds.items()} == {
        "topics": "queries",
        "a": "passages",
        "b": "passages",
        "x.run": "run",
        "y": "qrels",
        "z": "plain-bank",
        "w": "responses",
    }
    with exampp.Collection.create(tmp_path / "python.exam") as collection:
        report = collection.import_files(
            tmp_path / "x.run",
            queries=[tmp_path / "topics"],
            passages=[tmp_path / "a", tmp_path / "b"],
            banks=[tmp_path / "z"],
            qrels=[tmp_path / "y"],
            responses=[tmp_path / "w"],
            system="mine",
            bank="second",
        )
        assert [str(told) for told in report.differences if told.added] == [
            line for line in ran.out.splitlines() if "(+" in line
        ]
        assert collection.banks().rows[0][0] == "second"
        with pytest.raises(exampp.InputError, match=r"Give one, as in queries=\['topics'\]"):
            collection.import_files(queries="topics")


def test_what_a_name_decides_is_said(tmp_path: Path, exampp_command: Commands) -> None:
    topics = written(tmp_path / "topics.tsv", "1\twhat is x\n")
    ran = exampp_command("import", tmp_path / "my.exam", topics)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == f"{topics}: queries (by its name), 1 record"
    ran = exampp_command("import", tmp_path / "my.exam", "--queries", topics)
    assert ran.out.splitlines()[0] == f"{topics}: queries, 1 record"


def test_the_bank_is_named_with_an_option_of_its_own(
    collection: exampp.Collection, tmp_path: Path, exampp_command: Commands
) -> None:
    bank = tmp_path / "files" / "questions.tsv"
    ran = exampp_command("import", collection.path, bank, "--bank", "second")
    assert ran.code == 2
    assert "second: no such file. --bank takes files; --bank-name names their bank" in ran.err
    assert exampp_command("import", collection.path, bank, "--bank-name", "second").code == 0
    assert exampp_command("import", collection.path).code == 2


def test_exported_queries_are_known_under_any_name(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    collection.export(tmp_path / "q", "queries")
    collection.export(tmp_path / "p", "passages")
    with exampp.Collection.create(tmp_path / "again.exam") as again:
        report = again.import_files(tmp_path / "q", tmp_path / "p")
        assert [file.kind for file in report.files] == ["queries", "passages"]


# ---- queries that a bank names -------------------------------------------------------------------


def test_a_bank_of_an_unknown_query_is_refused(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    before = exams.tables(collection.path)
    typo = written(tmp_path / "typo.tsv", "query_id\tquestion\nq1\tWhy?\nq11\tWhy so?\n")
    with pytest.raises(exampp.InputError, match=r"typo\.tsv, query_id: query 'q11' is not in"):
        collection.import_files(typo)
    assert exams.tables(collection.path) == before
    report = collection.import_files(typo, on_error="skip")
    assert (report.skipped, report.after["queries"]) == (1, 2)
    brought = written(
        tmp_path / "brought.tsv", "query_id\tquery\tquestion\nq11\twhat of it\tWhy so?\n"
    )
    assert collection.import_files(brought).after["queries"] == 3


def test_a_bank_may_come_first(tmp_path: Path) -> None:
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        for name, query in (("one.tsv", "q1"), ("two.tsv", "q2")):
            collection.import_files(written(tmp_path / name, f"qid\tquestion\n{query}\tWhy?\n"))
        assert collection.import_files(*exams.write_files(tmp_path / "f")).after["queries"] == 2


def test_subtopics_keep_the_text_they_have(collection: exampp.Collection, tmp_path: Path) -> None:
    row = {"query_id": "q1", "text": exams.QUERIES["q1"]}
    subtopics = [{"subtopic_id": "s", "text": "The sky / by day"}]
    queries = written(tmp_path / "queries.jsonl", json.dumps({**row, "subtopics": subtopics}))
    bank = written(
        tmp_path / "bank.tsv",
        "query_id\tsubtopic_id\tsubtopic_text\tquestion\nq1\ts\tBy day\tWhy?\n",
    )
    collection.import_files(queries, bank)
    assert collection.import_files(bank, queries).changes == 0
    assert json.loads(lines(collection, "queries")[0])["subtopics"] == subtopics


# ---- where outputs go ----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize(
    "command",
    [
        "export EXAM OUT --format runs",
        "bank export EXAM OUT",
        "bank split EXAM --secret 0.4 --public OUT",
        "evaluate EXAM -m AP --qrels OUT",
        "report EXAM -o OUT",
    ],
)
def test_no_output_lands_on_a_file_of_an_open_collection(
    command: str, ending: str, collection: exampp.Collection, exampp_command: Commands
) -> None:
    collection.grade("draft")
    path = collection.path
    names = {"EXAM": str(path), "OUT": f"{path}{ending}"}
    before = exams.tables(path)
    ran = exampp_command(*(names.get(word, word) for word in command.split()))
    assert ran.code == 2, ran.out
    assert "would be lost" in ran.err
    after = exams.tables(path)
    for table in ("query", "grade", "item"):
        assert after[table] == before[table]
