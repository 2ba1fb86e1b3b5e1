"""TREC CAR: topics with their sections, and paragraphs, from the track's CBOR files.

A file is a header `["CAR", [type, ...], ...]` and a list of pages (type 0), outlines (1) or
paragraphs (2); files of CAR v1 have no header. Source: TREC CAR data format (trec-car.cs.unh.edu),
as read by trec-car-tools.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.format import Format
from exampp.formats.lines import (
    Key,
    OnError,
    compression,
    parse_each,
    plain_name,
    raise_error,
    reading,
)
from exampp.installed import install_command
from exampp.records import Passage, Query, Subtopic

T = TypeVar("T")

_HEADER = b"\x63CAR"
_TYPES = {0: "pages", 1: "outlines", 2: "paragraphs"}
_BREAK = b"\xff"
_LIST = b"\x9f"
_SECTION = 0


def car_kind(path: str | Path) -> str | None:
    """Return `car-topics`, `car-paragraphs`, or None for a file of another format."""
    try:
        with reading(path) as stream:
            head = stream.read(5)
    except InputError:
        # Leave damaged files to the line readers, which report how far the file was readable.
        head = b""
    if head[1:5] != _HEADER and not plain_name(path).endswith(".cbor"):
        return None
    # Without a header, an array of three elements is a paragraph.
    if head[1:5] != _HEADER:
        return "car-paragraphs" if head[:1] == b"\x83" else "car-topics"
    cbor2 = _library()
    with reading(path) as stream:
        header = _decoded(cbor2.CBORDecoder(stream), path, 0)
    return "car-paragraphs" if _type(header, path) == "paragraphs" else "car-topics"


def read_topics(path: str | Path, on_error: OnError = raise_error) -> Iterator[Query]:
    """Yield the pages or outlines of a file as queries, their headings as subtopics.

    The query id is the page id (`enwiki:Page`, `tqa2:L_0002`). A subtopic id is the path of heading
    ids below the page; section-level runs and qrels use `query/subtopic`.
    """
    yield from _unique(path, {"pages", "outlines"}, _topic, "query_id", on_error)


def read_paragraphs(path: str | Path, on_error: OnError = raise_error) -> Iterator[Passage]:
    """Yield the paragraphs of a file; a link is replaced by its anchor text."""
    yield from _unique(path, {"paragraphs"}, _paragraph, "passage_id", on_error)


def paragraphs(path: str | Path, wanted: Callable[[str], bool]) -> Iterator[Passage]:
    """Yield the wanted paragraphs one at a time; the file may be as large as Wikipedia."""
    for number, item in _items(path, {"paragraphs"}):
        if wanted(_typed(_identifier, item, path, number)):
            yield _typed(_paragraph, item, path, number)


def _unique(
    path: str | Path, types: set[str], parse: Callable[[Any], T], field: str, on_error: OnError
) -> Iterator[T]:
    name = field.removesuffix("_id")
    key = Key(attrgetter(field), lambda one: f"{name} {brief(getattr(one, field))}", field)

    def typed(item: Any, number: int) -> T:
        return _typed(parse, item, path, number)

    yield from parse_each(_items(path, types), path, on_error, typed, key)


def _typed(parse: Callable[[Any], T], item: Any, path: str | Path, number: int) -> T:
    try:
        return parse(item)
    except InputError as error:
        raise error.at(path, number) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"element {number} is not a TREC CAR element ({error})", file=path, line=number
        ) from None


def _topic(page: Any) -> Query:
    if page[0] not in (0, 1) or not isinstance(page[1], str):
        raise ValueError("not a page")
    return Query(page[2].decode(), page[1], tuple(_sections(page[3], (), ())))


def _sections(
    skeleton: list[Any], ids: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[Subtopic]:
    for part in skeleton:
        if part[0] == _SECTION:
            below = (*ids, part[2].decode()), (*names, part[1])
            yield Subtopic("/".join(below[0]), " / ".join(below[1]))
            yield from _sections(part[3], *below)


def _identifier(paragraph: Any) -> str:
    return str(paragraph[1].decode())


def _paragraph(paragraph: Any) -> Passage:
    if paragraph[0] != 0:
        raise ValueError("not a paragraph")
    text = "".join(_body(body) for body in paragraph[2])
    if not text.strip():
        raise InputError(f"passage {brief(paragraph[1].decode())} has no text", field="text")
    return Passage(paragraph[1].decode(), text)


def _body(body: Any) -> str:
    """Return the plain text: text is [0, text], a link is [1, [0, page, [section], page id,
    anchor]].
    """
    text = body[1] if body[0] == 0 else body[1][4]
    if not isinstance(text, str):
        raise TypeError("not a text")
    return text


class _Forward(io.BufferedReader):
    """Stream without seek, because the decoder would seek after every element (slow in .gz)."""

    def seekable(self) -> bool:
        return False


def _items(path: str | Path, types: set[str]) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a file, counted from 1."""
    cbor2 = _library()
    with reading(path) as raw:
        stream: Any = raw
        if compression(Path(path)):
            stream = _Forward(stream, 1 << 20)
        decoder = cbor2.CBORDecoder(stream, read_size=1)
        first = _decoded(decoder, path, 0)
        number = 0
        if first and first[0] == "CAR":
            file_type = _type(first, path)
            if file_type not in types:
                raise InputError(
                    f"has {file_type} instead of {' or '.join(sorted(types))}", file=path
                )
            if stream.peek(1)[:1] != _LIST or not stream.read(1):
                raise InputError("broken CBOR (no list after the header)", file=path)
        else:
            number = 1
            yield number, first
        headed = number == 0
        while (head := stream.peek(1)[:1]) != _BREAK:
            if not head:
                if headed:
                    raise InputError(
                        f"broken CBOR: the file ends after element {number}", file=path
                    )
                return
            number += 1
            yield number, _decoded(decoder, path, number)


def _decoded(decoder: Any, path: str | Path, number: int) -> Any:
    cbor2 = _library()
    try:
        value = decoder.decode()
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
        place = f"element {number}" if number else "the start of the file"
        raise InputError(
            f"broken CBOR at {place} ({error})", file=path, hint="Copy or download the file again"
        ) from None
    if not isinstance(value, list):
        raise InputError(f"element {number} is not a TREC CAR element", file=path)
    return value


def _type(header: list[Any], path: str | Path) -> str:
    try:
        return _TYPES[header[1][0]]
    except (IndexError, KeyError, TypeError):
        raise InputError("unknown type of TREC CAR file", file=path) from None


def _library() -> ModuleType:
    try:
        import cbor2
    except ImportError:
        raise InputError(
            "cbor2, which reads TREC CAR files, is not installed",
            hint=f"Install it: {install_command('car')}",
        ) from None
    return cbor2


TOPICS = Format(
    "queries",
    lambda path, how: read_topics(path, how.on_error),
    name="car-topics",
    looks="outlines and pages, CBOR",
    source="TREC CAR",
)
PARAGRAPHS = Format(
    "passages",
    lambda path, how: read_paragraphs(path, how.on_error),
    name="car-paragraphs",
    looks="paragraphs, CBOR",
    source="TREC CAR",
)
