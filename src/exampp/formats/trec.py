"""TREC files of whitespace-separated columns; runs and qrels as JSON objects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from exampp.errors import InputError
from exampp.formats.fields import brief, column_names, is_qrels_header, number, parse_integer, real
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import OBJECT, Fields, identifier, is_object, key_of
from exampp.formats.lines import (
    Key,
    OnError,
    accept,
    decode_json,
    decode_part,
    encode_json,
    encode_text,
    lines_below_metadata,
    parse_each,
    parse_lines,
    raise_error,
    read_lines,
    read_pairs,
    system_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import Judgment, RankedPassage

QUERY_KEYS = (
    *("query_id", "qid", "topic_id", "narrative_id", "request_id", "queryid", "query-id"),
    *("topic", "q_id", "query"),
)
"""The last name means the query text if another one is present."""
PASSAGE_KEYS = (
    *("passage_id", "paragraph_id", "pid", "docno", "docid", "doc_id", "document_id"),
    *("corpus_id", "corpus-id", "chunk_id", "_id"),
)
RANK_KEYS = ("rank",)
SCORE_KEYS = ("score",)
SYSTEM_KEYS = (
    *("system", "run_id", "run_tag", "run", "method", "tag"),
    *("variant", "model", "pipeline", "experiment", "config", "retriever"),
)
RELEVANCE_KEYS = ("relevance", "rel", "label", "judgment", "judgement", "grade", "rating", "score")
HIGHEST_RELEVANCE = 2**15 - 1
"""Judgments are stored in 16 bits."""
_BOM = "\ufeff"


BEIR = Shape((("query-id", "query_id"), ("corpus-id", "corpus_id"), ("score",)), most=3)
"""Rows of BEIR qrels, where a score is a judgment."""


def whole_number(fields: Fields, keys: tuple[str, ...], highest: int = 2**31 - 1) -> int:
    """Return the integer under the first of `keys`; 2.0 (from frames with gaps) is accepted."""
    value = any_number(fields, keys)
    if value != int(value):
        raise InputError(f"{brief(value)} is not an integer", field=keys[0])
    if abs(value) > highest:
        raise InputError(f"{brief(int(value))} is beyond +-{highest}", field=keys[0])
    return int(value)


def any_number(fields: Fields, keys: tuple[str, ...]) -> float:
    """Return the finite number under the first of `keys`; accepts numbers as text."""
    key = key_of(fields, keys)
    if key is None:
        raise InputError(f"no {keys[0]} (any of {', '.join(keys)})", field=keys[0])
    value = decode_part(fields[key], key)
    return real(value, key) if isinstance(value, str) else number(value, key)


def columns(line: bytes, names: tuple[str, ...], form: str) -> list[bytes]:
    """Return the columns of a line; raise InputError for a wrong number.

    Only ASCII whitespace separates columns, as in trec_eval.
    """
    words = line.split()
    if len(words) != len(names):
        raise InputError(
            f"{len(words)} column{'s' * (len(words) != 1)} instead of the {len(names)} of "
            f"{form} ({' '.join(names)})"
        )
    return words


def word_of(data: bytes, field: str) -> str:
    """Return an id; raise InputError if it is not UTF-8 or starts with a byte-order mark."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", field=field, hint="Convert the file to UTF-8") from None
    if text.startswith(_BOM):
        raise InputError(
            "a byte-order mark inside the file",
            field=field,
            hint="Remove it; it comes from concatenating files that start with one",
        )
    return text


def check_word(text: str, field: str, path: str | Path) -> str:
    """Return a text that fits into one column; raise InputError otherwise.

    Rejected are empty text, any Unicode whitespace (tools split differently) and a leading
    byte-order mark (readers drop it).
    """
    if text.split() != [text] or text.startswith(_BOM):
        raise InputError(
            f"{brief(text)} cannot be a column of a TREC file: it is empty, has whitespace "
            "or starts with a byte-order mark",
            file=path,
            field=field,
        )
    return text


# ---- runs ----------------------------------------------------------------------------------------


_RUN_COLUMNS = ("query", "Q0", "passage", "rank", "score", "system")
_MARCO_COLUMNS = ("query", "passage", "rank")
_RUN_FIELDS = (*QUERY_KEYS, *PASSAGE_KEYS, *RANK_KEYS, *SCORE_KEYS, *SYSTEM_KEYS)


def read_run(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[RankedPassage], None] = accept,
    *,
    system: str | None = None,
) -> Iterator[RankedPassage]:
    """Yield the lines of a run in file order; the last column names the system.

    Three columns are query, passage and rank of `system` or of the system in the file name; the
    scores are the reciprocal ranks. JSON lines are rows with the field names of many tools; if the
    first has no rank, ranks follow from the scores.

    Source: the run formats of trec_eval and MS MARCO.

    Args:
        path: The file.
        on_error: Takes the error of a bad line.
        check: May reject a line by raising InputError.
        system: The only system of the file; by default the file may have several.

    Raises:
        InputError: A line has a wrong number of columns, a rank that is not an integer, a score
            that is not finite, or a duplicate passage of a query and system.
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
        entry = parse(line)
        if system is not None:
            tags[entry.system] = None
            if len(tags) > 1:
                raise InputError(
                    f"the file has several systems ({' and '.join(tags)}), but one name",
                    field="system",
                    hint="Import it separately; the last column then names the systems",
                )
            entry = replace(entry, system=system)
        check(entry)
        return entry

    rows = parse_each(lines_below_metadata(path), path, on_error, ranked, _RUN_KEY)
    yield from rows if with_ranks else _placed(rows)


_RUN_KEY = Key(
    lambda one: (one.query_id, one.passage_id, one.system),
    lambda one: (
        f"passage {brief(one.passage_id)} of query {brief(one.query_id)} and system "
        f"{brief(one.system)}"
    ),
    "passage",
)


def _from_columns(named: str, is_short: bool) -> Callable[[bytes], RankedPassage]:
    common = cache(word_of)  # one copy of each id that occurs on many lines

    def parse(line: bytes) -> RankedPassage:
        if is_short:
            query, passage, rank = columns(line, _MARCO_COLUMNS, "a run")
            place = parse_integer(rank, "rank")
            if place < 1:
                raise InputError(f"the rank {place} is below 1", field="rank")
            score, system = 1 / place, named
        else:
            query, _, passage, rank, value, tag = columns(line, _RUN_COLUMNS, "a run")
            place, score = parse_integer(rank, "rank"), real(value, "score")
            system = common(tag, "system")
        return RankedPassage(
            common(query, "query"), word_of(passage, "passage"), place, score, system
        )

    return parse


def _from_objects(
    path: str | Path, named: str, with_ranks: bool
) -> Callable[[bytes], RankedPassage]:
    """Parse JSON rows; without ranks, rank 0 marks a row for `_placed`."""
    keys = Keys(path, _RUN_FIELDS)

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
                hint="Give a rank (1 comes first) or a score (the highest comes first)",
            )
        if rank < 1:
            raise InputError(f"the rank {rank} is below 1, and there is no score", field="rank")
        return RankedPassage(query, passage, rank, 1 / rank, system)

    return parse


def _placed(rankeds: Iterable[RankedPassage]) -> Iterator[RankedPassage]:
    """Yield rows ranked by descending score; ties by passage id."""
    groups: dict[tuple[str, str], list[RankedPassage]] = {}
    for one in rankeds:
        groups.setdefault((one.system, one.query_id), []).append(one)
    for group in groups.values():
        group.sort(key=lambda one: (-one.score, one.passage_id))
        yield from (replace(one, rank=rank) for rank, one in enumerate(group, 1))


def write_run(path: str | Path, rankeds: Iterable[RankedPassage]) -> None:
    """Write a run with space-separated columns; scores are restored exactly by reading.

    Raises:
        InputError: An id cannot be a column, or a score is not finite.
    """
    with writing(path) as stream:
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


def _sniff_run(sample: FirstRecords) -> bool:
    if sample.has_words(6):
        return sample.has_numbers(3, 4)
    return sample.has_whole_numbers_third


RUN = Format(
    "runs",
    lambda path, how: read_run(path, how.on_error, how.check, system=how.only_system),
    write_run,
    _sniff_run,
    name="run",
    shapes=(
        Shape((QUERY_KEYS, set(PASSAGE_KEYS) - {"_id"}, RANK_KEYS + SCORE_KEYS), unless=(BEIR,)),
    ),
    file_name=r"\.run$",
    exports="runs",
    looks="`query Q0 passage rank score system`; `query passage rank` with `--runs`",
    source="trec_eval, MS MARCO",
    lossless="yes; MS MARCO's is written as trec_eval's",
)


# ---- qrels ---------------------------------------------------------------------------------------


_QRELS_COLUMNS = ("query", "iteration", "passage", "relevance")
_BEIR_COLUMNS = ("query", "passage", "relevance")
_SUBTOPIC_COLUMNS = ("query", "subtopic", "passage", "relevance")


def read_qrels(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[Judgment], None] = accept,
    *,
    subtopics: bool = False,
) -> Iterator[Judgment]:
    """Yield the judgments of a qrels file in file order.

    Three columns (query, passage, relevance) are accepted with a header or with tabs, as in BEIR; a
    header line is skipped. The second of four columns is ignored unless `subtopics` says that it is
    the subtopic (TREC diversity qrels), because the file cannot tell. JSON lines are rows with the
    field names of many tools. A query id `q/subtopic` is not split. `check` may reject a line by
    raising InputError.

    Source: the qrels formats of trec_eval, ndeval and BEIR.

    Raises:
        InputError: A line has a wrong number of columns or a relevance that is not an integer
            (negative ones are valid), or a passage is judged twice, even with the same relevance.
    """
    common = cache(word_of)  # one copy of each id that occurs on many lines
    keys = Keys(path, (*QUERY_KEYS, *PASSAGE_KEYS, *RELEVANCE_KEYS))
    names: tuple[str, ...] = _SUBTOPIC_COLUMNS if subtopics else _QRELS_COLUMNS
    start, head = next(read_lines(path))
    is_headed = is_qrels_header(column_names(head.decode(errors="replace").split()))
    is_json = is_object(head)
    if len(head.split()) == len(_BEIR_COLUMNS) and (is_headed or head.count(b"\t") == 2):
        names = _BEIR_COLUMNS

    def parse(line: bytes, number: int) -> Judgment | None:
        if is_headed and number == start:
            return None
        if is_json:
            fields: Fields = decode_json(line, OBJECT, path, number)
            keys.see(fields, number)
            query_id, passage_id = identifier(fields, QUERY_KEYS), identifier(fields, PASSAGE_KEYS)
            relevance = whole_number(fields, RELEVANCE_KEYS, HIGHEST_RELEVANCE)
            judgment = Judgment(query_id, passage_id, relevance)
        else:
            query, *group, passage, value = columns(line, names, "qrels")
            judgment = Judgment(
                common(query, "query"),
                word_of(passage, "passage"),
                parse_integer(value, "relevance", HIGHEST_RELEVANCE),
                common(group[0], "subtopic") if names is _SUBTOPIC_COLUMNS else None,
            )
        check(judgment)
        return judgment

    yield from parse_lines(path, on_error, parse, _QRELS_KEY)


def _judgment_name(one: Judgment) -> str:
    subtopic = f" and subtopic {brief(one.subtopic_id)}" if one.subtopic_id else ""
    passage = brief(one.passage_id)
    return f"the judgment of passage {passage} for query {brief(one.query_id)}{subtopic}"


_QRELS_KEY = Key(
    lambda one: (one.query_id, one.subtopic_id, one.passage_id), _judgment_name, "passage"
)


def write_qrels(path: str | Path, judgments: Iterable[Judgment], iteration: str = "0") -> None:
    """Write judgments as `query iteration passage relevance`, separated by spaces.

    The second column of a judgment of a subtopic is the subtopic. Raises InputError for an id that
    cannot be a column.
    """
    check_word(iteration, "iteration", path)
    with writing(path) as stream:
        for query_id, of_query in groupby(judgments, key=attrgetter("query_id")):
            query = check_word(query_id, "query", path)
            lines = []
            for one in of_query:
                group = iteration
                if one.subtopic_id is not None:
                    group = check_word(one.subtopic_id, "subtopic", path)
                passage = check_word(one.passage_id, "passage", path)
                lines.append(f"{query} {group} {passage} {one.relevance}\n")
            stream.write(encode_text("".join(lines), path))


def _sniff_qrels(sample: FirstRecords) -> bool:
    if is_qrels_header(sample.header):
        return True
    if sample.has_scores:
        return False
    return (sample.has_words(4) and sample.has_numbers(3)) or sample.has_whole_numbers_third


QRELS = Format(
    "qrels",
    lambda path, how: read_qrels(path, how.on_error, how.check),
    write_qrels,
    _sniff_qrels,
    name="qrels",
    shapes=(Shape((QUERY_KEYS, set(PASSAGE_KEYS) - {"_id"}, RELEVANCE_KEYS[:5])), BEIR),
    file_name=r"qrels?$|^qrels?\b",
    exports="judgments",
    looks="`query 0 passage relevance`; tab-separated `query-id`, `corpus-id`, `score`",
    source="trec_eval, BEIR, MS MARCO",
    lossless="yes, except for the second column; BEIR's is written as trec_eval's",
)


# ---- ranx ----------------------------------------------------------------------------------------


T = TypeVar("T")
_OBJECT_OF_NUMBERS = re.compile(
    r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d'
)
_NUMBER = re.compile(r'"\s*:\s*(-?\d[0-9.eE+-]*)')


def read_ranx(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[RankedPassage], None] = accept,
    *,
    system: str | None = None,
) -> Iterator[RankedPassage]:
    """Yield the rankings of a file, each by descending score.

    `system` names the system, by default the file name does. `check` may reject a passage.

    Raises:
        InputError: The file is not an object of numbers, or a query occurs twice.
    """
    named = system or system_of(path)

    def ranked(query_id: str, scores: dict[str, float]) -> list[RankedPassage]:
        best_first = sorted(scores, key=lambda one: (-scores[one], one))
        return [
            RankedPassage(query_id, passage, rank, scores[passage], named)
            for rank, passage in enumerate(best_first, 1)
        ]

    yield from _read_ranx(path, on_error, check, ranked)


def read_ranx_qrels(
    path: str | Path, on_error: OnError = raise_error, check: Callable[[Judgment], None] = accept
) -> Iterator[Judgment]:
    """Yield the judgments of a file; raise InputError as in `read_ranx`, and for non-integers."""

    def judged(query_id: str, values: dict[str, float]) -> list[Judgment]:
        for passage, value in values.items():
            if value != int(value) or abs(value) > HIGHEST_RELEVANCE:
                raise InputError(
                    f"{brief(value)} is not an integer up to {HIGHEST_RELEVANCE}",
                    field=f"{brief(query_id)}.{brief(passage)}",
                )
        return [Judgment(query_id, passage, int(value)) for passage, value in values.items()]

    yield from _read_ranx(path, on_error, check, judged)


def _read_ranx(
    path: str | Path,
    on_error: OnError,
    check: Callable[[T], None],
    make: Callable[[str, dict[str, float]], list[T]],
) -> Iterator[T]:
    seen: set[str] = set()
    for line, query_id, returned in read_pairs(path):
        try:
            if not isinstance(returned, dict):
                raise InputError("must be an object of passages and numbers", field=brief(query_id))
            if not query_id.strip() or query_id in seen:
                twice = f"query {brief(query_id)} occurs twice"
                raise InputError(
                    twice if query_id.strip() else "the query id is blank",
                    field=brief(query_id),
                )
            seen.add(query_id)
            values = {
                passage: number(value, f"{brief(query_id)}.{brief(passage)}")
                for passage, value in returned.items()
            }
            records = make(query_id, values)
            for one in records:
                check(one)
        except InputError as error:
            on_error(error.at(path, line))
        else:
            yield from records


def write_ranx(path: str | Path, rankeds: Iterable[RankedPassage]) -> None:
    """Write the run of one system; raise InputError for several.

    The passages of a query are written in rank order; reading derives ranks from scores.
    """
    by_query: dict[str, dict[str, float]] = {}
    systems: dict[str, None] = {}
    for ranked in rankeds:
        systems[ranked.system] = None
        by_query.setdefault(ranked.query_id, {})[ranked.passage_id] = ranked.score
    if len(systems) > 1:
        raise InputError(
            f"a ranx run has one system, but there are {len(systems)}",
            file=path,
            hint="Write TREC runs, which name their systems: --format runs",
        )
    with writing(path) as stream:
        stream.write(encode_json(by_query, path))


def _sniff_ranx(sample: FirstRecords) -> bool:
    are_objects = all(one.startswith("{") for one in sample.values)
    return are_objects and _OBJECT_OF_NUMBERS.match(sample.start) is not None


def _sniff_ranx_qrels(sample: FirstRecords) -> bool:
    # only scores have fractions
    fractions = (set(".eE") & set(one) for one in _NUMBER.findall(sample.start))
    return _sniff_ranx(sample) and not any(fractions)


RANX = Format(
    "runs",
    lambda path, how: read_ranx(path, how.on_error, how.check, system=how.only_system),
    write_ranx,
    _sniff_ranx,
    name="ranx",
    file_name=r"\brun",
    looks="one JSON object, query → passage → score; the file name is the system",
    source="ranx",
    lossless="yes, one system per file",
)
RANX_QRELS = Format(
    "qrels",
    lambda path, how: read_ranx_qrels(path, how.on_error, how.check),
    sniff=_sniff_ranx_qrels,
    name="ranx-qrels",
    file_name="qrels?",
    looks="one JSON object, query → passage → whole number",
    source="ranx",
)
