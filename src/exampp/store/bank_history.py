"""The states of a bank: as it is, as it was after any edit, and the edits in between.

An edit is known by its number, which counts through all banks of a collection.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exampp.outside import check_id
from exampp.records import Subtopic, subtopic_of_item
from exampp.store.bank import QUERY_BANK, Edit, append_edit, bank_key, put_version
from exampp.store.inputs import WHOLE_QUERY, put_subtopics, query_keys
from exampp.store.interning import from_json, insert, to_json

NEWEST = (1 << 63) - 1
"""Stands for the last edit, whatever its number."""


@dataclass(frozen=True, slots=True)
class ItemState:
    """An item of a bank at some time; `text` is None where only its id is known.

    `key` is its row in the store, None for an item that is yet to be added; `edit` is the number of
    the edit that made it so (0: none has), and `extra` what is said of the item besides, now as at
    any time: in these states may differ and be the same.
    """

    query_id: str
    item_id: str
    text: str | None
    kind: str = "question"
    subtopic_id: str | None = None
    answers: tuple[str, ...] = ()
    weight: float = 1.0
    active: bool = True
    key: int | None = None
    edit: int = field(default=0, compare=False)
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


class Logged(NamedTuple):
    """One edit of one item, and the item's states before (None: there was none) and after it."""

    number: int
    operation: str
    edit: Edit
    before: ItemState | None
    after: ItemState


class EditStep(NamedTuple):
    """An edit to be made: what it is called, and the item's state after it."""

    operation: str
    after: ItemState


class BankCount(NamedTuple):
    """One kind of item in one bank: how many are active and retired, and of how many queries."""

    bank: str
    kind: str
    active: int
    retired: int
    queries: int


_COLUMNS = (
    "q.query_id, i.item_id, v.text, i.kind, f.subtopic_id, e.answers, e.weight, e.active, i.item, "
    "e.edit, i.extra"
)
_JOINED = """
JOIN query q ON q.query = i.query LEFT JOIN subtopic f ON f.subtopic = i.subtopic
JOIN item_version v ON v.version = e.version
"""
_STATES = f"""
SELECT {_COLUMNS} FROM item i JOIN bank b USING (bank)
JOIN item_edit e ON e.edit = (SELECT max(edit) FROM item_edit WHERE item = i.item AND edit <= :at)
{_JOINED} WHERE b.name = :bank AND (:query_id IS NULL OR q.query_id = :query_id)
ORDER BY i.query, i.subtopic, i.item
"""
_LOGGED = f"""
SELECT e.edit, e.operation, e.author, e.reason, e.at, {_COLUMNS} FROM item_edit e
JOIN item i USING (item) JOIN bank b USING (bank) {_JOINED}
"""
_LOG = f"{_LOGGED} WHERE b.name = :bank AND e.edit > :after ORDER BY e.edit"
_LOG_OF_ITEM = f"""
{_LOGGED} WHERE b.name = :bank AND e.item = (SELECT item FROM item_edit WHERE edit = :edit)
ORDER BY e.edit
"""


def states(
    connection: sqlite3.Connection, bank: str, at: int = NEWEST, query_id: str | None = None
) -> list[ItemState]:
    """Every item that the bank, or one query, held after edit `at`, retired ones too, in order."""
    rows = connection.execute(_STATES, {"bank": bank, "at": at, "query_id": query_id})
    return [_state(*row) for row in rows]


def _state(
    query_id: str,
    item_id: str,
    text: str | None,
    kind: str,
    subtopic_id: str | None,
    answers: str,
    weight: float,
    active: int,
    key: int,
    edit: int,
    extra: str | None,
) -> ItemState:
    keys = tuple(from_json(answers))
    said = from_json(extra or "{}")
    return ItemState(
        query_id, item_id, text, kind, subtopic_id, keys, weight, bool(active), key, edit, said
    )


def log(connection: sqlite3.Connection, bank: str, after: int = 0) -> Iterator[Logged]:
    """The edits of a bank with a number above `after`, oldest first."""
    known: dict[int, ItemState] = {}
    if after:
        known = {state.key: state for state in states(connection, bank, after) if state.key}
    yield from _logged(connection.execute(_LOG, {"bank": bank, "after": after}), known)


def log_of_item(connection: sqlite3.Connection, bank: str, edit: int) -> list[Logged]:
    """All edits of the item that an edit is of, oldest first; none if the bank has no such edit."""
    return list(_logged(connection.execute(_LOG_OF_ITEM, {"bank": bank, "edit": edit}), {}))


def _logged(rows: Iterable[Sequence[Any]], known: dict[int, ItemState]) -> Iterator[Logged]:
    """Edits with the states before and after them; `known` are the states before all of them."""
    for number, operation, author, reason, at, *row in rows:
        state = _state(*row)
        key = state.key or 0
        yield Logged(number, operation, Edit(author, reason, at), known.get(key), state)
        known[key] = state


def last_edit(connection: sqlite3.Connection, bank: str, until: str | None = None) -> int:
    """The number of a bank's last edit, or of the last one at or before a time; 0 where none."""
    row = connection.execute(
        "SELECT coalesce(max(e.edit), 0) FROM item_edit e JOIN item i USING (item) "
        "JOIN bank b USING (bank) WHERE b.name = ? AND (? IS NULL OR e.at <= ?)",
        (bank, until, until),
    ).fetchone()
    return int(row[0])


def bank_counts(connection: sqlite3.Connection) -> list[BankCount]:
    """What the banks of a collection hold."""
    rows = connection.execute(
        "SELECT b.name, i.kind, sum(i.active), sum(1 - i.active), "
        "count(DISTINCT CASE i.active WHEN 1 THEN i.query END) "
        "FROM bank b JOIN item i USING (bank) WHERE b.name <> ? GROUP BY b.bank, i.kind "
        "ORDER BY b.bank, i.kind DESC",
        (QUERY_BANK,),
    )
    return [BankCount(*row) for row in rows]


def known_queries(connection: sqlite3.Connection) -> dict[str, str]:
    """The text of every query that is known from more than a bank: it has one, or a pool."""
    rows = connection.execute(
        "SELECT query_id, text FROM query q WHERE text <> '' "
        "OR EXISTS (SELECT 1 FROM pool WHERE query = q.query) "
        "OR EXISTS (SELECT 1 FROM ranking WHERE query = q.query) "
        "OR EXISTS (SELECT 1 FROM judgment WHERE query = q.query) ORDER BY query"
    )
    return dict(rows.fetchall())


def append_steps(
    connection: sqlite3.Connection, bank: str, steps: Iterable[EditStep], edit: Edit
) -> int:
    """Append edits to a bank, in the caller's transaction; returns how many.

    A state without a key is added as a new item; its query must be in the collection.
    """
    count = 0
    added: dict[tuple[str, str, str], int] = {}
    queries = query_keys(connection)
    for operation, after in steps:
        place = (after.query_id, after.kind, after.item_id)
        item = after.key or added.get(place)
        if item is None:
            item = added[place] = _insert(connection, bank, queries[after.query_id], after)
        connection.execute(
            "UPDATE item SET extra = :extra WHERE item = :item AND extra IS NOT :extra",
            {"item": item, "extra": to_json(after.extra)},
        )
        version = put_version(connection, item, after.text)
        answers = json.dumps(list(after.answers), ensure_ascii=False)
        append_edit(connection, item, operation, version, after.weight, answers, after.active, edit)
        count += 1
    return count


def _insert(connection: sqlite3.Connection, bank: str, query: int, state: ItemState) -> int:
    subtopic = WHOLE_QUERY
    if subtopic_id := state.subtopic_id or subtopic_of_item(state.query_id, state.item_id):
        subtopic = put_subtopics(connection, query, [Subtopic(subtopic_id)])[subtopic_id]
    return insert(
        connection,
        "INSERT INTO item (query, bank, subtopic, item_id, kind) VALUES (?, ?, ?, ?, ?)",
        (query, bank_key(connection, bank), subtopic, check_id(state.item_id), state.kind),
    )
