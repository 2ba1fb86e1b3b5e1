"""Labels of passages as grades of a grader: an item per query, a cell per passage."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from exampp.store.bank import QUERY_BANK, bank_key, edit_by, put_query_items, put_text_less_items
from exampp.store.inputs import members


def query_items(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """By id of every query: its key, and that of the text of the item that it is.

    Every query becomes an item of direct relevance, also one that is known by its id alone.
    """
    put_query_items(connection, edit_by(None, "calibrate"))
    put_text_less_items(connection, edit_by(None, "calibrate"))
    rows = connection.execute(
        "SELECT q.query_id, q.query, i.version FROM query q JOIN item i USING (query) "
        "WHERE i.bank = ? AND i.kind = 'query' AND i.active",
        (bank_key(connection, QUERY_BANK),),
    )
    return {query_id: (query, version) for query_id, query, version in rows}


def passage_versions(connection: sqlite3.Connection, query: int) -> Mapping[str, int]:
    """By id of every passage of a query that has a text: the key of its text of today."""
    found = members(connection, query, texts=False)
    return {one.passage_id: one.version for one in found if one.version is not None}
