"""Compressed files: known by their first bytes, unpacked a piece at a time, within bounds.

A few kilobytes can unpack to as many gigabytes. What comes out of a file is bounded by a multiple
of its size that no text of the field reaches, so that reading one takes bounded time and memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any, Protocol

from exampp.errors import InputError

_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
READ_FAULTS = (EOFError, OSError, zlib.error, lzma.LZMAError)
PROPORTION = 200
"""Times its own size that a file may unpack to; text packs to a fifth, the same again to a 50th."""
ROOM = 1 << 26
"""Bytes that any file may unpack to, whatever its size."""
_PIECE = 1 << 20


def compression(path: Path) -> str:
    """`gz`, `xz`, `zst` or an empty string, by the first bytes of the file, whatever its name."""
    with path.open("rb") as stream:
        return _compression(stream)


def _compression(stream: io.BufferedReader) -> str:
    head = stream.peek(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def unpacked(path: Path) -> io.BufferedReader:
    """The bytes of a file, compressed or not.

    Reading raises InputError where more comes out than is in proportion to the file, and one of
    `READ_FAULTS` or zstandard's own error where it is damaged or cut off.
    """
    stream = path.open("rb")
    kind = _compression(stream)
    if not kind:
        return stream
    return io.BufferedReader(_Unpacked(path, stream, _OPENERS[kind](stream)), _PIECE)


def is_read_fault(error: BaseException) -> bool:
    """Whether a compressed file is damaged; zstandard is no dependency whose errors are known."""
    return isinstance(error, READ_FAULTS) or type(error).__name__ == "ZstdError"


class _Source(Protocol):
    def read1(self, size: int, /) -> bytes:
        """Some bytes, none at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class _Unpacked(io.RawIOBase):
    """What comes out of a file: all there is before it says that it is cut off, or too much."""

    def __init__(self, path: Path, file: io.BufferedReader, source: _Source) -> None:
        self._path = path
        self._file = file
        self._source = source
        self._left = ROOM + PROPORTION * path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._source.read1(len(buffer))
        buffer[: len(found)] = found
        self._left -= len(found)
        if self._left < 0:
            raise InputError(
                f"unpacks to more than {PROPORTION} times its size",
                file=self._path,
                mend="Unpack it first, if that is what it is to hold",
            )
        return len(found)

    def close(self) -> None:
        self._source.close()
        self._file.close()
        super().close()


class _Zstd:
    """All frames of a zstd file; EOFError where the last one is cut off.

    zstandard's own stream reader ends at a cut as if the file were whole.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        import zstandard

        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._file = file
        self._ready = memoryview(b"")

    def read1(self, size: int, /) -> bytes:
        while not self._ready and self._decompress():
            pass
        part = bytes(self._ready[:size])
        self._ready = self._ready[size:]
        return part

    def _decompress(self) -> bool:
        # Small pieces, because one of them can unpack to thousands of times its size.
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

    def close(self) -> None:
        self._file.close()


def _gzip(file: io.BufferedReader) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


_OPENERS: dict[str, Any] = {"gz": _gzip, "xz": lzma.LZMAFile, "zst": _Zstd}
