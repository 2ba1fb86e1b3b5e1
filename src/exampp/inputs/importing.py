"""Import files into a collection: detected, read, checked, all together or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.format import FORMATS, of_packages, read_records
from exampp.formats.lines import accept, reading_from_memory
from exampp.formats.read_warnings import collect_warnings
from exampp.formats.several_banks import runs_name_banks
from exampp.inputs.corpus import look_up
from exampp.inputs.files import Columns, GivenFile, Known, Renaming, read_tables, tell_all
from exampp.inputs.loading import LOADERS, Importer, Loader
from exampp.records import BankEntry
from exampp.results.result import Result, Table, render
from exampp.sanitize import Replacements, count_replacements
from exampp.store.bank import put_query_items, retire_unmentioned
from exampp.store.connection import transaction
from exampp.store.import_diff import Differences, ImportLog, Protected
from exampp.store.inputs import (
    apply_rankings,
    begin_import,
    counts,
    end_import,
    import_cache,
    next_file,
)
from exampp.store.pages import count_pages, write_pages

UNKNOWN_PASSAGES = ("error", "keep")
"""Treatment of passages in runs without a text in the collection."""
_LISTED = 5
_TOLD = ("added", "changed", "removed", "unchanged")
_FINDING = ("system", "finding", "count", "which")
_NO_FINDINGS = Table((), ())


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One imported file: its kind, and the number of its records.

    `by_name`: its content fits several kinds, and its name decided.
    """

    file: str
    kind: str
    records: int
    by_name: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ImportReport(Result):
    """The result of an import: its files, and the collection's counts before and after.

    Attributes:
        differences: Changes of every kind of record.
        changes: Number of rows added, changed or removed; in a `dry_run`, those of a real import.
        retired: Items of the bank that are missing in its new file.
        impact: Effect of a `dry_run` on labels and scores, for a bank with grades.
        missing: Passages that the corpus does not have.
        findings: Problems of the runs: a table of system, finding, count and which.
        replaced: Number of invalid characters replaced.
        remarks: Warnings on the files, such as misspelled keys and unused fields.
        unread: By file and field, the number of records whose field is dropped.
        stored: By file and field, the number of records whose field is stored and exported, but not
            used.
        bad_cells: Number of unreadable ratings in graded files, which are stored as unparsed.
        bad_cells_first: The first of them.
    """

    files: tuple[ImportedFile, ...]
    before: Mapping[str, int]
    after: Mapping[str, int]
    changes: int
    retired: int = 0
    skipped: int = 0
    skipped_first: tuple[InputError, ...] = ()
    missing: tuple[str, ...] = ()
    findings: Table = _NO_FINDINGS
    differences: tuple[Differences, ...] = ()
    dry_run: bool = False
    replaced: Replacements = field(default_factory=Replacements)
    bad_cells: int = 0
    bad_cells_first: tuple[InputError, ...] = ()
    impact: Mapping[str, Table] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unread: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stored: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def tables(self) -> Mapping[str, Table]:
        """Return the files, the changes by kind of record, and the problems of the systems."""
        files = [(one.file, one.kind, one.records) for one in self.files]
        rows = [
            (one.things, one.now, *(getattr(one, what) for what in _TOLD))
            for one in self.differences
        ]
        notes = ["Dry run: nothing was imported."] if self.dry_run else []
        named_tables = {
            "files": Table.of(["file", "kind", "records"], files, notes=self.remarks),
            "changes": Table.of(["thing", "now", *_TOLD], rows, notes=notes),
        }
        return {**named_tables, "findings": self.findings} if self.findings.rows else named_tables

    def to_json(self) -> str:
        """Return all fields, with examples."""
        values = {
            "dry_run": self.dry_run,
            "files": [asdict(file) for file in self.files],
            "changes": {
                one.things: {
                    "before": one.now - one.added + one.removed,
                    "after": one.now,
                    **{what: getattr(one, what) for what in _TOLD},
                    "examples": [asdict(example) for example in one.examples],
                }
                for one in self.differences
            },
            "retired": self.retired,
            "missing": list(self.missing),
            "findings": [dict(zip(_FINDING, row, strict=True)) for row in self.findings.rows],
            "replaced": asdict(self.replaced),
            "remarks": list(self.remarks),
            "unread": self.unread,
            "stored": self.stored,
            "skipped": self.skipped,
            "skipped_first": [str(error) for error in self.skipped_first],
            "bad_cells": self.bad_cells,
            "bad_cells_first": [str(error) for error in self.bad_cells_first],
            "impact": {name: json.loads(render(t, "json")) for name, t in self.impact.items()},
        }
        return json.dumps(values, ensure_ascii=False, indent=1) + "\n"

    def with_skipped(self, count: int, first: Sequence[InputError]) -> ImportReport:
        """Return the report with the number of skipped bad lines, and the first of them."""
        return replace(self, skipped=count, skipped_first=tuple(first))


def overwrite_error(changes: Sequence[Protected]) -> InputError:
    """Return the error for an import that would change protected records, with examples of each."""
    groups: dict[tuple[str, str], list[Protected]] = {}
    for one in changes:
        groups.setdefault((one.difference.thing, one.why), []).append(one)
    lines = []
    for (thing, why), some in groups.items():
        lines.append(f"\n  {thing}, {why} ({len(some)}):")
        lines += [f"\n    {one.difference}" for one in some[:_LISTED]]
        lines += [f"\n    and {len(some) - _LISTED} more"] if len(some) > _LISTED else []
    return InputError(
        "the files would overwrite graded or manually edited content; nothing was "
        "imported. To allow it: --update (update = true in Python and in a configuration)"
        + "".join(lines)
    )


def import_files(
    importer: Importer, sources: Sequence[GivenFile], corpus: str | None = None
) -> ImportReport:
    """Import files in one transaction; after an error the collection is unchanged.

    Files are imported in the order of their dependencies. Then the corpus is searched for the texts
    of passages in runs and judgments.

    Raises:
        InputError: A file is malformed or of unknown kind, or graded content or manually edited
            items would change without `update`.
    """
    with collect_warnings() as warnings:
        renaming = Renaming(importer.columns)
        sources, rows = read_tables(sources, importer.system, importer.on_error, renaming)
        with reading_from_memory(rows):
            report = _import_files(importer, sources, corpus)
    return replace(
        report, remarks=warnings.sentences(), unread=warnings.unread, stored=warnings.stored
    )


def _import_files(
    importer: Importer, sources: Sequence[GivenFile], corpus: str | None
) -> ImportReport:
    kinds = file_kinds(sources, system=importer.system is not None)
    with_kinds = sorted(kinds, key=lambda file: list(LOADERS).index(_record_of(file.kind)))
    if importer.scale is not None and all(file.kind != "workbench" for file in with_kinds):
        raise InputError("only graded passages have a scale", hint="Remove --scale")
    importer.log.collects = corpus is not None
    banks = [file.path for file in with_kinds if _record_of(file.kind) is BankEntry]
    importer = replace(importer, by_run=len(banks) > 1 and runs_name_banks(banks))
    before = counts(importer.connection)
    try:
        with (
            importer.connection,
            transaction(importer.connection),
            import_cache(importer.connection),
            count_replacements() as replacements,
        ):
            report = replace(
                _import_all(importer, with_kinds, corpus, before), replaced=replacements
            )
            if importer.dry_run:
                raise _Undone
    except _Undone:
        pass
    return report


class _Undone(Exception):
    """Ends the transaction of a dry run."""


def _import_all(
    importer: Importer,
    with_kinds: Iterable[Known],
    corpus: str | None,
    before: Mapping[str, int],
) -> ImportReport:
    connection = importer.connection
    files = []
    changed = ImportLog(connection)
    begin_import(connection)
    changes, pages = connection.total_changes, count_pages(connection)
    for path, kind, by_name, system in with_kinds:
        next_file(connection)
        try:
            records = _load(importer, path, kind, system)
        except InputError as error:
            raise error.at(path) from None
        files.append(ImportedFile(str(path), kind, records, by_name))
    changed.note_rankings()
    staged = apply_rankings(connection)
    put_query_items(connection, importer.edit)
    missing: list[str] = []
    if corpus is not None:
        missing = look_up(connection, corpus, importer.log.passages, importer.on_error)
    retired, mentioned = retire_unmentioned(connection, importer.edit)
    # the triggers that drop pages count as changes
    changes = connection.total_changes - changes - (pages - count_pages(connection))
    noted = changed.read()
    if noted.protected and not importer.update:
        raise overwrite_error(noted.protected)
    importer.settle(connection)
    if not importer.dry_run:
        write_pages(connection)
    return ImportReport(
        tuple(files),
        before,
        counts(connection),
        changes - staged - mentioned - noted.scratch - end_import(connection),
        retired,
        missing=tuple(missing),
        findings=importer.log.findings(connection, missing),
        differences=noted.differences,
        dry_run=importer.dry_run,
        bad_cells=importer.bad_cells.count,
        bad_cells_first=tuple(importer.bad_cells.first),
    )


def _load(importer: Importer, path: Path, kind: str, system: str | None) -> int:
    """Load a file; `system`, if given, overrides the systems named in it."""
    form = FORMATS.get(kind)
    if system is not None:
        importer = replace(importer, system=system, is_named=True)
    if form is None:
        raise InputError(f"{kind} files cannot be imported")
    loader = Loader(importer, path, form.holds)
    return loader.load(read_records(form, path, loader.how()))


def _record_of(kind: str) -> type:
    form = FORMATS.get(kind)
    return form.holds if form and form.holds else object


def detected_kinds(
    files: Sequence[GivenFile], system: str | None = None, columns: Columns | None = None
) -> Iterator[Known]:
    """Yield the kinds of files that are not imported yet; faults of records do not matter."""
    files, rows = read_tables(files, system, accept, Renaming(columns or {}))
    with reading_from_memory(rows):
        yield from file_kinds(files, system=system is not None)


def file_kinds(files: Iterable[GivenFile], *, system: bool) -> Iterator[Known]:
    """Yield the kind of each file, as given or detected; see `files.tell_all`.

    Raises:
        InputError: A file cannot be imported.
    """
    for file in tell_all(files, system=system):
        form = FORMATS.get(file.kind)
        if form is None or form.read is None or form.holds not in LOADERS:
            known = (one.name for one in FORMATS.built_in.values() if one.read)
            raise InputError(
                f"{file.kind} files cannot be imported",
                file=file.path,
                hint="To compare with an official leaderboard: exampp evaluate --official. A "
                "run has the columns query Q0 passage rank score system"
                if file.kind == "leaderboard"
                else f"Available kinds: {', '.join((*dict.fromkeys(known), *of_packages()))}",
            )
        yield file
