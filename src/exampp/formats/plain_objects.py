"""Items of a bank as rows of a frame: the columns of a plain table; answers may be lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.json_objects import OBJECT, Fields, identifier, optional_text
from exampp.formats.lines import OnError, decode_json, decode_part, read_lines
from exampp.formats.plain_rows import PlainRow, joined, split
from exampp.formats.plain_table import meanings_of
from exampp.records.items import MODEL

_IDS = frozenset({"query_id", "subtopic_id", "item_id"})


def read_rows(path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield every row; InputError for an unknown column, and for a cell of the wrong type."""
    known: dict[tuple[str, ...], dict[str, str]] = {}
    for number, line in read_lines(path):
        try:
            fields: Fields = decode_json(line, OBJECT, path, number)
            names = tuple(fields)
            if names not in known:
                known[names] = dict(zip(meanings_of(names, path, number), names, strict=True))
            yield _row(number, fields, known[names])
        except InputError as error:
            on_error(error.at(path, number))


def _row(number: int, fields: Fields, columns: dict[str, str]) -> PlainRow:
    cells = {}
    answers: tuple[str, ...] = ()
    for meaning, column in columns.items():
        if bytes(fields[column]) == b"null":
            continue
        if meaning == "answers":
            answers = _texts(decode_part(fields[column], column), column)
        elif meaning == MODEL:
            cells[meaning] = joined(_texts(decode_part(fields[column], column), column))
        elif meaning in _IDS:
            # a blank cell of a table is no id, and none of an item is the id of its content
            blank = bytes(fields[column]) == b'""'
            cells[meaning] = "" if blank else identifier(fields, [column]).strip()
        elif meaning == "weight":
            cells[meaning] = str(decode_part(fields[column], column))
        else:
            cells[meaning] = optional_text(fields, [column])
    return PlainRow(number, cells, answers)


def _texts(value: Any, column: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return split(value)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError("must be a text or a list of texts", field=column)
    return tuple(dict.fromkeys(one.strip() for one in value if one.strip()))
