"""Collections made from graded files, in the user's cache folder.

A cached collection is named `KEY-DIGEST.exam`: the hash of its sources, and the hash of its bytes,
which is checked at every open. Files are written under a temporary name and renamed, so several
processes can share the folder. The least recently used ones are removed above `MOST_BYTES`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from exampp.errors import ExamError
from exampp.records.ids import file_hash
from exampp.store.connection import connect_unchanging
from exampp.store.sql import GuardedConnection

FOLDER = "EXAMPP_CACHE"
"""Environment variable for the folder; empty: no caching."""
MOST_BYTES = 2 << 30
"""Maximum size of all cached collections together."""
_UNFINISHED = ".new-"
_ABANDONED_SECONDS = 86_400.0


def cache_folder() -> Path | None:
    """Return the folder of cached collections; None if caching is off."""
    setting = os.environ.get(FOLDER)
    if setting is not None:
        return Path(setting) if setting else None
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        # no home folder
        return None
    return base / "exampp" / "graded"


def find_cached(key: str, file: Path) -> GuardedConnection | None:
    """Open the cached collection of a key; None if missing. Errors name `file`."""
    folder = cache_folder()
    for path in sorted(folder.glob(f"{key}-*.exam")) if folder is not None else ():
        with suppress(OSError, ExamError, sqlite3.Error):
            if path.stem == f"{key}-{file_digest(path)}":
                os.utime(path)
                connection = connect_unchanging(path, called=file)
                # the digest covers every row
                connection.verified = True
                return connection
            path.unlink()
    return None


def store_cached(key: str, connection: sqlite3.Connection) -> None:
    """Cache a collection if the folder is writable."""
    from tempfile import TemporaryDirectory

    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError, ExamError, sqlite3.Error):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=_UNFINISHED, dir=folder) as temporary:
            copy = Path(temporary) / "copy.exam"
            with closing(sqlite3.connect(copy)) as target:
                connection.backup(target)
            copy.replace(folder / f"{key}-{file_digest(copy)}.exam")
        _trim(folder)


def file_digest(path: Path) -> str:
    """Return the first half of the SHA-256 of a file, hexadecimal."""
    return file_hash(path)[:32]


def _trim(folder: Path) -> None:
    """Remove the least recently used collections and leftovers of killed processes."""
    used = {path: path.stat() for path in folder.glob("*.exam")}
    total = 0
    for path in sorted(used, key=lambda one: -used[one].st_mtime):
        total += used[path].st_size
        if total > MOST_BYTES and total > used[path].st_size:
            path.unlink(missing_ok=True)
    for path in folder.glob(f"{_UNFINISHED}*"):
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
