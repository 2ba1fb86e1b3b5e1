from __future__ import annotations

from pathlib import Path

import pytest
from support.samples import COMPRESSIONS, file

from exampp.errors import InputError
from exampp.formats.detect import detect, of_role
from exampp.formats.format import ROLES, built_in_formats
from exampp.formats.rag import presets

RUN = "q1 Q0 d1 1 2.5 a\n"
TWO = "1\twhat is x\n2\twhat is y\n"
NUMBERS = "a\t1\nb\t2\n"


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("workbench", "f", '["q1", [{"paragraph_id": "p"}]]\n'),
        ("workbench", "f", ' [ "a\\"b" , [ ]]'),
        ("workbench", "f.run", "[7, [{"),
        ("bank", "f", '{"query_id": "q", "items": []}'),
        ("bank", "queries.jsonl", '{"query_id": "q", "query_text": "x", "questions": [{}]}'),
        ("plain-bank", "f", "query_id\tquestion\n"),
        ("questions", "f", '{"query_id": "q", "query_text": "x", "qid": "q/1", "question": "y"}'),
        ("questions", "f", '{"qid": "q", "question": "y"}'),
        ("questions", "f", '{"qid": "q", "question": "y", "answers": ["z"]}'),
        ("responses", "f", '{"qid": "q", "question": "y", "answer": "z", "run_id": "r"}'),
        ("queries", "f", '{"request_id": "r", "title": "t", "problem_statement": "p"}'),
        ("ranx", "f", '{"q1": {"d1": 1.5, "d2": 1}}'),
        ("ranx", "run.json", '{"q1": {"d1": 2, "d2": 1}}'),
        ("ranx-qrels", "qrels.json", '{"q1": {"d1": 2, "d2": 1}}'),
        ("plain-bank", "queries.csv", '"query_id","nugget","weight"\nq,x,1\n'),
        ("plain-bank", "f", "text;kind;qid\n"),
        ("queries", "f", '{"q1": "what is x"}'),
        ("queries", "f", '{\n\n "q1":\n "what is x",\n'),
        ("queries", "queries.jsonl", '{"query_id": "q", "text": "x"}\n{"query_id": "r"}'),
        ("queries", "f", '{"query_id": "q", "text": "x", "subtopics": []}'),
        ("responses", "answers.jsonl", '{"query_id": "q", "text": "x"}'),
        ("qrels", "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
        ("qrels", "corpus.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
        ("qrels", "f", "qid\titer\tdocno\trel\nq1\t0\td1\t1\n"),
        ("queries", "f", '{"qid": "q", "title": "x", "text": "y"}'),
        ("queries", "queries.jsonl", '{"_id": "q", "text": "x", "metadata": {}}'),
        ("queries", "f", "query_id\ttext\n1\tx\n"),
        ("queries", "queries.dev.tsv", TWO),
        ("queries", "topics.tsv", NUMBERS),
        ("queries", "f", '{"id": "1", "narrative": "x"}'),
        ("queries", "queries.jsonl", '{"_id": "1", "text": "x", "answer": "y", "metadata": {}}'),
        ("responses", "f", '{"query_id": "q", "system": "s", "text": "x"}'),
        ("responses", "f", '{"run_id": "s", "topic_id": "q", "references": [], "answer": []}'),
        ("responses", "f", '{"metadata": {}, "responses": []}'),
        ("candidates", "f", '{"query": {"qid": 1, "text": "x"}, "candidates": []}'),
        ("passages", "f", '{"docid": "q", "text": "x"}'),
        ("passages", "f", '{"_id": "q", "title": "t", "text": "x"}'),
        ("passages", "f", '{"id": "q", "contents": "x"}\n{"id": "r", "contents": "x"}\n'),
        ("passages", "corpus.jsonl", '{"_id": "q", "text": "x"}'),
        ("passages", "f", "docid\ttext\n1\tx\n"),
        ("passages", "collection.tsv", TWO),
        ("passages", "f", "1\tx\tA title\n2\ty\tB\n"),
        ("passages", "my-passages.tsv", "1\ta b 3 2.5 c\n"),
        ("run", "f", RUN),
        ("run", "queries.txt", "\ufeff\n q1\tQ0\td1\t1\t2.5\ta\r\n"),
        ("run", "broken.run", "q1 Q0 d1 1 2.5\n"),
        ("run", "f", "q1 Q0 d1 1 nan a\n"),
        ("run", "bm25.run", "q1\td1\t1\nq1\td2\t2\n"),
        ("qrels", "qrels.dev.tsv", "q1\td1\t1\nq1\td2\t0\n"),
        ("qrels", "f", "q1 0 d1 1\nq1 0 d2 -1\n"),
        ("qrels", "f.run", "q1\t0\td1\t1\n"),
        ("qrels", "f", "q1 0 d1 1.0\nq1 0 d2 0.0\n"),
        ("qrels", "f", "q1\tQ0\td1\t0.5\n"),
        ("leaderboard", "f", "a 101 ndcg 1.0\na 101 map 0.5\n"),
        ("qrels", "qrels.dl19.txt", "q1 0 d1 1\nq1 0 d2\n"),
        ("leaderboard", "f", '{\n "a": 1,\n "b": 2.5\n}'),
        ("leaderboard", "f", '{"a": 1}'),
        ("leaderboard", "f", "system\trank\na\t1\n"),
        ("leaderboard", "f", "run\tndcg\na\t0.5\n"),
        ("leaderboard", "f", "a,1\nb,2\n"),
        ("leaderboard", "f", "a 1\nb 2\n"),
        ("leaderboard", "leaderboard.tsv", NUMBERS),
    ],
)
def test_detect(tmp_path: Path, kind: str, name: str, content: str) -> None:
    assert detect(file(tmp_path, content, name)) == kind


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    for name, content, kind in (("a", RUN, "run"), ("collection.tsv", TWO, "passages")):
        data = COMPRESSIONS[ending](content.encode())
        assert detect(file(tmp_path, data, name + ending)) == kind


DETECTED = sorted(one.name for one in built_in_formats().values() if one.shapes or one.sniff)
ALL = ", ".join((*DETECTED, *presets()))


@pytest.mark.parametrize(
    ("name", "content", "found", "kinds"),
    [
        ("f.tsv", TWO, "2 columns without names, first line: '1\\twhat is x'", "queries passages"),
        (
            "f.tsv",
            NUMBERS,
            "2 columns without names, first line: 'a\\t1'",
            "queries passages leaderboard",
        ),
        (
            "query-collection.tsv",
            TWO,
            "2 columns without names, first line: '1\\twhat is x'",
            "queries passages",
        ),
        (
            "f.tsv",
            "q1\td1\t1\nq1\td2\t0\n",
            "3 columns without names, first line: 'q1\\td1\\t1'",
            "passages run qrels",
        ),
        ("f.jsonl", '{"id": "q", "text": "x"}', "fields found: id, text", "queries passages"),
        ("a4", '{"query_id": "q", "text": "x"}', "fields found: query_id, text", "R queries"),
        ("f", '{"qid": 1, "query": "x", "answer": "y"}', "fields found: qid, query, answer", "R Q"),
    ],
)
def test_what_may_be_several_kinds(
    tmp_path: Path, name: str, content: str, found: str, kinds: str
) -> None:
    path = file(tmp_path, content, name)
    named = kinds.replace("R", "responses").replace("Q", "queries").split()
    with pytest.raises(InputError) as caught:
        detect(path)
    roles = [f"--{role} {name}" for role in ROLES if {*of_role(role)} & {*named}]
    hint = " or ".join(roles) + (", or name their --system" if "responses" in named else "")
    may = " or ".join(sorted(named))
    assert str(caught.value) == f"{path}: {found}; that may be {may}. Say what it is: {hint}"
    for role in ROLES:
        if role in named:
            assert detect(path, role) == role
    if "responses" in named:
        assert detect(path, system=True) == "responses"


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ('{"qid": 1, "question": "x", "answer": "y"}', {"bank": "questions", "responses": ""}),
        ('{"q1": {"d1": 2, "d2": 1}}', {"runs": "ranx", "qrels": "ranx-qrels"}),
    ],
)
def test_what_only_a_role_decides(tmp_path: Path, content: str, kinds: dict[str, str]) -> None:
    path = file(tmp_path, content, "f")
    with pytest.raises(InputError) as caught:
        detect(path)
    for role, kind in kinds.items():
        assert f"--{role} f" in str(caught.value)
        assert detect(path, role) == (kind or role)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("free text without any columns", "first line: 'free text without any columns'"),
        ("{}", "first line: '{}'"),
        ('{"a": [1]}', "fields found: a"),
        ('{"a": "x"}\n{"a": "y"}', "fields found: a"),
        ("[1, 2]", "first line: '[1, 2]'"),
        ("system\tquery_id\ttext\na\tq1\tx\n", "columns found: system, query_id, text"),
        (
            '{"query_id": "q", "system": "s"}',
            "fields found: query_id, system; that is of no kind that is known; nearest: responses "
            "(query_id, system, text), queries (query_id, text)",
        ),
    ],
)
def test_what_is_of_no_kind(tmp_path: Path, content: str | bytes, found: str) -> None:
    path = file(tmp_path, content, "f")
    with pytest.raises(InputError) as caught:
        detect(path)
    assert str(caught.value).startswith(f"{path}: {found}")
    assert "that is of no kind that is known" in str(caught.value)
    assert str(caught.value).endswith(f"say which, as in --as run: {ALL}")


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("Topic No;Search query", "--columns query_id='Topic No'"),
        ('"Topic","Gold, old"', "--columns query_id=Topic"),
        ("Thema\tFrage\tSprache\tArt", "--columns query_id=Thema"),
    ],
)
def test_a_table_with_a_header_of_its_own_is_told_of_columns(
    tmp_path: Path, header: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        detect(file(tmp_path, f"{header}\n7{header}\n", "f.csv"))
    assert str(caught.value).endswith(f". Columns of other names: {hint}")


def test_an_array_of_objects_is_what_its_objects_are(tmp_path: Path) -> None:
    array = '[\n {"docno": "d1", "contents": "x"},\n {"docno": "d2", "contents": "y"}]'
    assert detect(file(tmp_path, array, "f.json")) == "passages"
    assert detect(file(tmp_path, '[{"qid": "q", "docid": "d", "rank": 1}]', "g.json")) == "run"


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the file is empty"):
        detect(file(tmp_path, "\n \n"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("dl19/graded.jsonl.gz", "workbench"),
        ("llmjudge/test-graded.jsonl.gz", "workbench"),
        ("dl19/questions.jsonl.gz", "bank"),
        ("car-y3/nuggets.jsonl.gz", "bank"),
        ("dl19/queries.json", "queries"),
        ("dl20/queries.json", "queries"),
        ("dl19/official-leaderboard.json", "leaderboard"),
        ("dl19/expected/qrels-best-rating.qrels", "qrels"),
    ],
)
def test_real_files(shared_data: Path, path: str, kind: str) -> None:
    assert detect(shared_data / path) == kind
