"""Formats of others: what a file of theirs holds, how it is read and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import ExamError, InputError
from exampp.formats.detect import KINDS
from exampp.plugins import Registry, describe_error
from exampp.records import BankEntry, Judgment, Passage, Query, RankedPassage
from exampp.sanitize import sanitize


class FormatRole(NamedTuple):
    """What a file can hold: its records, and the kind of exampp's own files that is like it."""

    record: type
    like: str


HOLDS: Mapping[str, FormatRole] = {
    "queries": FormatRole(Query, "queries"),
    "passages": FormatRole(Passage, "passages"),
    "bank": FormatRole(BankEntry, "bank"),
    "runs": FormatRole(RankedPassage, "run"),
    "qrels": FormatRole(Judgment, "qrels"),
}
"""What a format may hold, by name."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files that hold one of `HOLDS`, as the records of `exampp.records`.

    `read` yields the records of a file, `write` writes them to one; either may be missing.
    """

    holds: str
    read: Callable[[Path], Iterable[Any]] | None = None
    write: Callable[[Path, Iterable[Any]], None] | None = None


def _format(_: str, declared: object) -> Format:
    """What a package declares as a format, checked."""
    if not isinstance(declared, Format):
        raise InputError(f"{declared!r} is no exampp.Format", mend="Name one in the entry point")
    if declared.holds not in HOLDS:
        raise InputError(f"it holds {declared.holds!r}", mend=f"Say one of {', '.join(HOLDS)}")
    if declared.read is None and declared.write is None:
        raise InputError("it neither reads nor writes", mend="Give it read, or write, or both")
    return declared


_OWN = (*KINDS, "car-topics", "car-paragraphs", "dataset", "beir", "texts", "runs", "judgments")
_OF_EXAMPP = Format("bank")
FORMATS = Registry("exampp.formats", "format", dict.fromkeys(_OWN, _OF_EXAMPP), _format)
"""The formats of packages by name; the names of exampp's own formats, which are taken."""


def declared_format(name: str) -> Format | None:
    """The format of a package, None where that is none of a package."""
    return None if name in FORMATS.built_in else FORMATS.get(name)


def like(kind: str) -> str:
    """The kind of exampp's own files that hold the same."""
    found = declared_format(kind)
    return kind if found is None else HOLDS[found.holds].like


def read_declared(name: str, path: Path) -> Iterator[Any]:
    """The records of a file in a format of a package, in file order.

    Raises:
        InputError: There is no such format, it reads nothing, or it fails or gives something else.
    """
    found = declared_format(name)
    if found is None or found.read is None:
        raise InputError(f"{name} files are not imported", file=path)
    wanted = HOLDS[found.holds].record
    number = 0
    try:
        for number, record in enumerate(found.read(path), 1):
            if not isinstance(record, wanted):
                raise InputError(
                    f"record {number} of the format {name!r} is no {wanted.__name__} of "
                    f"exampp.records, but {type(record).__name__}"
                )
            _check_texts(record, number)
            yield record
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        # what others write may fail in any way; it is told in a sentence
        raise InputError(
            f"the format {name!r} cannot read on after record {number}: {describe_error(error)}",
            file=path,
        ) from error


def _check_texts(record: Any, number: int) -> None:
    for one in fields(record):
        value = getattr(record, one.name)
        empty = one.name.endswith("_id") and value == ""
        if empty or (isinstance(value, str) and sanitize(value)[1]):
            what = "is empty" if empty else "holds what is no text"
            raise InputError(f"record {number} {what}", field=one.name)


def write_declared(name: str, path: Path, records: Iterable[Any]) -> None:
    """Write records as a file in a format of a package; raises InputError where that fails."""
    found = declared_format(name)
    if found is None or found.write is None:
        raise InputError(f"cannot export {name!r}")
    try:
        found.write(path, records)
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        # what others write may fail in any way; it is told in a sentence
        raise InputError(
            f"the format {name!r} cannot be written: {describe_error(error)}"
        ) from error
