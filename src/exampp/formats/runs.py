"""TREC runs: lines of `query Q0 passage rank score system`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, brief, duplicate_error, integer, real
from exampp.formats.json_objects import OBJECT, is_object
from exampp.formats.lines import (
    OnError,
    accept,
    decode_json,
    encode_text,
    raise_error,
    read_lines,
    system_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.trec import Words, columns, word
from exampp.formats.trec_objects import RUN_KEYS, is_ranked, placed, ranked_of
from exampp.records import RankedPassage

_METADATA = b"# ir_metadata"
_COLUMNS = ("query", "Q0", "passage", "rank", "score", "system")
_MARCO_COLUMNS = ("query", "passage", "rank")


def lines_of(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, without the comments of ir_metadata with which a run may start.

    InputError as in `read_lines`, and where there is nothing else.
    """
    in_head: bool | None = None
    for number, line in read_lines(path):
        if in_head is not False:
            in_head = line.startswith(b"#" if in_head else _METADATA)
        if not in_head:
            yield number, line
    if in_head:
        raise InputError("there is nothing but metadata", file=path)


def _ranked(line: bytes, words: Words) -> RankedPassage:
    query, _, passage, rank, score, system = columns(line, _COLUMNS, "a run")
    return RankedPassage(
        words.common(query, "query"),
        words.rare(passage, "passage"),
        integer(rank, "rank"),
        real(score, "score"),
        words.common(system, "system"),
    )


def _ranked_alone(line: bytes, words: Words, system: str) -> RankedPassage:
    query, passage, rank = columns(line, _MARCO_COLUMNS, "a run")
    place = integer(rank, "rank")
    if place < 1:
        raise InputError(f"the rank {place} is below 1", field="rank")
    return RankedPassage(
        words.common(query, "query"), words.rare(passage, "passage"), place, 1 / place, system
    )


def _renamed(found: RankedPassage, system: str, tags: dict[str, None]) -> RankedPassage:
    tags[found.system] = None
    if len(tags) > 1:
        raise InputError(
            f"the file holds several systems, {' and '.join(tags)}, but is named after one",
            field="system",
            mend="Import it by itself, where the last column names them",
        )
    return replace(found, system=system)


def read(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[RankedPassage], None] = accept,
    *,
    system: str | None = None,
) -> Iterator[RankedPassage]:
    """Yield the lines of a run in file order; the last column names the system.

    `check` may refuse a line by raising InputError, which then says where the line is.
    One file may hold several systems, unless `system` says whose it is. Lines of three columns are
    query, passage and rank, of `system` or of one that the file is named after; their scores are
    the reciprocals of the ranks. Lines of JSON are rows as in `trec_objects`; where the
    first has no rank, ranks follow from the scores. InputError for a wrong number of columns, a
    rank that is no integer, a score that is no finite number, a passage that a system returns twice
    for a query.

    Lines of metadata (ir_metadata) before the first are passed over.

    Source: the run formats of trec_eval and MS MARCO.
    """
    start, head = next(lines_of(path))
    named = system or system_of(path)
    words = Words()
    parse: Callable[[bytes], RankedPassage] = partial(_ranked, words=words)
    if len(head.split()) == len(_MARCO_COLUMNS):
        parse = partial(_ranked_alone, words=words, system=named)
    if not is_object(head):
        yield from _read(path, parse, on_error, check, system)
        return
    with_ranks = is_ranked(decode_json(head, OBJECT, path, start))

    keys = Keys(path, RUN_KEYS)

    def row(line: bytes) -> RankedPassage:
        fields = decode_json(line, OBJECT, path, None)
        keys.see(fields, None)
        return ranked_of(fields, named, ranked=with_ranks)

    found = _read(path, row, on_error, check, system)
    yield from found if with_ranks else placed(found)


def _read(
    path: str | Path,
    parse: Callable[[bytes], RankedPassage],
    on_error: OnError,
    check: Callable[[RankedPassage], None],
    system: str | None,
) -> Iterator[RankedPassage]:
    first = FirstLines()
    tags: dict[str, None] = {}
    for number, line in lines_of(path):
        try:
            ranked = parse(line)
            if system is not None:
                ranked = _renamed(ranked, system, tags)
            check(ranked)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        query, passage, returned_by = ranked.query_id, ranked.passage_id, ranked.system
        earlier = first.add((query, passage, returned_by), number)
        if earlier:
            what = f"passage {brief(passage)} of query {brief(query)}"
            what += f" and system {brief(returned_by)}"
            on_error(duplicate_error(what, earlier, path, number, "passage"))
        else:
            yield ranked


def write(path: str | Path, rankeds: Iterable[RankedPassage], head: str = "") -> None:
    """Write a run, columns separated by one space; scores read back exactly.

    `head` are lines that come before it. InputError for an id that cannot be a column, and for a
    score that is not finite.
    """
    with writing(path) as stream:
        stream.write(encode_text(head, path))
        for ranked in rankeds:
            if not math.isfinite(ranked.score):
                raise InputError(
                    f"passage {brief(ranked.passage_id)} of query {brief(ranked.query_id)} "
                    f"has the score {ranked.score}",
                    file=path,
                    field="score",
                )
            query = word(ranked.query_id, "query", path)
            passage = word(ranked.passage_id, "passage", path)
            system = word(ranked.system, "system", path)
            line = f"{query} Q0 {passage} {ranked.rank} {float(ranked.score)!r} {system}\n"
            stream.write(encode_text(line, path))
