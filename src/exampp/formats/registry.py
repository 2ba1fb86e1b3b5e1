"""All formats of files: those of exampp, each declared in a file of its own, and of packages."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from exampp.errors import ExamError, InputError
from exampp.formats.format import RECORDS, Format, ReadOptions
from exampp.plugins import Registry, describe_error
from exampp.sanitize import sanitize

ROLES = ("queries", "passages", "bank", "runs", "qrels", "responses")
"""What a person may say of a file, in the order of the options; its format is then detected."""


@cache
def built_in_formats() -> dict[str, Format]:
    """Return the formats of exampp by name: every `Format` in a module of this package."""
    package = __package__ or ""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    declared = (vars(import_module(f"{package}.{one.name}")).values() for one in modules)
    found = [one for values in declared for one in values if isinstance(one, Format)]
    return {one.name: one for one in found}


@cache
def _taken_names() -> dict[str, Format]:
    exported = {one.exports: one for one in built_in_formats().values() if one.exports}
    return exported | built_in_formats()


class _BuiltIn(Mapping[str, Format]):
    """The formats of exampp by name and by what they are exported as; loaded when looked at."""

    def __getitem__(self, name: str) -> Format:
        return _taken_names()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_taken_names())

    def __len__(self) -> int:
        return len(_taken_names())


def _checked(name: str, declared: object) -> Format:
    """Return what a package declares as a format, if it is one that can be used."""
    if not isinstance(declared, Format):
        raise InputError(f"{declared!r} is no exampp.Format", mend="Name one in the entry point")
    if declared.role not in RECORDS:
        raise InputError(f"it holds {declared.role!r}", mend=f"Say one of {', '.join(RECORDS)}")
    if declared.read is None and declared.write is None:
        raise InputError("it neither reads nor writes", mend="Give it read, or write, or both")
    return replace(declared, name=name)


FORMATS: Registry[Format] = Registry("exampp.formats", "format", _BuiltIn(), _checked)
"""The formats by name; the names of the built-in ones are taken."""


def format_of(name: str) -> Format | None:
    """Return the format of this name; None where there is none."""
    return FORMATS.get(name)


def built_in_kind(name: str) -> str:
    """Return the built-in format whose files hold the same as those of a format."""
    form = None if name in FORMATS.built_in else FORMATS.get(name)
    return name if form is None else {"runs": "run"}.get(form.role, form.role)


def of_packages() -> list[str]:
    """Return the names of the formats of packages, whether they can be used or not."""
    return [name for name in FORMATS.names() if name not in FORMATS.built_in]


def read_records(form: Format, path: Path, how: ReadOptions) -> Iterator[Any]:
    """Yield the records of a file in file order; those of a package's format are checked.

    Raises:
        InputError: The format does not read, its reader fails, or it yields something else.
    """
    if form.read is None:
        raise InputError(f"{form.name} files are not imported", file=path)
    if form.name in FORMATS.built_in:
        yield from form.read(path, how)
        return
    number = 0
    wanted = RECORDS[form.role]
    try:
        for number, record in enumerate(form.read(path, how), 1):
            if not isinstance(record, wanted):
                raise InputError(
                    f"record {number} of the format {form.name!r} is no {wanted.__name__} of "
                    f"exampp.records, but {type(record).__name__}"
                )
            _check_texts(record, number)
            how.check(record)
            yield record
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        # a reader of a package may fail in any way
        raise InputError(
            f"the format {form.name!r} cannot read on after record {number}: "
            f"{describe_error(error)}",
            file=path,
        ) from error


def _check_texts(record: Any, number: int) -> None:
    for one in fields(record):
        value = getattr(record, one.name)
        empty = one.name.endswith("_id") and value == ""
        if empty or (isinstance(value, str) and sanitize(value)[1]):
            what = "is empty" if empty else "holds what is no text"
            raise InputError(f"record {number} {what}", field=one.name)


def write_records(form: Format, path: Path, records: Iterable[Any]) -> None:
    """Write records to a file in a format; raises InputError where that fails."""
    if form.write is None:
        raise InputError(f"cannot export {form.name!r}")
    try:
        form.write(path, records)
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        if form.name in FORMATS.built_in:
            raise
        # a writer of a package may fail in any way
        raise InputError(
            f"the format {form.name!r} cannot be written: {describe_error(error)}"
        ) from error
