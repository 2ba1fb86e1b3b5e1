"""Attack texts, stored in a separate collection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from exampp.records import BankEntry, Item, Passage, Query
from exampp.store.bank import Edit, put_bank, states
from exampp.store.grades import IN_FORCE, StoredGrader
from exampp.store.inputs import put_passages, put_pool, put_queries, query_keys, read_queries
from exampp.store.runs import put_step, read_step
from exampp.store.sql import batches, pairs

_STEP = "battery"
_JUDGED = """
WITH member AS (
    SELECT passage FROM pool WHERE query = :query
    UNION SELECT passage FROM judgment WHERE query = :query
    UNION SELECT passage FROM ranking WHERE query = :query
)
SELECT p.passage_id, v.title, v.text,
(SELECT max(j.relevance) FROM judgment j WHERE j.query = :query AND j.passage = p.passage)
FROM member JOIN passage p USING (passage) LEFT JOIN passage_version v ON v.version = p.version
ORDER BY p.passage_id
"""


class JudgedText(NamedTuple):
    """A passage of a query: the text for graders (empty: unknown), and the judgment.

    The highest judgment counts for several subtopics.
    """

    passage_id: str
    text: str
    relevance: int | None


def read_judged_texts(
    connection: sqlite3.Connection,
) -> Iterator[tuple[Query, list[JudgedText]]]:
    """Yield every query with its passages, sorted by id."""
    keys = query_keys(connection)
    for query in sorted(read_queries(connection), key=lambda one: one.query_id):
        rows = connection.execute(_JUDGED, {"query": keys[query.query_id]})
        yield (
            query,
            [
                JudgedText(name, f"{title}\n{text}" if title else text or "", relevance)
                for name, title, text, relevance in rows
            ],
        )


def read_items_by_query(connection: sqlite3.Connection, bank: str) -> list[BankEntry]:
    """Return the active items of a bank that have a text, by query."""
    by_query: dict[str, list[Item]] = {}
    for one in states(connection, bank):
        if one.active and one.text is not None:
            item = Item(
                one.item_id,
                one.query_id,
                one.text,
                one.kind,
                one.subtopic_id,
                one.answers,
                one.weight,
            )
            by_query.setdefault(one.query_id, []).append(item)
    return [BankEntry(query_id, tuple(items)) for query_id, items in sorted(by_query.items())]


def put_battery(
    connection: sqlite3.Connection,
    queries: Iterable[Query],
    bank: str,
    entries: Iterable[BankEntry],
    texts: Iterable[tuple[str, Passage]],
    about: str,
    edit: Edit,
) -> None:
    """Add texts, as (query id, passage), to the pools of an empty collection.

    They have no rankings and no judgments. `about` describes how they were made.
    """
    put_queries(connection, queries)
    put_bank(connection, bank, entries, edit)
    keys = query_keys(connection)
    for batch in batches(texts):
        versions = put_passages(connection, (passage for _, passage in batch))
        pools: dict[str, list[tuple[int, None]]] = {}
        for query_id, passage in batch:
            pools.setdefault(query_id, []).append((versions[passage.passage_id][0], None))
        for query_id, rows in pools.items():
            put_pool(connection, keys[query_id], rows)
    put_step(connection, _STEP, about, edit.at)


def about_battery(connection: sqlite3.Connection) -> str | None:
    """Return how the attacks were made; None for other collections."""
    return read_step(connection, _STEP)


def count_unread_replies(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str
) -> Mapping[str, int]:
    """Count the tried cells without a grade, by passage."""
    # this join order prevents a scan of all grades for every passage
    return pairs(
        connection,
        "SELECT p.passage_id, count(*) FROM grade g "
        "CROSS JOIN item_version w ON w.version = g.item_version "
        "CROSS JOIN item i ON i.item = w.item AND i.version = w.version AND i.active "
        "CROSS JOIN passage_version v ON v.version = g.passage_version "
        "CROSS JOIN passage p ON p.passage = v.passage AND p.version = v.version "
        "JOIN bank b ON b.bank = i.bank AND b.name = ? "
        f"WHERE g.grader = ? AND g.state <> 0 AND {IN_FORCE} GROUP BY p.passage",
        (bank, grader.key),
    )
