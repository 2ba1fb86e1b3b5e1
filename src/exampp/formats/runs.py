"""Runs: lines of `query Q0 passage rank score system`, of `query passage rank`, or of JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief, integer, real
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import OBJECT, Fields, identifier, is_object, key_of
from exampp.formats.lines import (
    Key,
    OnError,
    accept,
    decode_json,
    encode_text,
    lines_below_metadata,
    parse_each,
    raise_error,
    system_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.trec import (
    BEIR,
    PASSAGE_KEYS,
    QUERY_KEYS,
    RANK_KEYS,
    SCORE_KEYS,
    SYSTEM_KEYS,
    Words,
    any_number,
    check_word,
    columns,
    whole_number,
    word_of,
)
from exampp.records import RankedPassage

_COLUMNS = ("query", "Q0", "passage", "rank", "score", "system")
_MARCO_COLUMNS = ("query", "passage", "rank")
_KEYS = (*QUERY_KEYS, *PASSAGE_KEYS, *RANK_KEYS, *SCORE_KEYS, *SYSTEM_KEYS)


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
    the reciprocals of the ranks. Lines of JSON are rows under the names of many tools; where the
    first has no rank, ranks follow from the scores. InputError for a wrong number of columns, a
    rank that is no integer, a score that is no finite number, a passage that a system returns twice
    for a query.

    Source: the run formats of trec_eval and MS MARCO.
    """
    start, head = next(lines_below_metadata(path))
    named = system or system_of(path)
    tags: dict[str, None] = {}
    with_ranks = True
    parse = _from_columns(named, len(head.split()) == len(_MARCO_COLUMNS))
    if is_object(head):
        with_ranks = key_of(decode_json(head, OBJECT, path, start), RANK_KEYS) is not None
        parse = _from_objects(path, named, with_ranks)

    def ranked(line: bytes, _: int) -> RankedPassage:
        found = parse(line)
        if system is not None:
            tags[found.system] = None
            if len(tags) > 1:
                raise InputError(
                    f"the file holds several systems, {' and '.join(tags)}, but is named after one",
                    field="system",
                    mend="Import it by itself, where the last column names them",
                )
            found = replace(found, system=system)
        check(found)
        return found

    rows = parse_each(lines_below_metadata(path), path, on_error, ranked, _KEY)
    yield from rows if with_ranks else _placed(rows)


_KEY = Key(
    lambda one: (one.query_id, one.passage_id, one.system),
    lambda one: (
        f"passage {brief(one.passage_id)} of query {brief(one.query_id)} and system "
        f"{brief(one.system)}"
    ),
    "passage",
)


def _from_columns(named: str, is_short: bool) -> Callable[[bytes], RankedPassage]:
    words = Words()

    def parse(line: bytes) -> RankedPassage:
        if is_short:
            query, passage, rank = columns(line, _MARCO_COLUMNS, "a run")
            place = integer(rank, "rank")
            if place < 1:
                raise InputError(f"the rank {place} is below 1", field="rank")
            score, system = 1 / place, named
        else:
            query, _, passage, rank, value, tag = columns(line, _COLUMNS, "a run")
            place, score = integer(rank, "rank"), real(value, "score")
            system = words.common(tag, "system")
        name = words.common(query, "query")
        return RankedPassage(name, word_of(passage, "passage"), place, score, system)

    return parse


def _from_objects(
    path: str | Path, named: str, with_ranks: bool
) -> Callable[[bytes], RankedPassage]:
    """Parse rows of JSON; without ranks, 0 stands for a rank that `_placed` finds."""
    keys = Keys(path, _KEYS)

    def parse(line: bytes) -> RankedPassage:
        fields: Fields = decode_json(line, OBJECT, path, None)
        keys.see(fields, None)
        query, passage = identifier(fields, QUERY_KEYS), identifier(fields, PASSAGE_KEYS)
        system = identifier(fields, SYSTEM_KEYS) if key_of(fields, SYSTEM_KEYS) else named
        rank = whole_number(fields, RANK_KEYS) if with_ranks else 0
        if key_of(fields, SCORE_KEYS) is not None:
            return RankedPassage(query, passage, rank, any_number(fields, SCORE_KEYS), system)
        if not with_ranks:
            raise InputError(
                "neither a rank nor a score",
                field=SCORE_KEYS[0],
                mend="Give a rank (1 comes first) or a score (the highest comes first)",
            )
        if rank < 1:
            raise InputError(f"the rank {rank} is below 1, and there is no score", field="rank")
        return RankedPassage(query, passage, rank, 1 / rank, system)

    return parse


def _placed(rankeds: Iterable[RankedPassage]) -> Iterator[RankedPassage]:
    """Yield rows with ranks by descending score; those of equal score by passage id."""
    groups: dict[tuple[str, str], list[RankedPassage]] = {}
    for one in rankeds:
        groups.setdefault((one.system, one.query_id), []).append(one)
    for group in groups.values():
        group.sort(key=lambda one: (-one.score, one.passage_id))
        yield from (replace(one, rank=rank) for rank, one in enumerate(group, 1))


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
            query = check_word(ranked.query_id, "query", path)
            passage = check_word(ranked.passage_id, "passage", path)
            system = check_word(ranked.system, "system", path)
            line = f"{query} Q0 {passage} {ranked.rank} {float(ranked.score)!r} {system}\n"
            stream.write(encode_text(line, path))


def _sniff(sample: FirstRecords) -> bool:
    if sample.has_words(6):
        return sample.has_numbers(3, 4)
    return sample.has_whole_numbers_third


FORMAT = Format(
    "runs",
    lambda path, how: read(path, how.on_error, how.check, system=how.only_system),
    write,
    _sniff,
    name="run",
    shapes=(
        Shape((QUERY_KEYS, set(PASSAGE_KEYS) - {"_id"}, RANK_KEYS + SCORE_KEYS), unless=(BEIR,)),
    ),
    file_name=r"\.run$",
    exports="runs",
    looks="`query Q0 passage rank score system`; `query passage rank` with `--runs`",
    source="trec_eval, MS MARCO",
    lossless="yes; MS MARCO's comes out as trec_eval's",
)
