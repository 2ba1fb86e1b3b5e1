"""Warnings of readers, and the fields that they do not use.

Readers call `add_warning`; `collect_warnings` collects the warnings of one import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    """Warnings on the files of one import.

    `unread` counts, by file and field, the records whose field is dropped; `stored` those whose
    field is stored and exported, but not used. `presets` are the presets that read files, `places`
    those of the records in objects, and `fields` counts the records by (field, path).
    """

    notes: dict[str, None] = field(default_factory=dict)
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    stored: dict[str, Counter[str]] = field(default_factory=dict)
    presets: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)

    def sentences(self) -> tuple[str, ...]:
        """Return the warnings, then one sentence per file on its dropped fields."""
        unused = (
            f"{path}: {counted(len(fields), 'field')} not read: {_most_frequent(fields)}"
            for path, fields in self.unread.items()
        )
        return (*self.notes, *unused)


def _most_frequent(fields: Counter[str]) -> str:
    first = [f"{name} ({counted(count, 'record')})" for name, count in [*fields.items()][:_LISTED]]
    more = [f"{len(fields) - _LISTED} more"] if len(fields) > _LISTED else []
    return ", ".join(first + more)


_HEARD: ContextVar[ReadWarnings | None] = ContextVar("heard", default=None)


@contextmanager
def collect_warnings() -> Iterator[ReadWarnings]:
    """Collect the warnings of readers within the context."""
    warnings = ReadWarnings()
    token = _HEARD.set(warnings)
    try:
        yield warnings
    finally:
        _HEARD.reset(token)


def add_warning(path: str | Path, line: int | None, sentence: str) -> None:
    """Add a warning about a file or line; duplicates are dropped."""
    warnings = _HEARD.get()
    if warnings is not None:
        place = sanitize_name(str(path)) + ("" if line is None else f":{line}")
        warnings.notes[f"{place}: {sentence}"] = None


def is_empty(value: Any) -> bool:
    """Return whether a field, decoded or raw JSON, has no content to lose."""
    return (bytes(value) if isinstance(value, msgspec.Raw) else value) in _EMPTY


def count_unused(path: str | Path, fields: Collection[str], *, stored: bool = False) -> None:
    """Count the fields of a record that its reader drops, or only stores."""
    warnings = _HEARD.get()
    if warnings is not None and fields:
        files = warnings.stored if stored else warnings.unread
        files.setdefault(sanitize_name(str(path)), Counter()).update(fields)


def note_preset(path: str | Path, name: str) -> None:
    """Note the preset that reads a file."""
    if (warnings := _HEARD.get()) is not None:
        warnings.presets[sanitize_name(str(path))] = name


def note_place(path: str | Path, place: str) -> None:
    """Note the place of the records in the objects of a file; the first one counts."""
    if (warnings := _HEARD.get()) is not None:
        warnings.places.setdefault(sanitize_name(str(path)), place)


def count_fields(path: str | Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Count a record by its fields and the paths where they were found."""
    if (warnings := _HEARD.get()) is not None:
        warnings.fields.setdefault(sanitize_name(str(path)), Counter()).update(pairs)


class Keys:
    """Checks the keys of a file's objects for unused and misspelled ones.

    `within` is the place of the objects in a record, as in `metadata.`. `stored` means that the
    reader stores keys that it does not use.
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
        self,
        fields: Mapping[str, Any],
        line: int | None,
        used: Collection[str | None] | None = None,
    ) -> None:
        """Check an object; `used` are the keys read from it, by default all known ones.

        Each misspelled key is reported once.
        """
        if used is None and fields.keys() <= self._known:
            return
        used = self._known if used is None else used
        unknown = [key for key in fields if key not in used]
        if not unknown:
            return
        count_unused(
            self._path,
            [self._within + key for key in unknown if not is_empty(fields[key])],
            stored=self._stored,
        )
        for key in unknown:
            if key in self._seen:
                continue
            self._seen.add(key)
            # not a misspelling if the object has the known key, too
            if (one := near(key, self._known)) and one not in fields:
                add_warning(self._path, line, f"the key `{key}` is not read; did you mean `{one}`?")
