"""Grades, decisions and runs of another collection taken into this one.

A grade stands before what came to none, and of two that say the same the one with its reply. Of two
that differ ours stays. Decisions are put together; of an author's the newest stands, whatever the
collection in which it was made.
"""

from __future__ import annotations

import sqlite3

from exampp.store.grades import find_grader, graders, put_grader, reading_rules
from exampp.store.merging import NULL, MergeStep, differ
from exampp.store.merging_bank import ITEM
from exampp.store.merging_inputs import QUERY_PASSAGE


def merge_graders(step: MergeStep, theirs: sqlite3.Connection) -> None:
    """Make the graders of another collection known here, those that are the same as one.

    Before items are merged: grades that were made without answer keys, by a grader that is known to
    read by them there, count as made from today's keys.
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


def merge_grades(step: MergeStep) -> None:
    """Take grades, what files said beside them, decisions, and what runs took."""
    _grades(step)
    _sheets(step)
    _decisions(step)
    _samples(step)
    _runs(step)


_KEY = ("grader", "item_version", "passage_version", "answer_key")
_SAID = ("state", "rating", "reply", "rule", "confidence", "detail")
_THEIR_GRADES = """
SELECT r.mine AS grader, i.mine AS item_version, p.mine AS passage_version,
    CASE WHEN t.answer_key = 0 AND m.rules IS NOT NULL THEN (SELECT k.mine
        FROM {o}.item_version v JOIN {o}.item USING (item) JOIN to_answer_key k
        ON k.theirs = item.answer_key WHERE v.version = t.item_version)
    ELSE k.mine END AS answer_key, t.state, t.rating, t.reply, t.rule, t.confidence, t.detail
FROM {o}.grade t JOIN to_grader r ON r.theirs = t.grader JOIN main.grader m ON m.grader = r.mine
JOIN to_item_version i ON i.theirs = t.item_version
JOIN to_passage_version p ON p.theirs = t.passage_version
JOIN to_answer_key k ON k.theirs = t.answer_key
"""
_BETTER = (
    "({one}.state = 0 AND {other}.state <> 0 OR {one}.reply IS NOT NULL AND {other}.reply IS NULL "
    "AND ({one}.state = 0) = ({other}.state = 0) AND {one}.rating IS {other}.rating)"
)
_CELL = (
    "(SELECT model FROM main.grader WHERE grader = m.grader) || ' ' || "
    f"(SELECT {ITEM.format(row='v')} FROM main.item_version v WHERE v.version = m.item_version) "
    "|| ' ' || (SELECT p.passage_id FROM main.passage_version v JOIN main.passage p "
    "USING (passage) WHERE v.version = m.passage_version)"
)


def _grades(step: MergeStep) -> None:
    better = _BETTER.format(one="t", other="m")
    worse = _BETTER.format(one="m", other="t")
    both = f"({_THEIR_GRADES}) t JOIN main.grade m ON " + " AND ".join(
        f"m.{name} = t.{name}" for name in _KEY
    )
    differing = " OR ".join(f"m.{name} IS NOT t.{name}" for name in _SAID)
    step.conflict(
        "grade",
        f"SELECT {_CELL} AS id, {_DIFFERING.format(*_FIELDS)} AS field, {_shown('m')} AS here, "
        f"{_shown('t')} AS there FROM {both} WHERE ({differing}) AND NOT {better} AND NOT {worse}",
    )
    columns = ", ".join((*_KEY, *_SAID))
    step.put(
        "grades",
        "grade",
        f"INSERT INTO main.grade ({columns}) SELECT {columns} FROM ({_THEIR_GRADES}) WHERE true "
        f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _SAID)} "
        f"WHERE {_BETTER.format(one='excluded', other='grade')}",
    )


_FIELDS = ("'rating'", "'reply'", "'other fields'")
_DIFFERING = (
    "CASE WHEN m.rating IS NOT t.rating THEN {} WHEN m.reply IS NOT t.reply THEN {} ELSE {} END"
)
"""SQL: what the first field is of which two grades say different things."""


def _shown(row: str) -> str:
    """SQL: what a grade says in that field."""
    rating = f"CASE {row}.state WHEN 0 THEN {row}.rating ELSE 'none: ' || {row}.rule END"
    rest = f"json_array({row}.rule, {row}.confidence, {row}.detail)"
    return _DIFFERING.format(rating, f"{row}.reply", rest)


def _sheets(step: MergeStep) -> None:
    theirs = (
        "{o}.sheet t JOIN to_query q ON q.theirs = t.query JOIN to_passage p "
        "ON p.theirs = t.passage JOIN to_grader r ON r.theirs = t.grader"
    )
    ours = "m.query = q.mine AND m.passage = p.mine AND m.grader = r.mine"
    for column in ("items", "extra"):
        step.conflict(
            "graded passage",
            f"SELECT {QUERY_PASSAGE.format(row='m')} AS id, 'other fields' AS field, "
            f"m.{column} AS here, t.{column} AS there FROM {theirs} JOIN main.sheet m ON {ours} "
            f"WHERE {differ(column, NULL, 'm')}",
        )
    step.put(
        "graded passages",
        "sheet",
        "INSERT INTO main.sheet (query, passage, grader, items, extra) SELECT q.mine, p.mine, "
        f"r.mine, t.items, t.extra FROM {theirs} WHERE true ORDER BY t.sheet "
        "ON CONFLICT DO UPDATE SET items = coalesce(items, excluded.items), "
        "extra = coalesce(extra, excluded.extra) WHERE items IS NULL AND excluded.items IS NOT "
        "NULL OR extra IS NULL AND excluded.extra IS NOT NULL",
    )


_DECIDED = (
    "item_version, passage_version, rating, author, reason, at, verdict, blind, adjudicates, sample"
)


def _decisions(step: MergeStep) -> None:
    """A person may say the same twice within a second: the n-th of them here is the n-th there."""
    numbered = f"row_number() OVER (PARTITION BY {_DECIDED} ORDER BY decision) AS nth"
    mapped = _DECIDED.replace("item_version, passage_version", "i.mine, p.mine")
    names = _DECIDED.split(", ")
    same = " AND ".join(f"m.{name} IS t.{name}" for name in (*names, "nth"))
    step.scratch(
        "their_decision",
        f"decision INTEGER PRIMARY KEY, {_DECIDED}, nth",
        f"SELECT *, {numbered} FROM (SELECT t.decision, {mapped} FROM {{o}}.decision t "
        "JOIN to_item_version i ON i.theirs = t.item_version "
        "JOIN to_passage_version p ON p.theirs = t.passage_version)".replace(
            "i.mine, p.mine", "i.mine AS item_version, p.mine AS passage_version"
        ),
    )
    step.scratch(
        "our_decision",
        f"decision INTEGER PRIMARY KEY, {_DECIDED}, nth",
        f"SELECT decision, {_DECIDED}, {numbered} FROM main.decision",
    )
    step.run("CREATE INDEX temp.our_decision_of ON our_decision (item_version, passage_version)")
    step.put(
        "decisions",
        "decision",
        f"INSERT INTO main.decision ({_DECIDED}) SELECT {_DECIDED} FROM their_decision t "
        f"WHERE NOT EXISTS (SELECT 1 FROM our_decision m WHERE {same}) ORDER BY decision",
    )


_PLAN = (
    "digest, design, seed, fold_seed, expected, unit, measure, k, min_rating, min_relevant, "
    "grader, bank, kind, pool_hash, pool_size, systems, author, at, formula"
)
_FOUND = "sample, query, passage_version, relevance, author, reason, at"


def _samples(step: MergeStep) -> None:
    """Plans by their digest, with their units; judgments of drawn passages as decisions are."""
    new = "SELECT t.* FROM {o}.sample_plan t WHERE t.digest NOT IN (SELECT digest FROM our_digest)"
    step.scratch("our_digest", "digest TEXT PRIMARY KEY", "SELECT digest FROM main.sample_plan")
    step.put(
        "plans of samples",
        "sample_plan",
        f"INSERT INTO main.sample_plan ({_PLAN}) SELECT {_PLAN} FROM ({new}) ORDER BY plan",
    )
    step.run(
        "INSERT INTO main.sample_unit (plan, query_id, unit_id, pi) SELECT m.plan, u.query_id, "
        f"u.unit_id, u.pi FROM ({new}) t JOIN {{o}}.sample_unit u ON u.plan = t.plan "
        "JOIN main.sample_plan m ON m.digest = t.digest ORDER BY u.unit"
    )
    names = _FOUND.split(", ")
    theirs = (
        "SELECT t.judgment, t.sample, q.mine AS query, p.mine AS passage_version, t.relevance, "
        "t.author, t.reason, t.at FROM {o}.sample_judgment t JOIN to_query q ON q.theirs = t.query "
        "JOIN to_passage_version p ON p.theirs = t.passage_version"
    )
    numbered = f"row_number() OVER (PARTITION BY {_FOUND} ORDER BY judgment) AS nth"
    same = " AND ".join(f"m.{name} IS t.{name}" for name in (*names, "nth"))
    step.put(
        "judgments of samples",
        "sample_judgment",
        f"INSERT INTO main.sample_judgment ({_FOUND}) SELECT {_FOUND} "
        f"FROM (SELECT *, {numbered} FROM ({theirs})) t WHERE NOT EXISTS (SELECT 1 "
        f"FROM (SELECT *, {numbered} FROM main.sample_judgment) m WHERE {same}) ORDER BY judgment",
    )


_SPENT = "seconds, asked, cells, tokens_read, tokens_cached, tokens_written, requests, cost, detail"


def _runs(step: MergeStep) -> None:
    """A run is known by its grader and the moment of its start; a copy may hold a part of it."""
    theirs = "{o}.run t JOIN to_grader r ON r.theirs = t.grader"
    spent = ", ".join(f"{name} = t.{name}" for name in _SPENT.split(", "))
    longer = step.run(
        f"UPDATE main.run AS m SET {spent} FROM {theirs} WHERE m.grader = r.mine "
        "AND m.started = t.started AND t.seconds > m.seconds"
    )
    step.count("runs", 0, longer)
    step.put(
        "runs",
        "run",
        f"INSERT INTO main.run (grader, started, {_SPENT}) SELECT r.mine, t.started, "
        f"{', '.join(f't.{name}' for name in _SPENT.split(', '))} FROM {theirs} "
        "WHERE NOT EXISTS (SELECT 1 FROM main.run m WHERE m.grader = r.mine "
        "AND m.started = t.started) ORDER BY t.run",
    )
