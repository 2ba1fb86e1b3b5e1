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
from exampp.formats import rag, tables
from exampp.formats.detect import detect_kind
from exampp.formats.fields import brief, digest, duplicate_error
from exampp.formats.in_memory import HeldLines, as_lines, held
from exampp.formats.lines import OnError, system_of
from exampp.formats.rag import RagRecord
from exampp.inputs.columns import Renaming
from exampp.inputs.files import GivenFile
from exampp.sanitize import check_path

Rows = list[tuple[int, Mapping[str, Any]]]
Answers = dict[tuple[str, str], dict[str, None]]
"""What references say of each question, in order."""


def unfold(
    files: Iterable[GivenFile], system: str | None, on_error: OnError, renaming: Renaming
) -> tuple[list[GivenFile], Mapping[Path, HeldLines]]:
    """Return the files, those of other programs as the parts that we know, and the parts' rows."""
    found: list[GivenFile] = []
    rows: dict[Path, HeldLines] = {}
    answers: Answers = {}
    for given in files:
        preset = _preset(given)
        if preset is None:
            found.append(given)
            if given.data is None and tables.name_of(given.path):
                rows[given.path] = list(as_lines(tables.rows(given.path)))
            continue
        options = renaming.columns, renaming.seen
        records = rag.read(given.path, preset, on_error, *options, is_stated=given.kind is not None)
        distinct = list(_once_each(records, given.path, on_error))
        for _, one in distinct:
            answers.setdefault((one.query_id, one.query), {}).update(dict.fromkeys(one.references))
        for part, lines in _parts(distinct, system or system_of(given.path), answers).items():
            # messages name the part and the line of the file
            path = Path(f"{given.path} ({part})")
            found.append(GivenFile(path, part))
            rows[path] = list(as_lines(lines))
    return found, rows


def _once_each(
    records: Iterable[tuple[int, RagRecord]], path: Path, on_error: OnError
) -> Iterator[tuple[int, RagRecord]]:
    """Yield the records without those in which a system is asked a question again."""
    first: dict[tuple[str, str], int] = {}
    for number, one in records:
        earlier = first.setdefault((one.system, one.query_id), number)
        if earlier == number:
            yield number, one
        else:
            on_error(duplicate_error(f"the question {brief(one.query)}", earlier, path, number))


def _preset(given: GivenFile) -> rag.Preset | None:
    if given.kind:
        return rag.preset_of(given.kind)
    if given.role or given.data is not None or held(given.path):
        return None
    path = check_path(given.path)
    if not path.is_file():
        return None
    preset, is_sure = rag.detect(path)
    if not is_sure:
        with suppress(InputError):
            detect_kind(path)
            return None
    return preset


def _parts(
    records: list[tuple[int, RagRecord]], system: str, answers: Answers
) -> Mapping[str, Rows]:
    """Return the rows of each kind, with the numbers of their lines; equal rows are one.

    `answers` are the references of these files and of those before, which all are right answers.
    """
    parts: dict[str, dict[str, tuple[int, Mapping[str, Any]]]] = {kind: {} for kind in _KINDS}
    for number, one in records:
        for kind, row in _rows(one, one.system or system, answers[one.query_id, one.query]):
            parts[kind].setdefault(repr(row), (number, row))
    return {kind: [*rows.values()] for kind, rows in parts.items() if rows}


_KINDS = ("queries", "passages", "candidates", "responses", "plain-bank", "qrels")


def _rows(
    one: RagRecord, system: str, answers: Iterable[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    of_query = {"query_id": one.query_id}
    yield "queries", {**of_query, "text": one.query}
    for passage, text in one.relevant:
        if text:
            yield "passages", {"id": passage, "text": text}
        yield "qrels", {**of_query, "passage_id": passage, "relevance": 1}
    if one.contexts:
        texts = [{"docid": passage, "doc": {"text": text}} for passage, text in one.contexts]
        yield "candidates", {"query": {"qid": one.query_id}, "run_id": system, "candidates": texts}
    if one.response:
        yield "responses", {**of_query, "system": f"{system}:response", "text": one.response}
    if one.references:
        # a question without an id in the file finds a known query by its text
        is_generated = one.query_id == digest(one.query)
        named = {"query": one.query} if is_generated else of_query
        yield "plain-bank", {**named, "question": one.query, "answer": tuple(answers)}
