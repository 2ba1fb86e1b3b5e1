"""Files of other programs for RAG systems: a question, what was retrieved, what was answered.

A preset says in which fields a program keeps these. Files are told by the fields that mark them:
JSON-lines, an array, Parquet, or a table whose lists are Python literals or joined by a mark.

Sources: ragas 0.4 (`user_input`; before `question`), DeepEval 4 (goldens and test cases), IBM's
MTRAG, LangSmith (examples, runs), OpenInference (spans of Phoenix and Arize).
"""

from __future__ import annotations

import ast
import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.held import held
from exampp.formats.json_objects import OBJECT, Fields
from exampp.formats.lines import OnError, read_lines, read_text
from exampp.formats.plain_table import ragged, table_rows
from exampp.installed import install_command

Document = tuple[str, str]
"""(id, text); the id is the MD5 of the text where the file has none."""


@dataclass(frozen=True, slots=True)
class RagRecord:
    """One question to a RAG system; empty is what the file does not have."""

    query_id: str
    query: str
    contexts: tuple[Document, ...] = ()
    response: str = ""
    reference: str = ""
    relevant: tuple[Document, ...] = ()


class Preset(NamedTuple):
    """How a program names its fields, by dotted paths, of which the first that is there counts.

    A file is of it that has a field of every set of `marks`. `joined` is what lists in cells of a
    table are joined with, where they are no Python literals.
    """

    marks: tuple[frozenset[str], ...]
    query: tuple[str, ...]
    query_id: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    relevant: tuple[str, ...] = ()
    joined: str = ""


def _marks(*sets: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(one.split()) for one in sets)


PRESETS: Mapping[str, Preset] = {
    "ragas": Preset(
        _marks(
            "user_input question", "retrieved_contexts contexts response", "user_input contexts"
        ),
        query=("user_input", "question"),
        contexts=("retrieved_contexts", "contexts"),
        ids=("retrieved_context_ids",),
        response=("response", "answer"),
        reference=("reference", "ground_truth"),
        relevant=("reference_contexts",),
    ),
    "deepeval": Preset(
        _marks("input", "actual_output retrieval_context expected_output"),
        query=("input",),
        contexts=("retrieval_context",),
        response=("actual_output",),
        reference=("expected_output",),
        relevant=("context",),
        joined="|",
    ),
    "mtrag": Preset(
        _marks("task_id", "input", "contexts"),
        query=("input",),
        query_id=("task_id",),
        contexts=("contexts",),
        response=("predictions",),
        reference=("targets",),
    ),
    "langsmith": Preset(
        _marks("inputs", "outputs"),
        query=("inputs.question", "inputs.query", "inputs.input"),
        contexts=("outputs.contexts", "outputs.documents", "outputs.context"),
        response=("outputs.answer", "outputs.output", "outputs.response"),
        reference=("reference_outputs.answer", "reference.answer"),
    ),
}
"""Every program's fields, by the kind that `--as` calls its files."""
SPANS = "openinference"
KINDS = (*PRESETS, SPANS)
_SPAN = _marks("attributes", "context span_id spanId", "span_kind name")


_LONGEST_HEADER = 1 << 14


def kind_of(path: str | Path) -> str | None:
    """The kind of a file, a key of `KINDS`, told from the fields of its first line; else None."""
    with suppress(InputError, OSError, ValueError, RecursionError, csv.Error):
        fields = _columns(path) if _is_parquet(path) else _names(next(read_lines(path))[1])
        for kind, marks in (*((name, one.marks) for name, one in PRESETS.items()), (SPANS, _SPAN)):
            if all(fields & some for some in marks):
                return kind
    return None


def _is_parquet(path: str | Path) -> bool:
    if held(path):
        return False
    with Path(path).open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _columns(path: str | Path) -> frozenset[str]:
    try:
        import polars
    except ImportError:
        # that the file holds no lines is said by whoever reads it
        return frozenset()
    try:
        return frozenset(polars.read_parquet_schema(path))
    except polars.exceptions.PolarsError as error:
        raise InputError(f"is a damaged Parquet file ({error})", file=path) from None


def _parquet(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        import polars
    except ImportError:
        what = "is a Parquet file, which polars reads"
        raise InputError(what, file=path, mend=f"Install it: {install_command('polars')}") from None
    try:
        rows = polars.read_parquet(path).iter_rows(named=True)
    except polars.exceptions.PolarsError as error:
        raise InputError(f"is a damaged Parquet file ({error})", file=path) from None
    yield from enumerate(rows, 1)


def _names(head: bytes) -> frozenset[str]:
    if head.lstrip().startswith(b"{"):
        return frozenset(OBJECT.decode(head.replace(b"NaN", b"null")))
    if head.lstrip().startswith(b"[") or len(head) > _LONGEST_HEADER:
        return frozenset()
    separator = "\t" if b"\t" in head else ","
    return frozenset(next(csv.reader([head.decode()], delimiter=separator)))


def read(path: str | Path, kind: str, on_error: OnError) -> Iterator[tuple[int, RagRecord]]:
    """The records of a file with their lines; `on_error` takes what has no question, or nothing
    that a system returned.
    """
    rows = _spans(path) if kind == SPANS else _rows(path, PRESETS[kind], on_error)
    for number, row in rows:
        try:
            yield number, _record(row, PRESETS.get(kind, _OF_SPANS))
        except InputError as error:
            on_error(error.at(path, number))


def _record(row: Fields | Mapping[str, Any], preset: Preset) -> RagRecord:
    query = _text(_found(row, preset.query))
    if not query:
        raise InputError(f"no question (any of {', '.join(preset.query)})", field=preset.query[0])
    ids = _found(row, preset.ids)
    contexts = _documents(_found(row, preset.contexts), ids if isinstance(ids, list) else ())
    response = _text(_found(row, preset.response))
    if not contexts and not response:
        wanted = (*preset.contexts, *preset.response)
        raise InputError(
            f"nothing that a system returned (any of {', '.join(wanted)})", field=wanted[0]
        )
    named = _found(row, preset.query_id)
    return RagRecord(
        str(named) if isinstance(named, str | int) else _digest(query),
        query,
        contexts,
        response,
        _text(_found(row, preset.reference)),
        _documents(_found(row, preset.relevant), ()),
    )


def _found(row: Any, paths: Sequence[str]) -> Any:
    """The value of the first path that is there and not null."""
    for path in paths:
        value = row
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and value != "":
            return value
    return None


def _text(value: Any) -> str:
    """A text; of turns and lists of texts the last one of the user, or the last."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return _text(_found(value, ("text", "content", "page_content", "context")))
    if isinstance(value, list) and value:
        asked = [one for one in value if isinstance(one, dict) and _speaker(one) in _ASKING]
        return _text((asked or value)[-1])
    return ""


_ASKING = ("user", "human")


def _speaker(turn: Mapping[str, Any]) -> Any:
    return turn.get("speaker") or turn.get("role") or turn.get("type")


def _documents(value: Any, ids: Sequence[Any]) -> tuple[Document, ...]:
    """Texts with their ids, each once, in their order."""
    found: dict[str, str] = {}
    for number, one in enumerate(value if isinstance(value, list) else [value]):
        text = _text(one)
        if not text:
            continue
        own = _found(one, _DOCUMENT_IDS) if isinstance(one, dict) else None
        given = ids[number] if number < len(ids) else own
        name = str(given) if isinstance(given, str | int) and str(given).strip() else _digest(text)
        found.setdefault(name, text)
    return tuple(found.items())


_DOCUMENT_IDS = ("document_id", "id", "doc_id", "docid", "source", "metadata.id", "metadata.source")


def _digest(text: str) -> str:
    clean = text.strip().encode(errors="surrogatepass")
    return hashlib.md5(clean, usedforsecurity=False).hexdigest()


# ---- rows ----------------------------------------------------------------------------------------


def _rows(
    path: str | Path, preset: Preset, on_error: OnError
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if _is_parquet(path):
        yield from _parquet(path)
        return
    _, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        yield from _objects(path, on_error)
        return
    separator = "\t" if b"\t" in head else ","
    rows = table_rows(read_text(path), separator, path)
    _, names = next(rows)
    lists = {*preset.contexts, *preset.ids, *preset.relevant}
    for number, cells in rows:
        if len(cells) != len(names):
            on_error(ragged(len(cells), len(names), path, number))
            continue
        row: dict[str, Any] = dict(zip(names, cells, strict=True))
        yield number, row | {key: _cell(row[key], preset.joined) for key in lists & row.keys()}


def _objects(path: str | Path, on_error: OnError) -> Iterator[tuple[int, Fields]]:
    """The objects of JSON-lines; NaN, which Python writes and JSON does not know, is null."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in read_lines(path):
        try:
            yield number, decoder.decode(_without_nan(line))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            on_error(InputError("broken JSON", file=path, line=number))


def _without_nan(line: bytes) -> bytes:
    return line.replace(b": NaN", b": null").replace(b":NaN", b":null")


def _cell(text: str, joined: str) -> Any:
    """A list in a cell: as Python writes it, else joined, else the only one."""
    if text.startswith("["):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(text)
    return text.split(joined) if joined and text else [text]


# ---- traces --------------------------------------------------------------------------------------

_OF_SPANS = Preset(
    (), query=("query",), contexts=("contexts",), response=("response",), query_id=()
)
_TRACE = ("context.trace_id", "trace_id", "traceId")
_PARENT = ("parent_id", "parent_span_id", "parentSpanId")
_DOCUMENT = "retrieval.documents"


def _spans(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """A row for every trace: the question and answer of its root, what its retrievers returned.

    The documents are those of the last reranker where there is one, else of all retrievers.
    """
    traces: dict[str, list[tuple[int, Fields]]] = {}
    for number, span in _objects(path, _raise):
        traces.setdefault(str(_found(span, _TRACE)), []).append((number, span))
    for spans in traces.values():
        root = next((one for _, one in spans if _found(one, _PARENT) is None), spans[0][1])
        told = [(_kind(one), _attributes(one)) for _, one in spans]
        ranked = [found for kind, found in told if kind == "RERANKER"][-1:]
        retrieved = ranked or [found for kind, found in told if kind == "RETRIEVER"]
        own = _attributes(root)
        asked = own.get("input.value") or next(
            (one["input.value"] for one in retrieved if one.get("input.value")), None
        )
        contexts = [document for one in retrieved for document in _retrieved(one)]
        answer = own.get("output.value") if root is not None and len(spans) > 1 else None
        yield spans[0][0], {"query": asked, "contexts": contexts, "response": answer}


def _raise(error: InputError) -> None:
    raise error


def _kind(span: Fields) -> str:
    found = span.get("span_kind") or _attributes(span).get("openinference.span.kind")
    return str(found).upper()


def _attributes(span: Fields) -> dict[str, Any]:
    """The attributes of a span by dotted names, however they are nested."""
    flat: dict[str, Any] = {}

    def put(prefix: str, value: Any) -> None:
        nested: Sequence[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            nested = tuple(value.items())
        elif isinstance(value, list):
            nested = tuple(enumerate(value))
        if not nested:
            flat[prefix] = value
        for key, one in nested:
            put(f"{prefix}.{key}" if prefix else str(key), one)

    put("", span.get("attributes") or {})
    return flat


def _retrieved(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    documents: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        for start in (f"{_DOCUMENT}.", "reranker.output_documents."):
            if name.startswith(start):
                number, _, rest = name.removeprefix(start).partition(".")
                key = rest.removeprefix("document.")
                if number.isdecimal() and key in ("id", "content"):
                    documents.setdefault(int(number), {})[key] = value
    return [documents[number] for number in sorted(documents)]
