"""Open collections: one SQLite file each, in WAL mode, with foreign keys on.

Foreign triggers, views and tables are code that SQLite would run, so a file with other objects than
those of `schema.sql` is refused before anything is read.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import random
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from exampp.errors import CollectionBusy, InputError, StorageFault
from exampp.sanitize import check_path
from exampp.store.file_system import opens_alone, refuse_second_name, shares_memory
from exampp.store.sql import (
    Checksums,
    Damaged,
    GuardedConnection,
    busy,
    check_sound,
    no_collection,
    storage_fault,
    write_all,
)
from exampp.store.upgrading import EARLIER, upgrade

APPLICATION_ID = 0x4558414D  # "EXAM"
SCHEMA_VERSION = 6
"""The number of the schema (`PRAGMA user_version`)."""
DIGEST = "738b7afeb39352ea1c949448b8bd920a"
"""The digest of the schema, which is faster to compare than the schema."""
_ADDED = "client"
"""Word in the statements of tables that earlier versions did not have."""
_OBJECTS = (
    "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM main.sqlite_master "
    # implied indices of primary keys, and the statistics of ANALYZE
    "WHERE NOT (type IS 'index' AND sql IS NULL) "
    "AND NOT (type IS 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"
)

Object = tuple[str, str, str]
"""Type, name and SQL of a schema object."""


def statements() -> Iterator[str]:
    """Yield the statements of the schema; a trigger is one statement."""
    statement = ""
    for part in Path(__file__).with_name("schema.sql").read_text(encoding="utf-8").split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def objects(connection: sqlite3.Connection) -> frozenset[Object]:
    """Return the schema objects, with SQL normalized: no quotation marks or needless spaces."""
    rows = connection.execute(_OBJECTS).fetchall()
    return frozenset(
        (_text(kind), _text(name), _normalized(_text(sql))) for kind, name, sql in rows
    )


def _normalized(sql: str) -> str:
    # a column that was added later has other spaces around it
    return re.sub(r" (?=[,)])", "", " ".join(sql.replace('"', "").split()))


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def schema_digest(parts: frozenset[Object]) -> str:
    """Return the digest of schema objects."""
    return hashlib.sha256(repr(sorted(parts)).encode(errors="replace")).hexdigest()[:32]


def check_schema(connection: sqlite3.Connection, file: str) -> None:
    """Raise Damaged if the schema of a file differs from that of exampp."""
    parts = objects(connection)
    if schema_digest(parts) == DIGEST:
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        for statement in statements():
            memory.execute(statement)
        expected = objects(memory)
    if parts == expected:
        return
    known = {name: kind for kind, name, _ in expected}
    for kind, name, sql in sorted(parts - expected):
        if known.get(name) != kind:
            foreign = "its schema differs from that of exampp"
            raise Damaged(file, f"the {kind} {name}: {sql[:100]}", foreign)
        raise Damaged(file, f"the {kind} {name} differs")
    kind, name, _ = min(expected - parts)
    raise Damaged(file, f"the {kind} {name} is missing")


_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
"""Errors of a failing disk; others mean that the file system does not support an operation."""


def put_in_place(finished: Path, place: Path) -> None:
    """Move a finished file or folder to its final path, durably, replacing a file.

    Raises:
        OSError: The disk refuses it.
    """
    _sync(finished)
    finished.replace(place)
    _sync(place.parent)


def link_collection(finished: Path, place: Path) -> bool:
    """Move a closed collection to its final path, durably, after an integrity check.

    Returns False if the path exists.

    Raises:
        OSError: The disk refuses the name.
        StorageFault: Part of the collection is still in its log.
        Damaged: SQLite's quick check finds a fault.
    """
    if Path(f"{finished}-wal").exists():
        raise StorageFault(finished, "its log could not be written back", "Run the command again")
    address = f"{finished.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True, factory=GuardedConnection)) as opened:
        check_sound(opened, finished)
    _sync(finished)
    try:
        os.link(finished, place)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _REFUSED:
            raise
        # a file system without links
        if place.exists():
            return False
        finished.replace(place)
    _sync(place.parent)
    return True


def _sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        # some folders are unreadable, and some file systems cannot sync folders
        if error.errno in _REFUSED or not path.is_dir():
            raise


SYNCHRONOUS = "FULL"
"""SQLite's synchronous mode: commits survive a power cut."""
OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables."""
BUSY_SECONDS = 30.0
SHORTEST_TURN_SECONDS, TURN_SECONDS = 0.001, 0.02
"""Seconds between two attempts to get a lock: the first pause, and the longest."""
COPIED_PAGES = 10_000
SMALLEST_PAGE = 512
"""Minimum bytes of a non-empty SQLite file."""


def is_collection(path: str | Path) -> bool:
    """Return whether the file is an SQLite file.

    SQLite reads it: opening and closing the file in another way would release the locks of this
    process, and other processes could overwrite data.
    """
    path = check_path(path)
    if not path.is_file() or path.stat().st_size < SMALLEST_PAGE:
        return False
    # immutable: creates no log next to the file
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as probe:
            probe.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        # not "not a database", so it has the header but cannot be read now
        return True
    except sqlite3.DatabaseError:
        return False
    return True


def connect(
    path: str | Path, *, create: bool = False, called: Path | None = None
) -> GuardedConnection:
    """Open a collection.

    `create` makes a missing file; errors name `called`, if that is set. Raises InputError if the
    file is missing, is not a collection, or has another schema, or if SQLite is too old;
    CollectionBusy if another process keeps it locked.
    """
    path = check_path(path)
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise InputError(
            f"cannot be opened with SQLite {sqlite3.sqlite_version}; 3.37 or later is required",
            file=path,
            hint="Use a Python build with a newer SQLite",
        )
    fresh = not path.exists() or path.stat().st_size == 0
    if fresh and not create:
        raise InputError(
            "no such collection",
            file=path,
            hint="Create it: exampp import or, in Python, exampp.create",
        )
    # SQLite treats a file of one byte as empty
    if path.is_dir() or not (fresh or path.stat().st_size >= SMALLEST_PAGE):
        raise no_collection(path)
    connection = None
    try:
        connection = _open(path)
        connection.file = str(called or path)
        _prepare(connection, called or path)
    except sqlite3.DatabaseError as error:
        what = "a readable collection" if connection else "opened"
        fault = storage_fault(str(called or path), error)
        raise fault or InputError(f"is not {what} ({error})", file=called or path) from None
    finally:
        # checksums are made last, after the collection was accepted
        if connection is not None and connection.checksums is None:
            connection.close()
    return connection


def connect_unchanging(path: Path, *, called: Path) -> GuardedConnection:
    """Open a collection that is never written; errors show `called` as the name."""
    connection = _connected(f"{path.resolve().as_uri()}?mode=ro&immutable=1", path, uri=True)
    return _prepared(connection, called)


def connect_memory(called: Path) -> GuardedConnection:
    """Create an empty collection in memory; errors show `called` as the name."""
    return _prepared(_connected(":memory:", called), called)


def _prepared(connection: GuardedConnection, called: Path) -> GuardedConnection:
    connection.file = str(called)
    with closed_on_error(connection):
        _prepare(connection, called)
    return connection


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close a connection if the block fails or is interrupted."""
    with ExitStack() as stack:
        stack.callback(connection.close)
        yield
        stack.pop_all()


def snapshot(path: Path, copy: Path) -> None:
    """Copy a consistent snapshot of a collection, even during writes.

    Raises InputError if the file is missing or not an SQLite file. The file is only read.
    """
    if not path.exists():
        raise InputError("no such collection", file=path)
    if not is_collection(path):
        raise no_collection(path)
    try:
        with (
            closing(_open(path, unchanged=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            # in parts, so that an interrupt is handled
            source.backup(target, pages=COPIED_PAGES)
            source.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        fault = storage_fault(str(path), error)
        raise fault or InputError(f"cannot be copied ({error})", file=path) from None


def _open(path: Path, *, unchanged: bool = False) -> GuardedConnection:
    """Open a connection in a mode that is safe on the file system.

    It is read-only if the folder or the file is not writable. `unchanged` keeps a rollback journal.
    """
    if path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        # a read-only file without a journal can be read as immutable
        waiting = Path(f"{path}-wal")
        lone = not (waiting.exists() and waiting.stat().st_size)
        if not lone and opens_alone(path):
            raise busy(path)
        uri = f"{path.resolve().as_uri()}?mode=ro" + ("&immutable=1" if lone else "")
        return _connected(uri, path, uri=True)
    refuse_second_name(path)
    if opens_alone(path):
        return _open_alone(path)
    connection = _connected(path, path)
    with closed_on_error(connection):
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and not unchanged:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        shared = shares_memory(path)
    if shared:
        return connection
    connection.close()
    return _open_alone(path)


def _open_alone(path: Path) -> GuardedConnection:
    """Open a connection that locks out all other processes until it is closed."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        connection = _connected(path, path)
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except BaseException as error:
            # close, also before waiting: two waiting connections would block each other
            connection.close()
            if not isinstance(error, CollectionBusy) or time.monotonic() > until:
                raise
            time.sleep(TURN_SECONDS * (1 + random.random()))
        else:
            return connection


def _connected(address: str | Path, path: Path, uri: bool = False) -> GuardedConnection:
    connection = sqlite3.connect(
        address, uri=uri, timeout=BUSY_SECONDS, isolation_level=None, factory=GuardedConnection
    )
    connection.file, connection.path = str(path), path
    # never let the schema of a foreign file call functions
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _prepare(connection: GuardedConnection, path: Path) -> None:
    """Set up the connection; create the schema in an empty file.

    Raises:
        InputError: It is not a collection, or is of another schema.
    """
    connection.execute("PRAGMA foreign_keys = ON")
    # REPLACE must fire the delete triggers of the checksums
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
    # in one transaction: another process may be creating it
    connection.execute("BEGIN")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    # a process killed during creation leaves an empty database
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    is_before = application == APPLICATION_ID and version in EARLIER
    if is_before:
        is_before = schema_digest(objects(connection)) == EARLIER[version]
    elif not empty:
        _check_version(application, version, path)
    if not (empty or is_before):
        check_schema(connection, str(path))
    connection.execute("ROLLBACK")
    if is_before:
        upgrade(connection, SCHEMA_VERSION, [one for one in statements() if _ADDED in one])
    if empty:
        _make_schema(connection)
    connection.checksums = Checksums()


def _check_version(application: int, version: int, path: Path) -> None:
    if application != APPLICATION_ID:
        raise InputError("is an SQLite file, but not an exampp collection", file=path)
    if version != SCHEMA_VERSION:
        raise InputError(
            f"was made by another version of exampp (schema {version}, this version reads "
            f"{SCHEMA_VERSION})",
            file=path,
            hint="Open it with the version that made it, or import the original files again",
        )


def _make_schema(connection: sqlite3.Connection) -> None:
    """Create all tables, unless another process has done so meanwhile."""
    with connection, transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return
        for statement in statements():
            connection.execute(statement)
        write_all(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def data_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes after every commit of another connection."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def written(connection: sqlite3.Connection) -> int:
    """Return the number of write transactions begun on this connection."""
    return connection.written if isinstance(connection, GuardedConnection) else 0


def transaction(
    connection: sqlite3.Connection, patience: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """Run the block as one transaction: commit at its end, roll back on any exception.

    With `with connection, transaction(connection):`, no exception, not even an interrupt between
    two bytecodes, leaves a transaction open: the connection itself ends it, in C. Raises
    CollectionBusy if another process holds the write lock for longer than `patience`, in seconds.
    """
    refuse_graded_file(connection)
    if isinstance(connection, GuardedConnection) and connection.checksums is not None:
        connection.checksums.begin(connection)
    try:
        _begin(connection, patience)
    except sqlite3.DatabaseError as error:
        raise storage_fault(str(file_of(connection)), error) or error from None
    if isinstance(connection, GuardedConnection):
        connection.written += 1
        connection.writing = True
    return connection


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Read a consistent snapshot within the block, even while others write."""
    if connection.in_transaction:
        yield
        return
    with connection:
        connection.execute("BEGIN")
        yield
        connection.execute("ROLLBACK")


def is_graded_file(connection: sqlite3.Connection) -> bool:
    """Return whether a connection belongs to an imported graded file."""
    return isinstance(connection, GuardedConnection) and connection.graded_notes is not None


def refuse_graded_file(connection: sqlite3.Connection) -> None:
    """Raise InputError if a connection belongs to an imported graded file."""
    if is_graded_file(connection):
        raise InputError(
            "a graded file is read-only",
            file=file_of(connection),
            hint="Import it into a collection: exampp import",
        )


def _begin(connection: sqlite3.Connection, patience: float) -> None:
    """Acquire the write lock; wait in short intervals, because SQLite blocks signals."""
    until, pause = time.monotonic() + patience, SHORTEST_TURN_SECONDS
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
            time.sleep(pause)
            pause = min(2 * pause, TURN_SECONDS)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")


def _close_cursors(connection: sqlite3.Connection) -> None:
    """Close open read cursors: SQLite cannot write from an older snapshot.

    exampp finishes reading before it writes, so open cursors belong to the frames of a stored
    exception, such as the last one of a notebook.
    """
    for cursor in gc.get_objects():
        if issubclass(type(cursor), sqlite3.Cursor) and cursor.connection is connection:
            cursor.close()


def file_of(connection: sqlite3.Connection) -> Path:
    """Return the path with which a connection was opened."""
    if isinstance(connection, GuardedConnection) and connection.file:
        return Path(connection.file)
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])
