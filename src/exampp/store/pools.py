"""Read and write pools: passages with judgments, rankings and grades."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from exampp.records import (
    Grade,
    GraderIdentity,
    Judgment,
    Passage,
    PassageGrades,
    PooledPassage,
    QueryPool,
    RankedPassage,
    Residue,
    State,
    Subtopic,
    subtopic_of,
)
from exampp.store.bank import Edit, graded_versions
from exampp.store.grades import (
    IN_FORCE,
    NO_KEY,
    GradeRow,
    SheetRow,
    answer_keys,
    grade_row,
    graders,
    put_grader,
    put_grades,
    put_sheets,
    reading_rules,
    unshown_scales,
)
from exampp.store.inputs import (
    WHOLE_QUERY,
    members,
    put_judgments,
    put_passages,
    put_pool,
    put_subtopics,
    put_systems,
    stage_rankings,
    titles_of,
)
from exampp.store.runs import put_target, targets_of
from exampp.store.sql import from_json, intern, records

_RANKED = """
WITH ranked AS (
    SELECT r.query, r.subtopic, r.system, r.passage, row_number() OVER (
        PARTITION BY r.query, r.subtopic, r.system ORDER BY r.rank, r.score DESC, p.passage_id
    ) AS position
    FROM ranking r JOIN passage p USING (passage)
),
top AS (SELECT DISTINCT query, system, passage FROM ranked WHERE position <= :depth),
ranked_pool AS (
    SELECT query, passage FROM pool
    UNION SELECT query, passage FROM top
    UNION SELECT query, passage FROM judgment WHERE NOT EXISTS (SELECT 1 FROM ranking)
),
member AS (SELECT query, passage FROM ranked_pool UNION SELECT query, passage FROM judgment)
"""


class BankStats(NamedTuple):
    """Items of one kind in a bank, with and without a text, and their cells.

    `cells` counts cells of the ranked pool, `judged_only` those of passages that are only judged.
    """

    bank: str
    kind: str
    items: int
    textless: int
    cells: int
    judged_only: int


class PoolStats(NamedTuple):
    """Counts of the pool: queries, pairs, distinct passages, pairs without a text.

    A pair is (query, passage). `contributed` counts (system, query, passage); divided by `ranked`
    pairs it is the overlap.
    """

    queries: int
    pairs: int
    passages: int
    textless: int
    ranked: int
    contributed: int


def pool_stats(connection: sqlite3.Connection, depth: int) -> PoolStats:
    """Return the size of the pool of the top `depth` of every ranking."""
    row = connection.execute(
        f"{_RANKED} SELECT (SELECT count(*) FROM query), count(*), count(DISTINCT m.passage), "
        "count(*) - count(p.version), "
        "(SELECT count(*) FROM (SELECT DISTINCT query, passage FROM top)), "
        "(SELECT count(*) FROM top) FROM member m JOIN passage p USING (passage)",
        {"depth": depth},
    ).fetchone()
    return PoolStats(*row)


def system_stats(connection: sqlite3.Connection, depth: int) -> list[tuple[Any, ...]]:
    """Return the contribution of every system to the pool, sorted by name.

    A row has the system, its queries, its passages in the pool, those also contributed by other
    systems, those without a text, and the minimum, mean and maximum depth of its rankings.
    """
    return connection.execute(
        f"{_RANKED}, brought AS MATERIALIZED (SELECT query, passage, count(*) AS systems FROM top "
        "GROUP BY query, passage), pooled AS (SELECT t.system, count(*) AS pooled, "
        "sum(b.systems > 1) AS shared, sum(p.version IS NULL) AS textless FROM top t "
        "JOIN brought b ON b.query = t.query AND b.passage = t.passage "
        "JOIN passage p ON p.passage = t.passage GROUP BY t.system), "
        "lengths AS (SELECT system, query, count(*) AS length FROM ranked "
        "GROUP BY system, query, subtopic) "
        "SELECT s.name, count(DISTINCT l.query), o.pooled, o.shared, o.textless, min(l.length), "
        "avg(l.length), max(l.length) FROM system s JOIN lengths l USING (system) "
        "JOIN pooled o USING (system) GROUP BY s.system ORDER BY s.name",
        {"depth": depth},
    ).fetchall()


def bank_stats(connection: sqlite3.Connection, depth: int) -> list[BankStats]:
    """Return the number of cells by bank and kind, for passages with a text."""
    return records(
        BankStats,
        connection,
        f"{_RANKED}, size AS MATERIALIZED (SELECT m.query, "
        "count(p.version) FILTER (WHERE r.passage IS NOT NULL) AS ranked, "
        "count(p.version) FILTER (WHERE r.passage IS NULL) AS judged FROM member m "
        "LEFT JOIN ranked_pool r USING (query, passage) JOIN passage p USING (passage) "
        "GROUP BY m.query) SELECT b.name, i.kind, count(v.text), sum(v.text IS NULL), "
        "sum(iif(v.text IS NULL, 0, coalesce(s.ranked, 0))), "
        "sum(iif(v.text IS NULL, 0, coalesce(s.judged, 0))) FROM item i "
        "JOIN bank b USING (bank) LEFT JOIN item_version v ON v.version = i.version "
        "LEFT JOIN size s ON s.query = i.query WHERE i.active "
        "GROUP BY b.bank, i.kind ORDER BY i.kind = 'query', b.bank, i.kind",
        {"depth": depth},
    )


def put_pools(connection: sqlite3.Connection, pools: Iterable[QueryPool], edit: Edit) -> int:
    """Add pools, such as those of a Workbench file; return the number of passages.

    Rankings are only staged; `apply_rankings` stores them. Raises InputError if the same passage
    has different texts in one import.
    """
    return sum(_put_pool(connection, pool, edit) for pool in pools)


def _put_pool(connection: sqlite3.Connection, pool: QueryPool, edit: Edit) -> int:
    query_id, passages = pool.query_id, pool.passages
    query = intern(connection, "query", "query_id", [query_id])[query_id]
    titles = titles_of(connection, [(p.passage_id, p.text) for p in passages if not p.title])
    versions = put_passages(
        connection,
        (Passage(p.passage_id, p.text, p.title or titles.get(p.passage_id, "")) for p in passages),
    )
    put_pool(connection, query, [(versions[p.passage_id][0], p.residue) for p in passages])
    subtopics = _subtopics(connection, query, pool)
    systems = put_systems(connection, (r.system for p in passages for r, _ in p.rankings))
    stage_rankings(
        connection,
        (
            (
                query,
                subtopics[subtopic_of(query_id, ranked.query_id)],
                systems[ranked.system],
                versions[p.passage_id][0],
                ranked.rank,
                ranked.score,
                residue,
            )
            for p in passages
            for ranked, residue in p.rankings
        ),
    )
    put_judgments(
        connection,
        (
            (query, subtopics[j.subtopic_id], versions[p.passage_id][0], j.relevance, residue)
            for p in passages
            for j, residue in p.judgments
        ),
    )
    _put_sheets(connection, query, pool, versions, edit)
    return len(passages)


def _subtopics(
    connection: sqlite3.Connection, query: int, pool: QueryPool
) -> Mapping[str | None, int]:
    ids = {subtopic_of(pool.query_id, r.query_id) for p in pool.passages for r, _ in p.rankings}
    ids |= {judgment.subtopic_id for p in pool.passages for judgment, _ in p.judgments}
    subtopics = put_subtopics(connection, query, [Subtopic(f) for f in sorted(filter(None, ids))])
    whole: dict[str | None, int] = {None: WHOLE_QUERY}
    return whole | subtopics


def _put_sheets(
    connection: sqlite3.Connection,
    query: int,
    pool: QueryPool,
    versions: Mapping[str, tuple[int, int]],
    edit: Edit,
) -> None:
    sheets = [(versions[p.passage_id], sheet) for p in pool.passages for sheet in p.sheets]
    identities: dict[str, GraderIdentity] = {}
    for _, sheet in sheets:
        key = sheet.grader.key
        identities[key] = identities.get(key, sheet.grader).widened(sheet.grader)
    keys = {key: put_grader(connection, identity) for key, identity in identities.items()}
    for _, sheet in sheets:
        if sheet.target is not None:
            put_target(connection, keys[sheet.grader.key], sheet.target, edit.at)
    # readers may share one grade object among many passages: convert it once
    cells = {(s.grader.kind, id(grade)): grade for _, s in sheets for grade in s.grades}
    item_ids = dict.fromkeys((kind, grade.item_id) for (kind, _), grade in cells.items())
    items = graded_versions(connection, query, pool.query_id, item_ids, edit)
    # grades in a file by a grader that verifies count as made with the current answer keys
    today = answer_keys(connection, items.values())
    ruled = {one for one in keys.values() if reading_rules(connection, one) is not None}
    # by identity, which is safe while the pool references all grades
    made: dict[tuple[int, int], GradeRow] = {}
    rows: list[GradeRow] = []
    filed: list[SheetRow] = []
    for (passage, version), sheet in sheets:
        grader = keys[sheet.grader.key]
        for grade in sheet.grades:
            if (grader, id(grade)) not in made:
                item = items[sheet.grader.kind, grade.item_id]
                answer_key = today.get(item, NO_KEY) if grader in ruled else NO_KEY
                made[grader, id(grade)] = grade_row(grader, item, version, grade, answer_key)
        alike = [made[grader, id(grade)] for grade in sheet.grades]
        of_passage = [(row[0], row[1], version, *row[3:]) for row in alike]
        rows += of_passage
        filed.append((query, passage, grader, [row[1] for row in of_passage], sheet.residue))
    put_grades(connection, rows)
    put_sheets(connection, filed)


# ---- reading -------------------------------------------------------------------------------------


def read_pools(connection: sqlite3.Connection) -> Iterator[QueryPool]:
    """Yield the collection as pools, as imported plus later additions.

    Grades are those of current passage texts.
    """
    names, unshown = dict(graders(connection)), unshown_scales(connection)
    targets = targets_of(connection)
    rows = connection.execute("SELECT query, query_id FROM query ORDER BY query").fetchall()
    for query, query_id in rows:
        judgments = _judgments(connection, query, query_id)
        rankings = _rankings(connection, query, query_id)
        sheets = _read_sheets(connection, query)
        yield QueryPool(
            query_id,
            tuple(
                PooledPassage(
                    member.passage_id,
                    member.text,
                    member.title,
                    tuple(judgments[member.passage]),
                    tuple(rankings[member.passage]),
                    tuple(
                        PassageGrades(
                            names[grader],
                            tuple(rows),
                            residue,
                            grader in unshown,
                            verified=verified,
                            target=targets.get(grader),
                        )
                        for grader, (rows, residue, verified) in sheets[member.passage].items()
                    ),
                    member.residue,
                )
                for member in members(connection, query)
                if member.text is not None
            ),
        )


def _judgments(
    connection: sqlite3.Connection, query: int, query_id: str
) -> defaultdict[int, list[tuple[Judgment, Residue]]]:
    by_passage: defaultdict[int, list[tuple[Judgment, Residue]]] = defaultdict(list)
    for passage, passage_id, relevance, subtopic_id, extra in connection.execute(
        "SELECT j.passage, p.passage_id, j.relevance, f.subtopic_id, j.extra FROM judgment j "
        "JOIN passage p USING (passage) LEFT JOIN subtopic f ON f.subtopic = j.subtopic "
        "WHERE j.query = ? ORDER BY j.judgment",
        (query,),
    ):
        judgment = Judgment(query_id, passage_id, relevance, subtopic_id)
        by_passage[passage].append((judgment, from_json(extra)))
    return by_passage


def _rankings(
    connection: sqlite3.Connection, query: int, query_id: str
) -> defaultdict[int, list[tuple[RankedPassage, Residue]]]:
    by_passage: defaultdict[int, list[tuple[RankedPassage, Residue]]] = defaultdict(list)
    for passage, subtopic_id, passage_id, rank, score, system, extra in connection.execute(
        "SELECT r.passage, f.subtopic_id, p.passage_id, r.rank, r.score, s.name, r.extra "
        "FROM ranking r JOIN system s USING (system) JOIN passage p USING (passage) "
        "LEFT JOIN subtopic f ON f.subtopic = r.subtopic WHERE r.query = ? ORDER BY r.ranking",
        (query,),
    ):
        at = f"{query_id}/{subtopic_id}" if subtopic_id else query_id
        ranked = RankedPassage(at, passage_id, rank, score, system)
        by_passage[passage].append((ranked, from_json(extra)))
    return by_passage


class _Filed(NamedTuple):
    """Grades of one passage by one grader, by item version."""

    grades: dict[int, Grade]
    order: list[int] | None
    residue: Residue


_Sheets = dict[int, tuple[list[Grade], Residue, bool]]


def _read_sheets(connection: sqlite3.Connection, query: int) -> defaultdict[int, _Sheets]:
    filed: defaultdict[int, dict[int, _Filed]] = defaultdict(dict)
    for passage, grader, items, extra in connection.execute(
        "SELECT passage, grader, items, extra FROM sheet WHERE query = ? ORDER BY sheet", (query,)
    ):
        filed[passage][grader] = _Filed({}, from_json(items), from_json(extra))
    keyed: set[tuple[int, int]] = set()
    # most cells are alike: they share one object
    made: dict[tuple[Any, ...], Grade] = {}
    for passage, grader, version, with_key, *row in connection.execute(
        "SELECT p.passage, g.grader, g.item_version, g.answer_key > 1, i.item_id, g.state, "
        "g.rating, g.reply, g.rule, g.confidence, g.detail "
        # this join order looks up every grade by key instead of scanning
        "FROM item i CROSS JOIN grader r "
        f"CROSS JOIN grade g ON g.grader = r.grader AND g.item_version = i.version AND {IN_FORCE} "
        "CROSS JOIN passage_version w ON w.version = g.passage_version "
        "JOIN passage p ON p.passage = w.passage AND p.version = w.version "
        "WHERE i.query = ? ORDER BY g.grader, g.item_version",
        (query,),
    ):
        sheet = filed[passage].setdefault(grader, _Filed({}, None, None))
        values = tuple(row)
        grade = made.get(values)
        if grade is None:
            grade = made[values] = _grade(*values)
        sheet.grades[version] = grade
        if with_key:
            keyed.add((passage, grader))
    sheets: defaultdict[int, _Sheets] = defaultdict(dict)
    for passage, by_grader in filed.items():
        for grader, sheet in by_grader.items():
            order = dict.fromkeys([*(sheet.order or ()), *sheet.grades])
            grades = [sheet.grades[version] for version in order if version in sheet.grades]
            sheets[passage][grader] = (grades, sheet.residue, (passage, grader) in keyed)
    return sheets


def _grade(
    item_id: str,
    state: int,
    rating: int | None,
    reply: str | None,
    rule: str,
    confidence: float | None,
    detail: str | None,
) -> Grade:
    return Grade(item_id, State(state), rating, reply, rule, confidence, from_json(detail))
