"""A workbench file as people look at it: query by query, with the texts and the raw replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import OnError, decode_json, read_lines, refuse
from exampp.formats.workbench import (
    check_new_query,
    direct_grade,
    direct_identity,
    exam_grades,
    exam_identity,
    repeated,
)
from exampp.formats.workbench_gradebook import graded_line, items_by_query, query_grades
from exampp.formats.workbench_json import Line, PassageJson
from exampp.records import BankEntry, Grade, GraderIdentity, Item
from exampp.records.dossier import Cell, Dossier, PassageText
from exampp.records.gradebook import QueryGrades


class _Head(NamedTuple):
    """A line of which only the query is read."""

    query_id: str | int
    passages: msgspec.Raw


class _Words(NamedTuple):
    """What a bank says of a query: its text, its subtopics', and its items by id."""

    query_text: str
    facet_texts: Mapping[str, str]
    items: Mapping[str, Item]


_NO_WORDS = _Words("", {}, {})


def read_dossiers(
    path: str | Path,
    grader: GraderIdentity,
    bank: Iterable[BankEntry] | None = None,
    name: str = "",
    query_ids: Sequence[str] | None = None,
    on_error: OnError = refuse,
) -> Iterator[Dossier]:
    """The queries of the file one by one, as one grader graded them: all, or those asked for.

    Without a bank the items are those that were graded, and only their ids are known. The queries
    come in the order of the file. Raises InputError (through `on_error`) with line and field for
    anything malformed, and for a query that the file does not have.
    """
    entries = None if bank is None else list(bank)
    items = None if entries is None else items_by_query(entries, grader.kind)
    words = {} if entries is None else _words(entries, grader.kind)
    wanted = None if query_ids is None else set(query_ids)
    heads, whole = msgspec.json.Decoder(_Head), msgspec.json.Decoder(Line)
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            query_id = str(decode_json(line, heads, path, number).query_id)
            check_new_query(query_id, number, seen)
            if wanted is not None and query_id not in wanted:
                continue
            passages = decode_json(line, whole, path, number).passages
            of_bank = None if items is None else items.get(query_id, {})
            grades = query_grades(graded_line(query_id, passages, {}), grader, of_bank)
            found = _dossier(grader, name, grades, passages, words.get(query_id, _NO_WORDS))
        except InputError as error:
            on_error(error.at(path, number))
            continue
        yield found
    for query_id in query_ids or ():
        if query_id not in seen:
            raise InputError(f"the file has no query {query_id!r}", file=path)


def _words(entries: Iterable[BankEntry], kind: str) -> dict[str, _Words]:
    found: dict[str, _Words] = {}
    for entry in entries:
        known = found.get(entry.query_id, _NO_WORDS)
        facets, text = dict(known.facet_texts), known.query_text
        if entry.facet_id:
            facets[entry.facet_id] = entry.facet_text
        items = {
            item.item_id: replace(item, facet_id=item.facet_id or entry.facet_id)
            for item in entry.items
            if item.kind == kind
        }
        # a line of a subtopic carries the text of both together
        said = text or ("" if entry.facet_id else entry.query_text)
        found[entry.query_id] = _Words(said, facets, {**known.items, **items})
    return found


def _dossier(
    grader: GraderIdentity,
    bank: str,
    grades: QueryGrades,
    passages: Sequence[PassageJson],
    words: _Words,
) -> Dossier:
    column = {item_id: index for index, item_id in enumerate(grades.item_ids)}
    return Dossier(
        grader=grader,
        bank=bank,
        query_id=grades.query_id,
        query_text=words.query_text,
        facet_texts={facet: words.facet_texts.get(facet, "") for facet in grades.facet_ids},
        grades=grades,
        items=tuple(_items(grader, grades, words)),
        texts=tuple(
            PassageText(p.title if isinstance(p.title, str) else "", p.text) for p in passages
        ),
        automatic=dict(_automatic(grader, grades.query_id, passages, column)),
    )


def _items(grader: GraderIdentity, grades: QueryGrades, words: _Words) -> Iterator[Item]:
    facets = ("", *grades.facet_ids)
    for index, item_id in enumerate(grades.item_ids):
        known = words.items.get(item_id)
        text = words.query_text if grader.kind == "query" else ""
        facet = facets[grades.item_facets[index]] or None
        yield known or Item(item_id, grades.query_id, text, grader.kind, facet)


def _automatic(
    grader: GraderIdentity,
    query_id: str,
    passages: Sequence[PassageJson],
    column: Mapping[str, int],
) -> Iterator[tuple[Cell, Grade]]:
    for row, passage in enumerate(passages):
        for identity, grade in _grades(query_id, passage):
            if identity.key == grader.key and grade.item_id in column:
                yield (row, column[grade.item_id]), grade


def _grades(query_id: str, passage: PassageJson) -> Iterator[tuple[GraderIdentity, Grade]]:
    taken: dict[str, int] = {}
    for entry in passage.exam_grades or ():
        identity = repeated(exam_identity(entry), taken)
        for grade in exam_grades(entry, identity):
            yield identity, grade
    for single in passage.grades or ():
        identity = repeated(direct_identity(single), taken)
        yield identity, direct_grade(query_id, single, identity)
