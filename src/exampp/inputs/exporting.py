"""A collection as files of the field's formats."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.formats import data_sets, ir_metadata, plain_bank
from exampp.formats.candidates import Retrieved
from exampp.formats.format import FORMATS, of_packages, write_records
from exampp.formats.nuggets import GRADER, Assigned
from exampp.formats.output import temporary_file
from exampp.records import BankEntry, Judgment, Passage, Query, QueryPool, RankedPassage
from exampp.records.decisions import CellDecision
from exampp.store.bank import MAIN_BANK, read_bank
from exampp.store.connection import put_in_place
from exampp.store.decisions import read_decisions
from exampp.store.inputs import read_judgments, read_passages, read_queries, read_runs, source_names
from exampp.store.pools import read_pools

T = TypeVar("T")


class _Counted(Iterator[T]):
    """Counts what passes through; a bank counts by its items."""

    def __init__(self, things: Iterable[T]) -> None:
        self.things = iter(things)
        self.count = 0

    def __next__(self) -> T:
        thing = next(self.things)
        self.count += len(thing.items) if isinstance(thing, BankEntry) else 1
        return thing


def export(connection: sqlite3.Connection, path: Path, kind: str, bank: str | None) -> int:
    """Write one kind of thing to a file; returns how many records it holds.

    Raises InputError for a kind that no format writes.
    """
    if kind in _FOLDERS:
        return _FOLDERS[kind](connection, path, bank)
    form = FORMATS.get(kind)
    if form is None or form.write is None or (form.exports or kind) != kind or not form.holds:
        known = ", ".join((*exported(), *of_packages()))
        raise InputError(f"cannot export {kind!r}", hint=f"Known: {known}")
    records = _Counted(_STORED[form.holds](connection, bank))
    if kind == "bank" and {".csv", ".tsv", ".yaml", ".yml"} & set(path.suffixes):
        plain_bank.write(path, records)
    elif kind in FORMATS.built_in:
        write_records(form, path, records)
    else:
        # a format of a package writes to a file that takes its place when it is complete
        with temporary_file(path) as made:
            write_records(form, made, records)
            put_in_place(made, path)
    return records.count


def exported() -> list[str]:
    """Return what `export --format` calls the built-in formats that are written."""
    written = (one for one in FORMATS.built_in.values() if one.write or one.name in _FOLDERS)
    return [*dict.fromkeys(one.exports or one.name for one in written)]


def _entries(connection: sqlite3.Connection, bank: str | None) -> list[BankEntry]:
    name = bank or MAIN_BANK
    entries = list(read_bank(connection, name))
    if not entries:
        raise InputError(f"the collection has no bank {name!r}", hint="Name one with --bank")
    return entries


def _retrieved(connection: sqlite3.Connection, _bank: str | None) -> Iterator[Retrieved]:
    """What every system retrieved for every query, with the texts."""
    texts = {query.query_id: query.text for query in read_queries(connection)}
    passages = {one.passage_id: one for one in read_passages(connection)}
    for (query_id, _), lines in groupby(
        read_runs(connection), key=lambda ranked: (ranked.query_id, ranked.system)
    ):
        ranking = tuple(lines)
        known = tuple(passages[r.passage_id] for r in ranking if r.passage_id in passages)
        yield Retrieved(ranking, known, texts.get(query_id, ""))


def _assignments(connection: sqlite3.Connection, bank: str | None) -> list[Assigned]:
    entries = {entry.query_id: entry for entry in _entries(connection, bank)}
    found = [
        Assigned(
            pool.query_id,
            entries[pool.query_id].query_text,
            ranked.system,
            passage.text,
            entries[pool.query_id].items,
            sheet.grades,
            (residue or {}).get("set", {}).get("response_length"),
        )
        for pool in read_pools(connection)
        if pool.query_id in entries
        for passage in pool.passages
        for sheet in passage.sheets
        if sheet.grader.key == GRADER.key
        for ranked, residue in passage.rankings
    ]
    if not found:
        raise InputError("the collection has no assignments of nuggetizer")
    return found


def _data_set(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
    entries = list(read_bank(connection, bank or MAIN_BANK))
    if bank and not entries:
        raise InputError(f"the collection has no bank {bank!r}")
    return data_sets.write_folder(
        path,
        read_queries(connection),
        read_passages(connection),
        read_judgments(connection),
        entries,
        read_runs(connection),
    )


def _runs_with_metadata(connection: sqlite3.Connection, path: Path, _bank: str | None) -> int:
    given = {role: source_names(connection, kind) for role, kind in _TEST_COLLECTION.items()}
    # of several files it is not known which a run was made for
    collection = {role: names[0] for role, names in given.items() if len(names) == 1}
    counted = _Counted(read_runs(connection))
    ir_metadata.write(path, counted, collection)
    return counted.count


_TEST_COLLECTION = {"topics": "queries", "qrels": "qrels"}
"""What metadata calls the files of a test collection -> as which kind they were imported."""

_FOLDERS: Mapping[str, Callable[[sqlite3.Connection, Path, str | None], int]] = {
    "ir-metadata": _runs_with_metadata,
    "beir": _data_set,
}
"""What is written as a folder, out of several parts of a collection."""

_STORED: Mapping[type, Callable[[sqlite3.Connection, str | None], Iterable[Any]]] = {
    Query: lambda connection, _: read_queries(connection),
    Passage: lambda connection, _: read_passages(connection),
    BankEntry: _entries,
    RankedPassage: lambda connection, _: read_runs(connection),
    Judgment: lambda connection, _: read_judgments(connection),
    QueryPool: lambda connection, _: read_pools(connection),
    Retrieved: _retrieved,
    Assigned: _assignments,
    CellDecision: lambda connection, _: read_decisions(connection),
}
"""How the records of each kind are read from a collection."""
