"""Generated answers: TREC RAG answers, RAGTIME and ARGUE reports, plain answers, text files.

JSON-lines with one response per line. Sources: the guidelines of the TREC RAG track 2024
(`topic_id`, `run_id`, `references`, `answer`) and 2025 (the same with `metadata` and
`narrative_id`), and of TREC RAGTIME 2025 (`metadata`, `responses`), whose reports Auto-ARGUE reads,
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats import passages
from exampp.formats.fields import brief
from exampp.formats.format import Format, Shape
from exampp.formats.json_values import OBJECT, Fields, identifier, key_of
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    decode_part,
    parse_lines,
    raise_error,
    read_text,
)
from exampp.formats.plain_bank import ANSWER_KEYS, QUERY_KEYS
from exampp.formats.rag_values import ANSWERABLE
from exampp.formats.read_warnings import Keys
from exampp.records import Passage
from exampp.sanitize import sanitize_name

SYSTEM_KEYS = (
    "system",
    "run_id",
    "run_tag",
    "method",
    "variant",
    "pipeline",
    "experiment",
    "model",
)
STATEMENT_KEYS = ("responses", "answer", "sentences", "response", "text", "output")
"""Names of the response: a list of statements, or one text."""
QUERY_TEXT_KEYS = ("narrative", "topic", "query_text", "query")
"""Names of the query text."""
_KNOWN_KEYS = frozenset(
    {*QUERY_KEYS, *SYSTEM_KEYS, *STATEMENT_KEYS, *QUERY_TEXT_KEYS}
    | {"metadata", "references", "documents"}
)
_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown", ".html", ".htm"})
"""Suffixes of text files; HTML is detected by content."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of a response, with the ids of its citations.

    A citation beyond the list of references is stored as the number in the file.
    """

    text: str
    citations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """A system's response to a query (or `query/subtopic`), in order.

    `documents` are the texts of its citations and `query_text` the question, if the file has them.
    """

    query_id: str
    system: str
    statements: tuple[Statement, ...]
    documents: tuple[Passage, ...] = ()
    query_text: str = ""

    @property
    def cited(self) -> tuple[str, ...]:
        """The distinct cited ids, in order of citation."""
        return tuple(dict.fromkeys(one for part in self.statements for one in part.citations))


def read(
    path: str | Path, on_error: OnError = raise_error, system: str | None = None
) -> Iterator[Response]:
    """Yield the responses of a JSON-lines file in file order.

    `system` names the system of lines that name none.

    Raises:
        InputError: A response has no query, system or text, is empty, or is the second one of a
            system and query.
    """
    keys = Keys(path, _KNOWN_KEYS)
    of_metadata = Keys(path, _KNOWN_KEYS, "metadata.")
    of_statement = Keys(path, ("text", "citations"), "[].")

    def parse(line: bytes, number: int) -> Response:
        fields = decode_json(line, OBJECT, path, number)
        whole = _with_metadata(fields)
        system_of_line = (key_of(whole, some) for some in (QUERY_KEYS, SYSTEM_KEYS, STATEMENT_KEYS))
        used = {*system_of_line, *QUERY_TEXT_KEYS, "metadata", "references", "documents"}
        keys.see(fields, number, used)
        for response in _objects(fields, "metadata"):
            of_metadata.see(response, number, used)
        for key in STATEMENT_KEYS:
            for response in _objects(fields, key):
                of_statement.see(response, number)
        return _response(whole, system)

    yield from parse_lines(path, on_error, parse, _KEY)


_KEY = Key(
    lambda one: (one.query_id, one.system),
    lambda one: f"system {brief(one.system)} with query {brief(one.query_id)}",
)


def _with_metadata(fields: Fields) -> Fields:
    """Return the fields of a line and of its metadata."""
    if "metadata" not in fields:
        return fields
    if not isinstance(decode_part(fields["metadata"], "metadata"), dict):
        raise InputError("must be an object", field="metadata")
    named: Fields = decode_part(fields["metadata"], "metadata", OBJECT)
    return {**named, **fields}


def _response(fields: Fields, system: str | None) -> Response:
    query_id = identifier(fields, QUERY_KEYS)
    if key_of(fields, SYSTEM_KEYS):
        system = identifier(fields, SYSTEM_KEYS)
    if system is None:
        raise InputError(
            f"no system (any of {', '.join(SYSTEM_KEYS)})",
            field=SYSTEM_KEYS[0],
            hint="Name it with --system",
        )
    key = key_of(fields, STATEMENT_KEYS)
    if key is None:
        raise InputError(f"no text (any of {', '.join(STATEMENT_KEYS)})", field=STATEMENT_KEYS[0])
    references = _decoded(fields, "references")
    documents = _statements(decode_part(fields[key], key), key, _names(references))
    if not any(statement.text.strip() for statement in documents):
        raise InputError("the response is empty", field=key)
    query_text = _query_text(fields, query_id)
    return Response(query_id, system, tuple(documents), _documents(fields), query_text)


def _query_text(fields: Fields, query_id: str) -> str:
    """Return the query text; empty if the field repeats the query id."""
    texts = (_decoded(fields, key) for key in QUERY_TEXT_KEYS)
    return next((one for one in texts if isinstance(one, str) and one != query_id), "")


def _documents(fields: Fields) -> tuple[Passage, ...]:
    """Return the texts under `documents`, an object keyed by id as in AutoJudge reports."""
    documents = _decoded(fields, "documents")
    if not isinstance(documents, dict):
        return ()
    with_texts = []
    for key, one in documents.items():
        text = one.get("text") if isinstance(one, dict) else one
        title = one.get("title") if isinstance(one, dict) else None
        if isinstance(text, str) and text.strip():
            with_texts.append(Passage(str(key), text, title if isinstance(title, str) else ""))
    return tuple(with_texts)


def _objects(fields: Fields, key: str) -> list[Any]:
    """Return the objects under a key: one object or a list."""
    value = _decoded(fields, key)
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _decoded(fields: Fields, key: str) -> Any:
    return decode_part(fields[key], key) if key in fields else None


def _names(references: Any) -> Sequence[str]:
    if references is None:
        return ()
    if not isinstance(references, list | dict):
        raise InputError("must be a list of ids", field="references")
    return [str(name) for name in references]


def _statements(value: Any, key: str, references: Sequence[str]) -> list[Statement]:
    if isinstance(value, str):
        return [Statement(value)]
    if not isinstance(value, list):
        raise InputError("must be a text or a list of statements", field=key)
    statements = []
    for index, part in enumerate(value):
        if isinstance(part, str):
            statements.append(Statement(part))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            cited = _citations(part.get("citations"), references, f"{key}[{index}].citations")
            statements.append(Statement(part["text"], cited))
        else:
            raise InputError("a statement has no text", field=f"{key}[{index}].text")
    return statements


def _citations(value: Any, references: Sequence[str], field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | dict):
        raise InputError("must be a list", field=field)
    return tuple(dict.fromkeys(_cited(citation, references) for citation in value))


def _cited(citation: Any, references: Sequence[str]) -> str:
    if isinstance(citation, int) and 0 <= citation < len(references):
        return references[citation]
    return str(citation)


# ---- folders of text files -----------------------------------------------------------------------


def is_answer_folder(path: str | Path) -> bool:
    """Return whether the path is a folder of text files, at most one subfolder deep."""
    path = Path(path)
    return path.is_dir() and any(
        file.suffix.lower() in _SUFFIXES for file in (*path.glob("*"), *path.glob("*/*"))
    )


def read_folder(
    path: str | Path, on_error: OnError = raise_error, system: str | None = None
) -> Iterator[Response]:
    """Yield the responses of a folder: `SYSTEM/QUERY.txt`, or `QUERY.txt` with `system` given.

    Raises:
        InputError: A file is empty or not a text file, or a query has several.
    """
    seen: dict[tuple[str, str], Path] = {}
    for file in _files(Path(path)):
        inside = file.relative_to(path).parts
        try:
            response = _file(file, sanitize_name(inside[0]) if len(inside) == 2 else system)
        except InputError as error:
            on_error(error.at(file))
            continue
        key = (response.query_id, response.system)
        if (earlier := seen.setdefault(key, file)) != file:
            on_error(InputError(f"the same query and system as {earlier.name}", file=file))
        else:
            yield response


def _files(path: Path) -> Iterator[Path]:
    files = sorted(
        file
        for file in (*path.glob("*"), *path.glob("*/*"))
        if file.is_file() and not file.name.startswith(".")
    )
    if not files:
        raise InputError("the folder has no files", file=path)
    yield from files


def _file(file: Path, system: str | None) -> Response:
    if file.suffix.lower() not in _SUFFIXES:
        raise InputError("is not a text file", hint=f"Supported: {', '.join(sorted(_SUFFIXES))}")
    if system is None:
        raise InputError(
            "the response has no system",
            hint="Put it into a folder named after its system, or name it with --system",
        )
    return Response(sanitize_name(file.stem), system, (Statement(read_text(file)),))


_QUERY, _SYSTEM, _STATEMENT = map(frozenset, (QUERY_KEYS, SYSTEM_KEYS[:-1], STATEMENT_KEYS))
_OF_BANKS = frozenset({"question", "nugget", "items", "questions", "nuggets"})
"""Beside them a model is the one that made an item."""
CERTAIN = (
    Shape((("model",), _QUERY, _STATEMENT - {"text"}), _OF_BANKS),
    Shape((("metadata",), _STATEMENT - {"text"}), frozenset({"_id", "id"})),
    Shape((_SYSTEM, _QUERY, _STATEMENT), unless=(Shape((("metadata",), _STATEMENT - {"text"})),)),
)
"""Objects that are responses, whatever else they may be."""
_ANSWERABLE_QUERY = Shape((ANSWERABLE, {"text", "query"}), frozenset(SYSTEM_KEYS))
"""A question that states if it can be answered."""
_OTHERS = frozenset({"title", "subtopics", "query_text", "items", "questions", "nuggets"})
_NOT_RESPONSES = (
    _OTHERS
    | (frozenset((*passages.ID_KEYS, *passages.TEXT_KEYS)) - {"_id", "id", "text"})
    | frozenset(ANSWER_KEYS)
)

FORMAT = Format(
    "responses",
    lambda path, how: read(path, how.on_error, how.system),
    name="responses",
    shapes=(*CERTAIN, Shape((_QUERY, _STATEMENT), _NOT_RESPONSES, (_ANSWERABLE_QUERY,))),
    file_name="response|answer|generat|output",
    record=Response,
    looks="answers of systems, JSON-lines; see [the page on importing](../how-to/import.md)",
    source="TREC RAG, RAGTIME, AutoJudge, plain answers",
)
TEXTS = Format(
    "responses",
    lambda path, how: read_folder(path, how.on_error, how.system),
    name="texts",
    record=Response,
    looks="a folder of `SYSTEM/QUERY.txt`, .md or .html",
    source="people",
)
