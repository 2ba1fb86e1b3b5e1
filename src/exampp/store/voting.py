"""What several graders said of the same cells, and how far a vote's members were apart."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from exampp.records import State
from exampp.store.grades import IN_FORCE

_ITEMS = """
SELECT i.item, i.item_id, q.query_id, i.version, i.answer_key
FROM item i JOIN bank b USING (bank) JOIN query q USING (query)
WHERE b.name = :bank AND i.kind = :kind AND i.active
ORDER BY i.item
"""
_RATED = f"""
SELECT g.passage_version, g.answer_key, g.grader, g.state, g.rating
FROM item i
JOIN grade g ON g.item_version = i.version AND {IN_FORCE}
JOIN passage_version v ON v.version = g.passage_version
JOIN passage p ON p.passage = v.passage AND p.version = v.version
WHERE i.item = :item AND g.grader IN (SELECT value FROM json_each(:graders))
ORDER BY g.passage_version
"""
_SPREAD = f"""
SELECT count(*), total(json_extract(g.detail, '$.spread') = 0),
    total(json_extract(g.detail, '$.spread'))
FROM item i JOIN bank b USING (bank)
JOIN grade g ON g.grader = :grader AND g.item_version = i.version AND {IN_FORCE}
JOIN passage p ON p.version = g.passage_version
WHERE b.name IN (SELECT value FROM json_each(:banks)) AND i.active AND g.state = 0
"""


class RatedCell(NamedTuple):
    """A cell of today's texts with the ratings that graders gave it, by their keys.

    `answer_key` is the key that the grades were made from, 0 where none played a part.
    """

    query_id: str
    item_id: str
    item_version: int
    passage_version: int
    answer_key: int
    ratings: dict[int, int]


def rated_cells(
    connection: sqlite3.Connection, graders: Sequence[int], kind: str, bank: str
) -> Iterator[RatedCell]:
    """Every cell that one of the graders tried, item by item; grades may be written meanwhile."""
    keys = json.dumps(list(graders))
    items = connection.execute(_ITEMS, {"kind": kind, "bank": bank}).fetchall()
    for item, item_id, query_id, version, today in items:
        rows = connection.execute(_RATED, {"item": item, "graders": keys}).fetchall()
        for passage_version, some in groupby(rows, key=itemgetter(0)):
            cell = list(some)
            key = today if any(row[1] for row in cell) else 0
            ratings = {row[2]: int(row[4]) for row in cell if row[3] == State.GRADED}
            yield RatedCell(query_id, item_id, version, passage_version, key, ratings)


def spread_of(
    connection: sqlite3.Connection, grader: int, banks: Sequence[str]
) -> tuple[int, int, float]:
    """(cells that a vote graded, those in which all agree, the mean range of the ratings)."""
    row = connection.execute(
        _SPREAD, {"grader": grader, "banks": json.dumps(list(banks))}
    ).fetchone()
    cells, unanimous, total = row
    return int(cells), int(unanimous), total / cells if cells else 0.0
