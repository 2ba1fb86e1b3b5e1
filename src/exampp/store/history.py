"""Earlier states of the bank and the decisions, rebuilt from their logs.

Edits of items and decisions are stored with their times. Rankings, passages, grades and marks of
duplicates are not: an earlier state has the current ones.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from exampp.store.checking import refuse_unsound
from exampp.store.connection import closed_on_error, connect
from exampp.store.sql import GuardedConnection, records

_EARLIER = (
    # temporary tables hide those of the file with the same name
    "CREATE TEMP TABLE decision AS SELECT * FROM main.decision WHERE at < :when",
    """
CREATE TEMP TABLE item AS
SELECT i.item, i.query, i.bank, i.subtopic, i.item_id, i.kind,
coalesce(e.version, i.version) AS version, coalesce(e.weight, i.weight) AS weight,
coalesce(e.answers, i.answers) AS answers,
coalesce(e.active, i.active AND i.item NOT IN (SELECT item FROM main.item_edit)) AS active,
i.extra, coalesce(k.answer_key, i.answer_key) AS answer_key
FROM main.item i LEFT JOIN main.item_edit e ON e.edit =
(SELECT max(edit) FROM main.item_edit WHERE item = i.item AND at < :when)
LEFT JOIN main.answer_key k ON k.answers = e.answers
""",
    "CREATE INDEX temp.item_of_query ON item (query)",
    "CREATE INDEX temp.item_of_bank ON item (bank, kind)",
    "CREATE INDEX temp.decision_on ON decision (item_version, passage_version)",
)
_DAYS = """
SELECT day, sum(edits), sum(decisions) FROM (
    SELECT substr(at, 1, 10) AS day, 1 AS edits, 0 AS decisions FROM item_edit
    UNION ALL SELECT substr(at, 1, 10), 0, 1 FROM decision
) WHERE day > (SELECT substr(min(at), 1, 10) FROM item_edit)
GROUP BY day ORDER BY day DESC LIMIT ?
"""


class ChangeDay(NamedTuple):
    """A day (UTC) with its numbers of edits of items and of decisions."""

    day: str
    edits: int
    decisions: int


def change_days(connection: sqlite3.Connection, most: int = 50) -> list[ChangeDay]:
    """Return the last days on which the bank or the decisions changed, newest first.

    The first day is left out: there was no bank before it.
    """
    return records(ChangeDay, connection, _DAYS, (most,))


def connect_before(path: Path, when: str) -> GuardedConnection:
    """Open a collection with the bank and the decisions as they were before a time.

    `when` is a time in UTC as it is stored, or the start of one. The file is not changed.
    """
    connection = connect(path)
    with closed_on_error(connection):
        refuse_unsound(connection)
        for statement in _EARLIER:
            connection.execute(statement, {"when": when})
    return connection
