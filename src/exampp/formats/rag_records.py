"""Files of other programs for RAG systems: a question, what was retrieved, what was answered.

`rag_presets` says in which fields a program keeps these. Files are told by the fields that mark
them: JSON-lines, an array, an object with the records inside, Parquet or Arrow, or a table whose
lists are JSON, Python literals or joined by a mark.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats import columnar, nested
from exampp.formats.headers import plain
from exampp.formats.json_objects import OBJECT
from exampp.formats.lines import OnError, decode_json, read_lines, read_text, text_of, valid_json
from exampp.formats.plain_table import ragged, table_rows
from exampp.formats.rag_presets import ANSWERS, NUMBERED, OWN, OWN_MARKS, PRESETS, Preset
from exampp.formats.rag_traces import TRACES, traces
from exampp.formats.rag_values import Document, digest, documents_of, found, id_of
from exampp.formats.rag_values import text_of as value_text
from exampp.formats.remarks import remark

KINDS = (*PRESETS, *TRACES, ANSWERS)
"""What `--as` calls such files."""
Row = Mapping[str, Any]
_LONGEST_HEADER = 1 << 14
_LONGEST_SYSTEM = 60
_START = 1 << 16
_FIRST_LINES = 500
_INSIDE: Mapping[str, tuple[str, ...]] = {
    **{kind: preset.inside for kind, preset in PRESETS.items() if preset.inside},
    **{kind: how.inside for kind, how in TRACES.items()},
}
"""Where the records are in a file that is one object."""
_ROW: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_OF_TRACES = Preset(
    (), query=("query",), contexts=("contexts",), response=("response",), system=(("system",),)
)


@dataclass(frozen=True, slots=True)
class RagRecord:
    """One question to a RAG system; empty is what the file does not have.

    `system` names what answered, where a file has several systems.
    """

    query_id: str
    query: str
    contexts: tuple[Document, ...] = ()
    response: str = ""
    reference: str = ""
    relevant: tuple[Document, ...] = ()
    system: str = ""


SCORED = ("ragas", "deepeval", ANSWERS)
"""The kinds in whose records the scores of that program stand beside the texts."""


def kind_of(path: str | Path) -> tuple[str | None, bool]:
    """The kind of a file, one of `KINDS` or None, told from the fields of its first record.

    And whether that is sure: answers without what was retrieved may be something else, which
    whoever asks has to rule out.
    """
    with suppress(InputError, OSError, ValueError, RecursionError, csv.Error):
        if (fields := _fields(path)) is None:
            return _wrapped(path), True
        if (kind := _marked(fields)) is not None:
            return kind, True
        names = {"contexts" if NUMBERED.fullmatch(one) else one for one in map(plain, fields)}
        fits = [all(names & some for some in marks) for marks in OWN_MARKS]
        if any(fits):
            return ANSWERS, fits[0]
    return None, True


def _marked(fields: frozenset[str]) -> str | None:
    marked = {kind: preset.marks for kind, preset in PRESETS.items()}
    marked |= {kind: how.marks for kind, how in TRACES.items()}
    for kind, marks in marked.items():
        if all(fields & some for some in marks):
            return kind
    return None


def _fields(path: str | Path) -> frozenset[str] | None:
    """The fields of the first record; None where the file starts an object that goes on."""
    if columnar.name_of(path):
        return frozenset(next(columnar.rows(path))[1])
    head = next(read_lines(path))[1]
    if head.lstrip().startswith(b"{"):
        fields = _first_object(head, path)
        is_record = _marked(fields) or not _container(head.decode(errors="replace"))
        return fields if fields and is_record else None
    if head.lstrip().startswith(b"[") or len(head) > _LONGEST_HEADER:
        return frozenset()
    return frozenset(next(csv.reader([head.decode()], delimiter=_separator(head))))


def _first_object(head: bytes, path: str | Path) -> frozenset[str]:
    with suppress(ValueError, RecursionError):
        return frozenset(OBJECT.decode(valid_json(head.replace(b"NaN", b"null"), path, None)))
    return frozenset()


def _separator(head: bytes) -> str:
    line = head.decode(errors="replace")
    return max("\t,;", key=lambda mark: len(next(csv.reader([line], delimiter=mark))))


def _container(start: str) -> tuple[str, str] | None:
    """(kind, place of the records) that an object which starts so may be of."""
    for kind, places in _INSIDE.items():
        for place in places:
            if nested.may_hold(start, place):
                return kind, place
    return None


def _wrapped(path: str | Path) -> str | None:
    container = _container(_start(path))
    if container is None:
        return None
    kind, place = container
    try:
        _, first = next(nested.records(path, place))
    except StopIteration:
        return kind
    return _marked(frozenset(first)) if isinstance(first, dict) else None


def _start(path: str | Path) -> str:
    lines = (line.decode(errors="replace") for _, line in islice(read_lines(path), _FIRST_LINES))
    return "\n".join(lines)[:_START]


def read(path: str | Path, kind: str, on_error: OnError) -> Iterator[tuple[int, RagRecord]]:
    """The records of a file with their lines; `on_error` takes what has no question, or nothing
    that a system returned, or anything else in one of its fields than it has to have.
    """
    rows = _rows(path, kind, on_error)
    preset = PRESETS.get(kind, OWN if kind == ANSWERS else _OF_TRACES)
    if kind in TRACES:
        rows = traces(TRACES[kind], rows)
    records: list[tuple[int, RagRecord, tuple[str, ...]]] = []
    blanks: list[int] = []
    scores: set[str] = set()
    for number, row in rows:
        scores.update(_numbers(row, preset))
        try:
            record, blank = _record(row, preset)
            records.append((number, record, tuple(_part(row, one) for one in preset.system)))
            blanks += [number] * blank
        except InputError as error:
            on_error(error.at(path, number))
    if blanks:
        what = f"{len(blanks)} contexts have no text and are left out, the first of them here"
        remark(path, blanks[0], what)
    if scores and kind in SCORED:
        what = f"numbers in {', '.join(sorted(scores))} are not read"
        remark(path, None, what)
    columns = zip(*(parts for _, _, parts in records), strict=True)
    differing = [len(set(column)) > 1 for column in columns]
    for number, record, parts in records:
        named = [part for part, differs in zip(parts, differing, strict=True) if differs and part]
        yield number, replace(record, system="/".join(named))


def _numbers(row: Row, preset: Preset) -> Iterator[str]:
    """The fields that hold a number and are not read, as scores of another program are."""
    for name in row.keys() - preset.fields():
        with suppress(ValueError, TypeError):
            float(row[name])
            yield name


def _part(row: Row, paths: tuple[str, ...]) -> str:
    """A part of a system's name, which stands in one column of run files."""
    _, value = found(row, paths)
    text = "_".join(str(value).split()) if isinstance(value, str | int) else ""
    return text if len(text) <= _LONGEST_SYSTEM else f"{text[:30]}_{digest(text)[:8]}"


def _record(row: Row, preset: Preset) -> tuple[RagRecord, int]:
    """The record of a row, and how many of its contexts have no text."""
    place, value = found(row, preset.query)
    if isinstance(value, dict) and "0" in value:
        raise InputError(
            "is a table, column by column",
            field=place,
            mend="Write it record by record, as pandas does by "
            "to_json(FILE, orient='records', lines=True)",
        )
    query = value_text(value, place, asked=True)
    if not query:
        raise InputError(f"no question (any of {', '.join(preset.query)})", field=preset.query[0])
    place, value = found(row, preset.contexts)
    contexts, blank = documents_of(value, place, found(row, preset.ids)[1])
    place, value = found(row, preset.response)
    response = value_text(value, place)
    if not contexts and not response:
        wanted = (*preset.contexts, *preset.response)
        failed = row.get("error")
        raise InputError(
            f"nothing that a system returned (any of {', '.join(wanted)})"
            + (f"; its error is {failed}" if isinstance(failed, str) and failed else ""),
            field=wanted[0],
        )
    place, value = found(row, preset.query_id)
    query_id = id_of(value, place)
    place, value = found(row, preset.reference)
    reference = value_text(value, place)
    place, value = found(row, preset.relevant)
    relevant, no_text = documents_of(value, place)
    record = RagRecord(query_id or digest(query), query, contexts, response, reference, relevant)
    return record, blank + no_text


# ---- rows ----------------------------------------------------------------------------------------


def _rows(path: str | Path, kind: str, on_error: OnError) -> Iterator[tuple[int, Row]]:
    own: Callable[[Row], Row] = _own if kind == ANSWERS else dict
    for number, row in _raw_rows(path, kind, on_error):
        yield number, own(row)


def _own(row: Row) -> Row:
    """A row whose names are spelled in one way, and whose columns of one context each are one."""
    named = {plain(name): value for name, value in row.items()}
    numbered = sorted(
        (int(match[1]), value)
        for name, value in named.items()
        if (match := NUMBERED.fullmatch(name)) and value
    )
    return named | {"contexts": [value for _, value in numbered]} if numbered else named


def _raw_rows(path: str | Path, kind: str, on_error: OnError) -> Iterator[tuple[int, Row]]:
    if columnar.name_of(path):
        yield from columnar.rows(path)
        return
    _, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        is_record = _marked(_first_object(head, path)) == kind
        container = None if is_record or kind not in _INSIDE else _container(_start(path))
        if container is not None:
            yield from _objects(nested.records(path, container[1]), path, on_error)
        else:
            yield from _lines(path, on_error)
        return
    yield from _table(path, kind, _separator(head), on_error)


def _objects(
    values: Iterator[tuple[int, Any]], path: str | Path, on_error: OnError
) -> Iterator[tuple[int, Row]]:
    for number, value in values:
        if isinstance(value, dict):
            yield number, value
        else:
            on_error(InputError("must be an object", file=path, line=number))


def _lines(path: str | Path, on_error: OnError) -> Iterator[tuple[int, Row]]:
    """The objects of JSON-lines; NaN, which Python writes and JSON does not know, is null."""
    for number, line in read_lines(path):
        try:
            yield number, _decoded(line, path, number)
        except InputError as error:
            on_error(error)


def _decoded(line: bytes, path: str | Path, number: int) -> Row:
    try:
        return decode_json(line, _ROW, path, number)
    except InputError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
        with suppress(ValueError, RecursionError):
            value = json.loads(text_of(line, path, number), parse_constant=lambda _: None)
            if isinstance(value, dict):
                return value
        raise


def _table(
    path: str | Path, kind: str, separator: str, on_error: OnError
) -> Iterator[tuple[int, Row]]:
    preset = PRESETS.get(kind, OWN)
    rows = table_rows(read_text(path), separator, path)
    start, names = next(rows)
    names = [name.strip() for name in names]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"the column `{twice}` is there twice", file=path, line=start)
    lists = {*preset.contexts, *preset.ids, *preset.relevant}
    for number, cells in rows:
        if len(cells) != len(names):
            on_error(ragged(len(cells), len(names), path, number))
            continue
        yield (
            number,
            {
                name: _cell(cell, preset.joined) if name in lists or plain(name) in lists else cell
                for name, cell in zip(names, cells, strict=True)
            },
        )


def _cell(text: str, joined: str) -> Any:
    """A list in a cell: as JSON or Python write it, else joined, else the only one."""
    if text.lstrip().startswith("["):
        for read_list in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return read_list(text.strip())
    return text.split(joined) if joined and text else [text]
