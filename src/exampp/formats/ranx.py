"""Runs and qrels of ranx: one JSON object, query -> passage -> score (or relevance).

Source: ranx, `Run.from_dict` and `Qrels.from_dict`, which its .json files hold. A run is that of
one system, which the file does not name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from exampp.errors import InputError
from exampp.formats.fields import brief, number
from exampp.formats.format import FirstRecords, Format
from exampp.formats.lines import OnError, accept, encode_json, raise_error, read_pairs, system_of
from exampp.formats.output import writing
from exampp.formats.trec import HIGHEST_RELEVANCE
from exampp.records import Judgment, RankedPassage

T = TypeVar("T")
_OBJECT_OF_NUMBERS = re.compile(
    r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d'
)
_NUMBER = re.compile(r'"\s*:\s*(-?\d[0-9.eE+-]*)')


def read(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[RankedPassage], None] = accept,
    *,
    system: str | None = None,
) -> Iterator[RankedPassage]:
    """Yield the rankings of a file, those of a query by descending score.

    `system` names the system, by default the file does. `check` may refuse a passage. InputError
    for what is no object of numbers, and for a query that occurs twice.
    """
    named = system or system_of(path)

    def ranked(query_id: str, scores: dict[str, float]) -> list[RankedPassage]:
        best_first = sorted(scores, key=lambda one: (-scores[one], one))
        return [
            RankedPassage(query_id, passage, rank, scores[passage], named)
            for rank, passage in enumerate(best_first, 1)
        ]

    yield from _read(path, on_error, check, ranked)


def read_qrels(
    path: str | Path, on_error: OnError = raise_error, check: Callable[[Judgment], None] = accept
) -> Iterator[Judgment]:
    """Yield the judgments of a file; InputError as in `read`, and for what is no integer."""

    def judged(query_id: str, values: dict[str, float]) -> list[Judgment]:
        for passage, value in values.items():
            if value != int(value) or abs(value) > HIGHEST_RELEVANCE:
                raise InputError(
                    f"{brief(value)} is no integer up to {HIGHEST_RELEVANCE}",
                    field=f"{brief(query_id)}.{brief(passage)}",
                )
        return [Judgment(query_id, passage, int(value)) for passage, value in values.items()]

    yield from _read(path, on_error, check, judged)


def _read(
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
                    twice if query_id.strip() else "the id of a query is blank",
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


def write(path: str | Path, rankeds: Iterable[RankedPassage]) -> None:
    """Write the run of one system; InputError where there are several.

    The passages of a query stand in the order of their ranks, which reading takes from the scores.
    """
    by_query: dict[str, dict[str, float]] = {}
    systems: dict[str, None] = {}
    for ranked in rankeds:
        systems[ranked.system] = None
        by_query.setdefault(ranked.query_id, {})[ranked.passage_id] = ranked.score
    if len(systems) > 1:
        raise InputError(
            f"a run of ranx is that of one system, and there are {len(systems)}",
            file=path,
            mend="Write the runs as TREC runs, which name theirs: --format runs",
        )
    with writing(path) as stream:
        stream.write(encode_json(by_query, path))


def _sniff(sample: FirstRecords) -> bool:
    return _OBJECT_OF_NUMBERS.match(sample.start) is not None


def _sniff_qrels(sample: FirstRecords) -> bool:
    # only scores have fractions
    fractions = (set(".eE") & set(one) for one in _NUMBER.findall(sample.start))
    return _sniff(sample) and not any(fractions)


FORMAT = Format(
    "runs",
    lambda path, how: read(path, how.on_error, how.check, system=how.only_system),
    write,
    _sniff,
    name="ranx",
    file_name=r"\brun",
    looks="one JSON object, query → passage → score; the system is named like the file",
    source="ranx",
    lossless="yes, one system a file",
)
QRELS = Format(
    "qrels",
    lambda path, how: read_qrels(path, how.on_error, how.check),
    sniff=_sniff_qrels,
    name="ranx-qrels",
    file_name="qrels?",
    looks="one JSON object, query → passage → whole number",
    source="ranx",
)
