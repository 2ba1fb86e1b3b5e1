"""Retrieval output with texts: JSON-lines of `{"query": {qid, text}, "candidates": [...]}`.

Source: the request files that Anserini writes and RankLLM and Ragnarok read (TREC RAG 2024, 2025).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import brief, number
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import OBJECT
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    encode_json,
    parse_lines,
    raise_error,
    system_of,
)
from exampp.formats.output import writing
from exampp.formats.passages import ID_KEYS, TEXT_KEYS
from exampp.formats.read_warnings import Keys
from exampp.records import Passage, RankedPassage

_QUERY_KEYS = ("qid", "query_id", "topic_id", "id")
_QUERY_TEXT_KEYS = ("text", "query", "title")
_CANDIDATE_KEYS = (*ID_KEYS, *TEXT_KEYS, "doc", "score", "title")


class _Line(msgspec.Struct):
    candidates: list[dict[str, Any]]
    query: dict[str, Any] | str | None = None
    qid: str | int | None = None
    system: str | None = None
    run_id: str | None = None


class Retrieved(NamedTuple):
    """What a system retrieved for a query: its ranking, and the passages that have a text.

    `query_text` is empty where the file does not say it.
    """

    ranking: tuple[RankedPassage, ...]
    passages: tuple[Passage, ...]
    query_text: str = ""


def read(
    path: str | Path, on_error: OnError = raise_error, system: str | None = None
) -> Iterator[Retrieved]:
    """Yield the lines of a file; the order of the candidates is their rank.

    The system is what the line says, else `system`, else the name of the file. InputError for a
    candidate without id or twice in a line, and for a query that occurs twice.
    """
    decoder = msgspec.json.Decoder(_Line)
    named = system or system_of(path)
    of_line = Keys(path, _Line.__struct_fields__)
    of_query = Keys(path, (*_QUERY_KEYS, *_QUERY_TEXT_KEYS), "query.")
    of_candidate = Keys(path, _CANDIDATE_KEYS, "candidates[].")

    def parse(line: bytes, number: int) -> Retrieved:
        typed = decode_json(line, decoder, path, number)
        of_line.see(OBJECT.decode(line), number)
        if isinstance(typed.query, dict):
            of_query.see(typed.query, number)
        for candidate in typed.candidates:
            of_candidate.see(candidate, number)
            if isinstance(doc := candidate.get("doc"), dict):
                of_candidate.see(doc, number)
        system_of_line = typed.system or typed.run_id or named
        found = _retrieved(_query_id(typed), system_of_line, typed.candidates)
        return found._replace(query_text=_query_text(typed))

    yield from parse_lines(path, on_error, parse, _KEY)


_KEY = Key(
    lambda one: (one.ranking[0].query_id, one.ranking[0].system),
    lambda one: f"query {brief(one.ranking[0].query_id)}",
    "query",
)


def _query_id(line: _Line) -> str:
    holder = line.query if isinstance(line.query, dict) else {}
    value = next((holder[key] for key in _QUERY_KEYS if key in holder), line.qid)
    if not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"no query id (any of {', '.join(_QUERY_KEYS)})", field="query.qid")
    return str(value)


def _query_text(line: _Line) -> str:
    if isinstance(line.query, str):
        return line.query
    holder = line.query or {}
    found = (holder[key] for key in _QUERY_TEXT_KEYS if isinstance(holder.get(key), str))
    return next(found, "")


def _retrieved(query_id: str, system: str, candidates: list[dict[str, Any]]) -> Retrieved:
    if not candidates:
        raise InputError("the response is empty", field="candidates")
    ranking: dict[str, RankedPassage] = {}
    passages = []
    for index, candidate in enumerate(candidates):
        field = f"candidates[{index}]"
        key = next((key for key in ID_KEYS if key in candidate), None)
        if key is None:
            raise InputError(f"no id (any of {', '.join(ID_KEYS)})", field=field)
        passage_id, score = str(candidate[key]), candidate.get("score", 1 / (index + 1))
        if passage_id in ranking:
            raise InputError(f"passage {brief(passage_id)} occurs twice", field=field)
        score = number(score, f"{field}.score")
        ranking[passage_id] = RankedPassage(query_id, passage_id, index + 1, score, system)
        if passage := _passage(passage_id, candidate.get("doc", candidate)):
            passages.append(passage)
    return Retrieved(tuple(ranking.values()), tuple(passages))


def _passage(passage_id: str, doc: Any) -> Passage | None:
    fields = {"text": doc} if isinstance(doc, str) else doc
    if not isinstance(fields, dict):
        return None
    key = next((key for key in TEXT_KEYS if isinstance(fields.get(key), str)), None)
    if key is None or not fields[key].strip():
        return None
    title = fields.get("title")
    return Passage(passage_id, fields[key], title if isinstance(title, str) else "")


def write(path: str | Path, found: Iterable[Retrieved]) -> None:
    """Write what systems retrieved, one line for each of them and query, best first."""
    with writing(path) as stream:
        for one in found:
            texts = {passage.passage_id: passage for passage in one.passages}
            rows = [
                {"docid": r.passage_id, "score": r.score, "doc": _doc(texts.get(r.passage_id))}
                for r in one.ranking
            ]
            query = {"text": one.query_text, "qid": one.ranking[0].query_id}
            line = {"query": query, "candidates": rows, "run_id": one.ranking[0].system}
            stream.write(encode_json(line, path))


def _doc(passage: Passage | None) -> dict[str, str]:
    if passage is None:
        return {}
    title = {"title": passage.title} if passage.title else {}
    return {**title, "contents": passage.text}


FORMAT = Format(
    "runs",
    lambda path, how: read(path, how.on_error, how.system),
    write,
    name="candidates",
    shapes=(Shape((("candidates",),)),),
    record=Retrieved,
    looks='JSON-lines of `{"query": {"qid", "text"}, "candidates": [{"docid", "score", "doc"}]}`; '
    "brings the texts of passages and of new queries",
    source="Anserini, Pyserini, RankLLM, umbrela",
    lossless="yes",
)
