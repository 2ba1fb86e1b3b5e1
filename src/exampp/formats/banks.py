"""Every format that holds a bank, by its kind: what commands that take any bank file read with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import argue, bank, nuggetizer, plain_bank, questions, tqa, trec_nuggets
from exampp.formats.detect import detect
from exampp.formats.lines import OnError, existing_file, raise_error
from exampp.records import BankEntry

Reader = Callable[[Path, OnError], Iterator[BankEntry]]

READERS: Mapping[str, Reader] = {
    "bank": bank.read,
    "plain-bank": plain_bank.read,
    "questions": questions.read,
    "tqa": tqa.read,
    "nuggetizer": nuggetizer.read,
    "argue": argue.read,
    "trec-nuggets": trec_nuggets.read,
}
"""What each kind of bank file is read by."""


def read(
    path: str | Path, on_error: OnError = raise_error, kind: str | None = None
) -> Iterator[BankEntry]:
    """Yield the entries of a bank file of any kind; InputError where it is no bank."""
    found = kind or detect(existing_file(path))
    if found not in READERS:
        raise InputError(
            f"is no bank but {found}", file=path, mend=f"Kinds of banks: {', '.join(READERS)}"
        )
    yield from READERS[found](Path(path), on_error)
