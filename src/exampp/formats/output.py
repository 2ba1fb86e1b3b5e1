"""Write files as a whole or not at all, compressed by suffix, and never over an input.

An unfinished file has a temporary name next to its target, with the id of the writing process. If
that process was killed, the next writer of the same target removes it.
"""

from __future__ import annotations

import fcntl
import gzip
import lzma
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from exampp.errors import InputError, StorageFault
from exampp.sanitize import check_path
from exampp.store.connection import connect, is_collection, link_collection, put_in_place
from exampp.store.runs import process_exists

_GZIP_LEVEL = 6
"""zlib's default; Python's 9 needs two to three times the CPU for 4 to 9 % less size."""
_LONGEST = 60
"""Longest part of a name in the temporary name; file systems limit the length."""
_UNFINISHED = re.compile(r"\.(?P<pid>[0-9]{1,10})@(?P<host>.+)\.[0-9a-f]{8}\.unfinished")
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|[0-9]+))/fd/([0-9]{1,9})")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | str | None]) -> None:
    """Reject outputs that are also inputs (by any link), and duplicate outputs.

    Raises:
        InputError: An output is among the inputs, or given twice.
    """
    written = [check_path(path) for path in outputs if path]
    read = [check_path(path) for path in inputs if path]
    for number, path in enumerate(written):
        if any(_same_file(path, other) for other in read):
            raise InputError(
                "is an input and would be overwritten", file=path, hint="Write to another file"
            )
        if any(_same_file(path, other) for other in written[:number]):
            raise InputError("would be written twice", file=path, hint="Name two files")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


def descriptor(path: str | Path) -> int | None:
    """Return the open file descriptor that the path names, such as /dev/stdout, or None."""
    name = os.path.normpath(path)
    match = _DESCRIPTOR.fullmatch(name)
    if match and name.split("/")[2] not in ("fd", "self", "thread-self", str(os.getpid())):
        return None
    return int(match[1]) if match else _STREAMS.get(name)


_NO_TEXT = re.compile(
    r"\.(pdf|png|jpe?g|gif|xlsx?|ods|docx?|odt|parquet|feather|arrow|zip|tar|bz2|lz4|7z|db|sqlite3?"
    r"|pkl|np[yz])"
)
"""Suffixes of binary files and of unsupported compressions."""


@contextmanager
def writing(path: str | Path, *, text: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream; the file appears only when its content is complete.

    The suffix (.gz, .xz, .zst) selects the compression. An existing file is replaced in one step,
    so reader and writer may be the same file. Devices, pipes and open files such as /dev/stdout are
    written directly.

    Raises:
        InputError: The path is not writable or is a collection, or `text` is true and the suffix is
            that of a binary file.
    """
    # replace the target of a link, not the link
    path = check_path(path)
    place = Path(os.path.realpath(path))
    if path.is_dir():
        raise InputError("is a folder, not a file", file=path)
    if text and _NO_TEXT.fullmatch(ending := path.suffix.lower()):
        raise InputError(
            f"the output is text, not a {ending} file",
            file=path,
            hint="Use another suffix",
        )
    if descriptor(path) is not None or (path.exists() and not path.is_file()):
        with _through(path) as stream:
            yield stream
        return
    _spare_collections(place)
    with _unfinished(place) as raw:
        with _compressed(raw, place.suffix) as stream:
            yield stream
        raw.flush()
        put_in_place(Path(raw.name), place)


@contextmanager
def _through(place: Path) -> Iterator[BinaryIO]:
    """Yield a stream that writes directly to a device, a pipe or an open file."""
    number = descriptor(place)
    try:
        if number == 1 and sys.stdout is not None:
            # keep the order of earlier output
            sys.stdout.flush()
        target: int | Path = place if number is None else os.dup(number)
        stream = open(target, "wb")  # noqa: PTH123, SIM115
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=place) from None
    try:
        with stream:
            yield stream
    except OSError as error:
        error.filename = error.filename or str(place)
        raise


@contextmanager
def temporary_file(place: Path) -> Iterator[Path]:
    """Yield a temporary file next to the target; it is removed on exit, with its SQLite files.

    `store.durable` moves it to the target.

    Raises:
        InputError: The path is not writable.
        StorageFault: The disk rejected the file; nothing is left behind.
    """
    with _unfinished(place) as lock:
        try:
            yield Path(lock.name)
        except StorageFault as error:
            raise StorageFault(
                place,
                error.why,
                "Nothing was written. Free some space, then run the same command again",
            ) from None


def create_collection(path: Path) -> None:
    """Create an empty collection, in one step; raise InputError if that fails."""
    if path.exists() or not path.parent.is_dir():
        connect(path, create=True).close()
        return
    with temporary_file(path) as temporary:
        connect(temporary, create=True).close()
        link_collection(temporary, path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes the target in one step when complete.

    Raises:
        InputError: The target exists, or is not writable.
    """
    if path.exists():
        raise InputError("already exists", file=path, hint="Use a new folder name")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        temporary.mkdir()
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=path) from None
    try:
        yield temporary
        put_in_place(temporary, path)
    except (InputError, OSError) as error:
        _name(error, temporary, path)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _name(error: InputError | OSError, temporary: Path, place: Path) -> None:
    """Make an error name the target instead of the temporary file."""
    if isinstance(error, OSError):
        error.filename = str(error.filename or place).replace(str(temporary), str(place))
    else:
        error.what = error.what.replace(str(temporary), str(place))
        error.file = error.file and error.file.replace(str(temporary), str(place))


@contextmanager
def _unfinished(place: Path) -> Iterator[BinaryIO]:
    """Yield a new, locked temporary file next to the target, with default permissions.

    It is removed on exit, with its SQLite files. Errors name the target.

    Raises:
        InputError: The path is not writable.
    """
    owner = f"{os.getpid()}@{os.uname().nodename}"
    name = f".{place.name[:_LONGEST]}.{owner}.{os.urandom(4).hex()}.unfinished"
    try:
        remove_leftovers(place)
        stream = place.with_name(name).open("xb")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=place) from None
    with suppress(OSError):
        # some network file systems have no locks; the process id then decides
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    temporary = Path(stream.name)
    try:
        with stream:
            yield stream
    except (InputError, OSError) as error:
        # the error of a full disk does not name the file
        _name(error, temporary, place)
        raise
    finally:
        _remove(temporary)


def remove_leftovers(place: Path) -> None:
    """Remove temporary files that dead processes of this machine left for the same target."""
    start = f".{place.name[:_LONGEST]}"
    for unfinished in place.parent.iterdir():
        rest = unfinished.name.removeprefix(start)
        match = _UNFINISHED.fullmatch(rest) if rest != unfinished.name else None
        is_here = match is not None and match["host"] == os.uname().nodename
        if match and is_here and not process_exists(int(match["pid"])):
            with suppress(OSError):
                _remove_unlocked(unfinished)


def _remove_unlocked(unfinished: Path) -> None:
    # a process in another container may have the same id; it then has the lock
    with unfinished.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(unfinished)


def _remove(unfinished: Path) -> None:
    """Remove a temporary file, and the SQLite files next to a collection."""
    for beside in ("-wal", "-shm", "-journal", ""):
        Path(f"{unfinished}{beside}").unlink(missing_ok=True)


def _spare_collections(path: Path) -> None:
    """Refuse to overwrite a collection or its SQLite files."""
    named = re.fullmatch(r"(.+)-(?:wal|shm|journal)", path.name)
    beside = path.with_name(named[1]) if named else None
    what = "is a collection" if is_collection(path) else ""
    if beside and is_collection(beside):
        what = f"belongs to the collection {beside.name}"
    if what:
        raise InputError(
            f"{what} and would be overwritten", file=path, hint="Write to another file"
        )


@contextmanager
def _compressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as stream:
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
