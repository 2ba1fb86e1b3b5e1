"""Which cells of the exam are due: every passage of a query's pool against every item of its bank.

The pool of a query is what its file put there, what was judged, and the top `depth` passages of
every ranking (paper 000, section 5.1). A cell is due unless the grader graded it for the current
texts of both its item and its passage.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

DEPTH = 20
"""How many passages of each ranking belong to the pool unless the user says otherwise."""

_POOL = """
WITH ranked AS (
    SELECT r.passage, row_number() OVER (
        PARTITION BY r.facet, r.system ORDER BY r.rank, r.score DESC, p.passage_id) AS position
    FROM ranking r JOIN passage p USING (passage) WHERE r.query = :query
),
member AS (
    SELECT passage FROM pool WHERE query = :query
    UNION SELECT passage FROM judgment WHERE query = :query
    UNION SELECT passage FROM ranked WHERE position <= :depth
)
SELECT v.version, v.hash, v.title, v.text FROM member
JOIN passage p USING (passage) JOIN passage_version v ON v.version = p.version
ORDER BY p.passage
"""
_ITEMS = """
SELECT v.version, v.text FROM item i JOIN bank b USING (bank)
JOIN item_version v ON v.version = i.version
WHERE i.query = :query AND i.kind = :kind AND i.active AND b.name = :bank
AND v.text IS NOT NULL ORDER BY i.item
"""


class Exam(NamedTuple):
    """What is to be graded: the items of a kind of one bank, on passages down to a depth."""

    kind: str
    bank: str
    depth: int = DEPTH


Cell = tuple[int, int]
"""(item version, passage version)."""


class Due(NamedTuple):
    """One thing to ask, and every cell that its reply settles.

    Cells whose item and passage have the same texts are asked once; `twin` is a cell with these
    texts that has been graded already, so that nothing needs to be asked.
    """

    item: str
    passage: str
    cells: tuple[Cell, ...]
    twin: Cell | None = None


def due(
    connection: sqlite3.Connection, grader: int | None, exam: Exam, *, only_failed: bool = False
) -> Iterator[Due]:
    """Yield what is due for a grader, query by query, all items of a passage together.

    `only_failed` takes just the cells that were tried and have no grade.
    """
    for (query,) in connection.execute("SELECT query FROM query ORDER BY query").fetchall():
        yield from _due_of_query(connection, query, grader, exam, only_failed)


def _due_of_query(
    connection: sqlite3.Connection,
    query: int,
    grader: int | None,
    exam: Exam,
    only_failed: bool,
) -> Iterator[Due]:
    names = {"query": query, "kind": exam.kind, "bank": exam.bank, "depth": exam.depth}
    items = connection.execute(_ITEMS, names).fetchall()
    if not items:
        return
    states, graded = _known(connection, grader, [text for _, text in items])
    waiting: dict[tuple[bytes, str], list[Cell]] = {}
    texts: dict[bytes, str] = {}
    for passage_version, digest, title, text in connection.execute(_POOL, names).fetchall():
        for item_version, item_text in items:
            cell = (item_version, passage_version)
            state = states.get(cell)
            if state == 0 or (only_failed and state is None):
                continue
            texts.setdefault(digest, f"{title}\n{text}" if title else text)
            waiting.setdefault((digest, item_text), []).append(cell)
    for (digest, item_text), cells in waiting.items():
        yield Due(item_text, texts[digest], tuple(cells), graded.get((digest, item_text)))


def _known(
    connection: sqlite3.Connection, grader: int | None, item_texts: list[str]
) -> tuple[dict[Cell, int], dict[tuple[bytes, str], Cell]]:
    """The states of all cells whose items have these texts, and a graded cell by texts."""
    states: dict[Cell, int] = {}
    graded: dict[tuple[bytes, str], Cell] = {}
    rows = connection.execute(
        "SELECT g.item_version, g.passage_version, g.state, p.hash, v.text FROM item_version v "
        "JOIN grade g ON g.grader = ? AND g.item_version = v.version "
        "JOIN passage_version p ON p.version = g.passage_version "
        "WHERE v.text IN (SELECT value FROM json_each(?))",
        (grader, json.dumps(item_texts)),
    )
    for item, passage, state, digest, text in rows:
        states[item, passage] = state
        if state == 0:
            graded[digest, text] = (item, passage)
    return states, graded


def copy_grade(
    connection: sqlite3.Connection, grader: int, twin: Cell, cells: tuple[Cell, ...]
) -> None:
    """Give cells the grade that the same texts have elsewhere in the collection."""
    connection.executemany(
        "INSERT OR REPLACE INTO grade SELECT grader, ?, ?, state, rating, reply, rule, confidence, "
        "detail FROM grade WHERE grader = ? AND item_version = ? AND passage_version = ?",
        [(*cell, grader, *twin) for cell in cells],
    )
