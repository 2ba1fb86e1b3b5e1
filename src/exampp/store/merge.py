"""Merge another collection into this one, table by table.

A consistent copy of the other collection is attached, and its keys are mapped to ours (`to_query`,
...). Rows of one side only are added. If values differ, ours stays; for an item edited on both
sides, a human edit wins over an import, then the newer edit. Every difference is reported as a
conflict. Merging again changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from exampp.store.bank import QUERY_BANK, Edit, put_query_items
from exampp.store.checking import find_problems
from exampp.store.connection import connect, snapshot
from exampp.store.grades import find_grader, graders, put_grader, reading_rules
from exampp.store.sql import Damaged

MOST_OTHERS = 10
"""Maximum number of databases attached in SQLite."""


Side = Literal["here", "there"]
"""The target of the merge, or another collection."""


class MergeCount(NamedTuple):
    """Number of added and completed records of one kind."""

    things: str
    added: int
    changed: int


class MergeConflict(NamedTuple):
    """A field with different values in two collections, and the side that wins.

    `here` is the value in the target, `there` the value in `other`.
    """

    thing: str
    id: str
    field: str
    here: str
    there: str
    kept: Side
    other: str


class OtherCollection(NamedTuple):
    """A collection to merge: its file, and the copy that is read."""

    file: Path
    copy: Path


def copy_collection(file: Path, copy: Path) -> OtherCollection:
    """Copy a collection; the file is only read.

    Raises InputError if the file is not a collection, has another schema, or is damaged.
    """
    snapshot(file, copy)
    with closing(connect(copy, called=file)) as opened:
        if problems := find_problems(opened):
            raise Damaged(str(file), problems[0], "exampp check finds problems")
    return OtherCollection(file, copy)


@contextmanager
def attached(connection: sqlite3.Connection, others: Sequence[OtherCollection]) -> Iterator[None]:
    """Attach the copies to the connection within the block, as `other0`, `other1`, ..."""
    names = [_schema(number) for number in range(len(others))]
    try:
        for name, other in zip(names, others, strict=True):
            connection.execute(f"ATTACH DATABASE ? AS {name}", (str(other.copy),))
        yield
    finally:
        known = {row[1] for row in connection.execute("PRAGMA database_list").fetchall()}
        for name in known.intersection(names):
            connection.execute(f"DETACH DATABASE {name}")


def _schema(number: int) -> str:
    return f"other{number}"


def merge_attached(
    connection: sqlite3.Connection, number: int, other: OtherCollection, at: str
) -> tuple[list[MergeCount], list[MergeConflict]]:
    """Merge the `number`-th attached collection, in the caller's transaction."""
    step = MergeStep(connection, _schema(number))
    step.run("CREATE TEMP TABLE conflict (thing TEXT, id TEXT, field TEXT, here, there, kept TEXT)")
    with closing(connect(other.copy)) as theirs:
        _graders(step, theirs)
    for table in ("query", "subtopic"):
        step.union(_UNIONS[table])
    _passages(step)
    step.union(_UNIONS["pool"])
    _rankings(step)
    for table in ("judgment", "bank", "answer_key", "bank_line"):
        step.union(_UNIONS[table])
    _items(step)
    _item_texts(step)
    _edits(step)
    _splits(step)
    step.append("generation", "generated replies")
    _grades(step)
    step.union(_UNIONS["sheet"])
    step.append("decision", "decisions")
    step.append("sample_plan", "plans of samples", same=("digest",))
    step.follow("sample_unit")
    step.append("sample_judgment", "judgments of samples")
    _runs(step)
    _follow_queries(connection, Edit("exampp", "merge", at))
    return step.end(str(other.file))


def _follow_queries(connection: sqlite3.Connection, edit: Edit) -> None:
    """Update items of direct relevance after changes of query texts."""
    stale = connection.execute(
        "SELECT 1 FROM item i JOIN bank b USING (bank) JOIN query q ON q.query = i.query "
        "JOIN item_version v USING (version) WHERE b.name = ? AND v.text IS NOT q.text LIMIT 1",
        (QUERY_BANK,),
    )
    if stale.fetchone() is not None:
        put_query_items(connection, edit)


# ---- the union of a table ------------------------------------------------------------------------

_QUERY = "(SELECT query_id FROM main.query WHERE query = {row}.query)"
_PASSAGE = "(SELECT passage_id FROM main.passage WHERE passage = {row}.passage)"
_QUERY_PASSAGE = f"{_QUERY} || ' ' || {_PASSAGE}"
_ITEM = (
    "(SELECT q.query_id || ' ' || i.item_id FROM main.item i JOIN main.query q USING (query) "
    "WHERE i.item = {row}.item)"
)
_EMPTY, _NULL, _NEVER = "''", "NULL", ""
"""SQL: the value that means unknown."""
_EXTRA = ("extra", "other fields", _NULL)


class _Union(NamedTuple):
    """A table to unite by `keys`: our rows, plus rows that only the other side has.

    `values` are (column, readable name, value if unknown); our unknown values are filled in. Counts
    call the rows `things`, conflicts a `thing` with a `label`; other tables refer to keys of a
    `mapped` table.
    """

    table: str
    keys: tuple[str, ...]
    things: str = ""
    thing: str = ""
    label: str = ""
    values: tuple[tuple[str, str, str], ...] = ()
    mapped: bool = False


_UNIONS = {
    one.table: one
    for one in (
        _Union(
            "query",
            ("query_id",),
            "queries",
            "query",
            "{row}.query_id",
            (("text", "text", _EMPTY), ("answerable", "answerable", _NULL)),
            mapped=True,
        ),
        _Union(
            "subtopic",
            ("query", "subtopic_id"),
            "subtopics",
            "subtopic",
            f"{_QUERY} || '/' || {{row}}.subtopic_id",
            (("text", "text", _EMPTY),),
            mapped=True,
        ),
        _Union(
            "pool",
            ("query", "passage"),
            "pooled passages",
            "pooled passage",
            _QUERY_PASSAGE,
            (_EXTRA,),
        ),
        _Union(
            "judgment",
            ("query", "subtopic", "passage"),
            "judgments",
            "judgment",
            _QUERY_PASSAGE,
            (("relevance", "relevance", _NEVER), _EXTRA),
        ),
        _Union("system", ("name",), "systems", mapped=True),
        _Union("bank", ("name",), "banks", mapped=True),
        _Union("answer_key", ("answers",), mapped=True),
        _Union(
            "bank_line",
            ("bank", "query", "subtopic"),
            "lines of banks",
            "line of a bank",
            f"(SELECT name FROM main.bank WHERE bank = {{row}}.bank) || ' ' || {_QUERY}",
            (_EXTRA,),
        ),
        _Union(
            "sheet",
            ("query", "passage", "grader"),
            "graded passages",
            "graded passage",
            _QUERY_PASSAGE,
            (("items", "other fields", _NULL), _EXTRA),
        ),
    )
}
_REFERENCES = {
    name: f"to_{name}"
    for name in (
        *("query", "subtopic", "passage", "system", "bank", "grader", "item", "answer_key"),
        *("item_version", "passage_version", "generation"),
    )
} | {"version": "to_item_version", "plan": "to_sample_plan"}
"""Foreign key columns, and the scratch tables that map their keys to ours."""
_WHOLE_QUERY = " UNION ALL SELECT 0, 0"
_ZERO = ("subtopic", "answer_key")
"""Tables in which key 0 means none."""


@dataclass
class MergeStep:
    """The merge of an attached database, `schema`, in the caller's transaction.

    In SQL, `{o}` is the schema. `counts` are [added, changed] by kind of record.
    """

    connection: sqlite3.Connection
    schema: str
    counts: dict[str, list[int]] = field(default_factory=dict)

    def run(self, sql: str) -> int:
        """Execute a statement; return the number of written rows."""
        return self.connection.execute(sql.format(o=self.schema)).rowcount

    def one(self, sql: str) -> int:
        """Return the number selected by a query."""
        return int(self.connection.execute(sql.format(o=self.schema)).fetchone()[0] or 0)

    def put(self, things: str, table: str, sql: str) -> None:
        """Insert or complete rows of our table, and count them."""
        before = self.one(f"SELECT count(*) FROM main.{table}")
        written = self.run(sql)
        added = self.one(f"SELECT count(*) FROM main.{table}") - before
        self.count(things, added, written - added)

    def count(self, things: str, added: int, changed: int = 0) -> None:
        """Add to the counts of a kind of record."""
        known = self.counts.setdefault(things, [0, 0]) if things else [0, 0]
        known[0] += added
        known[1] += changed

    def scratch(self, name: str, columns: str, sql: str) -> None:
        """Create a scratch table from `sql`; `end` drops it."""
        self.run(f"CREATE TEMP TABLE {name} ({columns})")
        self.run(f"INSERT INTO {name} {sql}")

    def map(self, name: str, sql: str) -> None:
        """Create the map of (their key, our key) from `sql`."""
        self.scratch(f"to_{name}", "theirs INTEGER PRIMARY KEY, mine INTEGER NOT NULL", sql)

    def conflict(self, thing: str, sql: str, winner: str = "'here'") -> None:
        """Record the conflicts (id, field, here, there) selected by `sql`.

        `winner` is SQL for the winning side.
        """
        self.run(
            f"INSERT INTO conflict SELECT '{thing}', id, field, here, there, {winner} FROM ({sql})"
        )

    def end(self, other: str) -> tuple[list[MergeCount], list[MergeConflict]]:
        """Return counts and conflicts; drop all scratch tables."""
        rows = self.connection.execute("SELECT * FROM conflict ORDER BY rowid").fetchall()
        conflicts = [
            MergeConflict(thing, str(name), what, _text(here), _text(there), winner, other)
            for thing, name, what, here, there, winner in rows
        ]
        tables = "SELECT name FROM temp.sqlite_master WHERE type = 'table'"
        for (name,) in self.connection.execute(tables).fetchall():
            self.run(f"DROP TABLE temp.{name}")
        return [MergeCount(things, *both) for things, both in self.counts.items()], conflicts

    def columns(self, table: str) -> tuple[str, list[str]]:
        """Return the integer key of a table ("" without one), and its other columns."""
        rows = self.connection.execute(f"PRAGMA main.table_info({table})").fetchall()
        keys = [name for _, name, _, _, _, key in rows if key]
        own = keys[0] if len(keys) == 1 else ""
        return own, [name for _, name, *_ in rows if name != own]

    def theirs(self, table: str) -> str:
        """Return SQL for their rows with our keys; `nr` is the order."""
        own, columns = self.columns(table)
        # sample plans name grader and bank in text columns
        rows = self.connection.execute(f"PRAGMA main.table_info({table})").fetchall()
        keys = {name for _, name, kind, *_ in rows if kind == "INTEGER"}
        mapped = [name for name in columns if name in _REFERENCES and name in keys]
        selected = (
            f"{name}_.mine AS {name}" if name in mapped else f"t.{name}" for name in columns
        )
        joined = (
            f" JOIN {_REFERENCES[name]} {name}_ ON {name}_.theirs = t.{name}" for name in mapped
        )
        order = f"t.{own}" if own else "0"
        return (
            f"(SELECT {', '.join(selected)}, {order} AS nr FROM {{o}}.{table} t{''.join(joined)})"
        )

    def union(self, table: _Union) -> None:
        """Add rows and values that only the other side has."""
        own, columns = self.columns(table.table)
        theirs, known = self.theirs(table.table), " AND ".join(f"m.{k} = t.{k}" for k in table.keys)
        label = table.label.format(row="m")
        for column, column_name, empty in table.values:
            self.conflict(
                table.thing,
                f"SELECT {label} AS id, '{column_name}' AS field, m.{column} AS here, "
                f"t.{column} AS there FROM {theirs} t JOIN main.{table.table} m ON {known} "
                f"WHERE {_differ(column, empty, 'm')}",
            )
        filled = [(column, empty) for column, _, empty in table.values if empty]
        update = "NOTHING"
        if filled:
            sets = (f"{one} = iif({one} IS {no}, excluded.{one}, {one})" for one, no in filled)
            unknown = (f"({one} IS {no} AND excluded.{one} IS NOT {no})" for one, no in filled)
            update = f"UPDATE SET {', '.join(sets)} WHERE {' OR '.join(unknown)}"
        names = ", ".join(columns)
        self.put(
            table.things,
            table.table,
            f"INSERT INTO main.{table.table} ({names}) SELECT {names} FROM {theirs} WHERE true "
            f"ORDER BY nr ON CONFLICT DO {update}",
        )
        if table.mapped:
            none = _WHOLE_QUERY if own in _ZERO else ""
            same = f"FROM {theirs} t JOIN main.{table.table} m ON {known}"
            self.map(own, f"SELECT t.nr, m.{own} {same}{none}")

    def append(self, table: str, things: str, same: Sequence[str] = ()) -> None:
        """Append rows of the other side to an append-only table.

        Rows match if all columns, or the columns `same`, are equal; the n-th equal row here matches
        the n-th there.
        """
        own, columns = self.columns(table)
        same, names = same or columns, ", ".join(columns)
        nth = f"row_number() OVER (PARTITION BY {', '.join(same)} ORDER BY nr)"
        ours = f"(SELECT *, {own} AS nr FROM main.{table})"
        for name, rows in (("their", self.theirs(table)), ("our", ours)):
            self.scratch(
                f"{name}_{table}",
                f"nr INTEGER PRIMARY KEY, nth, {names}",
                f"SELECT nr, {nth}, {names} FROM {rows}",
            )
        self.run(f"CREATE INDEX temp.our_{table}_same ON our_{table} ({', '.join(same[:3])})")
        equal = " AND ".join(f"m.{name} IS t.{name}" for name in (*same, "nth"))
        newest = self.one(f"SELECT max({own}) FROM main.{table}")
        self.map(
            table,
            f"SELECT nr, {newest} + row_number() OVER (ORDER BY nr) FROM their_{table} t "
            f"WHERE NOT EXISTS (SELECT 1 FROM our_{table} m WHERE {equal})",
        )
        self.put(
            things,
            table,
            f"INSERT INTO main.{table} ({own}, {names}) SELECT n.mine, {names} "
            f"FROM their_{table} t JOIN to_{table} n ON n.theirs = t.nr ORDER BY nr",
        )

    def follow(self, table: str) -> None:
        """Add the rows that depend on appended rows."""
        names = ", ".join(self.columns(table)[1])
        self.run(
            f"INSERT OR IGNORE INTO main.{table} ({names}) SELECT {names} FROM "
            f"{self.theirs(table)} ORDER BY nr"
        )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _differ(column: str, empty: str, ours: str) -> str:
    """Return SQL that is true if `ours` and row `t` have different known values."""
    differ = f"{ours}.{column} IS NOT t.{column}"
    known = f" AND {ours}.{column} IS NOT {empty} AND t.{column} IS NOT {empty}"
    return differ + known if empty else differ


# ---- passages and rankings -----------------------------------------------------------------------

_NEWER = """
SELECT p.passage, (SELECT count(*) FROM main.passage_version v WHERE v.passage = p.passage
    AND v.hash = tv.hash) AS known_here, (SELECT count(*) FROM {o}.passage_version v
    WHERE v.passage = t.passage AND v.hash = pv.hash) AS known_there, pv.text, tv.text, tv.hash
FROM {o}.passage t JOIN to_passage m ON m.theirs = t.passage
JOIN main.passage p ON p.passage = m.mine JOIN {o}.passage_version tv ON tv.version = t.version
LEFT JOIN main.passage_version pv ON pv.version = p.version
WHERE pv.hash IS NOT tv.hash
"""


def _passages(step: MergeStep) -> None:
    """Merge passages and texts; a text that the other side had earlier is older."""
    step.put(
        "passages",
        "passage",
        "INSERT INTO main.passage (passage_id) SELECT passage_id FROM {o}.passage WHERE true "
        "ORDER BY passage ON CONFLICT DO NOTHING",
    )
    step.map(
        "passage",
        "SELECT t.passage, p.passage FROM {o}.passage t JOIN main.passage p USING (passage_id)",
    )
    columns = "passage INTEGER PRIMARY KEY, known_here, known_there, here, there, hash"
    step.scratch("reworded", columns, _NEWER)
    step.conflict(
        "passage",
        f"SELECT {_PASSAGE.format(row='reworded')} AS id, 'text' AS field, here, there "
        "FROM reworded WHERE here IS NOT NULL AND known_here = known_there",
    )
    step.run("DELETE FROM reworded WHERE here IS NOT NULL AND known_here >= known_there")
    step.union(_Union("passage_version", ("passage", "hash"), "texts of passages"))
    step.map(
        "passage_version",
        f"SELECT t.nr, v.version FROM {step.theirs('passage_version')} t "
        "JOIN main.passage_version v ON v.passage = t.passage AND v.hash = t.hash",
    )
    step.run(
        "UPDATE main.passage SET version = v.version FROM temp.reworded r "
        "JOIN main.passage_version v ON v.passage = r.passage AND v.hash = r.hash "
        "WHERE passage.passage = r.passage"
    )
    step.count("passages", 0, step.one("SELECT count(*) FROM reworded WHERE here IS NOT NULL"))
    both = "{o}.passage t JOIN to_passage m ON m.theirs = t.passage"
    reworded = "p.passage IN (SELECT passage FROM reworded)"
    step.conflict(
        "passage",
        "SELECT p.passage_id AS id, 'other fields' AS field, p.extra AS here, t.extra AS there "
        f"FROM {both} JOIN main.passage p ON p.passage = m.mine "
        f"WHERE {_differ('extra', _NULL, 'p')} AND NOT {reworded}",
    )
    step.run(
        f"UPDATE main.passage AS p SET extra = t.extra FROM {both} WHERE p.passage = m.mine "
        f"AND t.extra IS NOT NULL AND p.extra IS NOT t.extra AND (p.extra IS NULL OR {reworded})"
    )


_SHOWN = (
    "(SELECT group_concat(passage_id, ' ') FROM (SELECT p.passage_id FROM {table} r "
    "JOIN main.passage p USING (passage) WHERE r.query = d.query AND r.system = d.system "
    "ORDER BY r.subtopic, r.rank, r.score DESC, 1))"
)


def _rankings(step: MergeStep) -> None:
    """Merge rankings; the ranking of a system for a query is one value."""
    step.union(_UNIONS["system"])
    columns = "query, subtopic, system, passage, rank, score, extra"
    step.scratch(
        "ranked",
        f"{columns}, PRIMARY KEY (query, system, subtopic, passage)",
        f"SELECT {columns} FROM {step.theirs('ranking')} ORDER BY nr",
    )
    same = " AND ".join(f"r.{name} IS t.{name}" for name in columns.split(", "))
    step.scratch(
        "both_ranked",
        "query, system, theirs, ours, same, PRIMARY KEY (query, system)",
        # count ours once: the index by query and system covers whole queries
        "SELECT t.query, t.system, count(*), m.ours, count(r.ranking) FROM ranked t "
        "JOIN (SELECT query, system, count(*) AS ours FROM main.ranking GROUP BY 1, 2) m "
        "ON m.query = t.query AND m.system = t.system LEFT JOIN main.ranking r "
        f"ON {same} GROUP BY 1, 2",
    )
    here, there = (_SHOWN.format(table=table) for table in ("main.ranking", "ranked"))
    step.conflict(
        "ranking",
        "SELECT (SELECT name FROM main.system WHERE system = d.system) || ' ' || "
        f"{_QUERY.format(row='d')} AS id, 'passages, ranks and scores' AS field, {here} AS here, "
        f"{there} AS there FROM both_ranked d WHERE same < theirs OR same < ours",
    )
    fresh = "WHERE (query, system) NOT IN (SELECT query, system FROM both_ranked)"
    added = step.one(f"SELECT count(*) FROM (SELECT DISTINCT query, system FROM ranked {fresh})")
    step.run(
        f"INSERT INTO main.ranking ({columns}) SELECT {columns} FROM ranked {fresh} ORDER BY rowid"
    )
    step.count("rankings", added)


# ---- items and the log of their edits ------------------------------------------------------------

_SAME_ITEM = "m.query = t.query AND m.kind = t.kind AND m.item_id = t.item_id"
_NOT_IN_BANK = f"NOT EXISTS (SELECT 1 FROM {{table}} WHERE {_SAME_ITEM} AND m.bank = t.bank)"
_TEXTLESS = (
    "EXISTS (SELECT 1 FROM {schema}.item_version v WHERE v.item = {item} AND v.text IS NULL)"
)
"""SQL: an item known only from grades, without a text."""
_ITEM_COLUMNS = "query, bank, subtopic, item_id, kind, extra"


def _items(step: MergeStep) -> None:
    """Merge items; they match by query, bank, kind and id.

    An item without a text matches the item with this id and a text in any bank.
    """
    theirs = (
        "(SELECT i.item, q.mine AS query, b.mine AS bank, f.mine AS subtopic, i.item_id, i.kind, "
        "i.extra FROM {o}.item i JOIN to_query q ON q.theirs = i.query "
        "JOIN to_bank b ON b.theirs = i.bank JOIN to_subtopic f ON f.theirs = i.subtopic)"
    )
    step.scratch(
        "their_item",
        f"item INTEGER PRIMARY KEY, {_ITEM_COLUMNS}, textless",
        f"SELECT t.item, {_ITEM_COLUMNS}, {_TEXTLESS.format(schema='{o}', item='t.item')} "
        f"FROM {theirs} t",
    )
    step.run("CREATE INDEX temp.their_item_id ON their_item (query, kind, item_id)")
    step.run(
        f"UPDATE their_item AS t SET bank = (SELECT min(m.bank) FROM main.item m "
        f"WHERE {_SAME_ITEM}) WHERE textless AND EXISTS (SELECT 1 FROM main.item m "
        f"WHERE {_SAME_ITEM}) AND {_NOT_IN_BANK.format(table='main.item m')}"
    )
    step.run(
        "UPDATE main.item AS m SET bank = (SELECT min(t.bank) FROM their_item t "
        f"WHERE {_SAME_ITEM}) WHERE {_TEXTLESS.format(schema='main', item='m.item')} "
        f"AND EXISTS (SELECT 1 FROM their_item t WHERE {_SAME_ITEM}) "
        f"AND {_NOT_IN_BANK.format(table='their_item t')} AND NOT EXISTS (SELECT 1 "
        "FROM main.item o WHERE o.query = m.query AND o.kind = m.kind AND o.item_id = m.item_id "
        "AND o.item <> m.item)"
    )
    # SQLite 3.37 applies the default of a REAL column only to the first of many rows
    step.put(
        "items",
        "item",
        f"INSERT INTO main.item ({_ITEM_COLUMNS}, weight) SELECT {_ITEM_COLUMNS}, 1.0 "
        "FROM their_item WHERE true ORDER BY item ON CONFLICT DO NOTHING",
    )
    step.map(
        "item",
        f"SELECT t.item, m.item FROM their_item t JOIN main.item m ON {_SAME_ITEM} "
        "AND m.bank = t.bank",
    )


_IMPORTED = (
    "coalesce((SELECT e.version FROM {schema}.item_edit e WHERE e.item = {item} "
    "AND e.operation = 'import' ORDER BY e.edit DESC LIMIT 1), "
    "(SELECT version FROM {schema}.item WHERE item = {item}))"
)
"""SQL: the version to which grades of an item without a text belong."""


def _item_texts(step: MergeStep) -> None:
    imported = _IMPORTED.format(schema="{o}", item="t.theirs")
    step.run(
        "UPDATE main.item_version AS m SET text = (SELECT v.text FROM {o}.item_version v "
        f"WHERE v.version = {imported}) FROM to_item t WHERE m.item = t.mine AND m.text IS NULL"
    )
    theirs = step.theirs("item_version")
    step.put(
        "texts of items",
        "item_version",
        f"INSERT INTO main.item_version (item, text) SELECT item, text FROM {theirs} "
        "WHERE text IS NOT NULL OR item NOT IN (SELECT item FROM main.item_version) "
        "ORDER BY nr ON CONFLICT DO NOTHING",
    )
    ours = _IMPORTED.format(schema="main", item="t.item")
    step.map(
        "item_version",
        f"SELECT t.nr, coalesce(v.version, {ours}) FROM {theirs} t "
        "LEFT JOIN main.item_version v ON v.item = t.item AND v.text IS t.text",
    )


_FIELDS = {
    "text": "(SELECT text FROM main.item_version WHERE version = {row}.version)",
    "weight": "{row}.weight",
    "key": "{row}.answers",
    "active": "CASE {row}.active WHEN 1 THEN 'yes' ELSE 'no' END",
}
_STATE = "version, weight, answers, active"
_EDIT = f"item, operation, {_STATE}"
_LOGGED = f"{_EDIT}, author, reason, at"
_SAME_EDIT = f"{_EDIT}, who, nth"
# imports are compared by content, regardless of who imported the file
_WHO = "CASE operation WHEN 'import' THEN '' ELSE json_array(author, reason, at) END"
_LATER = (
    "({row}.operation <> 'import', {row}.at, {row}.author, "
    "(SELECT text FROM main.item_version WHERE version = {row}.version), {row}.answers, "
    "{row}.weight, {row}.active)"
)
"""SQL: the sort key that decides which of two edits wins."""


def _numbered(step: MergeStep, name: str, log: str) -> None:
    """Create a scratch table of edits, numbered among equal ones."""
    step.scratch(
        name,
        f"edit INTEGER PRIMARY KEY, {_LOGGED}, who, nth",
        f"SELECT edit, {_LOGGED}, who, row_number() OVER (PARTITION BY {_EDIT}, who ORDER BY edit) "
        f"FROM (SELECT nr AS edit, {_LOGGED}, {_WHO} AS who FROM {log})",
    )
    step.run(f"CREATE INDEX temp.{name}_same ON {name} ({_SAME_EDIT})")


_OUR_LOG = (
    "(SELECT *, edit AS nr FROM main.item_edit WHERE item IN (SELECT mine FROM temp.to_item))"
)


def _edits(step: MergeStep) -> None:
    """Merge the logs; for an item edited on both sides, one of the last edits wins."""
    _numbered(step, "our_edit", _OUR_LOG)
    _numbered(step, "their_edit", step.theirs("item_edit"))
    for side, other in (("our", "their"), ("their", "our")):
        step.scratch(
            f"{side}_new",
            "edit INTEGER PRIMARY KEY, item",
            f"SELECT edit, item FROM {side}_edit "
            f"WHERE ({_SAME_EDIT}) NOT IN (SELECT {_SAME_EDIT} FROM {other}_edit)",
        )
        step.scratch(
            f"{side}_last",
            f"edit INTEGER PRIMARY KEY, {_LOGGED}",
            f"SELECT edit, {_LOGGED} FROM {side}_edit WHERE edit IN "
            f"(SELECT max(edit) FROM {side}_edit GROUP BY item)",
        )
        step.run(f"CREATE INDEX temp.{side}_last_item ON {side}_last (item)")
    # items edited there, their state, and whether they were edited here too
    step.scratch(
        "edited",
        "item INTEGER PRIMARY KEY, both, theirs, edit",
        "SELECT item, h.edit IS NOT NULL AND both, "
        f"NOT both OR h.edit IS NULL OR {_LATER.format(row='t')} > {_LATER.format(row='h')}, "
        "t.edit FROM (SELECT DISTINCT item, item IN (SELECT item FROM our_new) AS both "
        "FROM their_new) JOIN their_last t USING (item) LEFT JOIN our_last h USING (item)",
    )
    pair = "edited d JOIN our_last h USING (item) JOIN their_last t USING (item)"
    known = "(SELECT 1 FROM main.item i WHERE i.item = d.item AND i.kind <> 'query')"
    for label, what in _FIELDS.items():
        here, there = what.format(row="h"), what.format(row="t")
        step.conflict(
            "item",
            f"SELECT {_ITEM.format(row='d')} AS id, '{label}' AS field, {here} AS here, "
            f"{there} AS there, d.theirs AS won FROM {pair} WHERE d.both "
            f"AND {here} IS NOT {there} AND EXISTS {known}",
            "CASE won WHEN 1 THEN 'there' ELSE 'here' END",
        )
    step.scratch(
        "standing",
        "item INTEGER PRIMARY KEY, operation, version, weight, answers, active, author, reason, at",
        f"SELECT {_LOGGED} FROM their_last JOIN edited d USING (item) WHERE d.theirs "
        f"UNION ALL SELECT {_LOGGED} FROM our_last JOIN edited d USING (item) WHERE NOT d.theirs",
    )
    appended = f"INSERT INTO main.item_edit ({_LOGGED}) SELECT {_LOGGED} FROM "
    new = "their_edit WHERE edit IN (SELECT edit FROM their_new) ORDER BY edit"
    # the last edit must equal the state of the item: append the winning state if it does not
    again = (
        f"standing s WHERE ({_STATE}) IS NOT (SELECT {_STATE} FROM main.item_edit e "
        "WHERE e.item = s.item ORDER BY e.edit DESC LIMIT 1)"
    )
    for rows in (new, again):
        step.put("edits of items", "item_edit", appended + rows)
    before = step.one("SELECT count(*) FROM main.item WHERE version IS NOT NULL")
    columns = ", ".join(f"s.{name}" for name in _STATE.split(", "))
    written = step.run(
        f"UPDATE main.item AS i SET ({_STATE}, answer_key) = ({columns}, "
        "(SELECT answer_key FROM main.answer_key k WHERE k.answers = s.answers)) "
        f"FROM temp.standing s WHERE s.item = i.item AND ({columns}) "
        "IS NOT (i.version, i.weight, i.answers, i.active)"
    )
    texts = step.one("SELECT count(*) FROM main.item WHERE version IS NOT NULL") - before
    step.count("items", 0, written - texts)
    _other_fields(step)


def _other_fields(step: MergeStep) -> None:
    """Merge the subtopic and other fields of items, which are not in the log."""
    both = "to_item m JOIN their_item t ON t.item = m.theirs JOIN main.item i ON i.item = m.mine"
    from_theirs = "i.item IN (SELECT item FROM edited WHERE theirs)"
    for column, empty, label in (("subtopic", "0", "subtopic"), ("extra", _NULL, "other fields")):
        step.conflict(
            "item",
            f"SELECT {_ITEM.format(row='i')} AS id, '{label}' AS field, i.{column} AS here, "
            f"t.{column} AS there FROM {both} "
            f"WHERE {_differ(column, empty, 'i')} AND NOT {from_theirs}",
        )
        step.run(
            f"UPDATE main.item AS i SET {column} = t.{column} FROM temp.to_item m "
            "JOIN temp.their_item t ON t.item = m.theirs WHERE i.item = m.mine "
            f"AND t.{column} IS NOT {empty} AND i.{column} IS NOT t.{column} "
            f"AND (i.{column} IS {empty} OR {from_theirs})"
        )


_SAME_SPLIT = "m.bank = b.mine AND m.salt = t.salt AND m.commitment = t.commitment AND m.at = t.at"


def _splits(step: MergeStep) -> None:
    """Add the splits of the other side."""
    step.conflict(
        "split",
        "SELECT (SELECT name FROM main.bank WHERE bank = b.mine) AS id, 'commitment' AS field, "
        "(SELECT m.commitment FROM main.split m WHERE m.bank = b.mine ORDER BY m.split DESC) "
        "AS here, t.commitment AS there FROM {o}.split t JOIN to_bank b ON b.theirs = t.bank "
        f"WHERE NOT EXISTS (SELECT 1 FROM main.split m WHERE {_SAME_SPLIT})",
    )


# ---- graders, grades and runs --------------------------------------------------------------------


def _graders(step: MergeStep, theirs: sqlite3.Connection) -> None:
    """Add the graders of the other collection and map equal ones.

    Must run before items are merged: grades without an answer key, by a grader that uses answer
    keys on the other side, count as made with the current keys.
    """
    mapped = []
    for stored in graders(theirs):
        ours = find_grader(step.connection, stored.identity)
        known = None if ours is None else reading_rules(step.connection, ours)
        rules = reading_rules(theirs, stored.key)
        if known and rules and known != rules:
            step.connection.execute(
                "INSERT INTO conflict VALUES ('grader', ?, 'rules of reading', ?, ?, 'here')",
                (stored.identity.name, str(known), str(rules)),
            )
        step.count("graders", int(ours is None), 0)
        mapped.append((stored.key, put_grader(step.connection, stored.identity, known or rules)))
    step.run("CREATE TEMP TABLE to_grader (theirs INTEGER PRIMARY KEY, mine INTEGER NOT NULL)")
    step.connection.executemany("INSERT INTO to_grader VALUES (?, ?)", mapped)


_CELL = "grader, item_version, passage_version, answer_key"
_GRADE = ("state", "rating", "reply", "rule", "confidence", "detail")
_THEIR_GRADES = """
(SELECT t.grader, t.item_version, t.passage_version, CASE WHEN t.answer_key = 0 AND m.rules IS NOT
    NULL THEN (SELECT i.answer_key FROM main.item_version v JOIN main.item i USING (item)
    WHERE v.version = t.item_version) ELSE t.answer_key END AS answer_key,
    state, rating, reply, rule, confidence, detail
FROM {theirs} t JOIN main.grader m ON m.grader = t.grader)
"""
_BETTER = (
    "({one}.state = 0 AND {other}.state <> 0 OR {one}.reply IS NOT NULL AND {other}.reply IS NULL "
    "AND ({one}.state = 0) = ({other}.state = 0) AND {one}.rating IS {other}.rating)"
)
"""SQL: a grade wins over a failure; of two equal grades, the one with a reply wins."""
_CELL_LABEL = (
    "(SELECT model FROM main.grader WHERE grader = m.grader) || ' ' || "
    f"(SELECT {_ITEM.format(row='v')} FROM main.item_version v WHERE v.version = m.item_version) "
    "|| ' ' || (SELECT p.passage_id FROM main.passage_version v JOIN main.passage p "
    "USING (passage) WHERE v.version = m.passage_version)"
)
_DIFFERING = (
    "CASE WHEN m.rating IS NOT t.rating THEN {} WHEN m.reply IS NOT t.reply THEN {} ELSE {} END"
)
"""SQL: the first differing field of two grades."""


def _grades(step: MergeStep) -> None:
    """Merge grades: a grade wins over a failure; of different grades ours stays."""
    theirs = _THEIR_GRADES.format(theirs=step.theirs("grade"))
    same = " AND ".join(f"m.{name} = t.{name}" for name in _CELL.split(", "))
    better, worse = _BETTER.format(one="t", other="m"), _BETTER.format(one="m", other="t")
    differ = " OR ".join(f"m.{name} IS NOT t.{name}" for name in _GRADE)
    here, there = (
        _DIFFERING.format(
            f"CASE {row}.state WHEN 0 THEN {row}.rating ELSE 'none: ' || {row}.rule END",
            f"{row}.reply",
            f"json_array({row}.rule, {row}.confidence, {row}.detail)",
        )
        for row in "mt"
    )
    differing = _DIFFERING.format("'rating'", "'reply'", "'other fields'")
    step.conflict(
        "grade",
        f"SELECT {_CELL_LABEL} AS id, {differing} AS field, {here} AS here, {there} AS there "
        f"FROM {theirs} t JOIN main.grade m ON {same} WHERE ({differ}) AND NOT {better} "
        f"AND NOT {worse}",
    )
    columns = f"{_CELL}, {', '.join(_GRADE)}"
    step.put(
        "grades",
        "grade",
        f"INSERT INTO main.grade ({columns}) SELECT {columns} FROM {theirs} WHERE true "
        f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _GRADE)} "
        f"WHERE {_BETTER.format(one='excluded', other='grade')}",
    )


def _runs(step: MergeStep) -> None:
    """Merge runs, identified by grader and start; a copy may have part of a run."""
    _, columns = step.columns("run")
    same = "m.grader = t.grader AND m.started = t.started"
    spent = ", ".join(f"{name} = t.{name}" for name in columns[2:])
    theirs, names = step.theirs("run"), ", ".join(columns)
    longer = step.run(
        f"UPDATE main.run AS m SET {spent} FROM {theirs} t WHERE {same} AND t.seconds > m.seconds"
    )
    step.count("runs", 0, longer)
    step.put(
        "runs",
        "run",
        f"INSERT INTO main.run ({names}) SELECT {names} FROM {theirs} t "
        f"WHERE NOT EXISTS (SELECT 1 FROM main.run m WHERE {same}) ORDER BY nr",
    )
