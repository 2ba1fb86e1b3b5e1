"""Values that pages need, computed once in threads of their own and cached."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TypeVar, cast

T = TypeVar("T")
_LOG = logging.getLogger("exampp.web")


@dataclass
class _Entry:
    """A value that is being made or was made, and the one before it until then."""

    state: Hashable
    future: Future[object]
    earlier: Future[object] | None = None
    rest_until: float = 0.0


class PageCache:
    """The `most` values that pages asked for last.

    A value made of another `state` is made again, one at a time; the earlier one is served until
    then. After computing for a second, `rest` seconds pass before a value is made again.
    """

    def __init__(self, most: int = 24) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T], state: Hashable = None) -> T:
        """Return what `make` returns, made once; what it raises is raised and not cached."""
        return cast(T, self._start(key, make, state, 0.0).future.result())

    def soon(
        self,
        key: Hashable,
        make: Callable[[], T],
        patience: float | None,
        state: Hashable = None,
        rest: float = 0.0,
    ) -> T | None:
        """Return the value, the earlier one if it takes longer than `patience` seconds, or None."""
        entry = self._start(key, make, state, rest)
        earlier = entry.earlier
        wait([entry.future], patience)
        if entry.future.done() and (earlier is None or entry.future.exception() is None):
            return cast(T, entry.future.result())
        return None if earlier is None else cast(T, earlier.result())

    def newest(self, key: Hashable) -> object:
        """Return the value that was made last; None if there is none yet."""
        entry = self._entries.get(key)
        done = entry and (entry.future if entry.future.done() else entry.earlier)
        return done.result() if done else None

    def drop(self, key: Hashable) -> None:
        """Forget a value."""
        with self._lock:
            self._entries.pop(key, None)

    def _start(
        self, key: Hashable, make: Callable[[], object], state: Hashable, rest: float
    ) -> _Entry:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or (
                entry.state != state
                and entry.future.done()
                and time.monotonic() >= entry.rest_until
            ):
                entry = _Entry(state, Future(), entry.future if entry else None)
                self._entries[key] = entry
                arguments = (key, entry, make, rest)
                threading.Thread(target=self._make, args=arguments, daemon=True).start()
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry

    def _make(self, key: Hashable, entry: _Entry, make: Callable[[], object], rest: float) -> None:
        start = time.monotonic()
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                if self._entries.pop(key, None) is entry and entry.earlier is not None:
                    # keep the earlier value, and try again at the next request
                    until = time.monotonic() + rest * (time.monotonic() - start)
                    self._entries[key] = _Entry(object(), entry.earlier, rest_until=until)
                    _LOG.warning("a page could not be computed again: %s", error)
            entry.future.set_exception(error)
        else:
            entry.rest_until = time.monotonic() + rest * (time.monotonic() - start)
            entry.future.set_result(value)
            entry.earlier = None
