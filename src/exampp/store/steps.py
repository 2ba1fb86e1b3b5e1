"""What has been done already: fingerprints of steps, and of the collection that they worked on."""

from __future__ import annotations

import hashlib
import json
import sqlite3

_STATE = {
    "query": "count(*), sum(length(text))",
    "subtopic": "count(*)",
    "passage": "count(*), sum(version)",
    "pool": "count(*), sum(passage)",
    "ranking": "count(*), sum(rank), total(score), sum(passage), sum(system)",
    "judgment": "count(*), sum(relevance), sum(passage)",
    "item": "count(*), sum(version), sum(active), total(weight), sum(length(answers)), "
    "sum(item * answer_key)",
}
_GRADES = {
    "grade": "count(*), sum(state), sum(rating), sum(rating * passage_version)",
    "decision": "count(*), sum(rating)",
}


def state(connection: sqlite3.Connection, *, grades: bool) -> str:
    """A fingerprint of the exam (queries, passages, rankings, judgments, items).

    With `grades`, of grades and decisions too. It changes where any of them does.
    """
    tables = {**_STATE, **(_GRADES if grades else {})}
    values = [
        connection.execute(f"SELECT {what} FROM {table}").fetchone()
        for table, what in tables.items()
    ]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def read_step(connection: sqlite3.Connection, name: str) -> str | None:
    """The fingerprint that a step was done with; None where it never was."""
    row = connection.execute("SELECT fingerprint FROM step WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def put_step(connection: sqlite3.Connection, name: str, fingerprint: str, at: str) -> None:
    """Record that a step is done."""
    connection.execute(
        "INSERT INTO step (name, fingerprint, at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at",
        (name, fingerprint, at),
    )
