"""The SQLite connection of collections: exampp errors, row checksums, short queries.

Invalid values (lone surrogates, integers beyond 64 bits, texts beyond the limit of SQLite) never
reach the file. Closing reports errors that the close of SQLite ignores.

The table `checksum` has the row count and the checksum of every other table, except for pages
(`store.pages`), which are copies of rows. Temporary triggers of each writing connection add up the
changes of a transaction; the sums are written in the same commit, so a crash cannot invalidate
them. If another program or the disk changes a row, its table no longer matches.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice, starmap
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar
from zlib import crc32

from exampp.errors import CollectionBusy, InputError, StorageFault
from exampp.sanitize import check_id
from exampp.store.file_system import opens_alone

TABLE = "checksum"
_TABLES = (
    "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    f"AND name NOT IN ('{TABLE}', 'query_page', 'grade_page') "
    f"AND EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = '{TABLE}') ORDER BY name"
)


class Mismatch(NamedTuple):
    """A table that differs from its checksum, with its row count then and now."""

    table: str
    expected: int
    found: int


class Checksums:
    """Tracks changes of table checksums in the current transaction.

    `_added` and `_removed` have row checksums by table. The triggers call only built-in functions:
    an interrupt inside a Python function would be lost.
    """

    def __init__(self) -> None:
        self._added: dict[str, array[int]] = {}
        self._removed: dict[str, array[int]] = {}
        self._watching = False

    def begin(self, connection: sqlite3.Connection) -> None:
        """Discard rolled-back changes; create the triggers before the first transaction.

        Called before the transaction, because a rollback would remove the triggers.
        """
        self._clear()
        if not self._watching:
            for (table,) in connection.execute(_TABLES).fetchall():
                for name, by_table in (("added", self._added), ("removed", self._removed)):
                    append = by_table.setdefault(table, array("L")).append
                    _create_function(connection, f"{name}_{table}", 1, append)
                for statement in _triggers(connection, table):
                    connection.execute(statement)
            self._watching = True

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the changes of the transaction just before its commit."""
        both = ((table, self._added[table], self._removed[table]) for table in self._added)
        changes = [
            (table, len(added) - len(removed), sum(added) - sum(removed))
            for table, added, removed in both
            if added or removed
        ]
        if changes:
            connection.executemany(
                f"INSERT INTO {TABLE} VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                "SET rows = rows + excluded.rows, total = total + excluded.total",
                changes,
            )
        self._clear()

    def _clear(self) -> None:
        for checksums in (*self._added.values(), *self._removed.values()):
            del checksums[:]


def _create_function(
    connection: sqlite3.Connection, name: str, arguments: int, function: Callable[..., Any]
) -> None:
    """Create an SQL function, if the connection does not have it yet."""
    # an interrupted call may have created it; SQLite refuses to do so again during a statement
    with suppress(sqlite3.OperationalError):
        connection.create_function(name, arguments, function)


def _triggers(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield the triggers that record added and removed rows of a table."""
    added = f"SELECT added_{table}({_checksum(connection, table, 'NEW.')});"
    removed = f"SELECT removed_{table}({_checksum(connection, table, 'OLD.')});"
    for event, body in (("INSERT", added), ("DELETE", removed), ("UPDATE", removed + added)):
        yield (
            f"CREATE TEMP TRIGGER IF NOT EXISTS checksum_{table}_{event} "
            f"AFTER {event} ON main.{table} BEGIN {body} END"
        )


def _checksum(connection: sqlite3.Connection, table: str, of: str = "") -> str:
    """Return SQL for the checksum of a stored row, even with invalid text."""
    columns = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
    # -0.0 is stored as 0; texts as bytes, which may not be valid text
    forms = {"TEXT": "CAST({} AS BLOB)", "ANY": "CAST({} AS BLOB)", "REAL": "{} + 0.0"}
    values = ", ".join(forms.get(kind, "{}").format(of + name) for _, name, kind, *_ in columns)
    count = len(columns)
    _create_function(connection, f"row_text{count}", count, " ".join(["{}"] * count).format)
    _create_function(connection, "crc32", 1, crc32)
    return f"crc32(CAST(row_text{count}({values}) AS BLOB))"


def write_all(connection: sqlite3.Connection) -> None:
    """Write the checksums of all tables of a new collection, in the current transaction."""
    connection.executemany(
        f"INSERT INTO {TABLE} VALUES (?, ?, ?)",
        [(name, *totals) for name, totals in sums_of_tables(connection) if totals[0]],
    )


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the tables that have checksums."""
    return column(connection, _TABLES)


def mismatches(connection: sqlite3.Connection, unread: Sequence[str] = ()) -> list[Mismatch]:
    """Read all tables but those `unread`; return those whose rows exampp did not write."""
    begun = not connection.in_transaction
    if begun:
        # a consistent snapshot of rows and checksums, as others may be writing
        connection.execute("BEGIN")
    try:
        rows = connection.execute(f"SELECT name, rows, total FROM {TABLE}").fetchall()
        expected = {name: (rows, total) for name, rows, total in rows}
        return [
            Mismatch(name, expected.get(name, (0, 0))[0], totals[0])
            for name, totals in sums_of_tables(connection, unread)
            if totals != expected.get(name, (0, 0))
        ]
    finally:
        if begun:
            connection.execute("ROLLBACK")


def sums_of_tables(
    connection: sqlite3.Connection, unread: Sequence[str] = ()
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the number of rows and the checksum of every table but those `unread`."""
    for table in tables_of(connection):
        if table in unread:
            continue
        # NOT INDEXED: the table itself is read, not an index that repeats its columns
        count, total = connection.execute(
            f"SELECT count(*), coalesce(sum({_checksum(connection, table)}), 0) "
            f"FROM main.{table} NOT INDEXED"
        ).fetchone()
        yield table, (count, total)


ROWS = 100
"""Rows fetched at a time during iteration."""
_DAMAGED = ("malformed", "Could not decode to UTF-8", "corrupt")

P = ParamSpec("P")
T = TypeVar("T")
FAULTS = (sqlite3.DatabaseError, UnicodeError, OverflowError)


class Damaged(InputError):
    """The collection is damaged or was changed by another program."""

    def __init__(self, file: str, error: object, what: str = "the file is damaged") -> None:
        super().__init__(
            f"is not a readable collection: {what} ({error})",
            file=file or None,
            hint="Use an intact copy",
        )


class GuardedConnection(sqlite3.Connection):
    """An SQLite connection that raises exampp errors.

    `file` is the name in errors of the file at `path`; `written` counts transactions that write,
    and `writing` is whether one is open.
    `checksums` is None until the schema is known to be exampp's. `verified`: all rows agreed with
    their checksums; `partly_verified`: those did that evaluation reads beside pages.
    `graded_notes` are the notes on the graded file that it was made from, by grader ("": of all),
    and such a collection cannot be written; None for others.
    """

    file = ""
    path = Path()
    written = 0
    writing = False
    checksums: Checksums | None = None
    verified = False
    partly_verified = False
    graded_notes: Mapping[str, Sequence[str]] | None = None

    @property
    def in_transaction(self) -> bool:
        """True if a transaction is open; InputError if the connection is closed."""
        return _mapped(self, lambda: super(GuardedConnection, self).in_transaction)

    def __enter__(self) -> Self:
        """Enter like sqlite3, with the errors of `execute`."""
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
        """Commit with checksums, or roll back after an exception."""
        try:
            if kind is None and self.in_transaction and self.checksums is not None:
                self.checksums.write(self)
            return super().__exit__(kind, error, trace)
        except FAULTS as fault:
            raise map_error(self, fault) from None
        finally:
            self.writing = self.writing and self.in_transaction

    def close(self) -> None:
        """Close the file; StorageFault if it does not contain all commits."""
        super().close()
        if self.written:
            self.written = 0
            write_back(self.path)

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Execute like sqlite3; InputError for invalid values, Damaged for a bad page."""
        cursor = _mapped(self, Cursor, self)
        _mapped(self, sqlite3.Cursor.execute, cursor, sql, parameters)
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Execute like sqlite3, with the errors of `execute`."""
        cursor = _mapped(self, Cursor, self)
        _mapped(self, sqlite3.Cursor.executemany, cursor, sql, parameters)
        return cursor


class Cursor(sqlite3.Cursor):
    """A cursor that reports rows on damaged pages."""

    connection: GuardedConnection

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        return _mapped(self.connection, super().fetchone)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """Return the next rows."""
        return _mapped(self.connection, super().fetchmany, size)

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""
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


def map_error(connection: GuardedConnection, error: Exception) -> BaseException:
    """Return the exampp error for an SQLite error about a value or the file."""
    # checksum functions do not raise; Python runs signal handlers in them
    if "user-defined function raised exception" in str(error):
        return KeyboardInterrupt()
    if isinstance(error, UnicodeEncodeError):
        what = "a text contains a lone surrogate, which cannot be stored"
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
            hint="Open it separately in each thread",
        )
    # error messages may quote damaged data that is not valid text
    if isinstance(error, UnicodeError) or any(word in str(error) for word in _DAMAGED):
        return Damaged(connection.file, error)
    return storage_fault(connection.file, error) or error


def storage_fault(file: str, error: Exception) -> Exception | None:
    """Return the exampp error for an SQLite result code about the file."""
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
            else f"{file}-wal has changes that are not in the file yet. Copy both to a writable "
            "folder and open the copy",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return no_collection(file)
    if code in _STORAGE:
        what, hint = _STORAGE[code]
        return StorageFault(file, f"{what} ({error})", hint)
    return None


def no_collection(file: str | Path) -> InputError:
    """Return the error for a file that is not a collection."""
    return InputError(
        "is not an exampp collection",
        file=file,
        hint="Import it (exampp import), or use exampp evaluate, which reads graded files",
    )


def busy(file: str | Path) -> CollectionBusy:
    """Return the error for a collection locked by another process."""
    what = f"{file} is in use by another process. Try again when it has finished"
    if opens_alone(Path(file)):
        what += ". On a network file system, one process at a time can open it"
    return CollectionBusy(what)


_REPEAT = (
    "All earlier commits are safe. Check free space (including temporary files), quota and limits, "
    "then run the same command again"
)
_STORAGE = {
    sqlite3.SQLITE_FULL: ("the disk is full", _REPEAT),
    sqlite3.SQLITE_IOERR: (
        "the disk, a quota or a file size limit prevents reading or writing",
        _REPEAT,
    ),
    sqlite3.SQLITE_NOLFS: ("the file system does not support files of this size", _REPEAT),
    sqlite3.SQLITE_PROTOCOL: ("the file system refuses to lock it", _REPEAT),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        "Check the permissions of the file and its folder, or work on a copy",
    ),
}
"""Fault and fix by SQLite result code."""


def write_back(path: Path) -> None:
    """Write the log (`-wal`) back into a closed collection.

    SQLite does so when the last connection closes, but ignores errors. If another process uses the
    file, the log stays.

    Raises:
        StorageFault: The disk refuses it. The commits are then in the log.
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
            # the first read opens the log
            opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
            opened.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.DatabaseError as error:
        if storage_fault(str(path), error).__class__ is not CollectionBusy:
            raise StorageFault(
                path,
                f"the disk, a quota or a file size limit prevents writing ({error})",
                f"{log.name} next to it has the missing data: keep both files together. Free "
                "some space, then open the collection again: exampp status",
            ) from None


def check_sound(connection: sqlite3.Connection, file: Path) -> None:
    """Raise Damaged if SQLite's quick check finds a fault in the file."""
    result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise Damaged(str(file), result)


BATCH = 1000
"""Rows or ids per statement: enough to amortise it, with little memory."""


def batches(things: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield lists of at most `size` things."""
    iterator = iter(things)
    while batch := list(islice(iterator, size)):
        yield batch


def insert(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]) -> int:
    """Insert one row; return its key.

    Does not use RETURNING: an interrupt before the row is fetched would leave a statement open as
    long as the traceback is referenced, and block commits.
    """
    key = connection.execute(sql, parameters).lastrowid
    if key is None:
        raise ValueError("the statement inserted nothing")
    return key


def column(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    """Return the first value of every row."""
    return [row[0] for row in connection.execute(sql, parameters).fetchall()]


def pairs(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> dict[Any, Any]:
    """Return a dict from the first to the second value of every row."""
    return dict(connection.execute(sql, parameters).fetchall())


def records(
    make: Callable[..., T], connection: sqlite3.Connection, sql: str, parameters: Any = ()
) -> list[T]:
    """Return every row as a record."""
    return list(starmap(make, connection.execute(sql, parameters).fetchall()))


def select_integer(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> int:
    """Return the number selected by a query, 0 without a row."""
    return int(connection.execute(sql, parameters).fetchone()[0] or 0)


def exists(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> bool:
    """Return whether a query returns a row."""
    return connection.execute(sql, parameters).fetchone() is not None


def has_scratch(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether a temporary table exists."""
    return exists(connection, "SELECT 1 FROM temp.sqlite_master WHERE name = ?", (table,))


def keys(
    connection: sqlite3.Connection, table: str, column: str, ids: Collection[str]
) -> dict[str, int]:
    """Return the keys of ids that are in the table."""
    return pairs(
        connection,
        f"SELECT {column}, {table} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )


def intern(
    connection: sqlite3.Connection, table: str, column: str, ids: Iterable[str]
) -> dict[str, int]:
    """Return the key of each id, adding new ids."""
    unique = list(dict.fromkeys(ids))
    for identifier in unique:
        check_id(identifier)
    known = keys(connection, table, column, unique)
    if len(known) < len(unique):
        connection.executemany(
            f"INSERT INTO {table} ({column}) VALUES (?)",
            [(identifier,) for identifier in unique if identifier not in known],
        )
        known = keys(connection, table, column, unique)
    return known


_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def extra_json(value: Any) -> str | None:
    """Return an `extra` column as JSON text; None for an empty value."""
    return _SORTED.encode(value) if value else None


def from_json(text: str | None) -> Any:
    """Parse a JSON column; None for NULL. Raises Damaged if it is invalid."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged("", f"a value is not JSON: {error}") from None
