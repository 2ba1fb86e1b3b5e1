"""Graders, grades, and records of Workbench files in the store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.records import Grade, GraderIdentity, State
from exampp.records.graders import RatingScale, with_distinct_names
from exampp.sanitize import sanitize, sanitize_value
from exampp.store.sql import (
    column,
    exists,
    extra_json,
    from_json,
    insert,
    pairs,
    records,
    select_integer,
)

GradeRow = tuple[int, int, int, int, int, int | None, str | None, str, float | None, str | None]
"""grader, item_version, passage_version, answer_key, state, rating, reply, rule, confidence,
detail.
"""

Rules = Mapping[str, Any]
"""Rules for reading replies: the options of `prompts.replies.read_reply`, by name."""
NO_KEY = 0
"""The answer key of a grade that does not depend on one."""
WITHOUT_KEY = (
    "(i.answer_key = 1 AND EXISTS (SELECT 1 FROM item k WHERE k.bank = i.bank AND k.kind = i.kind "
    "AND k.active AND k.answers <> '[]'))"
)
"""SQL: the item `i` has no answer key, and others of its kind in its bank have one."""
IN_FORCE = f"(g.answer_key IN (0, i.answer_key) AND NOT (g.answer_key = 1 AND {WITHOUT_KEY}))"
"""SQL: the grade `g` of the item `i` was made from the item's current answer key.

Other grades are ignored, so the cell has no grade. An extracted answer to a question without a key
does not count if answers to other questions are verified.
"""


class StoredGrader(NamedTuple):
    """A grader of the collection: its key and its identity."""

    key: int
    identity: GraderIdentity


def find_grader(connection: sqlite3.Connection, identity: GraderIdentity) -> int | None:
    """Return the key of a grader; None if it has not graded yet."""
    stored = known_grader(connection, identity)
    return None if stored is None else stored.key


def known_grader(connection: sqlite3.Connection, identity: GraderIdentity) -> StoredGrader | None:
    """Return the stored grader with this identity; None if it has not graded yet."""
    return next(iter(_stored(connection, "key = ?", identity.key)), None)


def put_grader(
    connection: sqlite3.Connection, identity: GraderIdentity, rules: Rules | None = None
) -> int:
    """Return the key of a grader, adding it if necessary.

    `rules` are its reading rules if answer keys matter. Its earlier grades without rules, from
    files, count as made with the current answer keys.
    """
    key = _put_identity(connection, identity)
    if rules is not None:
        known = reading_rules(connection, key)
        if known is None:
            connection.execute(
                "UPDATE grade SET answer_key = (SELECT i.answer_key FROM item_version v "
                "JOIN item i USING (item) WHERE v.version = item_version) WHERE grader = ?",
                (key,),
            )
        if known != rules:
            connection.execute(
                "UPDATE grader SET rules = ? WHERE grader = ?", (json.dumps(rules), key)
            )
    return key


def reading_rules(connection: sqlite3.Connection, grader: int) -> Rules | None:
    """Return the reading rules of a grader if answer keys matter; else None.

    Empty if they are unknown.
    """
    row = connection.execute("SELECT rules FROM grader WHERE grader = ?", (grader,)).fetchone()
    return None if row is None else from_json(row[0])


def answer_keys(connection: sqlite3.Connection, versions: Iterable[int]) -> dict[int, int]:
    """Return the current answer keys of items with these texts."""
    return pairs(
        connection,
        "SELECT v.version, i.answer_key FROM item_version v JOIN item i USING (item) "
        "WHERE v.version IN (SELECT value FROM json_each(?))",
        (json.dumps(list(versions)),),
    )


def _put_identity(connection: sqlite3.Connection, identity: GraderIdentity) -> int:
    if (known := find_grader(connection, identity)) is not None:
        # the entries of a grader may cover different parts of its scale
        connection.execute(
            "UPDATE grader SET lowest = min(lowest, :lowest), highest = max(highest, :highest) "
            "WHERE grader = :grader AND (lowest > :lowest OR highest < :highest)",
            {"grader": known, "lowest": identity.lowest, "highest": identity.highest},
        )
        return known
    return insert(
        connection,
        "INSERT INTO grader (key, model, prompt, kind, lowest, highest, settings) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            identity.key,
            identity.model,
            identity.prompt,
            identity.kind,
            identity.lowest,
            identity.highest,
            json.dumps(identity.settings, sort_keys=True, ensure_ascii=False),
        ),
    )


def set_scale(connection: sqlite3.Connection, grader: int, scale: RatingScale) -> None:
    """Set the scale of a grader.

    Raises InputError if one of its grades is off that scale.
    """
    rows = connection.execute(
        "SELECT min(rating), max(rating) FROM grade WHERE grader = ? AND state = 0", (grader,)
    )
    ((lowest, highest),) = rows
    for rating in () if lowest is None else (lowest, highest):
        if not scale[0] <= rating <= scale[1]:
            raise InputError(
                f"the collection has a rating {rating} by this grader, outside the scale "
                f"{scale[0]}..{scale[1]}",
                hint="Use a scale that includes all its ratings",
            )
    connection.execute(
        "UPDATE grader SET lowest = ?, highest = ? WHERE grader = ?", (*scale, grader)
    )


def unshown_scales(connection: sqlite3.Connection) -> set[int]:
    """Return graders with a scale that their grades do not fully show, or that starts above 0."""
    return set(
        column(
            connection,
            "SELECT r.grader FROM grader r LEFT JOIN (SELECT g.grader, max(g.rating) AS found "
            "FROM item i JOIN grade g ON g.item_version = i.version "
            "JOIN passage p ON p.version = g.passage_version GROUP BY g.grader) USING (grader) "
            "WHERE r.lowest <> 0 OR r.highest > max(1, coalesce(found, 0))",
        )
    )


def graders(connection: sqlite3.Connection) -> list[StoredGrader]:
    """Return all graders with unique names, in order of first appearance.

    Graders of one import are sorted by name, regardless of the order of lines.
    """
    all_stored = _stored(connection, "true")
    named = with_distinct_names(one.identity for one in all_stored)
    stored = [StoredGrader(one.key, who) for one, who in zip(all_stored, named, strict=True)]
    ran = {grader for (grader,) in connection.execute("SELECT DISTINCT grader FROM run")}
    runs = accumulate(one.key in ran for one in stored)
    place = {
        one.key: (earlier, one.key not in ran, one.identity.name)
        for earlier, one in zip(runs, stored, strict=True)
    }
    return sorted(stored, key=lambda one: place[one.key])


def graders_with_grades(connection: sqlite3.Connection) -> set[int]:
    """Return the keys of the graders with at least one grade; failed cells have none."""
    return set(
        column(
            connection,
            "SELECT grader FROM grader WHERE EXISTS "
            "(SELECT 1 FROM grade g WHERE g.grader = grader.grader AND g.state = 0)",
        )
    )


def count_grades(connection: sqlite3.Connection) -> list[tuple[StoredGrader, int]]:
    """Return the graders with their numbers of grades, also those of earlier texts."""
    counts = pairs(
        connection,
        "SELECT grader, (SELECT count(*) FROM grade g WHERE g.grader = r.grader) - "
        "(SELECT count(*) FROM grade g WHERE g.grader = r.grader AND g.state <> 0) FROM grader r",
    )
    return [(one, counts[one.key]) for one in graders(connection)]


def _stored(connection: sqlite3.Connection, where: str, *values: str) -> list[StoredGrader]:
    rows = connection.execute(
        "SELECT grader, model, prompt, kind, lowest, highest, settings FROM grader "
        f"WHERE {where} ORDER BY grader",
        values,
    )
    return [
        StoredGrader(key, GraderIdentity(model, prompt, kind, low, high, from_json(settings)))
        for key, model, prompt, kind, low, high, settings in rows
    ]


def grade_row(
    grader: int, item_version: int, passage_version: int, grade: Grade, answer_key: int = NO_KEY
) -> GradeRow:
    """Return a grade as a row of valid text; `replaced` in the detail counts replacements."""
    reply, replaced = (None, 0) if grade.reply is None else sanitize(grade.reply)
    detail, more = sanitize_value(grade.detail) if grade.detail else (grade.detail, 0)
    if replaced + more:
        detail = {**(detail or {}), "replaced": replaced + more}
    return (
        grader,
        item_version,
        passage_version,
        answer_key,
        int(grade.state),
        grade.rating,
        reply,
        grade.rule,
        grade.confidence,
        extra_json(detail),
    )


def put_grades(connection: sqlite3.Connection, rows: Iterable[GradeRow]) -> None:
    """Add grades; they replace earlier ones, but a failure never replaces a rating.

    An equal `imported` grade without a reading rule changes nothing.
    """
    connection.executemany(
        "INSERT INTO grade VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "state = excluded.state, rating = excluded.rating, reply = excluded.reply, "
        "rule = excluded.rule, confidence = excluded.confidence, detail = excluded.detail "
        "WHERE (excluded.state = 0 OR state <> 0) AND (state <> excluded.state OR "
        "rating IS NOT excluded.rating OR reply IS NOT excluded.reply OR excluded.rule <> "
        "'imported' AND (rule <> excluded.rule OR confidence IS NOT excluded.confidence "
        "OR detail IS NOT excluded.detail))",
        rows,
    )


class ReplyToRead(NamedTuple):
    """A raw reply with everything needed to read it again."""

    item_version: int
    passage_version: int
    answer_key: int
    item: str
    keys: tuple[str, ...]
    passage: str
    reply: str
    state: State
    rating: int | None
    rule: str
    detail: dict[str, Any] | None


_KEPT = """
SELECT g.item_version, g.passage_version, i.answer_key, coalesce(v.text, ''), i.answers,
    CASE p.title WHEN '' THEN p.text ELSE p.title || char(10) || p.text END,
    g.reply, g.state, g.rating, g.rule, g.detail, max(g.answer_key = i.answer_key)
FROM grade g JOIN item_version v ON v.version = g.item_version JOIN item i USING (item)
JOIN passage_version p ON p.version = g.passage_version
WHERE g.grader = :grader AND g.item_version = :version AND g.reply IS NOT NULL
GROUP BY g.passage_version HAVING NOT :stale OR max(g.answer_key = i.answer_key) = 0
"""
_REKEYED = """
SELECT v.version FROM item_version v JOIN item i USING (item) WHERE i.item IN (
    SELECT item FROM item_edit GROUP BY item HAVING min(answers) <> max(answers))
AND EXISTS (SELECT 1 FROM grade g WHERE g.grader = :grader AND g.item_version = v.version
    AND g.answer_key NOT IN (0, i.answer_key) AND g.reply IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM grade h WHERE h.grader = :grader AND h.item_version = v.version
        AND h.passage_version = g.passage_version AND h.answer_key = i.answer_key))
"""


def replies_to_read(
    connection: sqlite3.Connection, grader: int, *, stale: bool = False
) -> Iterator[ReplyToRead]:
    """Yield all stored replies of a grader by item; grades may be rewritten meanwhile.

    Prefers the reply for the current answer key. `stale` selects cells without a grade for the
    current answer key.
    """
    items = connection.execute(
        _REKEYED
        if stale
        else "SELECT DISTINCT item_version FROM grade WHERE grader = :grader ORDER BY 1",
        {"grader": grader},
    )
    for (item_version,) in items.fetchall():
        names = {"grader": grader, "version": item_version, "stale": stale}
        for row in connection.execute(_KEPT, names).fetchall():
            one = ReplyToRead._make(row[:-1])
            yield one._replace(
                keys=tuple(from_json(row[4])), state=State(row[7]), detail=from_json(row[-2])
            )


def put_readings(connection: sqlite3.Connection, rows: Iterable[GradeRow]) -> None:
    """Replace grades by new readings of the same replies, even ratings by failures.

    Cells with a different reply, or a rating without one, stay: see `count_other_replies`.
    """
    connection.executemany(
        "INSERT INTO grade VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "state = excluded.state, rating = excluded.rating, reply = excluded.reply, "
        "rule = excluded.rule, confidence = excluded.confidence, detail = excluded.detail "
        "WHERE reply IS excluded.reply OR (reply IS NULL AND state <> 0)",
        rows,
    )


def count_other_replies(connection: sqlite3.Connection, source: int, target: int) -> int:
    """Count the cells of `target` with other replies or ratings than `source`.

    Only cells with a reply in `source` count.
    """
    return select_integer(
        connection,
        "SELECT count(*) FROM (SELECT DISTINCT theirs.item_version, theirs.passage_version "
        "FROM grade theirs JOIN grade mine ON mine.grader = :target "
        "AND mine.item_version = theirs.item_version "
        "AND mine.passage_version = theirs.passage_version "
        "WHERE theirs.grader = :source AND theirs.reply IS NOT NULL "
        "AND mine.reply IS NOT theirs.reply AND (mine.reply IS NOT NULL OR mine.state = 0))",
        {"source": source, "target": target},
    )


def failure_reasons(
    connection: sqlite3.Connection, grader: int, most: int = 5
) -> list[tuple[str, int]]:
    """Return the most frequent reasons for missing grades, with their counts."""
    rows = connection.execute(
        "SELECT coalesce(json_extract(g.detail, '$.reason'), g.rule), g.state, count(*) AS n "
        "FROM grade g JOIN item_version v ON v.version = g.item_version JOIN item i USING (item) "
        f"WHERE g.grader = :grader AND g.state <> 0 AND {IN_FORCE} "
        "GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT :most",
        {"grader": grader, "most": most},
    )
    named = ((State(state).name.lower(), why, count) for why, state, count in rows)
    return [(state if why in (state, None) else f"{state}: {why}", n) for state, why, n in named]


SheetRow = tuple[int, int, int, Sequence[int], Any]
"""query, passage, grader, item versions in file order, other fields."""


def put_sheets(connection: sqlite3.Connection, rows: Iterable[SheetRow]) -> None:
    """Store the records of a Workbench file on the grades of a passage."""
    connection.executemany(
        "INSERT INTO sheet (query, passage, grader, items, extra) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET items = excluded.items, extra = excluded.extra "
        "WHERE excluded.items IS NOT items OR excluded.extra IS NOT extra",
        (
            (
                *row[:3],
                None if list(row[3]) == sorted(row[3]) else json.dumps(row[3]),
                extra_json(row[4]),
            )
            for row in rows
        ),
    )


_ITEMS = """
SELECT i.item, i.item_id, q.query_id, i.version, i.answer_key
FROM item i JOIN bank b USING (bank) JOIN query q USING (query)
WHERE b.name = :bank AND i.kind = :kind AND i.active
ORDER BY i.item
"""
_RATED = f"""
SELECT g.passage_version, p.passage_id, g.answer_key, g.grader, g.state,
    CASE WHEN :expected THEN json_extract(g.detail, '$.expected') ELSE g.rating END
FROM item i
JOIN grade g ON g.item_version = i.version AND {IN_FORCE}
JOIN passage_version v ON v.version = g.passage_version
JOIN passage p ON p.passage = v.passage AND p.version = v.version
WHERE i.item = :item AND g.grader IN (SELECT value FROM json_each(:graders))
ORDER BY g.passage_version
"""


class RatedCell(NamedTuple):
    """A cell of current texts with ratings, or expected ratings, by grader key.

    `answer_key` is that of the grades, 0 if it did not matter.
    """

    query_id: str
    item_id: str
    passage_id: str
    item_version: int
    passage_version: int
    answer_key: int
    ratings: dict[int, float]


def rated_cells(
    connection: sqlite3.Connection,
    graders: Sequence[int],
    kind: str,
    bank: str,
    *,
    expected: bool = False,
) -> Iterator[RatedCell]:
    """Yield every cell that one of the graders tried, item by item.

    With `expected`, `ratings` are the expected ratings of grades that have one. Grades may be
    written meanwhile.
    """
    keys = json.dumps(list(graders))
    items = connection.execute(_ITEMS, {"kind": kind, "bank": bank}).fetchall()
    for item, item_id, query_id, version, today in items:
        values = {"item": item, "graders": keys, "expected": expected}
        rows = connection.execute(_RATED, values).fetchall()
        for (passage_version, passage_id), some in groupby(rows, key=itemgetter(0, 1)):
            cell = list(some)
            key = today if any(row[2] for row in cell) else 0
            graded = (row for row in cell if row[4] == State.GRADED)
            ratings = {row[3]: row[5] for row in graded if row[5] is not None}
            yield RatedCell(query_id, item_id, passage_id, version, passage_version, key, ratings)


class PositionRow(NamedTuple):
    """A rating of one of several items in a request: the name of the request, and the position."""

    request: str
    position: int
    item_version: int
    rating: int


LOOKED_AT = 1000
"""Grades that show whether a grader asks for several items in a request."""


def requests_per_reply(connection: sqlite3.Connection, grader: int) -> float:
    """Return the requests per reply of a grader: less than 1 if several items share a request."""
    share = connection.execute(
        "SELECT avg(1.0 / coalesce(json_extract(detail, '$.items'), 1)) FROM grade "
        "WHERE grader = ? AND reply IS NOT NULL",
        (grader,),
    ).fetchone()[0]
    return 1.0 if share is None else float(share)


def position_rows(connection: sqlite3.Connection, grader: int) -> list[PositionRow]:
    """Return the ratings of a grader that share a request; equal texts count once."""
    several = """instr(detail, '"request":')"""
    if not exists(
        connection,
        f"SELECT 1 FROM (SELECT detail FROM grade WHERE grader = ? LIMIT {LOOKED_AT}) "
        f"WHERE {several}",
        (grader,),
    ):
        return []
    return records(
        PositionRow,
        connection,
        "SELECT json_extract(detail, '$.request'), json_extract(detail, '$.position'), "
        f"min(item_version), rating FROM grade WHERE grader = ? AND state = 0 AND {several} "
        "GROUP BY 1, 2",
        (grader,),
    )
