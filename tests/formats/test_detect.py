from __future__ import annotations

from pathlib import Path

import pytest
from samples import COMPRESSIONS, file

from exampp.errors import InputError
from exampp.formats.detect import KINDS, detect

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
        ("plain-bank", "queries.csv", '"query_id","nugget","weight"\nq,x,1\n'),
        ("plain-bank", "f", "text;kind;qid\n"),
        ("plain-bank", "f.yaml", "q: [x]"),
        ("plain-bank", "f.yml", "q:\n- a b c d e\n"),
        ("queries", "f", '{"q1": "what is x"}'),
        ("queries", "f", '{\n\n "q1":\n "what is x",\n'),
        ("queries", "f", '{"query_id": "q", "text": "x"}\n{"query_id": "r", "text": "y"}'),
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
        ("qrels", "f", "q1 0 d1 1\nq1 0 d2 -1\n"),
        ("qrels", "f.run", "q1\t0\td1\t1\n"),
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
    assert kind in KINDS
    assert detect(file(tmp_path, content, name)) == kind


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    for name, content, kind in (("a", RUN, "run"), ("collection.tsv", TWO, "passages")):
        data = COMPRESSIONS[ending](content.encode())
        assert detect(file(tmp_path, data, name + ending)) == kind


ALL = ", ".join(KINDS)


@pytest.mark.parametrize(
    ("name", "content", "what", "example"),
    [
        ("f.tsv", TWO, "may hold queries or passages", "queries"),
        ("f.tsv", NUMBERS, "may hold queries or passages or leaderboard", "queries"),
        ("query-collection.tsv", TWO, "may hold queries or passages", "queries"),
        ("f.jsonl", '{"id": "q", "text": "x"}', "may hold queries or passages", "queries"),
        ("f", "free text without any columns", "is of no kind that is known", "run"),
        ("f", "{}", "is of no kind that is known", "run"),
        ("f", '{"a": [1]}', "is of no kind that is known", "run"),
        ("f", '{"a": "x"}\n{"a": "y"}', "is of no kind that is known", "run"),
        ("f", b"SQLite format 3\x00\xff\xfe", "is of no kind that is known", "run"),
        ("f", "[1, 2]", "is of no kind that is known", "run"),
    ],
)
def test_what_cannot_be_told(
    tmp_path: Path, name: str, content: str | bytes, what: str, example: str
) -> None:
    path = file(tmp_path, content, name)
    with pytest.raises(InputError) as caught:
        detect(path)
    assert str(caught.value) == (
        f"{path}: the file {what}. Name its kind, as in `--as {example}` (one of {ALL})"
    )


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
