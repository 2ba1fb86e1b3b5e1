"""Reads a collection as a gradebook: one grader, one bank, arrays from then on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exampp.errors import InputError
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.store.bank import has_items_without_text
from exampp.store.grades import StoredGrader, state_counts
from exampp.store.inputs import members
from exampp.store.splits import PARTS, newest_split

_ITEMS = """
SELECT i.item_id, i.version, coalesce(f.facet_id, ''), i.weight, i.item
FROM item i JOIN bank b USING (bank) LEFT JOIN facet f ON f.facet = i.facet
WHERE i.query = ? AND b.name = ? AND i.kind = ? AND i.active ORDER BY i.item
"""


def read_gradebook(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, part: str | None = None
) -> Gradebook:
    """The grades of one grader on one bank, people's decisions standing where there are any.

    `part` leaves only the `public` or the `sealed` items of the bank. InputError if it is neither,
    or if the bank was never split.
    """
    among = _of_part(connection, bank, part)
    systems = tuple(row[0] for row in connection.execute("SELECT name FROM system ORDER BY system"))
    decisions = {
        (item, passage): rating
        for item, passage, rating in connection.execute(
            "SELECT item_version, passage_version, rating FROM decision ORDER BY decision"
        )
    }
    queries = connection.execute("SELECT query, query_id FROM query ORDER BY query").fetchall()
    pending = dict(state_counts(connection, grader.key, bank))
    pending.pop("graded", None)
    return Gradebook(
        grader=grader.identity,
        bank=bank if part is None else f"{bank}, {part} part",
        queries=tuple(
            _query_grades(connection, query, query_id, grader, bank, decisions, among)
            for query, query_id in queries
        ),
        systems=systems,
        bank_is_graded_items=has_items_without_text(connection, bank, grader.identity.kind),
        pending=pending,
    )


def _of_part(connection: sqlite3.Connection, bank: str, part: str | None) -> Callable[[int], bool]:
    """Whether the item of a key is in a part of a bank; every item is where no part is asked."""
    if part is None:
        return lambda _: True
    if part not in PARTS:
        raise InputError(f"{part!r} is no part of a bank", mend=f"Parts are {', '.join(PARTS)}")
    split = newest_split(connection, bank)
    if split is None:
        raise InputError(
            f"the bank {bank!r} has no sealed part", mend="Seal one: exampp bank split"
        )
    return lambda item: (item in split.items) == (part == "sealed")


def _query_grades(
    connection: sqlite3.Connection,
    query: int,
    query_id: str,
    grader: StoredGrader,
    bank: str,
    decisions: dict[tuple[int, int], int | None],
    among: Callable[[int], bool],
) -> QueryGrades:
    facets = connection.execute(
        "SELECT facet_id, facet FROM facet WHERE query = ? ORDER BY facet", (query,)
    ).fetchall()
    facet_index = {facet_id: number for number, (facet_id, _) in enumerate(facets, 1)}
    facet_number = {0: 0} | {key: number for number, (_, key) in enumerate(facets, 1)}
    found = connection.execute(_ITEMS, (query, bank, grader.identity.kind))
    items = [row[:4] for row in found if among(row[4])]
    passages = members(connection, query)
    column = {version: index for index, (_, version, _, _) in enumerate(items)}
    row = {p.version: index for index, p in enumerate(passages) if p.version is not None}
    place = {p.passage: index for index, p in enumerate(passages)}
    ratings = np.full((len(passages), len(items)), MISSING, np.int16)
    for item, passage, rating in _effective(connection, grader.key, column, decisions):
        if passage in row:
            ratings[row[passage], column[item]] = rating
    judgments = np.full((len(facets) + 1, len(passages)), MISSING, np.int16)
    for facet, passage, relevance in connection.execute(
        "SELECT facet, passage, relevance FROM judgment WHERE query = ?", (query,)
    ):
        judgments[facet_number[facet], place[passage]] = relevance
    return QueryGrades(
        query_id=query_id,
        facet_ids=tuple(facet_index),
        item_ids=tuple(item[0] for item in items),
        item_facets=np.array([facet_index.get(item[2], 0) for item in items], np.int32),
        weights=np.array([item[3] for item in items], np.float64),
        passage_ids=tuple(p.passage_id for p in passages),
        pool_size=len(row),
        ratings=ratings,
        judgments=judgments,
        rankings=tuple(_rankings(connection, query, facet_number, place)),
    )


def _effective(
    connection: sqlite3.Connection,
    grader: int,
    column: dict[int, int],
    decisions: dict[tuple[int, int], int | None],
) -> Iterator[tuple[int, int, int]]:
    """(item version, passage version, rating): the automatic grades, then people's over them."""
    wanted = json.dumps(list(column))
    yield from connection.execute(
        "SELECT item_version, passage_version, rating FROM grade WHERE grader = ? AND state = 0 "
        "AND item_version IN (SELECT value FROM json_each(?))",
        (grader, wanted),
    )
    for (item, passage), rating in decisions.items():
        if rating is not None and item in column:
            yield item, passage, rating


def _rankings(
    connection: sqlite3.Connection,
    query: int,
    facet_number: dict[int, int],
    place: dict[int, int],
) -> Iterator[Ranking]:
    rows = connection.execute(
        "SELECT s.name, r.facet, r.passage, r.score, r.rank FROM ranking r "
        "JOIN system s USING (system) JOIN passage p USING (passage) WHERE r.query = ? "
        "ORDER BY r.system, r.facet, r.rank, r.score DESC, p.passage_id",
        (query,),
    )
    group: list[Any] = []
    head: tuple[str, int] | None = None
    for name, facet, *entry in rows:
        if (name, facet) != head:
            if head is not None:
                yield _ranking(head, group, facet_number, place)
            head, group = (name, facet), []
        group.append(entry)
    if head is not None:
        yield _ranking(head, group, facet_number, place)


def _ranking(
    head: tuple[str, int],
    entries: list[Any],
    facet_number: dict[int, int],
    place: dict[int, int],
) -> Ranking:
    return Ranking(
        system=head[0],
        facet=facet_number[head[1]],
        passages=np.array([place[passage] for passage, _, _ in entries], np.int32),
        scores=np.array([score for _, score, _ in entries], np.float64),
        ranks=np.array([rank for _, _, rank in entries], np.int32),
    )
