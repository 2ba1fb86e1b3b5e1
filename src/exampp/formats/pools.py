"""Passages with their query: pairs that put a passage into the pool of a query, without a rank.

Lines of JSON, or rows of a table, with a query (id, text or both), a passage id and a text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import passages, trec_objects
from exampp.formats.fields import brief, duplicate_error
from exampp.formats.headers import PASSAGE
from exampp.formats.json_objects import OBJECT, identifier, key_of, optional_text, required_text
from exampp.formats.lines import OnError, decode_json, raise_error, read_lines
from exampp.formats.rag_values import digest
from exampp.formats.read_warnings import Keys
from exampp.records import Passage

QUERY_KEYS = ("query_id", "qid", "topic_id", "queryid", "query-id")
QUERY_TEXT_KEYS = ("query_text", "query")
ID_KEYS = (*passages.ID_KEYS, *sorted(PASSAGE - set(passages.ID_KEYS)))
TEXT_KEYS = passages.TEXT_KEYS
_RESULTS = frozenset(
    {*trec_objects.RANK_KEYS, *trec_objects.RELEVANCE_KEYS, *trec_objects.SYSTEM_KEYS}
    | {"nuggets", "items", "questions", "candidates", "candidate_text", "subtopics"}
)


class PooledText(NamedTuple):
    """A passage of a query's pool; `query_text` is empty where the file has the id alone."""

    query_id: str
    query_text: str
    passage: Passage


def is_pool(names: Collection[str]) -> bool:
    """Tell whether records of these fields are passages with their query, and nothing else."""
    return _RESULTS.isdisjoint(names) and all(
        any(key in names for key in keys)
        for keys in ((*QUERY_KEYS, *QUERY_TEXT_KEYS), PASSAGE | {"_id"}, TEXT_KEYS)
    )


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[PooledText]:
    """Yield the pairs of a file in file order; a query without an id gets the MD5 of its text.

    A passage of several queries is one passage. InputError for a pair without a query, an id or a
    text, for a pair that occurs twice, and for a passage id that has two texts.
    """
    keys = Keys(path, {*QUERY_KEYS, *QUERY_TEXT_KEYS, *ID_KEYS, *TEXT_KEYS, "title"})
    pairs: dict[tuple[str, str], int] = {}
    texts: dict[str, tuple[int, str]] = {}
    for number, line in read_lines(path):
        try:
            fields = decode_json(line, OBJECT, path, number)
            used = {key_of(fields, some) for some in (QUERY_KEYS, ID_KEYS, TEXT_KEYS)}
            keys.see(fields, number, {*used, *QUERY_TEXT_KEYS, "title"})
            asked = optional_text(fields, QUERY_TEXT_KEYS).strip()
            has_id = key_of(fields, QUERY_KEYS) is not None or not asked
            query_id = identifier(fields, QUERY_KEYS) if has_id else digest(asked)
            passage_id, text = identifier(fields, ID_KEYS), required_text(fields, TEXT_KEYS)
            if not text.strip():
                raise InputError(f"passage {brief(passage_id)} has a blank text", field="text")
            title = optional_text(fields, ("title",))
            first, known = texts.setdefault(passage_id, (number, digest(f"{title}\0{text}")))
            if known != digest(f"{title}\0{text}"):
                raise InputError(
                    f"passage {brief(passage_id)} has another text on line {first}",
                    field="text",
                    mend="Give different texts different ids",
                )
            earlier = pairs.setdefault((query_id, passage_id), number)
            if earlier != number:
                what = f"passage {brief(passage_id)} of query {brief(query_id)}"
                raise duplicate_error(what, earlier, path, number, "passage_id")
        except InputError as error:
            on_error(error.at(path, number))
            continue
        yield PooledText(query_id, asked, Passage(passage_id, text, title))
