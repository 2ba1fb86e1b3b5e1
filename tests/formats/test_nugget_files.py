"""Nuggetizer files: vital and okay as weights, and back without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import nuggets
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.formats.nuggets import read_nuggetizer, write_nuggetizer
from exampp.records import BankEntry, Item, item_id

LINE: dict[str, Any] = {
    "query": "What is Python?",
    "qid": "q1",
    "nuggets": [
        {"text": "a programming language", "importance": "vital", "reasoning": "stated"},
        {"text": "used for the web", "importance": "okay"},
        {"text": "named for a circus"},
    ],
    "reasoning_traces": ["stated"],
}


def test_vital_weighs_one_and_okay_half(tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps(LINE) + "\n", "nuggets.jsonl")
    assert detect(path) == "nuggetizer"
    (entry,) = read_nuggetizer(path)
    assert (entry.query_id, entry.query_text) == ("q1", "What is Python?")
    assert entry.extra == {"reasoning_traces": ["stated"]}
    assert [(item.kind, item.text, item.weight) for item in entry.items] == [
        ("nugget", "a programming language", 1.0),
        ("nugget", "used for the web", 0.5),
        ("nugget", "named for a circus", 1.0),
    ]
    assert entry.items[0].item_id == item_id("q1", "a programming language")
    assert entry.items[0].extra == {"importance": "vital", "reasoning": "stated"}


def test_the_query_may_be_an_object_and_its_id_a_number(tmp_path: Path) -> None:
    line = {"query": {"qid": 7, "text": "x"}, "nuggets": [{"text": "y"}]}
    (entry,) = read_nuggetizer(file(tmp_path, json.dumps(line)))
    assert (entry.query_id, entry.query_text) == ("7", "x")
    (entry,) = read_nuggetizer(file(tmp_path, '{"qid": 8, "nuggets": []}'))
    assert entry == BankEntry("8", ())


def test_what_is_written_is_what_nuggetizer_reads(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    write_nuggetizer(path, read_nuggetizer(file(tmp_path, json.dumps(LINE))))
    written = json.loads(path.read_text())
    nuggets = [*LINE["nuggets"][:2], {**LINE["nuggets"][2], "importance": "vital"}]
    assert written == {**LINE, "nuggets": nuggets}


@pytest.mark.parametrize(
    ("nugget", "field", "what"),
    [
        (
            {"text": "y", "importance": "failed"},
            ".importance",
            "'failed' is not vital, okay or avoid",
        ),
        ({"text": "y", "importance": 1}, ".importance", "must be a string"),
        ({"text": " ", "importance": "okay"}, ".text", "the text is blank"),
        ({"importance": "okay"}, ".text", "no `text`"),
        ({"text": "ok"}, "", "nugget 'ok' of query 'q' occurs twice"),
        ("y", "", "must be an object"),
    ],
)
def test_a_bad_nugget_is_left_out_alone(
    tmp_path: Path, nugget: object, field: str, what: str
) -> None:
    line = json.dumps({"qid": "q", "nuggets": [{"text": "ok"}, nugget]})
    path = file(tmp_path, f"\n{line}\n", "n.jsonl")
    error = fault(read_nuggetizer, path)
    assert (error.line, error.field, error.what) == (2, f"nuggets[1]{field}", what)
    skipped = Skipped()
    (entry,) = read_nuggetizer(path, skipped)
    assert [item.text for item in entry.items] == ["ok"]
    assert [str(one) for one in skipped.first] == [str(error)]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"query": "x", "nuggets": []}', "no `qid`"),
        ('{"qid": "q"}', "no `nuggets`"),
        ('{"qid": "q", "nuggets": {}}', "must be a list"),
        ('{"qid": "1", "nuggets": []}', "query '1' was already on line 1"),
        ("[]", "Expected `object`, got `array`"),
        ('{"qid": ', "broken JSON"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, what: str) -> None:
    path = file(tmp_path, f'{{"qid": 1, "nuggets": []}}\n{line}\n', "n.jsonl")
    error = fault(read_nuggetizer, path)
    assert error.line == 2
    assert error.what.startswith(what)
    assert [entry.query_id for entry in read_nuggetizer(path, Skipped())] == ["1"]


def test_a_weight_without_a_word_is_refused(tmp_path: Path) -> None:
    entry = BankEntry("q", (Item("i", "q", "x", "nugget", weight=2.0),))
    with pytest.raises(InputError, match="item 'i' has weight 2"):
        write_nuggetizer(tmp_path / "n.jsonl", [entry])
    assert not (tmp_path / "n.jsonl").exists()


# ---- trec nuggets --------------------------------------------------------------------------------


CONTENT = "52.6\t1\tvital\tHome of the Whopper\n7\t1\tokay\tx\n52.6\t2\tOkay\tover 10,000 places\n"


def nugget(query_id: str, number: str, text: str, weight: float, word: str) -> Item:
    name = f"{query_id}/{number}"
    return Item(name, query_id, text, "nugget", weight=weight, extra={"importance": word})


EXPECTED = [
    BankEntry(
        "52.6",
        (
            nugget("52.6", "1", "Home of the Whopper", 1.0, "vital"),
            nugget("52.6", "2", "over 10,000 places", 0.5, "okay"),
        ),
    ),
    BankEntry("7", (nugget("7", "1", "x", 0.5, "okay"),)),
]


@pytest.mark.parametrize("head", ["", "query_id\tnugget_id\timportance\ttext\n", "\ufeff"])
def test_reading(tmp_path: Path, head: str) -> None:
    path = file(tmp_path, head + CONTENT, "some.txt")
    assert detect(path) == "trec-nuggets"
    assert list(nuggets.read_trec_nuggets(path)) == EXPECTED


def test_an_id_that_names_its_query_stays(tmp_path: Path) -> None:
    (entry,) = nuggets.read_trec_nuggets(file(tmp_path, "7\t7/a\tvital\tx\n"))
    assert entry.items[0].item_id == "7/a"


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        ("7\t2\tvital", "", "3 columns instead of 4 (query, nugget, vital or okay, text)"),
        ("7 2 vital x", "", "1 column instead of 4 (query, nugget, vital or okay, text)"),
        ("7\t2\tgood\tx", "importance", "'good' is not vital, okay or avoid"),
        ("7\t2\tvital\t ", "text", "the column is blank"),
        (" \t2\tvital\tx", "query_id", "the column is blank"),
        ("7\t\tvital\tx", "nugget_id", "the column is blank"),
        ("7\t1\tvital\ty", "", "nugget '7/1' was already on line 1"),
    ],
)
def test_bad_lines_of_trec_nuggets(tmp_path: Path, line: str, field: str, what: str) -> None:
    path = file(tmp_path, f"7\t1\tvital\tx\n\n{line}\n7\t3\tvital\tz\n", "n.tsv")
    error = fault(nuggets.read_trec_nuggets, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    (entry,) = nuggets.read_trec_nuggets(path, Skipped())
    assert [item.text for item in entry.items] == ["x", "z"]
