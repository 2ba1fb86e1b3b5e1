"""When a collection changed last, whoever changed it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from exampp.collection import Collection
from exampp.store.connection import data_version

_LOG = logging.getLogger("exampp.web")
POLL_SECONDS = 0.5
"""How often the collection is asked whether it has changed."""


class Changes:
    """Notices within half a second that anybody has written to a collection.

    It has a thread of its own: what is computed from the collection may take long. `last` is when
    the last change was made, in seconds since the epoch, `number` how many were noticed. `tell` is
    called after each.
    """

    def __init__(self, path: Path, tell: Callable[[], None]) -> None:
        self.last = 0.0
        self.number = 0
        self._path = path
        self._tell = tell
        self._closed = False
        self._failed = False
        self._begun = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="exampp-changes", daemon=True)
        self._thread.start()
        # what is written from now on is a change
        self._begun.wait()

    def look(self) -> None:
        """Say that there is a change just now."""
        self.last = time.time()
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Stop watching; wait for it so long at most."""
        self._closed = True
        self._wake.set()
        self._thread.join(seconds)

    def _watch(self) -> None:
        while not self._closed:
            try:
                with Collection(self._path) as watched:
                    self._follow(watched)
            except Exception as error:
                # whoever opens a page reads it there, too
                _LOG.info("the collection could not be asked whether it changed: %s", error)
                self._failed = True
                self._begun.set()
                self._wake.wait(POLL_SECONDS)
                self._wake.clear()

    def _follow(self, watched: Collection) -> None:
        """Tell of each change, first of what may have come while the collection could not be read.

        Numbers of two connections do not compare.
        """
        seen = data_version(watched.connection)
        self._begun.set()
        if self._failed:
            self._failed = False
            self._notice()
        while not self._closed:
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            now = data_version(watched.connection)
            if now != seen:
                seen = now
                self._notice()

    def _notice(self) -> None:
        # pages that were read since it was written are not older
        self.last = max(self.last, self._written_at())
        self.number += 1
        self._tell()

    def _written_at(self) -> float:
        """When the collection was written to: its log holds what was committed last."""
        for path in (Path(f"{self._path}-wal"), self._path):
            if path.exists():
                return path.stat().st_mtime
        return time.time()
