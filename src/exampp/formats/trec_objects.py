"""Rows of runs and of qrels as JSON objects: what frames hold, under the names of many tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from exampp.errors import InputError
from exampp.formats.fields import brief, number, real
from exampp.formats.json_objects import Fields, identifier, key_of
from exampp.formats.lines import decode_part
from exampp.records import Judgment, RankedPassage

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
RUN_KEYS = (*QUERY_KEYS, *PASSAGE_KEYS, *RANK_KEYS, *SCORE_KEYS, *SYSTEM_KEYS)
QRELS_KEYS = (*QUERY_KEYS, *PASSAGE_KEYS, *RELEVANCE_KEYS)

_ONLY_RELEVANCE = ("relevance", "rel", "label", "judgment", "judgement")


def is_run(keys: Collection[str]) -> bool:
    """Whether an object of these keys is a row of a run."""
    return _is_row(keys, RANK_KEYS + SCORE_KEYS) and not _is_beir(keys)


def is_qrels(keys: Collection[str]) -> bool:
    """Whether an object of these keys is a row of qrels, and can be nothing else."""
    return _is_row(keys, _ONLY_RELEVANCE) or _is_beir(keys)


def _is_beir(keys: Collection[str]) -> bool:
    """Whether the keys are those of BEIR's qrels, where a score is a judgment."""
    return set(keys) in ({"query-id", "corpus-id", "score"}, {"query_id", "corpus_id", "score"})


def _is_row(keys: Collection[str], values: tuple[str, ...]) -> bool:
    named = (QUERY_KEYS, tuple(key for key in PASSAGE_KEYS if key != "_id"), values)
    return all(any(key in keys for key in of_one) for of_one in named)


def is_ranked(fields: Fields) -> bool:
    """Whether a row says at which rank its passage stands."""
    return key_of(fields, RANK_KEYS) is not None


def ranked_of(fields: Fields, named: str, *, ranked: bool) -> RankedPassage:
    """The row of a run; one without a system is of the one that is `named`.

    With `ranked`, rows have a rank, and by default its reciprocal for a score; otherwise they have
    a score, and 0 stands for a rank that is still to be found by `placed`.
    """
    query, passage = identifier(fields, QUERY_KEYS), identifier(fields, PASSAGE_KEYS)
    system = identifier(fields, SYSTEM_KEYS) if key_of(fields, SYSTEM_KEYS) else named
    rank = whole(fields, RANK_KEYS) if ranked else 0
    if key_of(fields, SCORE_KEYS) is None:
        if not ranked:
            mend = "Give a rank (1 comes first) or a score (the highest comes first)"
            raise InputError("neither a rank nor a score", field=SCORE_KEYS[0], mend=mend)
        if rank < 1:
            raise InputError(f"the rank {rank} is below 1, and there is no score", field="rank")
        return RankedPassage(query, passage, rank, 1 / rank, system)
    return RankedPassage(query, passage, rank, _number(fields, SCORE_KEYS), system)


def placed(rankeds: Iterable[RankedPassage]) -> Iterator[RankedPassage]:
    """Rows of a run with ranks by descending score; those of equal score by passage id."""
    groups: dict[tuple[str, str], list[RankedPassage]] = {}
    for one in rankeds:
        groups.setdefault((one.system, one.query_id), []).append(one)
    for group in groups.values():
        group.sort(key=lambda one: (-one.score, one.passage_id))
        for rank, one in enumerate(group, 1):
            yield replace(one, rank=rank)


def judgment_of(fields: Fields, highest: int) -> Judgment:
    """The row of qrels; InputError for a relevance that is no integer of at most `highest`."""
    query, passage = identifier(fields, QUERY_KEYS), identifier(fields, PASSAGE_KEYS)
    return Judgment(query, passage, whole(fields, RELEVANCE_KEYS, highest))


def whole(fields: Fields, keys: tuple[str, ...], highest: int = 2**31 - 1) -> int:
    """The integer under the first of `keys`; 2.0 is one, as frames with gaps have it."""
    value = _number(fields, keys)
    if value != int(value):
        raise InputError(f"{brief(value)} is not an integer", field=keys[0])
    if abs(value) > highest:
        raise InputError(f"{brief(int(value))} is beyond +-{highest}", field=keys[0])
    return int(value)


def _number(fields: Fields, keys: tuple[str, ...]) -> float:
    key = key_of(fields, keys)
    if key is None:
        raise InputError(f"no {keys[0]} (any of {', '.join(keys)})", field=keys[0])
    value = decode_part(fields[key], key)
    return real(value, key) if isinstance(value, str) else number(value, key)
