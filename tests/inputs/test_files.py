"""Types of files: detected from the content or named, and never mistaken."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp import Collection
from exampp.errors import InputError
from exampp.formats.lines import system_of

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
        f"exampp: {answers}: fields found: query_id, text; this may be queries or responses. Name "
        "the type: --queries a4.jsonl or --responses a4.jsonl, or name the system with --system\n"
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
        assert "test.tsv:1: the columns query-id, corpus-id, score are not" in ran.err
    assert exampp_command("import", collection.path, qrels).code == 0
    assert lines(collection, "judgments") == [
        "q1 0 p1 2",
        "q1 0 p2 1",
        "q1 0 p4 0",
        "q2 0 p3 2",
        "q2 0 p4 1",
    ]


def test_roles_are_said_of_some_files_and_told_of_others(
    tmp_path: Path, empty_exam: exampp.Collection, exampp_command: Commands
) -> None:
    """Lines of id and text, and MS MARCO's columns without a header, may be several things."""
    path = tmp_path / "other.exam"
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
    report = empty_exam.import_files(
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
    assert empty_exam.banks().rows[0][0] == "second"
    with pytest.raises(exampp.InputError, match=r"Pass a list: queries=\['topics'\]"):
        empty_exam.import_files(queries="topics")


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
    with exampp.create(tmp_path / "new.exam") as new:
        report = new.import_files(tmp_path / "q", tmp_path / "p")
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


def test_a_bank_may_come_first(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    for name, query in (("one.tsv", "q1"), ("two.tsv", "q2")):
        empty_exam.import_files(written(tmp_path / name, f"qid\tquestion\n{query}\tWhy?\n"))
    assert empty_exam.import_files(*exams.write_files(tmp_path / "f")).after["queries"] == 2


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
        "export EXAM OUT --format bank",
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
    assert "would be overwritten" in ran.err
    after = exams.tables(path)
    for table in ("query", "grade", "item"):
        assert after[table] == before[table]


# ---- columns -------------------------------------------------------------------------------------


TABLE = (
    "Topic;Gold question;Gold answer;Who\n1;What are reefs?;animals | polyps;ada\n"
    '2;"Bread;\nwhat?";;\n'
)
TOPICS = "Topic,Narrative\n1,coral reefs\n2,bread\n"
COLUMNS = {
    "query_id": "Topic",
    "question": "Gold question",
    "text": "Narrative",
    "answer": "Gold answer",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "topics.csv").write_text(TOPICS)
    return tmp_path


def bank_of(path: Path) -> str:
    with Collection(path) as exam:
        exam.export(path.parent / "written.csv", "bank")
    return (path.parent / "written.csv").read_text()


def test_one_mapping_serves_all_tables(folder: Path, exampp_command: Commands) -> None:
    options = [f"--columns={name}={column}" for name, column in COLUMNS.items()]
    ran = exampp_command(
        "import", folder / "my.exam", folder / "table.csv", folder / "topics.csv", *options
    )
    assert ran.code == 0, ran.err
    assert "topics.csv: queries, 2 records" in ran.out
    assert "table.csv: plain-bank, 2 records" in ran.out
    assert "table.csv: columns not read: Who" in ran.err
    assert bank_of(folder / "my.exam") == (
        "query_id,query_text,question,answer\n1,coral reefs,What are reefs?,animals | polyps\n"
        '2,bread,"Bread;\nwhat?",\n'
    )


def test_the_name_of_the_bank_and_a_dry_run_go_with_it(
    folder: Path, exampp_command: Commands
) -> None:
    table = [folder / "my.exam", folder / "table.csv", "--bank-name", "mine", "--dry-run"]
    columns = ["--columns", "query_id=Topic", "--columns", "question=Gold question"]
    assert exampp_command("import", *table, *columns).code == 0
    assert not (folder / "my.exam").exists()


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "written"),
    [
        ("passages", "Key\tBody\n p1 \ta\n", {"passage_id": "Key", "text": "Body"}, "passages"),
        (
            "run",
            "q,d,s,by\n1,p1,0.5,x\n1,p2,1.5,x\n",
            {"query_id": "q", "passage_id": "d", "score": "s", "system": "by"},
            "runs",
        ),
        (
            "qrels",
            "q,d,r\n1,p1,2\n",
            {"query_id": "q", "passage_id": "d", "relevance": "r"},
            "judgments",
        ),
        (
            "responses",
            "q,by,says\n1,chat,Reefs are animals.\n",
            {"query_id": "q", "system": "by", "text": "says"},
            "runs",
        ),
    ],
)
def test_any_kind_of_table_has_columns(
    kind: str, rows: str, columns: dict[str, str], written: str, tmp_path: Path
) -> None:
    (tmp_path / "table.tsv").write_text(rows)
    with Collection.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"1": "reefs"})
        report = exam.import_files(tmp_path / "table.tsv", columns=columns, unknown_passages="keep")
        assert [file.kind for file in report.files] == [kind]
        exam.export(tmp_path / "out", written)
    found = (tmp_path / "out").read_text()
    expected = {
        "passages": '{"passage_id":"p1","text":"a"}\n',
        "run": "1 Q0 p2 1 1.5 x\n1 Q0 p1 2 0.5 x\n",
        "qrels": "1 0 p1 2\n",
        "responses": " chat\n",
    }
    assert found.endswith(expected[kind])


def test_a_name_or_a_column_that_is_not_there_is_told_with_both_sides(folder: Path) -> None:
    with Collection.create(folder / "my.exam") as exam:
        with pytest.raises(
            InputError, match=r"'qestion'; `qestion` may mean `question`.*query_id,"
        ):
            exam.import_files(folder / "table.csv", columns={"qestion": "Gold question"})
        both = r"'Gold' .given for question.*table\.csv: Topic, Gold question.*query_id, query_text"
        with pytest.raises(InputError, match=both):
            exam.import_files(
                folder / "table.csv", columns={"query_id": "Topic", "question": "Gold"}
            )
        (folder / "short.csv").write_text("Topic,Gold question\n1,Why?\n2\n")
        named = {"query_id": "Topic", "question": "Gold question"}
        with pytest.raises(InputError, match=r"short\.csv:3: 1 cell, but the header has 2"):
            exam.import_files(folder / "short.csv", columns=named)
        assert not any(count for _, count in exam.contents().rows)


@pytest.mark.parametrize("wrong", ["question", "=Topic", "question="])
def test_what_is_no_pair_is_refused(wrong: str, folder: Path, exampp_command: Commands) -> None:
    ran = exampp_command("import", folder / "a.exam", folder / "table.csv", "--columns", wrong)
    assert ran.code == 2
    assert 'as in --columns question="Gold question"' in ran.err


# ---- folders -------------------------------------------------------------------------------------


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(content)
    return path


def runs_of(collection: exampp.Collection) -> list[str]:
    out = collection.path.parent / "out.run"
    collection.export(out, "runs")
    return sorted(out.read_text().splitlines())


RUN = "q1 Q0 p1 1 2.0 tag\nq2 Q0 p3 1 2.0 tag\n"


@pytest.mark.parametrize("said", [True, False])
def test_a_folder_of_runs_names_its_systems(
    tmp_path: Path, exampp_command: Commands, said: bool
) -> None:
    """All of them have the same tag, as runs of one program do."""
    exams.make(tmp_path).close()
    folder = tmp_path / "runs"
    put(folder / "a.v1.run", RUN)
    (folder / "input.b_p.gz").write_bytes(gzip.compress(RUN.encode()))
    put(folder / "c.json", json.dumps({"q1": {"p2": 0.5, "p1": 1.5}}))
    put(folder / "d.tsv", "q1\tp1\t1\nq1\tp2\t2\n" if said else RUN)
    ran = exampp_command(
        "import", tmp_path / "my.exam", *(["--runs"] if said else []), folder, "--update"
    )
    assert ran.code == 0, ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        found = [line for line in runs_of(collection) if line.split()[5] in ("a.v1", "b_p", "c")]
        assert found == [
            "q1 Q0 p1 1 1.5 c",
            "q1 Q0 p1 1 2.0 a.v1",
            "q1 Q0 p1 1 2.0 b_p",
            "q1 Q0 p2 2 0.5 c",
            "q2 Q0 p3 1 2.0 a.v1",
            "q2 Q0 p3 1 2.0 b_p",
        ]
        of_d = [line for line in runs_of(collection) if line.endswith(" d")]
        assert of_d == (
            ["q1 Q0 p1 1 1.0 d", "q1 Q0 p2 2 0.5 d"]
            if said
            else ["q1 Q0 p1 1 2.0 d", "q2 Q0 p3 1 2.0 d"]
        )


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("bm25.run", "bm25"),
        ("bm25.v2.run.gz", "bm25.v2"),
        ("input.p_bert.gz", "p_bert"),
        ("input.p_bert", "p_bert"),
        ("run.res", "run"),
        (".run", ".run"),
        ("plain", "plain"),
    ],
)
def test_what_a_run_file_is_named_after(name: str, system: str) -> None:
    assert system_of(Path(name)) == system


def test_folders_of_runs_that_are_refused(tmp_path: Path, small_exam: exampp.Collection) -> None:
    folder = tmp_path / "runs"
    put(folder / "a.run", RUN)
    put(folder / "a.txt", RUN)
    with pytest.raises(exampp.InputError, match=r"a\.txt: two files .* system: a\.run"):
        small_exam.import_files(runs=[folder])
    (folder / "a.txt").unlink()
    put(folder / "b.run", exams.RUN)
    with pytest.raises(exampp.InputError, match="several systems \\(alpha and beta\\), but"):
        small_exam.import_files(runs=[folder])
    (tmp_path / "empty").mkdir()
    with pytest.raises(exampp.InputError, match="empty: the folder has no files"):
        small_exam.import_files(runs=[tmp_path / "empty"])


def test_text_files_that_hold_runs_are_no_responses(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    put(tmp_path / "out" / "x.txt", RUN)
    report = small_exam.import_files(tmp_path / "out", system="mine")
    assert [one.kind for one in report.files] == ["run"]
    assert "q1 Q0 p1 1 2.0 x" in runs_of(small_exam)


def test_a_folder_of_beir(tmp_path: Path, exampp_command: Commands) -> None:
    folder = tmp_path / "tiny"
    queries = {**exams.QUERIES, "q9": "of the training split"}
    rows = [json.dumps({"_id": k, "text": v, "metadata": {}}) for k, v in queries.items()]
    put(folder / "queries.jsonl", "\n".join(rows))
    rows = [json.dumps({"_id": k, "title": f"T {k}", "text": v}) for k, v in P.items()]
    put(folder / "corpus.jsonl", "\n".join(rows))
    head = "query-id\tcorpus-id\tscore\n"
    put(folder / "qrels" / "test.tsv", f"{head}q1\tp1\t2\nq2\tp3\t1\n")
    put(folder / "qrels" / "train.tsv", f"{head}q9\tp4\t1\n")
    run = put(tmp_path / "bm25.run", "q1 Q0 p2 1 2.0 bm25\n")
    ran = exampp_command("import", tmp_path / "my.exam", folder, run)
    assert ran.code == 0, ran.err
    assert f"{folder}: beir, 4 records" in ran.out
    assert "not imported: train.tsv. Add them with --qrels" in ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        counts = {row[0]: row[1] for row in collection.contents().rows}
        # of the corpus what is judged or ranked, and of the queries what the split judges
        assert (counts["queries"], counts["passages"], counts["judgments"]) == (2, 3, 2)
    put(folder / "qrels" / "dev.tsv", head)
    (folder / "qrels" / "test.tsv").unlink()
    ran = exampp_command("import", tmp_path / "my.exam", folder)
    assert ran.code == 2
    assert "several qrels files: dev.tsv, train.tsv" in ran.err


def test_candidates_bring_the_texts_of_their_queries(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    def line(query: str, text: str, passage: str) -> str:
        found = [{"docid": passage, "score": 1.0, "doc": {"contents": P[passage]}}]
        return json.dumps({"query": {"qid": query, "text": text}, "candidates": found}) + "\n"

    path = put(tmp_path / "bm25.jsonl", line("q1", "other words", "p1") + line("q8", "?", "p2"))
    small_exam.import_files(path)
    small_exam.export(tmp_path / "queries.jsonl", "queries")
    rows = map(json.loads, (tmp_path / "queries.jsonl").read_text().splitlines())
    # what is known stays
    assert {row["query_id"]: row["text"] for row in rows} == {**exams.QUERIES, "q8": "?"}
    assert small_exam.import_files(path).changes == 0


# ---- what responses cite -------------------------------------------------------------------------


def report(run: str, *cited: list[str]) -> str:
    """A report as AutoJudge has it, its documents beside it."""
    return json.dumps(
        {
            "metadata": {"team_id": "t", "run_id": run, "topic_id": "q1"},
            "responses": [{"text": f"Part {n}.", "citations": c} for n, c in enumerate(cited)],
            "documents": {
                "D1": {"id": "D1", "text": P["p1"], "title": "Sky", "url": None},
                "D2": {"id": "D2", "text": P["p2"], "title": None},
                "D3": {"id": "D3", "text": "Nobody cites me."},
            },
        }
    )


def test_what_reports_cite_is_a_system_of_its_own(tmp_path: Path, exampp_command: Commands) -> None:
    exams.make(tmp_path).close()
    path = put(
        tmp_path / "run1.jsonl",
        report("run1", ["D2"], ["D1", "D2"]) + "\n" + report("run2", []) + "\n",
    )
    ran = exampp_command("import", tmp_path / "my.exam", path, "--cited")
    assert ran.code == 0, ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        cited = [line for line in runs_of(collection) if line.endswith(":cited")]
        assert cited == ["q1 Q0 D1 2 0.5 run1:cited", "q1 Q0 D2 1 1.0 run1:cited"]
        collection.export(tmp_path / "passages.jsonl", "passages")
        rows = map(json.loads, (tmp_path / "passages.jsonl").read_text().splitlines())
        texts = {row["passage_id"]: (row.get("title"), row["text"]) for row in rows}
        assert (texts["D1"], texts["D2"]) == (("Sky", P["p1"]), (None, P["p2"]))
        assert "D3" not in texts
        assert collection.import_files(path, cited=True).changes == 0
        # the texts of others are looked up, as those of runs are
        other = put(tmp_path / "other.jsonl", report("run3", ["p3", "lost"]))
        with pytest.raises(exampp.InputError, match="passage 'lost' is not in the collection"):
            collection.import_files(other, cited=True)
        collection.import_files(other)
        assert not any(line.endswith("run3:cited") for line in runs_of(collection))


def test_of_two_texts_of_a_cited_document_the_known_one_stays(
    tmp_path: Path, exampp_command: Commands
) -> None:
    exams.make(tmp_path).close()
    one = put(tmp_path / "one.jsonl", report("run1", ["D1", "D2"]) + "\n")
    other = put(
        tmp_path / "other.jsonl", report("run2", ["D1", "D2"]).replace(P["p1"], "Shorter.") + "\n"
    )
    ran = exampp_command("import", tmp_path / "my.exam", one, other, "--cited")
    assert ran.code == 0, ran.err
    said = f"{other}: the reports quote other texts than the known ones for D1"
    assert said in ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        collection.grade("draft")
        corpus = put(tmp_path / "corpus.jsonl", '{"id": "D1", "text": "Of the corpus."}\n')
        collection.import_files(one, cited=True, corpus=str(corpus))
        # later, too, where the first text is graded
        assert not collection.import_files(other, cited=True).changes
        collection.export(tmp_path / "passages.jsonl", "passages")
        assert P["p1"] in (tmp_path / "passages.jsonl").read_text()
        assert len([line for line in runs_of(collection) if line.endswith("run2:cited")]) == 2


@pytest.mark.parametrize(
    ("name", "line", "other", "what"),
    [
        ("p.jsonl", '{"id": "p1", "text": "a"}', '{"id": "p1", "text": "b"}', "passage"),
        ("p.tsv", "p1\ta", "p1\tb", "passage"),
        ("q.jsonl", '{"query_id": "p1", "text": "a"}', '{"query_id": "p1", "text": "b"}', "query"),
        ("q.csv", "p1,a", "p1,b", "query"),
    ],
)
def test_an_equal_line_counts_once(
    tmp_path: Path, exampp_command: Commands, name: str, line: str, other: str, what: str
) -> None:
    head = {"p.tsv": "passage_id\ttext\n", "q.csv": "query_id,text\n"}.get(name, "")
    option = "--passages" if what == "passage" else "--queries"
    file = tmp_path / name
    exam = tmp_path / "my.exam"
    file.write_text(f"{head}{line}\n{line}\n")
    ran = exampp_command("import", exam, option, file)
    assert ran.code == 0
    assert re.search(rf"{name} +repeated lines skipped +1", ran.out)
    assert re.search(rf"{'passages' if what == 'passage' else 'queries'} +1 ", ran.out)
    # the text must be equal, also after an equal line
    file.write_text(f"{head}{line}\n{line}\n{other}\n")
    ran = exampp_command("import", exam, option, file)
    assert ran.code == 2
    first = 2 if head else 1
    assert f"{what} 'p1' was already on line {first}" in ran.err
