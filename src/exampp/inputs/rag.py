"""Files of other programs for RAG systems as files of ours: rows that stand where a file could.

What was retrieved is the ranking of a system, its answer that of a second one, `NAME:response`; a
reference answer is the answer key of an item that asks the question itself, and contexts that a
reference was made of are relevant passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exampp.formats.held import HeldLines, as_lines, held
from exampp.formats.lines import OnError, system_of
from exampp.formats.rag_records import KINDS, RagRecord, kind_of, read
from exampp.inputs.files import GivenFile
from exampp.outside import check_path

Rows = list[tuple[int, Mapping[str, Any]]]


def unfold(
    files: Iterable[GivenFile], system: str | None, on_error: OnError
) -> tuple[list[GivenFile], Mapping[Path, HeldLines]]:
    """The files, those of other programs as the parts that we know; and the rows of these parts."""
    found: list[GivenFile] = []
    rows: dict[Path, HeldLines] = {}
    for given in files:
        kind = _kind(given)
        if kind is None:
            found.append(given)
            continue
        records = list(read(given.path, kind, on_error))
        for part, lines in _parts(
            records, system or system_of(given.path).removesuffix(".parquet")
        ):
            # messages name the part and the line of the file
            path = Path(f"{given.path} ({part})")
            found.append(GivenFile(path, part))
            rows[path] = list(as_lines(lines))
    return found, rows


def _kind(given: GivenFile) -> str | None:
    if given.kind in KINDS:
        return given.kind
    if given.kind or given.role or given.data is not None or held(given.path):
        return None
    return kind_of(given.path) if check_path(given.path).is_file() else None


def _parts(records: list[tuple[int, RagRecord]], system: str) -> Iterator[tuple[str, Rows]]:
    """The kinds of rows that records have, each with the numbers of their lines."""
    parts: dict[str, Rows] = {
        "queries": [(n, {"query_id": one.query_id, "text": one.query}) for n, one in records],
        "passages": [
            (number, {"id": name, "text": text})
            for name, (number, text) in {
                name: (n, text) for n, one in records for name, text in one.relevant
            }.items()
        ],
        "candidates": [
            (n, {"query": {"qid": one.query_id}, "run_id": system, "candidates": _listed(one)})
            for n, one in records
            if one.contexts
        ],
        "responses": [
            (n, {"query_id": one.query_id, "system": f"{system}:response", "text": one.response})
            for n, one in records
            if one.response
        ],
        "plain-bank": [
            (n, {"query_id": one.query_id, "question": one.query, "answer": one.reference})
            for n, one in records
            if one.reference
        ],
        "qrels": [
            (n, {"query_id": one.query_id, "passage_id": name, "relevance": 1})
            for n, one in records
            for name, _ in one.relevant
        ],
    }
    yield from ((part, rows) for part, rows in parts.items() if rows)


def _listed(record: RagRecord) -> list[dict[str, Any]]:
    return [{"docid": name, "doc": {"text": text}} for name, text in record.contexts]
