"""A collection as files of the field's formats."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.formats import (
    argue,
    assignments,
    candidates,
    data_set,
    decisions,
    ir_metadata,
    nuggetizer,
    passages,
    plain_bank,
    qrels,
    queries,
    questions,
    ranx,
    runs,
    trec_nuggets,
    workbench,
)
from exampp.formats import bank as workbench_bank
from exampp.formats.assignments import GRADER, Assigned
from exampp.formats.candidates import Retrieved
from exampp.formats.declared import FORMATS, declared_format, write_declared
from exampp.formats.output import temporary_file
from exampp.records import BankEntry
from exampp.store.bank import MAIN_BANK, read_bank
from exampp.store.connection import put_in_place
from exampp.store.decisions import read_decisions
from exampp.store.inputs import read_judgments, read_passages, read_queries, read_runs, source_names
from exampp.store.pools import read_pools

T = TypeVar("T")


class _Counted(Iterator[T]):
    """Counts what passes through."""

    def __init__(self, things: Iterator[T]) -> None:
        self.things = things
        self.count = 0

    def __next__(self) -> T:
        thing = next(self.things)
        self.count += 1
        return thing


def export(connection: sqlite3.Connection, path: Path, kind: str, bank: str | None) -> int:
    """Write one kind of thing to a file; returns how many records it holds.

    Raises InputError for a kind that is neither in `EXPORTS` nor a format of a package.
    """
    if kind in EXPORTS:
        return EXPORTS[kind](connection, path, bank)
    found = declared_format(kind)
    if found is None or found.write is None:
        others = [name for name in FORMATS.names() if name not in FORMATS.built_in]
        mend = f"Known: {', '.join((*EXPORTS, *others))}"
        raise InputError(f"cannot export {kind!r}", mend=mend)
    return _DECLARED[found.holds](partial(_write_declared, kind))(connection, path, bank)


def _write_declared(kind: str, path: Path, records: Iterable[Any]) -> None:
    """Write in a format of a package, to a file that takes its place when it is complete."""
    with temporary_file(path) as made:
        write_declared(kind, made, records)
        put_in_place(made, path)


def _writer(
    read: Callable[[sqlite3.Connection], Iterator[T]],
    write: Callable[[Path, Iterator[T]], None],
) -> Callable[[sqlite3.Connection, Path, str | None], int]:
    def run(connection: sqlite3.Connection, path: Path, _bank: str | None) -> int:
        counted = _Counted(read(connection))
        write(path, counted)
        return counted.count

    return run


def _entries(connection: sqlite3.Connection, bank: str | None) -> list[BankEntry]:
    name = bank or MAIN_BANK
    entries = list(read_bank(connection, name))
    if not entries:
        raise InputError(f"the collection has no bank {name!r}", mend="Name one with --bank")
    return entries


def _bank_as(
    write: Callable[[Path, list[BankEntry]], None],
) -> Callable[[sqlite3.Connection, Path, str | None], int]:
    def run(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
        entries = _entries(connection, bank)
        write(path, entries)
        return sum(len(entry.items) for entry in entries)

    return run


def _write_bank(path: Path, entries: list[BankEntry]) -> None:
    plain = {".csv", ".tsv", ".yaml", ".yml"} & set(path.suffixes)
    (plain_bank if plain else workbench_bank).write(path, entries)


def _retrieved(connection: sqlite3.Connection) -> Iterator[Retrieved]:
    """What every system retrieved for every query, with the texts."""
    texts = {query.query_id: query.text for query in read_queries(connection)}
    passages = {one.passage_id: one for one in read_passages(connection)}
    for (query_id, _), lines in groupby(
        read_runs(connection), key=lambda ranked: (ranked.query_id, ranked.system)
    ):
        ranking = tuple(lines)
        known = tuple(passages[r.passage_id] for r in ranking if r.passage_id in passages)
        yield Retrieved(ranking, known, texts.get(query_id, ""))


def _assignments(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
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
    assignments.write(path, found)
    return len(found)


def _data_set(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
    entries = list(read_bank(connection, bank or MAIN_BANK))
    if bank and not entries:
        raise InputError(f"the collection has no bank {bank!r}")
    return data_set.write(
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

BANKS: Mapping[str, Callable[[Path, list[BankEntry]], None]] = {
    "bank": _write_bank,
    "questions": questions.write,
    "nuggetizer": nuggetizer.write,
    "argue": argue.write,
    "trec-nuggets": trec_nuggets.write,
}
"""What a bank can be exported as."""

EXPORTS: Mapping[str, Callable[[sqlite3.Connection, Path, str | None], int]] = {
    "workbench": _writer(read_pools, workbench.write),
    **{kind: _bank_as(write) for kind, write in BANKS.items()},
    "assignments": _assignments,
    "runs": _writer(read_runs, runs.write),
    "ir-metadata": _runs_with_metadata,
    "ranx": _writer(read_runs, ranx.write),
    "candidates": _writer(_retrieved, candidates.write),
    "judgments": _writer(read_judgments, qrels.write),
    "queries": _writer(read_queries, queries.write),
    "passages": _writer(read_passages, passages.write),
    "decisions": _writer(read_decisions, decisions.write),
    "beir": _data_set,
}
"""What can be exported, and how."""

_DECLARED: Mapping[str, Callable[..., Callable[[sqlite3.Connection, Path, str | None], int]]] = {
    "queries": partial(_writer, read_queries),
    "passages": partial(_writer, read_passages),
    "bank": _bank_as,
    "runs": partial(_writer, read_runs),
    "qrels": partial(_writer, read_judgments),
}
"""How what a format of a package holds is exported."""
