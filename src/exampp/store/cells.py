"""Find the pending cells of an exam: passages of a query's pool by items of its bank.

The pool of a query (paper 000, section 5.1) is one of `POOLS`: `ranked`, the passages listed in its
file and the top `depth` of every ranking; `judged`, the judged passages; `all`, both. In a
collection without rankings, `ranked` means `all`. A cell is pending unless it has a grade for the
current texts of its item and passage and, if answers are verified, for the current answer key.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from exampp.records.cascade import CascadeRule
from exampp.store.grades import IN_FORCE, NO_KEY, WITHOUT_KEY, StoredGrader, graders, reading_rules
from exampp.store.runs import cascade_of
from exampp.store.sql import exists, from_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 20
"""Default depth of the pool."""

Pool = Literal["ranked", "judged", "all"]
POOLS: tuple[Pool, ...] = get_args(Pool)
"""The choices of graded passages."""
_TAKES_RANKED = ":pool <> 'judged'"
_TAKES_JUDGED = "(:pool <> 'ranked' OR NOT EXISTS (SELECT 1 FROM ranking))"
MEMBERS = f"""
WITH deep AS MATERIALIZED (
    SELECT subtopic, system FROM ranking WHERE query = :query
    GROUP BY subtopic, system HAVING count(*) > :depth
),
ranked AS (
    SELECT r.passage, row_number() OVER (
        PARTITION BY r.subtopic, r.system ORDER BY r.rank, r.score DESC, p.passage_id) AS position
    FROM deep d CROSS JOIN ranking r ON r.query = :query
    AND r.subtopic = d.subtopic AND r.system = d.system JOIN passage p USING (passage)
),
member AS (
    SELECT passage FROM pool WHERE query = :query AND {_TAKES_RANKED}
    UNION SELECT passage FROM judgment WHERE query = :query AND {_TAKES_JUDGED}
    UNION SELECT passage FROM ranking WHERE query = :query AND (subtopic, system) NOT IN deep
        AND {_TAKES_RANKED}
    UNION SELECT passage FROM ranked WHERE position <= :depth AND {_TAKES_RANKED}
)
"""
"""SQL that begins with the passages of the :pool of :query, to a :depth: `member`."""
# CROSS: SQLite 3.37 would scan the passages of all queries in their order
_POOL = f"""{MEMBERS}
SELECT v.version, v.hash, v.title, v.text, p.passage_id FROM member
CROSS JOIN passage p USING (passage) JOIN passage_version v ON v.version = p.version
ORDER BY p.passage
"""
_ASKED = f"""
SELECT i.version, i.answer_key FROM item i JOIN bank b USING (bank)
JOIN item_version v ON v.version = i.version
WHERE i.query = :query AND i.kind = :kind AND i.active AND b.name = :bank
AND v.text IS NOT NULL AND NOT (:verifies AND {WITHOUT_KEY})
"""
_ITEMS = f"""
SELECT v.version, v.text, i.answers, i.answer_key, i.item_id,
(SELECT f.subtopic_id FROM subtopic f WHERE f.subtopic = i.subtopic)
FROM item i JOIN bank b USING (bank) JOIN item_version v ON v.version = i.version
WHERE i.query = :query AND i.kind = :kind AND i.active AND b.name = :bank
AND v.text IS NOT NULL AND NOT (:verifies AND {WITHOUT_KEY}) ORDER BY i.item
"""
_ITEMS_WITHOUT_KEY = f"""
SELECT i.item_id FROM item i JOIN bank b USING (bank)
WHERE b.name = :bank AND i.kind = :kind AND i.active AND i.answers = '[]'
AND (:always OR {WITHOUT_KEY}) ORDER BY i.query, i.item
"""
_FIRST_QUERIES = f"""
SELECT q.query FROM query q WHERE EXISTS (
    SELECT 1 FROM item i JOIN bank b USING (bank) WHERE i.query = q.query AND i.kind = :kind
    AND b.name = :bank AND i.active
) AND (
    {_TAKES_RANKED} AND EXISTS (SELECT 1 FROM pool p WHERE p.query = q.query)
    OR {_TAKES_JUDGED} AND EXISTS (SELECT 1 FROM judgment j WHERE j.query = q.query)
    OR {_TAKES_RANKED} AND EXISTS (SELECT 1 FROM ranking r WHERE r.query = q.query)
) ORDER BY q.query LIMIT :max_queries
"""
GRADED = 0
"""The state of a graded cell (see `records.State`)."""
SELECTIONS = ("pending", "new", "failed")
"""Pending cells: all, only those never tried, or only failed ones."""


Cell = tuple[int, int]
"""(item version, passage version)."""
_ItemToGrade = tuple[int, str, str, int, str, str | None]
"""(version, text, answers, their key, id, subtopic)."""


class Shard(NamedTuple):
    """One of several equal shares of the passages, by text hash.

    A text is in the same shard in every copy of a collection.
    """

    number: int
    of: int

    def holds(self, digest: bytes) -> bool:
        """Return whether the text with this hash is in the shard."""
        return int.from_bytes(digest[:8]) % self.of == self.number - 1


class GradingScope(NamedTuple):
    """Scope of grading: items of one kind in a bank, and a pool of passages.

    `by_query`: replies also depend on the text of the query. `answers_of` is the key of a grader
    whose extracted answers are graded instead of passages. `verifies`: answer keys matter; if the
    bank has any, items without one are skipped. `max_queries` limits the scope to the first queries
    with items and passages, `shard` to a share of the passages. `each_cell` requests every cell,
    even for equal texts. `after` is the key of the first grader of a cascade and its rule: only the
    cells that the rule leaves to the second grader are in the scope.
    """

    kind: str
    bank: str
    depth: int = DEPTH
    by_query: bool = False
    answers_of: int | None = None
    verifies: bool = False
    max_queries: int | None = None
    shard: Shard | None = None
    each_cell: bool = False
    pool: Pool = "ranked"
    after: tuple[int, CascadeRule] | None = None


class PendingIds(NamedTuple):
    """The ids of a cell; `subtopic` is None for a whole query."""

    query: str = ""
    item: str = ""
    passage: str = ""
    subtopic: str | None = None


class PendingCells(NamedTuple):
    """A request, with all cells that its reply grades.

    `keys` is the answer key of the item, `answer_key` its key in the store. Cells with equal item
    and passage texts share one request, unless the scope has `each_cell`; `twin` is a graded cell
    with the same texts, which makes a request unnecessary. `before` is the state after an earlier
    attempt (None: never tried). `ids` are those of the first cell. `twin_rating` is the rating of
    the twin.
    """

    query: str
    item: str
    keys: tuple[str, ...]
    passage: str
    cells: tuple[Cell, ...]
    twin: Cell | None = None
    answer_key: int = NO_KEY
    before: int | None = None
    ids: PendingIds = PendingIds()
    twin_rating: int | None = None


class _Texts(NamedTuple):
    """The texts that identify a request: hash of the passage, item, and answer key."""

    passage: bytes
    item: str
    answers: str


def query_order(connection: sqlite3.Connection, exam: GradingScope) -> list[int]:
    """Return the keys of the queries to grade, in order."""
    if exam.max_queries is None:
        return [row[0] for row in connection.execute("SELECT query FROM query ORDER BY query")]
    return [row[0] for row in connection.execute(_FIRST_QUERIES, exam._asdict())]


def pending_cells(
    connection: sqlite3.Connection, grader: int | None, exam: GradingScope, select: str = "pending"
) -> Iterator[PendingCells]:
    """Yield the pending cells of a grader by query and passage."""
    for query in query_order(connection, exam):
        yield from pending_of_query(connection, query, grader, exam, select)


def count_pending(connection: sqlite3.Connection, grader: int | None, exam: GradingScope) -> int:
    """Count the pending cells of a grader without reading texts."""
    if exam.answers_of is not None or exam.by_query or exam.shard or exam.after:
        return sum(len(one.cells) for one in pending_cells(connection, grader, exam))
    from exampp.store.pages import count_graded

    pending = 0
    for query in query_order(connection, exam):
        items, passages = cells_in_scope(connection, query, exam)
        pending += len(items) * len(passages)
        if items and len(passages) and grader is not None:
            pending -= count_graded(connection, grader, query, items, passages)
    return pending


def count_judged_only(
    connection: sqlite3.Connection, grader: int | None, exam: GradingScope
) -> tuple[int, int]:
    """Count pending cells of judged but unranked passages, and cells of both pools.

    Both are 0 for extracted answers.
    """
    if exam.answers_of is not None:
        return 0, 0
    both = exam._replace(pool="all")
    cells = count_pending(connection, None, both)
    if cells == count_pending(connection, None, exam._replace(pool="ranked")):
        return 0, cells
    pending = count_pending(connection, grader, both)
    return pending - count_pending(connection, grader, exam._replace(pool="ranked")), cells


def pending_of_query(
    connection: sqlite3.Connection, query: int, grader: int | None, exam: GradingScope, select: str
) -> Iterator[PendingCells]:
    """Yield the pending cells of one query; `select` is one of `SELECTIONS`."""
    if exam.answers_of is not None:
        yield from _answers_due(connection, query, grader, exam, select)
        return
    items = _items(connection, query, exam)
    if items:
        yield from _due_of_items(connection, query, grader, exam, select, items)


def cells_of_items(
    connection: sqlite3.Connection, query: int, exam: GradingScope
) -> dict[str, PendingCells]:
    """Return a cell without a passage for each item of a query to grade, in bank order."""
    query_id, text = _query(connection, query)
    return {
        item_id: PendingCells(
            text,
            item,
            tuple(from_json(answers)),
            "",
            (),
            answer_key=key,
            ids=PendingIds(query_id, item_id, "", subtopic),
        )
        for _, item, answers, key, item_id, subtopic in _items(connection, query, exam)
    }


def _items(connection: sqlite3.Connection, query: int, exam: GradingScope) -> list[_ItemToGrade]:
    return connection.execute(_ITEMS, {"query": query, **exam._asdict()}).fetchall()


def cells_in_scope(
    connection: sqlite3.Connection, query: int, exam: GradingScope
) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Return the items of a query, as (text key, answer key), and the text keys of its pool."""
    from exampp.store.pages import query_page

    items = connection.execute(_ASKED, {**exam._asdict(), "query": query}).fetchall()
    # without rankings, judged passages are the pool
    judged = exam.pool != "ranked" or not exists(connection, "SELECT 1 FROM ranking")
    page = query_page(connection, query)
    return items, page.members(exam.depth, ranked=exam.pool != "judged", judged=judged)


def has_rankings(connection: sqlite3.Connection) -> bool:
    """Return whether any system has a ranking."""
    return exists(connection, "SELECT 1 FROM ranking")


def has_subtopics(connection: sqlite3.Connection, bank: str, kind: str) -> tuple[bool, bool]:
    """Return whether any ranking and any item is for a subtopic."""
    items = (
        "SELECT 1 FROM item i JOIN bank b USING (bank) WHERE b.name = ? AND i.kind = ? "
        "AND i.active AND i.subtopic <> 0"
    )
    rankings = exists(connection, "SELECT 1 FROM ranking WHERE subtopic <> 0")
    return rankings, rankings and exists(connection, items, (bank, kind))


def items_without_key(connection: sqlite3.Connection, exam: GradingScope) -> tuple[str, ...]:
    """Return the ids of items without an answer key; empty without verification.

    If no item has a key, extracted answers count as they are, but cannot be verified by a model.
    """
    if not exam.verifies:
        return ()
    names = {**exam._asdict(), "always": exam.answers_of is not None}
    return tuple(row[0] for row in connection.execute(_ITEMS_WITHOUT_KEY, names))


def items_without_text(connection: sqlite3.Connection, exam: GradingScope) -> tuple[int, int]:
    """Count the items of a bank and kind without a text, and all of them.

    Items without a text cannot be graded.
    """
    counts: tuple[int, int] = connection.execute(
        "SELECT coalesce(sum(v.text IS NULL), 0), count(*) FROM item i JOIN bank b USING (bank) "
        "LEFT JOIN item_version v ON v.version = i.version "
        "WHERE i.active AND i.kind = :kind AND b.name = :bank",
        {"kind": exam.kind, "bank": exam.bank},
    ).fetchone()
    return counts


def scope_of(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, depth: int = DEPTH
) -> GradingScope:
    """Return the scope of a grader: passages, or answers extracted by another grader."""
    source = grader.identity.settings.get("answers_of")
    others = graders(connection) if source else ()
    keys = {stored.identity.key: stored.key for stored in others}
    verifies = reading_rules(connection, grader.key) is not None
    return GradingScope(
        grader.identity.kind,
        bank,
        depth,
        answers_of=keys.get(str(source)),
        verifies=verifies,
        after=_after(connection, cascade_of(connection, grader.key, bank)),
    )


def _after(
    connection: sqlite3.Connection, rule: CascadeRule | None
) -> tuple[int, CascadeRule] | None:
    """Return the key of the first grader and the rule of a cascade."""
    if rule is None:
        return None
    first = (one.key for one in graders(connection) if one.identity.key == rule.first)
    return next(((key, rule) for key in first), None)


def confidences(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str
) -> Iterator[tuple[str, str, str, float]]:
    """Yield (query id, item id, passage id, confidence) of current grades, by query."""
    yield from connection.execute(
        "SELECT q.query_id, i.item_id, p.passage_id, g.confidence FROM item i "
        "JOIN bank b USING (bank) JOIN query q USING (query) "
        f"JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE} "
        "JOIN passage p ON p.version = g.passage_version "
        "WHERE b.name = ? AND i.kind = ? AND i.active AND g.state = 0 "
        "AND g.confidence IS NOT NULL ORDER BY i.query",
        (grader.key, bank, grader.identity.kind),
    )


def _due_of_items(
    connection: sqlite3.Connection,
    query: int,
    grader: int | None,
    exam: GradingScope,
    select: str,
    items: Sequence[_ItemToGrade],
) -> Iterator[PendingCells]:
    """Return the pending cells of one query."""
    names = {"query": query, "depth": exam.depth, "pool": exam.pool}
    states, graded = _known_states(connection, query, grader, exam, [text for _, text, *_ in items])
    answer_keys = {answers: key for _, _, answers, key, *_ in items}
    keys_of = {answers: tuple(from_json(answers)) for answers in answer_keys}
    item_ids = {version: (item_id, subtopic) for version, *_, item_id, subtopic in items}
    passage_ids: dict[int, str] = {}
    waiting: dict[tuple[_Texts, Cell | None], dict[Cell, int | None]] = {}
    texts: dict[bytes, str] = {}
    query_id, query_text = _query(connection, query)
    first = _first_ratings(connection, query, exam)
    for passage_version, digest, title, text, passage_id in connection.execute(_POOL, names):
        if exam.shard and not exam.shard.holds(digest):
            continue
        passage_ids[passage_version] = passage_id
        for item_version, item_text, answers, *_ in items:
            cell = (item_version, passage_version)
            state = states.get((*cell, None), states.get((*cell, answers)))
            if not _wanted(state, select):
                continue
            if exam.after and not exam.after[1].takes_second(
                first.get(cell), (query_id, item_ids[item_version][0], passage_id)
            ):
                continue
            if digest not in texts:
                texts[digest] = f"{title}\n{text}" if title else text
            same = _Texts(digest, item_text, answers)
            waiting.setdefault((same, cell if exam.each_cell else None), {})[cell] = state
    for (same, _), cells in waiting.items():
        item, passage = next(iter(cells))
        item_id, subtopic = item_ids[item]
        twin, rating = (None, None) if exam.each_cell else graded.get(same, (None, None))
        yield PendingCells(
            query_text,
            same.item,
            keys_of[same.answers],
            texts[same.passage],
            tuple(cells),
            twin,
            answer_keys[same.answers],
            _earlier_state(cells.values()),
            PendingIds(query_id, item_id, passage_ids[passage], subtopic),
            rating,
        )


def _first_ratings(
    connection: sqlite3.Connection, query: int, exam: GradingScope
) -> dict[Cell, float]:
    """Return the ratings of the first grader of a cascade, expected ones where it has them."""
    if exam.after is None:
        return {}
    rows = connection.execute(
        "SELECT g.item_version, g.passage_version, "
        "coalesce(json_extract(g.detail, '$.expected'), g.rating) FROM item i "
        f"CROSS JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE} "
        "WHERE i.query = ? AND i.active AND g.state = 0",
        (exam.after[0], query),
    )
    return {(item, passage): rating for item, passage, rating in rows}


def _earlier_state(states: Iterable[int | None]) -> int | None:
    """Return the state of cells that share a reply; None if one was never tried."""
    distinct = set(states)
    return None if None in distinct else max(state for state in distinct if state is not None)


def _wanted(state: int | None, select: str) -> bool:
    if state == GRADED:
        return False
    return select == "pending" or (state is None) == (select == "new")


def _query(connection: sqlite3.Connection, query: int) -> tuple[str, str]:
    """Return the id and text of a query."""
    row = connection.execute("SELECT query_id, text FROM query WHERE query = ?", (query,))
    query_id, text = row.fetchone()
    return query_id, text


def _known_states(
    connection: sqlite3.Connection,
    query: int,
    grader: int | None,
    exam: GradingScope,
    item_texts: list[str],
) -> tuple[dict[tuple[int, int, str | None], int], dict[_Texts, tuple[Cell, int]]]:
    """Return the states of all cells with these item texts, and one graded cell by texts.

    States are keyed by the texts of the cell and by the answer key, if it mattered.
    """
    states: dict[tuple[int, int, str | None], int] = {}
    graded: dict[_Texts, tuple[Cell, int]] = {}
    # a prompt with the query: grades for an earlier text of the query do not count
    of_query = "AND i.query = :query AND q.text IS json_extract(g.detail, '$.query')"
    rows = connection.execute(
        "SELECT g.item_version, g.passage_version, g.state, g.rating, p.hash, v.text, k.answers, "
        "i.answers "
        # this join order looks up the grades of the items instead of scanning all of the grader
        "FROM item_version v CROSS JOIN item i USING (item) JOIN query q USING (query) "
        "CROSS JOIN grade g ON g.grader = :grader AND g.item_version = v.version "
        "LEFT JOIN answer_key k ON k.answer_key = g.answer_key "
        "JOIN passage_version p ON p.version = g.passage_version "
        f"WHERE v.text IN (SELECT value FROM json_each(:texts)) "
        f"{of_query if exam.by_query else ''} "
        "ORDER BY g.item_version, g.passage_version, g.answer_key",
        {"grader": grader, "texts": json.dumps(item_texts), "query": query},
    )
    for item, passage, state, rating, digest, text, made_from, answers in rows:
        states[item, passage, made_from] = state
        if state == GRADED:
            graded[_Texts(digest, text, made_from or answers)] = (item, passage), rating
    return states, graded


def _answers_due(
    connection: sqlite3.Connection, query: int, grader: int | None, exam: GradingScope, select: str
) -> Iterator[PendingCells]:
    """Yield extracted answers to verify, for items with an answer key; equal ones once."""
    rows = connection.execute(
        "SELECT v.text, i.answers, i.answer_key, g.item_version, g.passage_version, g.reply, "
        "mine.state, w.hash, i.item_id, p.passage_id, "
        "(SELECT f.subtopic_id FROM subtopic f WHERE f.subtopic = i.subtopic) "
        "FROM item i JOIN bank b USING (bank) "
        "JOIN item_version v ON v.version = i.version "
        "JOIN grade g ON g.grader = :source AND g.item_version = v.version AND g.state = 0 "
        f"AND {IN_FORCE} "
        "JOIN passage p ON p.version = g.passage_version "
        "JOIN passage_version w ON w.version = g.passage_version "
        "LEFT JOIN grade mine ON mine.grader = :grader AND mine.item_version = g.item_version "
        "AND mine.passage_version = g.passage_version AND mine.answer_key = i.answer_key "
        "WHERE i.query = :query AND i.kind = :kind AND i.active AND b.name = :bank "
        "AND i.answers <> '[]' AND g.reply IS NOT NULL ORDER BY p.passage, i.item",
        {
            "source": exam.answers_of,
            "grader": grader,
            "query": query,
            "kind": exam.kind,
            "bank": exam.bank,
        },
    )
    waiting: dict[tuple[str, str, int, str], dict[Cell, int | None]] = {}
    ids: dict[Cell, tuple[str, str, str | None]] = {}
    for item, keys, key, item_version, passage_version, reply, state, digest, *named in rows:
        if _wanted(state, select) and (exam.shard is None or exam.shard.holds(digest)):
            cell = (item_version, passage_version)
            item_id, passage_id, subtopic = named
            ids[cell] = (item_id, passage_id, subtopic)
            waiting.setdefault((item, keys, key, reply), {})[cell] = state
    query_id, query_text = _query(connection, query)
    for (item, keys, key, reply), cells in waiting.items():
        yield PendingCells(
            query_text,
            item,
            tuple(from_json(keys)),
            reply,
            tuple(cells),
            answer_key=key,
            before=_earlier_state(cells.values()),
            ids=PendingIds(query_id, *ids[next(iter(cells))]),
        )


def copy_grade(connection: sqlite3.Connection, grader: int, due: PendingCells) -> None:
    """Copy the grade of a cell with equal texts to pending cells."""
    connection.executemany(
        "INSERT OR REPLACE INTO grade SELECT grader, ?, ?, answer_key, state, rating, reply, rule, "
        "confidence, detail FROM grade WHERE grader = ? AND item_version = ? "
        "AND passage_version = ? AND answer_key IN (0, ?)",
        [(*cell, grader, *(due.twin or ()), due.answer_key) for cell in due.cells],
    )
