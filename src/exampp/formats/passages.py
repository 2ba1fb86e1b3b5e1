"""Passages: JSON-lines under the key names of many collections, or columns of id, text, title."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, brief, duplicate_error
from exampp.formats.headers import names_of, slips_of
from exampp.formats.json_objects import (
    OBJECT,
    Fields,
    identifier,
    key_of,
    optional_text,
    required_text,
)
from exampp.formats.lines import (
    OnError,
    decode_json,
    decode_part,
    encode_json,
    raise_error,
    read_lines,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import Passage

ID_KEYS = ("passage_id", "paragraph_id", "pid", "_id", "id", "docno", "docid")
"""Where several are present the first of these is the id: MS MARCO has a document's id, too."""
TEXT_KEYS = ("text", "passage", "segment", "contents", "body")
_TITLE_KEYS = ("title",)
_KNOWN_KEYS = frozenset((*ID_KEYS, *TEXT_KEYS, *_TITLE_KEYS))
_WRITTEN_KEYS = frozenset({ID_KEYS[0], TEXT_KEYS[0], _TITLE_KEYS[0]})


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[Passage]:
    """Yield the passages of a file in file order; the layout is told from the first line.

    A number as id is taken as it is written. Keys of the JSON-lines that are neither id, text nor
    title are kept in `Passage.extra`. InputError for a passage without id, without text or with a
    blank one, and for an id that occurs twice.
    """
    lines = read_lines(path)
    start, head = next(lines)
    parse = _from_object if head.lstrip().startswith((b"{", b"[")) else _from_columns
    columns = head.decode(errors="replace").split("\t") if parse is _from_columns else []
    skips_header = is_header(columns)
    if names_of(columns) and not skips_header:
        raise InputError(
            f"the columns are {', '.join(columns)}, which are not those of passages",
            file=path,
            line=start,
            mend="Passages have two or three columns: id, text and perhaps title",
        )
    if columns and not skips_header and (slips := slips_of(columns, _KNOWN_KEYS)):
        raise InputError(slips, file=path, line=start, mend="Correct the header")
    keys = Keys(path, _KNOWN_KEYS, stored=True)
    first = FirstLines()
    for number, line in lines if skips_header else chain([(start, head)], lines):
        try:
            passage = _checked(parse, line, path, number)
            keys.see(passage.extra, number, ())
        except InputError as error:
            on_error(error.at(path, number))
            continue
        if earlier := first.add(passage.passage_id, number):
            what = f"passage {brief(passage.passage_id)}"
            on_error(duplicate_error(what, earlier, path, number, "passage_id"))
        else:
            yield passage


def parse(line: bytes, path: str | Path, number: int) -> Passage:
    """The passage of one line, whichever layout it has; its text may be blank."""
    is_json = line.lstrip().startswith((b"{", b"["))
    return (_from_object if is_json else _from_columns)(line, path, number)


def _checked(
    parse: Callable[[bytes, str | Path, int], Passage], line: bytes, path: str | Path, number: int
) -> Passage:
    passage = parse(line, path, number)
    if not passage.text or passage.text.isspace():
        raise InputError(f"passage {brief(passage.passage_id)} has a blank text", field="text")
    return passage


def _from_object(line: bytes, path: str | Path, number: int) -> Passage:
    fields: Fields = decode_json(line, OBJECT, path, number)
    passage_id = identifier(fields, ID_KEYS)
    text = required_text(fields, TEXT_KEYS)
    title = optional_text(fields, _TITLE_KEYS)
    known = {key_of(fields, ID_KEYS), key_of(fields, TEXT_KEYS), *_TITLE_KEYS}
    extra = {key: decode_part(value, key) for key, value in fields.items() if key not in known}
    return Passage(passage_id, text, title, extra)


def _from_columns(line: bytes, path: str | Path, number: int) -> Passage:
    columns = text_of(line, path, number).split("\t")
    if len(columns) not in (2, 3):
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2 or 3 (id, text, title)",
            mend="Separate the columns by one tab, or use JSON-lines",
        )
    passage_id = columns[0].strip()
    if not passage_id:
        raise InputError("the id of a passage is blank", field="column 1")
    return Passage(passage_id, columns[1], "".join(columns[2:]))


def is_header(columns: list[str]) -> bool:
    """Whether the first line of a file of columns names them."""
    names = names_of(columns)
    return (
        len(names) in (2, 3)
        and names[0] in ID_KEYS
        and names[1] in TEXT_KEYS
        and names[2:] in ((), _TITLE_KEYS)
    )


def write(path: str | Path, passages: Iterable[Passage]) -> None:
    """Write passages as JSON-lines with `passage_id`, `text`, `title` if any, and their `extra`.

    InputError where `extra` holds one of these keys.
    """
    with writing(path) as stream:
        for passage in passages:
            if not _WRITTEN_KEYS.isdisjoint(passage.extra):
                raise InputError(
                    f"the extra keys of passage {brief(passage.passage_id)} hold one of "
                    f"{', '.join(sorted(_WRITTEN_KEYS))}",
                    file=path,
                )
            title = {"title": passage.title} if passage.title else {}
            row = {"passage_id": passage.passage_id, "text": passage.text, **title}
            stream.write(encode_json(row | dict(passage.extra), path))
