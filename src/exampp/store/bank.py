"""Bank items in the store, and the log of their edits.

`item_edit` is append-only; each row has the state of its item after the edit, and `item` caches the
last one. An import applies only its differences from the last import, so edits by people in between
stay.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.records import BankEntry, Item, Query, Subtopic, subtopic_of_item
from exampp.records.items import MODEL, BankTexts, makers_of
from exampp.records.wording import quoted
from exampp.sanitize import check_id, check_text, sanitized
from exampp.store.inputs import (
    WHOLE_QUERY,
    note_statements,
    put_queries,
    put_subtopics,
    query_keys,
)
from exampp.store.sql import (
    column,
    exists,
    extra_json,
    from_json,
    has_scratch,
    insert,
    intern,
    pairs,
    records,
    select_integer,
)

MAIN_BANK = "main"
QUERY_BANK = ""
"""The bank of direct relevance prompts: its items are the queries themselves."""


class Edit(NamedTuple):
    """The author, reason and time of a change of a bank; `at` is ISO 8601 in UTC."""

    author: str
    reason: str
    at: str


def edit_by(author: str | None, reason: str) -> Edit:
    """Return an edit with the current time, by default by the user."""
    who = check_text("author", author) if author else _user()
    if not isinstance(reason, str):
        raise InputError(f"reason must be a text, not {reason!r}", field="reason")
    return Edit(who, reason, now())


def _user() -> str:
    """Return the name of the user, or "unknown"."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def now() -> str:
    """Return the current time: ISO 8601, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


BeforeCommit = Callable[[sqlite3.Connection], None]
"""A function called at the end of a transaction that edits a bank."""


def do_nothing(_connection: sqlite3.Connection) -> None:
    """Do nothing: the default of `BeforeCommit`."""


def bank_key(connection: sqlite3.Connection, name: str) -> int:
    """Return the key of a bank, adding it if necessary."""
    return intern(connection, "bank", "name", [name])[name]


def put_bank(
    connection: sqlite3.Connection, name: str, entries: Iterable[BankEntry], edit: Edit
) -> int:
    """Import bank entries, by default into the bank `name`; return the number of items.

    An import lists all questions (or nuggets) of a subtopic: `retire_unmentioned` retires the
    others.
    """
    keys = {name: bank_key(connection, name)}
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS mentioned (item INTEGER PRIMARY KEY, bank INTEGER, "
        "query INTEGER, subtopic INTEGER, kind TEXT)"
    )
    count = 0
    for entry in entries:
        of = entry.bank or name
        bank = keys[of] = keys.get(of) or bank_key(connection, of)
        query, subtopics = _put_query(connection, entry)
        _put_line(
            connection, bank, query, subtopics.get(entry.subtopic_id or "", WHOLE_QUERY), entry
        )
        for item in entry.items:
            subtopic = subtopics.get(item.subtopic_id or entry.subtopic_id or "", WHOLE_QUERY)
            key = _import_item(connection, bank, query, subtopic, item, edit)
            connection.execute(
                "INSERT INTO mentioned VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET subtopic = excluded.subtopic WHERE subtopic <> excluded.subtopic",
                (key, bank, query, subtopic, item.kind),
            )
        count += len(entry.items)
    return count


class Retired(NamedTuple):
    """Number of items retired by `retire_unmentioned`, and rows of its scratch table."""

    items: int
    scratch: int


def retire_unmentioned(connection: sqlite3.Connection, edit: Edit) -> Retired:
    """Retire items that are missing from an import of their bank, at its end.

    Affects only imported items without later edits.
    """
    if not has_scratch(connection, "mentioned"):
        return Retired(0, 0)
    left_out = connection.execute(
        "SELECT i.item, i.version, i.weight, i.answers FROM item i WHERE i.active "
        "AND (i.bank, i.query, i.subtopic, i.kind) IN "
        "(SELECT bank, query, subtopic, kind FROM mentioned) "
        "AND i.item NOT IN (SELECT item FROM mentioned) AND 'import' = (SELECT e.operation "
        "FROM item_edit e WHERE e.item = i.item ORDER BY e.edit DESC LIMIT 1)"
    ).fetchall()
    for item, version, weight, answers in left_out:
        keys = from_json(answers)
        append_edit(connection, item, "import", version, weight, keys, False, edit)
    scratch = select_integer(connection, "SELECT count(*) FROM mentioned")
    connection.execute("DROP TABLE mentioned")
    return Retired(len(left_out), scratch)


def _put_query(connection: sqlite3.Connection, entry: BankEntry) -> tuple[int, dict[str, int]]:
    """Return the keys of the query and the subtopics of an entry, adding new ones."""
    query = intern(connection, "query", "query_id", [entry.query_id])[entry.query_id]
    if entry.query_text and not entry.subtopic_id:
        # a line of a subtopic has the texts of query and subtopic together
        known = connection.execute("SELECT text FROM query WHERE query = ?", (query,)).fetchone()
        if not known[0]:
            put_queries(connection, [Query(entry.query_id, entry.query_text)])
    subtopic_ids = dict.fromkeys([entry.subtopic_id, *(item.subtopic_id for item in entry.items)])
    known = put_subtopics(
        connection, query, [Subtopic(subtopic_id) for subtopic_id in subtopic_ids if subtopic_id]
    )
    if entry.subtopic_id:
        # as for queries, a known text takes precedence over that of a bank
        connection.execute(
            "UPDATE subtopic SET text = :text "
            "WHERE subtopic = :subtopic AND text = '' AND text <> :text",
            {"subtopic": known[entry.subtopic_id], "text": entry.subtopic_text},
        )
    return query, known


def _put_line(
    connection: sqlite3.Connection, bank: int, query: int, subtopic: int, entry: BankEntry
) -> None:
    extra = {**entry.extra, **({"query_text": entry.query_text} if entry.subtopic_id else {})}
    connection.execute(
        "INSERT INTO bank_line (bank, query, subtopic, extra) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET extra = excluded.extra WHERE extra IS NOT excluded.extra",
        (bank, query, subtopic, extra_json(extra)),
    )


def _import_item(
    connection: sqlite3.Connection, bank: int, query: int, subtopic: int, item: Item, edit: Edit
) -> int:
    row = _find_item(connection, bank, query, item)
    if row is None:
        row = _new_item(connection, bank, query, item.item_id, item.kind)
    connection.execute(
        "UPDATE item SET subtopic = :subtopic, extra = :extra WHERE item = :item "
        "AND (subtopic <> :subtopic OR extra IS NOT :extra)",
        {"item": row, "subtopic": subtopic, "extra": extra_json(item.extra)},
    )
    statements = [(f"{row} {item.item_id}", _describe_item(connection, row, item))]
    note_statements(connection, item.kind, statements, lambda key: key.partition(" ")[2])
    version = put_version(connection, row, item.text)
    last = connection.execute(
        "SELECT version, weight, answers, active FROM item_edit "
        "WHERE item = ? AND operation = 'import' "
        "ORDER BY edit DESC LIMIT 1",
        (row,),
    ).fetchone()
    if last != (version, item.weight, json.dumps(list(item.answers), ensure_ascii=False), 1):
        append_edit(connection, row, "import", version, item.weight, item.answers, True, edit)
    return row


def _describe_item(connection: sqlite3.Connection, row: int, item: Item) -> str:
    """Describe an item of a file, including answers only if some are new."""
    (known,) = connection.execute("SELECT answers FROM item WHERE item = ?", (row,)).fetchone()
    before = from_json(known)
    answers = before if before and {*before} <= {*item.answers} else item.answers
    described = f"{item.text}, weight {item.weight:g}"
    return f"{described}, answers {', '.join(answers)}" if answers else described


def add_items(
    connection: sqlite3.Connection, name: str, items: Iterable[Item], operation: str, edit: Edit
) -> list[Item]:
    """Add items to a bank; existing items are unchanged.

    Returns those that were added.
    """
    added = []
    bank = bank_key(connection, name)
    with_text = "SELECT 1 FROM item_version WHERE item = ? AND text IS NOT NULL"
    for item in items:
        query = intern(connection, "query", "query_id", [item.query_id])[item.query_id]
        subtopic = _subtopic_key(connection, query, item.subtopic_id)
        row = _find_item(connection, bank, query, item)
        if row is None:
            row = _new_item(connection, bank, query, item.item_id, item.kind)
        elif exists(connection, with_text, (row,)):
            continue
        connection.execute(
            "UPDATE item SET subtopic = ?, extra = ? WHERE item = ?",
            (subtopic, extra_json(item.extra), row),
        )
        version = put_version(connection, row, item.text)
        append_edit(connection, row, operation, version, item.weight, item.answers, True, edit)
        added.append(item)
    return added


_IMPORTED = "EXISTS (SELECT 1 FROM item_edit e WHERE e.item = i.item AND e.operation = 'import')"
"""SQL: an imported item."""


class ItemModels(NamedTuple):
    """Number of active items of a bank, in total and by the model that made them."""

    items: int
    models: dict[str, int]


def item_models(
    connection: sqlite3.Connection,
    bank: str,
    kind: str,
    among: Callable[[int], bool] = lambda _: True,
) -> ItemModels:
    """Count the items of one kind by the models that made them, ignoring human edits.

    `among` selects items by key.
    """
    rows = connection.execute(
        # a line describes the items imported with it, not those added by people
        f"SELECT i.item, i.extra, CASE WHEN {_IMPORTED} THEN l.extra END "
        "FROM item i JOIN bank b USING (bank) LEFT JOIN bank_line l "
        "ON (l.bank, l.query, l.subtopic) = (i.bank, i.query, i.subtopic) "
        "WHERE b.name = ? AND i.kind = ? AND i.active",
        (bank, kind),
    )
    origins = Counter((own, of_line) for item, own, of_line in rows if among(item))
    counts: Counter[str] = Counter()
    for (own, of_line), items in origins.items():
        for maker in makers_of(from_json(own or "{}"), from_json(of_line or "{}")):
            counts[maker] += items
    return ItemModels(origins.total(), dict(counts))


def _find_item(connection: sqlite3.Connection, bank: int, query: int, item: Item) -> int | None:
    """Return the row of an item in this bank, or of one known only from grades."""
    row = connection.execute(
        "SELECT item, bank FROM item WHERE query = ? AND kind = ? AND item_id = ? AND (bank = ? "
        "OR EXISTS (SELECT 1 FROM item_version v WHERE v.item = item.item AND v.text IS NULL)) "
        "ORDER BY bank <> ? LIMIT 1",
        (query, item.kind, item.item_id, bank, bank),
    ).fetchone()
    if row is None:
        return None
    if row[1] != bank:
        connection.execute("UPDATE item SET bank = ? WHERE item = ?", (bank, row[0]))
    return int(row[0])


def _new_item(
    connection: sqlite3.Connection, bank: int, query: int, item_id: str, kind: str
) -> int:
    return insert(
        connection,
        "INSERT INTO item (query, bank, item_id, kind) VALUES (?, ?, ?, ?)",
        (query, bank, check_id(item_id), kind),
    )


def _subtopic_key(connection: sqlite3.Connection, query: int, subtopic_id: str | None) -> int:
    """Return the key of a subtopic, adding it if necessary."""
    if not subtopic_id:
        return WHOLE_QUERY
    return put_subtopics(connection, query, [Subtopic(subtopic_id)])[subtopic_id]


def put_version(connection: sqlite3.Connection, item: int, text: str | None) -> int:
    """Return the key of the text of an item; an item known only by id gets the text."""
    text = None if text is None else sanitized(text)
    rows = connection.execute(
        "SELECT version, text FROM item_version WHERE item = ? AND (text = ? OR text IS NULL)",
        (item, text),
    ).fetchall()
    for version, known in rows:
        if known == text:
            return int(version)
    if rows and text is not None:
        connection.execute("UPDATE item_version SET text = ? WHERE version = ?", (text, rows[0][0]))
        return int(rows[0][0])
    return insert(connection, "INSERT INTO item_version (item, text) VALUES (?, ?)", (item, text))


def append_edit(
    connection: sqlite3.Connection,
    item: int,
    operation: str,
    version: int,
    weight: float,
    keys: Iterable[str],
    active: bool,
    edit: Edit,
) -> None:
    """Append an edit, with answer keys; its state becomes the current one of the item."""
    answers = json.dumps([sanitized(key) for key in keys], ensure_ascii=False)
    connection.execute(
        "INSERT INTO item_edit (item, operation, version, weight, answers, active, author, "
        "reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (item, operation, version, weight, answers, int(active), *map(sanitized, edit)),
    )
    connection.execute(
        "UPDATE item SET version = ?, weight = ?, answers = ?, answer_key = ?, active = ? "
        "WHERE item = ?",
        (version, weight, answers, answer_key(connection, answers), int(active), item),
    )


def answer_key(connection: sqlite3.Connection, answers: str) -> int:
    """Return the key of an answer key (a JSON list), adding it if necessary."""
    rows = connection.execute("SELECT answer_key FROM answer_key WHERE answers = ?", (answers,))
    if row := rows.fetchone():
        return int(row[0])
    return insert(connection, "INSERT INTO answer_key (answers) VALUES (?)", (answers,))


def graded_versions(
    connection: sqlite3.Connection,
    query: int,
    query_id: str,
    items: Iterable[tuple[str, str]],
    edit: Edit,
) -> dict[tuple[str, str], int]:
    """Return the text versions to which imported grades of items, as (kind, id), belong.

    This is the last imported text, regardless of later edits. Items in no bank are added without a
    text, which a later import of the bank adds.
    """
    known = {
        (row[0], row[1]): row[2]
        for row in connection.execute(
            "SELECT kind, item_id, coalesce((SELECT e.version FROM item_edit e "
            "WHERE e.item = item.item AND e.operation = 'import' ORDER BY e.edit DESC LIMIT 1), "
            "item.version) "
            "FROM item WHERE query = ? ORDER BY bank DESC",
            (query,),
        )
    }
    for kind, item_id in items:
        if (kind, item_id) not in known:
            bank = bank_key(connection, QUERY_BANK if kind == "query" else MAIN_BANK)
            item = _new_item(connection, bank, query, item_id, kind)
            subtopic = _subtopic_key(connection, query, subtopic_of_item(query_id, item_id))
            connection.execute("UPDATE item SET subtopic = ? WHERE item = ?", (subtopic, item))
            version = known[kind, item_id] = put_version(connection, item, None)
            append_edit(connection, item, "import", version, 1.0, (), True, edit)
    return known


def put_query_items(connection: sqlite3.Connection, edit: Edit, *, textless: bool = False) -> None:
    """Make every query an item for direct relevance prompts, with its current text.

    With `textless`, include queries known only by id.
    """
    bank = bank_key(connection, QUERY_BANK)
    stale = connection.execute(
        "SELECT q.query, q.query_id, q.text, i.item FROM query q "
        "LEFT JOIN item i ON i.query = q.query AND i.bank = :bank "
        "LEFT JOIN item_version v ON v.version = i.version "
        "WHERE q.text <> '' AND v.text IS NOT q.text "
        "OR :textless AND q.text = '' AND i.item IS NULL",
        {"bank": bank, "textless": textless},
    ).fetchall()
    for query, query_id, text, item in stale:
        known = _new_item(connection, bank, query, query_id, "query") if item is None else item
        version = put_version(connection, known, text or None)
        append_edit(connection, known, "import", version, 1.0, (), True, edit)


def has_items_without_text(connection: sqlite3.Connection, name: str, kind: str) -> bool:
    """Return whether a bank has items without a text, known only from grades."""
    return exists(
        connection,
        "SELECT 1 FROM item i JOIN bank b USING (bank) JOIN item_version v USING (version) "
        "WHERE b.name = ? AND i.kind = ? AND i.active AND v.text IS NULL LIMIT 1",
        (name, kind),
    )


def bank_names(connection: sqlite3.Connection, kind: str) -> list[str]:
    """Return the banks with active items of a kind."""
    return column(
        connection,
        "SELECT name FROM bank WHERE bank IN (SELECT bank FROM item WHERE kind = ? AND active) "
        "ORDER BY bank",
        (kind,),
    )


def item_kinds(connection: sqlite3.Connection, bank: str | None = None) -> list[str]:
    """Return the kinds of items in a bank, or in any bank."""
    return column(
        connection,
        "SELECT DISTINCT kind FROM item JOIN bank b USING (bank) WHERE active AND kind <> 'query' "
        "AND (:bank IS NULL OR b.name = :bank) ORDER BY kind DESC",
        {"bank": bank},
    )


def read_bank(connection: sqlite3.Connection, name: str) -> Iterable[BankEntry]:
    """Yield the active items of a bank, one entry per query or subtopic, in order."""
    rows = connection.execute(
        "SELECT q.query_id, q.text, f.subtopic_id, coalesce(f.text, ''), l.extra, i.item_id, "
        f"v.text, i.kind, i.answers, i.weight, i.extra, l.extra IS NULL OR {_IMPORTED} "
        "FROM item i JOIN bank b USING (bank) "
        "JOIN query q ON q.query = i.query LEFT JOIN subtopic f ON f.subtopic = i.subtopic "
        "JOIN item_version v ON v.version = i.version LEFT JOIN bank_line l "
        "ON l.bank = i.bank AND l.query = i.query AND l.subtopic = i.subtopic "
        "WHERE b.name = ? AND i.active ORDER BY i.query, i.subtopic, i.item",
        (name,),
    )
    for (query_id, query_text, subtopic_id, subtopic_text, line), of_line in groupby(
        rows, key=itemgetter(slice(5))
    ):
        items = tuple(_entry_item(query_id, subtopic_id, line, *row[5:]) for row in of_line)
        extra = from_json(line or "{}")
        text = extra.pop("query_text", query_text) if subtopic_id else query_text
        yield BankEntry(query_id, items, text, subtopic_id, subtopic_text, extra)


def _entry_item(
    query_id: str, subtopic_id: str | None, line: str | None, item_id: str, *values: Any
) -> Item:
    text, kind, answers, weight, extra, imported = values
    fields = from_json(extra or "{}")
    if not imported and not makers_of(fields, {}) and makers_of({}, from_json(line)):
        # the models of a line apply to the items imported with it
        fields[MODEL] = ""
    keys = tuple(from_json(answers))
    return Item(item_id, query_id, text or "", kind, subtopic_id, keys, weight, fields)


def all_bank_names(connection: sqlite3.Connection) -> list[str]:
    """Return the banks with active items of any kind, each once."""
    return column(
        connection,
        "SELECT name FROM bank WHERE bank IN "
        "(SELECT bank FROM item WHERE kind <> 'query' AND active) ORDER BY bank",
    )


def unknown_bank(name: str, known: Iterable[str]) -> InputError:
    """Return the error for a bank that the collection does not have."""
    names = ", ".join(dict.fromkeys(known))
    hint = f"It has {names}" if names else "Import one: exampp import"
    return InputError(f"the collection has no bank {name!r}", hint=hint)


def only_bank(connection: sqlite3.Connection, path: Path) -> str:
    """Return the only bank of a collection; InputError if there are none or several."""
    known = all_bank_names(connection)
    if len(known) == 1:
        return known[0]
    if not known:
        raise InputError("the collection has no bank", file=path, hint="Import one: exampp import")
    raise InputError(
        f"the collection has several banks: {', '.join(known)}",
        file=path,
        hint="Choose one with --bank",
    )


def bank_of_kind(connection: sqlite3.Connection, name: str | None, kind: str, path: Path) -> str:
    """Return the bank of that name, or the only one with items of a kind.

    Raises InputError if there is none or there are several.
    """
    if kind == "query":
        return QUERY_BANK
    known = bank_names(connection, kind)
    if name is not None and name in known:
        return name
    if name is None and len(known) == 1:
        return known[0]
    if not known:
        others = item_kinds(connection, name)
        hint = (
            f"It has {others[0]}s: remove prompt and kind, or name a prompt for {others[0]}s"
            if others
            else "Import a bank (exampp import), generate one with a model (exampp bank "
            "generate), or rate relevance to the query itself (--kind query, "
            'in Python kind="query")'
        )
        raise InputError(f"the collection has no {kind}s to grade against", file=path, hint=hint)
    fault = "which bank?" if name is None else f"no bank {quoted(name)} has {kind}s."
    raise InputError(
        f"{fault} This collection has {', '.join(known)} with {kind}s",
        file=path,
        hint="Name one with --bank",
    )


def query_items(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return by query id the keys of the query and of its text as an item.

    Every query becomes an item for direct relevance prompts, even if only its id is known.
    """
    put_query_items(connection, edit_by(None, "calibrate"), textless=True)
    rows = connection.execute(
        "SELECT q.query_id, q.query, i.version FROM query q JOIN item i USING (query) "
        "WHERE i.bank = ? AND i.kind = 'query' AND i.active",
        (bank_key(connection, QUERY_BANK),),
    )
    return {query_id: (query, version) for query_id, query, version in rows}


NEWEST = (1 << 63) - 1
"""The latest edit."""


@dataclass(frozen=True, slots=True)
class ItemState:
    """The state of an item at some time; `text` is None if only the id is known.

    `key` is its row in the store, None for a new item; `edit` is the number of the edit that made
    this state (0: none); `extra` has the other fields of the item as they are now.
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


class LoggedEdit(NamedTuple):
    """An edit of an item, with the states before (None: new) and after it."""

    number: int
    operation: str
    edit: Edit
    before: ItemState | None
    after: ItemState


class ImprovedItem(NamedTuple):
    """An item that an edit of the log retired or put in force.

    `in_force`: no later edit changed its weight, retired or restored it.
    """

    number: int
    edit: Edit
    query_id: str
    item_id: str
    text: str
    active: bool
    in_force: bool


class ItemChange(NamedTuple):
    """One difference of an item: an operation, and the item before and after it.

    An operation other than those of the log is a key of `extra` set by a file. `before` is None for
    a new item; `after` is None (operation `remove`) for a missing item, in comparisons of two banks
    or with a later state.
    """

    operation: str
    before: ItemState | None
    after: ItemState | None


class BankCount(NamedTuple):
    """Numbers of active items, retired items and queries, for one kind in one bank."""

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
_IMPROVED = """
WITH changed AS (
    SELECT e.*, (e.active, e.weight) IS NOT (lag(e.active) OVER w, lag(e.weight) OVER w) AS counts
    FROM item_edit e WHERE e.item IN (SELECT item FROM item_edit WHERE operation = :operation)
    WINDOW w AS (PARTITION BY e.item ORDER BY e.edit)
), standing AS (
    SELECT *, edit = max(edit) FILTER (WHERE counts) OVER (PARTITION BY item) AS in_force
    FROM changed
)
SELECT s.edit, s.author, s.reason, s.at, q.query_id, i.item_id, coalesce(v.text, ''), s.active,
s.in_force
FROM standing s JOIN item i USING (item) JOIN bank b USING (bank) JOIN query q USING (query)
JOIN item_version v ON v.version = s.version
WHERE b.name = :bank AND s.operation = :operation ORDER BY s.edit
"""


def states(
    connection: sqlite3.Connection, bank: str, at: int = NEWEST, query_id: str | None = None
) -> list[ItemState]:
    """Return the items of a bank or a query after edit `at`, including retired ones.

    Edits are numbered across all banks of a collection.
    """
    return records(_state, connection, _STATES, {"bank": bank, "at": at, "query_id": query_id})


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
    fields = from_json(extra or "{}")
    return ItemState(
        query_id, item_id, text, kind, subtopic_id, keys, weight, bool(active), key, edit, fields
    )


def log(connection: sqlite3.Connection, bank: str, after: int = 0) -> Iterator[LoggedEdit]:
    """Yield the edits of a bank with a number above `after`, oldest first."""
    known: dict[int, ItemState] = {}
    if after:
        known = {state.key: state for state in states(connection, bank, after) if state.key}
    yield from _logged(connection.execute(_LOG, {"bank": bank, "after": after}), known)


def log_of_item(connection: sqlite3.Connection, bank: str, edit: int) -> list[LoggedEdit]:
    """Return all edits of the item of an edit, oldest first; empty if it is unknown."""
    return list(_logged(connection.execute(_LOG_OF_ITEM, {"bank": bank, "edit": edit}), {}))


def _logged(rows: Iterable[Sequence[Any]], known: dict[int, ItemState]) -> Iterator[LoggedEdit]:
    """Yield edits with the states before and after; `known` has the initial states."""
    for number, operation, author, reason, at, *row in rows:
        state = _state(*row)
        key = state.key or 0
        yield LoggedEdit(number, operation, Edit(author, reason, at), known.get(key), state)
        known[key] = state


def last_edit(connection: sqlite3.Connection, bank: str) -> int:
    """Return the number of the last edit of a bank; 0 without edits."""
    return select_integer(
        connection,
        "SELECT coalesce(max(e.edit), 0) FROM item_edit e JOIN item i USING (item) "
        "JOIN bank b USING (bank) WHERE b.name = ?",
        (bank,),
    )


def improved_items(connection: sqlite3.Connection, bank: str, operation: str) -> list[ImprovedItem]:
    """Return the items that edits of this operation changed, oldest edit first."""
    return records(_improved_item, connection, _IMPROVED, {"bank": bank, "operation": operation})


def _improved_item(number: int, author: str, reason: str, at: str, *values: Any) -> ImprovedItem:
    query_id, item_id, text, active, in_force = values
    edit = Edit(author, reason, at)
    return ImprovedItem(number, edit, query_id, item_id, text, bool(active), bool(in_force))


def bank_counts(connection: sqlite3.Connection) -> list[BankCount]:
    """Return the counts of all banks."""
    return records(
        BankCount,
        connection,
        "SELECT b.name, i.kind, sum(i.active), sum(1 - i.active), "
        "count(DISTINCT CASE i.active WHEN 1 THEN i.query END) "
        "FROM bank b JOIN item i USING (bank) WHERE b.name <> ? GROUP BY b.bank, i.kind "
        "ORDER BY b.bank, i.kind DESC",
        (QUERY_BANK,),
    )


def known_queries(connection: sqlite3.Connection) -> dict[str, str]:
    """Return query texts by id, for queries with a text, pool, ranking or judgment."""
    return pairs(
        connection,
        "SELECT query_id, text FROM query q WHERE text <> '' "
        "OR EXISTS (SELECT 1 FROM pool WHERE query = q.query) "
        "OR EXISTS (SELECT 1 FROM ranking WHERE query = q.query) "
        "OR EXISTS (SELECT 1 FROM judgment WHERE query = q.query) ORDER BY query",
    )


def append_changes(
    connection: sqlite3.Connection, bank: str, changes: Iterable[ItemChange], edit: Edit
) -> None:
    """Append edits to the log of a bank in the caller's transaction.

    A state without a key becomes a new item; its query must exist.
    """
    added: dict[tuple[str, str, str], int] = {}
    queries = query_keys(connection)
    for operation, _, after in changes:
        if after is None:
            raise ValueError(f"{operation} cannot be logged")
        place = (after.query_id, after.kind, after.item_id)
        item = after.key or added.get(place)
        if item is None:
            item = added[place] = _insert(connection, bank, queries[after.query_id], after)
        connection.execute(
            "UPDATE item SET extra = :extra WHERE item = :item AND extra IS NOT :extra",
            {"item": item, "extra": extra_json(after.extra)},
        )
        version = put_version(connection, item, after.text)
        append_edit(
            connection, item, operation, version, after.weight, after.answers, after.active, edit
        )


def _insert(connection: sqlite3.Connection, bank: str, query: int, state: ItemState) -> int:
    subtopic_id = state.subtopic_id or subtopic_of_item(state.query_id, state.item_id)
    subtopic = _subtopic_key(connection, query, subtopic_id)
    return insert(
        connection,
        "INSERT INTO item (query, bank, subtopic, item_id, kind) VALUES (?, ?, ?, ?, ?)",
        (query, bank_key(connection, bank), subtopic, check_id(state.item_id), state.kind),
    )


PARTS = ("public", "sealed")


@dataclass(frozen=True, slots=True)
class Split:
    """A recorded split: options, commitment, and the last edit before it.

    `items` has the keys of the sealed items.
    """

    key: int
    share: float
    seed: int
    salt: str
    commitment: str
    edit_number: int
    edit: Edit
    items: frozenset[int]


def put_split(
    connection: sqlite3.Connection,
    bank: str,
    share: float,
    seed: int,
    seal: tuple[str, str],
    edit_number: int,
    items: Iterable[int],
    edit: Edit,
) -> None:
    """Record a split in the caller's transaction; `seal` is (salt, commitment)."""
    split = insert(
        connection,
        "INSERT INTO split (bank, share, seed, salt, commitment, edit, author, reason, at) "
        "SELECT bank, ?, ?, ?, ?, ?, ?, ?, ? FROM bank WHERE name = ?",
        (share, seed, *seal, edit_number, *edit, bank),
    )
    connection.executemany(
        "INSERT INTO sealed (split, item) VALUES (?, ?)", [(split, item) for item in items]
    )


def newest_split(connection: sqlite3.Connection, bank: str) -> Split | None:
    """Return the current split of a bank; None if it was never split."""
    row = connection.execute(
        "SELECT s.split, s.share, s.seed, s.salt, s.commitment, s.edit, s.author, s.reason, s.at "
        "FROM split s JOIN bank b USING (bank) WHERE b.name = ? ORDER BY s.split DESC LIMIT 1",
        (bank,),
    ).fetchone()
    if row is None:
        return None
    key, share, seed, salt, commitment, number, *edit = row
    items = column(connection, "SELECT item FROM sealed WHERE split = ?", (key,))
    return Split(key, share, seed, salt, commitment, number, Edit(*edit), frozenset(items))


def public_entries(
    connection: sqlite3.Connection, bank: str, entries: Iterable[BankEntry]
) -> list[BankEntry]:
    """Return the entries of a bank without its sealed items."""
    sealed = _sealed_items(connection, bank)
    if sealed is None:
        return list(entries)
    public = [
        replace(entry, items=tuple(i for i in entry.items if _identity(i) not in sealed))
        for entry in entries
    ]
    return [entry for entry in public if entry.items]


def _identity(item: Item | ItemState) -> tuple[str, str, str]:
    return item.query_id, item.item_id, item.kind


def _sealed_items(
    connection: sqlite3.Connection, bank: str
) -> frozenset[tuple[str, str, str]] | None:
    """Return the query, id and kind of the items in the sealed part; None without a split."""
    split = newest_split(connection, bank)
    if split is None:
        return None
    return frozenset(_identity(one) for one in states(connection, bank) if one.key in split.items)


def read_bank_texts(connection: sqlite3.Connection, bank: str) -> BankTexts:
    """Return the items and query texts of a bank, and its sealed items."""
    sealed = _sealed_items(connection, bank)
    ids = None if sealed is None else frozenset(one[:2] for one in sealed)
    return BankTexts(tuple(read_bank(connection, bank)), known_queries(connection), ids)
