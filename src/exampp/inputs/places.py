"""Queries and subtopics by the ids and texts with which files name them.

A file without query ids gets the MD5 of each question. Such a generated id is the query that has
this text, whichever of the two files comes first.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief, digest
from exampp.formats.read_warnings import add_warning
from exampp.records import Query, Subtopic
from exampp.records.wording import counted
from exampp.store.bank import known_queries
from exampp.store.inputs import (
    WHOLE_QUERY,
    add_query,
    put_subtopics,
    query_keys,
    rename_query,
    texts_of_queries,
)

_MD5 = re.compile("[0-9a-f]{32}")


class QueryPlaces:
    """Finds queries and subtopics by ids as files write them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.queries = query_keys(connection)
        self.found: dict[str, tuple[int, int]] = {}
        self._of_texts: dict[str, list[str]] | None = None
        self._ids: dict[str, list[str]] | None = None

    def find(self, written: str) -> tuple[int, int]:
        """Return (query key, subtopic key) of an id as written; InputError for an unknown query."""
        place = self.found.get(written)
        if place is None:
            place = self.found[written] = self._resolve(written)
        return place

    def bring(self, written: str, text: str) -> None:
        """Return a dd a query that a file names with its text.

        Unless it is known, or a subtopic of one.

        A text that is known stays.
        """
        if not text.strip() or ("/" in written and written not in self.queries):
            return
        if written not in self.queries:
            if written == digest(text) and (same := self._with_text(written)):
                self.queries[written] = self.queries[same]
                return
            rename_generated(self.connection, None, [Query(written, text)])
        self.queries[written] = add_query(self.connection, written, text)

    def id_of_text(self, text: str) -> str:
        """Return the id of the only query with this text; InputError for several or none."""
        if self._ids is None:
            self._ids = {}
            for query_id, known in known_queries(self.connection).items():
                self._ids.setdefault(known.strip(), []).append(query_id)
        found = self._ids.get(text.strip(), [])
        if len(found) == 1:
            return found[0]
        if (generated := digest(text)) in found:
            return generated
        raise InputError(
            f"{'several queries have' if found else 'no query has'} the text {brief(text)}",
            field="query",
            mend="Import the queries first, or name them in a column query_id",
        )

    def _with_text(self, generated: str) -> str | None:
        """Return the only query whose text has this MD5; None for several or none."""
        if self._of_texts is None:
            self._of_texts = queries_of_texts(self.connection)
        found = self._of_texts.get(generated, [])
        return found[0] if len(found) == 1 else None

    def _resolve(self, written: str) -> tuple[int, int]:
        if written in self.queries:
            return self.queries[written], WHOLE_QUERY
        if _MD5.fullmatch(written) and (same := self._with_text(written)):
            return self.queries[same], WHOLE_QUERY
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


def queries_of_texts(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the ids of the queries that have a text, by the MD5 of the text."""
    found: dict[str, list[str]] = {}
    for query_id, text in known_queries(connection).items():
        if text.strip():
            found.setdefault(digest(text), []).append(query_id)
    return found


def unmet(connection: sqlite3.Connection, path: Path, queries: Sequence[Query]) -> list[Query]:
    """Return the queries without those of a generated id whose text another query has.

    A query with a generated id in the collection gets the id that a query of equal text has here.
    Where several queries have the text, all of them stay, and a note says so.
    """
    of_texts = queries_of_texts(connection)
    new = []
    for query in queries:
        others = of_texts.get(digest(query.text), []) if query.text.strip() else []
        if query.query_id != digest(query.text) or not others or query.query_id in others:
            new.append(query)
        elif len(others) > 1:
            _note_several(path, query.text, others)
            new.append(query)
    rename_generated(connection, path, new)
    return new


def rename_generated(
    connection: sqlite3.Connection, path: Path | None, queries: Sequence[Query]
) -> None:
    """Give stored queries with generated ids the ids that queries of equal text have here."""
    ids: dict[str, list[str]] = {}
    for query in queries:
        if query.text.strip() and query.query_id != (generated := digest(query.text)):
            ids.setdefault(generated, []).append(query.query_id)
    for generated, text in texts_of_queries(connection, ids).items():
        named = list(dict.fromkeys(ids[generated]))
        if digest(text) != generated:
            continue
        if len(named) > 1 or not rename_query(connection, generated, named[0]):
            _note_several(path, text, [generated, *named])


def _note_several(path: Path | None, text: str, ids: Sequence[str]) -> None:
    what = f"queries {', '.join(ids)} have the same text and stay separate: {brief(text)}"
    add_warning(path or "queries", None, what)


def note_bare(path: Path, query_ids: Sequence[str]) -> None:
    """Note queries without a text that have one question each, which may be that text."""
    what = f"{counted(len(query_ids), 'query')} without a text, such as {query_ids[0]!r}, and with "
    what += "one question each. If the questions are the texts of the queries, say --queries"
    add_warning(path, None, what)
