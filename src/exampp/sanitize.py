"""Clean external text for UTF-8 and the store, by one rule for all inputs.

Lone surrogates are invalid, and many programs treat NUL as the end of a text; both become U+FFFD,
the replacement character of Unicode. Every replacement is reported: by a grading run in the cell's
`detail`, by an import in its report. Ids are never changed, because two could become equal; an
invalid id is an error.
"""

from __future__ import annotations

import errno
import math
import operator
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

from exampp.errors import InputError

LARGEST = 2**63 - 1
"""The largest integer in the store."""
REPLACED = "\ufffd"
DEEPEST = 100
"""Maximum nesting of a value; deeper values are stored as text."""
_DIGITS = 18
"""Decimal digits of a number that fits into the store."""
Given = TypeVar("Given")
_UNFIT = re.compile("[\0\ud800-\udfff]")


def sanitize(text: str) -> tuple[str, int]:
    """Replace lone surrogates and NUL by U+FFFD; return the text and their number."""
    if text.isascii() and "\0" not in text:
        return text, 0
    return _UNFIT.subn(REPLACED, text)


def sanitize_name(name: str) -> str:
    """Return the name of a file as text, decoded as Latin-1 if it is not UTF-8."""
    if not _UNFIT.search(name):
        return name
    try:
        return os.fsencode(name).decode("latin-1").replace("\0", REPLACED)
    except UnicodeEncodeError:
        return sanitize(name)[0]


def sanitize_value(value: Any, depth: int = 0) -> tuple[Any, int]:
    """Return a value that JSON and the store accept, and the number of replacements.

    Non-finite numbers, integers beyond 64 bits, and types unknown to JSON become text.
    """
    if isinstance(value, str):
        return sanitize(value)
    if value is None or isinstance(value, bool):
        return value, 0
    if isinstance(value, int):
        # Python refuses to convert very long integers to text
        return (int(value) if abs(value) <= LARGEST else "a number beyond 64 bits"), 0
    if isinstance(value, float):
        return (value if math.isfinite(value) else str(value)), 0
    if depth < DEEPEST and isinstance(value, Mapping):
        pairs = [
            (sanitize(str(key)), sanitize_value(part, depth + 1)) for key, part in value.items()
        ]
        cleaned = {key: part for (key, _), (part, _) in pairs}
        return cleaned, sum(keys + parts for (_, keys), (_, parts) in pairs)
    if depth < DEEPEST and isinstance(value, list | tuple):
        parts = [sanitize_value(part, depth + 1) for part in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    return sanitize(type(value).__name__ if depth >= DEEPEST else str(value))


def check_texts(fields: Mapping[str, Any]) -> None:
    """Raise InputError, naming the field, if an entered text is invalid."""
    for name, value in fields.items():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, str) and _UNFIT.search(part) and not _is_file(part):
                raise InputError(
                    f"{_shown(part)} is not UTF-8 text",
                    field=name,
                    hint="Enter it again in a UTF-8 terminal",
                )


def _is_file(text: str) -> bool:
    # names of files and folders may contain any bytes
    return "\0" not in text and os.path.lexists(text)


def check_path(path: str | Path) -> Path:
    """Return the path; InputError if it is not a path, contains a NUL, or is too long."""
    if not isinstance(path, str | os.PathLike):
        what = f"a path must be a str or a Path, not {type(path).__name__}"
        raise InputError(what, hint="Pass several files separately: import_files(*paths)")
    try:
        os.lstat(path)
    except ValueError:
        raise InputError(f"{_shown(str(path))} is not a path: it contains a NUL") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            what = f"{_shown(str(path))} is too long for a path"
            raise InputError(what, hint="Use a shorter name") from None
    return Path(path)


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else text[: most - 3] + "...")


# ---- files ---------------------------------------------------------------------------------------
#


@dataclass(slots=True)
class Replacements:
    """Count of replaced characters in files, with the place of the first.

    A reader writes NUL for an invalid character and records its place. Later, texts replace it and
    ids are refused.
    """

    count: int = 0
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = "1 invalid character was" if self.count == 1 else ""
        text = text or f"{self.count} invalid characters were"
        return f"{text} replaced by U+FFFD (first: {place})"


_COUNTED: ContextVar[Replacements | None] = ContextVar("replacements", default=None)


@contextmanager
def count_replacements() -> Iterator[Replacements]:
    """Count replaced characters while files are read and stored."""
    replacements = Replacements()
    token = _COUNTED.set(replacements)
    try:
        yield replacements
    finally:
        _COUNTED.reset(token)


def record_replacement(file: str | Path, line: int | None) -> None:
    """Record the place of an invalid character; the counter stores the first one."""
    replacements = _COUNTED.get()
    if replacements is not None and not replacements.file:
        replacements.file, replacements.line = sanitize_name(str(file)), line


def sanitized(text: str) -> str:
    """Replace invalid characters of a text and count them."""
    fitted, count = sanitize(text)
    replacements = _COUNTED.get()
    if replacements is not None:
        replacements.count += count
    return fitted


def check_id(identifier: str) -> str:
    """Return the id; InputError if it has an invalid character."""
    if _UNFIT.search(identifier):
        raise InputError(
            f"the id {_shown(identifier)} contains an invalid character",
            hint="Ids are never changed: remove the NUL or the lone surrogate",
        )
    return identifier


def check_integer(
    name: str, value: object, least: int | None = None, most: int | None = None
) -> int:
    """Return the integer; InputError for anything else, or outside `least` to `most`."""
    if not isinstance(value, SupportsIndex):
        raise InputError(f"{name} must be a whole number, not {value!r}")
    number = operator.index(value)
    if least is not None and number < least:
        raise InputError(f"{name} must be {least} or more, not {number}")
    if most is not None and number > most:
        raise InputError(f"{name} must be {most} or less, not {number}")
    return number


def parse_digits(text: str) -> int | None:
    """Return the number that decimal digits write; None for other texts, and for too many."""
    # Python refuses to parse numbers with thousands of digits
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def check_text(name: str, value: object) -> str:
    """Return the stripped text; InputError if it is not a text or is blank."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, not {_shown(repr(value))}", field=name)
    if not value.strip():
        raise InputError(f"{name} is blank", field=name)
    return value.strip()


def clean_name(what: str, value: object) -> str:
    """Return the name of a person in one spelling; InputError if it is not a text or is blank.

    Composes accents (NFC), removes invisible characters, and joins words by single spaces.
    """
    text = check_text(what, value)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = "".join(one for one in text if unicodedata.category(one) not in ("Cc", "Cf"))
    return check_text(what, " ".join(text.split()))


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise InputError for an unknown value."""
    if value not in known:
        *others, last = known
        choice = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{name} is {value!r}", hint=f"Choose {choice}")


def check_lists(**arguments: object) -> None:
    """Raise InputError for arguments that are a single value instead of a list."""
    for name, value in arguments.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} is not a list", hint=f"Pass a list: {name}=[{value!r}]")


def or_default(name: str, value: Given | None, kind: type[Given]) -> Given:
    """Return the options, or the defaults if None; InputError for another type."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        what = f"{name} must be {kind.__name__}(...), not {_shown(repr(value))}"
        raise InputError(what, hint=f"Import it from {kind.__module__}")
    return value
