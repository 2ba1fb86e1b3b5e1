"""Names of columns and keys: spellings that are the same, and slips that are named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import (
    argue,
    bank,
    nuggets,
    passages,
    plain_bank,
    queries,
    responses,
    workbench,
)
from exampp.formats.detect import detect
from exampp.formats.fields import near, nearly, normalize_name
from exampp.formats.read_warnings import collect_warnings

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
        "`querry_id` is nearly `query_id`; `texts` is nearly `text`"
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
        ("querry_id,question\nq1,Why?\n", "`querry_id` is nearly `query_id`"),
        ('{"querry_id": "q1", "text": "x"}\n', "`querry_id` is nearly `query_id`"),
        ('{"Query ID": "q1", "text": "x"}\n', "`Query ID` is nearly `query_id`"),
    ],
)
def test_slips_of_a_file_of_no_kind_are_named(tmp_path: Path, content: str, slip: str) -> None:
    with pytest.raises(InputError, match=slip):
        detect(file(tmp_path, content))


def test_slips_are_named_where_the_kind_is_said(tmp_path: Path) -> None:
    path = file(tmp_path, '{"querry_id": "q1", "text": "x"}\n')
    assert "`querry_id` is nearly `query_id`" in str(fault(queries.read, path))
    path = file(tmp_path, "querry_id,question\nq1,Why?\n", "bank.csv")
    assert "`querry_id` is nearly `query_id`" in str(fault(plain_bank.read, path))
    path = file(tmp_path, "query_id,question,wieght\nq1,Why?,1\n", "bank.csv")
    assert "`wieght` is nearly `weight`" in str(fault(plain_bank.read, path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("id\tcontent\np1\tAir.\n", "`content` is nearly `contents`"),
        ("pasage_id\ttext\np1\tAir.\n", "`pasage_id` is nearly `passage_id`"),
        ("id\twords\ttitle\np1\tAir.\tT\n", "`words` is no known name of a column"),
    ],
)
def test_a_header_with_a_slip_is_never_read_as_data(
    tmp_path: Path, content: str, what: str
) -> None:
    assert what in str(fault(passages.read, file(tmp_path, content)))
    path = file(tmp_path, "querry_id\ttext\nq1\tx\n")
    assert "`querry_id` is nearly `query_id`" in str(fault(queries.read, path))


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
    tmp_path: Path, read: object, row: str, key: str
) -> None:
    path = file(tmp_path, f"{row}\n" + row.replace('"q"', '"r"').replace('"p"', '"r"') + "\n")
    with collect_warnings() as heard:
        assert len(list(read(path))) == 2  # type: ignore[operator]
    (sentence,) = heard.notes
    assert sentence.startswith(f"{path}:1: the key `")
    assert sentence.endswith(f"is not read; it is nearly `{key}`")


@pytest.mark.parametrize(
    ("read", "line", "said"),
    [
        (
            passages.read_candidates,
            {"query": {"qid": "q1", "txt": "?"}, "candidates": [{"docid": "p", "scores": 1}]},
            [
                "the key `txt` is not read; it is nearly `text`",
                "the key `scores` is not read; it is nearly `score`",
            ],
        ),
        (
            nuggets.read_nuggetizer,
            {"qid": "q1", "query": "?", "nuggets": [{"text": "a", "importence": "okay"}]},
            ["the key `importence` is not read; it is nearly `importance`"],
        ),
        (
            bank.read,
            {"query_id": "q", "items": [{"question_text": "Why?", "gold_answer": ["a"]}]},
            ["the key `gold_answer` is not read; it is nearly `gold_answers`"],
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
                "the key `title_querry` is not read; it is nearly `title_query`",
                "the key `anwsers` is not read; it is nearly `answers`",
            ],
        ),
        (
            responses.read,
            {
                "metadata": {"run_id": "a", "topic_id": "q", "narative": "?"},
                "answer": [{"text": "A.", "citation": [0]}],
            },
            [
                "the key `narative` is not read; it is nearly `narrative`",
                "the key `citation` is not read; it is nearly `citations`",
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
                "the key `exam_grade` is not read; it is nearly `exam_grades`",
                "the key `judgements` is not read; it is nearly `judgments`",
                "the key `self_rating` is not read; it is nearly `self_ratings`",
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
    assert nearly(["querry", *names], frozenset({"query"})) == "`querry` is nearly `query`"
    assert time.process_time() - began < 2
