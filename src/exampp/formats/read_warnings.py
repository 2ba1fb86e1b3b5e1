"""Notes of readers on files that they accept, and the fields that they do not use.

A reader notes where it finds something; `hearing` collects the notes of one import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from exampp.formats.fields import near
from exampp.records.wording import counted
from exampp.sanitize import sanitize_name

_LISTED = 8
_EMPTY: tuple[Any, ...] = (None, "", [], {}, b"null", b'""', b"[]", b"{}")


@dataclass(slots=True)
class ReadWarnings:
    """The notes on the files of one import.

    `unread` counts, by file and field, the records whose field is dropped; `stored` those whose
    field is stored and exported, and not used for anything.
    """

    notes: dict[str, None] = field(default_factory=dict)
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    stored: dict[str, Counter[str]] = field(default_factory=dict)

    def sentences(self) -> tuple[str, ...]:
        """Return the notes, then one sentence on the fields of each file that are dropped."""
        unused = (
            f"{path}: {counted(len(fields), 'field')} not read: {_listed(fields)}"
            for path, fields in self.unread.items()
        )
        return (*self.notes, *unused)


def _listed(fields: Counter[str]) -> str:
    first = [f"{name} ({counted(count, 'record')})" for name, count in [*fields.items()][:_LISTED]]
    more = [f"{len(fields) - _LISTED} more"] if len(fields) > _LISTED else []
    return ", ".join(first + more)


_HEARD: ContextVar[ReadWarnings | None] = ContextVar("heard", default=None)


@contextmanager
def collect_warnings() -> Iterator[ReadWarnings]:
    """Collect the notes that readers make meanwhile."""
    heard = ReadWarnings()
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def add_warning(path: str | Path, line: int | None, sentence: str) -> None:
    """Note a sentence about a file, or a line of it; the same sentence once."""
    heard = _HEARD.get()
    if heard is not None:
        place = sanitize_name(str(path)) + ("" if line is None else f":{line}")
        heard.notes[f"{place}: {sentence}"] = None


def is_empty(value: Any) -> bool:
    """Return whether a field, decoded or raw JSON, holds nothing that could be lost."""
    return (bytes(value) if isinstance(value, msgspec.Raw) else value) in _EMPTY


def count_unused(path: str | Path, fields: Collection[str], *, stored: bool = False) -> None:
    """Count the fields of one record that its reader drops, or stores without using them."""
    heard = _HEARD.get()
    if heard is not None and fields:
        files = heard.stored if stored else heard.unread
        files.setdefault(sanitize_name(str(path)), Counter()).update(fields)


class Keys:
    """Looks at the keys of a file's objects; notes those that are not used, or nearly known.

    `within` is where the objects are in a record, as in `metadata.`. `stored` says that the reader
    stores the keys that it does not use.
    """

    def __init__(
        self, path: str | Path, known: Collection[str], within: str = "", *, stored: bool = False
    ) -> None:
        self._path = path
        self._known = frozenset(known)
        self._seen = set(known)
        self._within = within
        self._stored = stored

    def see(
        self, found: Mapping[str, Any], line: int | None, used: Collection[str | None] | None = None
    ) -> None:
        """Take an object; `used` are the keys that are read of it, by default all known ones.

        A key that nearly is a known one is noted where it comes first.
        """
        used = self._known if used is None else used
        others = [key for key in found if key not in used]
        if not others:
            return
        count_unused(
            self._path,
            [self._within + key for key in others if not is_empty(found[key])],
            stored=self._stored,
        )
        for key in others:
            if key in self._seen:
                continue
            self._seen.add(key)
            # a second spelling of what the object has already is something else
            if (one := near(key, self._known)) and one not in found:
                add_warning(self._path, line, f"the key `{key}` is not read; it is nearly `{one}`")
