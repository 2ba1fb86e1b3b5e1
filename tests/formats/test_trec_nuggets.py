"""TREC-style nugget files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.samples import fault, file

from exampp.formats import nuggets
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.records import BankEntry, Item

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
        ("7\t2\tgood\tx", "importance", "'good' is neither vital nor okay"),
        ("7\t2\tvital\t ", "text", "the column is blank"),
        (" \t2\tvital\tx", "query_id", "the column is blank"),
        ("7\t\tvital\tx", "nugget_id", "the column is blank"),
        ("7\t1\tvital\ty", "", "nugget '7/1' was on line 1 already"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, field: str, what: str) -> None:
    path = file(tmp_path, f"7\t1\tvital\tx\n\n{line}\n7\t3\tvital\tz\n", "n.tsv")
    error = fault(nuggets.read_trec_nuggets, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    (entry,) = nuggets.read_trec_nuggets(path, Skipped())
    assert [item.text for item in entry.items] == ["x", "z"]
