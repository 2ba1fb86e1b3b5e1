"""Relevance judgments that name texts in place of ids, as pools of what they judge."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from exampp.formats import umbrela
from exampp.formats.lines import OnError
from exampp.formats.rag_values import digest
from exampp.records import PassageGrades, PooledPassage, QueryPool
from exampp.store.bank import Edit
from exampp.store.inputs import add_query, passages_with_text, queries_with_text
from exampp.store.pools import put_pools


def take_judged(connection: sqlite3.Connection, path: Path, on_error: OnError, edit: Edit) -> int:
    """Take the judgments of umbrela over as direct grades; returns how many there are.

    They are of the query and the passage of the collection that have these texts; where there is
    none, of new ones whose id is the MD5 of the text.
    """
    judged = list(umbrela.read(path, on_error))
    queries = queries_with_text(connection, {one.query for one in judged})
    passages = passages_with_text(connection, {one.passage for one in judged})
    pools: dict[str, dict[str, PooledPassage]] = {}
    for one in judged:
        query_id = queries.get(one.query) or digest(one.query)
        passage_id = passages.get(one.passage) or digest(one.passage)
        add_query(connection, query_id, one.query)
        sheet = PassageGrades(one.grader, (replace(one.grade, item_id=query_id),))
        pool = pools.setdefault(query_id, {})
        known = pool.setdefault(passage_id, PooledPassage(passage_id, one.passage))
        pool[passage_id] = replace(known, sheets=(*known.sheets, sheet))
    put_pools(connection, (QueryPool(name, tuple(p.values())) for name, p in pools.items()), edit)
    return len(judged)
