"""Requests to models for bank items, and replies (append-only)."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from exampp.store.bank import bank_key
from exampp.store.inputs import WHOLE_QUERY
from exampp.store.sql import column

MADE = "made"
FAILED = "failed"
RANK_DAMPING = 60
"""The constant of reciprocal rank fusion. Source: Cormack et al., SIGIR 2009."""


class Subject(NamedTuple):
    """A query or subtopic, with its texts and store keys."""

    query: int
    subtopic: int
    query_id: str
    query_text: str
    subtopic_id: str | None = None
    subtopic_text: str = ""


class GeneratedBy(NamedTuple):
    """The grader and prompt of a request; `prompt_hash` identifies the text of `prompt`."""

    model: str
    prompt: str
    prompt_hash: str
    settings: str


class StoredReply(NamedTuple):
    """The outcome of a request: `reason` says how the reply was read, or why not."""

    state: str
    reason: str
    reply: str | None
    items: int
    at: str


def subjects(connection: sqlite3.Connection, *, by_subtopic: bool) -> list[Subject]:
    """Return all queries, or all subtopics, in order."""
    if by_subtopic:
        rows = connection.execute(
            "SELECT q.query, f.subtopic, q.query_id, q.text, f.subtopic_id, f.text FROM query q "
            "JOIN subtopic f USING (query) ORDER BY q.query, f.subtopic"
        )
    else:
        rows = connection.execute(
            "SELECT query, ?, query_id, text, NULL, '' FROM query ORDER BY query", (WHOLE_QUERY,)
        )
    return [Subject(*row) for row in rows]


def generated_keys(
    connection: sqlite3.Connection, bank: str, source: GeneratedBy
) -> set[tuple[int, int]]:
    """Return the (query, subtopic) keys with items by this model and prompt."""
    return {(query, subtopic) for query, subtopic, *_ in _replies(connection, bank, source, MADE)}


def asked_once(
    connection: sqlite3.Connection, bank: str, source: GeneratedBy
) -> dict[tuple[int, int], int]:
    """Return the (query, subtopic) keys with items and no reply after them, and their items."""
    items: dict[tuple[int, int], int] = {}
    again: set[tuple[int, int]] = set()
    for query, subtopic, reply, count, state in _replies(connection, bank, source):
        if (query, subtopic) in items:
            if reply is not None:
                again.add((query, subtopic))
        elif state == MADE:
            items[query, subtopic] = count
    return {key: count for key, count in items.items() if key not in again}


def failed_replies(
    connection: sqlite3.Connection, bank: str, source: GeneratedBy
) -> dict[tuple[int, int], str]:
    """Return the newest reply without items to this model and prompt, by (query, subtopic)."""
    rows = _replies(connection, bank, source, FAILED)
    return {(query, subtopic): reply for query, subtopic, reply, *_ in rows if reply}


def _replies(
    connection: sqlite3.Connection, bank: str, source: GeneratedBy, state: str | None = None
) -> list[tuple[int, int, str | None, int, str]]:
    """Return query, subtopic, text, number of items and state of replies, oldest first.

    Local models are identified by content, not by folder.
    """
    content = "coalesce(json_extract({0}, '$.content'), {1})"
    return connection.execute(
        "SELECT g.query, g.subtopic, g.reply, g.items, g.state FROM generation g "
        "JOIN bank b USING (bank) WHERE b.name = :bank "
        f"AND {content.format('g.settings', 'g.model')} = {content.format(':settings', ':model')} "
        "AND g.prompt_hash = :prompt_hash AND (:state IS NULL OR g.state = :state) "
        "ORDER BY g.generation",
        {**source._asdict(), "bank": bank, "state": state},
    ).fetchall()


def put_generation(
    connection: sqlite3.Connection,
    bank: str,
    subject: Subject,
    source: GeneratedBy,
    replied: StoredReply,
) -> None:
    """Store the outcome of one request."""
    connection.execute(
        "INSERT INTO generation (bank, query, subtopic, model, prompt, prompt_hash, settings, "
        "state, reason, reply, items, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (bank_key(connection, bank), subject.query, subject.subtopic, *source, *replied),
    )


def best_passages(connection: sqlite3.Connection, subject: Subject, count: int) -> list[str]:
    """Return the texts of the best passages: the most relevant, else the best ranked.

    Passages judged not relevant are left out. For a subtopic, its own judgments and rankings and
    those of the whole query count.
    """
    return column(
        connection,
        "WITH j AS (SELECT passage, max(relevance) AS relevance FROM judgment WHERE query = :query "
        "AND (:subtopic = 0 OR subtopic IN (0, :subtopic)) GROUP BY passage), "
        "r AS (SELECT passage, sum(1.0 / (:damping + rank)) AS score FROM ranking "
        "WHERE query = :query AND (:subtopic = 0 OR subtopic IN (0, :subtopic)) GROUP BY passage) "
        "SELECT v.text FROM passage p JOIN passage_version v USING (version) "
        "LEFT JOIN j ON j.passage = p.passage LEFT JOIN r ON r.passage = p.passage "
        "WHERE p.passage IN (SELECT passage FROM j UNION SELECT passage FROM r) "
        "AND v.text <> '' AND (j.relevance > 0 OR j.relevance IS NULL) "
        "ORDER BY coalesce(j.relevance, 0) DESC, coalesce(r.score, 0) DESC, p.passage LIMIT :count",
        {
            "query": subject.query,
            "subtopic": subject.subtopic,
            "damping": RANK_DAMPING,
            "count": count,
        },
    )
