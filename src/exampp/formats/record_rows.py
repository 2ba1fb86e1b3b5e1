"""Rows of any file: lines of JSON, records inside objects, tables, columns as lists."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.columns import Row, names_of, roles_of
from exampp.formats.fields import normalize_name
from exampp.formats.format import built_in_formats
from exampp.formats.json_values import JSON_OBJECT, OBJECT
from exampp.formats.lines import (
    OnError,
    decode_json,
    elements_at,
    raise_error,
    read_documents,
    read_lines,
    read_text,
    text_of,
    valid_json,
)
from exampp.formats.literals import literal
from exampp.formats.preset import (
    OUTER,
    Paths,
    has_system_columns,
    is_readable,
    known_places,
    record_names,
)
from exampp.formats.ranklib import is_ranklib, judgment_rows
from exampp.formats.read_warnings import note_place
from exampp.formats.tables import named_rows

_LONGEST_HEADER = 1 << 14
_BEFORE = 4
"""Records after the first that are looked at to recognise a file."""
_DEEPEST = 5
"""Depth of objects and lists in which records are searched."""


class Cells(dict[str, Any]):
    """A row of a table; its lists and objects are texts."""


def is_text_table(path: str | Path) -> bool:
    """Return whether a file of text starts with names of columns, and not with JSON."""
    return not next(read_lines(path))[1].lstrip().startswith((b"{", b"["))


def first_record(path: str | Path) -> Row:
    """Return the first record of a file; of a table a record with its columns.

    A line before the records, such as the settings of a run, is passed over if it is of no format.
    """
    rows = raw_rows(path, raise_error, is_sample=True)
    first = next(rows)[1]
    if isinstance(first, Cells) or _is_record(first):
        return first
    with suppress(InputError):
        return next((row for _, row in islice(rows, _BEFORE) if is_readable(row)), first)
    return first


def first_columns(path: str | Path) -> list[str]:
    """Return the columns of a table, or the fields of its first record."""
    return [name for name in first_record(path) if name != OUTER]


def raw_rows(
    path: str | Path, on_error: OnError, places: Paths = (), *, is_sample: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a file with their lines, from any program.

    Records inside an object are at one of `places`, at the place of a known program, or in its only
    list of records that a preset reads. Their field `$` has the fields of the objects around them.
    With `is_sample`, a table's first row is its header.
    """
    lines = read_lines(path)
    first = next(lines)
    if is_ranklib(first[1]):
        named = judgment_rows(path, chain([first], lines), on_error)
        yield from ((number, Cells(row)) for number, row in named)
        return
    if not first[1].lstrip().startswith((b"{", b"[")):
        yield from _table(path, first[1], on_error, places, is_sample=is_sample)
        return
    place_of = _cached(path, places)
    if _is_document(first, path):
        rows = _rows_of_document(path, place_of)
    else:
        rows = _rows_of_lines(path, chain([first], lines), place_of, on_error)
    for number, row in rows:
        if isinstance(row, dict):
            yield number, row
        else:
            on_error(InputError("must be an object", file=path, line=number))


def _is_document(first: tuple[int, bytes], path: str | Path) -> bool:
    """Return whether a file is an object on several lines."""
    head = first[1].rstrip()
    if not head.lstrip().startswith(b"{") or not head.endswith((b"{", b"[", b",", b":")):
        return False
    with suppress(ValueError, RecursionError):
        OBJECT.decode(valid_json(head.replace(b"NaN", b"null"), path, None))
        return False
    return True


def _rows_of_document(
    path: str | Path, place_of: Callable[[Row], str]
) -> Iterator[tuple[int, Any]]:
    for line_at, text, start, value in read_documents(path):
        for at, row in _rows_in(value, text, start, place_of):
            yield line_at(at), row


def _rows_of_lines(
    path: str | Path,
    lines: Iterable[tuple[int, bytes]],
    place_of: Callable[[Row], str],
    on_error: OnError,
) -> Iterator[tuple[int, Any]]:
    for number, line in lines:
        try:
            value = _decoded(line, path, number)
            text = "" if not place_of(value) else text_of(line, path, number)
            yield from ((number, row) for _, row in _rows_in(value, text.lstrip(), 0, place_of))
        except InputError as error:
            on_error(error)


def _rows_in(
    value: Any, text: str, start: int, place_of: Callable[[Row], str]
) -> Iterator[tuple[int, Any]]:
    """Yield the records in a value with their offsets."""
    columns = _rows_of_columns(value) if isinstance(value, dict) else None
    place = place_of(value) if isinstance(value, dict) and columns is None else ""
    if columns is not None:
        yield from ((start, row) for row in columns)
    elif place:
        for at, row, outer in elements_at(text, start, place.split(".")):
            yield at, {**row, OUTER: outer} if isinstance(row, dict) else row
    else:
        yield start, value


def _rows_of_columns(value: Row) -> list[Row] | None:
    """Return the rows of a table that is written column by column; None for other objects.

    These are `columns` and `data`, and a list, or an object of numbered values, for every column.
    """
    names, data = value.get("columns"), value.get("data")
    if rows := _rows_of_maps(value):
        return rows
    if isinstance(names, list) and isinstance(data, list) and data:
        if all(isinstance(row, list) and len(row) == len(names) for row in data):
            return [dict(zip(map(str, names), row, strict=True)) for row in data]
        return None
    questions = {*names_of("question"), "inputs"}
    named = [name for name in value if normalize_name(name) in questions]
    columns = {name: _column(one) for name, one in value.items()}
    is_table = len({len(column) for column in columns.values()}) == 1 < len(value)
    if is_table and named and all(isinstance(one, str) for one in columns[named[0]] or [0]):
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    inside = (_rows_below(value, name) for name, one in value.items() if isinstance(one, dict))
    found = next(filter(None, inside), None)
    return found if found and not _is_record(value) else None


def _rows_below(value: Row, name: str) -> list[Row] | None:
    """Return the rows of a table that is written column by column in a field of an object."""
    rest = {key: one for key, one in value.items() if key != name}
    return [{**row, OUTER: rest} for row in _rows_of_columns(value[name]) or ()]


def _rows_of_maps(value: Row) -> list[Row]:
    """Return the queries of an object with maps of `queries`, a `corpus` and `relevant_docs`."""
    queries, corpus = value.get("queries"), value.get("corpus")
    relevant = next((value[one] for one in ("relevant_docs", "qrels") if one in value), None)
    if not isinstance(queries, dict) or not isinstance(relevant, dict):
        return []
    texts = corpus if isinstance(corpus, dict) else {}
    named = {str(one) for docs in relevant.values() for one in _keys(docs)}
    used = ("queries", "relevant_docs", "qrels")
    others = {key: one for key, one in value.items() if key not in used}
    others["relevant_docs"] = {key: one for key, one in relevant.items() if key not in queries}
    others["corpus"] = {key: one for key, one in texts.items() if key not in named}
    rows: list[Row] = []
    for key, text in queries.items():
        ids = _keys(relevant.get(key) or [])
        known = [{"id": one, "text": texts[one]} for one in map(str, ids) if one in texts]
        row = {"query_id": key, "query": text, "relevant_ids": ids, "reference_contexts": known}
        rows.append({**row, OUTER: others})
    return rows


def _keys(value: Any) -> list[Any]:
    """Return the ids in a list, an object or a single value."""
    return [*value] if isinstance(value, list | dict) else [value]


def _column(value: Any) -> list[Any]:
    """Return the values of a column; empty if it is not one."""
    if isinstance(value, dict) and [*value] == [*map(str, range(len(value)))]:
        return [*value.values()]
    return value if isinstance(value, list) else []


# ---- places of records ---------------------------------------------------------------------------


def _cached(path: str | Path, places: Paths) -> Callable[[Row], str]:
    """Return a function that finds the place of the records in objects of a file."""
    known: dict[frozenset[str], str] = {}

    def place_of(value: Row) -> str:
        names = frozenset(value) if isinstance(value, dict) else frozenset()
        if names not in known:
            known[names] = _place_of_records(value, places) if names else ""
            note_place(path, known[names])
        return known[names]

    return place_of


def _place_of_records(value: Row, places: Paths) -> str:
    """Return the dotted place of the records in an object; empty if it is a record itself."""
    for place in places:
        if _first_at(value, place.split(".")) is not None:
            return place
    for preset, place in known_places():
        row = _first_at(value, place.split("."))
        if row is not None and preset.fits(record_names(row)) is not None:
            return place
    is_custom = not {*places} <= {place for _, place in known_places()}
    if is_custom or _is_record(value):
        return ""
    found = {
        place: row
        for place in _lists_in(value)
        if (row := _first_at(value, place.split("."))) and _is_result(row)
    }
    # an object of records by their ids, or of the records of systems
    ends = {place.partition(".")[2] for place in found}
    if len(found) == len(value) > 1 and len(ends) == 1:
        return f"*.{next(iter(ends))}".rstrip(".")
    found = {place: row for place, row in found.items() if _is_result(row)}
    if len(found) == 1:
        return next(iter(found))
    is_map = len(value) > 1 or "0" in value
    is_map = is_map and all(isinstance(one, dict) for one in value.values())
    row = _first_at(value, ["*"]) if is_map and not found else None
    return "*" if row and is_readable(row) else ""


def _is_record(value: Row) -> bool:
    """Return whether an object has the fields of a known format."""
    names = frozenset(value)
    shapes = (shape for form in built_in_formats().values() for shape in form.shapes)
    return is_readable(value) or any(one.fit(names) for one in shapes)


def _is_result(row: Row) -> bool:
    """Return whether a record has a question and an answer, or is known otherwise."""
    wanted = "question", "answer"
    if is_readable(row) or {*wanted} <= roles_of(row, {}, wanted).keys():
        return True
    objects = [one for name, one in row.items() if isinstance(one, dict) and name != OUTER]
    of_systems = [one for one in objects if roles_of(one, {}, ("answer", "contexts"))]
    return len(of_systems) > 1 and bool(roles_of(row, {}, ("question",)))


def _first_at(value: Any, keys: Sequence[str], outer: Row | None = None) -> Row | None:
    """Return the first object in the lists at a path of keys, with the fields around it."""
    if isinstance(value, list):
        found = (_first_at(one, keys, outer) for one in value)
        return next((one for one in found if one is not None), None)
    if not isinstance(value, dict):
        return None
    if not keys:
        return {**value, OUTER: outer or {}}
    first, *rest = keys
    inside = [*value.values()] if first == "*" else [value[first]] if first in value else []
    if not rest and first != "*" and not all(isinstance(one, list) for one in inside):
        return None
    others = {key: one for key, one in value.items() if first not in (key, "*")}
    return _first_at(inside, rest, {**(outer or {}), **others})


def _lists_in(value: Any, place: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the places of lists of objects in an object."""
    if isinstance(value, list):
        if place and value and isinstance(value[0], dict):
            yield place
        yield from _lists_in(value[0], place, depth + 1) if value and depth < _DEEPEST else ()
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, one in value.items():
            if "." not in key:
                yield from _lists_in(one, f"{place}.{key}" if place else key, depth + 1)


def _decoded(line: bytes, path: str | Path, number: int) -> Row:
    """Return an object of JSON-lines; NaN, which Python writes but JSON does not allow, is null."""
    try:
        return decode_json(line, JSON_OBJECT, path, number)
    except InputError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
        with suppress(ValueError, RecursionError):
            value = json.loads(text_of(line, path, number), parse_constant=lambda _: None)
            if isinstance(value, dict):
                return value
        raise


# ---- lines and tables ----------------------------------------------------------------------------


def _table(
    path: str | Path, head: bytes, on_error: OnError, places: Paths, *, is_sample: bool
) -> Iterator[tuple[int, Row]]:
    line = head.decode(errors="replace")
    if len(line) > _LONGEST_HEADER:
        raise InputError("the first line is too long for the names of columns", file=path, line=1)
    try:
        split = {mark: next(csv.reader([line], delimiter=mark)) for mark in "\t,;|"}
    except csv.Error as error:
        raise InputError(f"broken CSV ({error})", file=path, line=1) from None
    if line.lstrip().startswith("|"):
        raise InputError("is a table in Markdown", file=path, line=1, hint="Write it as CSV")
    separator = max(split, key=lambda mark: len(split[mark]))
    if is_sample:
        yield 1, Cells.fromkeys(map(str.strip, split[separator]), "")
    repeated = has_system_columns(split[separator])
    for number, row in named_rows(read_text(path), separator, path, on_error, repeated=repeated):
        yield from _rows_of_cells(number, Cells(row), places)


def _rows_of_cells(number: int, row: Cells, places: Paths) -> Iterator[tuple[int, Row]]:
    """Yield a row of a table, or the records in one of its cells."""
    for place in places:
        head, *rest = place.split(".")
        if row.get(head, "").startswith(("[", "{")):
            with suppress(TypeError, ValueError, RecursionError):  # a set is not JSON
                text = json.dumps({**row, head: literal(row[head])})
                found = [*elements_at(text, 0, [head, *rest])]
                if found and all(isinstance(one, dict) for _, one, _ in found):
                    yield from ((number, {**one, OUTER: outer}) for _, one, outer in found)
                    return
    yield number, row
