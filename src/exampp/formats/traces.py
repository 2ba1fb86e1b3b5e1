"""Join the spans of a trace to one record: its question, its answer, what was retrieved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from exampp.formats.columns import Row
from exampp.formats.literals import nested_names, opened_fields
from exampp.formats.preset import OUTER, Fields, Paths, Preset, Spans
from exampp.formats.rag_values import find_value, flat, holds_text
from exampp.formats.read_warnings import is_empty

_CARRIED = ("query_id", "reference", "relevant", "relevant_ids")
"""Fields of a record that the root of a trace has, or else another of its spans."""


def joined_preset(preset: Preset) -> Preset:
    """Return the preset that reads the rows of `join_spans`."""
    own = {name: (name,) for name in ("query", "contexts", "response", *_CARRIED)}
    return Preset(
        Fields(**own),
        system=tuple((f"system {number}",) for number, _ in enumerate(preset.system)),
        variants=tuple((f"variant {number}",) for number, _ in enumerate(preset.variants)),
        document_id=preset.document_id,
        document_text=preset.document_text,
        spans=preset.spans,
    )


class Trace(NamedTuple):
    """A trace: its first line, its row, its spans, and the (field, path) that were read.

    `others` names the spans whose documents or output are not read, and a field of the root. The
    settings of a run are not a span, and have no row.
    """

    line: int
    row: Row
    spans: Sequence[Row] = ()
    fields: Sequence[tuple[str, str]] = ()
    others: Sequence[str] = ()


def join_spans(preset: Preset, spans: Spans, rows: Iterable[tuple[int, Row]]) -> Iterator[Trace]:
    """Yield the traces of spans, each with one row.

    The documents come from the last reranker, or else from all retrievers. If the root has no
    question, that of the first span with one is used.
    """
    by_trace: dict[str, list[tuple[int, Row]]] = {}
    used_paths = (*preset.paths("query"), *preset.paths("contexts"), *preset.paths("response"))
    for number, row in _with_children(rows, spans.children):
        span = opened_fields(nested_names(row), preset.json)
        if find_value(span, (*spans.trace, *spans.kind, *used_paths))[0]:
            by_trace.setdefault(str(find_value(span, spans.trace)[1]), []).append((number, span))
        else:
            yield Trace(number, {}, others=[name for name in row if name != OUTER])
    for numbered in by_trace.values():
        of_trace = [span for _, span in numbered]
        row, found, used = _row_of_trace(preset, spans, of_trace)
        unused = (one for one in of_trace if not any(one is other for other in used))
        has_top = any(not find_value(one, spans.parent)[0] for one in of_trace)
        results = (*preset.paths("contexts"), *preset.paths("response")) if has_top else used_paths
        with_results = (
            one for one in unused if _has_content(find_value(one, results, in_lists=True)[1])
        )
        kinds = (find_value(one, spans.kind)[1] for one in with_results)
        names = map(_name_of_kind if has_top else _name_without_root, kinds)
        others = [*names, *_unread_of_root(preset, used[0], dict(found))]
        yield Trace(numbered[0][0], row, of_trace, found, others)


def _unread_of_root(preset: Preset, root: Row, found: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields of a root that may have its texts, but in lists of objects, or unread."""
    for field in ("query", "contexts", "response"):
        paths = preset.paths(field)
        path = find_value(root, paths, in_lists=True)[0]
        is_read = path in found.values() if field == "contexts" else find_value(root, paths)[0]
        if path and not is_read:
            yield path


def _has_content(value: Any) -> bool:
    """Return whether a value, or a value inside, is neither empty nor 0."""
    if isinstance(value, dict):
        value = [*value.values()]
    return any(map(_has_content, value)) if isinstance(value, list) else bool(value)


def _name_of_kind(kind: Any) -> str:
    name = kind.strip('"') if isinstance(kind, str) else "without a type"
    return f"spans: {name}"


def _name_without_root(kind: Any) -> str:
    return f"{_name_of_kind(kind)}, of a trace without a root"


def _with_children(rows: Iterable[tuple[int, Row]], name: str) -> Iterator[tuple[int, Row]]:
    """Yield the spans, each before the spans in its field `name`, also if this is a JSON text.

    Another kind of child is yielded as a row with that field only.
    """
    for number, row in rows:
        yield number, row
        children = flat(opened_fields(row, [name]).get(name)) if name else []
        spans = [(number, one) for one in children if isinstance(one, dict)]
        yield from _with_children(spans, name)
        yield from (
            (number, {name: one})
            for one in children
            if not (isinstance(one, dict) or is_empty(one))
        )


def _row_of_trace(
    preset: Preset, spans: Spans, of_trace: Sequence[Row]
) -> tuple[Row, list[tuple[str, str]], list[Row]]:
    """Return the row of a trace, the (field, path) that were read, and the spans with them."""
    by_kind: dict[str, list[Row]] = {}
    for span in of_trace:
        kind = find_value(span, spans.kind)[1]
        by_kind.setdefault(str(kind).strip('"').upper(), []).append(span)
    reranked = by_kind.get(spans.reranker, [])[-1:] if spans.reranker else []
    retrieved = reranked or by_kind.get(spans.retriever, [])
    root = _root(preset, spans, by_kind, of_trace)
    queries = (find_value(span, preset.paths("query")) for span in (root, *retrieved))
    query_path, query = next((one for one in queries if one[0]), ("", None))
    answer_path, response = find_value(root, preset.paths("response"))
    # the output of a retriever is not an answer; the response of the whole trace is one
    if root in retrieved and not answer_path.startswith(f"{OUTER}."):
        answer_path, response = "", None
    paths = preset.paths("contexts")
    of_spans = [(span, _documents(span, preset, paths)) for span in retrieved]
    documents = [document for _, some in of_spans for document in some]
    if not retrieved:  # a field of the root's output may have the documents, or anything else
        paths = tuple(one for one in paths if one not in preset.paths("response"))
        retrieved, keys = [root], preset.document_text
        found_texts = _documents(root, preset, paths)
        documents = [
            one for one in found_texts if isinstance(one, str | list) or holds_text(one, keys)
        ]
    contexts_at = (find_value(span, paths, in_lists=True) for span in retrieved)
    carried = [(name, *_first_found([root, *of_trace], preset.paths(name))) for name in _CARRIED]
    found = {
        "query": query_path,
        "contexts": next((path for path, _ in contexts_at if path and documents), ""),
        "response": answer_path,
    }
    row = {
        "query": query,
        "contexts": documents,
        "response": response,
        **{name: value for name, _, _, value in carried},
        **{f"system {at}": find_value(root, one)[1] for at, one in enumerate(preset.system)},
        **{f"variant {at}": find_value(root, one)[1] for at, one in enumerate(preset.variants)},
    }
    found |= {name: path for name, path, _, _ in carried}
    with_documents = (span for span, some in of_spans if some)
    used = [root, *with_documents, *(span for _, _, span, _ in carried)]
    return row, [(name, path) for name, path in found.items() if path], used


def _first_found(spans: Sequence[Row], paths: Paths) -> tuple[str, Row, Any]:
    """Return (path, span, value) of the first span that has a value."""
    found = ((span, *find_value(span, paths, in_lists=True)) for span in spans)
    return next(((path, span, value) for span, path, value in found if path), ("", {}, None))


def _root(
    preset: Preset, spans: Spans, by_kind: Mapping[str, Sequence[Row]], of_trace: Sequence[Row]
) -> Row:
    """Return the root of a trace: the span without a parent, or one below it with the texts."""
    if spans.root:
        return next(iter(by_kind.get(spans.root, ())), of_trace[0])
    tops = [span for span in of_trace if not find_value(span, spans.parent)[0]]
    questions, answers = preset.paths("query"), preset.paths("response")
    used = (one for one in tops if find_value(one, (*questions, *answers))[0])
    found = [*by_kind.get(spans.retriever, ()), *by_kind.get(spans.reranker, ())]
    others = [one for one in of_trace if not any(one is other for other in found)]
    whole = (one for one in others if find_value(one, questions)[0] and find_value(one, answers)[0])
    return next(chain(used, whole, tops, others), of_trace[0])


def _documents(span: Row, preset: Preset, paths: Paths) -> list[Any]:
    """Return the documents of a span; LangChain and LlamaIndex may nest them in an object."""
    # the whole output comes before a field of each document, which may have another type
    path, value = find_value(span, paths)
    value = value if path else find_value(span, paths, in_lists=True)[1]
    documents = [] if value is None else flat(value)
    opened = (find_value(one, ("kwargs", "document", "node"))[1] or one for one in documents)
    # an object instead of a list may be anything
    keys = preset.document_text
    return [one for one in opened if isinstance(value, list | str) or holds_text(one, keys)]
