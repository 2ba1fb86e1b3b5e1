"""Where `query` and `query/subtopic` ids of runs, qrels and responses belong."""

from __future__ import annotations

import sqlite3
from functools import partial

from exampp.errors import InputError
from exampp.formats import banks, plain_bank
from exampp.formats.fields import shown
from exampp.records import Subtopic
from exampp.store.bank_history import known_queries
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


def plain_banks(connection: sqlite3.Connection) -> banks.Reader:
    """Reads banks as people write them, which may name a query of the collection by its text."""
    ids: dict[str, list[str]] = {}
    for query_id, text in known_queries(connection).items():
        ids.setdefault(text.strip(), []).append(query_id)

    def query_of(text: str) -> str:
        found = ids.get(text.strip(), [])
        if len(found) == 1:
            return found[0]
        raise InputError(
            f"{'several queries have' if found else 'no query has'} the text {shown(text)}",
            field="query",
            mend="Import the queries first, or name them in a column query_id",
        )

    return partial(plain_bank.read, query_of=query_of)
