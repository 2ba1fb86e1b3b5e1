"""What was computed for a page, kept for the next: each thing once, whoever asks for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import TypeVar, cast

T = TypeVar("T")
MOST = 24


class PageCache:
    """The last few things that pages asked for; made in threads of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, tuple[Hashable, Future[object]]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        """Whether something was made, or is being made."""
        return key in self._found

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once. What it raises is raised, and is not kept."""
        return cast(T, self._future(key, make).result())

    def soon(
        self, key: Hashable, make: Callable[[], T], patience: float, state: Hashable = None
    ) -> T | None:
        """The same within so many seconds; None while it is still being made.

        What was made of another `state` is made anew, once it is made at all.
        """
        made = self._future(key, make, state)
        wait([made], patience)
        return cast(T, made.result()) if made.done() else None

    def _future(
        self, key: Hashable, make: Callable[[], object], state: Hashable = None
    ) -> Future[object]:
        with self._lock:
            of, made = self._found.get(key, (None, None))
            if made is None or (of != state and made.done()):
                made = Future()
                self._found[key] = (state, made)
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
