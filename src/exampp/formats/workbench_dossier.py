"""A workbench file as people look at it: query by query, with the texts and the raw replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import OnError, decode_json, raise_error, read_lines
from exampp.formats.workbench import check_new_query
from exampp.formats.workbench_cells import entries, grades
from exampp.formats.workbench_gradebook import graded_line, items_by_query, query_grades
from exampp.formats.workbench_json import PassageJson, WorkbenchLine
from exampp.records import BankEntry, Grade, GraderIdentity, Item
from exampp.records.gradebook import Cell, Dossier, PassageText, QueryGrades
from exampp.records.graders import RatingScale


class _Head(NamedTuple):
    """A line of which only the query is read."""

    query_id: str | int
    passages: msgspec.Raw


class _Words(NamedTuple):
    """What a bank says of a query: its text, its subtopics', and its items by id."""

    query_text: str
    subtopic_texts: Mapping[str, str]
    items: Mapping[str, Item]


_NO_WORDS = _Words("", {}, {})


def read_dossiers(
    path: str | Path,
    grader: GraderIdentity,
    bank: Iterable[BankEntry] | None = None,
    name: str = "",
    query_ids: Sequence[str] | None = None,
    on_error: OnError = raise_error,
    scale: RatingScale | None = None,
) -> Iterator[Dossier]:
    """The queries of the file one by one, as one grader graded them: all, or those asked for.

    Without a bank the items are those that were graded, and only their ids are known. The queries
    come in the order of the file. Raises InputError (through `on_error`) with line and field for
    anything malformed, and for a query that the file does not have.
    """
    of_file = None if bank is None else list(bank)
    items = None if of_file is None else items_by_query(of_file, grader.kind)
    words = {} if of_file is None else _words(of_file, grader.kind)
    wanted = None if query_ids is None else set(query_ids)
    heads, whole = msgspec.json.Decoder(_Head), msgspec.json.Decoder(WorkbenchLine)
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            query_id = str(decode_json(line, heads, path, number).query_id)
            check_new_query(query_id, number, seen)
            if wanted is not None and query_id not in wanted:
                continue
            passages = decode_json(line, whole, path, number).passages
            of_bank = None if items is None else items.get(query_id, {})
            rated = query_grades(graded_line(query_id, passages, {}, scale), grader, of_bank)
            said = words.get(query_id, _NO_WORDS)
            by_id = sorted(passages, key=lambda passage: passage.paragraph_id)
            found = _dossier(grader, name, rated, by_id, said, scale)
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
        subtopics, text = dict(known.subtopic_texts), known.query_text
        if entry.subtopic_id:
            subtopics[entry.subtopic_id] = entry.subtopic_text
        items = {
            item.item_id: replace(item, subtopic_id=item.subtopic_id or entry.subtopic_id)
            for item in entry.items
            if item.kind == kind
        }
        # a line of a subtopic carries the text of both together
        said = text or ("" if entry.subtopic_id else entry.query_text)
        found[entry.query_id] = _Words(said, subtopics, {**known.items, **items})
    return found


def _dossier(
    grader: GraderIdentity,
    bank: str,
    rated: QueryGrades,
    passages: Sequence[PassageJson],
    words: _Words,
    scale: RatingScale | None,
) -> Dossier:
    column = {item_id: index for index, item_id in enumerate(rated.item_ids)}
    return Dossier(
        grader=grader,
        bank=bank,
        query_id=rated.query_id,
        query_text=words.query_text,
        subtopic_texts={
            subtopic: words.subtopic_texts.get(subtopic, "") for subtopic in rated.subtopic_ids
        },
        grades=rated,
        items=tuple(_items(grader, rated, words)),
        texts=tuple(
            PassageText(p.title if isinstance(p.title, str) else "", p.text) for p in passages
        ),
        automatic=dict(_automatic(grader, rated.query_id, passages, column, scale)),
        bank_order=tuple(range(len(column))),
    )


def _items(grader: GraderIdentity, grades: QueryGrades, words: _Words) -> Iterator[Item]:
    subtopics = ("", *grades.subtopic_ids)
    for index, item_id in enumerate(grades.item_ids):
        known = words.items.get(item_id)
        text = words.query_text if grader.kind == "query" else ""
        subtopic = subtopics[grades.item_subtopics[index]] or None
        yield known or Item(item_id, grades.query_id, text, grader.kind, subtopic)


def _automatic(
    grader: GraderIdentity,
    query_id: str,
    passages: Sequence[PassageJson],
    column: Mapping[str, int],
    scale: RatingScale | None,
) -> Iterator[tuple[Cell, Grade]]:
    for row, passage in enumerate(passages):
        for entry in entries(passage.exam_grades, passage.grades, scale):
            if entry.identity.key == grader.key:
                for grade in grades(query_id, entry):
                    if grade.item_id in column:
                        yield (row, column[grade.item_id]), grade
