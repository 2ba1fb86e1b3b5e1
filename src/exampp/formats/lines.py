"""Read lines of text files, compressed or not, with line numbers for errors.

Readers of this package take `on_error`, which is called with the `InputError` of every bad line.
The default, `raise_error`, raises it; a `Skipped` counts it and continues.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from errno import EACCES
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, duplicate_error
from exampp.sanitize import check_choice, check_path, record_replacement, sanitize_name
from exampp.store.connection import is_collection

if TYPE_CHECKING:
    import msgspec

OnError = Callable[[InputError], None]
T = TypeVar("T")
R = TypeVar("R")


def accept(_record: object) -> None:
    """Accept every record: the default check of readers."""


def raise_error(error: InputError) -> None:
    """Raise the error: one bad line rejects the whole file."""
    raise error


def placed(on_error: OnError, path: str | Path, line: int | None = None) -> OnError:
    """Return `on_error` with file and line added to errors that have none."""
    return lambda error: on_error(error.at(path, line))


@dataclass(slots=True)
class Skipped:
    """Count bad lines instead of rejecting the file; store the first errors for the report."""

    count: int = 0
    first: list[InputError] = field(default_factory=list)
    keep: int = 20

    def __call__(self, error: InputError) -> None:
        """Count one bad line."""
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(error)


def error_counter(on_error: str) -> Skipped | None:
    """Return a counter for `on_error="skip"`, None for "refuse"; raise InputError otherwise."""
    check_choice("on_error", on_error, ("refuse", "skip"))
    return Skipped() if on_error == "skip" else None


_BOM = b"\xef\xbb\xbf"
_NUL = b"\0"
LONGEST_LINE = 1 << 27
"""Longest line in bytes: a hundred times a typical Workbench line."""
LONGEST_TEXT = 1 << 30
"""Largest file in bytes that is read as a whole."""


def existing_file(path: str | Path) -> Path:
    """Return the path of a readable, non-empty file; raise InputError otherwise.

    The file is not opened; readers report other faults.
    """
    if lines_in_memory(path):
        return Path(path)
    path = check_path(path)
    if path.is_dir():
        raise InputError(
            "is a folder, not a file",
            file=path,
            hint="Name its files, or give their role, as in --runs; a folder of responses has "
            "SYSTEM/QUERY.txt, .md or .html",
        )
    if path.exists() and not path.is_file():
        raise InputError("is not a regular file", file=path, hint="Save it to a file first")
    if is_collection(path):
        # opening it would release the locks that this process has on it
        refuse_binary(SQLITE, path)
    try:
        empty = not path.stat().st_size
    except FileNotFoundError:
        raise InputError("no such file", file=path, hint="Check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None
    if not os.access(path, os.R_OK):
        raise InputError(f"cannot be read ({os.strerror(EACCES)})", file=path)
    if empty:
        raise InputError("the file is empty", file=path)
    return path


@contextmanager
def reading(
    path: str | Path, line: Callable[[], int | None] = lambda: None
) -> Iterator[io.BufferedReader]:
    """Yield the file's unpacked bytes; errors as in `read_lines`, with the `line` reached."""
    path = existing_file(path)
    try:
        with unpacked(path) as stream:
            yield stream
    except Exception as error:
        # each decompressor has custom classes of errors
        if not is_read_fault(error):
            raise
        cut = isinstance(error, EOFError)
        what = "the compressed file is truncated" if cut else f"the file cannot be read ({error})"
        reached = "" if line() is None else f" after line {line()}"
        hint = "Copy or download the file again"
        raise InputError(what + reached, file=path, hint=hint) from None


def read_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) of every line that is not blank.

    The objects of a file that is one JSON array are its lines. Unpacks .gz, .xz and .zst; strips a
    byte-order mark and carriage returns.

    Raises:
        InputError: The file is missing, blank, damaged or truncated (with the line reached), or a
            line is too long.
    """
    if (rows := lines_in_memory(path)) is not None:
        yield from rows
        return
    number = 0
    blank = True
    with reading(path, lambda: number) as stream:
        head = stream.peek(HEAD)[:HEAD]
        refuse_binary(head, path)
        for number, line in (_objects if _ARRAY.match(head) else _lines)(stream, Path(path)):
            if line and not line.isspace():
                blank = False
                yield number, line
    if blank:
        raise InputError("the file is empty", file=path)


_METADATA = b"# ir_metadata"


def lines_below_metadata(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a run file without its leading ir_metadata comments.

    Raises:
        InputError: As in `read_lines`, or the file has only metadata.
    """
    in_head: bool | None = None
    for number, line in read_lines(path):
        if in_head is not False:
            in_head = line.startswith(b"#" if in_head else _METADATA)
        if not in_head:
            yield number, line
    if in_head:
        raise InputError("the file has only metadata", file=path)


class Key(NamedTuple):
    """Key of a record within its file, used to report duplicates.

    With `equal_lines`, the error of a line that occurred before as a whole says so.
    """

    of: Callable[[Any], Hashable]
    name: Callable[[Any], str]
    field: str = ""
    equal_lines: bool = False


def parse_lines(
    path: str | Path,
    on_error: OnError,
    parse: Callable[[bytes, int], T | None],
    key: Key | None = None,
) -> Iterator[T]:
    """Yield the parsed lines of a file, without None; see `parse_each`."""
    return parse_each(read_lines(path), path, on_error, parse, key)


def parse_each(
    rows: Iterable[tuple[int, R]],
    path: str | Path,
    on_error: OnError,
    parse: Callable[[R, int], T | None],
    key: Key | None = None,
) -> Iterator[T]:
    """Yield the parsed rows of a file, without None.

    `on_error` takes the error of a bad row or of a record with the `key` of an earlier one.
    """
    first, lines, equal = FirstLines(), FirstLines(), False
    for number, row in rows:
        try:
            record = parse(row, number)
            if record is None:
                continue
            if key and key.equal_lines:
                equal = lines.add(row if isinstance(row, bytes) else repr(row), number) > 0
            if key and (earlier := first.add(key.of(record), number)):
                error = duplicate_error(key.name(record), earlier, path, number, key.field)
                error.equal = equal
                raise error
        except InputError as error:
            on_error(error.at(path, number))
        else:
            yield record


def _lines(stream: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            what = f"the line is longer than {LONGEST_LINE >> 20} MiB"
            raise InputError(what, file=path, line=number, hint="Split it into several lines")
        if number == 1:
            line = line.removeprefix(_BOM)
        if _NUL in line:
            record_replacement(path, number)
        yield number, line.rstrip(b"\r\n")


def read_text(path: str | Path) -> str:
    """Return the whole file as text, with blank lines and line ends; errors as in `read_lines`."""
    with reading(path) as stream:
        data = stream.read(LONGEST_TEXT)
        refuse_binary(data[:HEAD], path)
    return _whole_text(data, Path(path))


def _whole_text(data: bytes, path: Path) -> str:
    data = data.removeprefix(_BOM)
    if len(data) >= LONGEST_TEXT:
        raise InputError(
            f"the file is larger than {LONGEST_TEXT >> 30} GiB",
            file=path,
            hint="Split it into several files",
        )
    if not data.strip():
        raise InputError("the file is empty", file=path)
    if _NUL in data:
        record_replacement(path, data.count(b"\n", 0, data.index(_NUL)) + 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        start = data.rfind(b"\n", 0, error.start) + 1
        raise _not_utf8(path, line, error.start - start + 1) from None


def _not_utf8(path: str | Path, line: int | None, byte: int) -> InputError:
    return InputError(
        f"not UTF-8 text (byte {byte} of the line)",
        file=path,
        line=line,
        hint="Convert the file to UTF-8",
    )


def text_of(line: bytes, path: str | Path, number: int | None) -> str:
    """Return the line as text; raise InputError if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, number, error.start + 1) from None


def plain_name(path: str | Path) -> str:
    """Return the file name in lower case, without the suffix of its compression."""
    name = sanitize_name(Path(path).name).lower()
    return re.sub(r"\.(gz|xz|zst)$", "", name)


_ENDINGS = re.compile(
    r"\.(?:gz|xz|zst|run|txt|trec|res|eval|tsv|csv|jsonl?|ndjson|parquet|arrow|ranx|xlsx)$",
    re.IGNORECASE,
)


def system_of(file: str | Path) -> str:
    """Return the system of a run file: `bm25` for `input.bm25.gz` and `bm25.run`.

    TREC publishes runs as `input.NAME.gz`.
    """
    name = sanitize_name(Path(file).name)
    while (short := _ENDINGS.sub("", name)) != name and short:
        name = short
    return name.removeprefix("input.") or name


def decode_json(
    line: bytes, decoder: msgspec.json.Decoder[T], path: str | Path, number: int | None
) -> T:
    """Decode a JSON value of the decoder's type; raise InputError with the wrong field."""
    import msgspec

    line = valid_json(line, path, number)
    if not line.isascii():
        # msgspec does not check parts that it skips, and reports only the byte
        text_of(line, path, number)
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `")
        raise InputError(
            what, file=path, line=number, field=place.rstrip("`").removeprefix("$").lstrip(".")
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"broken JSON ({error})", file=path, line=number) from None


def decode_part(
    part: bytes | msgspec.Raw, field: str, decoder: msgspec.json.Decoder[Any] | None = None
) -> Any:
    """Decode an undecoded part of a line; raise InputError if it does not fit.

    The decoder of the line does not check such parts; for example, a number may be too large.
    """
    import msgspec

    try:
        return decoder.decode(part) if decoder else msgspec.json.decode(part)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(str(error).partition(" - at `")[0], field=field) from None


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u(?:[dD][89a-fA-F][0-9a-fA-F]{2}|0000))|\\.",
    re.DOTALL,
)
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def valid_json(data: bytes, path: str | Path, line: int | None) -> bytes:
    """Return JSON that msgspec accepts: half of a surrogate pair becomes NUL, also invalid."""
    # most lines have no escape, and searching one byte is much faster than two
    if b"\\" not in data or b"\\u" not in data or not (match := _SUSPECT.search(data)):
        return data
    record_replacement(path, line or data.count(b"\n", 0, match.start()) + 1)
    return _ESCAPE.sub(lambda match: b"\\u0000" if match[1] else match[0], data)


def encode_json(value: object, path: str | Path) -> bytes:
    """Return the value as one line of JSON; raise InputError if UTF-8 cannot encode a text."""
    import msgspec

    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        raise _no_utf8(path) from None


def encode_text(text: str, path: str | Path) -> bytes:
    """Return the text in UTF-8; raise InputError if UTF-8 cannot encode it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _no_utf8(path) from None


def _no_utf8(path: str | Path) -> InputError:
    return InputError("a text has half of a surrogate pair, which UTF-8 cannot encode", file=path)


_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
"""Start of a JSON array of objects; no line of JSON-lines starts like this."""


@contextmanager
def _json_faults(path: str | Path, line: Callable[[], int] = lambda: 1) -> Iterator[None]:
    """Map decoding errors of a whole file to InputError; `line` converts offsets to lines."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise InputError(f"broken JSON ({error.msg})", file=path, line=error.lineno) from None
    except (RecursionError, ValueError):
        raise InputError(
            "broken JSON (nested too deeply, or a number too long)", file=path, line=line()
        ) from None


class _LineCounter:
    """Count the lines of a text up to increasing offsets."""

    def __init__(self, text: str) -> None:
        self._text, self._counted, self.line = text, 0, 1

    def at(self, place: int) -> int:
        self.line += self._text.count("\n", self._counted, place)
        self._counted = place
        return self.line


def _objects(stream: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (first line, object) for every object of a JSON array, each written on one line."""
    text = _whole_text(stream.read(LONGEST_TEXT), path)
    lines = _LineCounter(text)
    with _json_faults(path, lambda: lines.line):
        for start, end in _elements(text):
            yield lines.at(start), _BREAK.sub(" ", text[start:end]).encode()
        if (place := _expect(text, end, "]")) != len(text):
            raise json.JSONDecodeError("text after the array", text, place)


def read_documents(path: str | Path) -> Iterator[tuple[Callable[[int], int], str, int, Any]]:
    """Yield (line of an offset, text, offset, value) of every JSON value of a file.

    NaN and Infinity, which Python writes but JSON does not allow, become null.

    Raises:
        InputError: The file is broken or truncated; the message has the line.
    """
    text = valid_json(read_text(path).encode(), path, None).decode()
    lines = _LineCounter(text)
    place = _skip_space(text, 0)
    with _json_faults(path, lambda: lines.line):
        while place < len(text):
            value, end = _LENIENT.raw_decode(text, place)
            yield lines.at, text, place, value
            place = _skip_space(text, end)


def elements_at(
    text: str, start: int, keys: Sequence[str], outer: Mapping[str, Any] | None = None
) -> Iterator[tuple[int, Any, Mapping[str, Any]]]:
    """Yield (offset, value, fields of the objects around it) of the values at a path of keys.

    The path starts at the value at `start`, and goes through lists. The key `*` means all fields of
    an object, whose name is then the field `key` around it.
    """
    outer = outer or {}
    if text[start] == "[":
        for begin, _ in _elements(text, start):
            yield from elements_at(text, begin, keys, outer)
    elif not keys:
        yield start, _LENIENT.raw_decode(text, start)[0], outer
    elif text[start] == "{":
        first, *rest = keys
        pairs = [*_pairs(text, start, is_part=True)]
        others = {key: value for _, key, _, value in pairs if first not in (key, "*")}
        for _, key, at, _ in pairs:
            if first in (key, "*"):
                named = {"key": key} if first == "*" else {}
                yield from elements_at(text, at, rest, {**outer, **others, **named})


def _elements(text: str, place: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the start and end of every element of the JSON array at `place`."""
    place, mark = _expect(text, place, "["), ","
    if text[place : place + 1] == "]":
        return
    while mark == ",":
        _, end = _VALUE.raw_decode(text, place)
        yield place, end
        place = _skip_space(text, end)
        mark = text[place : place + 1]
        if mark == ",":
            place = _skip_space(text, place + 1)
    _expect(text, place, "]")


_BREAK = re.compile(r"[\r\n]+")
_SPACE = re.compile(r"[ \t\r\n]*")
_VALUE = json.JSONDecoder()
_LENIENT = json.JSONDecoder(parse_constant=lambda _: None)


def read_pairs(path: str | Path) -> Iterator[tuple[int, str, Any]]:
    """Yield (line, key, value) of a file that is one JSON object, including duplicate keys.

    Raises:
        InputError: The file is not a JSON object; the message has the line.
    """
    text = valid_json(read_text(path).encode(), path, None).decode()
    lines = _LineCounter(text)
    with _json_faults(path, lambda: lines.line):
        for start, key, _, value in _pairs(text, 0):
            yield lines.at(start), key, value


def _pairs(text: str, place: int, *, is_part: bool = False) -> Iterator[tuple[int, str, int, Any]]:
    """Yield (start, key, start of value, value); text may follow only a nested object."""
    place = _expect(text, place, "{")
    mark = "" if text[place : place + 1] == "}" else ","
    while mark == ",":
        start = place
        key, place = _VALUE.raw_decode(text, start)
        if not isinstance(key, str):
            raise json.JSONDecodeError("a key must be a string", text, start)
        at = _expect(text, place, ":")
        value, place = _VALUE.raw_decode(text, at)
        place = _skip_space(text, place)
        yield start, key, at, value
        mark = text[place : place + 1]
        if mark == ",":
            place = _skip_space(text, place + 1)
    place = _expect(text, place, "}")
    if not is_part and place != len(text):
        raise json.JSONDecodeError("text after the object", text, place)


def _skip_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def _expect(text: str, place: int, mark: str) -> int:
    """Return the offset after a mark and surrounding space, or raise json.JSONDecodeError."""
    place = _skip_space(text, place)
    if text[place : place + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark!r}", text, place)
    return _skip_space(text, place + 1)


# ---- binary --------------------------------------------------------------------------------------


HEAD = 1024
"""Bytes that identify a binary file."""
SQLITE = b"SQLite format 3\0"
_SAVE = "Save its content as JSON-lines, CSV or TSV"
_UNPACK = "Unpack it first; only .gz, .xz and .zst are unpacked automatically"
_RANX = (
    f"{_UNPACK}. Files that ranx packs this way are binary: convert them in ranx with "
    "Run.from_file(FILE).save('NAME.json'), or Qrels"
)
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(start, re.DOTALL), what, hint)
    for start, what, hint in (
        (re.escape(SQLITE), "is an SQLite file, as collections are", "Export the data first: "
                                                                     "exampp export"),
        (rb"PK\x03\x04", "is a zip archive or spreadsheet", _SAVE),
        (rb"\xd0\xcf\x11\xe0", "is a Microsoft Office file", _SAVE),
        (rb"%PDF-", "is a PDF file", _SAVE),
        (rb"PAR1", "is a Parquet file", _SAVE),
        (rb"(?:ARROW1|\xff\xff\xff\xff.\0\0\0)", "is an Arrow file", _SAVE),
        (rb"\x80[\x02-\x05]", "is a Python pickle", _SAVE),
        (rb"\x93NUMPY", "is a NumPy array", _SAVE),
        (rb"(?:\x89PNG|\xff\xd8\xff|GIF8)", "is an image", "Check the path"),
        (rb"\x7fELF", "is an executable", "Check the path"),
        (rb"\x04\x22\x4d\x18", "is compressed with lz4, as ranx may save runs", _RANX),
        (rb"BZh[1-9]", "is compressed with bzip2", _UNPACK),
        (rb".{257}ustar", "is a tar archive", _UNPACK),
        (rb"(?:\xff\xfe|\xfe\xff)", "is UTF-16 text", "Convert the file to UTF-8"),
    )
)  # fmt: skip
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def refuse_binary(head: bytes, path: str | Path) -> None:
    """Reject a file that is binary by its first bytes (`HEAD` or fewer).

    Raises:
        InputError: The file is binary; the message names its type.
    """
    for start, what, hint in _KINDS:
        if start.match(head):
            raise InputError(what, file=path, hint=hint)
    try:
        head.decode()
    except UnicodeDecodeError as error:
        is_cut = error.start > len(head) - 4
        if not is_cut and _CONTROLS.search(head):
            raise InputError("is a binary file", file=path, hint=_SAVE) from None


# ---- compression ---------------------------------------------------------------------------------


_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
READ_FAULTS = (EOFError, OSError, zlib.error, lzma.LZMAError)
PROPORTION = 200
"""Maximum ratio of unpacked to packed size; text packs to about a fifth, repeated text to a 50th.
"""
ROOM = 1 << 26
"""Unpacked bytes allowed for any file."""
_PIECE = 1 << 20


def compression(path: Path) -> str:
    """Return `gz`, `xz`, `zst` or "", by the first bytes of the file."""
    with path.open("rb") as stream:
        return _compression(stream)


def _compression(stream: io.BufferedReader) -> str:
    head = stream.peek(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def unpacked(path: Path) -> io.BufferedReader:
    """Return a stream of the file's unpacked bytes.

    Reading raises InputError if the unpacked size is suspicious, and one of `READ_FAULTS` or an
    error of zstandard if the file is damaged or truncated.
    """
    stream = path.open("rb")
    kind = _compression(stream)
    if not kind:
        return stream
    return io.BufferedReader(_Unpacked(path, stream, _OPENERS[kind](stream)), _PIECE)


def is_read_fault(error: BaseException) -> bool:
    """Return whether the error means a damaged compressed file; zstandard is optional."""
    return isinstance(error, READ_FAULTS) or type(error).__name__ == "ZstdError"


class _Unpacked(io.RawIOBase):
    """Stream of a compressed file; all content comes before an error about its end or size."""

    def __init__(self, path: Path, file: io.BufferedReader, source: io.BufferedIOBase) -> None:
        self._path = path
        self._file = file
        self._source = source
        self._left = ROOM + PROPORTION * path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read1(len(buffer))
        buffer[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise InputError(
                f"unpacks to more than {PROPORTION} times its size",
                file=self._path,
                hint="If this is intended, unpack it first",
            )
        return len(data)

    def close(self) -> None:
        self._source.close()
        self._file.close()
        super().close()


class _Zstd(io.BufferedIOBase):
    """All frames of a zstd file; raises EOFError if the last one is truncated.

    The stream reader of zstandard ignores truncation.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        import zstandard

        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._file = file
        self._ready = memoryview(b"")

    def read1(self, size: int = -1, /) -> bytes:
        while not self._ready and self._decompress():
            pass
        part = bytes(self._ready[:size])
        self._ready = self._ready[size:]
        return part

    def _decompress(self) -> bool:
        # Small pieces, because one can unpack to thousands of times its size.
        unread = b"" if self._frame is None else self._frame.unused_data
        unread = unread or self._file.read(1024)
        if self._frame is None or self._frame.eof:
            if not unread:
                return False
            self._frame = self._new_frame()
        if not unread:
            raise EOFError
        self._ready = memoryview(self._frame.decompress(unread))
        return True


_OPENERS: dict[str, Any] = {
    "gz": lambda file: gzip.GzipFile(fileobj=file),
    "xz": lzma.LZMAFile,
    "zst": _Zstd,
}


# ---- in memory -----------------------------------------------------------------------------------


MemoryLines = Sequence[tuple[int, bytes]]
"""The rows of an in-memory name: the number of each, and the row as a line of JSON."""

_HELD: ContextVar[Mapping[Path, MemoryLines] | None] = ContextVar("held", default=None)


@contextmanager
def reading_from_memory(lines: Mapping[Path, MemoryLines]) -> Iterator[None]:
    """Read these names from memory within the context, even if such files exist."""
    token = _HELD.set(lines)
    try:
        yield
    finally:
        _HELD.reset(token)


def lines_in_memory(path: str | Path) -> MemoryLines | None:
    """Return the rows of an in-memory name; None for a file name.

    Raises:
        InputError: There are no rows.
    """
    lines = (_HELD.get() or {}).get(Path(path))
    if lines is not None and not lines:
        raise InputError("there are no rows", file=path)
    return lines


def as_lines(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, bytes]]:
    """Yield numbered rows of JSON-able values, each as a line of JSON."""
    import msgspec

    for number, row in rows:
        try:
            yield number, msgspec.json.encode(row)
        except (UnicodeEncodeError, OverflowError):
            # readers report invalid text and numbers beyond 64 bits
            yield number, json.dumps(row).encode()
