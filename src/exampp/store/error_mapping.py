"""The connection of every collection: maps the errors of SQLite, and writes checksums of rows.

Values that do not fit (half of a surrogate pair, an integer beyond 64 bits, a text beyond SQLite's
limit) never reach the file. Closing reports what SQLite's own close ignores.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from exampp.errors import CollectionBusy, InputError, StorageFault
from exampp.store.checksums import Checksums
from exampp.store.file_system import opens_alone

ROWS = 100
"""Rows that are fetched at a time while a result is iterated."""
_DAMAGED = ("malformed", "Could not decode to UTF-8", "corrupt")

P = ParamSpec("P")
T = TypeVar("T")
FAULTS = (sqlite3.DatabaseError, UnicodeError, OverflowError)


class Damaged(InputError):
    """The collection's file is damaged, or not as exampp makes it."""

    def __init__(self, file: str, error: object, what: str = "the file is damaged") -> None:
        super().__init__(
            f"is not a readable collection: {what} ({error})",
            file=file or None,
            hint="Take a copy that is whole",
        )


class GuardedConnection(sqlite3.Connection):
    """A connection whose errors are exampp's own.

    `file` is what errors call the file at `path`; `written` counts transactions that write.
    `checksums` is None until the schema is known to be exampp's; `verified` tells that all rows
    agreed with their checksums. `graded_notes` are what is said of a graded file that it was made
    from, and to which nothing can be written, by grader ("": of all); None for a collection.
    """

    file = ""
    path = Path()
    written = 0
    checksums: Checksums | None = None
    verified = False
    graded_notes: Mapping[str, Sequence[str]] | None = None

    def __enter__(self) -> Self:
        """As that of sqlite3, with the errors of `execute`."""
        try:
            return super().__enter__()
        except FAULTS as error:
            raise map_error(self, error) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Any:
        """Commit with the checksums of what was written, or roll back after an exception."""
        try:
            if kind is None and self.in_transaction and self.checksums is not None:
                self.checksums.write(self)
            return super().__exit__(kind, error, trace)
        except FAULTS as fault:
            raise map_error(self, fault) from None

    def close(self) -> None:
        """Close the file; StorageFault where it does not hold all that was committed."""
        super().close()
        if self.written:
            self.written = 0
            write_back(self.path)

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """As that of sqlite3; InputError for values that do not fit, Damaged for a damaged page."""
        cursor = _mapped(self, Cursor, self)
        _mapped(self, sqlite3.Cursor.execute, cursor, sql, parameters)
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """As that of sqlite3, with the errors of `execute`."""
        cursor = _mapped(self, Cursor, self)
        _mapped(self, sqlite3.Cursor.executemany, cursor, sql, parameters)
        return cursor


class Cursor(sqlite3.Cursor):
    """A result whose rows may lie on a damaged page."""

    connection: GuardedConnection

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        return _mapped(self.connection, super().fetchone)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """Return the next rows."""
        return _mapped(self.connection, super().fetchmany, size)

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return _mapped(self.connection, super().fetchall)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while rows := self.fetchmany(ROWS):
            yield from rows


def _mapped(
    connection: GuardedConnection, call: Callable[P, T], *args: P.args, **options: P.kwargs
) -> T:
    try:
        return call(*args, **options)
    except FAULTS as error:
        raise map_error(connection, error) from None


def map_error(connection: GuardedConnection, error: Exception) -> Exception:
    """The error as a sentence of ours, as far as it is about a value or about the file."""
    if isinstance(error, UnicodeEncodeError):
        what = "a text holds half of a surrogate pair, which no file can hold"
        return InputError(what, hint="Remove it")
    if isinstance(error, OverflowError | sqlite3.DataError):
        return InputError(f"a value is too large for a collection ({error})")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return InputError(
            "is closed", file=connection.file or None, hint="Open it again with exampp.open"
        )
    if isinstance(error, sqlite3.ProgrammingError) and "thread" in str(error):
        return InputError(
            "was opened in another thread",
            file=connection.file or None,
            hint="Open it with exampp.open in each thread that uses it",
        )
    # the message of an error may quote what is damaged, and be no text then
    if isinstance(error, UnicodeError) or any(word in str(error) for word in _DAMAGED):
        return Damaged(connection.file, error)
    return storage_fault(connection.file, error) or error


def storage_fault(file: str, error: Exception) -> Exception | None:
    """The error of exampp for a primary result code of SQLite that is about the file."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return busy(file)
    if code == sqlite3.SQLITE_CANTOPEN:
        alone = not Path(f"{file}-wal").exists()
        return InputError(
            f"cannot be opened ({error})",
            file=file,
            hint=""
            if alone
            else f"{file}-wal holds changes that are not in the file yet. "
            "Copy both to one folder that you can write, and open the copy",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return InputError("is not an exampp collection", file=file)
    if code in _STORAGE:
        what, hint = _STORAGE[code]
        return StorageFault(file, f"{what} ({error})", hint)
    return None


def busy(file: str | Path) -> CollectionBusy:
    """The error for a collection that another process keeps locked."""
    what = f"{file} is in use by another process; try again when it has finished"
    if opens_alone(Path(file)):
        what += ". Other machines may reach its file system: one process at a time opens it"
    return CollectionBusy(what)


_REPEAT = (
    "Everything committed before is kept. Check free space (also for temporary files), quota and "
    "limits, then run the same command again"
)
_STORAGE = {
    sqlite3.SQLITE_FULL: ("the disk is full", _REPEAT),
    sqlite3.SQLITE_IOERR: (
        "the disk, a quota or a file size limit refuses to read or write it",
        _REPEAT,
    ),
    sqlite3.SQLITE_NOLFS: ("the file system takes no file of this size", _REPEAT),
    sqlite3.SQLITE_PROTOCOL: ("the file system refuses to lock it", _REPEAT),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        "Check the permissions of the file and of its folder, or work on a copy",
    ),
}
"""What fails and how to fix it, by the primary result code of SQLite."""


def write_back(path: Path) -> None:
    """Write committed pages that are still in the log (`-wal`) back into a closed collection.

    SQLite does so when the last connection closes, but ignores errors. Another process that has
    the file open shares the log, which stays then.

    Raises:
        StorageFault: The disk refuses it. The log then holds what was committed.
    """
    log = Path(f"{path}-wal")
    try:
        if not log.stat().st_size:
            return
    except OSError:
        return
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as opened:
            opened.execute("PRAGMA synchronous = FULL")
            # the log is opened by the first read
            opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
            opened.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.DatabaseError as error:
        if storage_fault(str(path), error).__class__ is not CollectionBusy:
            raise StorageFault(
                path,
                f"the disk, a quota or a file size limit refuses to write it ({error})",
                f"{log.name} beside it holds what is missing: keep both files together. Make "
                "room, then open the collection again: exampp status",
            ) from None


def check_sound(connection: sqlite3.Connection, file: Path) -> None:
    """Raise Damaged where SQLite's quick check finds a fault in the file."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise Damaged(str(file), found)
