"""All items of a bank in one list: what is known of each, graded or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from exampp.analysis.item_records import ItemStatistics
from exampp.analysis.items import ItemAnalysis, linted_items
from exampp.records.bank import BankTexts
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.report.result import Result
from exampp.report.table import Table

Key = tuple[str, str]
"""(query id, item id)."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of the list; None is undefined, as everything is before it is graded.

    `relevant`, `not_relevant` are the shares covered of passages that people judged so, `gap` their
    difference; `discrimination` is its correlation with the rest of the exam; `cells` counts its
    graded passages that a system returned among its first k; `swaps` the pairs of systems that
    stand otherwise without it; `overturned` the cells where the grader saw an answer and people
    none. `state` says what is the matter with it, and `worst` the lowest of what speaks against it,
    where that is a reason to look at it.
    """

    query_id: str
    query_text: str
    item_id: str
    text: str
    relevant: float | None = None
    not_relevant: float | None = None
    gap: float | None = None
    discrimination: float | None = None
    cells: int | None = None
    swaps: int | None = None
    lint: tuple[str, ...] = ()
    overturned: int | None = None
    state: tuple[str, ...] = ()
    worst: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ItemList(Result):
    """The items of all queries, in the order of the bank; `is_graded` where any cell is."""

    items: tuple[ListedItem, ...]
    is_graded: bool

    def tables(self) -> Mapping[str, Table]:
        """A row an item."""
        names = ["query_id", "query", "item_id", "item", "relevant", "not_relevant", "gap"]
        names += ["discrimination", "cells", "swaps", "lint", "overturned", "state"]
        rows = [
            [
                *(one.query_id, one.query_text, one.item_id, one.text),
                *(one.relevant, one.not_relevant, one.gap, one.discrimination, one.cells),
                *(one.swaps, ", ".join(one.lint), one.overturned, ", ".join(one.state)),
            ]
            for one in self.items
        ]
        return {"items": Table.of(names, rows, "Items of all queries")}


def item_list(
    texts: BankTexts, book: Gradebook | None = None, found: ItemAnalysis | None = None
) -> ItemList:
    """List the items of a bank, with what its grades say where there are some."""
    linted = linted_items(texts)
    known = {(row.query_id, row.item_id): row for row in found.items} if found else {}
    cells: dict[Key, tuple[int, int]] = {}
    if book is not None and found is not None:
        for query in book.queries:
            cells |= _cells(query, found.scores.min_rating, found.scores.k)
    items = (
        _listed(
            (item.query_id, item.item_id),
            texts.queries.get(item.query_id, ""),
            item.text,
            linted.get((item.query_id, item.item_id), ()),
            known.get((item.query_id, item.item_id)),
            cells.get((item.query_id, item.item_id)),
            texts.sealed or frozenset(),
        )
        for entry in texts.entries
        for item in entry.items
    )
    return ItemList(tuple(items), book is not None and book.is_graded)


def _listed(
    key: Key,
    query_text: str,
    text: str,
    rules: tuple[str, ...],
    row: ItemStatistics | None,
    cells: tuple[int, int] | None,
    sealed: frozenset[Key],
) -> ListedItem:
    if row is None or cells is None:
        state = ("not graded", *(("sealed",) if key in sealed else ()))
        return ListedItem(key[0], query_text, key[1], text, lint=rules, state=state)
    return ListedItem(
        query_id=key[0],
        query_text=query_text,
        item_id=key[1],
        text=text,
        relevant=row.relevant,
        not_relevant=row.not_relevant,
        gap=row.lift,
        discrimination=row.item_rest,
        cells=cells[0],
        swaps=row.swaps,
        lint=rules,
        overturned=cells[1],
        state=tuple(_states(row, key in sealed)),
        worst=row.worst if row.why else None,
    )


def _states(row: ItemStatistics, sealed: bool) -> Iterator[str]:
    yield from row.why
    if row.constant:
        yield row.constant
    if sealed:
        yield "sealed"


def _cells(query: QueryGrades, min_rating: int, k: int) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Per item its graded cells among the first k passages of systems, and how many overturned."""
    read = np.zeros(len(query.passage_ids), np.bool_)
    for ranking in query.rankings:
        read[ranking.passages[:k]] = True
    graded = (query.ratings[read] != MISSING).sum(axis=0).tolist()
    overturned = dict.fromkeys(query.item_ids, 0)
    rows = {passage_id: at for at, passage_id in enumerate(query.passage_ids)}
    columns = {item_id: at for at, item_id in enumerate(query.item_ids)}
    for cell in query.decided:
        stands = query.ratings[rows[cell.passage_id], columns[cell.item_id]]
        overturned[cell.item_id] += bool(stands < min_rating <= cell.automatic)
    for item_id, count in zip(query.item_ids, graded, strict=True):
        yield (query.query_id, item_id), (count, overturned[item_id])
