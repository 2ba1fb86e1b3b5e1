"""Gives finished files their names so that they are whole after a power cut."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from exampp.errors import StorageFault
from exampp.store.guarded import GuardedConnection, check_sound

_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
"""What a disk answers that fails; other errors say what a file system does not offer."""


def put_in_place(made: Path, place: Path) -> None:
    """Rename a finished file or folder to its place, durably; a file there is replaced.

    Raises:
        OSError: The disk refuses it.
    """
    _sync(made)
    made.replace(place)
    _sync(place.parent)


def link_collection(made: Path, place: Path) -> bool:
    """Give a closed collection its name, durably, after a check that the file is whole.

    Returns False where the place is taken.

    Raises:
        OSError: The disk refuses the name.
        StorageFault: Part of the collection is in its log alone.
        Damaged: SQLite's quick check finds a fault.
    """
    if Path(f"{made}-wal").exists():
        raise StorageFault(made, "its log could not be written back", "Run the command again")
    address = f"{made.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True, factory=GuardedConnection)) as opened:
        check_sound(opened, made)
    _sync(made)
    try:
        os.link(made, place)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _REFUSED:
            raise
        # a file system without links
        if place.exists():
            return False
        made.replace(place)
    _sync(place.parent)
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        # some folders cannot be read, and some file systems sync no folder
        if error.errno in _REFUSED or not path.is_dir():
            raise
