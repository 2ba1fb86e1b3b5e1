"""Opens collections: one SQLite file each, in WAL mode, with foreign keys on."""

from __future__ import annotations

import functools
import gc
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from exampp.errors import InputError, StorageFault
from exampp.outside import check_path
from exampp.store.guarded import GuardedConnection, storage_fault
from exampp.store.migrations import APPLICATION_ID, MIGRATIONS

SYNCHRONOUS = "FULL"
"""How SQLite waits for the disk: what was committed outlives a power cut."""
OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables."""
BUSY_SECONDS = 30.0
TURN_SECONDS = 0.02
COPIED_PAGES = 10_000
SMALLEST_PAGE = 512
"""Bytes of the smallest SQLite file that holds anything."""


def is_collection(path: str | Path) -> bool:
    """Whether the file is an SQLite file.

    SQLite itself is asked: to open and close its file in any other way would take away the locks
    that this process holds on it, and other processes would overwrite what is being written.
    """
    path = check_path(path)
    if not path.is_file() or path.stat().st_size < SMALLEST_PAGE:
        return False
    # immutable: without a log of its own beside the file
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as probe:
            probe.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        # it has the header, or SQLite would say that it is no database: it cannot be read just now
        return True
    except sqlite3.DatabaseError:
        return False
    return True


def connect(
    path: str | Path, *, create: bool = False, called: Path | None = None
) -> sqlite3.Connection:
    """Open a collection, migrating it to the newest schema.

    `create` makes the file where there is none; errors are about `called`, if that is given.
    Raises InputError where the file is missing, no collection, or from a newer exampp, or SQLite is
    too old; CollectionBusy where another process keeps it locked.
    """
    path = check_path(path)
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise InputError(
            f"cannot be opened with SQLite {sqlite3.sqlite_version}: 3.37 is the oldest that works",
            file=path,
            mend="Use a Python that comes with a newer SQLite",
        )
    fresh = not path.exists() or path.stat().st_size == 0
    if fresh and not create:
        raise InputError(
            "no such collection",
            file=path,
            mend="Make one: exampp import, exampp init, or in Python exampp.create",
        )
    # SQLite takes a file of one byte for an empty one
    if path.is_dir() or not (fresh or path.stat().st_size >= SMALLEST_PAGE):
        raise InputError("is not an exampp collection", file=path)
    try:
        connection = _open(path)
    except sqlite3.OperationalError as error:
        raise InputError(f"cannot be opened ({error})", file=path) from None
    connection.file = str(called or path)
    try:
        _prepare(connection, called or path, fresh)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise InputError(f"is not a readable collection ({error})", file=called or path) from None
    except BaseException:
        connection.close()
        raise
    return connection


def snapshot(path: Path, copy: Path) -> None:
    """Copy a collection as it is at one moment, whoever writes to it meanwhile.

    Raises InputError where the file is missing or no SQLite file; nothing is written to it.
    """
    if not path.exists():
        raise InputError("no such collection", file=path)
    if not is_collection(path):
        raise InputError("is not an exampp collection", file=path)
    try:
        with closing(_open(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            # in parts, so that an interrupt is heard
            source.backup(target, pages=COPIED_PAGES)
            source.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        fault = storage_fault(str(path), error)
        raise fault or InputError(f"cannot be copied ({error})", file=path) from None


def _open(path: Path) -> GuardedConnection:
    """A connection; one that only reads where folder or file cannot be written."""
    if path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        # without a journal beside it, a file that nobody can change may be read as it is
        waiting = Path(f"{path}-wal")
        lone = not (waiting.exists() and waiting.stat().st_size)
        uri = f"{path.resolve().as_uri()}?mode=ro" + ("&immutable=1" if lone else "")
        return _connected(uri, path, uri=True)
    return _connected(path, path)


def _connected(address: str | Path, path: Path, uri: bool = False) -> GuardedConnection:
    connection = sqlite3.connect(
        address, uri=uri, timeout=BUSY_SECONDS, isolation_level=None, factory=GuardedConnection
    )
    connection.file, connection.path = str(path), path
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, fresh: bool) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
    if fresh:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    elif connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        # a process that was killed while it made the collection leaves an empty database
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            migrate(connection)
            return
        raise InputError("is an SQLite file, but not an exampp collection", file=path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise InputError(
            f"was made by a newer exampp (schema {version}, this one knows {len(MIGRATIONS)})",
            file=path,
            mend="Upgrade exampp",
        )
    if version < len(MIGRATIONS):
        migrate(connection) if fresh else _bring_up(connection, path)


def data_version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection, of any process, has committed."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def written(connection: sqlite3.Connection) -> int:
    """How many transactions that write have begun on this connection."""
    return connection.written if isinstance(connection, GuardedConnection) else 0


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    try:
        migrate(connection)
    except StorageFault as error:
        raise InputError(
            f"was made by an older exampp and cannot be written, to upgrade it: {error.why}",
            file=path,
            mend="Copy it to where it can be written",
        ) from None


def migrate(connection: sqlite3.Connection) -> None:
    """Run the steps that have not run yet, each in one transaction with its record."""
    # a step may make a table anew, to which others refer meanwhile
    connection.execute("PRAGMA foreign_keys = OFF")
    if not _make(connection):
        _run_steps(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _make(connection: sqlite3.Connection) -> bool:
    """Make all tables as all steps leave them, if there are none yet."""
    with connection, transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return False
        for statement in _newest(MIGRATIONS):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    return True


@functools.cache
def _newest(steps: tuple[str, ...]) -> tuple[str, ...]:
    """The statements that make what the steps make; most of these alter what others made."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for step in steps:
            for statement in _statements(step):
                made.execute(statement)
        _begin, *statements, _commit = made.iterdump()
    return tuple(statements)


def _run_steps(connection: sqlite3.Connection) -> None:
    for number in range(len(MIGRATIONS)):
        with connection, transaction(connection):
            # read inside the transaction: another process may have migrated meanwhile
            if connection.execute("PRAGMA user_version").fetchone()[0] > number:
                continue
            for statement in _statements(MIGRATIONS[number]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")


def _statements(step: str) -> Iterator[str]:
    """The statements of a step, one by one; a trigger holds others, which belong to it."""
    statement = ""
    for part in step.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def transaction(
    connection: sqlite3.Connection, patience: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """All or nothing: begins now, commits at the end of the block, rolls back on any exception.

    Written `with connection, transaction(connection):` an exception at any bytecode, an interrupt
    say, leaves the connection outside of a transaction: the connection ends it in C, and the outer
    one ends what an exception between two bytecodes kept the inner one from ending.
    Raises CollectionBusy where another process holds the write lock for longer than `patience`,
    in seconds.
    """
    try:
        _begin(connection, patience)
    except sqlite3.DatabaseError as error:
        raise storage_fault(str(file_of(connection)), error) or error from None
    if isinstance(connection, GuardedConnection):
        connection.written += 1
    return connection


def _begin(connection: sqlite3.Connection, patience: float) -> None:
    """Take the write lock; waits in short turns, because no signal is heard while SQLite waits."""
    until = time.monotonic() + patience
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                sqlite3.Cursor(connection).execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT:
                    _close_cursors(connection)
            time.sleep(TURN_SECONDS)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")


def _close_cursors(connection: sqlite3.Connection) -> None:
    """End the reading of an older state, which SQLite lets nobody write from.

    What reads here, reads to the end before it writes: a cursor that still reads belongs to the
    frames of an exception that somebody keeps, as a notebook keeps the last one.
    """
    for found in gc.get_objects():
        if issubclass(type(found), sqlite3.Cursor) and found.connection is connection:
            found.close()


def file_of(connection: sqlite3.Connection) -> Path:
    """The file that a connection has open."""
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])
