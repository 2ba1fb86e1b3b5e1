"""Export the records of a collection as files of the field's formats."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.exports.croissant import describe_folder
from exampp.formats import data_sets, plain_bank
from exampp.formats.format import FORMATS, of_packages, write_records
from exampp.formats.output import temporary_file
from exampp.formats.passages import Retrieved
from exampp.records import BankEntry, Judgment, Passage, Query, QueryPool, RankedPassage
from exampp.records.decisions import CellDecision
from exampp.store.bank import MAIN_BANK, public_entries, read_bank
from exampp.store.connection import put_in_place
from exampp.store.decisions import read_decisions
from exampp.store.inputs import read_judgments, read_passages, read_queries, read_runs
from exampp.store.pools import read_pools

T = TypeVar("T")


RESULT_KINDS = ("every-eval-ever", "gen-ai-events", "triplets", "beir-train")
"""Exports of results, which need grades (see `table`)."""


class _Counted(Iterator[T]):
    """Count the records that pass through; a bank counts by its items."""

    def __init__(self, things: Iterable[T]) -> None:
        self.things = iter(things)
        self.count = 0

    def __next__(self) -> T:
        thing = next(self.things)
        self.count += len(thing.items) if isinstance(thing, BankEntry) else 1
        return thing


def export_records(
    connection: sqlite3.Connection,
    path: Path,
    kind: str,
    bank: str | None,
    part: str | None = None,
) -> int:
    """Write one kind of record to a file; return the number of records.

    The part `public` omits the sealed items of a bank. Data sets (`beir`, `croissant`) never
    contain them.

    Raises:
        InputError: No format writes this kind, or the part is `sealed`.
    """
    if part not in (None, "public"):
        raise InputError(
            "the sealed part is written as a bank",
            file=path,
            hint="Use the format bank and a file of JSON lines",
        )
    if kind in _DATA_SETS:
        return _write_data_set(connection, path, bank, described=kind != "beir")
    form = FORMATS.get(kind)
    if form is None or form.write is None or (form.exports or kind) != kind or not form.holds:
        known = ", ".join((*exported(), *RESULT_KINDS, *of_packages()))
        raise InputError(f"cannot export {kind!r}", hint=f"Available: {known}")
    things = _STORED[form.holds](connection, bank)
    if part is not None and form.holds is BankEntry:
        things = public_entries(connection, bank or MAIN_BANK, things)
    records = _Counted(things)
    if kind == "bank" and {".csv", ".tsv"} & set(path.suffixes):
        plain_bank.write(path, records)
    elif kind in FORMATS.built_in:
        write_records(form, path, records)
    else:
        # a plug-in writes to a temporary file that replaces the target when complete
        with temporary_file(path) as temporary:
            write_records(form, temporary, records)
            put_in_place(temporary, path)
    return records.count


def exported() -> list[str]:
    """Return the values of `export --format` for the built-in formats that are written."""
    written = (one for one in FORMATS.built_in.values() if one.write)
    return [*_DATA_SETS, *dict.fromkeys(one.exports or one.name for one in written)]


def _entries(connection: sqlite3.Connection, bank: str | None) -> list[BankEntry]:
    name = bank or MAIN_BANK
    entries = list(read_bank(connection, name))
    if not entries:
        raise InputError(f"unknown bank {name!r}", hint="Name one with --bank")
    return entries


def _retrieved(connection: sqlite3.Connection, _bank: str | None) -> Iterator[Retrieved]:
    """Yield the retrieved passages of every system and query, with the texts."""
    texts = {query.query_id: query.text for query in read_queries(connection)}
    passages = {one.passage_id: one for one in read_passages(connection)}
    for (query_id, _), lines in groupby(
        read_runs(connection), key=lambda ranked: (ranked.query_id, ranked.system)
    ):
        ranking = tuple(lines)
        known = tuple(passages[r.passage_id] for r in ranking if r.passage_id in passages)
        yield Retrieved(ranking, known, texts.get(query_id, ""))


_DATA_SETS = ("beir", "croissant")


def _write_data_set(
    connection: sqlite3.Connection, path: Path, bank: str | None, *, described: bool
) -> int:
    name = bank or MAIN_BANK
    entries = list(read_bank(connection, name))
    if bank and not entries:
        raise InputError(f"unknown bank {bank!r}")
    describe = partial(describe_folder, connection, path.name, name)
    return data_sets.write_folder(
        path,
        read_queries(connection),
        read_passages(connection),
        read_judgments(connection),
        public_entries(connection, name, entries),
        read_runs(connection),
        describe=describe if described else None,
    )


_STORED: Mapping[type, Callable[[sqlite3.Connection, str | None], Iterable[Any]]] = {
    Query: lambda connection, _: read_queries(connection),
    Passage: lambda connection, _: read_passages(connection),
    BankEntry: _entries,
    RankedPassage: lambda connection, _: read_runs(connection),
    Judgment: lambda connection, _: read_judgments(connection),
    QueryPool: lambda connection, _: read_pools(connection),
    Retrieved: _retrieved,
    CellDecision: lambda connection, _: read_decisions(connection),
}
"""Functions that read the records of each kind from a collection."""
