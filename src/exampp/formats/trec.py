"""Columns of TREC files, split at whitespace, and rows of runs and qrels as JSON objects."""

from __future__ import annotations

from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief, number, real
from exampp.formats.format import Shape
from exampp.formats.json_values import Fields, key_of
from exampp.formats.lines import decode_part

QUERY_KEYS = (
    *("query_id", "qid", "topic_id", "narrative_id", "request_id", "queryid", "query-id"),
    *("topic", "q_id", "query"),
)
"""The last is the text of the query where there is one of the others."""
PASSAGE_KEYS = (
    *("passage_id", "paragraph_id", "pid", "docno", "docid", "doc_id", "document_id"),
    *("corpus_id", "corpus-id", "_id"),
)
RANK_KEYS = ("rank",)
SCORE_KEYS = ("score",)
SYSTEM_KEYS = ("system", "run_id", "run_tag", "run", "method", "tag")
RELEVANCE_KEYS = ("relevance", "rel", "label", "judgment", "judgement", "grade", "rating", "score")
HIGHEST_RELEVANCE = 2**15 - 1
"""Judgments are stored in 16 bits."""
_BOM = "\ufeff"


BEIR = Shape((("query-id", "query_id"), ("corpus-id", "corpus_id"), ("score",)), most=3)
"""Rows of BEIR's qrels, where a score is a judgment."""


def whole_number(fields: Fields, keys: tuple[str, ...], highest: int = 2**31 - 1) -> int:
    """Return the integer under the first of `keys`; 2.0 is one, as frames with gaps have it."""
    value = any_number(fields, keys)
    if value != int(value):
        raise InputError(f"{brief(value)} is not an integer", field=keys[0])
    if abs(value) > highest:
        raise InputError(f"{brief(int(value))} is beyond +-{highest}", field=keys[0])
    return int(value)


def any_number(fields: Fields, keys: tuple[str, ...]) -> float:
    """Return the finite number under the first of `keys`, which may be written as a text."""
    key = key_of(fields, keys)
    if key is None:
        raise InputError(f"no {keys[0]} (any of {', '.join(keys)})", field=keys[0])
    value = decode_part(fields[key], key)
    return real(value, key) if isinstance(value, str) else number(value, key)


def columns(line: bytes, names: tuple[str, ...], form: str) -> list[bytes]:
    """Return the columns of a line; InputError if they are not as many as `names`.

    Only ASCII whitespace separates, as in trec_eval: an id may hold any other character.
    """
    found = line.split()
    if len(found) != len(names):
        raise InputError(
            f"{len(found)} column{'s' * (len(found) != 1)} instead of the {len(names)} of {form} "
            f"({' '.join(names)})"
        )
    return found


class Words(dict[bytes, str]):
    """Ids by how they are written: one copy of each that recurs on many lines."""

    def common(self, data: bytes, field: str) -> str:
        """Return an id that recurs: a query, a system."""
        text = self.get(data)
        if text is None:
            text = self[data] = word_of(data, field)
        return text


def word_of(data: bytes, field: str) -> str:
    """Return an id; InputError if it is not UTF-8 or starts with a byte-order mark."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", field=field, mend="Convert the file to UTF-8") from None
    if text.startswith(_BOM):
        raise InputError(
            "a byte-order mark inside the file",
            field=field,
            mend="It comes from joining files that start with one; remove it",
        )
    return text


def check_word(text: str, field: str, path: str | Path) -> str:
    """Return a text that can be written as one column; InputError otherwise.

    Refused are empty text, whitespace of any alphabet (tools differ in what they split at) and a
    byte-order mark at the start (readers drop it).
    """
    if text.split() != [text] or text.startswith(_BOM):
        raise InputError(
            f"{brief(text)} cannot be a column of a TREC file: it is empty, holds whitespace or "
            "starts with a byte-order mark",
            file=path,
            field=field,
        )
    return text
