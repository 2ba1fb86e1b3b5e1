"""TREC CAR: topics with their sections, and paragraphs, from the track's CBOR files.

A file is a header `["CAR", [type, ...], ...]` and a list of pages (type 0), outlines (1) or
paragraphs (2); files of CAR v1 have no header. Source: TREC CAR data format (trec-car.cs.unh.edu),
as its own trec-car-tools read it.
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
    """`car-topics`, `car-paragraphs`, or None for a file that is not of TREC CAR."""
    try:
        with reading(path) as stream:
            head = stream.read(5)
    except InputError:
        # Readers of lines say how far a damaged file could be read.
        head = b""
    if head[1:5] != _HEADER and not plain_name(path).endswith(".cbor"):
        return None
    # An array of three is a paragraph where there is no header that tells.
    if head[1:5] != _HEADER:
        return "car-paragraphs" if head[:1] == b"\x83" else "car-topics"
    cbor2 = _library()
    with reading(path) as stream:
        header = _decoded(cbor2.CBORDecoder(stream), path, 0)
    return "car-paragraphs" if _type(header, path) == "paragraphs" else "car-topics"


def read_topics(path: str | Path, on_error: OnError = raise_error) -> Iterator[Query]:
    """Yield the pages or outlines of a file as queries, their headings as subtopics.

    A page's id is the query's (`enwiki:Page`, `tqa2:L_0002`); a subtopic is the path of heading
    ids below it, so that `query/subtopic` is what section-level runs and qrels are written with.
    """
    yield from _unique(path, {"pages", "outlines"}, _topic, "query_id", on_error)


def read_paragraphs(path: str | Path, on_error: OnError = raise_error) -> Iterator[Passage]:
    """Yield the paragraphs of a file, of links their anchor texts; blank ones are faults."""
    yield from _unique(path, {"paragraphs"}, _paragraph, "passage_id", on_error)


def paragraphs(path: str | Path, wanted: Callable[[str], bool]) -> Iterator[Passage]:
    """Yield the wanted paragraphs of a file that may be as large as Wikipedia, one at a time."""
    for number, item in _items(path, {"paragraphs"}):
        if wanted(_typed(_identifier, item, path, number)):
            yield _typed(_paragraph, item, path, number)


def _unique(
    path: str | Path, types: set[str], parse: Callable[[Any], T], field: str, on_error: OnError
) -> Iterator[T]:
    what = field.removesuffix("_id")
    key = Key(attrgetter(field), lambda one: f"{what} {brief(getattr(one, field))}", field)

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
            f"element {number} is not what TREC CAR files hold ({error})", file=path, line=number
        ) from None


def _topic(page: Any) -> Query:
    if page[0] not in (0, 1) or not isinstance(page[1], str):
        raise ValueError("no page")
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
        raise ValueError("no paragraph")
    text = "".join(_body(body) for body in paragraph[2])
    if not text.strip():
        raise InputError(f"passage {brief(paragraph[1].decode())} has a blank text", field="text")
    return Passage(paragraph[1].decode(), text)


def _body(body: Any) -> str:
    """Return a text is [0, text]; a link [1, [0, page, [section], page id, anchor text]]."""
    text = body[1] if body[0] == 0 else body[1][4]
    if not isinstance(text, str):
        raise TypeError("no text")
    return text


class _Forward(io.BufferedReader):
    """Denies that it can seek: the decoder would, after every element, and a .gz is slow at it."""

    def seekable(self) -> bool:
        return False


def _items(path: str | Path, types: set[str]) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a file, counted from 1."""
    cbor2 = _library()
    with reading(path) as raw:
        stream: Any = _Forward(raw, 1 << 20) if compression(Path(path)) else raw  # type: ignore[arg-type]
        decoder = cbor2.CBORDecoder(stream, read_size=1)
        first = _decoded(decoder, path, 0)
        number = 0
        if first and first[0] == "CAR":
            found = _type(first, path)
            if found not in types:
                raise InputError(
                    f"holds {found} instead of {' or '.join(sorted(types))}", file=path
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
                    raise InputError(f"broken CBOR: cut off after element {number}", file=path)
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
        raise InputError(f"element {number} is no element of a TREC CAR file", file=path)
    return value


def _type(header: list[Any], path: str | Path) -> str:
    try:
        return _TYPES[header[1][0]]
    except (IndexError, KeyError, TypeError):
        raise InputError("a TREC CAR file of unknown type", file=path) from None


def _library() -> ModuleType:
    try:
        import cbor2
    except ImportError:
        raise InputError(
            "reading TREC CAR files needs cbor2", hint=f"Install it: {install_command('car')}"
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
