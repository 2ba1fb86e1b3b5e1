"""Generated responses as passages of one judgment pool.

A passage's id is the MD5 of its stripped text, as in the reference's import of TREC RAG output: the
same text of several systems is one passage with several rankings, graded once, and a changed text
is another passage. Which system said it, for which query and in which place, is the ranking.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import pools
from exampp.formats.assignments import GRADER, Assigned
from exampp.formats.candidates import Retrieved
from exampp.formats.fields import brief
from exampp.formats.lines import OnError
from exampp.formats.read_warnings import add_warning
from exampp.formats.responses import Response
from exampp.inputs.places import QueryPlaces
from exampp.inputs.rankings import RunLog, listed, stage, top
from exampp.inputs.segment import Segment, segments
from exampp.records import (
    BankEntry,
    Item,
    Passage,
    PassageGrades,
    PooledPassage,
    QueryPool,
    RankedPassage,
    Residue,
)
from exampp.store.inputs import add_to_pools, put_passages, texts_of
from exampp.store.interning import batches


def passage_id(text: str) -> str:
    """The id of a generated passage."""
    clean = text.strip().encode(errors="surrogatepass")
    return hashlib.md5(clean, usedforsecurity=False).hexdigest()


def take_responses(
    connection: sqlite3.Connection,
    path: Path,
    responses: Iterable[Response],
    log: RunLog,
    on_error: OnError,
    limit: int,
) -> int:
    """Cut responses into passages and rank them in their order; returns how many responses.

    A ranking keeps what its passage cites; a passage keeps the markup that it came from, of the
    system that brought it first.
    """
    places = QueryPlaces(connection)
    count = 0

    def rows() -> Iterator[tuple[RankedPassage, Residue, Passage]]:
        nonlocal count
        for response in responses:
            try:
                places.bring(response.query_id, response.query_text)
                places.find(response.query_id)
                log.see(path, response.query_id, response.system)
                yield from _ranked(response, segments(response, limit))
                count += 1
            except InputError as error:
                on_error(error.at(path))

    for batch in batches(rows()):
        passages: dict[str, Passage] = {}
        for _, _, passage in batch:
            passages.setdefault(passage.passage_id, passage)
        known = texts_of(connection, list(passages))
        put_passages(connection, [passages[key] for key in passages if key not in known])
        stage(connection, places, ((ranked, residue) for ranked, residue, _ in batch))
    return count


def _ranked(
    response: Response, parts: list[Segment]
) -> Iterator[tuple[RankedPassage, Residue, Passage]]:
    if not parts:
        raise InputError(
            f"the response of system {brief(response.system)} to query "
            f"{brief(response.query_id)} is empty"
        )
    # a text that comes twice in a response keeps its first place
    distinct: dict[str, Segment] = {}
    for part in parts:
        distinct.setdefault(passage_id(part.text), part)
    for rank, (key, part) in enumerate(distinct.items(), 1):
        residue = {"set": {"citations": list(part.citations)}} if part.citations else None
        markup = {"markup": part.markup} if part.markup else {}
        yield (
            RankedPassage(response.query_id, key, rank, 1 / rank, response.system),
            residue,
            Passage(key, part.text, extra=markup),
        )


def cited_by(found: Iterable[Response]) -> Iterator[Retrieved]:
    """What responses cite as rankings of systems of their own, `NAME:cited`.

    Citations rank in the order in which a response makes them; those without any are left out.
    """
    for response in found:
        system = f"{response.system}:cited"
        ranking = tuple(
            RankedPassage(response.query_id, cited, rank, 1 / rank, system)
            for rank, cited in enumerate(response.cited, 1)
        )
        if ranking:
            known = {ranked.passage_id for ranked in ranking}
            texts = tuple(one for one in response.documents if one.passage_id in known)
            yield Retrieved(ranking, texts)


def take_candidates(
    connection: sqlite3.Connection,
    path: Path,
    found: Iterable[Retrieved],
    log: RunLog,
    on_error: OnError,
    depth: int | None,
    check: Callable[[str], None],
    *,
    quoted: bool = False,
) -> int:
    """Take retrieved passages with their rankings; `check` refuses an id without a text.

    `quoted` texts are what each report has of a document: one that is known stays.
    """
    places = QueryPlaces(connection)
    others: dict[str, None] = {}
    count = 0
    for one in found:
        try:
            ranking = list(top(one.ranking, depth))
            places.bring(ranking[0].query_id, one.query_text)
            places.find(ranking[0].query_id)
            log.see(path, ranking[0].query_id, ranking[0].system)
            kept = {ranked.passage_id for ranked in ranking}
            texts = [p for p in one.passages if p.passage_id in kept]
            if quoted:
                known = texts_of(connection, sorted(kept))
                same = {p.passage_id for p in texts if known.get(p.passage_id, p.text) == p.text}
                others |= dict.fromkeys(p.passage_id for p in texts if p.passage_id not in same)
                texts = [p for p in texts if p.passage_id not in known]
            put_passages(connection, texts)
            for identifier in sorted(kept - {p.passage_id for p in one.passages}):
                check(identifier)
        except InputError as error:
            on_error(error.at(path))
            continue
        # quoted texts are not looked up in a corpus: only those that nobody quotes are
        note = (lambda _: None) if quoted else log.rank
        count += stage(connection, places, ((ranked, None) for ranked in ranking), note)
    if others:
        names = listed([*others])
        add_warning(path, None, f"known texts of documents stay, of these another is said: {names}")
    return count


def take_pool(connection: sqlite3.Connection, path: Path, on_error: OnError) -> int:
    """Put passages into the pools of the queries that they come with; returns how many pairs."""
    places = QueryPlaces(connection)
    count = 0
    for batch in batches(pools.read(path, on_error)):
        known = []
        for one in batch:
            try:
                places.bring(one.query_id, one.query_text)
                known.append((places.find(one.query_id)[0], one.passage))
            except InputError as error:
                on_error(error.at(path))
        ids = put_passages(connection, (passage for _, passage in known))
        add_to_pools(connection, [(query, ids[one.passage_id][0]) for query, one in known])
        count += len(known)
    return count


def assigned_pools(found: Iterable[Assigned]) -> Iterator[QueryPool]:
    """Assignments as pools: every answer is one passage, of rank 1, with its grades.

    The same answer of several runs is one passage with several rankings; a passage that no system
    ranks has none. InputError where the grades of one passage differ.
    """
    by_query: dict[str, dict[str, PooledPassage]] = {}
    for one in found:
        pool = by_query.setdefault(one.query_id, {})
        key = one.passage_id or passage_id(one.answer)
        known = pool.setdefault(
            key, PooledPassage(key, one.answer, sheets=(PassageGrades(GRADER, one.grades),))
        )
        if known.sheets[0].grades != one.grades:
            raise InputError(
                f"run {brief(one.system)} has the answer of another run to query "
                f"{brief(one.query_id)}, but other assignments",
                mend="Leave one of the two out",
            )
        if one.system:
            ranked = RankedPassage(one.query_id, key, 1, 1.0, one.system)
            length = one.response_length
            residue = None if length is None else {"set": {"response_length": length}}
            pool[key] = replace(known, rankings=(*known.rankings, (ranked, residue)))
    for query_id, pool in by_query.items():
        yield QueryPool(query_id, tuple(pool.values()))


def assigned_bank(found: Iterable[Assigned]) -> Iterator[BankEntry]:
    """The nuggets that the lines name, those of a query once."""
    items: dict[str, dict[str, Item]] = {}
    texts: dict[str, str] = {}
    for one in found:
        texts[one.query_id] = texts.get(one.query_id) or one.query_text
        of_query = items.setdefault(one.query_id, {})
        for item in one.items:
            if of_query.setdefault(item.item_id, item).weight != item.weight:
                raise InputError(
                    f"nugget {brief(item.text)} of query {brief(one.query_id)} is vital in one "
                    "line and okay in another"
                )
    for query_id, of_query in items.items():
        yield BankEntry(query_id, tuple(of_query.values()), texts[query_id])
