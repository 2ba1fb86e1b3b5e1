"""Finds records by words, without an index: what is stored is looked through, as far as time goes.

A hundred thousand passages are looked through in 0.1 s of a core, which no index of texts repays
that every import would have to make. What is larger is looked through in parts, by key: a search
that ends early says where to go on.
"""

from __future__ import annotations

import json
import sqlite3
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.graders import choose_grader
from exampp.records.search import SEARCH_KINDS, SearchHit, SearchKind, SearchPage, search_words
from exampp.records.wording import quoted
from exampp.store.bank import item_kinds
from exampp.store.grades import IN_FORCE, graders

Key = tuple[int, int, int]
"""The place of a record: the row that leads to it, and what tells its records apart."""


class _Searched(NamedTuple):
    """How a kind is searched: rows by key, the columns that words are looked for in.

    `rows` select key (3), query id, item id, passage id, text, about, said by, note. `last` is the
    largest first part of a key; so many keys are looked through before the clock is.
    """

    rows: str
    columns: tuple[str, ...]
    key: tuple[str, str, str]
    last: str
    step: int


_OF_BANK = "(:bank IS NULL OR b.name = :bank)"
_KINDS: Mapping[SearchKind, _Searched] = {
    "queries": _Searched(
        "q.query_id, '', '', q.text, '', '', '' FROM query q WHERE TRUE",
        ("q.text", "q.query_id"),
        ("q.query", "0", "0"),
        "SELECT max(query) FROM query",
        20_000,
    ),
    "items": _Searched(
        "q.query_id, i.item_id, '', coalesce(v.text, ''), q.text, '', "
        "CASE i.active WHEN 1 THEN '' ELSE 'retired' END FROM item i "
        "JOIN item_version v ON v.version = i.version JOIN bank b ON b.bank = i.bank "
        f"JOIN query q ON q.query = i.query WHERE i.kind <> 'query' AND {_OF_BANK}",
        ("v.text", "i.item_id"),
        ("i.item", "0", "0"),
        "SELECT max(item) FROM item",
        20_000,
    ),
    "passages": _Searched(
        "'', '', p.passage_id, v.text, v.title, '', '' "
        "FROM passage p JOIN passage_version v ON v.version = p.version WHERE TRUE",
        ("v.text", "v.title", "p.passage_id"),
        ("p.passage", "0", "0"),
        "SELECT max(passage) FROM passage",
        20_000,
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
        ("i.item", "r.grader", "g.passage_version"),
        "SELECT max(item) FROM item",
        20,
    ),
    "decisions": _Searched(
        "q.query_id, i.item_id, p.passage_id, d.reason, coalesce(v.text, q.text), d.author, "
        "coalesce(d.rating, 'withdrawn') FROM decision d "
        "JOIN item_version v ON v.version = d.item_version JOIN item i USING (item) "
        "JOIN bank b ON b.bank = i.bank JOIN query q ON q.query = i.query "
        "JOIN passage_version w ON w.version = d.passage_version "
        f"JOIN passage p ON p.passage = w.passage WHERE (b.name = '' OR {_OF_BANK})",
        ("d.reason", "d.author"),
        ("d.decision", "0", "0"),
        "SELECT max(decision) FROM decision",
        20_000,
    ),
    "edits": _Searched(
        "q.query_id, i.item_id, '', e.reason, coalesce(v.text, ''), e.author, e.operation "
        "FROM item_edit e JOIN item i USING (item) JOIN item_version v ON v.version = e.version "
        f"JOIN bank b ON b.bank = i.bank JOIN query q ON q.query = i.query WHERE {_OF_BANK}",
        ("e.reason",),
        ("e.edit", "0", "0"),
        "SELECT max(edit) FROM item_edit",
        20_000,
    ),
    "systems": _Searched(
        "'', '', '', s.name, '', '', '' FROM system s WHERE TRUE",
        ("s.name",),
        ("s.system", "0", "0"),
        "SELECT max(system) FROM system",
        20_000,
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
    kind: SearchKind,
    words: Sequence[str],
    *,
    grader: str | None = None,
    bank: str | None = None,
    most: int = 20,
    after: str = "",
    until: float = float("inf"),
) -> SearchPage:
    """The first `most` records of a kind that hold all words, whatever their case, from `after` on.

    Replies are those of one grader (its key), items of one `bank`, where these are given. At the
    time `until` (of `time.monotonic`) it stops, though not before it has looked at some. Raises
    InputError where `after` is no place.
    """
    searched, key = _KINDS[kind], _key(after)
    last = connection.execute(searched.last).fetchone()[0] or 0
    start = at = key[0]
    found: list[SearchHit] = []
    sql = _sql(searched, words)
    given = {"grader": grader, "bank": bank, **_patterns(words)}
    while at <= last and len(found) <= most and words:
        rows = connection.execute(
            sql,
            {
                **given,
                "low": at,
                "high": at + searched.step - 1,
                **dict(zip(("k0", "k1", "k2"), key, strict=True)),
                "most": most + 1 - len(found),
            },
        )
        found += [_record(kind, row) for row in rows]
        at += searched.step
        if time.monotonic() > until:
            break
    more = len(found) > most
    found = found[:most]
    ended = at > last or not words
    place = found[-1].place if more else "" if ended else _place((at, -1, -1))
    if kind == "passages":
        found = _with_queries(connection, found)
    looked = 1.0 if more or ended else (at - start) / max(1, last - start + 1)
    return SearchPage(kind, tuple(found), place, looked)


def _sql(searched: _Searched, words: Sequence[str]) -> str:
    key = ", ".join(searched.key)
    conditions = "".join(
        " AND ("
        + " OR ".join(
            f"{column} LIKE :w{n}_{m} ESCAPE '\\'"
            for column in searched.columns
            for m in range(len(_variants(word)))
        )
        + ")"
        for n, word in enumerate(words)
    )
    order = ", ".join(part for part in searched.key if part != "0")
    return (
        f"SELECT {key}, {searched.rows} AND {searched.key[0]} BETWEEN :low AND :high "
        f"AND ({key}) > (:k0, :k1, :k2){conditions} ORDER BY {order} LIMIT :most"
    )


def _variants(word: str) -> list[str]:
    """How a word may be written: SQLite takes letters of ASCII alone for the same in both cases."""
    if word.isascii():
        return [word]
    cases = (word, word.lower(), word.upper(), word.title())
    forms = (unicodedata.normalize(form, one) for one in cases for form in ("NFC", "NFD"))
    return list({_folded(one): one for one in forms}.values())


def _folded(word: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in word)


def _patterns(words: Sequence[str]) -> dict[str, str]:
    return {
        f"w{n}_{m}": f"%{_plain(one)}%"
        for n, word in enumerate(words)
        for m, one in enumerate(_variants(word))
    }


def _plain(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _record(kind: SearchKind, row: tuple[object, ...]) -> SearchHit:
    *key, query_id, item_id, passage_id, text, about, said_by, note = row
    queries = (str(query_id),) if query_id else ()
    texts = (str(item_id), str(passage_id), str(text or ""), str(about), str(said_by), str(note))
    return SearchHit(kind, queries, *texts, place=".".join(map(str, key)))


def _with_queries(connection: sqlite3.Connection, found: Sequence[SearchHit]) -> list[SearchHit]:
    """Passages with the ids of their queries."""
    if not found:
        return []
    keys = [int(one.place.partition(".")[0]) for one in found]
    queries: dict[int, list[str]] = {}
    for passage, query_id in connection.execute(_QUERIES_OF, {"passages": json.dumps(keys)}):
        queries.setdefault(passage, []).append(query_id)
    return [
        replace(one, query_ids=tuple(queries.get(key, ())))
        for key, one in zip(keys, found, strict=True)
    ]


def _place(key: Key) -> str:
    return ".".join(map(str, key))


def _key(place: str) -> Key:
    parts = place.split(".") if place else ["0", "-1", "-1"]
    try:
        one, two, three = (int(part) for part in parts)
    except ValueError:
        raise InputError(f"{place[:60]!r} is no place of a search", field="after") from None
    if not all(-1 <= part < 1 << 63 for part in (one, two, three)):
        raise InputError(f"{place[:60]!r} is no place of a search", field="after")
    return one, two, three


def search_all(
    connection: sqlite3.Connection,
    text: str,
    *,
    kinds: Sequence[SearchKind] = SEARCH_KINDS,
    grader: str | None = None,
    bank: str | None = None,
    most: int = 20,
    after: str = "",
    seconds: float = float("inf"),
) -> list[SearchPage]:
    """Find what holds all words of a text, kind by kind; see `Collection.search`."""
    unknown = [kind for kind in kinds if kind not in SEARCH_KINDS]
    if unknown or (after and len(kinds) != 1):
        raise InputError(
            f"no kind of records is called {unknown[0]!r}" if unknown else "one kind goes on",
            field="kinds",
            hint=f"Known: {', '.join(SEARCH_KINDS)}",
        )
    if most < 1:
        raise InputError(f"at least 1 record can be wanted, not {most}", field="most")
    if bank is not None and not item_kinds(connection, bank):
        raise InputError(f"no bank of the name {quoted(bank)} has items", field="bank")
    if grader is not None:
        known = [stored.identity for stored in graders(connection)]
        grader = choose_grader(known, grader=grader).key
    words, until = search_words(text), time.monotonic() + seconds
    return [
        search(
            connection,
            kind,
            words,
            grader=grader,
            bank=bank,
            most=most,
            after=after,
            until=until,
        )
        for kind in kinds
    ]
