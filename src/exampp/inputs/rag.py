"""Files of other programs for RAG systems as files of ours: rows that stand where a file could.

What was retrieved is the ranking of a system, its answer that of a second one, `NAME:response`; a
reference answer is the answer key of an item that asks the question itself, and contexts that a
reference was made of are relevant passages. Rows of Parquet and Arrow files stand for their files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats import columnar
from exampp.formats.detect import detect_kind
from exampp.formats.fields import brief, duplicate_error
from exampp.formats.in_memory import HeldLines, as_lines, held
from exampp.formats.lines import OnError, system_of
from exampp.formats.rag_records import KINDS, RagRecord, kind_of, read
from exampp.formats.rag_values import digest
from exampp.inputs.columns import Renaming
from exampp.inputs.files import GivenFile
from exampp.sanitize import check_path

Rows = list[tuple[int, Mapping[str, Any]]]
Answers = dict[tuple[str, str], dict[str, None]]
"""What references say of each question, in order."""


def unfold(
    files: Iterable[GivenFile], system: str | None, on_error: OnError, renaming: Renaming
) -> tuple[list[GivenFile], Mapping[Path, HeldLines]]:
    """The files, those of other programs as the parts that we know; and the rows of these parts."""
    found: list[GivenFile] = []
    rows: dict[Path, HeldLines] = {}
    answers: Answers = {}
    for given in files:
        kind = _kind(given)
        if kind is None:
            found.append(given)
            if given.data is None and columnar.name_of(given.path):
                rows[given.path] = list(as_lines(columnar.rows(given.path)))
            continue
        is_said = given.kind is not None
        named = renaming.columns, renaming.seen
        read_records = read(given.path, kind, on_error, *named, is_said=is_said)
        records = list(_once_each(read_records, given.path, on_error))
        for _, one in records:
            answers.setdefault((one.query_id, one.query), {}).update(dict.fromkeys(one.references))
        for part, lines in _parts(records, system or system_of(given.path), answers):
            # messages name the part and the line of the file
            path = Path(f"{given.path} ({part})")
            found.append(GivenFile(path, part))
            rows[path] = list(as_lines(lines))
    return found, rows


def _once_each(
    records: Iterable[tuple[int, RagRecord]], path: Path, on_error: OnError
) -> Iterator[tuple[int, RagRecord]]:
    """The records without those in which a system is asked a question again."""
    first: dict[tuple[str, str], int] = {}
    for number, one in records:
        earlier = first.setdefault((one.system, one.query_id), number)
        if earlier == number:
            yield number, one
        else:
            on_error(duplicate_error(f"the question {brief(one.query)}", earlier, path, number))


def _kind(given: GivenFile) -> str | None:
    if given.kind in KINDS:
        return given.kind
    if given.kind or given.role or given.data is not None or held(given.path):
        return None
    path = check_path(given.path)
    if not path.is_file():
        return None
    kind, is_sure = kind_of(path)
    if not is_sure:
        with suppress(InputError):
            detect_kind(path)
            return None
    return kind


def _parts(
    records: list[tuple[int, RagRecord]], system: str, answers: Answers
) -> Iterator[tuple[str, Rows]]:
    """The kinds of rows that records have, each with the numbers of their lines.

    `answers` are the references of these files and of those before, which all are right answers.
    """
    parts: dict[str, Rows] = {
        "queries": _once((n, {"query_id": one.query_id, "text": one.query}) for n, one in records),
        "passages": _once(
            (n, {"id": name, "text": text})
            for n, one in records
            for name, text in one.relevant
            if text
        ),
        "candidates": [
            (
                n,
                {
                    "query": {"qid": one.query_id},
                    "run_id": one.system or system,
                    "candidates": _listed(one),
                },
            )
            for n, one in records
            if one.contexts
        ],
        "responses": [
            (
                n,
                {
                    "query_id": one.query_id,
                    "system": f"{one.system or system}:response",
                    "text": one.response,
                },
            )
            for n, one in records
            if one.response
        ],
        "plain-bank": _once(
            (
                n,
                {
                    **_named(one),
                    "question": one.query,
                    "answer": tuple(answers[one.query_id, one.query]),
                },
            )
            for n, one in records
            if one.references
        ),
        "qrels": _once(
            (n, {"query_id": one.query_id, "passage_id": name, "relevance": 1})
            for n, one in records
            for name, _ in one.relevant
        ),
    }
    yield from ((part, rows) for part, rows in parts.items() if rows)


def _named(one: RagRecord) -> dict[str, str]:
    """Name the query of an item: by its text where the file has no id, to find a known query."""
    is_generated = one.query_id == digest(one.query)
    return {"query": one.query} if is_generated else {"query_id": one.query_id}


def _once(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Rows:
    """The rows without those that say the same again, as several systems were asked the same."""
    distinct: dict[tuple[Any, ...], tuple[int, Mapping[str, Any]]] = {}
    for number, row in rows:
        distinct.setdefault(tuple(row.values()), (number, row))
    return list(distinct.values())


def _listed(record: RagRecord) -> list[dict[str, Any]]:
    return [{"docid": name, "doc": {"text": text}} for name, text in record.contexts]
