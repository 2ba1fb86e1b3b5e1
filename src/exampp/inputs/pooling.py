"""Describe the judgment pool in tables: the share of each system, and the cells to grade."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from exampp.records.readings import describe_items_without_text, describe_judged_only
from exampp.results.result import Table
from exampp.results.view import Column
from exampp.sanitize import LARGEST, check_integer
from exampp.store.pools import BankStats, PoolStats, bank_stats, pool_stats, system_stats

_SYSTEM_COLUMNS = (
    "system",
    "queries",
    "passages",
    "shared",
    "without text",
    "min depth",
    Column("mean depth", 1),
    "max depth",
)


def pool_tables(connection: sqlite3.Connection, depth: int) -> tuple[Table, Table]:
    """Return the systems of the pool of the first `depth` passages, and the cells of each bank.

    For a system: queries, pooled passages, how many of them other systems contributed, too, how
    many have no text, and the depth of its rankings. Cells are items times passages with a text, of
    the passages that are graded by default; notes count the cells of other judged passages, and the
    items without a text.
    """
    depth = check_integer("depth", depth, 1, LARGEST)
    total = pool_stats(connection, depth)
    systems = Table.of(
        _SYSTEM_COLUMNS, system_stats(connection, depth), _caption(total, depth), _notes(total)
    )
    stats = bank_stats(connection, depth)
    banks = Table.of(
        ["bank", "kind", "items", "cells"],
        [
            ("queries" if one.kind == "query" else one.bank, one.kind, one.items, one.cells)
            for one in stats
            if one.items
        ],
        caption="Cells to grade",
        notes=[note for one in stats for note in _cell_notes(one) if note],
    )
    return systems, banks


def _cell_notes(one: BankStats) -> Iterator[str]:
    yield describe_items_without_text(one.textless, one.items + one.textless, one.kind)
    if one.items and (note := describe_judged_only(one.judged_only, one.cells + one.judged_only)):
        yield f"{'queries' if one.kind == 'query' else one.bank} ({one.kind}): {note}"


def _caption(total: PoolStats, depth: int) -> str:
    return (
        f"{total.pairs} passages of {total.queries} queries in the pool (depth {depth}, "
        f"{total.passages} distinct)"
    )


def _notes(total: PoolStats) -> list[str]:
    notes = []
    if total.ranked:
        mean = total.contributed / total.ranked
        notes.append(f"on average, {mean:.2f} systems contributed each ranked passage")
    if total.pairs > total.ranked:
        notes.append(f"{total.pairs - total.ranked} passages are pooled or judged, but not ranked")
    if total.textless:
        notes.append(f"{total.textless} passages have no text and cannot be graded")
    return notes
