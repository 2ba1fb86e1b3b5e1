from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import passages
from exampp.formats.lines import Skipped
from exampp.records import Passage


@pytest.mark.parametrize(
    ("row", "passage"),
    [
        ({"_id": "p", "title": "T", "text": "x"}, Passage("p", "x", "T")),
        ({"id": "p", "contents": "x"}, Passage("p", "x")),
        ({"docno": "p", "body": "x", "title": None}, Passage("p", "x")),
        ({"pid": "p", "passage": "x", "docid": "d"}, Passage("p", "x", "", {"docid": "d"})),
        (
            {"docid": "p", "segment": "x", "url": "u", "n": [1, None]},
            Passage("p", "x", "", {"url": "u", "n": [1, None]}),
        ),
        (
            {"paragraph_id": "p", "text": "x", "contents": "y"},
            Passage("p", "x", "", {"contents": "y"}),
        ),
        ({"passage_id": 7, "text": "x"}, Passage("7", "x")),
        (
            {"passage_id": None, "id": -1.5, "text": "x"},
            Passage("-1.5", "x", "", {"passage_id": None}),
        ),
    ],
)
def test_the_keys_of_many_collections(
    tmp_path: Path, row: dict[str, Any], passage: Passage
) -> None:
    assert list(passages.read(file(tmp_path, json.dumps(row)))) == [passage]


@pytest.mark.parametrize("header", ["", "docid\ttext\ttitle\n"])
def test_columns(tmp_path: Path, header: str) -> None:
    path = file(tmp_path, f"\ufeff{header}p1\t x  y\r\n\n p2 \tz\tA title\r\n")
    assert list(passages.read(path)) == [Passage("p1", " x  y"), Passage("p2", "z", "A title")]


@pytest.mark.parametrize(
    ("row", "field", "what"),
    [
        (
            '{"text": "x"}',
            "passage_id",
            "no id (any of passage_id, paragraph_id, pid, _id, id, docno, docid, chunk_id, doc_id, "
            "document_id)",
        ),
        (
            '{"id": "p1"}',
            "text",
            "no text (any of text, passage, segment, contents, body, content, chunk, chunk_text, "
            "passage_text)",
        ),
        (
            '{"id": "p1", "text": null}',
            "text",
            "no text (any of text, passage, segment, contents, body, content, chunk, chunk_text, "
            "passage_text)",
        ),
        ('{"id": "p1", "text": ["x"]}', "text", "must be a string"),
        ('{"id": "p1", "text": " \\n"}', "text", "passage 'p1' has no text"),
        ('{"id": "", "text": "x"}', "id", "the id is blank"),
        (b'{"id": "p1", "text": "x", "url": "\xff"}', "", "not UTF-8 text (byte 35 of the line)"),
        ('{"id": false, "text": "x"}', "id", "must be a string"),
        ('{"id": "p1", "text": "x", "title": 1}', "title", "must be a string"),
        ('{"id": "p0", "text": "y"}', "passage_id", "passage 'p0' was already on line 1"),
        ('{"id": "p0", "text": "x"}', "passage_id", "passage 'p0' was already on line 1"),
        (
            '{"id": "p1" "text": "x"}',
            "",
            "broken JSON (JSON is malformed: expected ',' or '}' (byte 12))",
        ),
        ("p1\tx", "", "broken JSON (JSON is malformed: invalid character (byte 0))"),
        ("[]", "", "Expected `object`, got `array`"),
    ],
)
def test_bad_json_lines(tmp_path: Path, row: str | bytes, field: str, what: str) -> None:
    data = row.encode() if isinstance(row, str) else row
    around = b'{"id": "p0", "text": "x"}\n\n%s\n{"id": "p9", "text": "x"}'
    path = file(tmp_path, around % data)
    error = fault(passages.read, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    skipped = Skipped()
    assert [passage.passage_id for passage in passages.read(path, skipped)] == ["p0", "p9"]
    assert skipped.count == 1


@pytest.mark.parametrize(
    ("row", "field", "what"),
    [
        ("p1 x", "", "1 column instead of 2 or 3 (id, text, title)"),
        ("p1\tx\tt\tu", "", "4 columns instead of 2 or 3 (id, text, title)"),
        ("p1\t ", "text", "passage 'p1' has no text"),
        (" \tx", "column 1", "the passage id is blank"),
        ("p0\tx", "passage_id", "passage 'p0' was already on line 1"),
        (b"p1\t\xff", "", "not UTF-8 text (byte 4 of the line)"),
    ],
)
def test_bad_columns(tmp_path: Path, row: str | bytes, field: str, what: str) -> None:
    data = row.encode() if isinstance(row, str) else row
    path = file(tmp_path, b"p0\tx\n" + data + b"\np9\tx")
    error = fault(passages.read, path)
    assert (error.line, error.field, error.what) == (2, field, what)
    assert [passage.passage_id for passage in passages.read(path, Skipped())] == ["p0", "p9"]


def test_a_line_of_50_megabytes(tmp_path: Path) -> None:
    text = "word " * 10_000_000
    path = file(tmp_path, f'{{"id": "p1", "text": "{text}"}}\n{{"id": "p1", "text": "{text}')
    found = passages.read(path)
    assert next(found) == Passage("p1", text)
    with pytest.raises(InputError) as caught:
        next(found)
    assert str(caught.value) == f"{path}:2: broken JSON (Input data was truncated)"


@pytest.mark.parametrize("key", ["passage_id", "text", "title"])
def test_extra_keys_cannot_hide_the_passage(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError, match="the extra fields of passage 'p' include a reserved name"):
        passages.write(tmp_path / "p.jsonl", [Passage("p", "x", extra={key: "y"})])


def test_a_malformed_escape_in_a_field_that_is_not_read_is_refused(tmp_path: Path) -> None:
    line = '{"query": {"qid": "q"}, "candidates": [], "more": "\\u12"}\n'
    found = fault(passages.read_candidates, file(tmp_path, line))
    assert (found.line, "JSON" in found.what) == (1, True)
