"""Explain how files are read: what was recognised, the first record, the unused fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.format import FORMATS, ReadOptions, read_records
from exampp.formats.lines import Skipped, lines_in_memory, reading_from_memory
from exampp.formats.read_warnings import ReadWarnings, collect_warnings, is_empty
from exampp.inputs.files import Columns, GivenFile, Renaming, given_files, read_tables
from exampp.inputs.importing import file_kinds
from exampp.records.wording import counted, cut_text
from exampp.results.result import Result, Table

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class FileExplanation:
    """The kind, fields and first record of one file.

    Attributes:
        file: The file.
        kind: The format or preset that reads it; empty if it cannot be read.
        place: The place of the records in the objects of the file.
        fields: The number of records by (field, path).
        first: The first record as (part, field, value), shortened.
        unread: The number of records with a field that is not read.
        problems: Why the file, or records of it, cannot be read.
    """

    file: str
    kind: str = ""
    place: str = ""
    fields: Mapping[tuple[str, str], int] = field(default_factory=dict)
    first: Sequence[tuple[str, str, str]] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Result):
    """Explanations of files; nothing is imported."""

    files: tuple[FileExplanation, ...]

    def tables(self) -> Mapping[str, Table]:
        """Return the files, the fields that are read, and the first record of each file."""
        known = sum(bool(one.kind) for one in self.files)
        rows = [
            (Path(one.file).name, one.kind or "unknown", one.place, _unread(one))
            for one in self.files
        ]
        fields = [
            (Path(one.file).name, name, path, count)
            for one in self.files
            for (name, path), count in one.fields.items()
        ]
        first = [(Path(one.file).name, *row) for one in self.files for row in one.first]
        problems = [problem for one in self.files for problem in one.problems]
        verdict = f"{known} of {counted(len(self.files), 'file')} recognised; nothing was imported."
        found = {
            "files": Table.of(
                ["file", "kind", "records at", "fields not read"],
                rows,
                verdict=verdict,
                notes=problems,
            ),
            "fields": Table.of(["file", "field", "read from", "records"], fields),
            "first": Table.of(["file", "first record", "field", "value"], first),
        }
        return {name: table for name, table in found.items() if table.rows}


def _unread(one: FileExplanation) -> str:
    return ", ".join(f"{name} ({count})" for name, count in one.unread.items())


def explain_files(
    *files: str | Path,
    kind: str | None = None,
    queries: Sequence[str | Path] = (),
    passages: Sequence[str | Path] = (),
    banks: Sequence[str | Path] = (),
    runs: Sequence[str | Path] = (),
    qrels: Sequence[str | Path] = (),
    responses: Sequence[str | Path] = (),
    system: str | None = None,
    columns: Columns | None = None,
) -> Explanation:
    """Explain how files would be imported, without a collection.

    Args:
        files: Files whose kind is detected.
        kind: The kind of `files`, or a preset (`PRESET.toml`).
        queries: Files of queries; `passages`, `banks`, `runs`, `qrels`, `responses` likewise.
        system: The name of the system.
        columns: The column of each name, as in `Collection.import_files`.
    """
    given = given_files(files, kind, (queries, passages, banks, runs, qrels, responses))
    if not given:
        raise InputError("no file is given", hint="Name the files to explain")
    return Explanation(tuple(_explain(one, system, columns or {}) for one in given))


def _explain(source: GivenFile, system: str | None, columns: Columns) -> FileExplanation:
    skipped = Skipped()
    first: list[tuple[str, str, str]] = []
    kinds: list[str] = []
    problems: list[str] = []
    with collect_warnings() as warnings:
        try:
            split, rows = read_tables([source], system, skipped, Renaming(columns))
            with reading_from_memory(rows):
                for one in file_kinds(split, system=system is not None):
                    kinds.append(one.kind)
                    first += _first(one.path, one.kind, system)
        except InputError as error:
            problems.append(str(error.at(source.path)))
    problems += map(str, skipped.first)
    name = str(source.path)
    kind = _kind(name, kinds, warnings)
    return FileExplanation(
        name,
        "" if problems and not kinds else kind,
        warnings.places.get(name, ""),
        dict(warnings.fields.get(name, {})),
        first,
        {name: count for fields in warnings.unread.values() for name, count in fields.items()},
        problems,
    )


def _kind(name: str, kinds: Sequence[str], warnings: ReadWarnings) -> str:
    parts = ", ".join(dict.fromkeys(kinds))
    preset = warnings.presets.get(name)
    return parts if preset is None else f"{preset} ({parts})"


def _first(path: Path, kind: str, system: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of the first record of a file, or of a part of it."""
    lines = lines_in_memory(path)
    form = FORMATS.get(kind)
    record: Any = json.loads(lines[0][1]) if lines else None
    if record is None and form is not None:
        how = ReadOptions(system=system, query_of=lambda text: text)
        record = next(iter(read_records(form, path, how)), None)
    if is_dataclass(record) and not isinstance(record, type):
        record = asdict(record)
    for name, value in record.items() if isinstance(record, dict) else ():
        if not is_empty(value):
            text = (
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False, default=str)
            )
            yield kind, name, cut_text(text, _WIDTH)
