"""Leases of queries: which other runs are grading now, and whether they still exist."""

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
"""The runs of this process that may have leases: owner -> thread."""


class LeaseHolder(NamedTuple):
    """A run with leases of queries, which end at `until` (seconds since 1970) unless renewed."""

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
    """Return the name of a run: its host, process and number."""
    return f"{socket.gethostname()}:{os.getpid()}:{next(_SERIAL)}"


@contextmanager
def at_work(owner: str) -> Iterator[None]:
    """Mark a run as existing within the block; after it, its leases are free."""
    _AT_WORK[owner] = threading.get_ident()
    try:
        yield
    finally:
        _AT_WORK.pop(owner, None)


def is_gone(owner: str) -> bool:
    """Return whether a run of this machine no longer exists; False for runs of other machines.

    Another run of this thread counts as gone: it cannot continue while this one waits for it.
    """
    host, process, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(process) == os.getpid():
        return _AT_WORK.get(owner) in (None, threading.get_ident())
    return not process_exists(int(process))


def process_exists(process: int) -> bool:
    """Return whether a process of this machine exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def others(connection: sqlite3.Connection, grader: int, owner: str) -> dict[str, list[int]]:
    """Return the queries that other runs of a grader have leases of, by the names of the runs."""
    found: dict[str, list[int]] = {}
    for lease in leases(connection, grader):
        if lease.owner != owner and not is_gone(lease.owner):
            found.setdefault(lease.owner, []).append(lease.query)
    return found


def holders(
    connection: sqlite3.Connection, grader: int, owner: str = ""
) -> tuple[LeaseHolder, ...]:
    """Return the runs other than `owner` that have leases of queries of a grader."""
    until = {lease.owner: lease.until for lease in leases(connection, grader)}
    return tuple(
        LeaseHolder(*_place(name), len(queries), until[name])
        for name, queries in others(connection, grader, owner).items()
    )


def _place(owner: str) -> tuple[str, int]:
    host, process, _ = owner.rsplit(":", 2)
    return host, int(process)
