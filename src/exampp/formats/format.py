"""Declare file formats: their records, readers, writers and detection.

Every format is declared by one `Format` in the module that reads and writes it, and is found there;
formats of other packages declare the same.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import ExamError, InputError
from exampp.formats.fields import (
    MEASURE,
    SYSTEM,
    VALUE,
    bank_separator,
    brief,
    column_names,
    is_qrels_header,
    normalize_name,
)
from exampp.formats.json_values import OBJECT
from exampp.formats.lines import (
    OnError,
    accept,
    lines_below_metadata,
    lines_in_memory,
    plain_name,
    raise_error,
    valid_json,
)
from exampp.plugins import Registry, describe_error
from exampp.records import BankEntry, Judgment, Passage, Query, RankedPassage
from exampp.records.graders import RatingScale
from exampp.sanitize import sanitize

RECORDS: Mapping[str, type] = {
    "queries": Query,
    "passages": Passage,
    "bank": BankEntry,
    "runs": RankedPassage,
    "qrels": Judgment,
}
"""The record that files of a role hold, unless their format says otherwise."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of readers; each reader takes those that concern it.

    `on_error` takes the error of a bad record. `check` may refuse a record by raising InputError.
    `system` names the system of records that do not name one, or of all (`is_named`). `query_of`
    finds the id of a query by its text. `scale` is that of graders whose prompt is not known;
    `on_cell` takes ratings that cannot be read.
    """

    on_error: OnError = raise_error
    check: Callable[[Any], None] = accept
    system: str | None = None
    is_named: bool = False
    query_of: Callable[[str], str] | None = None
    scale: RatingScale | None = None
    on_cell: OnError = accept

    @property
    def only_system(self) -> str | None:
        """The system of all records, whatever they say themselves."""
        return self.system if self.is_named else None


class DataSet(NamedTuple):
    """The one record of a data set that is read as a whole."""

    queries: Sequence[Query]
    judgments: Iterable[Judgment]


class Shape(NamedTuple):
    """Condition on the fields of a JSON object: one of every set of words, none of `without`.

    It has at most `most` fields, and fits none of `unless`.
    """

    sets: tuple[Iterable[str], ...]
    without: frozenset[str] = frozenset()
    unless: tuple[Shape, ...] = ()
    most: int = 1000

    def fit(self, keys: frozenset[str]) -> bool:
        """Return whether an object with these keys fits."""
        return (
            len(keys) <= self.most
            and keys.isdisjoint(self.without)
            and not any(keys.isdisjoint(some) for some in self.sets)
            and not any(one.fit(keys) for one in self.unless)
        )


_SAMPLE = 5
_LONGEST = 1 << 20
"""Bytes of a line that are split into columns."""
_START = 4000
_KEY = re.compile(r'\s*\{?\s*"((?:[^"\\]|\\.)*)"\s*:')
_FIRST_PAIR = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(\S)')
_RECORD_NAMES = frozenset(
    (
        *("conversation", "conversation_id", "messages", "turns", "task", "task_id", "tasks"),
        *("name", "version", "status", "model", "dataset", "description", "type", "created_at"),
        *("input", "output", "question", "answer", "query", "text", "prompt", "response"),
        *("score", "scores", "average_scores", "averages", "metrics", "summary", "results"),
        *("judgments", "ratings", "config", "eval", "samples", "metadata", "data", "columns"),
    )
)
"""Names of the fields of records and of summaries, which are not ids of queries or systems."""


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """The first lines of a file, or of the rows that stand for it; `keys` of the first object."""

    name: str
    lines: tuple[str, ...]
    keys: tuple[str, ...] = ()
    first_value: str = ""
    values: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The plain names of the keys with which the lines start."""
        found = (match[1] for line in self.lines for match in [_KEY.match(line)] if match)
        return frozenset(map(normalize_name, (*self.keys, *found)))

    @property
    def is_json(self) -> bool:
        """Return whether the first line starts as JSON."""
        return self.head.lstrip().startswith(("{", "["))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns, if the first line names them."""
        separator = "\t" if "\t" in self.head else None
        return () if self.is_json else column_names(self.head.split(separator))

    @property
    def found(self) -> str:
        """The fields, columns or first line, for messages."""
        if self.keys:
            return f"fields found: {', '.join(self.keys)}"
        if self.header:
            return f"columns found: {', '.join(self.head.split())}"
        count = len(self.head.split("\t"))
        start = f"first line: {brief(self.head)}"
        return f"{count} columns without names, {start}" if count > 1 else start

    @property
    def head(self) -> str:
        """The first line."""
        return self.lines[0]

    @property
    def start(self) -> str:
        """The first characters."""
        return "\n".join(self.lines)[:_START]

    def columns(self, separator: str | None) -> list[list[str]]:
        """Return the columns of each line."""
        return [line.split(separator) for line in self.lines]

    def widths(self, separator: str | None) -> set[int]:
        """Return the numbers of columns that lines have."""
        return {len(columns) for columns in self.columns(separator)}

    def has_words(self, width: int) -> bool:
        """Return whether the lines are so many words, and not two or three columns of text."""
        if self.is_json or self.widths("\t") & {2, 3}:
            return False
        return self.widths(None) == {width}

    def has_numbers(self, *places: int) -> bool:
        """Return whether the words at these places are numbers in every line."""
        return all(is_number(row[place]) for row in self.columns(None) for place in places)

    @property
    def is_bank_table(self) -> bool:
        """Return whether the file is a table with the header of a bank."""
        return bank_separator(self.head) is not None

    def has_tabs(self, widths: set[int]) -> bool:
        """Return whether the lines have so many columns with tabs, and no known other meaning."""
        return (
            not self.is_json
            and not self.is_bank_table
            and self.widths("\t") <= widths
            and not is_qrels_header(self.header)
            and not self.has_scores
        )

    @property
    def has_whole_numbers_third(self) -> bool:
        """Return whether there are three columns as in files of MS MARCO."""
        rows = self.columns("\t")
        return self.has_tabs({3}) and all(row[2].strip().lstrip("-").isdigit() for row in rows)

    @property
    def has_scores(self) -> bool:
        """Return whether the file is a table of scores of a program; see `score_tables`."""
        if not MEASURE.isdisjoint(self.keys):
            return not VALUE.isdisjoint(self.keys)
        if self.is_json:
            return "examScore" in self.keys
        separator = next((mark for mark in "\t," if mark in self.head), None)
        rows = [row for row in self.columns(separator) if row]
        if not rows:
            return False
        names = {normalize_name(cell) for cell in rows[0]}
        if not (names.isdisjoint(MEASURE) or names.isdisjoint(VALUE)):
            return True
        if normalize_name(rows[0][0]) in SYSTEM and "+/-" in rows[0]:
            return True
        # the second of four columns of judgments means nothing; topics of scores have other numbers
        is_qrels = all(len(row) == 4 and row[1].strip() in ("0", "Q0") for row in rows)
        if is_qrels or self.widths(separator) not in ({3}, {4}):
            return False
        values = [row[-1] for row in rows if row[0].strip() != "runid"]
        is_real = any("." in value for value in values)
        has_all = any(cell.strip() == "all" for row in rows for cell in row[:-1])
        return (is_real or has_all) and all(map(is_number, values))

    @property
    def has_field_names(self) -> bool:
        """Return whether the first lines start with names of fields, which are not ids."""
        return bool(_RECORD_NAMES & self.names)

    def is_dictionary(self, first_values: str) -> bool:
        """Return whether the file is one object of ids to values that start like this.

        An object with a value of another type, or with names of fields for keys, is a record.
        """
        is_one = not any(line.lstrip().startswith("{") for line in self.lines[1:])
        starts = {value.lstrip()[:1] for value in self.values}
        is_one = is_one and self.first_value != "" and self.first_value in first_values
        return is_one and starts <= set(first_values)


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_records(path: str | Path) -> FirstRecords:
    """Return the first lines of a file, or of the rows that stand for it."""
    data = [line for _, line in islice(lines_below_metadata(path), _SAMPLE)]
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    with suppress(ValueError, RecursionError):
        decoded = OBJECT.decode(valid_json(data[0], path, None))
        keys = tuple(decoded)
        values = tuple(bytes(value)[:8].decode(errors="replace") for value in decoded.values())
    lines = tuple(line[:_LONGEST].decode(errors="replace") for line in data)
    pair = _FIRST_PAIR.match("\n".join(lines))
    # rows from memory or of a table are not a dictionary
    first = "" if pair is None or lines_in_memory(path) else pair[2]
    return FirstRecords(plain_name(path), lines, keys, first, values)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files that hold records of one kind.

    Args:
        role: What the files are to a person: queries, passages, bank, runs, qrels or responses.
        read: Yields the records of a file.
        write: Writes records to a file.
        sniff: Whether a file whose first records are not JSON objects with known fields may be of
            the format.
        name: What `--as` calls the format; a package names its format by its entry point.
        shapes: Which fields JSON objects of the format have.
        confirm: What else decides whether such objects are of the format.
        header: A pattern of the first line that decides between several formats that fit.
        file_name: The same for the name of the file.
        record: What `read` yields, by default what files of the role hold.
        exports: What `export --format` calls the format, by default its name.
        looks: What the files look like, for the documentation.
        source: Who writes them.
        lossless: Whether what is read is written in the same way, or what is not.
    """

    role: str
    read: Callable[[Path, ReadOptions], Iterable[Any]] | None = None
    write: Callable[[Path, Iterable[Any]], None] | None = None
    sniff: Callable[[FirstRecords], bool] | None = None
    name: str = ""
    shapes: tuple[Shape, ...] = ()
    confirm: Callable[[FirstRecords], bool] | None = None
    header: str = ""
    file_name: str = ""
    record: type | None = None
    exports: str = ""
    looks: str = ""
    source: str = ""
    lossless: str = ""

    @property
    def holds(self) -> type | None:
        """The type of the records."""
        return self.record or RECORDS.get(self.role)

    def fits(self, sample: FirstRecords, is_record: bool) -> bool:
        """Return whether a file with these first records may be of the format.

        `is_record` says that the first is an object with fields that some format knows.
        """
        if any(one.fit(frozenset(sample.keys)) for one in self.shapes if sample.keys):
            return self.confirm is None or self.confirm(sample)
        return self.sniff is not None and not is_record and self.sniff(sample)


# ---- registry ------------------------------------------------------------------------------------


ROLES = ("queries", "passages", "bank", "runs", "qrels", "responses")
"""Roles that a person may give a file, in the order of the options."""


@cache
def built_in_formats() -> dict[str, Format]:
    """Return the formats of exampp by name: every `Format` in a module of this package."""
    package = __package__ or ""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    declared = (vars(import_module(f"{package}.{one.name}")).values() for one in modules)
    found = [one for values in declared for one in values if isinstance(one, Format)]
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


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
        raise InputError(f"{declared!r} is no exampp.Format", hint="Name one in the entry point")
    if declared.role not in RECORDS:
        raise InputError(f"it holds {declared.role!r}", hint=f"Say one of {', '.join(RECORDS)}")
    if declared.read is None and declared.write is None:
        raise InputError("it neither reads nor writes", hint="Give it read, or write, or both")
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
