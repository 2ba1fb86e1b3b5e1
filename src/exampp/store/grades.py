"""Graders, their grades, and what workbench files said beside them, in the store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.outside import fit_text, fit_value
from exampp.records import Grade, GraderIdentity, State
from exampp.records.grading import RatingScale
from exampp.records.readings import WITHOUT_EXAMPLE, RuleCount
from exampp.store.interning import from_json, to_json

GradeRow = tuple[int, int, int, int, int | None, str | None, str, float | None, str | None]
"""grader, item_version, passage_version, state, rating, reply, rule, confidence, detail."""


class StoredGrader(NamedTuple):
    """A grader of the collection: its key and who it is."""

    key: int
    identity: GraderIdentity


def find_grader(connection: sqlite3.Connection, identity: GraderIdentity) -> int | None:
    """The key of a grader; None where it has not graded yet."""
    found = connection.execute("SELECT grader FROM grader WHERE key = ?", (identity.key,))
    row = found.fetchone()
    return None if row is None else int(row[0])


def put_grader(connection: sqlite3.Connection, identity: GraderIdentity) -> int:
    """The key of a grader, made where there was none."""
    if (known := find_grader(connection, identity)) is not None:
        # entries of one grader may show more or less of its scale
        connection.execute(
            "UPDATE grader SET lowest = min(lowest, :lowest), highest = max(highest, :highest) "
            "WHERE grader = :grader AND (lowest > :lowest OR highest < :highest)",
            {"grader": known, "lowest": identity.lowest, "highest": identity.highest},
        )
        return known
    row = connection.execute(
        "INSERT INTO grader (key, model, prompt, kind, lowest, highest, settings) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING grader",
        (
            identity.key,
            identity.model,
            identity.prompt,
            identity.kind,
            identity.lowest,
            identity.highest,
            json.dumps(identity.settings, sort_keys=True, ensure_ascii=False),
        ),
    ).fetchone()
    return int(row[0])


def set_scale(connection: sqlite3.Connection, grader: int, scale: RatingScale) -> None:
    """Give a grader this scale.

    Raises InputError where a grade of it is off that scale.
    """
    rows = connection.execute(
        "SELECT min(rating), max(rating) FROM grade WHERE grader = ? AND state = 0", (grader,)
    )
    ((lowest, highest),) = rows
    for rating in () if lowest is None else (lowest, highest):
        if not scale[0] <= rating <= scale[1]:
            raise InputError(
                f"the collection has a rating of {rating} by this grader, which is off the scale "
                f"{scale[0]}..{scale[1]}",
                mend="Give a scale that holds all its ratings",
            )
    connection.execute(
        "UPDATE grader SET lowest = ?, highest = ? WHERE grader = ?", (*scale, grader)
    )


def unshown_scales(connection: sqlite3.Connection) -> set[int]:
    """The graders of whose scale no current grade shows the top, or that begins above 0."""
    rows = connection.execute(
        "SELECT r.grader FROM grader r LEFT JOIN (SELECT g.grader, max(g.rating) AS found "
        "FROM item i JOIN grade g ON g.item_version = i.version "
        "JOIN passage p ON p.version = g.passage_version GROUP BY g.grader) USING (grader) "
        "WHERE r.lowest <> 0 OR r.highest > max(1, coalesce(found, 0))"
    )
    return {grader for (grader,) in rows}


def graders(connection: sqlite3.Connection) -> list[StoredGrader]:
    """All graders, in order of first appearance."""
    rows = connection.execute(
        "SELECT grader, model, prompt, kind, lowest, highest, settings FROM grader ORDER BY grader"
    )
    return [
        StoredGrader(key, GraderIdentity(model, prompt, kind, low, high, from_json(settings)))
        for key, model, prompt, kind, low, high, settings in rows
    ]


def grade_row(grader: int, item_version: int, passage_version: int, grade: Grade) -> GradeRow:
    """A grade as a row of the table, of valid text; `replaced` in its detail counts the rest."""
    reply, replaced = (None, 0) if grade.reply is None else fit_text(grade.reply)
    detail, more = fit_value(grade.detail) if grade.detail else (grade.detail, 0)
    if replaced + more:
        detail = {**(detail or {}), "replaced": replaced + more}
    return (
        grader,
        item_version,
        passage_version,
        int(grade.state),
        grade.rating,
        reply,
        grade.rule,
        grade.confidence,
        to_json(detail),
    )


def put_grades(connection: sqlite3.Connection, rows: Iterable[GradeRow]) -> None:
    """Add grades; a later grade replaces an earlier one, but never a rating by a failure.

    A file that says the same without how the reply was read (`imported`) changes nothing.
    """
    connection.executemany(
        "INSERT INTO grade VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "state = excluded.state, rating = excluded.rating, reply = excluded.reply, "
        "rule = excluded.rule, confidence = excluded.confidence, detail = excluded.detail "
        "WHERE (excluded.state = 0 OR state <> 0) AND (state <> excluded.state OR "
        "rating IS NOT excluded.rating OR reply IS NOT excluded.reply OR excluded.rule <> "
        "'imported' AND (rule <> excluded.rule OR confidence IS NOT excluded.confidence "
        "OR detail IS NOT excluded.detail))",
        rows,
    )


class KeptReply(NamedTuple):
    """A raw reply with what is needed to read it again."""

    item_version: int
    passage_version: int
    item: str
    keys: tuple[str, ...]
    passage: str
    reply: str
    state: State
    rating: int | None
    rule: str
    detail: dict[str, Any] | None


_KEPT = """
SELECT g.item_version, g.passage_version, coalesce(v.text, ''), i.answers,
    CASE p.title WHEN '' THEN p.text ELSE p.title || char(10) || p.text END,
    g.reply, g.state, g.rating, g.rule, g.detail
FROM grade g JOIN item_version v ON v.version = g.item_version JOIN item i USING (item)
JOIN passage_version p ON p.version = g.passage_version
WHERE g.grader = ? AND g.item_version = ? AND g.reply IS NOT NULL
"""


def kept_replies(connection: sqlite3.Connection, grader: int) -> Iterator[KeptReply]:
    """All replies of a grader that were kept, item by item; grades may be rewritten meanwhile."""
    items = connection.execute(
        "SELECT DISTINCT item_version FROM grade WHERE grader = ? ORDER BY 1", (grader,)
    )
    for (item_version,) in items.fetchall():
        for row in connection.execute(_KEPT, (grader, item_version)).fetchall():
            version, passage_version, item, keys, passage, reply, state, rating, rule, detail = row
            yield KeptReply(
                version,
                passage_version,
                item,
                tuple(from_json(keys)),
                passage,
                reply,
                State(state),
                rating,
                rule,
                from_json(detail),
            )


def put_readings(connection: sqlite3.Connection, rows: Iterable[GradeRow]) -> None:
    """Replace grades by others that were read from the same replies, ratings by failures too.

    A cell that has a reply of its own, or a rating without one, stays: see `count_other_replies`.
    """
    connection.executemany(
        "INSERT INTO grade VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "state = excluded.state, rating = excluded.rating, reply = excluded.reply, "
        "rule = excluded.rule, confidence = excluded.confidence, detail = excluded.detail "
        "WHERE reply IS excluded.reply OR (reply IS NULL AND state <> 0)",
        rows,
    )


def count_other_replies(connection: sqlite3.Connection, source: int, target: int) -> int:
    """How many cells of a grader have other replies, or ratings, than what another's replies say.

    Counted are cells of `target` for which `source` kept a reply.
    """
    row = connection.execute(
        "SELECT count(*) FROM grade theirs JOIN grade mine ON mine.grader = :target "
        "AND mine.item_version = theirs.item_version "
        "AND mine.passage_version = theirs.passage_version "
        "WHERE theirs.grader = :source AND theirs.reply IS NOT NULL "
        "AND mine.reply IS NOT theirs.reply AND (mine.reply IS NOT NULL OR mine.state = 0)",
        {"source": source, "target": target},
    ).fetchone()
    return int(row[0])


def failure_reasons(
    connection: sqlite3.Connection, grader: int, most: int = 5
) -> list[tuple[str, int]]:
    """The most frequent reasons why cells of a grader have no grade, with their numbers."""
    rows = connection.execute(
        "SELECT coalesce(json_extract(detail, '$.reason'), rule), state, count(*) AS n FROM grade "
        "WHERE grader = ? AND state <> 0 GROUP BY 1, 2 ORDER BY n DESC LIMIT ?",
        (grader, most),
    )
    return [(f"{State(state).name.lower()}: {why}", count) for why, state, count in rows]


def put_sheets(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, Sequence[int], Any]]
) -> None:
    """Keep what a workbench file said of a passage's grades.

    A row is (query, passage, grader, item versions in the order of the file, residue).
    """
    connection.executemany(
        "INSERT INTO sheet (query, passage, grader, items, extra) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET items = excluded.items, extra = excluded.extra "
        "WHERE excluded.items IS NOT items OR excluded.extra IS NOT extra",
        (
            (
                *row[:3],
                None if list(row[3]) == sorted(row[3]) else json.dumps(row[3]),
                to_json(row[4]),
            )
            for row in rows
        ),
    )


_RULES = """
SELECT g.state, g.rule, g.rating, count(*), min(g.item_version << 31 | g.passage_version)
FROM item i JOIN bank b USING (bank)
JOIN grade g ON g.grader = :grader AND g.item_version = i.version
JOIN passage p ON p.version = g.passage_version
WHERE i.active AND (:bank IS NULL OR b.name = :bank) GROUP BY 1, 2, 3
"""


def rule_counts(
    connection: sqlite3.Connection, grader: int, bank: str | None = None
) -> tuple[RuleCount, ...]:
    """The cells of a grader by state, rule of reading and rating, each with a reply as an example.

    Only cells of today's texts count, and only those of `bank` where one is given. Replies are
    long: none is read but those that are examples.
    """
    found: list[RuleCount] = []
    rows = connection.execute(_RULES, {"grader": grader, "bank": bank}).fetchall()
    for state, rule, rating, cells, cell in rows:
        example = None
        if rule not in WITHOUT_EXAMPLE:
            example = _reply(connection, grader, cell >> 31, cell & 2**31 - 1)
        found.append(RuleCount(State(state), rule, rating, cells, example))
    return tuple(found)


def _reply(
    connection: sqlite3.Connection, grader: int, item_version: int, passage_version: int
) -> str | None:
    row = connection.execute(
        "SELECT reply FROM grade WHERE grader = ? AND item_version = ? AND passage_version = ?",
        (grader, item_version, passage_version),
    ).fetchone()
    return None if row is None or row[0] is None else str(row[0])
