"""Declare file formats: their records, readers, writers and detection.

Each module of this package that defines a `Format` is found automatically. Plug-ins declare the
same.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import ExamError, InputError
from exampp.formats.columns import names_of
from exampp.formats.fields import (
    MEASURE,
    SYSTEM,
    VALUE,
    bank_separator,
    brief,
    column_names,
    is_qrels_header,
    near,
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
from exampp.plugins import LazyMapping, Registry, describe_error
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
"""Default record type of each role."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of readers; each reader uses those that concern it.

    Attributes:
        on_error: Called with the error of each bad record.
        check: May reject a record by raising InputError.
        system: System of records that name none, or of all records (`is_named`).
        query_of: Finds the id of a query by its text.
        scale: Rating scale of graders with an unknown prompt.
        on_cell: Called for each rating that cannot be read.
        by_run: The runs of banks name them.
    """

    on_error: OnError = raise_error
    check: Callable[[Any], None] = accept
    system: str | None = None
    is_named: bool = False
    query_of: Callable[[str], str] | None = None
    scale: RatingScale | None = None
    on_cell: OnError = accept
    by_run: bool = False

    @property
    def only_system(self) -> str | None:
        """The system of all records, regardless of their own names."""
        return self.system if self.is_named else None


class DataSet(NamedTuple):
    """Record of a data set that is read as a whole."""

    queries: Sequence[Query]
    judgments: Iterable[Judgment]


class Shape(NamedTuple):
    """Condition on the fields of a JSON object.

    The object has a field of every set of words and none of `without`, has at most `most` fields,
    and fits none of the shapes in `unless`.
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
_SPREAD = 100
"""Lines of an object that spans several."""
_RECORD = 20
"""Fields of a record at most."""
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
        *chain(*map(names_of, ("question", "answer", "contexts", "reference"))),
    )
)
"""Field names of records and summaries; such names are not ids of queries or systems."""


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """The first lines of a file or its rows; `keys` are those of the first object.

    `start` has more of the lines if an object spans them.
    """

    name: str
    lines: tuple[str, ...]
    keys: tuple[str, ...] = ()
    first_value: str = ""
    values: tuple[str, ...] = ()
    start: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The normalized names at the start of the lines."""
        matched = (match[1] for line in self.lines for match in [_KEY.match(line)] if match)
        return frozenset(map(normalize_name, (*self.keys, *matched)))

    @property
    def is_json(self) -> bool:
        """Return whether the first line starts like JSON."""
        return self.head.lstrip().startswith(("{", "["))

    @property
    def header(self) -> tuple[str, ...]:
        """The column names, if the first line has them."""
        separator = "\t" if "\t" in self.head else None
        return () if self.is_json else column_names(self.head.split(separator))

    @property
    def found(self) -> str:
        """Description of the fields, columns or first line, for messages."""
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

    def columns(self, separator: str | None) -> list[list[str]]:
        """Return the columns of each line."""
        return [line.split(separator) for line in self.lines]

    def widths(self, separator: str | None) -> set[int]:
        """Return the numbers of columns."""
        return {len(columns) for columns in self.columns(separator)}

    def has_words(self, width: int) -> bool:
        """Return whether all lines have this number of words and no tab-separated text."""
        if self.is_json or self.widths("\t") & {2, 3}:
            return False
        return self.widths(None) == {width}

    def has_numbers(self, *places: int) -> bool:
        """Return whether every line has numbers at these positions."""
        return all(is_number(row[place]) for row in self.columns(None) for place in places)

    @property
    def is_bank_table(self) -> bool:
        """Return whether the file is a table with a bank header."""
        return bank_separator(self.head) is not None

    def has_tabs(self, widths: set[int]) -> bool:
        """Return whether the lines have this many tab-separated columns and fit no other table."""
        return (
            not self.is_json
            and not self.is_bank_table
            and self.widths("\t") <= widths
            and not is_qrels_header(self.header)
            and not self.has_scores
        )

    @property
    def has_whole_numbers_third(self) -> bool:
        """Return whether there are three columns as in MS MARCO files."""
        rows = self.columns("\t")
        return self.has_tabs({3}) and all(row[2].strip().lstrip("-").isdigit() for row in rows)

    @property
    def has_scores(self) -> bool:
        """Return whether the file is a table of scores written by another program."""
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
        # the second column of qrels has no meaning; the topics of scores vary
        is_qrels = all(len(row) == 4 and row[1].strip() in ("0", "Q0") for row in rows)
        if is_qrels or self.widths(separator) not in ({3}, {4}):
            return False
        values = [row[-1] for row in rows if row[0].strip() != "runid"]
        is_real = any("." in value for value in values)
        has_all = any(cell.strip() == "all" for row in rows for cell in row[:-1])
        return (is_real or has_all) and all(map(is_number, values))

    @property
    def has_field_names(self) -> bool:
        """Return whether the first lines start with field names instead of ids."""
        return bool(_RECORD_NAMES & self.names)

    @property
    def has_misspelt_names(self) -> bool:
        """Return whether half of the keys of a small object misspell field names.

        The only key of a text, such as `q-text`, may have such a name as one of its words.
        """
        words = {*normalize_name(self.keys[0]).split("_")} if len(self.keys) == 1 else {*""}
        if self.first_value == '"' and words & _RECORD_NAMES:
            return False
        misspelt = sum(bool(near(one, _RECORD_NAMES)) for one in self.keys)
        return len(self.keys) <= _RECORD and 2 * misspelt >= max(1, len(self.keys))

    @property
    def has_spaces(self) -> bool:
        """Return whether the first keys are texts instead of ids."""
        return any(" " in one.strip() for one in self.keys[:_RECORD])

    def is_dictionary(self, first_values: str) -> bool:
        """Return whether the file is one object from ids to values that start like this.

        An object with values of another type, or with field names as keys, is a record.
        """
        is_one = not any(line.lstrip().startswith("{") for line in self.lines[1:])
        starts = {value.lstrip()[:1] for value in self.values}
        is_one = is_one and self.first_value != "" and self.first_value in first_values
        return is_one and starts <= set(first_values) and not self.has_misspelt_names


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_records(path: str | Path) -> FirstRecords:
    """Return the first lines of a file, or its first rows."""
    data = [line for _, line in islice(lines_below_metadata(path), _SAMPLE)]
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    with suppress(ValueError, RecursionError):
        decoded = OBJECT.decode(valid_json(data[0], path, None))
        keys = tuple(decoded)
        values = tuple(bytes(value)[:8].decode(errors="replace") for value in decoded.values())
    lines = tuple(line[:_LONGEST].decode(errors="replace") for line in data)
    pair = _FIRST_PAIR.match("\n".join(lines))
    # rows from memory or from a table are never a dictionary
    first = "" if pair is None or lines_in_memory(path) else pair[2]
    is_spread = not keys and lines[0].lstrip().startswith("{")
    more = islice(lines_below_metadata(path), _SPREAD) if is_spread else ()
    start = b"\n".join(line for _, line in more).decode(errors="replace") or "\n".join(lines)
    return FirstRecords(plain_name(path), lines, keys, first, values, start[:_START])


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files that have records of one type.

    Args:
        role: Role of the files: queries, passages, bank, runs, qrels or responses.
        read: Yields the records of a file.
        write: Writes records to a file.
        sniff: Whether a file may have this format if its first records are not JSON objects with
            known fields.
        sniffs_records: Whether `sniff` also tests objects with known fields.
        name: Name for `--as`; plug-ins are named by their entry point.
        shapes: Fields of JSON objects in this format.
        confirm: Additional check of such objects.
        header: Pattern of the first line that decides between several matching formats.
        file_name: Pattern of the file name, used in the same way.
        record: Type of the records that `read` yields; by default that of the role.
        exports: Name for `export --format`; by default `name`.
        looks: Description of the layout, for the documentation.
        source: Programs that write the format.
        lossless: Whether writing restores what was read, or what differs.
    """

    role: str
    read: Callable[[Path, ReadOptions], Iterable[Any]] | None = None
    write: Callable[[Path, Iterable[Any]], None] | None = None
    sniff: Callable[[FirstRecords], bool] | None = None
    sniffs_records: bool = False
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
        """Return whether a file with these first records may have this format.

        `is_record` is true if the first record is an object with fields known to some format.
        """
        if any(one.fit(frozenset(sample.keys)) for one in self.shapes if sample.keys):
            return self.confirm is None or self.confirm(sample)
        if self.sniff is None or (is_record and not self.sniffs_records):
            return False
        return self.sniff(sample)


# ---- registry ------------------------------------------------------------------------------------


ROLES = ("queries", "passages", "bank", "runs", "qrels", "responses")
"""Roles of files, in the order of the options."""


@cache
def built_in_formats() -> dict[str, Format]:
    """Return the built-in formats by name: every `Format` in a module of this package."""
    package = __package__ or ""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    declared = (vars(import_module(f"{package}.{one.name}")).values() for one in modules)
    formats = [one for values in declared for one in values if isinstance(one, Format)]
    return {one.name: one for one in sorted(formats, key=lambda one: one.name)}


@cache
def _taken_names() -> dict[str, Format]:
    exported = {one.exports: one for one in built_in_formats().values() if one.exports}
    return exported | built_in_formats()


def _checked(name: str, declared: object) -> Format:
    """Return the declared format of a plug-in; raise InputError if it is invalid."""
    if not isinstance(declared, Format):
        raise InputError(
            f"{declared!r} is not an exampp.Format", hint="Name a Format in the entry point"
        )
    if declared.role not in RECORDS:
        raise InputError(f"unknown role {declared.role!r}", hint=f"Use one of {', '.join(RECORDS)}")
    if declared.read is None and declared.write is None:
        raise InputError("the format has neither read nor write", hint="Add read, write, or both")
    return replace(declared, name=name)


FORMATS: Registry[Format] = Registry(
    "exampp.formats", "format", LazyMapping(_taken_names), _checked
)
"""All formats by name; names of built-in formats are reserved."""


def role_of_format(name: str) -> str:
    """Return the role of a format; empty for none."""
    form = FORMATS.get(name)
    return form.role if form else ""


def of_packages() -> list[str]:
    """Return the names of all plug-in formats, including unusable ones."""
    return [name for name in FORMATS.names() if name not in FORMATS.built_in]


def read_records(form: Format, path: Path, how: ReadOptions) -> Iterator[Any]:
    """Yield the records of a file in file order; records of plug-ins are checked.

    Raises:
        InputError: The format has no reader, the reader fails, or it yields another type.
    """
    if form.read is None:
        raise InputError(f"{form.name} files cannot be imported", file=path)
    if form.name in FORMATS.built_in:
        yield from form.read(path, how)
        return
    number = 0
    record_type = RECORDS[form.role]
    try:
        for number, record in enumerate(form.read(path, how), 1):
            if not isinstance(record, record_type):
                raise InputError(
                    f"record {number} of the format {form.name!r} is a {type(record).__name__}, "
                    f"not an exampp.records.{record_type.__name__}"
                )
            _check_texts(record, number)
            how.check(record)
            yield record
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        # a plug-in's reader may raise anything
        raise InputError(
            f"the format {form.name!r} failed after record {number}: {describe_error(error)}",
            file=path,
        ) from error


def _check_texts(record: Any, number: int) -> None:
    for one in fields(record):
        value = getattr(record, one.name)
        empty = one.name.endswith("_id") and value == ""
        if empty or (isinstance(value, str) and sanitize(value)[1]):
            what = "is empty" if empty else "has invalid text"
            raise InputError(f"record {number} {what}", field=one.name)


def write_records(form: Format, path: Path, records: Iterable[Any]) -> None:
    """Write records to a file; raise InputError if the format has no writer or it fails."""
    if form.write is None:
        raise InputError(f"{form.name!r} files cannot be exported")
    try:
        form.write(path, records)
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        if form.name in FORMATS.built_in:
            raise
        # a plug-in's writer may raise anything
        raise InputError(
            f"the format {form.name!r} failed to write: {describe_error(error)}"
        ) from error
