"""Rows of archives and folders: Excel workbooks, Inspect logs (`.eval`), saved data sets."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from exampp.errors import InputError
from exampp.formats import tables
from exampp.formats.fields import brief
from exampp.formats.lines import lines_in_memory
from exampp.formats.preset import OUTER
from exampp.formats.read_warnings import add_warning
from exampp.sanitize import parse_digits

Rows = Iterator[tuple[int, dict[str, Any]]]
_LARGEST = 1 << 30
"""Bytes of an archive without compression."""
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    ElementTree.ParseError,
    ValueError,
    LookupError,
    EOFError,
)
_CELL = re.compile(r"([A-Z]{1,3})\d+")


def reader_of(path: str | Path) -> Callable[[Path], Rows] | None:
    """Return the reader of a file of binary rows or of a folder; None for others."""
    if lines_in_memory(path):
        return None
    if Path(path).is_dir():
        return _saved if _arrow_files(Path(path)) or _splits(Path(path)) else None
    if tables.name_of(path):
        return tables.read_rows
    names = _names(Path(path))
    rows_of = next((reader for name, reader in _READERS.items() if name in names), None)
    return rows_of and partial(_opened, rows_of)


def _names(path: Path) -> Sequence[str]:
    """Return the names in a zip file; empty for other files."""
    with suppress(OSError, *_FAULTS):
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()
    return ()


class _Archive:
    """The files in an archive, with errors that name the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = zipfile.ZipFile(path)
        if sum(one.file_size for one in self._archive.infolist()) > _LARGEST:
            raise InputError(f"has more than {_LARGEST >> 30} GiB without compression", file=path)

    def names(self, start: str) -> list[str]:
        """Return the names that start like this, in order of the archive."""
        return [name for name in self._archive.namelist() if name.startswith(start)]

    def json(self, name: str) -> Any:
        """Return the value of a JSON file; NaN is null."""
        return json.loads(self._archive.read(name), parse_constant=lambda _: None)

    def xml(self, name: str) -> ElementTree.Element:
        """Return the root of an XML file, without entities."""
        data = self._archive.read(name)
        if b"<!" in data[:1000]:
            raise InputError("has a document type, which Excel does not write", file=self.path)
        return ElementTree.fromstring(data)


def _opened(rows_of: Callable[[_Archive], Rows], path: Path) -> Rows:
    try:
        yield from rows_of(_Archive(path))
    except NotImplementedError as error:
        raise InputError(
            f"is compressed in a way that Python does not read ({error})",
            file=path,
            hint="Write it as JSON, as in inspect log convert LOG.eval --to json",
        ) from None
    except (*_FAULTS, RuntimeError) as error:
        raise InputError(f"is a damaged archive ({error})", file=path) from None


# ---- excel ---------------------------------------------------------------------------------------


def _rows_of_book(book: _Archive) -> Rows:
    """Yield the rows of the first sheet with rows, below its header."""
    texts: list[str] = []
    if shared := book.names("xl/sharedStrings.xml"):
        texts = [_text(one) for one in book.xml(shared[0]) if _tag(one) == "si"]
    sheets: dict[str, list[list[str]]] = {}
    for name, file in _sheets(book):
        rows = [_cells(row, texts) for row in book.xml(file).iter() if _tag(row) == "row"]
        if rows := [row for row in rows if any(row)]:
            sheets[name] = rows
    if not sheets:
        raise InputError("the workbook has no rows", file=book.path)
    first, *others = sheets
    if others:
        add_warning(book.path, None, f"sheet {brief(first)} is read, not {', '.join(others)}")
    header, *rows = sheets[first]
    names = [name.strip() for name in header]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice:
        raise InputError(
            f"duplicate column {brief(twice)}", file=book.path, line=1, hint="Rename one of them"
        )
    for number, row in enumerate(rows, 2):
        padded = [*row, *[""] * (len(names) - len(row))]
        named = dict(zip_longest(names, padded, fillvalue=""))
        if named.pop("", "") or any(padded[len(names) :]):
            raise InputError("a cell has no column name", file=book.path, line=number)
        yield number, named


def _sheets(book: _Archive) -> Iterator[tuple[str, str]]:
    """Yield the names of the sheets and their files, in order."""
    files = {
        one.get("Id", ""): one.get("Target", "") for one in book.xml("xl/_rels/workbook.xml.rels")
    }
    for one in book.xml("xl/workbook.xml").iter():
        key = next((value for name, value in one.items() if name.endswith("}id")), "")
        if _tag(one) == "sheet" and "worksheets/" in files.get(key, ""):
            target = files[key].lstrip("/")
            yield one.get("name", ""), target if target.startswith("xl/") else f"xl/{target}"


def _cells(row: ElementTree.Element, texts: Sequence[str]) -> list[str]:
    """Return the texts of a row by column."""
    cells: list[str] = []
    for cell in row:
        match = _CELL.fullmatch(cell.get("r", ""))
        place = _column(match[1]) if match else len(cells)
        cells += [""] * (place + 1 - len(cells))
        kind = cell.get("t", "n")
        value = next((one.text or "" for one in cell if _tag(one) == "v"), "")
        if kind == "s":
            value = texts[int(value)]
        elif kind == "inlineStr":
            value = _text(cell)
        elif kind == "b":
            value = str(value == "1")
        elif kind == "e":
            raise ValueError(f"cell {cell.get('r')} has the error {value}")
        cells[place] = value
    return cells


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number - 1


def _text(element: ElementTree.Element) -> str:
    """Return the text of a cell; readings in another script are left out."""
    if _tag(element) == "rPh":
        return ""
    own = element.text or "" if _tag(element) == "t" else ""
    return own + "".join(map(_text, element))


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


# ---- inspect -------------------------------------------------------------------------------------


def _samples(log: _Archive) -> Rows:
    """Yield the samples of an Inspect log, with its header around them."""
    header = log.json((log.names("header.json") or log.names("_journal/start.json"))[0])
    for number, name in enumerate(sorted(log.names("samples/"), key=_natural), 1):
        sample = log.json(name)
        attachments = sample.get("attachments") or {}
        used = {key: sample[key] for key in sample if key not in ("events", "attachments", "store")}
        yield number, {**_attached(used, attachments), OUTER: {"eval": header.get("eval")}}


def _natural(name: str) -> list[tuple[int, str]]:
    numbered = ((one, parse_digits(one)) for one in re.findall(r"\d+|\D+", name))
    return [(-1, one) if number is None else (number, "") for one, number in numbered]


def _attached(value: Any, attachments: Mapping[str, str]) -> Any:
    """Return a value with the texts that are stored as attachments."""
    if isinstance(value, dict):
        return {key: _attached(one, attachments) for key, one in value.items()}
    if isinstance(value, list):
        return [_attached(one, attachments) for one in value]
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments[value.removeprefix("attachment://")]
    return value


_READERS: Mapping[str, Callable[[_Archive], Rows]] = {
    "xl/workbook.xml": _rows_of_book,
    "header.json": _samples,
    "_journal/start.json": _samples,
}
"""The reader of an archive by a file that it has."""


# ---- data sets -----------------------------------------------------------------------------------


def _saved(path: Path) -> Rows:
    """Yield the rows of a data set that `datasets` saved to a folder."""
    splits = _splits(path)
    if len(splits) > 1:
        raise InputError(
            f"has the splits {', '.join(one.name for one in splits)}",
            file=path,
            hint=f"Name one of them, as in {splits[0]}",
        )
    number = 0
    for file in _arrow_files(splits[0] if splits else path):
        for _, row in tables.read_rows(file):
            number += 1
            yield number, row


def _arrow_files(folder: Path) -> list[Path]:
    """Return the files of a saved data set, in its order."""
    state = folder / "state.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        named = json.loads(state.read_text("utf-8"))["_data_files"]
        return [folder / Path(one["filename"]).name for one in named]
    return []


def _splits(folder: Path) -> list[Path]:
    """Return the folders of the splits of a saved dictionary of data sets."""
    if not (folder / "dataset_dict.json").is_file():
        return []
    return sorted(one for one in folder.iterdir() if one.is_dir() and _arrow_files(one))
