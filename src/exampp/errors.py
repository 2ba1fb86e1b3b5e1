"""Define every error that exampp raises on purpose.

    ExamError
    |-- InputError        a file, an option or a value is invalid (exit code 2)
    |   |-- AmbiguousGrader   several graders match and one must be chosen
    |   |-- EditConflict      someone else edited the same item meanwhile
    |   `-- Repeated          something that may occur once in a file occurs again
    |-- Undefined         nothing that was requested could be computed (exit code 1)
    `-- Unfinished        the work could not be finished; finished parts are stored (exit code 1)
        |-- CollectionBusy    another process holds the collection
        `-- StorageFault      the disk refuses to read or write the collection

The text of an error says what is wrong, where (file, line, field) and how to fix it. If it names
options of the command line, a note, which Python shows below the text, names the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LONGEST = 800
"""Maximum characters of a sentence, whatever it quotes."""


_COMMAND = re.compile(r"exampp [a-z][^.;,]*")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")


class ExamError(Exception):
    """Base of all errors of exampp; `exit_code` is the exit code of the command line."""

    exit_code = 1

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        # no command is an option of a function
        if options := _OPTION.findall(_COMMAND.sub("", f"{text}\n{hint}")):
            names = (option.replace("-", "_") for option in dict.fromkeys(options))
            self.add_note(f"In Python: {', '.join(f'{name}=...' for name in names)}")


def _short(text: str) -> str:
    # what is quoted may be a whole file
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


class InputError(ExamError):
    """An invalid file, option or value.

    `what` is the fault; `file`, `line` (counted from 1) and `field` (such as `exam_grades[0].llm`)
    say where; `hint` says how to fix it.
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
        """Fill in the place if it is unknown, and return self."""
        self.file = self.file or (None if file is None else str(file))
        self.line = self.line if self.line is not None else line
        return self


class AmbiguousGrader(InputError):
    """More than one grader matches; `graders` are their names."""

    def __init__(self, what: str, graders: Sequence[str]) -> None:
        super().__init__(what)
        self.graders = tuple(graders)


class EditConflict(InputError):
    """Someone else edited an item after a person saw it; nothing was changed.

    `theirs` is the item as it is now, `yours` the item as it was to become (None: unknown), both as
    `store.bank.ItemState`; `number` is the newest edit, made by `author` at `when`.
    """

    def __init__(
        self, what: str, *, number: int, author: str, when: str, theirs: Any, yours: Any = None
    ) -> None:
        super().__init__(what, hint="Look at it again, then decide which of the two is to stand")
        self.number = number
        self.author = author
        self.when = when
        self.theirs = theirs
        self.yours = yours


class Repeated(InputError):
    """Something that may occur once in a file occurs again."""


class Undefined(ExamError):
    """Every requested value is undefined; the text gives the reasons."""


class Unfinished(ExamError):
    """The work stopped before its end; finished parts are stored and a rerun continues."""


class CollectionBusy(Unfinished):
    """Another process holds the write lock of the collection."""


class StorageFault(Unfinished):
    """The disk, a quota or a limit refuses to read or write `file`; `why` is the reason."""

    def __init__(self, file: str | Path, why: str, hint: str) -> None:
        super().__init__(f"{file}: {why}. {hint}")
        self.why = why


def environment_fault(error: Exception) -> str | None:
    """Describe a fault of the machine, such as a full disk; None for any other error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file or stream'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this ({error or 'no more could be had'})"
    return None
