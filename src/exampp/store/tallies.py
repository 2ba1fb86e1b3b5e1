"""What a collection holds, counted once and kept: the pool of a query, the cells of an item.

A count that the file keeps is right: a trigger of the schema drops it as soon as anything that it
counts is written (see `schema.sql`), by whatever function of whatever process. `tallied`
counts anew what is not there, and keeps it where the file can be written.

Two kinds of rows are kept. `pool_tally`, of a query: its ranked passages to a depth and those that
are only judged, as far as they have a text, those of both without a text, and its rankings.
`cell_tally`, of a text of an item and a grader: its cells by answer key,
state, rule, rating and (without a grade) reason; how many of them are of passages' current texts
and the first such, how many of these are in the pool, how many are graded (a cell that is graded
from several answer keys counts once), how many say that they were asked otherwise. The tallies of
a query's items count only together with that of its pool.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf

from exampp.errors import Unfinished
from exampp.records.readings import PromptDeviations, RuleCount
from exampp.store.cells import DEPTH, MEMBERS, GradingScope, count_pending
from exampp.store.connection import is_graded_file, transaction
from exampp.store.grades import (
    IN_FORCE,
    WITHOUT_KEY,
    most_frequent,
    prompt_deviations,
    with_examples,
)
from exampp.store.inputs import counts
from exampp.store.interning import select_integer

PATIENCE = 1.0
"""Seconds that others who write are waited for."""
TURN_SECONDS = 1.0
"""Seconds of counting after which others may write."""
TALLIES = ("pool_tally", "cell_tally")
"""The tables of what is counted."""

_UNCOUNTED = """
SELECT query FROM query WHERE query NOT IN (SELECT query FROM pool_tally WHERE depth = :depth)
UNION
SELECT i.query FROM grader r CROSS JOIN item_version v JOIN item i USING (item)
WHERE NOT EXISTS (SELECT 1 FROM cell_tally t
    WHERE t.item_version = v.version AND t.grader = r.grader)
AND EXISTS (SELECT 1 FROM grade g WHERE g.grader = r.grader AND g.item_version = v.version)
ORDER BY 1
"""
_KEPT_POOL = "SELECT 1 FROM pool_tally WHERE query = :query AND depth = :depth"
_ASKED = (
    "WITH asked AS MATERIALIZED (SELECT i.query, i.version, i.answer_key FROM item i "
    "JOIN bank b USING (bank) JOIN item_version v ON v.version = i.version WHERE i.active "
    "AND i.kind = :kind AND b.name = :bank AND v.text IS NOT NULL "
    f"AND NOT (:verifies AND {WITHOUT_KEY}))"
)
_DROP_CELLS = (
    "DELETE FROM cell_tally WHERE item_version IN "
    "(SELECT v.version FROM item i JOIN item_version v USING (item) WHERE i.query = :query)"
)
_COUNT_POOL = f"""{MEMBERS},
both_sorts AS (SELECT passage, 0 AS judged_only FROM member
    UNION ALL SELECT DISTINCT passage, 1 FROM judgment
    WHERE query = :query AND passage NOT IN (SELECT passage FROM member))
INSERT INTO pool_tally SELECT :query, :depth, count(p.version) FILTER (WHERE NOT b.judged_only),
    count(*) - count(p.version), (SELECT count(DISTINCT system) FROM ranking WHERE query = :query),
    count(p.version) FILTER (WHERE b.judged_only)
FROM both_sorts b JOIN passage p USING (passage)
"""
_POOLED = f"""{MEMBERS}
INSERT INTO pooled SELECT p.version FROM member JOIN passage p USING (passage)
WHERE p.version IS NOT NULL
"""
# a passage of the pool has no newer text: only those of other passages are looked up
_COUNT_CELLS = """
WITH uncounted AS MATERIALIZED (
    SELECT v.version, r.grader FROM item i JOIN item_version v USING (item) CROSS JOIN grader r
    WHERE i.query = :query AND NOT EXISTS (SELECT 1 FROM cell_tally t
        WHERE t.item_version = v.version AND t.grader = r.grader)
),
counted AS (
    SELECT g.item_version, g.grader, g.answer_key, g.state, g.rule, coalesce(g.rating, 0) AS rating,
    CASE WHEN g.state = 0 THEN '' ELSE coalesce(json_extract(g.detail, '$.reason'), g.rule) END
        AS reason,
    CASE WHEN g.passage_version IN temp.pooled THEN 2
        WHEN NOT EXISTS (SELECT 1 FROM passage_version w JOIN passage p USING (passage)
            WHERE w.version = g.passage_version AND w.version <> p.version) THEN 1
        ELSE 0 END AS text,
    CASE WHEN g.state <> 0 THEN 0 WHEN g.answer_key = 0 THEN 1 ELSE NOT EXISTS (
        SELECT 1 FROM grade h WHERE h.grader = g.grader AND h.item_version = g.item_version
        AND h.passage_version = g.passage_version AND h.answer_key < g.answer_key
        AND h.state = 0) END AS graded,
    g.detail IS NOT NULL AND (instr(g.detail, '"cut":true') > 0
        OR instr(g.detail, '"without":[') > 0) AS otherwise,
    count(*) AS cells, min(g.passage_version) AS first
    FROM uncounted u
    CROSS JOIN grade g ON g.grader = u.grader AND g.item_version = u.version
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)
INSERT INTO cell_tally
SELECT item_version, grader, answer_key, state, rule, rating, reason, sum(cells),
    coalesce(sum(cells) FILTER (WHERE text > 0), 0),
    min(first) FILTER (WHERE text > 0),
    coalesce(sum(cells) FILTER (WHERE text = 2), 0), sum(cells * graded), sum(cells * otherwise)
FROM counted GROUP BY 1, 2, 3, 4, 5, 6, 7
"""


@contextmanager
def with_tallies(
    connection: sqlite3.Connection, depth: int = DEPTH, *, keep: bool = True
) -> Iterator[None]:
    """The collection at one moment, with all its tallies, of pools down to a depth.

    What is not kept is counted, and with `keep` is kept but where the file cannot be written, or
    others write for longer than `PATIENCE`.
    """
    with connection:
        connection.execute("BEGIN")
        if _uncounted(connection, depth):
            connection.execute("ROLLBACK")
            if keep and not is_graded_file(connection):
                _keep(connection, depth)
            connection.execute("BEGIN")
            _complete(connection, depth)
        yield
        connection.execute("ROLLBACK")


def count_tallies(connection: sqlite3.Connection) -> int:
    """How many rows of tallies the file keeps."""
    rows = (connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in TALLIES)
    return sum(count for (count,) in rows)


def tallied_contents(connection: sqlite3.Connection) -> Mapping[str, int]:
    """What `store.inputs.counts` says."""
    found = {
        "rankings": "SELECT coalesce(sum(rankings), 0) FROM pool_tally",
        "grades": "SELECT coalesce(sum(graded), 0) FROM cell_tally",
    }
    with with_tallies(connection):
        known = {name: connection.execute(sql).fetchone()[0] for name, sql in found.items()}
        return counts(connection, known)


def tallied_rules(connection: sqlite3.Connection, grader: int, bank: str) -> tuple[RuleCount, ...]:
    """What `store.grades.rule_counts` says of a bank."""
    rows = connection.execute(
        "SELECT g.state, g.rule, CASE g.state WHEN 0 THEN g.rating END, sum(g.current), i.version, "
        "min(q.query_id || char(0) || i.item_id) "
        "FROM item i JOIN bank b USING (bank) JOIN query q USING (query) "
        f"CROSS JOIN cell_tally g ON g.item_version = i.version AND g.grader = ? AND {IN_FORCE} "
        "WHERE i.active AND b.name = ? AND g.current > 0 GROUP BY 1, 2, 3",
        (grader, bank),
    )
    cells, first = {}, {}
    for state, rule, rating, count, item, _ in rows.fetchall():
        cells[state, rule, rating] = count
        first[state, rule, rating] = item
    return with_examples(connection, grader, cells, first)


def tallied_pending(connection: sqlite3.Connection, grader: int, exam: GradingScope) -> int:
    """What `store.cells.count_due` says of a whole exam to the depth of the tallies."""
    if exam.answers_of is not None:
        return count_pending(connection, grader, exam)
    return select_integer(
        connection,
        f"{_ASKED} SELECT "
        "coalesce((SELECT sum(passages) FROM asked JOIN pool_tally USING (query)), 0) - "
        "coalesce((SELECT sum(t.pooled) FROM asked a CROSS JOIN cell_tally t "
        "ON t.item_version = a.version AND t.grader = :grader AND t.state = 0 "
        "AND t.answer_key IN (0, a.answer_key)), 0)",
        {"grader": grader, **exam._asdict()},
    )


def tallied_judged_only(
    connection: sqlite3.Connection, grader: int, exam: GradingScope
) -> tuple[int, int]:
    """How many cells of passages that are judged and not ranked have no grade; all cells there are.

    Cells are those of both pools; a grade of any other passage outside the ranked pool counts too.
    """
    if exam.answers_of is not None:
        return 0, 0
    row = connection.execute(
        f"{_ASKED}, size AS (SELECT coalesce(sum(passages), 0) AS ranked, "
        "coalesce(sum(judged_only), 0) AS judged FROM asked JOIN pool_tally USING (query)) "
        "SELECT judged - coalesce((SELECT sum(t.current - t.pooled) FROM asked a "
        "CROSS JOIN cell_tally t ON t.item_version = a.version AND t.grader = :grader "
        "AND t.state = 0 AND t.answer_key IN (0, a.answer_key)), 0), ranked + judged FROM size",
        {"grader": grader, **exam._asdict()},
    ).fetchone()
    return max(0, int(row[0])), int(row[1])


def tallied_reasons(connection: sqlite3.Connection, grader: int) -> list[tuple[str, int]]:
    """What `store.grades.failure_reasons` says."""
    return most_frequent(
        connection,
        "SELECT g.reason, g.state, sum(g.cells) AS n FROM cell_tally g "
        "JOIN item_version v ON v.version = g.item_version JOIN item i USING (item) "
        f"WHERE g.grader = :grader AND g.state <> 0 AND {IN_FORCE}",
        grader,
    )


def tallied_otherwise(connection: sqlite3.Connection, grader: int, bank: str) -> PromptDeviations:
    """What `store.grades.asked_otherwise` says of a bank: it reads only items of such cells."""
    rows = connection.execute(
        "SELECT DISTINCT i.item FROM item i JOIN bank b USING (bank) CROSS JOIN cell_tally t "
        "ON t.item_version = i.version AND t.grader = ? WHERE b.name = ? AND t.otherwise > 0",
        (grader, bank),
    ).fetchall()
    return prompt_deviations(connection, grader, bank, [item for (item,) in rows])


def _keep(connection: sqlite3.Connection, depth: int) -> None:
    """Count what is not kept, and keep it, as far as the file can be written."""
    with suppress(Unfinished):
        while _uncounted(connection, depth):
            with connection, transaction(connection, PATIENCE):
                until = time.monotonic() + TURN_SECONDS
                _count(connection, depth, until)


def _complete(connection: sqlite3.Connection, depth: int) -> None:
    """Count what is not kept for this transaction alone."""
    if not _uncounted(connection, depth):
        return
    # tables of this connection, which it sees in place of those of the file
    for table in TALLIES:
        made = "SELECT sql FROM main.sqlite_master WHERE name = ?"
        (sql,) = connection.execute(made, (table,)).fetchone()
        connection.execute(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
        connection.execute(f"INSERT INTO temp.{table} SELECT * FROM main.{table}")
    _count(connection, depth)


def _uncounted(connection: sqlite3.Connection, depth: int) -> list[int]:
    """The queries of which something is not kept."""
    return [query for (query,) in connection.execute(_UNCOUNTED, {"depth": depth}).fetchall()]


def _count(connection: sqlite3.Connection, depth: int, until: float = inf) -> None:
    """Count what is not kept, query by query, until a moment of the monotonic clock."""
    # an index of its own finds a passage in it, four times as fast as one that a query makes
    connection.execute("CREATE TEMP TABLE pooled (version INTEGER PRIMARY KEY)")
    for query in _uncounted(connection, depth):
        names = {"query": query, "depth": depth, "pool": "ranked"}
        connection.execute("DELETE FROM temp.pooled")
        connection.execute(_POOLED, names)
        if connection.execute(_KEPT_POOL, names).fetchone() is None:
            connection.execute(_DROP_CELLS, names)
            connection.execute("DELETE FROM pool_tally WHERE query = :query", names)
            connection.execute(_COUNT_POOL, names)
        connection.execute(_COUNT_CELLS, names)
        if time.monotonic() > until:
            break
    connection.execute("DROP TABLE temp.pooled")
