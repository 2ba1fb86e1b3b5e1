"""Passages: JSON-lines with the keys of many collections, or columns of id, text, title.

A file has passages alone, passages with the query whose pool they belong to, or the results of a
system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats import trec
from exampp.formats.fields import PASSAGE, brief, column_names, number, slips_of, text_digest
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import (
    OBJECT,
    Fields,
    identifier,
    key_of,
    optional_text,
    required_text,
)
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    decode_part,
    encode_json,
    parse_each,
    parse_lines,
    raise_error,
    read_lines,
    system_of,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.records import Passage, RankedPassage

ID_KEYS = (
    *("passage_id", "paragraph_id", "pid", "_id", "id", "docno", "docid"),
    *("chunk_id", "doc_id", "document_id"),
)
"""Names of an id, the preferred one first: MS MARCO has a document id, too."""
TEXT_KEYS = (
    *("text", "passage", "segment", "contents", "body"),
    *("content", "chunk", "chunk_text", "passage_text"),
)
_TITLE_KEYS = ("title",)
_KNOWN_KEYS = frozenset((*ID_KEYS, *TEXT_KEYS, *_TITLE_KEYS))
_WRITTEN_KEYS = frozenset({ID_KEYS[0], TEXT_KEYS[0], _TITLE_KEYS[0]})


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[Passage]:
    """Yield the passages of a file in file order; the first line decides the layout.

    A numeric id is read as text. Other keys of JSON-lines are stored in `Passage.extra`.

    Raises:
        InputError: A passage has no id or no text, or an id occurs twice.
    """
    lines = read_lines(path)
    start, head = next(lines)
    parse: Callable[[bytes, str | Path, int], Passage]
    parse = _from_object if head.lstrip().startswith((b"{", b"[")) else _from_columns
    columns = head.decode(errors="replace").split("\t") if parse is _from_columns else []
    skips_header = is_passage_header(columns)
    if column_names(columns) and not skips_header:
        raise InputError(
            f"the columns {', '.join(columns)} are not those of passages",
            file=path,
            line=start,
            hint="Passages have two or three columns: id, text and optionally title",
        )
    if columns and not skips_header and (slips := slips_of(columns, _KNOWN_KEYS)):
        raise InputError(slips, file=path, line=start, hint="Correct the header")
    keys = Keys(path, _KNOWN_KEYS, stored=True)

    def checked(line: bytes, number: int) -> Passage:
        passage = parse(line, path, number)
        check_passage_text(passage)
        keys.see(passage.extra, number, ())
        return passage

    lines = lines if skips_header else chain([(start, head)], lines)
    yield from parse_each(lines, path, on_error, checked, _KEY)


_KEY = Key(
    lambda one: one.passage_id,
    lambda one: f"passage {brief(one.passage_id)}",
    "passage_id",
    equal_lines=True,
)


def parse_passage(line: bytes, path: str | Path, number: int) -> Passage:
    """Return the passage of one line in either layout; its text may be blank."""
    is_json = line.lstrip().startswith((b"{", b"["))
    return (_from_object if is_json else _from_columns)(line, path, number)


def check_passage_text(passage: Passage) -> None:
    """Raise InputError for a passage whose text is blank."""
    if not passage.text or passage.text.isspace():
        raise InputError(f"passage {brief(passage.passage_id)} has no text", field="text")


def _from_object(line: bytes, path: str | Path, number: int) -> Passage:
    fields: Fields = decode_json(line, OBJECT, path, number)
    passage_id = identifier(fields, ID_KEYS)
    text = required_text(fields, TEXT_KEYS)
    title = optional_text(fields, _TITLE_KEYS)
    known = {key_of(fields, ID_KEYS), key_of(fields, TEXT_KEYS), *_TITLE_KEYS}
    extra = {key: decode_part(value, key) for key, value in fields.items() if key not in known}
    return Passage(passage_id, text, title, extra)


def _from_columns(line: bytes, path: str | Path, number: int) -> Passage:
    columns = text_of(line, path, number).split("\t")
    if len(columns) not in (2, 3):
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2 or 3 (id, text, title)",
            hint="Separate the columns by single tabs, or use JSON-lines",
        )
    passage_id = columns[0].strip()
    if not passage_id:
        raise InputError("the passage id is blank", field="column 1")
    return Passage(passage_id, columns[1], "".join(columns[2:]))


def is_passage_header(columns: list[str]) -> bool:
    """Return whether the first line of a table is a header."""
    names = column_names(columns)
    return (
        len(names) in (2, 3)
        and names[0] in ID_KEYS
        and names[1] in TEXT_KEYS
        and names[2:] in ((), _TITLE_KEYS)
    )


def write(path: str | Path, passages: Iterable[Passage]) -> None:
    """Write passages as JSON-lines with `passage_id`, `text`, `title` (if any) and their `extra`.

    Raises:
        InputError: `extra` has one of these keys.
    """
    with writing(path) as stream:
        for passage in passages:
            if not _WRITTEN_KEYS.isdisjoint(passage.extra):
                raise InputError(
                    f"the extra fields of passage {brief(passage.passage_id)} include a "
                    f"reserved name ({', '.join(sorted(_WRITTEN_KEYS))})",
                    file=path,
                )
            title = {"title": passage.title} if passage.title else {}
            row = {"passage_id": passage.passage_id, "text": passage.text, **title}
            stream.write(encode_json(row | dict(passage.extra), path))


# ---- passages with their query -------------------------------------------------------------------

POOL_QUERY_KEYS = ("query_id", "qid", "topic_id", "queryid", "query-id")
_POOL_TEXT_KEYS = ("query_text", "query")
POOL_ID_KEYS = (*ID_KEYS, *sorted(PASSAGE - set(ID_KEYS)))
_RESULTS = frozenset(
    {*trec.RANK_KEYS, *trec.RELEVANCE_KEYS, *trec.SYSTEM_KEYS}
    | {"nuggets", "items", "questions", "candidates", "candidate_text", "subtopics"}
)
POOL = Shape(((*POOL_QUERY_KEYS, *_POOL_TEXT_KEYS), PASSAGE | {"_id"}, TEXT_KEYS), _RESULTS)
"""Objects that have a passage with its query, and nothing else."""


class PooledText(NamedTuple):
    """Passage of a query's pool; `query_text` is empty if the file has only the id."""

    query_id: str
    query_text: str
    passage: Passage


def read_pool(path: str | Path, on_error: OnError = raise_error) -> Iterator[PooledText]:
    """Yield the passages with their queries; a query without an id gets the MD5 of its text.

    A passage may occur with several queries.

    Raises:
        InputError: A pair has no query, id or text or occurs twice, or a passage id has two texts.
    """
    known = {*POOL_QUERY_KEYS, *_POOL_TEXT_KEYS, *POOL_ID_KEYS, *TEXT_KEYS, "title"}
    keys = Keys(path, known)
    texts: dict[str, tuple[int, str]] = {}

    def parse(line: bytes, number: int) -> PooledText:
        fields = decode_json(line, OBJECT, path, number)
        used = {key_of(fields, some) for some in (POOL_QUERY_KEYS, POOL_ID_KEYS, TEXT_KEYS)}
        keys.see(fields, number, {*used, *_POOL_TEXT_KEYS, "title"})
        query_text = optional_text(fields, _POOL_TEXT_KEYS).strip()
        has_id = key_of(fields, POOL_QUERY_KEYS) is not None or not query_text
        query_id = identifier(fields, POOL_QUERY_KEYS) if has_id else text_digest(query_text)
        passage_id, text = identifier(fields, POOL_ID_KEYS), required_text(fields, TEXT_KEYS)
        passage = Passage(passage_id, text, optional_text(fields, _TITLE_KEYS))
        check_passage_text(passage)
        content = text_digest(f"{passage.title}\0{text}")
        first, of_first = texts.setdefault(passage_id, (number, content))
        if of_first != content:
            raise InputError(
                f"passage {brief(passage_id)} has another text on line {first}",
                field="text",
                hint="Use different ids for different texts",
            )
        return PooledText(query_id, query_text, passage)

    yield from parse_lines(path, on_error, parse, _POOL_KEY)


_POOL_KEY = Key(
    lambda one: (one.query_id, one.passage.passage_id),
    lambda one: f"passage {brief(one.passage.passage_id)} of query {brief(one.query_id)}",
    "passage_id",
)


def _sniff(sample: FirstRecords) -> bool:
    return sample.has_tabs({2, 3}) and (not sample.header or is_passage_header(list(sample.header)))


FORMAT = Format(
    "passages",
    lambda path, how: read(path, how.on_error),
    write,
    _sniff,
    name="passages",
    shapes=(Shape((ID_KEYS, TEXT_KEYS), frozenset(("query_id", "qid", "topic_id")), (POOL,)),),
    header=r"(passage_id|paragraph_id|pid|docno|docid)\t",
    file_name="passage|paragraph|corpus|collection|segment",
    looks="JSON-lines of `id` (`_id`, `docid`, `docno`, `pid`, `paragraph_id`) and `text` "
    "(`contents`, `body`, `segment`), optionally `title`; tab-separated columns id, text, "
    "title",
    source="exampp, BEIR, MS MARCO, Pyserini",
    lossless="yes",
)
POOLS = Format(
    "passages",
    lambda path, how: read_pool(path, how.on_error),
    name="pool",
    shapes=(POOL,),
    record=PooledText,
    looks="passages of a query's pool: JSON-lines, CSV or TSV of `query_id` or `query` (its "
    "text), `passage_id` and `text`, optionally `title`",
    source="people",
)


# ---- retrieved passages --------------------------------------------------------------------------


_QUERY_KEYS = ("qid", "query_id", "topic_id", "id")
_QUERY_TEXT_KEYS = ("text", "query", "title")
_CANDIDATE_KEYS = (*ID_KEYS, *TEXT_KEYS, "doc", "score", "title")


class _Line(msgspec.Struct):
    candidates: list[dict[str, Any] | str]
    query: dict[str, Any] | str | None = None
    qid: str | int | None = None
    system: str | None = None
    run_id: str | None = None


class Retrieved(NamedTuple):
    """A system's ranking for a query, and the passages that have a text.

    `query_text` is empty if the file does not have it.
    """

    ranking: tuple[RankedPassage, ...]
    passages: tuple[Passage, ...]
    query_text: str = ""


def read_candidates(
    path: str | Path, on_error: OnError = raise_error, system: str | None = None
) -> Iterator[Retrieved]:
    """Yield the lines of a file; candidates are ranked in their order.

    The system is named by the line, else by `system`, else by the file name.

    Raises:
        InputError: A candidate has no id or occurs twice in a line, or a query occurs twice.
    """
    decoder = msgspec.json.Decoder(_Line)
    named = system or system_of(path)
    of_line = Keys(path, _Line.__struct_fields__)
    of_query = Keys(path, (*_QUERY_KEYS, *_QUERY_TEXT_KEYS), "query.")
    of_candidate = Keys(path, _CANDIDATE_KEYS, "candidates[].")

    def parse(line: bytes, number: int) -> Retrieved:
        typed = decode_json(line, decoder, path, number)
        fields: Fields = decode_json(line, OBJECT, path, number)
        of_line.see(fields, number)
        if isinstance(typed.query, dict):
            of_query.see(typed.query, number)
        candidates = [*map(_with_id, typed.candidates)]
        for candidate in candidates:
            of_candidate.see(candidate, number)
            if isinstance(doc := candidate.get("doc"), dict):
                of_candidate.see(doc, number)
        system_of_line = typed.system or typed.run_id or named
        retrieved = _retrieved(_query_id(typed), system_of_line, candidates)
        return retrieved._replace(query_text=_query_text(typed))

    yield from parse_lines(path, on_error, parse, _RETRIEVED_KEY)


_RETRIEVED_KEY = Key(
    lambda one: (one.ranking[0].query_id, one.ranking[0].system),
    lambda one: f"query {brief(one.ranking[0].query_id)}",
    "query",
)


def _query_id(line: _Line) -> str:
    holder = line.query if isinstance(line.query, dict) else {}
    value = next((holder[key] for key in _QUERY_KEYS if key in holder), line.qid)
    if value is None and (text := _query_text(line).strip()):
        return text_digest(text)
    if not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"no query id (any of {', '.join(_QUERY_KEYS)})", field="query.qid")
    return str(value)


def _query_text(line: _Line) -> str:
    if isinstance(line.query, str):
        return line.query
    holder = line.query or {}
    query = (holder[key] for key in _QUERY_TEXT_KEYS if isinstance(holder.get(key), str))
    return next(query, "")


def _with_id(candidate: dict[str, Any] | str) -> dict[str, Any]:
    """Return a candidate as an object; one that is a text is identified by it."""
    if isinstance(candidate, dict):
        return candidate
    return {"docid": text_digest(candidate), "doc": candidate}


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


def write_candidates(path: str | Path, results: Iterable[Retrieved]) -> None:
    """Write the results of systems, one line per system and query, best first."""
    with writing(path) as stream:
        for one in results:
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


CANDIDATES = Format(
    "runs",
    lambda path, how: read_candidates(path, how.on_error, how.system),
    write_candidates,
    name="candidates",
    shapes=(Shape((("candidates",),)),),
    record=Retrieved,
    looks='JSON-lines of `{"query": {"qid", "text"}, "candidates": [{"docid", "score", '
    '"doc"}]}`; adds the texts of passages and of new queries',
    source="Anserini, Pyserini, RankLLM, umbrela",
    lossless="yes",
)
