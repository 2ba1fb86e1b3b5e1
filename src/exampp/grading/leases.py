"""Who else grades just now: whether a run that holds queries is still there, and until when."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from exampp.store.runs import leases

_SERIAL = count()
_AT_WORK: dict[str, int] = {}
"""The runs of this process that may hold queries: owner -> thread."""


class LeaseHolder(NamedTuple):
    """A run that holds queries, until a time (seconds since 1970) unless it goes on with them."""

    host: str
    process: int
    queries: int
    until: float

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, where its end is seen at once."""
        return self.host == socket.gethostname()

    def __str__(self) -> str:
        held = "1 query" if self.queries == 1 else f"{self.queries} queries"
        if self.is_here:
            return f"Process {self.process} of this machine is grading {held}"
        until = time.strftime("%H:%M:%S", time.localtime(self.until))
        return f"Process {self.process} on {self.host} holds {held} until {until}"


def new_owner() -> str:
    """The name under which one run holds its queries; it says where that run lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{next(_SERIAL)}"


@contextmanager
def at_work(owner: str) -> Iterator[None]:
    """Within the block the run of this name is there; after it, whatever it still holds is free."""
    _AT_WORK[owner] = threading.get_ident()
    try:
        yield
    finally:
        _AT_WORK.pop(owner, None)


def is_gone(owner: str) -> bool:
    """Whether a run of this machine is gone; of others only their lease can tell.

    One of this very thread is as good as gone: it cannot go on while this one waits for it.
    """
    host, process, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(process) == os.getpid():
        return _AT_WORK.get(owner) in (None, threading.get_ident())
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def others(connection: sqlite3.Connection, grader: int, owner: str) -> dict[str, list[int]]:
    """The queries that other runs of a grader hold, by their names; gone ones hold nothing."""
    found: dict[str, list[int]] = {}
    for lease in leases(connection, grader):
        if lease.owner != owner and not is_gone(lease.owner):
            found.setdefault(lease.owner, []).append(lease.query)
    return found


def holders(
    connection: sqlite3.Connection, grader: int, owner: str = ""
) -> tuple[LeaseHolder, ...]:
    """The runs other than `owner` that hold queries of a grader."""
    until = {lease.owner: lease.until for lease in leases(connection, grader)}
    return tuple(
        LeaseHolder(*_place(name), len(queries), until[name])
        for name, queries in others(connection, grader, owner).items()
    )


def _place(owner: str) -> tuple[str, int]:
    host, process, _ = owner.rsplit(":", 2)
    return host, int(process)
