"""The connection of every collection: SQLite's errors become exampp's, and rows have checksums.

What does not fit (half of a surrogate pair, an integer beyond 64 bits, a text beyond SQLite's
limit) never reaches the file. A damaged page raises Damaged, whatever reads it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self

from exampp.errors import InputError
from exampp.store.checksums import Checksums

ROWS = 100
"""Rows that are fetched at a time while a result is iterated."""
_DAMAGED = ("malformed", "Could not decode to UTF-8", "corrupt")

FAULTS = (sqlite3.DatabaseError, UnicodeError, OverflowError)


class Damaged(InputError):
    """The collection's file is damaged, or not as exampp makes it."""

    def __init__(self, file: str, error: object, what: str = "the file is damaged") -> None:
        super().__init__(
            f"is not a readable collection: {what} ({error})",
            file=file or None,
            mend="Take a copy that is whole, or save what can be read into a new collection: "
            "exampp init NEW --rescue FILE",
        )


class GuardedConnection(sqlite3.Connection):
    """A connection whose errors are exampp's own.

    `file` is what it has open, `written` how many transactions that write have begun. `checksums`
    is None until the schema is known to be exampp's.
    """

    file = ""
    written = 0
    checksums: Checksums | None = None

    def __enter__(self) -> Self:
        """As that of sqlite3, with the errors of `execute`."""
        try:
            return super().__enter__()
        except FAULTS as error:
            raise told(self, error) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Literal[False]:
        """Commit with the checksums of what was written, or roll back after an exception."""
        if kind is None and self.in_transaction and self.checksums is not None:
            self.checksums.write(self)
        return super().__exit__(kind, error, trace)

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """As that of sqlite3; InputError for values that do not fit, Damaged for a damaged page."""
        try:
            cursor = Cursor(self)
            sqlite3.Cursor.execute(cursor, sql, parameters)
        except FAULTS as error:
            raise told(self, error) from None
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """As that of sqlite3, with the errors of `execute`."""
        try:
            cursor = Cursor(self)
            sqlite3.Cursor.executemany(cursor, sql, parameters)
        except FAULTS as error:
            raise told(self, error) from None
        return cursor


class Cursor(sqlite3.Cursor):
    """A result whose rows may lie on a damaged page."""

    connection: GuardedConnection

    def fetchone(self) -> Any:
        """The next row, None after the last."""
        try:
            return super().fetchone()
        except FAULTS as error:
            raise told(self.connection, error) from None

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """The next rows."""
        try:
            return super().fetchmany(size)
        except FAULTS as error:
            raise told(self.connection, error) from None

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        try:
            return super().fetchall()
        except FAULTS as error:
            raise told(self.connection, error) from None

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while rows := self.fetchmany(ROWS):
            yield from rows


def told(connection: GuardedConnection, error: Exception) -> Exception:
    """The error as a sentence of ours, as far as it is about a value or about the file."""
    if isinstance(error, UnicodeEncodeError):
        what = "a text holds half of a surrogate pair, which no file can hold"
        return InputError(what, mend="Remove it")
    if isinstance(error, OverflowError | sqlite3.DataError):
        return InputError(f"a value is too large for a collection ({error})")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return InputError(
            "is closed", file=connection.file or None, mend="Open it again with exampp.open"
        )
    if isinstance(error, sqlite3.ProgrammingError) and "thread" in str(error):
        return InputError(
            "was opened in another thread",
            file=connection.file or None,
            mend="Open it with exampp.open in each thread that uses it",
        )
    # the message of an error may quote what is damaged, and be no text then
    if isinstance(error, UnicodeError) or any(word in str(error) for word in _DAMAGED):
        return Damaged(connection.file, error)
    return error
