"""Traces of RAG systems: spans that are put together to what was asked, retrieved and answered.

Sources: the semantic conventions of OpenInference (Phoenix, Arize), those of TruLens 2 (its table
of events, `ai.observability.`), and the export and API of Langfuse (observations).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from exampp.formats.rag_presets import marks
from exampp.formats.rag_values import found
from exampp.formats.read_warnings import count_unused, is_empty

Row = Mapping[str, Any]
ASKED = (
    *("question", "query", "input", "inputs", "user_input", "user_query", "prompt", "text"),
    *("content", "message", "messages"),
)
SAID = (
    *("answer", "output", "outputs", "response", "result", "completion", "text", "content"),
    *("message", "messages"),
)
"""Keys of the question and of the answer where a span has an object for it."""


class TraceSpan(NamedTuple):
    """What a span of a trace says: `kind` is root, retriever, reranker or empty."""

    trace: str
    parent: Any
    kind: str
    asked: Any
    said: Any
    documents: list[Any]
    system: str = ""


class Convention(NamedTuple):
    """How spans are written: by which fields a file is known, how one is read, where they are.

    `read` are the dotted names of the fields that are read, without the numbers in them.
    """

    marks: tuple[frozenset[str], ...]
    span: Callable[[Row], TraceSpan]
    read: frozenset[str]
    inside: tuple[str, ...] = ()


def traces(
    how: Convention, rows: Iterator[tuple[int, Row]], path: str | Path
) -> Iterator[tuple[int, Row]]:
    """A row for every trace: the question and answer of its root, what its retrievers returned.

    The documents are those of the last reranker where there is one, else of all retrievers. A
    question that the root does not have is that of the first retriever.
    """
    by_trace: dict[str, list[tuple[int, TraceSpan]]] = {}
    for number, row in rows:
        count_unused(path, sorted(_names(row) - how.read))
        span = how.span(row)
        by_trace.setdefault(span.trace, []).append((number, span))
    for numbered in by_trace.values():
        spans = [span for _, span in numbered]
        root = next((one for one in spans if one.parent in (None, "")), spans[0])
        ranked = [one for one in spans if one.kind == "reranker"][-1:]
        retrieved = ranked or [one for one in spans if one.kind == "retriever"]
        asked = root.asked or next((one.asked for one in retrieved if one.asked), None)
        yield (
            numbered[0][0],
            {
                "query": asked,
                "contexts": [document for one in retrieved for document in one.documents],
                "response": None if root in retrieved else root.said,
                "system": root.system,
            },
        )


# ---- OpenInference -------------------------------------------------------------------------------

_KINDS = {"RETRIEVER": "retriever", "RERANKER": "reranker"}
_TRACE = ("context.trace_id", "trace_id", "traceId")
_PARENT = ("parent_id", "parent_span_id", "parentSpanId")
_VALUES = ("input.value", "output.value")
_DOCUMENTS = ("retrieval.documents.", "reranker.output_documents.")
_OF_ONE = ("id", "content")


def _openinference(row: Row) -> TraceSpan:
    attributes = _flat(row.get("attributes") or {})
    kind = row.get("span_kind") or attributes.get("openinference.span.kind")
    return TraceSpan(
        str(found(row, _TRACE)[1]),
        found(row, _PARENT)[1],
        _KINDS.get(str(kind).upper(), ""),
        attributes.get("input.value"),
        attributes.get("output.value"),
        _retrieved(attributes),
    )


def _names(row: Row) -> set[str]:
    """Return the dotted names of the fields of a span, without the numbers in them."""
    names = (
        name
        for name, value in _flat({key: _attributes(key, row[key]) for key in row}).items()
        if not is_empty(value)
    )
    return {".".join(part for part in name.split(".") if not part.isdecimal()) for name in names}


def _attributes(name: str, value: Any) -> Any:
    """Return a field of a span; what is written in it is of interest for attributes alone."""
    return _object(value) if name.endswith("attributes") else not is_empty(value) or None


def _flat(nested: Any) -> dict[str, Any]:
    """The attributes of a span by dotted names, however they are nested."""
    flat: dict[str, Any] = {}

    def put(prefix: str, value: Any) -> None:
        inside: Sequence[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            inside = tuple(value.items())
        elif isinstance(value, list):
            inside = tuple(enumerate(value))
        if not inside or prefix.endswith(_VALUES):
            inside = ()
            flat[prefix] = value
        for key, one in inside:
            put(f"{prefix}.{key}" if prefix else str(key), one)

    put("", nested)
    return flat


def _retrieved(attributes: Row) -> list[Any]:
    documents: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        for start in _DOCUMENTS:
            if name.startswith(start):
                number, _, rest = name.removeprefix(start).partition(".")
                key = rest.removeprefix("document.")
                if number.isdecimal() and key in _OF_ONE:
                    documents.setdefault(int(number), {})[key] = value
    return [documents[number] for number in sorted(documents)]


# ---- TruLens -------------------------------------------------------------------------------------

_BASE = "ai.observability"
_TRULENS = (
    *("span_type", "record_id", "app_name", "app_version", "record_root.input"),
    *("record_root.output", "retrieval.retrieved_contexts", "retrieval.query_text"),
)


def _trulens(row: Row) -> TraceSpan:
    attributes, resource = (
        _object(row.get("record_attributes")),
        _object(row.get("resource_attributes")),
    )
    trace = _object(row.get("trace"))
    kind = attributes.get(f"{_BASE}.span_type")
    names = (
        {**resource, **attributes}.get(f"{_BASE}.{one}") for one in ("app_name", "app_version")
    )
    contexts = attributes.get(f"{_BASE}.retrieval.retrieved_contexts")
    of_root = f"{_BASE}.record_root"
    return TraceSpan(
        str(attributes.get(f"{_BASE}.record_id") or trace.get("trace_id")),
        None if kind == "record_root" else trace.get("parent_id") or "unknown",
        "retriever" if kind == "retrieval" else "",
        attributes.get(f"{of_root}.input") or attributes.get(f"{_BASE}.retrieval.query_text"),
        attributes.get(f"{of_root}.output"),
        contexts if isinstance(contexts, list) else [] if contexts is None else [contexts],
        "/".join(str(name) for name in names if name),
    )


def _object(value: Any) -> Row:
    """An object, also one that is written as JSON or as Python writes it, as tables have them."""
    if isinstance(value, str):
        value = _written(value)
    return value if isinstance(value, dict) else {}


def _written(text: str) -> Any:
    """What a text spells that is a list, an object or a quoted text; else the text."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return read(text.strip())
    return text


# ---- Langfuse ------------------------------------------------------------------------------------

_LISTS = ("documents", "docs", "contexts", "chunks", "passages", "results")


def _langfuse(row: Row) -> TraceSpan:
    kind = str(row.get("type") or "").upper()
    output = _json(row.get("output"))
    documents = found(output, _LISTS)[1] if isinstance(output, dict) else output
    is_retriever = kind == "RETRIEVER"
    listed = documents if isinstance(documents, list) else [documents] if documents else []
    return TraceSpan(
        str(found(row, ("traceId", "trace_id"))[1]),
        found(row, ("parentObservationId", "parent_observation_id"))[1],
        "retriever" if is_retriever else "",
        _json(row.get("input")),
        output,
        [_document(one) for one in listed] if is_retriever else [],
    )


def _json(value: Any) -> Any:
    return _written(value) if isinstance(value, str) else value


def _document(value: Any) -> Any:
    """A document of LangChain or LlamaIndex; the first may be written as `kwargs` of its class."""
    if isinstance(value, dict):
        return found(value, ("kwargs", "document", "node"))[1] or value
    return value


SPANS = "openinference"
TRACES: Mapping[str, Convention] = {
    "langfuse": Convention(
        marks("traceId trace_id", "type", "input output", "startTime start_time"),
        _langfuse,
        frozenset(
            [
                "traceId",
                "trace_id",
                "parentObservationId",
                "parent_observation_id",
                "type",
                "input",
                "output",
            ]
        ),
        inside=("observations", "data"),
    ),
    "trulens-events": Convention(
        marks("record_attributes", "trace"),
        _trulens,
        frozenset(
            (
                *(f"record_attributes.{_BASE}.{name}" for name in _TRULENS),
                *(f"resource_attributes.{_BASE}.{name}" for name in ("app_name", "app_version")),
                "trace",
            )
        ),
    ),
    SPANS: Convention(
        marks("attributes", "context span_id spanId", "span_kind name"),
        _openinference,
        frozenset(
            (
                *_TRACE,
                *_PARENT,
                *("context", "span_kind", "attributes.openinference.span.kind"),
                *(f"attributes.{name}" for name in (*_VALUES, "input.mime_type")),
                "attributes.output.mime_type",
                *(f"attributes.{start}document.{key}" for start in _DOCUMENTS for key in _OF_ONE),
            )
        ),
    ),
}
"""How spans of a program are written, by the kind that `--as` calls its files."""
