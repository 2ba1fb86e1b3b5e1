"""Of a file that is of no known kind: which kinds come near, and what may be a slip."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from exampp.formats import headers, passages, queries, responses
from exampp.formats.headers import nearly, plain
from exampp.formats.plain_rows import MEANINGS
from exampp.formats.rag_presets import ANSWERS, NEEDS, OWN

_SHOWN = 3
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "queries": ("query_id", "text"),
    "passages": ("passage_id", "text"),
    "responses": ("query_id", "system", "text"),
    "bank": ("query_id", "items"),
    "plain-bank": ("query_id", "question"),
    "qrels": ("query_id", "passage_id", "relevance"),
    "umbrela": ("query", "passage", "judgment"),
    **NEEDS,
}
_CALLED: Mapping[str, frozenset[str]] = {
    "query_id": headers.QUERY,
    "passage_id": frozenset(passages.ID_KEYS) | headers.PASSAGE,
    "text": frozenset(passages.TEXT_KEYS + queries.TEXT_KEYS + responses.STATEMENT_KEYS),
    "system": frozenset(responses.SYSTEM_KEYS),
    "items": frozenset({"items", "questions", "nuggets"}),
    "relevance": headers.RELEVANCE,
}
_OF_ANSWERS = {
    "question": frozenset(OWN.query),
    "contexts": frozenset(OWN.contexts),
    "answer": frozenset(OWN.response),
}
_NAMES = frozenset(
    headers.QUERY
    | headers.PASSAGE
    | headers.RELEVANCE
    | set(queries.ID_KEYS + queries.TEXT_KEYS + passages.ID_KEYS + passages.TEXT_KEYS)
    | set(MEANINGS)
    | {name for names in NEEDS.values() for name in names}
    | {"items", "questions", "nuggets", "candidates", "responses"}
)


def nearest_kinds(fields: Collection[str]) -> str:
    """The kinds of which a file has some fields, most first, and what each needs."""
    names = {*fields, *map(plain, fields)}
    shared = {
        kind: sum(bool(names & _called(kind, one)) for one in needs)
        for kind, needs in _NEEDS.items()
    }
    near = [kind for kind in sorted(shared, key=shared.__getitem__, reverse=True) if shared[kind]]
    return ", ".join(f"{kind} ({', '.join(_NEEDS[kind])})" for kind in near[:_SHOWN])


def _called(kind: str, need: str) -> frozenset[str]:
    called = _OF_ANSWERS if kind == ANSWERS else {} if kind in NEEDS else _CALLED
    return called.get(need, frozenset({need}))


def slips_of_fields(fields: Collection[str]) -> str:
    """Which fields or columns nearly have the names of known ones."""
    return nearly(fields, _NAMES)
