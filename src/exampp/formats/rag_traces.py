"""Traces of RAG systems: spans that are put together to what was asked, retrieved and answered.

Sources: the semantic conventions of OpenInference (Phoenix, Arize), those of TruLens 2 (its table
of events, `ai.observability.`), and the export and API of Langfuse (observations).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from exampp.formats.rag_presets import marks
from exampp.formats.rag_values import found

Row = Mapping[str, Any]


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
    """How spans are written: by which fields a file is known, where they are, how one is read."""

    marks: tuple[frozenset[str], ...]
    span: Callable[[Row], TraceSpan]
    inside: tuple[str, ...] = ()


def traces(how: Convention, rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """A row for every trace: the question and answer of its root, what its retrievers returned.

    The documents are those of the last reranker where there is one, else of all retrievers. A
    question that the root does not have is that of the first retriever.
    """
    by_trace: dict[str, list[tuple[int, TraceSpan]]] = {}
    for number, row in rows:
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


def _flat(nested: Any) -> dict[str, Any]:
    """The attributes of a span by dotted names, however they are nested."""
    flat: dict[str, Any] = {}

    def put(prefix: str, value: Any) -> None:
        inside: Sequence[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            inside = tuple(value.items())
        elif isinstance(value, list):
            inside = tuple(enumerate(value))
        if not inside:
            flat[prefix] = value
        for key, one in inside:
            put(f"{prefix}.{key}" if prefix else str(key), one)

    put("", nested)
    return flat


def _retrieved(attributes: Row) -> list[Any]:
    documents: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        for start in ("retrieval.documents.", "reranker.output_documents."):
            if name.startswith(start):
                number, _, rest = name.removeprefix(start).partition(".")
                key = rest.removeprefix("document.")
                if number.isdecimal() and key in ("id", "content"):
                    documents.setdefault(int(number), {})[key] = value
    return [documents[number] for number in sorted(documents)]


# ---- TruLens -------------------------------------------------------------------------------------

_BASE = "ai.observability"


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

_ASKED = ("question", "query", "input", "user_input", "messages")
_SAID = ("answer", "output", "response", "result", "content", "text", "messages")
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
        _inside(_json(row.get("input")), _ASKED),
        _inside(output, _SAID),
        [_document(one) for one in listed] if is_retriever else [],
    )


def _json(value: Any) -> Any:
    return _written(value) if isinstance(value, str) else value


def _inside(value: Any, keys: Sequence[str]) -> Any:
    return found(value, keys)[1] if isinstance(value, dict) and found(value, keys)[0] else value


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
        inside=("observations", "data"),
    ),
    "trulens-events": Convention(marks("record_attributes", "trace"), _trulens),
    SPANS: Convention(
        marks("attributes", "context span_id spanId", "span_kind name"), _openinference
    ),
}
"""How spans of a program are written, by the kind that `--as` calls its files."""
