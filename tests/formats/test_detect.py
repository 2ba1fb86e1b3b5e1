from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from support.samples import COMPRESSIONS, fault, file

from exampp.errors import InputError
from exampp.formats import argue, bank, nuggets, passages, plain_bank, queries, responses, workbench
from exampp.formats.detect import detect, of_role
from exampp.formats.fields import near, nearly, normalize_name
from exampp.formats.format import ROLES, built_in_formats
from exampp.formats.preset import presets
from exampp.formats.read_warnings import collect_warnings

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
        ("queries", "f", '{"query_id": "q", "text": "x", "answerable": true}'),
        ("queries", "answers.jsonl", '{"qid": "q", "query": "x", "is_impossible": false}'),
        ("responses", "f", '{"query_id": "q", "run_id": "s", "text": "x", "answerable": true}'),
        ("responses", "f", '{"query_id": "q", "response": "x", "answerable": true}'),
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
    hint = " or ".join(roles) + (
        ", or name the system with --system" if "responses" in named else ""
    )
    may = " or ".join(sorted(named))
    assert str(caught.value) == f"{path}: {found}; this may be {may}. Name the type: {hint}"
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
            "fields found: query_id, system",
        ),
    ],
)
def test_what_is_of_no_kind(tmp_path: Path, content: str | bytes, found: str) -> None:
    path = file(tmp_path, content, "f")
    with pytest.raises(InputError) as caught:
        detect(path)
    assert str(caught.value).startswith(f"{path}: {found}")
    assert "unknown file type" in str(caught.value)
    if "found" in found:
        assert re.search("--columns |No column holds an answer", str(caught.value))
    else:
        assert str(caught.value).endswith(f"name it, as in --as run: {ALL}")


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("Topic No;Search query", "--columns question='Topic No'"),
        ('"Topic","Gold, old"', "--columns answer='Gold, old'"),
        ("Thema\tFrage\tSprache\tArt", "--columns question=Thema"),
    ],
)
def test_a_table_with_a_header_of_its_own_is_told_of_columns(
    tmp_path: Path, header: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        detect(file(tmp_path, f"{header}\n7{header}\n", "f.csv"))
    assert f"Say what a column holds, as in {hint} (" in str(caught.value)


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


# ---- headers -------------------------------------------------------------------------------------


KNOWN = frozenset({"query_id", "question", "text", "id"})


@pytest.mark.parametrize(
    "name", ["query_id", "Query ID", "query id", "QUERY-ID", "queryId", '"QueryID"']
)
def test_spellings_of_one_name(name: str) -> None:
    assert normalize_name(name) == "query_id"


def test_slips() -> None:
    assert near("querry_id", KNOWN) == "query_id"
    assert near("Quesion", KNOWN) == "question"
    assert near("query_id", KNOWN) is None
    assert near("metadata", KNOWN) is None
    assert nearly(["querry_id", "url", "texts"], KNOWN) == (
        "`querry_id` may mean `query_id`; `texts` may mean `text`"
    )


@pytest.mark.parametrize(
    "header", ["Query ID,Question Text", "query id;question", "queryId\tQuestion-ID\tquestion"]
)
def test_spellings_of_a_bank_s_columns_are_read(tmp_path: Path, header: str) -> None:
    row = "q1,Why?" if "," in header else "q1;Why?" if ";" in header else "q1\t7\tWhy?"
    path = file(tmp_path, f"{header}\n{row}\n", "bank")
    assert detect(path) == "plain-bank"
    (entry,) = plain_bank.read(path)
    assert (entry.query_id, [item.text for item in entry.items]) == ("q1", ["Why?"])


@pytest.mark.parametrize(
    ("content", "slip"),
    [
        ("querry_id,question\nq1,Why?\n", "`querry_id` may mean `query_id`"),
        ('{"querry_id": "q1", "text": "x"}\n', "`querry_id` may mean `query_id`"),
        ('{"Query ID": "q1", "text": "x"}\n', "`Query ID` may mean `query_id`"),
    ],
)
def test_slips_of_a_file_of_no_kind_are_named(tmp_path: Path, content: str, slip: str) -> None:
    with pytest.raises(InputError, match=slip):
        detect(file(tmp_path, content))


def test_slips_are_named_where_the_kind_is_said(tmp_path: Path) -> None:
    path = file(tmp_path, '{"querry_id": "q1", "text": "x"}\n')
    assert "`querry_id` may mean `query_id`" in str(fault(queries.read, path))
    path = file(tmp_path, "querry_id,question\nq1,Why?\n", "bank.csv")
    assert "`querry_id` may mean `query_id`" in str(fault(plain_bank.read, path))
    path = file(tmp_path, "query_id,question,wieght\nq1,Why?,1\n", "bank.csv")
    assert "`wieght` may mean `weight`" in str(fault(plain_bank.read, path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("id\tcontens\np1\tAir.\n", "`contens` may mean `content"),
        ("pasage_id\ttext\np1\tAir.\n", "`pasage_id` may mean `passage_id`"),
        ("id\twords\ttitle\np1\tAir.\tT\n", "unknown column name `words`"),
    ],
)
def test_a_header_with_a_slip_is_never_read_as_data(
    tmp_path: Path, content: str, what: str
) -> None:
    assert what in str(fault(passages.read, file(tmp_path, content)))
    path = file(tmp_path, "querry_id\ttext\nq1\tx\n")
    assert "`querry_id` may mean `query_id`" in str(fault(queries.read, path))


def test_rows_that_look_a_little_like_headers_are_data(tmp_path: Path) -> None:
    rows = "q1\ttext\n7\ttitle\n8\tquestions of text\n"
    assert [one.text for one in queries.read(file(tmp_path, rows))] == [
        "text",
        "title",
        "questions of text",
    ]


@pytest.mark.parametrize(
    ("read", "row", "key"),
    [
        (queries.read, '{"query_id": "q", "text": "x", "subtopic": []}', "subtopics"),
        (passages.read, '{"id": "p", "text": "x", "tittle": "t"}', "title"),
        (plain_bank.read_item_lines, '{"query_id": "q", "question": "x", "modle": "m"}', "model"),
        (
            plain_bank.read_item_lines,
            '{"query_id": "q", "question": "x", "genrator": "m"}',
            "generator",
        ),
        (
            responses.read,
            '{"query_id": "q", "run_id": "s", "text": "x", "reference": []}',
            "references",
        ),
    ],
)
def test_a_key_that_nearly_is_a_known_one_is_remarked_on_once(
    tmp_path: Path, read: Any, row: str, key: str
) -> None:
    path = file(tmp_path, f"{row}\n" + row.replace('"q"', '"r"').replace('"p"', '"r"') + "\n")
    with collect_warnings() as heard:
        assert len(list(read(path))) == 2
    (sentence,) = heard.notes
    assert sentence.startswith(f"{path}:1: the key `")
    assert sentence.endswith(f"is not read; did you mean `{key}`?")


@pytest.mark.parametrize(
    ("read", "line", "said"),
    [
        (
            passages.read_candidates,
            {"query": {"qid": "q1", "txt": "?"}, "candidates": [{"docid": "p", "scores": 1}]},
            [
                "the key `txt` is not read; did you mean `text`?",
                "the key `scores` is not read; did you mean `score`?",
            ],
        ),
        (
            nuggets.read_nuggetizer,
            {"qid": "q1", "query": "?", "nuggets": [{"text": "a", "importence": "okay"}]},
            ["the key `importence` is not read; did you mean `importance`?"],
        ),
        (
            bank.read,
            {"query_id": "q", "items": [{"question_text": "Why?", "gold_answer": ["a"]}]},
            ["the key `gold_answer` is not read; did you mean `gold_answers`?"],
        ),
        (
            argue.read,
            {
                "query_id": "q",
                "title_querry": "x",
                "nugget_bank": [
                    {"question": "Why?", "sub_nuggets": [{"claim": "a", "anwsers": 1}]}
                ],
            },
            [
                "the key `title_querry` is not read; did you mean `title_query`?",
                "the key `anwsers` is not read; did you mean `answers`?",
            ],
        ),
        (
            responses.read,
            {
                "metadata": {"run_id": "a", "topic_id": "q", "narative": "?"},
                "answer": [{"text": "A.", "citation": [0]}],
            },
            [
                "the key `narative` is not read; did you mean `narrative`?",
                "the key `citation` is not read; did you mean `citations`?",
            ],
        ),
        (
            workbench.read,
            [
                "q",
                [
                    {
                        "paragraph_id": "p",
                        "text": "t",
                        "paragraph_data": {"judgements": []},
                        "exam_grade": [],
                        "grades": [{"correctAnswered": True, "self_rating": 3}],
                    }
                ],
            ],
            [
                "the key `exam_grade` is not read; did you mean `exam_grades`?",
                "the key `judgements` is not read; did you mean `judgments`?",
                "the key `self_rating` is not read; did you mean `self_ratings`?",
            ],
        ),
    ],
)
def test_keys_within_a_line_are_remarked_on(
    tmp_path: Path, read: Callable[[Path], Iterable[object]], line: object, said: list[str]
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with collect_warnings() as heard:
        list(read(path))
    assert list(heard.notes) == [f"{path}:1: {sentence}" for sentence in said]


def test_what_is_no_number_or_no_column_is_a_sentence(tmp_path: Path) -> None:
    wrong = {"query": {"qid": "q"}, "candidates": [{"docid": "p", "score": "why"}]}
    found = fault(passages.read_candidates, file(tmp_path, json.dumps(wrong) + "\n"))
    assert "is not a finite number" in str(found)
    for text in ("\x0b\n\x0b\n", "\x1c\n", " \x85 \n"):
        with pytest.raises(InputError):
            detect(file(tmp_path, text))


def test_a_line_of_many_columns_is_refused_at_once() -> None:
    names = [f"c{number}" for number in range(500_000)]
    began = time.process_time()
    assert nearly(["querry", *names], frozenset({"query"})) == "`querry` may mean `query`"
    assert time.process_time() - began < 2
