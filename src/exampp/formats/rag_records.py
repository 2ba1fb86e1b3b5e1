"""Files of other programs for RAG systems: a question, what was retrieved, what was answered.

`rag_presets` says in which fields a program keeps these. Files are told by the fields that mark
them: JSON-lines, an array, an object with the records inside, Parquet or Arrow, or a table whose
lists are JSON, Python literals or joined by a mark.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from exampp.formats.rag_presets import (
    ANSWERS,
    MAY_BE_GOLD,
    MAY_BE_REFERENCE,
    NUMBERED,
    OWN,
    OWN_MARKS,
    PRESETS,
    Preset,
)
from exampp.formats.rag_traces import ASKED, SAID, TRACES, traces
from exampp.formats.rag_values import (
    Conversations,
    Document,
    decoded_json,
    digest,
    documents_of,
    found,
    id_of,
    ids_of,
    opened_text,
    texts_of,
)
from exampp.formats.rag_values import text_of as value_text
from exampp.formats.read_warnings import add_warning, count_unused, is_empty

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
    (),
    query=("query",),
    contexts=("contexts",),
    response=("response",),
    system=(("system",),),
    opened=(ASKED, SAID),
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
    references: tuple[str, ...] = ()
    relevant: tuple[Document, ...] = ()
    system: str = ""


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


def read(
    path: str | Path,
    kind: str,
    on_error: OnError,
    columns: Mapping[str, str],
    seen: dict[str, Sequence[str]],
    *,
    is_said: bool,
) -> Iterator[tuple[int, RagRecord]]:
    """Yield the records of a file with their lines.

    `columns` names fields by what they hold; `seen` gets the fields of the file. Unless the user
    says that the file is of this kind (`is_said`), contexts that may be gold are refused.
    `on_error` takes a record without a question or without anything that a system returned, a
    conversation, and a field with a wrong value. A file without fields of a system gives questions
    and references.

    Raises:
        InputError: Contexts or answers may be those of a system or of a data set.
    """
    preset = PRESETS.get(kind, OWN if kind == ANSWERS else _OF_TRACES)
    rows = [*_rows(path, kind, on_error)]
    if kind in TRACES:
        rows = [*traces(TRACES[kind], iter(rows), path)]
    named = {
        name: written
        for name, column in columns.items()
        for written in (plain(column), column)
        if _has(rows, written)
    }
    fields = dict.fromkeys(name for _, row in rows for name in row)
    seen[str(path)] = [*fields, *(columns[name] for name in named)]
    preset = preset.with_columns(named)
    if not (is_said or named) and kind in ("ragas", ANSWERS):
        _refuse_gold(path, rows, preset)
    yield from _named(_records(path, kind, preset, rows, on_error))


def _has(rows: Iterable[tuple[int, Row]], column: str) -> bool:
    return any(found(row, (column,))[0] for _, row in rows)


def _refuse_gold(path: str | Path, rows: Iterable[tuple[int, Row]], preset: Preset) -> None:
    """Refuse contexts, alone or with answers, that may be those of a data set."""
    fields: dict[str, None] = {}
    for paths in (preset.contexts, preset.response, preset.reference, *preset.system):
        fields |= dict.fromkeys(name for _, row in rows if (name := found(row, paths)[0]))
    contexts = [name for name in fields if name in preset.contexts]
    answers = [name for name in fields if name in preset.response]
    is_pair = "context" in contexts and MAY_BE_REFERENCE.issuperset(answers)
    is_pair = is_pair and set(fields) == {*contexts, *answers}
    if contexts and MAY_BE_GOLD.issuperset(contexts) and (not answers or is_pair):
        said = f" and {', '.join(map(repr, answers))}" if answers else ""
        raise InputError(
            f"{', '.join(map(repr, contexts))}{said} may be what a system returned, or the gold "
            "passages and answers of a data set",
            file=path,
            field=contexts[0],
            mend="If a system returned them, say --as answers. If they are gold, say --columns "
            f"reference_contexts={contexts[0]}"
            + (f" --columns reference={answers[0]}" if answers else ""),
        )


Numbered = tuple[int, RagRecord, tuple[str, ...]]


def _records(
    path: str | Path,
    kind: str,
    preset: Preset,
    rows: Iterable[tuple[int, Row]],
    on_error: OnError,
) -> Iterator[Numbered]:
    """Yield the records with their lines and the parts of the names of their systems."""
    conversations = Conversations()
    blanks: list[int] = []
    for number, row in rows:
        fields = _Fields(row, preset)
        try:
            record, blank = _record(fields)
            inside = (row[name] for name in preset.objects() if isinstance(row.get(name), dict))
            for holder in (row, *inside):
                conversations.check(holder, record.query, number)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        parts = tuple(_part(fields.first(one)[1]) for one in preset.system)
        if kind not in TRACES:
            count_unused(path, [*fields.others()])
        blanks += [number] * blank
        yield number, record, parts
    if blanks:
        what = f"{len(blanks)} contexts have no text and are left out, the first of them here"
        add_warning(path, blanks[0], what)


def _named(records: Iterable[Numbered]) -> Iterator[tuple[int, RagRecord]]:
    """Name the systems of records by the parts that differ within the file."""
    records = list(records)
    columns = zip(*(parts for _, _, parts in records), strict=True)
    differing = [len(set(column)) > 1 for column in columns]
    for number, record, parts in records:
        names = [part for part, differs in zip(parts, differing, strict=True) if differs and part]
        yield number, replace(record, system="/".join(names))


def _part(value: Any) -> str:
    """Return a part of a system's name, which stands in one column of run files."""
    text = "_".join(str(value).split()) if isinstance(value, str | int) else ""
    return text if len(text) <= _LONGEST_SYSTEM else f"{text[:30]}_{digest(text)[:8]}"


class _Fields:
    """The fields of a record, and which of them are read."""

    def __init__(self, row: Row, preset: Preset) -> None:
        self.row = row
        self.preset = preset
        self.read: set[str] = set()

    def first(self, paths: Sequence[str]) -> tuple[str, Any]:
        """Return (path, value) of the first of the paths that the record has; see `found`."""
        path, value = found(self.row, paths)
        self.read.add(path)
        return path, value

    def others(self) -> Iterator[str]:
        """Yield the names of the fields that hold something and were not read."""
        for name, value in self.row.items():
            below = [path for path in self.read if path.startswith(f"{name}.")]
            if name in self.read or is_empty(value):
                continue
            if not below or not isinstance(value, dict):
                yield name
                continue
            for key, one in value.items():
                path = f"{name}.{key}"
                is_read = any(other == path or other.startswith(f"{path}.") for other in below)
                if not (is_read or is_empty(one)):
                    yield path


def _record(fields: _Fields) -> tuple[RagRecord, int]:
    """Return the record of a row, and how many of its contexts have no text."""
    preset = fields.preset
    query = _query(fields)
    place, value = fields.first(preset.contexts)
    contexts, blank = documents_of(value, place, fields.first(preset.ids)[1])
    response = _response(fields)
    place, value = fields.first(preset.query_id)
    query_id = id_of(value, place)
    place, value = fields.first(preset.reference)
    references = texts_of(value, place)
    place, value = fields.first(preset.relevant)
    relevant, no_text = documents_of(value, place)
    relevant += tuple((name, "") for name in ids_of(*fields.first(preset.relevant_ids)))
    if not contexts and not response and not _is_of_bank(fields, references or relevant):
        wanted = (*preset.contexts, *preset.response)
        failed = fields.row.get("error")
        raise InputError(
            f"nothing that a system returned (any of {', '.join(wanted)})"
            + (f"; its error is {failed}" if isinstance(failed, str) and failed else ""),
            field=wanted[0],
        )
    record = RagRecord(query_id or digest(query), query, contexts, response, references, relevant)
    return record, blank + no_text


def _is_of_bank(fields: _Fields, references: Any) -> bool:
    """Whether a record is a question with references, and has no field of a system at all."""
    wanted = {one.partition(".")[0] for one in (*fields.preset.contexts, *fields.preset.response)}
    return bool(references) and wanted.isdisjoint(fields.row)


def _query(fields: _Fields) -> str:
    preset = fields.preset
    place, value = fields.first(preset.query)
    if isinstance(value, dict) and "0" in value:
        raise InputError(
            "is a table, column by column",
            field=place,
            mend="Write it record by record, as pandas does by "
            "to_json(FILE, orient='records', lines=True)",
        )
    query = _text(fields, value, place, asked=True)
    if not query:
        known = ", ".join(map(str, fields.row))
        what = f"no question (any of {', '.join(preset.query)}); fields found: {known}"
        raise InputError(what, field=preset.query[0])
    return query


def _response(fields: _Fields) -> str:
    # the first field that is there counts, be it empty: `answer` beside it may be the reference
    for path in fields.preset.response:
        if path in fields.row or found(fields.row, (path,))[0]:
            return _text(fields, fields.first((path,))[1], path)
    return ""


def _text(fields: _Fields, value: Any, place: str, *, asked: bool = False) -> str:
    if (keys := fields.preset.opened) is None or value is None:
        return value_text(value, place, asked=asked)
    return opened_text(value, keys[not asked], place, asked=asked)


# ---- rows ----------------------------------------------------------------------------------------


def _rows(path: str | Path, kind: str, on_error: OnError) -> Iterator[tuple[int, Row]]:
    own: Callable[[Row], Row] = _own if kind == ANSWERS else dict
    for number, row in _raw_rows(path, kind, on_error):
        yield number, own(row)


def _own(row: Row) -> Row:
    """A row whose names are spelled in one way, and whose columns of one context each are one."""
    named = {plain(name): value for name, value in row.items()}
    places = {name: int(match[1]) for name in named if (match := NUMBERED.fullmatch(name))}
    contexts = [named.pop(name) for name in sorted(places, key=places.__getitem__)]
    return named | {"contexts": found} if (found := [*filter(None, contexts)]) else named


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
    objects = preset.objects()
    for number, cells in rows:
        if len(cells) != len(names):
            on_error(ragged(len(cells), len(names), path, number))
            continue
        yield (
            number,
            {
                name: _cell(cell, preset.joined)
                if name in lists or plain(name) in lists
                else decoded_json(cell, name)
                if name in objects
                else cell
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
