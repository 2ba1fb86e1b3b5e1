"""Queries, passages, rankings and judgments in the store.

Every `put_` function replaces older values and skips equal ones, so repeating it changes nothing.
All of them run inside the caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.records import Judgment, Passage, Query, RankedPassage, Subtopic, check_system_names
from exampp.records.ids import text_hash
from exampp.records.inputs import SystemCount
from exampp.sanitize import check_id, sanitized
from exampp.store.decisions import decision_counts
from exampp.store.sql import (
    batches,
    column,
    exists,
    extra_json,
    from_json,
    has_scratch,
    intern,
    pairs,
    select_integer,
)

_LONGEST = 80
IMPORT_CACHE, USUAL_CACHE = 32_768, 2_000
"""Cache of the database in KiB: an import writes to many places of its indices."""
_SCRATCH = (
    "CREATE TEMP TABLE given (passage INTEGER PRIMARY KEY, version INTEGER NOT NULL)",
    "CREATE TEMP TABLE said (thing TEXT, key TEXT, value TEXT, other TEXT, file INTEGER, "
    "PRIMARY KEY (thing, key)) WITHOUT ROWID",
    "CREATE INDEX temp.said_twice ON said (thing) WHERE other IS NOT NULL",
    "CREATE TEMP TABLE saying AS SELECT 0 AS file",
)
_SAY = """
INSERT INTO said SELECT ?, ?, ?, NULL, file FROM saying WHERE true
ON CONFLICT DO UPDATE SET other = excluded.value
WHERE value <> excluded.value AND file <> excluded.file
"""


def next_file(connection: sqlite3.Connection) -> None:
    """Start recording the statements of the next file."""
    connection.execute("UPDATE saying SET file = file + 1")


def note_statements(
    connection: sqlite3.Connection,
    thing: str,
    statements: Iterable[tuple[str, str]],
    name: Callable[[str], str] = str,
) -> None:
    """Record stated values by key; `name` returns the readable name of a key.

    Does nothing outside of an import. Raises InputError if another file of the import has another
    value.

    No file of an import may contradict another: the later one would win, unnoticed. Within a file
    its reader knows what may be repeated.
    """
    if not has_scratch(connection, "said"):
        return
    connection.executemany(_SAY, ((thing, key, value) for key, value in statements))
    twice = connection.execute(
        "SELECT key, value, other FROM said INDEXED BY said_twice "
        "WHERE thing = ? AND other IS NOT NULL LIMIT 1",
        (thing,),
    ).fetchone()
    if twice is not None:
        key, value, other = twice
        raise InputError(
            f"{thing} {name(key)!r} is {_short(other, value)} here but {_short(value, other)} in "
            "another file of this import",
            hint="Remove it from one of the files, or import them one after the other: the later "
            "one then counts",
        )


def _short(value: str, other: str) -> str:
    """Return a value, from where it differs from another one if they are long."""
    pairs_of = zip(value, other, strict=False)
    same = next((at for at, (one, two) in enumerate(pairs_of) if one != two), len(other))
    start = max(0, same - _LONGEST // 4) if same > _LONGEST // 2 else 0
    end = start + _LONGEST
    return repr("..." * (start > 0) + value[start:end] + "..." * (end < len(value)))


_COUNTS = """
SELECT s.name, count(r.query), coalesce(avg(r.passages), 0) FROM system s LEFT JOIN (
    SELECT system, query, count(DISTINCT passage) AS passages FROM ranking GROUP BY system, query
) r USING (system) GROUP BY s.system ORDER BY s.name
"""


def system_names(connection: sqlite3.Connection) -> list[str]:
    """Return the names of all systems, sorted."""
    return column(connection, "SELECT name FROM system ORDER BY name")


def system_counts(connection: sqlite3.Connection) -> list[SystemCount]:
    """Return all systems, sorted by name."""
    return [SystemCount(*row) for row in connection.execute(_COUNTS).fetchall()]


def put_systems(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return the keys of systems, adding new ones; InputError for invalid names."""
    unique = dict.fromkeys(names)
    check_system_names(unique)
    return intern(connection, "system", "name", unique)


def remove_systems(connection: sqlite3.Connection, names: Iterable[str]) -> int:
    """Remove systems with all rankings; return the number of ranked passages.

    Runs in the caller's transaction. Passages and grades stay. Raises InputError for an unknown
    system.
    """
    removed = 0
    for system in system_keys(connection, names).values():
        removed += connection.execute("DELETE FROM ranking WHERE system = ?", (system,)).rowcount
        connection.execute("DELETE FROM system WHERE system = ?", (system,))
    return removed


def system_keys(connection: sqlite3.Connection, names: Iterable[str]) -> Mapping[str, int]:
    """Return the keys of systems by name. Raises InputError for an unknown system."""
    known = dict(connection.execute("SELECT name, system FROM system ORDER BY name").fetchall())
    for name in names:
        if name not in known:
            raise InputError(
                f"unknown system {name!r}", hint=f"Known: {', '.join(known) or 'none'}"
            )
    return {name: known[name] for name in names}


WHOLE_QUERY = 0
"""The subtopic key of a query as a whole."""


def put_queries(connection: sqlite3.Connection, queries: Iterable[Query]) -> None:
    """Add queries and subtopics; new texts replace stored ones."""
    for batch in batches(queries):
        known = intern(connection, "query", "query_id", [query.query_id for query in batch])
        note_statements(
            connection, "query", [(query.query_id, query.text) for query in batch if query.text]
        )
        connection.executemany(
            "UPDATE query SET text = :text WHERE query = :query AND text <> :text",
            [{"query": known[q.query_id], "text": sanitized(q.text)} for q in batch if q.text],
        )
        connection.executemany(
            "UPDATE query SET answerable = :said WHERE query = :query AND answerable IS NOT :said",
            [
                {"query": known[q.query_id], "said": int(q.answerable)}
                for q in batch
                if q.answerable is not None
            ],
        )
        for query in batch:
            put_subtopics(connection, known[query.query_id], query.subtopics)


def add_query(connection: sqlite3.Connection, query_id: str, text: str) -> int:
    """Return the key of a query, adding it or its text if missing."""
    query = intern(connection, "query", "query_id", [query_id])[query_id]
    connection.execute(
        "UPDATE query SET text = ? WHERE query = ? AND text = ''", (sanitized(text), query)
    )
    return query


def put_subtopics(
    connection: sqlite3.Connection, query: int, subtopics: Sequence[Subtopic]
) -> dict[str, int]:
    """Add subtopics of a query; return the keys of all its subtopics by id."""
    texts = [(f"{query} {one.subtopic_id}", one.text) for one in subtopics if one.text]
    note_statements(connection, "subtopic", texts, lambda key: key.partition(" ")[2])
    connection.executemany(
        "INSERT INTO subtopic (query, subtopic_id, text) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET text = excluded.text "
        "WHERE excluded.text NOT IN ('', text)",
        [
            (query, check_id(subtopic.subtopic_id), sanitized(subtopic.text))
            for subtopic in subtopics
        ],
    )
    return pairs(connection, "SELECT subtopic_id, subtopic FROM subtopic WHERE query = ?", (query,))


def put_passages(
    connection: sqlite3.Connection, passages: Iterable[Passage]
) -> dict[str, tuple[int, int]]:
    """Add passages; a new text becomes current, old texts and grades stay.

    Returns (passage key, version key) of each passage by id.
    """
    versions: dict[str, tuple[int, int]] = {}
    for batch in batches(passages):
        known = intern(connection, "passage", "passage_id", [p.passage_id for p in batch])
        texts = [(known[p.passage_id], sanitized(p.title), sanitized(p.text)) for p in batch]
        rows = [(key, title, text, text_hash(title, text)) for key, title, text in texts]
        connection.executemany(
            "INSERT INTO passage_version (passage, title, text, hash) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            rows,
        )
        connection.executemany(
            "UPDATE passage SET version = v.version FROM passage_version v "
            "WHERE passage.passage = ? AND v.passage = passage.passage AND v.hash = ? "
            "AND passage.version IS NOT v.version",
            [(passage, digest) for passage, _, _, digest in rows],
        )
        connection.executemany(
            "UPDATE passage SET extra = :extra WHERE passage = :passage AND extra IS NOT :extra",
            [
                {"passage": known[p.passage_id], "extra": extra_json(p.extra)}
                for p in batch
                if p.extra
            ],
        )
        current = connection.execute(
            "SELECT passage_id, passage, version FROM passage "
            "WHERE passage IN (SELECT value FROM json_each(?))",
            (str(list(known.values())),),
        )
        stored = {row[0]: (row[1], row[2]) for row in current}
        _refuse_second_texts(connection, stored)
        versions.update(stored)
    return versions


@contextmanager
def import_cache(connection: sqlite3.Connection) -> Iterator[None]:
    """Give a connection the cache of an import, and the usual one however the import ends."""
    connection.execute(f"PRAGMA main.cache_size = -{IMPORT_CACHE}")
    try:
        yield
    finally:
        # on a damaged file this fails, too, and what failed first is the reason
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA main.cache_size = -{USUAL_CACHE}")


def begin_import(connection: sqlite3.Connection) -> None:
    """Create the scratch tables that detect contradictions within one import."""
    for statement in _SCRATCH:
        connection.execute(statement)


def end_import(connection: sqlite3.Connection) -> int:
    """Drop the scratch tables of an import; return the number of writes to them."""
    written = "(SELECT count(*) FROM given) + (SELECT count(*) FROM said)"
    count = select_integer(connection, f"SELECT {written} + (SELECT file FROM saying)")
    for table in ("given", "said", "saying"):
        connection.execute(f"DROP TABLE temp.{table}")
    return count


def _refuse_second_texts(
    connection: sqlite3.Connection, versions: Mapping[str, tuple[int, int]]
) -> None:
    """Raise InputError if a passage has two texts within one import."""
    if not has_scratch(connection, "given"):
        return
    connection.executemany("INSERT OR IGNORE INTO given VALUES (?, ?)", versions.values())
    other = connection.execute(
        "SELECT p.passage_id FROM json_each(?) JOIN given g ON g.passage = value "
        "JOIN passage p USING (passage) WHERE p.version <> g.version LIMIT 1",
        (str([passage for passage, _ in versions.values()]),),
    ).fetchone()
    if other is not None:
        raise InputError(
            f"passage {other[0]!r} has two different texts in the files of this import",
            field="text",
            hint="Use different ids for different texts",
        )


def titles_of(
    connection: sqlite3.Connection, passages: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return the stored titles of passages, as (id, text), with these texts."""
    rows = connection.execute(
        "SELECT p.passage_id, v.title, v.text FROM passage p JOIN passage_version v "
        "USING (version) WHERE v.title <> '' "
        "AND p.passage_id IN (SELECT value FROM json_each(?))",
        (json.dumps([passage_id for passage_id, _ in passages]),),
    )
    known = {row[0]: (row[1], row[2]) for row in rows}
    return {
        passage_id: known[passage_id][0]
        for passage_id, text in passages
        if passage_id in known and known[passage_id][1] == text
    }


def put_pool(connection: sqlite3.Connection, query: int, rows: Sequence[tuple[int, Any]]) -> None:
    """Add passages, as (passage key, other fields), to the pool of a query."""
    connection.executemany(
        "INSERT INTO pool (query, passage, extra) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET extra = excluded.extra WHERE excluded.extra IS NOT extra",
        [(query, passage, extra_json(residue)) for passage, residue in rows],
    )


def add_to_pools(connection: sqlite3.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Add missing passages, as (query key, passage key), to pools."""
    connection.executemany(
        "INSERT INTO pool (query, passage) VALUES (?, ?) ON CONFLICT DO NOTHING", rows
    )


def put_judgments(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, int, Any]]
) -> None:
    """Add judgments: (query key, subtopic key, passage key, relevance, other fields)."""
    rows = list(rows)
    statements = (
        (f"{query} {subtopic} {passage}", str(rel)) for query, subtopic, passage, rel, _ in rows
    )
    note_statements(connection, "judgment", statements, partial(_judged, connection))
    connection.executemany(
        "INSERT INTO judgment (query, subtopic, passage, relevance, extra) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET relevance = excluded.relevance, extra = excluded.extra "
        "WHERE relevance <> excluded.relevance OR extra IS NOT excluded.extra",
        ((*row[:4], extra_json(row[4])) for row in rows),
    )


def _judged(connection: sqlite3.Connection, keys: str) -> str:
    query, _, passage = map(int, keys.split())
    names = connection.execute(
        "SELECT query_id, passage_id FROM query, passage WHERE query = ? AND passage = ?",
        (query, passage),
    )
    return " ".join(names.fetchone())


RankingRow = tuple[int, int, int, int, int, float, Any]
"""(query, subtopic, system, passage, rank, score, other fields); the first four are keys."""


def stage_rankings(connection: sqlite3.Connection, rows: Iterable[RankingRow]) -> None:
    """Stage rankings for `apply_rankings`."""
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS incoming (query INTEGER, subtopic INTEGER, "
        "system INTEGER, passage INTEGER, rank INTEGER, score REAL, extra TEXT, "
        "PRIMARY KEY (query, subtopic, system, passage))"
    )
    try:
        connection.executemany(
            "INSERT INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((*row[:6], extra_json(row[6])) for row in rows),
        )
    except sqlite3.IntegrityError:
        raise InputError(
            "two files of this import rank the same passage for a query and system",
            hint="Use different run names, or import the files separately",
        ) from None


def apply_rankings(connection: sqlite3.Connection) -> int:
    """Replace the stored rankings of every staged (query, system).

    Returns the number of staged rankings.
    """
    if not has_scratch(connection, "incoming"):
        return 0
    count = select_integer(connection, "SELECT count(*) FROM incoming")
    connection.execute(
        "DELETE FROM ranking WHERE (query, system) IN (SELECT DISTINCT query, system FROM incoming)"
        " AND NOT EXISTS (SELECT 1 FROM incoming i WHERE i.query = ranking.query AND "
        "i.subtopic = ranking.subtopic AND i.system = ranking.system "
        "AND i.passage = ranking.passage)"
    )
    connection.execute(
        "INSERT INTO ranking (query, subtopic, system, passage, rank, score, extra) "
        "SELECT * FROM incoming WHERE true ORDER BY rowid "
        "ON CONFLICT DO UPDATE SET rank = excluded.rank, score = excluded.score, "
        "extra = excluded.extra WHERE rank <> excluded.rank OR score <> excluded.score "
        "OR extra IS NOT excluded.extra"
    )
    connection.execute("DROP TABLE incoming")
    return count


class Member(NamedTuple):
    """A pooled, ranked or judged passage of a query.

    If only the id is known, `version` and `text` are None and `title` is empty.
    """

    passage: int
    passage_id: str
    version: int | None
    title: str
    text: str | None
    residue: dict[str, Any] | None


_MEMBERS = """
SELECT p.passage, p.passage_id, p.version, coalesce(v.title, ''), v.text, m.extra FROM (
    SELECT passage, 0 AS source, pool AS place, extra FROM pool WHERE query = :query
    UNION ALL SELECT passage, 1, min(ranking), NULL FROM ranking WHERE query = :query
    AND passage NOT IN (SELECT passage FROM pool WHERE query = :query) GROUP BY passage
    UNION ALL SELECT passage, 2, min(judgment), NULL FROM judgment WHERE query = :query
    AND passage NOT IN (SELECT passage FROM pool WHERE query = :query)
    AND passage NOT IN (SELECT passage FROM ranking WHERE query = :query) GROUP BY passage
) m JOIN passage p USING (passage) LEFT JOIN passage_version v ON v.version = p.version
ORDER BY p.version IS NULL, source, place
"""


def members(connection: sqlite3.Connection, query: int) -> list[Member]:
    """Return the passages of a query: pool in file order, then ranked, then judged ones.

    Passages known only by id come last.
    """
    rows = connection.execute(_MEMBERS, {"query": query}).fetchall()
    return [Member._make((*row[:5], from_json(row[5]))) for row in rows]


def query_keys(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the key of every query by id."""
    return dict(connection.execute("SELECT query_id, query FROM query").fetchall())


def has_text(connection: sqlite3.Connection, passage_id: str) -> bool:
    """Return whether the collection has the text of a passage."""
    return exists(
        connection,
        "SELECT 1 FROM passage WHERE passage_id = ? AND version IS NOT NULL",
        (passage_id,),
    )


def counts(connection: sqlite3.Connection) -> Mapping[str, int]:
    """Count the records of each kind in the collection."""
    tables = {
        "queries": "query",
        "subtopics": "subtopic",
        "passages": "passage WHERE version IS NOT NULL",
        "systems": "system",
        "rankings": "(SELECT DISTINCT query, system FROM ranking)",
        "judgments": "judgment",
        "items": "item WHERE active AND kind <> 'query'",
        "grades": "(SELECT DISTINCT grader, item_version, passage_version FROM grade "
        "WHERE state = 0)",
    }
    counts_by_kind = {
        name: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for name, table in tables.items()
    }
    return counts_by_kind | decision_counts(connection)


def read_queries(connection: sqlite3.Connection) -> Iterator[Query]:
    """Yield all queries with their subtopics, in order."""
    rows = connection.execute(
        "SELECT query, query_id, text, answerable FROM query ORDER BY query"
    ).fetchall()
    for query, query_id, text, said in rows:
        subtopics = connection.execute(
            "SELECT subtopic_id, text FROM subtopic WHERE query = ? ORDER BY subtopic", (query,)
        )
        of_query = tuple(Subtopic(*subtopic) for subtopic in subtopics)
        yield Query(query_id, text, of_query, None if said is None else bool(said))


def unanswerable_queries(connection: sqlite3.Connection) -> dict[str, bool]:
    """Return whether queries are unanswerable, by id, for those that are marked."""
    rows = pairs(connection, "SELECT query_id, answerable FROM query WHERE answerable IS NOT NULL")
    return {query_id: not said for query_id, said in rows.items()}


def source_passages(connection: sqlite3.Connection) -> Iterator[tuple[str, list[Passage]]]:
    """Yield the passages with a text of every query, without those that are answers of systems."""
    from exampp.records.gradebook import kinds_of

    ranked: dict[tuple[str, str], list[str]] = {}
    for row in read_runs(connection):
        ranked.setdefault((row.system, row.query_id), []).append(row.passage_id)
    kinds = kinds_of(system_names(connection), ((s, ids) for (s, _), ids in ranked.items()))
    answers = {one for (s, _), ids in ranked.items() if kinds[s] == "answers" for one in ids}
    for query_id, query in query_keys(connection).items():
        yield (
            query_id,
            [
                Passage(one.passage_id, one.text, one.title)
                for one in members(connection, query)
                if one.text is not None and one.passage_id not in answers
            ],
        )


def read_passages(connection: sqlite3.Connection) -> Iterator[Passage]:
    """Yield all passages that have a text."""
    for passage_id, text, title, extra in connection.execute(
        "SELECT p.passage_id, v.text, v.title, p.extra FROM passage p "
        "JOIN passage_version v USING (version) ORDER BY p.passage"
    ):
        yield Passage(passage_id, text, title, from_json(extra) or {})


_WRITTEN = "q.query_id || coalesce('/' || f.subtopic_id, '')"


def read_runs(connection: sqlite3.Connection) -> Iterator[RankedPassage]:
    """Yield the lines of all runs, system by system."""
    for row in connection.execute(
        f"SELECT {_WRITTEN}, p.passage_id, r.rank, r.score, s.name FROM ranking r "
        "JOIN query q USING (query) LEFT JOIN subtopic f ON f.subtopic = r.subtopic "
        "JOIN passage p USING (passage) JOIN system s USING (system) "
        "ORDER BY r.system, r.query, r.subtopic, r.rank, r.score DESC, p.passage_id"
    ):
        yield RankedPassage(*row)


def read_judgments(connection: sqlite3.Connection) -> Iterator[Judgment]:
    """Yield all judgments, with query ids `query` or `query/subtopic`."""
    for row in connection.execute(
        f"SELECT {_WRITTEN}, p.passage_id, j.relevance FROM judgment j JOIN query q USING (query) "
        "LEFT JOIN subtopic f ON f.subtopic = j.subtopic JOIN passage p USING (passage) "
        "ORDER BY j.judgment"
    ):
        yield Judgment(*row)


def texts_of(connection: sqlite3.Connection, passage_ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of passages, where known."""
    return pairs(
        connection,
        "SELECT p.passage_id, v.text FROM passage p JOIN passage_version v USING (version) "
        "WHERE p.passage_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(passage_ids)),),
    )


def some_texts(connection: sqlite3.Connection, count: int = 200) -> list[str]:
    """Return the texts of the first passages."""
    return column(
        connection,
        "SELECT v.text FROM passage p JOIN passage_version v USING (version) LIMIT ?",
        (count,),
    )


def texts_of_queries(connection: sqlite3.Connection, query_ids: Iterable[str]) -> dict[str, str]:
    """Return the texts of known queries by id."""
    return pairs(
        connection,
        "SELECT query_id, text FROM query WHERE query_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(query_ids)),),
    )


def rename_query(connection: sqlite3.Connection, query_id: str, new: str) -> bool:
    """Rename a query and the item ids that start with its id.

    Returns False without changes if the new id exists, or if sealed items or a sample refer to the
    old one.
    """
    (count,) = connection.execute(
        "SELECT (SELECT count(*) FROM query WHERE query_id = :new) + "
        "(SELECT count(*) FROM sample_unit WHERE query_id = :old) + (SELECT count(*) FROM sealed "
        "JOIN item USING (item) JOIN query USING (query) WHERE query_id = :old)",
        {"old": query_id, "new": check_id(new)},
    ).fetchone()
    if count:
        return False
    connection.execute(
        "UPDATE item SET item_id = :new || substr(item_id, length(:old) + 1) WHERE query = "
        "(SELECT query FROM query WHERE query_id = :old) "
        "AND (item_id = :old OR substr(item_id, 1, length(:old) + 1) = :old || '/')",
        {"old": query_id, "new": new},
    )
    connection.execute("UPDATE query SET query_id = ? WHERE query_id = ?", (new, query_id))
    return True


def queries_with_text(connection: sqlite3.Connection, texts: Iterable[str]) -> dict[str, str]:
    """Return the id of the first query with each text, by text."""
    return pairs(
        connection,
        "SELECT text, query_id FROM query WHERE text IN (SELECT value FROM json_each(?)) "
        "ORDER BY query DESC",
        (json.dumps(list(texts)),),
    )


def passages_with_text(connection: sqlite3.Connection, texts: Iterable[str]) -> dict[str, str]:
    """Return the id of the first passage with each text, by text; titles are ignored."""
    return pairs(
        connection,
        "SELECT v.text, p.passage_id FROM passage p JOIN passage_version v USING (version) "
        "WHERE v.text IN (SELECT value FROM json_each(?)) ORDER BY p.passage DESC",
        (json.dumps(list(texts)),),
    )


def without_text(connection: sqlite3.Connection) -> list[str]:
    """Return the passages known only by id, in order."""
    return column(connection, "SELECT passage_id FROM passage WHERE version IS NULL ORDER BY 1")


def missing_rankings(
    connection: sqlite3.Connection, systems: Sequence[str]
) -> dict[str, list[str]]:
    """Return the queries without a ranking, by incomplete system."""
    missing: dict[str, list[str]] = {}
    for name, query_id in connection.execute(
        "WITH seen AS MATERIALIZED (SELECT DISTINCT query, system FROM ranking) "
        "SELECT s.name, q.query_id FROM json_each(?) wanted JOIN system s ON s.name = wanted.value "
        "CROSS JOIN query q WHERE (q.query, s.system) NOT IN seen ORDER BY wanted.key, q.query",
        (json.dumps(list(systems)),),
    ):
        missing.setdefault(name, []).append(query_id)
    return missing


def unanswered_by_all(connection: sqlite3.Connection) -> list[str]:
    """Return the queries without any ranking."""
    return column(
        connection,
        "SELECT query_id FROM query WHERE query NOT IN (SELECT query FROM ranking) ORDER BY query",
    )


def highest_judgment(connection: sqlite3.Connection) -> int | None:
    """Return the highest judgment; None without judgments."""
    row = connection.execute("SELECT max(relevance) FROM judgment").fetchone()
    return None if row[0] is None else int(row[0])
