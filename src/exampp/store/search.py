"""Search records by words, by a full scan without an index.

A scan of a hundred thousand passages takes 0.1 s; an index would slow down every import.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.graders import choose_grader
from exampp.records.selection import SEARCH_KINDS, SearchKind
from exampp.records.wording import quoted
from exampp.store.bank import item_kinds
from exampp.store.grades import IN_FORCE, graders

LONGEST = 300
"""Maximum characters of a search text."""
_BEFORE = 80
"""Characters of an excerpt before the first hit."""
_WANTED = re.compile(r'"([^"]+)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One record that contains all words.

    The ids name what it belongs to, empty if nothing: the `query_ids` of a passage are those of all
    queries that it was pooled, ranked or judged for. `text` is the searched text, `about` the text
    of its item or query, `author` the grader or the person who wrote it, `note` further
    information.
    """

    kind: SearchKind
    query_ids: tuple[str, ...]
    item_id: str
    passage_id: str
    text: str
    about: str
    author: str
    note: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The hits of one kind, in stored order.

    `more`: further records match.
    """

    kind: SearchKind
    records: tuple[SearchHit, ...]
    more: bool


def search_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of the first 300 characters; a quoted phrase is one word."""
    cleaned = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text[:LONGEST])
    matches = (phrase or word for phrase, word in _WANTED.findall(cleaned))
    return tuple({word.casefold(): word.strip() for word in matches if word.strip()}.values())


class ExcerptPiece(NamedTuple):
    """A part of an excerpt, and whether it is a searched word."""

    text: str
    is_hit: bool


def excerpt_pieces(text: str, words: Sequence[str], length: int = 240) -> list[ExcerptPiece]:
    """Return about `length` characters around the first hit, with hits as separate pieces."""
    by_length = sorted(words, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, by_length)) or r"\Z", re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - _BEFORE) if first else 0
    if start:
        start = text.rfind(" ", 0, start) + 1 or start
    cut = text[start : start + length]
    pieces = [ExcerptPiece("\N{HORIZONTAL ELLIPSIS} ", False)] if start else []
    at = 0
    for match in pattern.finditer(cut):
        if match.start() > at:
            pieces.append(ExcerptPiece(cut[at : match.start()], False))
        if match[0]:
            pieces.append(ExcerptPiece(match[0], True))
        at = match.end()
    rest = cut[at:] + "\N{HORIZONTAL ELLIPSIS}" * (start + length < len(text))
    return [*pieces, ExcerptPiece(rest, False)] if rest else pieces


class _Searched(NamedTuple):
    """The search of one kind: SQL for rows by key, and the searched columns.

    `rows` select query id, item id, passage id, text, about, said by, note.
    """

    rows: str
    columns: tuple[str, ...]
    key: str


_OF_BANK = "(:bank IS NULL OR b.name = :bank)"
_KINDS: Mapping[SearchKind, _Searched] = {
    "queries": _Searched(
        "q.query_id, '', '', q.text, '', '', '' FROM query q WHERE TRUE",
        ("q.text", "q.query_id"),
        "q.query",
    ),
    "items": _Searched(
        "q.query_id, i.item_id, '', coalesce(v.text, ''), q.text, '', "
        "CASE i.active WHEN 1 THEN '' ELSE 'retired' END FROM item i "
        "JOIN item_version v ON v.version = i.version JOIN bank b ON b.bank = i.bank "
        f"JOIN query q ON q.query = i.query WHERE i.kind <> 'query' AND {_OF_BANK}",
        ("v.text", "i.item_id"),
        "i.item",
    ),
    "passages": _Searched(
        "'', '', p.passage_id, v.text, v.title, '', '' "
        "FROM passage p JOIN passage_version v ON v.version = p.version WHERE TRUE",
        ("v.text", "v.title", "p.passage_id"),
        "p.passage",
    ),
    "replies": _Searched(
        "q.query_id, i.item_id, p.passage_id, CASE WHEN g.reply IS NOT NULL THEN g.reply "
        "ELSE coalesce(json_extract(g.detail, '$.answer'), json_extract(g.detail, '$.reason')) "
        "END, coalesce(v.text, q.text), r.model || ':' || r.prompt, coalesce(g.rating, '') "
        "FROM item i CROSS JOIN bank b ON b.bank = i.bank CROSS JOIN grader r "
        "CROSS JOIN grade g ON g.grader = r.grader AND g.item_version = i.version "
        "CROSS JOIN passage_version w ON w.version = g.passage_version "
        "CROSS JOIN passage p ON p.passage = w.passage AND p.version = w.version "
        "JOIN item_version v ON v.version = i.version JOIN query q ON q.query = i.query "
        "WHERE i.active AND (b.name = '' OR :bank IS NULL OR b.name = :bank) "
        f"AND (:grader IS NULL OR r.key = :grader) AND {IN_FORCE}",
        (
            "g.reply",
            "json_extract(g.detail, '$.answer')",
            "json_extract(g.detail, '$.reason')",
        ),
        "i.item, r.grader, g.passage_version",
    ),
    "decisions": _Searched(
        "q.query_id, i.item_id, p.passage_id, d.reason, coalesce(v.text, q.text), d.author, "
        "coalesce(d.rating, 'withdrawn') FROM decision d "
        "JOIN item_version v ON v.version = d.item_version JOIN item i USING (item) "
        "JOIN bank b ON b.bank = i.bank JOIN query q ON q.query = i.query "
        "JOIN passage_version w ON w.version = d.passage_version "
        f"JOIN passage p ON p.passage = w.passage WHERE (b.name = '' OR {_OF_BANK})",
        ("d.reason", "d.author"),
        "d.decision",
    ),
    "edits": _Searched(
        "q.query_id, i.item_id, '', e.reason, coalesce(v.text, ''), e.author, e.operation "
        "FROM item_edit e JOIN item i USING (item) JOIN item_version v ON v.version = e.version "
        f"JOIN bank b ON b.bank = i.bank JOIN query q ON q.query = i.query WHERE {_OF_BANK}",
        ("e.reason",),
        "e.edit",
    ),
    "systems": _Searched(
        "'', '', '', s.name, '', '', '' FROM system s WHERE TRUE",
        ("s.name",),
        "s.system",
    ),
}
_QUERIES_OF = """
SELECT m.passage, q.query_id FROM (
    SELECT passage, query FROM pool WHERE passage IN (SELECT value FROM json_each(:passages))
    UNION SELECT passage, query FROM judgment
    WHERE passage IN (SELECT value FROM json_each(:passages))
    UNION SELECT passage, query FROM ranking
    WHERE passage IN (SELECT value FROM json_each(:passages))
) m JOIN query q USING (query) ORDER BY m.passage, q.query
"""


def search(
    connection: sqlite3.Connection,
    text: str,
    *,
    kinds: Sequence[SearchKind] = SEARCH_KINDS,
    grader: str | None = None,
    bank: str | None = None,
    most: int = 20,
) -> list[SearchPage]:
    """Find the first records with all words of a text; see `Collection.search`."""
    if unknown := [kind for kind in kinds if kind not in SEARCH_KINDS]:
        raise InputError(
            f"unknown kind of records {unknown[0]!r}",
            field="kinds",
            hint=f"Known: {', '.join(SEARCH_KINDS)}",
        )
    if most < 1:
        raise InputError(f"invalid most: {most}", field="most", hint="Use 1 or more")
    if bank is not None and not item_kinds(connection, bank):
        raise InputError(f"no bank {quoted(bank)} with items", field="bank")
    if grader is not None:
        identities = [stored.identity for stored in graders(connection)]
        grader = choose_grader(identities, grader=grader).key
    values = {"grader": grader, "bank": bank, "most": most + 1}
    words = search_words(text)
    return [_search_kind(connection, kind, words, values) for kind in kinds]


def _search_kind(
    connection: sqlite3.Connection,
    kind: SearchKind,
    words: Sequence[str],
    values: Mapping[str, str | int | None],
) -> SearchPage:
    if not words:
        return SearchPage(kind, (), more=False)
    searched = _KINDS[kind]
    patterns = {
        f"w{n}_{m}": f"%{_plain(one)}%"
        for n, word in enumerate(words)
        for m, one in enumerate(_variants(word))
    }
    conditions = (
        " OR ".join(
            f"{column} LIKE :w{n}_{m} ESCAPE '\\'"
            for column in searched.columns
            for m in range(len(_variants(word)))
        )
        for n, word in enumerate(words)
    )
    key = searched.key
    rows = connection.execute(
        f"SELECT {key.partition(',')[0]}, {searched.rows} "
        f"AND ({') AND ('.join(conditions)}) ORDER BY {key} LIMIT :most",
        {**values, **patterns},
    ).fetchall()
    queries: dict[int, list[str]] = {}
    if kind == "passages":
        keys = json.dumps([row[0] for row in rows])
        for passage, query_id in connection.execute(_QUERIES_OF, {"passages": keys}):
            queries.setdefault(passage, []).append(query_id)
    hits = [
        SearchHit(
            kind,
            tuple(queries.get(place, [str(query_id)] if query_id else [])),
            *(str("" if one is None else one) for one in texts),
        )
        for place, query_id, *texts in rows
    ]
    most = int(values["most"] or 0) - 1
    return SearchPage(kind, tuple(hits[:most]), more=len(hits) > most)


def _variants(word: str) -> list[str]:
    """Return case variants of a word; SQLite ignores case only for ASCII."""
    if word.isascii():
        return [word]
    cases = (word, word.lower(), word.upper(), word.title())
    forms = (unicodedata.normalize(form, one) for one in cases for form in ("NFC", "NFD"))
    return list({_folded(one): one for one in forms}.values())


def _folded(word: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in word)


def _plain(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
