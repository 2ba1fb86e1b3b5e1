"""Runs and qrels of ranx: one JSON object, query -> passage -> score (or relevance).

Source: ranx, `Run.from_dict` and `Qrels.from_dict`, which its .json files hold. A run is that of
one system, which the file does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.fields import brief, number
from exampp.formats.lines import OnError, accept, encode_json, raise_error, read_pairs, system_of
from exampp.formats.output import writing
from exampp.records import Judgment, RankedPassage

_HIGHEST = 2**15 - 1


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
    for line, query_id, returned in _queries(path, on_error):
        try:
            scores = {key: number(value, _place(query_id, key)) for key, value in returned.items()}
            ranked = [
                RankedPassage(query_id, passage, rank, scores[passage], named)
                for rank, passage in enumerate(
                    sorted(scores, key=lambda one: (-scores[one], one)), 1
                )
            ]
            for one in ranked:
                check(one)
        except InputError as error:
            on_error(error.at(path, line))
        else:
            yield from ranked


def read_qrels(
    path: str | Path, on_error: OnError = raise_error, check: Callable[[Judgment], None] = accept
) -> Iterator[Judgment]:
    """Yield the judgments of a file; InputError as in `read`, and for what is no integer."""
    for line, query_id, judged in _queries(path, on_error):
        try:
            found = []
            for passage, value in judged.items():
                relevance = number(value, _place(query_id, passage))
                if relevance != int(relevance) or abs(relevance) > _HIGHEST:
                    what = f"{brief(value)} is no integer up to {_HIGHEST}"
                    raise InputError(what, field=_place(query_id, passage))
                found.append(Judgment(query_id, passage, int(relevance)))
                check(found[-1])
        except InputError as error:
            on_error(error.at(path, line))
        else:
            yield from found


def _queries(path: str | Path, on_error: OnError) -> Iterator[tuple[int, str, dict[str, Any]]]:
    seen: set[str] = set()
    for line, query_id, value in read_pairs(path):
        fault = ""
        if not isinstance(value, dict):
            fault = "must be an object of passages and numbers"
        elif not query_id.strip():
            fault = "the id of a query is blank"
        elif query_id in seen:
            fault = f"query {brief(query_id)} occurs twice"
        if fault:
            on_error(InputError(fault, file=path, line=line, field=brief(query_id)))
            continue
        seen.add(query_id)
        yield line, query_id, value


def _place(query_id: str, passage: str) -> str:
    return f"{brief(query_id)}.{brief(passage)}"


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
