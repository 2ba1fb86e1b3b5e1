"""Queries, passages, rankings and judgments of another collection taken into this one."""

from __future__ import annotations

from exampp.store.merging import EMPTY, NULL, MergeStep, differ, fill

_QUERY = "(SELECT query_id FROM main.query WHERE query = {row}.query)"
_PASSAGE = "(SELECT passage_id FROM main.passage WHERE passage = {row}.passage)"
QUERY_PASSAGE = f"{_QUERY} || ' ' || {_PASSAGE}"
"""SQL: the name of a row that is about a passage of a query."""


def merge_inputs(step: MergeStep) -> None:
    """Take queries, subtopics, passages, pools, rankings, judgments and names of files."""
    _queries(step)
    _subtopics(step)
    _passages(step)
    _pool(step)
    _rankings(step)
    _judgments(step)
    step.put(
        "imported files",
        "source",
        "INSERT INTO main.source (name, kind, hash, at) SELECT name, kind, hash, at "
        "FROM {o}.source WHERE true ORDER BY source ON CONFLICT DO NOTHING",
    )


def _queries(step: MergeStep) -> None:
    both = "FROM {o}.query t JOIN main.query q USING (query_id)"
    step.conflict(
        "query",
        "SELECT query_id AS id, 'text' AS field, q.text AS here, t.text AS there "
        f"{both} WHERE {differ('text', EMPTY, 'q')}",
    )
    step.put(
        "queries",
        "query",
        "INSERT INTO main.query (query_id, text) SELECT query_id, text FROM {o}.query WHERE true "
        f"ORDER BY query {fill('text', EMPTY)}",
    )
    step.map("query", f"SELECT t.query, q.query {both}")


def _subtopics(step: MergeStep) -> None:
    theirs = "{o}.subtopic t JOIN to_query q ON q.theirs = t.query"
    both = f"{theirs} JOIN main.subtopic f ON f.query = q.mine AND f.subtopic_id = t.subtopic_id"
    step.conflict(
        "subtopic",
        f"SELECT {_QUERY.format(row='f')} || '/' || f.subtopic_id AS id, 'text' AS field, "
        f"f.text AS here, t.text AS there FROM {both} WHERE {differ('text', EMPTY, 'f')}",
    )
    step.put(
        "subtopics",
        "subtopic",
        f"INSERT INTO main.subtopic (query, subtopic_id, text) "
        "SELECT q.mine, t.subtopic_id, t.text "
        f"FROM {theirs} WHERE true ORDER BY t.subtopic {fill('text', EMPTY)}",
    )
    step.map("subtopic", f"SELECT t.subtopic, f.subtopic FROM {both} UNION ALL SELECT 0, 0")


_NEWER = """
SELECT p.passage, (SELECT count(*) FROM main.passage_version v WHERE v.passage = p.passage
    AND v.hash = tv.hash) AS known_here, (SELECT count(*) FROM {o}.passage_version v
    WHERE v.passage = t.passage AND v.hash = pv.hash) AS known_there, pv.text, tv.text, tv.hash
FROM {o}.passage t JOIN to_passage m ON m.theirs = t.passage
JOIN main.passage p ON p.passage = m.mine JOIN {o}.passage_version tv ON tv.version = t.version
LEFT JOIN main.passage_version pv ON pv.version = p.version
WHERE pv.hash IS NOT tv.hash
"""


def _passages(step: MergeStep) -> None:
    """A text that is one of the earlier ones of the other side is the older one."""
    step.put(
        "passages",
        "passage",
        "INSERT INTO main.passage (passage_id) SELECT passage_id FROM {o}.passage WHERE true "
        "ORDER BY passage ON CONFLICT DO NOTHING",
    )
    step.map(
        "passage",
        "SELECT t.passage, p.passage FROM {o}.passage t JOIN main.passage p USING (passage_id)",
    )
    columns = "passage INTEGER PRIMARY KEY, known_here, known_there, here, there, hash"
    step.scratch("reworded", columns, _NEWER)
    step.conflict(
        "passage",
        f"SELECT {_PASSAGE.format(row='reworded')} AS id, 'text' AS field, here, there "
        "FROM reworded WHERE here IS NOT NULL AND known_here = known_there",
    )
    step.run("DELETE FROM reworded WHERE here IS NOT NULL AND known_here >= known_there")
    theirs = "{o}.passage_version t JOIN to_passage p ON p.theirs = t.passage"
    step.put(
        "texts of passages",
        "passage_version",
        "INSERT INTO main.passage_version (passage, title, text, hash) "
        f"SELECT p.mine, t.title, t.text, t.hash FROM {theirs} WHERE true ORDER BY t.version "
        "ON CONFLICT DO NOTHING",
    )
    step.map(
        "passage_version",
        f"SELECT t.version, v.version FROM {theirs} "
        "JOIN main.passage_version v ON v.passage = p.mine AND v.hash = t.hash",
    )
    step.run(
        "UPDATE main.passage SET version = v.version FROM temp.reworded r "
        "JOIN main.passage_version v ON v.passage = r.passage AND v.hash = r.hash "
        "WHERE passage.passage = r.passage"
    )
    replaced = step.one("SELECT count(*) FROM reworded WHERE here IS NOT NULL")
    step.count("passages", 0, replaced)
    both = "{o}.passage t JOIN to_passage m ON m.theirs = t.passage"
    taken = "p.passage IN (SELECT passage FROM reworded)"
    step.conflict(
        "passage",
        "SELECT p.passage_id AS id, 'other fields' AS field, p.extra AS here, t.extra AS there "
        f"FROM {both} JOIN main.passage p ON p.passage = m.mine "
        f"WHERE {differ('extra', NULL, 'p')} AND NOT {taken}",
    )
    step.run(
        f"UPDATE main.passage AS p SET extra = t.extra FROM {both} WHERE p.passage = m.mine "
        f"AND t.extra IS NOT NULL AND p.extra IS NOT t.extra AND (p.extra IS NULL OR {taken})"
    )


def _pool(step: MergeStep) -> None:
    theirs = (
        "{o}.pool t JOIN to_query q ON q.theirs = t.query JOIN to_passage p ON p.theirs = t.passage"
    )
    step.conflict(
        "pooled passage",
        f"SELECT {QUERY_PASSAGE.format(row='m')} AS id, 'other fields' AS field, m.extra AS here, "
        f"t.extra AS there FROM {theirs} JOIN main.pool m ON m.query = q.mine "
        f"AND m.passage = p.mine WHERE {differ('extra', NULL, 'm')}",
    )
    step.put(
        "pooled passages",
        "pool",
        "INSERT INTO main.pool (query, passage, extra) SELECT q.mine, p.mine, t.extra "
        f"FROM {theirs} WHERE true ORDER BY t.pool {fill('extra', NULL)}",
    )


_RANKED = """
SELECT q.mine, f.mine, s.mine, p.mine, t.rank, t.score, t.extra FROM {o}.ranking t
JOIN to_query q ON q.theirs = t.query JOIN to_subtopic f ON f.theirs = t.subtopic
JOIN to_system s ON s.theirs = t.system JOIN to_passage p ON p.theirs = t.passage ORDER BY t.ranking
"""
_SHOWN = (
    "(SELECT group_concat(passage_id, ' ') FROM (SELECT p.passage_id FROM {table} r "
    "JOIN main.passage p USING (passage) WHERE r.query = d.query AND r.system = d.system "
    "ORDER BY r.subtopic, r.rank, r.score DESC, 1))"
)


def _rankings(step: MergeStep) -> None:
    """What a system returned for a query is one value: ours and theirs are never mixed."""
    step.put(
        "systems",
        "system",
        "INSERT INTO main.system (name) SELECT name FROM {o}.system WHERE true "
        "ORDER BY system ON CONFLICT DO NOTHING",
    )
    step.map(
        "system", "SELECT t.system, s.system FROM {o}.system t JOIN main.system s USING (name)"
    )
    columns = "query, subtopic, system, passage, rank, score, extra"
    step.scratch("ranked", f"{columns}, PRIMARY KEY (query, system, subtopic, passage)", _RANKED)
    step.scratch(
        "both_ranked",
        "query, system, theirs, ours, same, PRIMARY KEY (query, system)",
        # ours are counted once: their index leads from a query and a system to all of the query
        "SELECT t.query, t.system, count(*), m.ours, count(r.ranking) FROM ranked t "
        "JOIN (SELECT query, system, count(*) AS ours FROM main.ranking GROUP BY 1, 2) m "
        "ON m.query = t.query AND m.system = t.system LEFT JOIN main.ranking r "
        "ON r.query = t.query AND r.subtopic = t.subtopic "
        "AND r.system = t.system AND r.passage = t.passage AND r.rank = t.rank "
        "AND r.score = t.score AND r.extra IS t.extra GROUP BY 1, 2",
    )
    here, there = (_SHOWN.format(table=table) for table in ("main.ranking", "ranked"))
    step.conflict(
        "ranking",
        "SELECT (SELECT name FROM main.system WHERE system = d.system) || ' ' || "
        f"{_QUERY.format(row='d')} AS id, 'passages, ranks and scores' AS field, {here} AS here, "
        f"{there} AS there FROM both_ranked d WHERE same < theirs OR same < ours",
    )
    fresh = "WHERE (query, system) NOT IN (SELECT query, system FROM both_ranked)"
    added = step.one(f"SELECT count(*) FROM (SELECT DISTINCT query, system FROM ranked {fresh})")
    step.run(
        f"INSERT INTO main.ranking ({columns}) SELECT {columns} FROM ranked {fresh} ORDER BY rowid"
    )
    step.count("rankings", added)


def _judgments(step: MergeStep) -> None:
    theirs = (
        "{o}.judgment t JOIN to_query q ON q.theirs = t.query "
        "JOIN to_subtopic f ON f.theirs = t.subtopic JOIN to_passage p ON p.theirs = t.passage"
    )
    name = QUERY_PASSAGE.format(row="m")
    for column, field, differs in (
        ("relevance", "relevance", "m.relevance <> t.relevance"),
        ("extra", "other fields", differ("extra", "NULL", "m")),
    ):
        step.conflict(
            "judgment",
            f"SELECT {name} AS id, '{field}' AS field, m.{column} AS here, t.{column} AS there "
            f"FROM {theirs} JOIN main.judgment m ON m.query = q.mine AND m.subtopic = f.mine "
            f"AND m.passage = p.mine WHERE {differs}",
        )
    step.put(
        "judgments",
        "judgment",
        "INSERT INTO main.judgment (query, subtopic, passage, relevance, extra) SELECT q.mine, "
        f"f.mine, p.mine, t.relevance, t.extra FROM {theirs} WHERE true ORDER BY t.judgment "
        f"{fill('extra', NULL)}",
    )
