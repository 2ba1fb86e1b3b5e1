"""TREC-style nugget files: `query_id nugget_id vital|okay text`, separated by tabs.

The weights are those of `importance`. An item's id is `query_id/nugget_id`, since nuggets are
numbered anew for every query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief, weight_of
from exampp.formats.format import FirstRecords, Format
from exampp.formats.lines import (
    Key,
    OnError,
    encode_text,
    parse_lines,
    raise_error,
    read_lines,
    text_of,
)
from exampp.formats.output import writing
from exampp.records import BankEntry, Item
from exampp.records.items import WEIGHTS, importance_of

_COLUMNS = 4
_HEADS = ("query_id", "qid", "topic_id", "topic")


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield one entry per query, in the order of their first nuggets.

    A first line that names the columns is skipped. InputError for a line that does not have four
    columns, a blank id or text, another importance than vital and okay, and a nugget id that
    occurs twice in its query.
    """
    start = next(read_lines(path))[0]

    def parse(line: bytes, number: int) -> Item | None:
        columns = text_of(line, path, number).split("\t")
        is_header = number == start and columns[0].strip().lower() in _HEADS
        return None if is_header else _item(columns)

    by_query: dict[str, list[Item]] = {}
    key = Key(lambda item: item.item_id, lambda item: f"nugget {brief(item.item_id)}")
    for item in parse_lines(path, on_error, parse, key):
        by_query.setdefault(item.query_id, []).append(item)
    for query_id, items in by_query.items():
        yield BankEntry(query_id, tuple(items))


def _item(columns: list[str]) -> Item:
    if len(columns) != _COLUMNS:
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 4 "
            "(query, nugget, vital or okay, text)",
            mend="Separate them by one tab each",
        )
    query_id, nugget_id, importance, text = (column.strip() for column in columns)
    for name, value in (("query_id", query_id), ("nugget_id", nugget_id), ("text", text)):
        if not value:
            raise InputError("the column is blank", field=name)
    own = nugget_id if nugget_id.startswith(f"{query_id}/") else f"{query_id}/{nugget_id}"
    weight = weight_of(importance, "importance")
    extra = {"importance": importance.lower()}
    return Item(own, query_id, text, "nugget", weight=weight, extra=extra)


def _is_column(text: str) -> bool:
    return text == text.strip() and "\t" not in text and text.splitlines() == [text]


def write(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write nuggets, one a line.

    InputError for what a line cannot say: a question, a known answer, a subtopic, a weight that is
    neither vital (1) nor okay (0.5), a text with a tab or a line end.
    """
    with writing(path) as stream:
        for entry in entries:
            for item in entry.items:
                word = importance_of(item.weight)
                parts = (item.query_id, item.item_id.removeprefix(f"{item.query_id}/"), item.text)
                is_plain = item.kind == "nugget" and not item.answers and item.subtopic_id is None
                if word is None or not is_plain or not all(map(_is_column, parts)):
                    raise InputError(
                        f"item {brief(item.item_id)} cannot be a line of TREC nuggets, which are "
                        "vital or okay, of one line, and without known answers and subtopics",
                        file=path,
                        mend="Write the bank as JSON-lines or CSV",
                    )
                line = f"{parts[0]}\t{parts[1]}\t{word}\t{parts[2]}\n"
                stream.write(encode_text(line, path))


def _sniff(sample: FirstRecords) -> bool:
    if sample.is_json or sample.widths("\t") != {4}:
        return False
    words = [columns[2].strip().lower() for columns in sample.columns("\t")]
    return set(words) <= {*WEIGHTS} or (len(words) > 1 and set(words[1:]) <= {*WEIGHTS})


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error),
    write,
    _sniff,
    name="trec-nuggets",
    file_name=r"nuggets\.(txt|tsv)$",
    looks="query, nugget id, vital or okay, text, separated by tabs",
    source="TREC",
    lossless="yes",
)
