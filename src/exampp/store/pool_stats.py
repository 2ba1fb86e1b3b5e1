"""How large the judgment pool is, who contributed to it, and what grading it would take."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

_RANKED = """
WITH ranked AS (
    SELECT r.query, r.subtopic, r.system, r.passage, row_number() OVER (
        PARTITION BY r.query, r.subtopic, r.system ORDER BY r.rank, r.score DESC, p.passage_id
    ) AS position
    FROM ranking r JOIN passage p USING (passage)
),
top AS (SELECT DISTINCT query, system, passage FROM ranked WHERE position <= :depth),
ranked_pool AS (
    SELECT query, passage FROM pool
    UNION SELECT query, passage FROM top
    UNION SELECT query, passage FROM judgment WHERE NOT EXISTS (SELECT 1 FROM ranking)
),
member AS (SELECT query, passage FROM ranked_pool UNION SELECT query, passage FROM judgment)
"""


class SystemStats(NamedTuple):
    """One system: queries it ranked for, its passages in the pool, how deep its rankings go.

    `shared` counts those of its pooled passages that another system brought too, `textless` those
    without a text; the depths are those of its whole rankings.
    """

    system: str
    queries: int
    pooled: int
    shared: int
    textless: int
    shallowest: int
    mean_depth: float
    deepest: int


class BankStats(NamedTuple):
    """The items of one kind of a bank with a text and without one, and the cells of the former.

    `cells` are those of the ranked pool, `judged_only` those of passages that are judged alone.
    """

    bank: str
    kind: str
    items: int
    textless: int
    cells: int
    judged_only: int


class PoolStats(NamedTuple):
    """The pool: queries, (query, passage) pairs, different passages, pairs without a text.

    `contributed` is how many (system, query, passage) there are: over `ranked` pairs, the overlap.
    """

    queries: int
    pairs: int
    passages: int
    textless: int
    ranked: int
    contributed: int


def pool_stats(connection: sqlite3.Connection, depth: int) -> PoolStats:
    """The size of the pool that the first `depth` passages of every ranking make."""
    row = connection.execute(
        f"{_RANKED} SELECT (SELECT count(*) FROM query), count(*), count(DISTINCT m.passage), "
        "count(*) - count(p.version), "
        "(SELECT count(*) FROM (SELECT DISTINCT query, passage FROM top)), "
        "(SELECT count(*) FROM top) FROM member m JOIN passage p USING (passage)",
        {"depth": depth},
    ).fetchone()
    return PoolStats(*row)


def system_stats(connection: sqlite3.Connection, depth: int) -> list[SystemStats]:
    """What every system contributes to the pool, sorted by name."""
    rows = connection.execute(
        f"{_RANKED}, brought AS MATERIALIZED (SELECT query, passage, count(*) AS systems FROM top "
        "GROUP BY query, passage), pooled AS (SELECT t.system, count(*) AS pooled, "
        "sum(b.systems > 1) AS shared, sum(p.version IS NULL) AS textless FROM top t "
        "JOIN brought b ON b.query = t.query AND b.passage = t.passage "
        "JOIN passage p ON p.passage = t.passage GROUP BY t.system), "
        "lengths AS (SELECT system, query, count(*) AS length FROM ranked "
        "GROUP BY system, query, subtopic) "
        "SELECT s.name, count(DISTINCT l.query), o.pooled, o.shared, o.textless, min(l.length), "
        "avg(l.length), max(l.length) FROM system s JOIN lengths l USING (system) "
        "JOIN pooled o USING (system) GROUP BY s.system ORDER BY s.name",
        {"depth": depth},
    )
    return [SystemStats(*row) for row in rows]


def bank_stats(connection: sqlite3.Connection, depth: int) -> list[BankStats]:
    """The cells that every kind of every bank makes with the pool's passages that have a text."""
    rows = connection.execute(
        f"{_RANKED}, size AS MATERIALIZED (SELECT m.query, "
        "count(p.version) FILTER (WHERE r.passage IS NOT NULL) AS ranked, "
        "count(p.version) FILTER (WHERE r.passage IS NULL) AS judged FROM member m "
        "LEFT JOIN ranked_pool r USING (query, passage) JOIN passage p USING (passage) "
        "GROUP BY m.query) SELECT b.name, i.kind, count(v.text), sum(v.text IS NULL), "
        "sum(iif(v.text IS NULL, 0, coalesce(s.ranked, 0))), "
        "sum(iif(v.text IS NULL, 0, coalesce(s.judged, 0))) FROM item i "
        "JOIN bank b USING (bank) LEFT JOIN item_version v ON v.version = i.version "
        "LEFT JOIN size s ON s.query = i.query WHERE i.active "
        "GROUP BY b.bank, i.kind ORDER BY i.kind = 'query', b.bank, i.kind",
        {"depth": depth},
    )
    return [BankStats(*row) for row in rows]
