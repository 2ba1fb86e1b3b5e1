"""A collection as files of the field's formats."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats import (
    decisions,
    nuggetizer,
    passages,
    plain_bank,
    qrels,
    queries,
    runs,
    workbench,
)
from exampp.records import BankEntry
from exampp.store.bank import MAIN_BANK, read_bank
from exampp.store.decisions import read_decisions
from exampp.store.inputs import read_judgments, read_passages, read_queries, read_runs
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
    """Write one kind of thing to a file; returns how many records it holds."""
    return EXPORTS[kind](connection, path, bank)


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


def _nuggetizer(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
    entries = _entries(connection, bank)
    nuggetizer.write(path, entries)
    return sum(len(entry.items) for entry in entries)


def _bank(connection: sqlite3.Connection, path: Path, bank: str | None) -> int:
    entries = _entries(connection, bank)
    plain = {".csv", ".tsv", ".yaml", ".yml"} & set(path.suffixes)
    (plain_bank if plain else workbench_bank).write(path, entries)
    return sum(len(entry.items) for entry in entries)


EXPORTS: Mapping[str, Callable[[sqlite3.Connection, Path, str | None], int]] = {
    "workbench": _writer(read_pools, workbench.write),
    "bank": _bank,
    "nuggetizer": _nuggetizer,
    "runs": _writer(read_runs, runs.write),
    "judgments": _writer(read_judgments, qrels.write),
    "queries": _writer(read_queries, queries.write),
    "passages": _writer(read_passages, passages.write),
    "decisions": _writer(read_decisions, decisions.write),
}
"""What can be exported, and how."""
