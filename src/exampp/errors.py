"""Exceptions of exampp.

    ExamError
    |-- InputError        a file, an option or a value is invalid (exit code 2)
    |   |-- AmbiguousGrader   several graders match; choose one
    |   |-- EditConflict      someone else has edited the same item
    |   `-- Repeated          a file repeats something that may occur only once
    |-- Undefined         nothing of the request could be computed (exit code 1)
    `-- Unfinished        the work is unfinished; completed parts are stored (exit code 1)
        |-- CollectionBusy    another process has locked the collection
        `-- StorageFault      the collection cannot be read from or written to disk

The text of an error says what is wrong, where (file, line, field) and how to fix it. If it names
options of the command line, an exception note names the Python arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LONGEST = 800
"""Maximum characters of a message."""


_COMMAND = re.compile(r"exampp [a-z][^.;,]*")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")
_KEYWORDS = {"for": "measures"}
"""Options with another name in Python."""


class ExamError(Exception):
    """Base class of all errors; `exit_code` is that of the command line."""

    exit_code = 1

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        # commands are not options
        if options := _OPTION.findall(_COMMAND.sub("", f"{text}\n{hint}")):
            names = (_KEYWORDS.get(one, one.replace("-", "_")) for one in dict.fromkeys(options))
            self.add_note(f"In Python: {', '.join(f'{name}=...' for name in names)}")


def _short(text: str) -> str:
    # a quoted text may be a whole file
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


class InputError(ExamError):
    """An invalid file, option or value.

    `what` is the fault; `file`, `line` (from 1) and `field` (such as `exam_grades[0].llm`) locate
    it; `hint` is the fix.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str = "",
        hint: str = "",
    ) -> None:
        self.what = _short(what)
        self.file = None if file is None else str(file)
        self.line = line
        self.field = _short(field)
        self.hint = _short(hint)
        super().__init__(self.what, self.hint)

    @property
    def where(self) -> str:
        """Return `file:line, field`, as far as known."""
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        return ", ".join(part for part in (place, self.field) if part)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if not self.hint:
            return text
        return f"{text} {self.hint}" if text.endswith(("?", ".", "!")) else f"{text}. {self.hint}"

    def at(self, file: str | Path | None = None, line: int | None = None) -> InputError:
        """Set the location if it is unknown; return self."""
        self.file = self.file or (None if file is None else str(file))
        self.line = self.line if self.line is not None else line
        return self


class AmbiguousGrader(InputError):
    """More than one grader matches; `graders` are their names."""

    def __init__(self, what: str, graders: Sequence[str]) -> None:
        super().__init__(what)
        self.graders = tuple(graders)


class EditConflict(InputError):
    """Someone else has edited the same item; nothing was changed.

    `theirs` is the current item, `yours` the intended one (None: unknown), both
    `store.bank.ItemState`; `number` is the newest edit, made by `author` at `when`.
    """

    def __init__(
        self, what: str, *, number: int, author: str, when: str, theirs: Any, yours: Any = None
    ) -> None:
        super().__init__(what, hint="Reload it, then decide which version to keep")
        self.number = number
        self.author = author
        self.when = when
        self.theirs = theirs
        self.yours = yours


class Repeated(InputError):
    """A file repeats something that may occur only once; `equal` if the whole line does."""

    equal = False


class Undefined(ExamError):
    """Every requested value is undefined, for the reasons in the message."""


class Unfinished(ExamError):
    """The work stopped early; completed parts are stored and a rerun continues."""


class CollectionBusy(Unfinished):
    """Another process has locked the collection."""


class StorageFault(Unfinished):
    """The disk, a quota or a limit prevents access to `file`; `why` is the reason."""

    def __init__(self, file: str | Path, why: str, hint: str) -> None:
        super().__init__(f"{file}: {why}. {hint}")
        self.why = why


def environment_fault(error: Exception) -> str | None:
    """Describe an environment fault, such as a full disk; None for other errors."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file or stream'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'allocation failed'})"
    return None
