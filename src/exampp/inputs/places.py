"""Where `query` and `query/subtopic` ids of runs, qrels and responses belong."""

from __future__ import annotations

import sqlite3

from exampp.errors import InputError
from exampp.records import Subtopic
from exampp.store.inputs import WHOLE_QUERY, add_query, put_subtopics, query_keys


class QueryPlaces:
    """Finds queries and subtopics by ids as files write them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.queries = query_keys(connection)
        self.found: dict[str, tuple[int, int]] = {}

    def find(self, written: str) -> tuple[int, int]:
        """(query key, subtopic key) of an id as written; InputError for an unknown query."""
        place = self.found.get(written)
        if place is None:
            place = self.found[written] = self._resolve(written)
        return place

    def bring(self, written: str, text: str) -> None:
        """Add a query that a file names with its text, unless it is known, or a subtopic of one.

        A text that is known stays.
        """
        if text.strip() and ("/" not in written or written in self.queries):
            self.queries[written] = add_query(self.connection, written, text)

    def _resolve(self, written: str) -> tuple[int, int]:
        if written in self.queries:
            return self.queries[written], WHOLE_QUERY
        head = written
        while "/" in head:
            head = head.rpartition("/")[0]
            if head in self.queries:
                query, subtopic = self.queries[head], written[len(head) + 1 :]
                return query, put_subtopics(self.connection, query, [Subtopic(subtopic)])[subtopic]
        raise InputError(
            f"query {written!r} is not in the collection",
            field="query_id",
            mend="Import the queries or the bank first, or leave such lines out with "
            "--on-error skip",
        )
