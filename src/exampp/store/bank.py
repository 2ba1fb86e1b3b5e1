"""The exam's items in the store, and the log of their edits.

`item_edit` is appended to and never changed; each row holds the state of its item after the edit,
and `item` caches the last one. An import speaks only for what it changed since the last import:
people's edits in between stand.
"""

from __future__ import annotations

import getpass
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from exampp.errors import InputError
from exampp.outside import check_id, check_text, kept
from exampp.records import BankEntry, Item, Query, Subtopic, subtopic_of_item
from exampp.records.origin import MODEL, makers_of
from exampp.store.import_says import say
from exampp.store.inputs import WHOLE_QUERY, put_queries, put_subtopics
from exampp.store.interning import from_json, insert, intern, to_json

MAIN_BANK = "main"
QUERY_BANK = ""
"""The bank of direct relevance prompts: its items are the queries themselves."""


class Edit(NamedTuple):
    """Who changed a bank, why and when; `at` is ISO 8601 in UTC."""

    author: str
    reason: str
    at: str


def edit_by(author: str | None, reason: str) -> Edit:
    """An edit made now, by the user unless it is somebody else's."""
    who = check_text("author", author) if author else _user()
    if not isinstance(reason, str):
        raise InputError(f"reason is a text, not {reason!r}", field="reason")
    return Edit(who, reason, now())


def _user() -> str:
    """The name of the user, as the system has it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def now() -> str:
    """This moment: ISO 8601, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


Settle = Callable[[sqlite3.Connection], None]
"""What is done at the end of the transaction that edits a bank."""


def no_more(_connection: sqlite3.Connection) -> None:
    """An edit of a bank asks for nothing else."""


def bank_key(connection: sqlite3.Connection, name: str) -> int:
    """The key of a bank, made where there was none."""
    return intern(connection, "bank", "name", [name])[name]


def put_bank(
    connection: sqlite3.Connection, name: str, entries: Iterable[BankEntry], edit: Edit
) -> int:
    """Import bank entries; returns how many items they held.

    What one import says of the questions (or nuggets) of a query's subtopic is all there is of
    them: `retire_unmentioned` retires the others.
    """
    bank = bank_key(connection, name)
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS mentioned (item INTEGER PRIMARY KEY, bank INTEGER, "
        "query INTEGER, subtopic INTEGER, kind TEXT)"
    )
    count = 0
    for entry in entries:
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
    """What `retire_unmentioned` did: items retired, and rows of its scratch table."""

    items: int
    scratch: int


def retire_unmentioned(connection: sqlite3.Connection, edit: Edit) -> Retired:
    """Retire the items that an import of their bank left out, at the end of that import.

    Only items that came by an import and that no person has touched since.
    """
    staged = "SELECT 1 FROM temp.sqlite_master WHERE name = 'mentioned'"
    if connection.execute(staged).fetchone() is None:
        return Retired(0, 0)
    left_out = connection.execute(
        "SELECT i.item, i.version, i.weight, i.answers FROM item i WHERE i.active "
        "AND (i.bank, i.query, i.subtopic, i.kind) IN "
        "(SELECT bank, query, subtopic, kind FROM mentioned) "
        "AND i.item NOT IN (SELECT item FROM mentioned) AND 'import' = (SELECT e.operation "
        "FROM item_edit e WHERE e.item = i.item ORDER BY e.edit DESC LIMIT 1)"
    ).fetchall()
    for item, version, weight, answers in left_out:
        append_edit(connection, item, "import", version, weight, answers, False, edit)
    scratch = connection.execute("SELECT count(*) FROM mentioned").fetchone()[0]
    connection.execute("DROP TABLE mentioned")
    return Retired(len(left_out), scratch)


def _put_query(connection: sqlite3.Connection, entry: BankEntry) -> tuple[int, dict[str, int]]:
    """The keys of an entry's query and of its subtopics, made known where they were not."""
    query = intern(connection, "query", "query_id", [entry.query_id])[entry.query_id]
    if entry.query_text and not entry.subtopic_id:
        # a line of a subtopic carries the text of both together
        known = connection.execute("SELECT text FROM query WHERE query = ?", (query,)).fetchone()
        if not known[0]:
            put_queries(connection, [Query(entry.query_id, entry.query_text)])
    named = dict.fromkeys([entry.subtopic_id, *(item.subtopic_id for item in entry.items)])
    known = put_subtopics(
        connection, query, [Subtopic(subtopic_id) for subtopic_id in named if subtopic_id]
    )
    if entry.subtopic_id:
        # as with the query, a text that is known already is better than that of a bank
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
        (bank, query, subtopic, to_json(extra)),
    )


def _import_item(
    connection: sqlite3.Connection, bank: int, query: int, subtopic: int, item: Item, edit: Edit
) -> int:
    row = _adopt(connection, bank, query, item)
    if row is None:
        row = _new_item(connection, bank, query, item.item_id, item.kind)
    connection.execute(
        "UPDATE item SET subtopic = :subtopic, extra = :extra WHERE item = :item "
        "AND (subtopic <> :subtopic OR extra IS NOT :extra)",
        {"item": row, "subtopic": subtopic, "extra": to_json(item.extra)},
    )
    answers = json.dumps(list(item.answers), ensure_ascii=False)
    told = [(f"{row} {item.item_id}", _told(connection, row, item))]
    say(connection, item.kind, told, lambda key: key.partition(" ")[2])
    version = put_version(connection, row, item.text)
    last = connection.execute(
        "SELECT version, weight, answers, active FROM item_edit "
        "WHERE item = ? AND operation = 'import' "
        "ORDER BY edit DESC LIMIT 1",
        (row,),
    ).fetchone()
    if last != (version, item.weight, answers, 1):
        append_edit(connection, row, "import", version, item.weight, answers, True, edit)
    return row


def _told(connection: sqlite3.Connection, row: int, item: Item) -> str:
    """What a file says of an item; one that adds answers to those known says nothing else."""
    (known,) = connection.execute("SELECT answers FROM item WHERE item = ?", (row,)).fetchone()
    before = from_json(known)
    answers = before if before and {*before} <= {*item.answers} else item.answers
    told = f"{item.text}, weight {item.weight:g}"
    return f"{told}, answers {', '.join(answers)}" if answers else told


def add_items(
    connection: sqlite3.Connection, name: str, items: Iterable[Item], operation: str, edit: Edit
) -> list[Item]:
    """Add items to a bank beside those that it has; an item that it has is left as it is.

    Returns those that were added.
    """
    made = []
    bank = bank_key(connection, name)
    for item in items:
        query = intern(connection, "query", "query_id", [item.query_id])[item.query_id]
        subtopic = WHOLE_QUERY
        if item.subtopic_id:
            subtopic = put_subtopics(connection, query, [Subtopic(item.subtopic_id)])[
                item.subtopic_id
            ]
        row = _adopt(connection, bank, query, item)
        if row is None:
            row = _new_item(connection, bank, query, item.item_id, item.kind)
        elif _has_text(connection, row):
            continue
        connection.execute(
            "UPDATE item SET subtopic = ?, extra = ? WHERE item = ?",
            (subtopic, to_json(item.extra), row),
        )
        answers = json.dumps(list(item.answers), ensure_ascii=False)
        version = put_version(connection, row, item.text)
        append_edit(connection, row, operation, version, item.weight, answers, True, edit)
        made.append(item)
    return made


_IMPORTED = "EXISTS (SELECT 1 FROM item_edit e WHERE e.item = i.item AND e.operation = 'import')"
"""SQL: an item that came by an import."""


class Makers(NamedTuple):
    """How many active items a bank has, and how many each model made, as far as it is known."""

    items: int
    models: dict[str, int]


def makers(
    connection: sqlite3.Connection,
    bank: str,
    kind: str,
    among: Callable[[int], bool] = lambda _: True,
) -> Makers:
    """Which models made the items of one kind; a person's edits do not change who made an item.

    `among` tells of an item's key whether it is counted.
    """
    rows = connection.execute(
        # what a line says is said of the items that came with it, not of what people add to it
        f"SELECT i.item, i.extra, CASE WHEN {_IMPORTED} THEN l.extra END "
        "FROM item i JOIN bank b USING (bank) LEFT JOIN bank_line l "
        "ON (l.bank, l.query, l.subtopic) = (i.bank, i.query, i.subtopic) "
        "WHERE b.name = ? AND i.kind = ? AND i.active",
        (bank, kind),
    )
    said = Counter((own, of_line) for item, own, of_line in rows if among(item))
    found: Counter[str] = Counter()
    for (own, of_line), items in said.items():
        for maker in makers_of(from_json(own or "{}"), from_json(of_line or "{}")):
            found[maker] += items
    return Makers(said.total(), dict(found))


def _has_text(connection: sqlite3.Connection, item: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM item_version WHERE item = ? AND text IS NOT NULL", (item,)
    ).fetchone()
    return row is not None


def _adopt(connection: sqlite3.Connection, bank: int, query: int, item: Item) -> int | None:
    """The row of an item: in this bank, or one that grades brought along without a text."""
    found = connection.execute(
        "SELECT item, bank FROM item WHERE query = ? AND kind = ? AND item_id = ? AND (bank = ? "
        "OR EXISTS (SELECT 1 FROM item_version v WHERE v.item = item.item AND v.text IS NULL)) "
        "ORDER BY bank <> ? LIMIT 1",
        (query, item.kind, item.item_id, bank, bank),
    ).fetchone()
    if found is None:
        return None
    if found[1] != bank:
        connection.execute("UPDATE item SET bank = ? WHERE item = ?", (bank, found[0]))
    return int(found[0])


def _new_item(
    connection: sqlite3.Connection, bank: int, query: int, item_id: str, kind: str
) -> int:
    return insert(
        connection,
        "INSERT INTO item (query, bank, item_id, kind) VALUES (?, ?, ?, ?)",
        (query, bank, check_id(item_id), kind),
    )


def put_version(connection: sqlite3.Connection, item: int, text: str | None) -> int:
    """The key of an item's text; the text of an item known by its id alone is filled in."""
    text = None if text is None else kept(text)
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
    answers: str,
    active: bool,
    edit: Edit,
) -> None:
    """Append one edit and make its state the item's current one."""
    if "\\u0000" in answers:
        answers = json.dumps([kept(key) for key in from_json(answers)], ensure_ascii=False)
    connection.execute(
        "INSERT INTO item_edit (item, operation, version, weight, answers, active, author, "
        "reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (item, operation, version, weight, answers, int(active), *map(kept, edit)),
    )
    connection.execute(
        "UPDATE item SET version = ?, weight = ?, answers = ?, answer_key = ?, active = ? "
        "WHERE item = ?",
        (version, weight, answers, answer_key(connection, answers), int(active), item),
    )


def answer_key(connection: sqlite3.Connection, answers: str) -> int:
    """The key of known answers (a JSON list), in a row made for it where there was none."""
    found = connection.execute("SELECT answer_key FROM answer_key WHERE answers = ?", (answers,))
    if row := found.fetchone():
        return int(row[0])
    return insert(connection, "INSERT INTO answer_key (answers) VALUES (?)", (answers,))


def graded_versions(
    connection: sqlite3.Connection,
    query: int,
    query_id: str,
    items: Iterable[tuple[str, str]],
    edit: Edit,
) -> dict[tuple[str, str], int]:
    """The text version that imported grades of items, given as (kind, id), belong to.

    That is the text as last imported, whatever people edited since. Items that no bank holds yet
    are made without a text, which the import of their bank fills in.
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
            if subtopic_id := subtopic_of_item(query_id, item_id):
                subtopic = put_subtopics(connection, query, [Subtopic(subtopic_id)])[subtopic_id]
                connection.execute("UPDATE item SET subtopic = ? WHERE item = ?", (subtopic, item))
            version = known[kind, item_id] = put_version(connection, item, None)
            append_edit(connection, item, "import", version, 1.0, "[]", True, edit)
    return known


def put_query_items(connection: sqlite3.Connection, edit: Edit) -> None:
    """Make every query an item of direct relevance prompts, with the query's current text."""
    bank = bank_key(connection, QUERY_BANK)
    stale = connection.execute(
        "SELECT q.query, q.query_id, q.text, i.item FROM query q "
        "LEFT JOIN item i ON i.query = q.query AND i.bank = ? "
        "LEFT JOIN item_version v ON v.version = i.version "
        "WHERE q.text <> '' AND v.text IS NOT q.text",
        (bank,),
    ).fetchall()
    for query, query_id, text, item in stale:
        known = _new_item(connection, bank, query, query_id, "query") if item is None else item
        version = put_version(connection, known, text)
        append_edit(connection, known, "import", version, 1.0, "[]", True, edit)


def put_text_less_items(connection: sqlite3.Connection, edit: Edit) -> None:
    """Make every query without a text an item of direct relevance, too, where it is none."""
    bank = bank_key(connection, QUERY_BANK)
    rows = connection.execute(
        "SELECT q.query, q.query_id FROM query q WHERE q.text = '' AND NOT EXISTS "
        "(SELECT 1 FROM item i WHERE i.query = q.query AND i.bank = ?)",
        (bank,),
    ).fetchall()
    for query, query_id in rows:
        item = _new_item(connection, bank, query, query_id, "query")
        append_edit(
            connection, item, "import", put_version(connection, item, None), 1.0, "[]", True, edit
        )


def has_items_without_text(connection: sqlite3.Connection, name: str, kind: str) -> bool:
    """Whether a bank holds items that are known from grades alone, their text never imported."""
    found = connection.execute(
        "SELECT 1 FROM item i JOIN bank b USING (bank) JOIN item_version v USING (version) "
        "WHERE b.name = ? AND i.kind = ? AND i.active AND v.text IS NULL LIMIT 1",
        (name, kind),
    )
    return found.fetchone() is not None


def bank_names(connection: sqlite3.Connection, kind: str) -> list[str]:
    """The banks that hold active items of a kind."""
    rows = connection.execute(
        "SELECT name FROM bank WHERE bank IN (SELECT bank FROM item WHERE kind = ? AND active) "
        "ORDER BY bank",
        (kind,),
    )
    return [row[0] for row in rows]


def item_kinds(connection: sqlite3.Connection, bank: str | None = None) -> list[str]:
    """The kinds of item that a bank holds, or any bank: question, nugget, both or none."""
    rows = connection.execute(
        "SELECT DISTINCT kind FROM item JOIN bank b USING (bank) WHERE active AND kind <> 'query' "
        "AND (:bank IS NULL OR b.name = :bank) ORDER BY kind DESC",
        {"bank": bank},
    )
    return [row[0] for row in rows]


def read_bank(connection: sqlite3.Connection, name: str) -> Iterable[BankEntry]:
    """The active items of a bank, one entry per query or (query, subtopic), in order."""
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
    group: list[Item] = []
    head: tuple[str, str, str | None, str, str | None] | None = None
    for *key, item_id, text, kind, answers, weight, extra, imported in rows:
        if head is not None and tuple(key) != head:
            yield _entry(head, group)
            group = []
        head = (key[0], key[1], key[2], key[3], key[4])
        said = from_json(extra or "{}")
        if not imported and not makers_of(said, {}) and makers_of({}, from_json(key[4])):
            # what the line names is said of the items that came with it
            said[MODEL] = ""
        group.append(
            Item(
                item_id,
                head[0],
                text or "",
                kind,
                head[2],
                tuple(from_json(answers)),
                weight,
                said,
            )
        )
    if head is not None:
        yield _entry(head, group)


def _entry(head: tuple[str, str, str | None, str, str | None], items: list[Item]) -> BankEntry:
    query_id, query_text, subtopic_id, subtopic_text, line = head
    extra = from_json(line or "{}")
    text = extra.pop("query_text", query_text) if subtopic_id else query_text
    return BankEntry(query_id, tuple(items), text, subtopic_id, subtopic_text, extra)
