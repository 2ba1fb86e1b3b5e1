"""The schema of a collection as exampp makes it, and whether a file has that one.

A trigger, a view or a table of somebody else is code that SQLite runs whenever the collection is
used. A file with other parts than those that exampp makes is refused before anything is read.
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from exampp.store.error_mapping import Damaged

DIGEST = "0eaba846fa81cb6e9189460cf349b358"
"""The digest of the newest schema: to compare it is quicker than to make the schema."""
_OBJECTS = (
    "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM main.sqlite_master "
    # the indices of primary keys, which the tables imply, and what ANALYZE counts
    "WHERE NOT (type IS 'index' AND sql IS NULL) "
    "AND NOT (type IS 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"
)

Object = tuple[str, str, str]
"""Type, name and SQL of a part of a schema."""


def objects(connection: sqlite3.Connection) -> frozenset[Object]:
    """Return the parts of the schema, their SQL without quotation marks and line breaks."""
    rows = connection.execute(_OBJECTS).fetchall()
    return frozenset(
        (_text(kind), _text(name), " ".join(_text(sql).replace('"', "").split()))
        for kind, name, sql in rows
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def digest(found: frozenset[Object]) -> str:
    """Return the digest of the parts of a schema."""
    return hashlib.sha256(repr(sorted(found)).encode(errors="replace")).hexdigest()[:32]


def check_schema(connection: sqlite3.Connection, steps: tuple[str, ...], file: str) -> None:
    """Compare the schema with what the steps make.

    Raises:
        Damaged: It has parts that they do not make, or lacks some.
    """
    found = objects(connection)
    if digest(found) == DIGEST:
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for statement in newest(steps):
            made.execute(statement)
        expected = objects(made)
    if found == expected:
        return
    known = {name: kind for kind, name, _ in expected}
    for kind, name, sql in sorted(found - expected):
        if known.get(name) != kind:
            foreign = "it has parts that exampp does not make"
            raise Damaged(file, f"the {kind} {name}: {sql[:100]}", foreign)
        raise Damaged(file, f"the {kind} {name} is not as exampp makes it")
    kind, name, _ = min(expected - found)
    raise Damaged(file, f"the {kind} {name} is missing")


@functools.cache
def newest(steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return statements that make at once what all steps make one after another."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for step in steps:
            for statement in statements(step):
                made.execute(statement)
        _begin, *found, _commit = made.iterdump()
    return tuple(found)


def statements(step: str) -> Iterator[str]:
    """Yield the statements of a step; those inside a trigger belong to it."""
    statement = ""
    for part in step.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# The schema, as numbered steps that are never edited once released.
#
# Step n turns version n into n + 1, in one transaction with the record that it ran (`PRAGMA
# user_version`).
#
# What the tables hold:
# - inputs: query, subtopic, passage and its texts, pool, system, ranking, judgment, source;
# - the exam: bank, bank_line, item and its texts, item_edit (append-only; `item` caches the last),
#   split and sealed (append-only; which items of a bank are secret, committed to as they were after
#   `edit`); generation (append-only; what a model replied when it was asked for items) and likeness
#   (which of these items were dropped or marked, and for which others);
# - grading: grader, grade, sheet (what else a workbench file said of a passage's grades, and their
#   order where it is not that of the items), decision (append-only); lease (which process grades
#   which query just now) and run (what grading took);
# - sample_plan and sample_unit (what was drawn for people to decide, with which probabilities) and
#   sample_judgment (append-only; relevance of drawn passages; `sample` names what plans
#   share that differ in their size alone, here and in decision);
# - batch (requests that were given to a provider together, noted before they are sent; `remote` is
#   its id there, `said` what the provider says of it) and batch_request (which of them is out, and
#   the reply that came to it, until it is a grade);
# - step (what `exampp run` has done, with the fingerprint of what it did it on);
# - pool_tally and cell_tally (what is counted of a query's pool and of the cells of an item's
#   text; see `store.tallies`). A trigger drops a count as soon as a row that it counts is written,
#   whoever writes it; a count that is not there is made anew;
# - checksum (the rows of every other table and the sum of their checksums; see `store.checksums`).
#
# A passage or an item keeps one row per text it ever had, and a grade belongs to two such texts:
# a changed text makes exactly its cells due, and a restored one finds its grades again. A
# verified grade belongs to an answer key, too: `grade.answer_key` is 0 where no key played a
# part, and otherwise that of the known answers that it was made from (1: there were none).
# `grader.rules` says how a grader's replies are read where known answers play a part ('{}':
# nobody noted it), and is NULL for all others. An item is known by its query, bank, kind and id:
# a question and a nugget of one text are two. In ranking, judgment and item, subtopic 0 stands
# for the query as a whole. `extra` columns hold JSON: what a file said beyond what the columns
# hold. A decision was made on a scale of ratings, or (`verdict`) of yes and no.


APPLICATION_ID = 0x4558414D  # "EXAM"

_OF_POOLS = "".join(
    f"""
    CREATE TRIGGER {table}_made AFTER INSERT ON {table} BEGIN
        DELETE FROM pool_tally WHERE query = NEW.query;
    END;
    CREATE TRIGGER {table}_changed AFTER UPDATE ON {table} BEGIN
        DELETE FROM pool_tally WHERE query IN (OLD.query, NEW.query);
    END;
    CREATE TRIGGER {table}_gone AFTER DELETE ON {table} BEGIN
        DELETE FROM pool_tally WHERE query = OLD.query;
    END;
    """
    for table in ("pool", "judgment", "ranking")
)

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE query (
        query INTEGER PRIMARY KEY,
        query_id TEXT NOT NULL UNIQUE,
        text TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE TABLE facet (
        facet INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        facet_id TEXT NOT NULL,
        text TEXT NOT NULL DEFAULT '',
        UNIQUE (query, facet_id)
    ) STRICT;

    CREATE TABLE passage (
        passage INTEGER PRIMARY KEY,
        passage_id TEXT NOT NULL UNIQUE,
        version INTEGER REFERENCES passage_version,
        extra TEXT
    ) STRICT;
    CREATE TABLE passage_version (
        version INTEGER PRIMARY KEY,
        passage INTEGER NOT NULL REFERENCES passage,
        title TEXT NOT NULL DEFAULT '',
        text TEXT NOT NULL,
        hash BLOB NOT NULL,
        UNIQUE (passage, hash)
    ) STRICT;
    CREATE INDEX passage_version_by_hash ON passage_version (hash);
    CREATE TABLE pool (
        pool INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        passage INTEGER NOT NULL REFERENCES passage,
        extra TEXT,
        UNIQUE (query, passage)
    ) STRICT;
    CREATE TABLE system (
        system INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE ranking (
        ranking INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        facet INTEGER NOT NULL DEFAULT 0,
        system INTEGER NOT NULL REFERENCES system,
        passage INTEGER NOT NULL REFERENCES passage,
        rank INTEGER NOT NULL,
        score REAL NOT NULL,
        extra TEXT,
        UNIQUE (query, facet, system, passage)
    ) STRICT;
    CREATE TABLE judgment (
        judgment INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        facet INTEGER NOT NULL DEFAULT 0,
        passage INTEGER NOT NULL REFERENCES passage,
        relevance INTEGER NOT NULL,
        extra TEXT,
        UNIQUE (query, facet, passage)
    ) STRICT;

    CREATE TABLE bank (
        bank INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE bank_line (
        bank INTEGER NOT NULL REFERENCES bank,
        query INTEGER NOT NULL REFERENCES query,
        facet INTEGER NOT NULL DEFAULT 0,
        extra TEXT,
        PRIMARY KEY (bank, query, facet)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE item (
        item INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        bank INTEGER NOT NULL REFERENCES bank,
        facet INTEGER NOT NULL DEFAULT 0,
        item_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER REFERENCES item_version,
        weight REAL NOT NULL DEFAULT 1,
        answers TEXT NOT NULL DEFAULT '[]',
        active INTEGER NOT NULL DEFAULT 1,
        extra TEXT,
        UNIQUE (query, bank, item_id)
    ) STRICT;
    CREATE TABLE item_version (
        version INTEGER PRIMARY KEY,
        item INTEGER NOT NULL REFERENCES item,
        text TEXT,
        UNIQUE (item, text)
    ) STRICT;
    CREATE INDEX item_version_by_text ON item_version (text);
    CREATE TABLE item_edit (
        edit INTEGER PRIMARY KEY,
        item INTEGER NOT NULL REFERENCES item,
        operation TEXT NOT NULL,
        version INTEGER NOT NULL REFERENCES item_version,
        weight REAL NOT NULL,
        answers TEXT NOT NULL,
        active INTEGER NOT NULL,
        author TEXT NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX item_edit_of_item ON item_edit (item);
    CREATE TABLE split (
        split INTEGER PRIMARY KEY,
        bank INTEGER NOT NULL REFERENCES bank,
        share REAL NOT NULL,
        seed INTEGER NOT NULL,
        salt TEXT NOT NULL,
        commitment TEXT NOT NULL,
        edit INTEGER NOT NULL,
        author TEXT NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE sealed (
        split INTEGER NOT NULL REFERENCES split,
        item INTEGER NOT NULL REFERENCES item,
        PRIMARY KEY (split, item)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE generation (
        generation INTEGER PRIMARY KEY,
        bank INTEGER NOT NULL REFERENCES bank,
        query INTEGER NOT NULL REFERENCES query,
        facet INTEGER NOT NULL DEFAULT 0,
        model TEXT NOT NULL,
        prompt TEXT NOT NULL,
        prompt_hash TEXT NOT NULL,
        settings TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        reply TEXT,
        items INTEGER NOT NULL,
        at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX generation_of_query ON generation (bank, query, facet);

    CREATE TABLE grader (
        grader INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        model TEXT NOT NULL,
        prompt TEXT NOT NULL,
        kind TEXT NOT NULL,
        lowest INTEGER NOT NULL,
        highest INTEGER NOT NULL,
        settings TEXT NOT NULL
    ) STRICT;
    CREATE TABLE grade (
        grader INTEGER NOT NULL REFERENCES grader,
        item_version INTEGER NOT NULL REFERENCES item_version,
        passage_version INTEGER NOT NULL REFERENCES passage_version,
        state INTEGER NOT NULL,
        rating INTEGER,
        reply TEXT,
        rule TEXT NOT NULL DEFAULT '',
        confidence REAL,
        detail TEXT,
        PRIMARY KEY (grader, item_version, passage_version),
        CHECK ((rating IS NULL) = (state <> 0))
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sheet (
        sheet INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        passage INTEGER NOT NULL REFERENCES passage,
        grader INTEGER NOT NULL REFERENCES grader,
        items TEXT,
        extra TEXT,
        UNIQUE (query, passage, grader)
    ) STRICT;
    CREATE TABLE decision (
        decision INTEGER PRIMARY KEY,
        item_version INTEGER NOT NULL REFERENCES item_version,
        passage_version INTEGER NOT NULL REFERENCES passage_version,
        rating INTEGER,
        author TEXT NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT;

    CREATE TABLE lease (
        grader INTEGER NOT NULL REFERENCES grader,
        query INTEGER NOT NULL REFERENCES query,
        owner TEXT NOT NULL,
        until REAL NOT NULL,
        PRIMARY KEY (grader, query)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE run (
        run INTEGER PRIMARY KEY,
        grader INTEGER NOT NULL REFERENCES grader,
        started TEXT NOT NULL,
        seconds REAL NOT NULL DEFAULT 0,
        asked INTEGER NOT NULL DEFAULT 0,
        cells INTEGER NOT NULL DEFAULT 0,
        tokens_read INTEGER NOT NULL DEFAULT 0,
        tokens_cached INTEGER NOT NULL DEFAULT 0,
        tokens_written INTEGER NOT NULL DEFAULT 0,
        detail TEXT
    ) STRICT;

    CREATE TABLE source (
        source INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        hash TEXT NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (name, kind, hash)
    ) STRICT;
    CREATE TABLE step (
        name TEXT PRIMARY KEY,
        fingerprint TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE decision ADD COLUMN verdict INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decision ADD COLUMN blind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decision ADD COLUMN adjudicates INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX decision_of_cell ON decision (item_version, passage_version);
    """,
    """
    CREATE TABLE item_by_kind (
        item INTEGER PRIMARY KEY,
        query INTEGER NOT NULL REFERENCES query,
        bank INTEGER NOT NULL REFERENCES bank,
        facet INTEGER NOT NULL DEFAULT 0,
        item_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER REFERENCES item_version,
        weight REAL NOT NULL DEFAULT 1,
        answers TEXT NOT NULL DEFAULT '[]',
        active INTEGER NOT NULL DEFAULT 1,
        extra TEXT,
        UNIQUE (query, bank, kind, item_id)
    ) STRICT;
    INSERT INTO item_by_kind (item, query, bank, facet, item_id, kind, version, weight, answers,
        active, extra) SELECT item, query, bank, facet, item_id, kind, version, weight, answers,
        active, extra FROM item;
    DROP TABLE item;
    ALTER TABLE item_by_kind RENAME TO item;
    """,
    """
    ALTER TABLE run ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE run ADD COLUMN cost REAL;
    """,
    """
    CREATE TABLE answer_key (
        answer_key INTEGER PRIMARY KEY,
        answers TEXT NOT NULL UNIQUE
    ) STRICT;
    INSERT INTO answer_key (answer_key, answers) VALUES (1, '[]');
    INSERT OR IGNORE INTO answer_key (answers) SELECT answers FROM item ORDER BY item;
    ALTER TABLE item ADD COLUMN answer_key INTEGER NOT NULL DEFAULT 1;
    UPDATE item SET answer_key = (SELECT k.answer_key FROM answer_key k
        WHERE k.answers = item.answers) WHERE answers <> '[]';
    CREATE INDEX item_with_key ON item (bank, kind) WHERE active AND answers <> '[]';
    ALTER TABLE grader ADD COLUMN rules TEXT;
    UPDATE grader SET rules = '{}' WHERE json_extract(settings, '$.answers_of') IS NOT NULL
        OR coalesce(json_extract(settings, '$.prompt_hash'), json_extract(settings, '$.read'))
        IS NOT NULL AND EXISTS (SELECT 1 FROM grade g WHERE g.grader = grader.grader
            AND json_extract(g.detail, '$.answer') IS NOT NULL);
    CREATE TABLE grade_by_key (
        grader INTEGER NOT NULL REFERENCES grader,
        item_version INTEGER NOT NULL REFERENCES item_version,
        passage_version INTEGER NOT NULL REFERENCES passage_version,
        answer_key INTEGER NOT NULL DEFAULT 0,
        state INTEGER NOT NULL,
        rating INTEGER,
        reply TEXT,
        rule TEXT NOT NULL DEFAULT '',
        confidence REAL,
        detail TEXT,
        PRIMARY KEY (grader, item_version, passage_version, answer_key),
        CHECK ((rating IS NULL) = (state <> 0))
    ) STRICT, WITHOUT ROWID;
    INSERT INTO grade_by_key SELECT g.grader, g.item_version, g.passage_version,
        CASE WHEN r.rules IS NULL THEN 0 ELSE i.answer_key END,
        g.state, g.rating, g.reply, g.rule, g.confidence, g.detail
        FROM grade g JOIN grader r ON r.grader = g.grader
        JOIN item_version v ON v.version = g.item_version JOIN item i USING (item);
    DROP TABLE grade;
    ALTER TABLE grade_by_key RENAME TO grade;
    """,
    """
    CREATE TABLE likeness (
        likeness INTEGER PRIMARY KEY,
        generation INTEGER NOT NULL REFERENCES generation,
        text TEXT NOT NULL,
        dropped INTEGER NOT NULL,
        differs TEXT NOT NULL,
        like_id TEXT NOT NULL,
        like_text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX likeness_of_generation ON likeness (generation);
    """,
    """
    CREATE TABLE sample_plan (
        plan INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        design TEXT NOT NULL,
        seed INTEGER NOT NULL,
        fold_seed INTEGER NOT NULL,
        expected REAL NOT NULL,
        unit TEXT NOT NULL,
        measure TEXT NOT NULL,
        k INTEGER NOT NULL,
        min_rating INTEGER NOT NULL,
        min_relevant INTEGER NOT NULL,
        grader TEXT NOT NULL,
        bank TEXT NOT NULL,
        kind TEXT NOT NULL,
        pool_hash TEXT NOT NULL,
        pool_size INTEGER NOT NULL,
        systems TEXT NOT NULL,
        author TEXT NOT NULL,
        at TEXT NOT NULL,
        formula INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE sample_unit (
        unit INTEGER PRIMARY KEY,
        plan INTEGER NOT NULL REFERENCES sample_plan,
        query_id TEXT NOT NULL,
        unit_id TEXT NOT NULL,
        pi REAL NOT NULL,
        UNIQUE (plan, query_id, unit_id),
        CHECK (pi > 0 AND pi <= 1)
    ) STRICT;
    CREATE TABLE sample_judgment (
        judgment INTEGER PRIMARY KEY,
        sample TEXT NOT NULL,
        query INTEGER NOT NULL REFERENCES query,
        passage_version INTEGER NOT NULL REFERENCES passage_version,
        relevance INTEGER,
        author TEXT NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX sample_judgment_of ON sample_judgment (sample, query, passage_version);
    ALTER TABLE decision ADD COLUMN sample TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE batch (
        batch INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        grader INTEGER NOT NULL REFERENCES grader,
        provider TEXT NOT NULL,
        server TEXT NOT NULL,
        remote TEXT,
        state TEXT NOT NULL,
        said TEXT NOT NULL DEFAULT '',
        requests INTEGER NOT NULL,
        answered INTEGER NOT NULL DEFAULT 0,
        worst REAL NOT NULL DEFAULT 0,
        at TEXT NOT NULL,
        expires TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE TABLE batch_request (
        request TEXT PRIMARY KEY,
        batch INTEGER NOT NULL REFERENCES batch,
        number INTEGER NOT NULL,
        reply TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX batch_request_of ON batch_request (batch);
    """,
    """
    ALTER TABLE facet RENAME TO subtopic;
    ALTER TABLE subtopic RENAME COLUMN facet TO subtopic;
    ALTER TABLE subtopic RENAME COLUMN facet_id TO subtopic_id;
    ALTER TABLE ranking RENAME COLUMN facet TO subtopic;
    ALTER TABLE judgment RENAME COLUMN facet TO subtopic;
    ALTER TABLE bank_line RENAME COLUMN facet TO subtopic;
    ALTER TABLE item RENAME COLUMN facet TO subtopic;
    ALTER TABLE generation RENAME COLUMN facet TO subtopic;
    """,
    f"""
    CREATE TABLE pool_tally (
        query INTEGER PRIMARY KEY,
        depth INTEGER NOT NULL,
        passages INTEGER NOT NULL,
        without_text INTEGER NOT NULL,
        rankings INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX pool_tally_without_text ON pool_tally (query) WHERE without_text > 0;
    CREATE TABLE cell_tally (
        item_version INTEGER NOT NULL,
        grader INTEGER NOT NULL,
        answer_key INTEGER NOT NULL,
        state INTEGER NOT NULL,
        rule TEXT NOT NULL,
        rating INTEGER NOT NULL,
        reason ANY NOT NULL,
        cells INTEGER NOT NULL,
        current INTEGER NOT NULL,
        first INTEGER,
        pooled INTEGER NOT NULL,
        graded INTEGER NOT NULL,
        otherwise INTEGER NOT NULL,
        PRIMARY KEY (item_version, grader, answer_key, state, rule, rating, reason)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER grade_made AFTER INSERT ON grade BEGIN
        DELETE FROM cell_tally WHERE item_version = NEW.item_version AND grader = NEW.grader;
    END;
    CREATE TRIGGER grade_changed AFTER UPDATE ON grade BEGIN
        DELETE FROM cell_tally WHERE item_version = NEW.item_version AND grader = NEW.grader;
        DELETE FROM cell_tally WHERE item_version = OLD.item_version AND grader = OLD.grader;
    END;
    CREATE TRIGGER grade_gone AFTER DELETE ON grade BEGIN
        DELETE FROM cell_tally WHERE item_version = OLD.item_version AND grader = OLD.grader;
    END;
    {_OF_POOLS}
    CREATE TRIGGER passage_given_text AFTER UPDATE OF version ON passage
    WHEN OLD.version IS NULL BEGIN
        DELETE FROM pool_tally WHERE without_text > 0;
    END;
    CREATE TRIGGER passage_changed AFTER UPDATE OF passage_id, version ON passage
    WHEN OLD.version IS NOT NULL OR EXISTS (SELECT 1 FROM passage_version v
        WHERE v.passage = OLD.passage AND v.version IS NOT NEW.version) BEGIN
        DELETE FROM pool_tally;
    END;
    CREATE TRIGGER item_moved AFTER UPDATE OF query ON item BEGIN
        DELETE FROM pool_tally WHERE query IN (OLD.query, NEW.query);
    END;
    """,
    """
    CREATE TABLE checksum (
        name TEXT PRIMARY KEY,
        rows INTEGER NOT NULL,
        total INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    DELETE FROM pool_tally;
    ALTER TABLE pool_tally ADD COLUMN judged_only INTEGER NOT NULL DEFAULT 0;
    CREATE TRIGGER first_ranking AFTER INSERT ON ranking
    WHEN (SELECT count(*) FROM (SELECT 1 FROM ranking LIMIT 2)) = 1 BEGIN
        DELETE FROM pool_tally;
    END;
    CREATE TRIGGER last_ranking AFTER DELETE ON ranking
    WHEN NOT EXISTS (SELECT 1 FROM ranking) BEGIN
        DELETE FROM pool_tally;
    END;
    """,
)
