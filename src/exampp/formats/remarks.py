"""What readers have to say of a file that they read all the same.

A reader says it once, wherever it is; whoever takes a file over hears it, and nobody has to pass it
on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from exampp.formats.headers import near
from exampp.outside import fit_name

_HEARD: ContextVar[dict[str, None] | None] = ContextVar("remarks", default=None)


@contextmanager
def hearing() -> Iterator[dict[str, None]]:
    """Collect what is remarked meanwhile, each sentence once and in order."""
    heard: dict[str, None] = {}
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def remark(path: str | Path, line: int | None, sentence: str) -> None:
    """Say a sentence about a file, or a line of it."""
    heard = _HEARD.get()
    if heard is not None:
        place = fit_name(str(path)) + ("" if line is None else f":{line}")
        heard[f"{place}: {sentence}"] = None


class Keys:
    """Looks at the keys of a file's objects, and remarks on those that nearly are known ones."""

    def __init__(self, path: str | Path, known: Collection[str]) -> None:
        self._path = path
        self._known = frozenset(known)
        self._seen = set(known)

    def see(self, keys: Collection[str], line: int | None) -> None:
        """Take the keys of an object, those that are read or only the others.

        A key is remarked on where it comes first.
        """
        if self._seen.issuperset(keys):
            return
        for key in keys:
            if key in self._seen:
                continue
            self._seen.add(key)
            # a second spelling of what the object has already is something else
            if (one := near(key, self._known)) and one not in keys:
                remark(self._path, line, f"the key `{key}` is not read; it is nearly `{one}`")
