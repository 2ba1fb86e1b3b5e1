"""Lines of text files: compressed or not, with their numbers, and faults that say where they are.

Readers of this package take `on_error`, which is called with each bad line's `InputError`. The
default, `refuse`, raises it; a `Skipped` counts it and lets the reader go on.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.outside import check_path, fit_name
from exampp.store.connection import is_collection

OnError = Callable[[InputError], None]
T = TypeVar("T")


def accept(_record: object) -> None:
    """Have nothing to say against a record: what readers ask about each by default."""


def refuse(error: InputError) -> None:
    """Raise the error: one bad line refuses the whole file."""
    raise error


@dataclass(slots=True)
class Skipped:
    """Counts bad lines instead of refusing the file; keeps the first errors for the report."""

    count: int = 0
    first: list[InputError] = field(default_factory=list)
    keep: int = 20

    def __call__(self, error: InputError) -> None:
        """Count one bad line."""
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(error)


_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_BOM = b"\xef\xbb\xbf"
_READ_FAULTS = (EOFError, OSError, zlib.error, lzma.LZMAError)


def compression(path: Path) -> str:
    """`gz`, `xz`, `zst` or an empty string, by the first bytes of the file, whatever its name."""
    with path.open("rb") as stream:
        head = stream.read(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def _decompressed(path: Path) -> IO[bytes]:
    kind = compression(path)
    if kind == "gz":
        return io.BufferedReader(_Gzip(path), 1 << 20)
    if kind == "xz":
        return lzma.open(path, "rb")
    if kind == "zst":
        return io.BufferedReader(_Zstd(path), 1 << 20)
    return path.open("rb")


class _Gzip(io.RawIOBase):
    """A gzip file that gives out all there is before it says that it is cut off."""

    def __init__(self, path: Path) -> None:
        self._source = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._source.read1(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._source.close()
        super().close()


class _Zstd(io.RawIOBase):
    """All frames of a zstd file; EOFError where the last one is cut off.

    zstandard's own stream reader ends at a cut as if the file were whole.
    """

    def __init__(self, path: Path) -> None:
        import zstandard

        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._source = path.open("rb")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and self._decompress():
            pass
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)

    def _decompress(self) -> bool:
        # Small pieces, because one of them can unpack to thousands of times its size.
        unread = b"" if self._frame is None else self._frame.unused_data
        unread = unread or self._source.read(4096)
        if self._frame is None or self._frame.eof:
            if not unread:
                return False
            self._frame = self._new_frame()
        if not unread:
            raise EOFError
        self._ready = self._frame.decompress(unread)
        return True

    def close(self) -> None:
        self._source.close()
        super().close()


def existing_file(path: str | Path) -> Path:
    """The path, if it is a file that can be read and holds something; InputError otherwise."""
    path = check_path(path)
    if path.is_dir():
        raise InputError("is a folder, not a file", file=path)
    if path.exists() and not path.is_file():
        raise InputError("is no regular file", file=path, mend="Save it to a file first")
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except FileNotFoundError:
        raise InputError("no such file", file=path, mend="Check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None
    if empty:
        raise InputError("the file is empty", file=path)
    return path


@contextmanager
def reading(path: str | Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked, for formats without lines; refusals as in `read_lines`."""
    path = existing_file(path)
    try:
        with _decompressed(path) as stream:
            yield stream
    except Exception as error:
        if not isinstance(error, _READ_FAULTS) and type(error).__name__ != "ZstdError":
            raise
        raise _damaged(path, None, error) from None


def read_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) of every line that is not blank.

    Decompresses .gz, .xz and .zst, drops a byte-order mark and carriage returns. Raises
    InputError for a file that is missing, blank, damaged or cut off, with the line reached.
    """
    path = existing_file(path)
    number = 0
    blank = True
    try:
        with _decompressed(path) as stream:
            for line in stream:
                number += 1
                if number == 1 and line.startswith(_BOM):
                    line = line[len(_BOM) :]
                line = line.rstrip(b"\r\n")
                if line and not line.isspace():
                    blank = False
                    yield number, line
    except _READ_FAULTS as error:
        raise _damaged(path, number, error) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise _damaged(path, number, error) from None
    if blank:
        raise InputError("the file is empty", file=path)


def read_text(path: str | Path) -> str:
    """The whole file as text, blank lines and line ends kept; refusals as in `read_lines`."""
    path = existing_file(path)
    try:
        with _decompressed(path) as stream:
            data = stream.read().removeprefix(_BOM)
    except Exception as error:
        if not isinstance(error, _READ_FAULTS) and type(error).__name__ != "ZstdError":
            raise
        raise _damaged(path, None, error) from None
    if not data.strip():
        raise InputError("the file is empty", file=path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        start = data.rfind(b"\n", 0, error.start) + 1
        raise _not_utf8(path, line, error.start - start + 1) from None


def _damaged(path: Path, lines: int | None, error: Exception) -> InputError:
    cut = isinstance(error, EOFError)
    what = "the compressed file is cut off" if cut else f"the file cannot be read ({error})"
    reached = "" if lines is None else f" after line {lines}"
    return InputError(what + reached, file=path, mend="Copy or download the file again")


def _not_utf8(path: str | Path, line: int | None, byte: int) -> InputError:
    return InputError(
        f"not UTF-8 text (byte {byte} of the line)",
        file=path,
        line=line,
        mend="Convert the file to UTF-8",
    )


def text_of(line: bytes, path: str | Path, number: int | None) -> str:
    """The line as text; InputError where it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, number, error.start + 1) from None


def plain_name(path: str | Path) -> str:
    """The file's name in lower case, without the ending of its compression."""
    name = fit_name(Path(path).name).lower()
    return re.sub(r"\.(gz|xz|zst)$", "", name)


def decode_json(
    line: bytes, decoder: msgspec.json.Decoder[T], path: str | Path, number: int | None
) -> T:
    """Decode one JSON value of the decoder's type; InputError with the field that does not fit."""
    if not line.isascii():
        # msgspec leaves parts that it need not look into unchecked, and says only which byte.
        text_of(line, path, number)
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `")
        raise InputError(
            what, file=path, line=number, field=place.rstrip("`").removeprefix("$").lstrip(".")
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            "not UTF-8 text", file=path, line=number, mend="Convert the file to UTF-8"
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"broken JSON ({error})", file=path, line=number) from None


def encode_json(value: object, path: str | Path) -> bytes:
    """The value as one line of JSON, with its end; InputError for text that UTF-8 cannot hold."""
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        raise _no_utf8(path) from None


def encode_text(text: str, path: str | Path) -> bytes:
    """The text in UTF-8; InputError for text that UTF-8 cannot hold."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _no_utf8(path) from None


def _no_utf8(path: str | Path) -> InputError:
    return InputError("a text holds half of a surrogate pair, which is no UTF-8", file=path)


_SPACE = re.compile(r"[ \t\r\n]*")
_VALUE = json.JSONDecoder()


def read_pairs(path: str | Path) -> Iterator[tuple[int, str, Any]]:
    """Yield (line, key, value) of a file that is one JSON object; a key that recurs recurs here.

    Raises InputError with the line where the file is no JSON object.
    """
    text = read_text(path)
    line, counted = 1, 0
    try:
        for start, key, value in _pairs(text):
            line += text.count("\n", counted, start)
            counted = start
            for part in (key, value):
                if isinstance(part, str) and not part.isascii():
                    encode_text(part, path)
            yield line, key, value
    except json.JSONDecodeError as error:
        raise InputError(f"broken JSON ({error.msg})", file=path, line=error.lineno) from None
    except (RecursionError, ValueError):
        raise InputError(
            "broken JSON (nested too deeply, or a number too long)", file=path, line=line
        ) from None


def _pairs(text: str) -> Iterator[tuple[int, str, Any]]:
    place = _expect(text, 0, "{")
    mark = "" if text[place : place + 1] == "}" else ","
    while mark == ",":
        start = place
        key, place = _VALUE.raw_decode(text, start)
        if not isinstance(key, str):
            raise json.JSONDecodeError("a key must be a string", text, start)
        value, place = _VALUE.raw_decode(text, _expect(text, place, ":"))
        yield start, key, value
        place = _skip(text, place)
        mark = text[place : place + 1]
        if mark == ",":
            place = _skip(text, place + 1)
    place = _expect(text, place, "}")
    if place != len(text):
        raise json.JSONDecodeError("more text after the object", text, place)


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def _expect(text: str, place: int, mark: str) -> int:
    place = _skip(text, place)
    if text[place : place + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark!r}", text, place)
    return _skip(text, place + 1)


def keep_inputs(outputs: Sequence[Path | None], inputs: Sequence[Path | str | None]) -> None:
    """Refuse to write what is read, by whatever link, or two things into one file.

    Raises:
        InputError: An output is among the inputs, or given twice.
    """
    written = [path for path in outputs if path]
    read = [Path(path) for path in inputs if path]
    for number, path in enumerate(written):
        if any(_same_file(path, other) for other in read):
            raise InputError("is read, and would be lost", file=path, mend="Write to another file")
        if any(_same_file(path, other) for other in written[:number]):
            raise InputError("would be written twice", file=path, mend="Name two files")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when all of it is written, and never before.

    The name's ending (.gz, .xz, .zst) chooses the compression. An existing file is replaced in
    one step, so that reader and writer may be the same file. Devices and pipes are written to as
    it comes. Raises InputError for a place that cannot be written, and for a collection.
    """
    # a link stays a link: what it leads to is replaced
    path = Path(os.path.realpath(check_path(path)))
    if path.is_dir():
        raise InputError("is a folder, not a file", file=path)
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    _spare_collections(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=path) from None
    try:
        with os.fdopen(handle, "wb") as raw:
            with _compressed(raw, path.suffix) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            # a full disk does not say whose
            error.filename = str(path)
        raise


def _spare_collections(path: Path) -> None:
    """Refuse to replace a collection, and the files that SQLite keeps beside an open one."""
    named = re.fullmatch(r"(.+)-(?:wal|shm|journal)", path.name)
    beside = path.with_name(named[1]) if named else None
    what = "is a collection" if is_collection(path) else ""
    if beside and is_collection(beside):
        what = f"belongs to the collection {beside.name}"
    if what:
        raise InputError(f"{what}, and would be lost", file=path, mend="Write to another file")


@contextmanager
def _compressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as stream:
            yield stream  # type: ignore[misc]
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as xz:
            yield xz  # type: ignore[misc]
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False) as zst:
            yield zst
    else:
        yield raw
