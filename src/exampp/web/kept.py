"""What was computed for a page, kept for the next: each thing once, whoever asks for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import TypeVar, cast

T = TypeVar("T")
MOST = 24


class Kept:
    """The last few things that pages asked for; made in threads of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, Future[object]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once. What it raises is raised, and is not kept."""
        return cast(T, self._future(key, make).result())

    def soon(self, key: Hashable, make: Callable[[], T], patience: float) -> T | None:
        """The same within so many seconds; None while it is still being made."""
        made = self._future(key, make)
        wait([made], patience)
        return cast(T, made.result()) if made.done() else None

    def _future(self, key: Hashable, make: Callable[[], object]) -> Future[object]:
        with self._lock:
            made = self._found.get(key)
            if made is None:
                made = self._found[key] = Future()
                threading.Thread(target=self._make, args=(key, made, make), daemon=True).start()
            self._found.move_to_end(key)
            while len(self._found) > self._most:
                self._found.popitem(last=False)
            return made

    def _make(self, key: Hashable, made: Future[object], make: Callable[[], object]) -> None:
        try:
            made.set_result(make())
        except BaseException as error:
            with self._lock:
                self._found.pop(key, None)
            made.set_exception(error)
