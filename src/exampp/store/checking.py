"""Find damage and impossible values in a collection.

`find_problems` reads the whole file: the check of SQLite, references, value rules, hashes of texts
and graders, and checksums of all tables. `refuse_unsound` looks for values that evaluation cannot
use; it is fast enough to run before every evaluation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records import State
from exampp.records.graders import ITEM_KINDS, MOST_RATINGS
from exampp.records.ids import text_hash
from exampp.store.connection import file_of
from exampp.store.grades import graders
from exampp.store.sql import Damaged, GuardedConnection, mismatches, tables_of

MOST_PROBLEMS = 20
"""Maximum number of reported rows per table and rule."""
_FINITE = "{0} BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"
_FLAG = "{0} IN (0, 1)"
_PERHAPS = "{0} IS NULL OR {0} IN (0, 1)"
_TIME = "julianday({0}) IS NOT NULL"
_JSON = "{0} IS NULL OR json_valid({0})"
_POSITIVE = "{0} >= 0"
_WHOLE = f"abs({{0}}) < {2**31}"
_RATING = f"{{0}} IS NULL OR {{0}} BETWEEN -{MOST_RATINGS} AND {MOST_RATINGS}"
_WEIGHT = "{0} BETWEEN -1e9 AND 1e9"
_KIND = f"{{0}} IN {ITEM_KINDS}"


_WORDS = {
    _FINITE: "is not a finite number",
    _FLAG: "is neither 0 nor 1",
    _PERHAPS: "is neither 0, 1 nor empty",
    _TIME: "is not a time",
    _JSON: "is not JSON",
    _POSITIVE: "is negative",
    _WHOLE: "is beyond 32 bits",
    _RATING: f"is beyond +-{MOST_RATINGS}",
    _WEIGHT: "is not between -1e9 and 1e9",
    _KIND: f"is not one of {', '.join(ITEM_KINDS)}",
}
_EVALUATED: Mapping[str, Mapping[str, str]] = {
    "grader": {
        "lowest": f"{{0}} BETWEEN -{MOST_RATINGS} AND highest",
        "highest": f"{{0}} BETWEEN lowest AND {MOST_RATINGS}",
        "settings": _JSON,
        "kind": _KIND,
    },
    "grade": {
        "state": f"{{0}} BETWEEN 0 AND {max(State)}",
        "rating": "{0} IS NULL OR {0} BETWEEN r.lowest AND r.highest",
    },
    "item": {"weight": _WEIGHT, "active": _FLAG, "kind": _KIND, "answers": _JSON},
    "ranking": {"rank": _WHOLE, "score": _FINITE},
    "query": {"answerable": _PERHAPS},
    "judgment": {"relevance": f"abs({{0}}) < {2**15}"},
    "decision": {"rating": _RATING, "verdict": _FLAG, "blind": _FLAG, "adjudicates": _FLAG},
    "sample_unit": {"pi": "{0} > 0 AND {0} <= 1"},
    "sample_judgment": {"relevance": _RATING},
}
"""Columns of tables read by evaluation, with SQL that is true for valid values."""
_MORE: Mapping[str, Mapping[str, str]] = {
    "grade": {"confidence": "{0} IS NULL OR {0} BETWEEN 0 AND 1.000001", "detail": _JSON},
    "item": {
        "subtopic": "{0} = 0 OR {0} IN (SELECT subtopic FROM subtopic)",
        "answer_key": "(SELECT k.answers FROM answer_key k WHERE k.answer_key = item.answer_key) "
        "IS item.answers",
        "extra": _JSON,
    },
    "item_edit": {"weight": _WEIGHT, "active": _FLAG, "answers": _JSON, "at": _TIME},
    "split": {"share": "{0} BETWEEN 0 AND 1", "at": _TIME},
    "decision": {"at": _TIME},
    "sample_judgment": {"at": _TIME},
    "sample_plan": {"expected": _FINITE, "at": _TIME},
    "ranking": {"extra": _JSON},
    "judgment": {"extra": _JSON},
    "pool": {"extra": _JSON},
    "passage": {"extra": _JSON},
    "generation": {"settings": _JSON, "items": _POSITIVE, "at": _TIME},
    "lease": {"until": _FINITE},
    "client": {
        **dict.fromkeys(("requests", "cells"), _POSITIVE),
        "rate": "{0} > 0",
        "active": _FLAG,
        "at": _TIME,
    },
    "client_request": {
        "cells": _POSITIVE,
        "at": _TIME,
        "report": "{0} IS NULL OR {0} BETWEEN 0 AND 1",
        "scores": _JSON,
    },
    "run": {
        **dict.fromkeys(
            ("asked", "cells", "tokens_read", "tokens_cached", "tokens_written", "requests"),
            _POSITIVE,
        ),
        "seconds": "{0} BETWEEN 0 AND 1e300",
        "cost": "{0} IS NULL OR {0} BETWEEN 0 AND 1e300",
        "started": _TIME,
        "detail": _JSON,
    },
}
"""The same for other tables and columns."""


_ROWS = {"grade": "grader r CROSS JOIN grade ON grade.grader = r.grader"}
"""SQL: the rows of a table, joined with those that its rules need."""


class Problem(NamedTuple):
    """A problem: table, row (by its keys), column, value and reason."""

    table: str
    row: str
    column: str
    value: str
    problem: str

    def __str__(self) -> str:
        return " ".join(filter(None, self))


PAGED = ("grade", "sheet", "ranking", "judgment", "pool", "passage", "passage_version")
"""Tables that evaluation reads in the form of `store.pages`, or not at all."""


def refuse_unsound(connection: sqlite3.Connection, unread: Sequence[str] = ()) -> None:
    """Check once per connection the values and checksums of all tables, except for those `unread`.

    Raises:
        Damaged: A value is impossible, such as an infinite weight or a rating outside its scale, or
            another program changed a row.
    """
    guarded = connection if isinstance(connection, GuardedConnection) else None
    if guarded and (guarded.verified or (unread and guarded.partly_verified)):
        return
    rules = {table: rule for table, rule in _EVALUATED.items() if table not in unread}
    for problem in _broken(connection, rules, 1):
        fault = f"{problem.table} {problem.row}: {problem.column} {problem.value} {problem.problem}"
        raise Damaged(str(file_of(connection)), fault, "it contains an impossible value")
    # during a write transaction checksums are not up to date
    if guarded and not guarded.writing:
        # a damaged index disagrees with its table
        for problem in (*_sqlite_pages(guarded, unread), *_checksums(guarded, unread)):
            why = "rows were changed by another program or by the disk"
            raise Damaged(str(file_of(guarded)), problem, why)
        guarded.verified, guarded.partly_verified = not unread, True


def find_problems(connection: sqlite3.Connection) -> list[Problem]:
    """Return the problems of the whole collection."""
    problems: list[Problem] = []
    for look in (_sqlite_pages, _references, _rows, _hashes, _checksums, _page_copies):
        try:
            problems += look(connection)
        except (InputError, sqlite3.DatabaseError) as error:
            # an InputError as text has a hint, too
            why = f"cannot be read: {getattr(error, 'what', error)}"
            problems.append(Problem("", "", "", "", why))
    return problems


def _sqlite_pages(connection: sqlite3.Connection, unread: Sequence[str] = ()) -> Iterator[Problem]:
    tables = tables_of(connection) if unread else [MOST_PROBLEMS]
    rows = [
        row
        for table in tables
        if table not in unread
        for row in connection.execute(f"PRAGMA main.integrity_check({table})")
    ]
    yield from (Problem("", "", "", "", message) for (message,) in rows if message != "ok")
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    if encoding != "UTF-8":
        yield Problem("", "", "", encoding, "the texts are not UTF-8")


def _references(connection: sqlite3.Connection) -> Iterator[Problem]:
    rows = connection.execute("PRAGMA main.foreign_key_check").fetchall()
    for table, row, parent, _ in rows[:MOST_PROBLEMS]:
        yield Problem(table, f"row {row}", "", "", f"refers to a missing {parent}")


def _rows(connection: sqlite3.Connection) -> Iterator[Problem]:
    for rules in (_EVALUATED, _MORE):
        yield from _broken(connection, rules, MOST_PROBLEMS)


def _broken(
    connection: sqlite3.Connection, rules: Mapping[str, Mapping[str, str]], most: int
) -> Iterator[Problem]:
    """Yield the first rows that violate each rule."""
    for table, columns in rules.items():
        wrong = " OR ".join(
            f"NOT ({sql.format(f'{table}.{column}')})" for column, sql in columns.items()
        )
        # one pass over each table; the rule is looked up only for invalid rows
        if connection.execute(
            f"SELECT 1 FROM {_ROWS.get(table, table)} WHERE {wrong} LIMIT 1"
        ).fetchone():
            for column, sql in columns.items():
                yield from _broken_column(connection, table, column, sql, most)


def _broken_column(
    connection: sqlite3.Connection, table: str, column: str, sql: str, most: int
) -> Iterator[Problem]:
    keys = _keys(connection, table)
    rows = connection.execute(
        f"SELECT {', '.join(f'{table}.{key}' for key in keys)}, quote({table}.{column}) "
        f"FROM {_ROWS.get(table, table)} WHERE NOT ({sql.format(f'{table}.{column}')}) LIMIT {most}"
    )
    why = _WORDS.get(sql, "is outside of its range")
    if (table, column) == ("grade", "rating"):
        why = "is outside the scale of its grader"
    for *row, value in rows:
        yield Problem(table, _named(keys, row), column, str(value)[:80], why)


def _keys(connection: sqlite3.Connection, table: str) -> list[str]:
    columns = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
    return [name for _, name, *_, key in sorted(columns, key=lambda one: one[5]) if key]


def _named(keys: list[str], row: list[object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in zip(keys, row, strict=True))


def _hashes(connection: sqlite3.Connection) -> Iterator[Problem]:
    texts = connection.execute("SELECT version, title, text, hash FROM passage_version")
    for version, title, text, known in texts:
        if text_hash(title, text) != known:
            why = "does not match its hash"
            yield Problem("passage_version", f"version {version}", "text", text[:80], why)
    keys = dict(connection.execute("SELECT grader, key FROM grader").fetchall())
    for one in graders(connection):
        if one.identity.key != keys[one.key]:
            why = "does not match the model, prompt and settings of the grader"
            yield Problem("grader", f"grader {one.key}", "key", keys[one.key], why)


def _checksums(connection: sqlite3.Connection, unread: Sequence[str] = ()) -> Iterator[Problem]:
    for table, expected, rows_now in mismatches(connection, unread):
        rows = f"{rows_now} rows, {expected} when exampp wrote it" if rows_now != expected else ""
        why = "differs from its checksum: changed on disk or by another program"
        yield Problem(table, "", "", rows, why)


def _page_copies(connection: sqlite3.Connection) -> Iterator[Problem]:
    from exampp.store.pages import damaged_pages

    for table, key in damaged_pages(connection):
        yield Problem(table, ", ".join(map(str, key)), "content", "", "differs from its rows")
