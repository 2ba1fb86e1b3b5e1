"""Evaluation straight from a workbench file: the part of it that gradebooks need, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from exampp.errors import InputError
from exampp.formats.lines import OnError, Skipped, decode_json, raise_error, read_lines
from exampp.formats.workbench import check_new_passage, check_new_query
from exampp.formats.workbench_cells import entries, ratings, within
from exampp.formats.workbench_json import MarkedLine, MarkedPassageJson, PassageJson
from exampp.records import (
    BankEntry,
    GraderIdentity,
    check_system_names,
    subtopic_of,
    subtopic_of_item,
)
from exampp.records.gradebook import (
    MISSING,
    Gradebook,
    QueryGrades,
    Ranking,
    Ratings,
    sorted_rankings,
)
from exampp.records.graders import RatingScale, with_distinct_names
from exampp.records.ids import text_hash
from exampp.records.items import importance
from exampp.sanitize import sanitize

Rated = dict[str, int]
"""Rating by item id."""


class RatedEntry(NamedTuple):
    """The ratings of an entry, with the places of its passage and, among its entries, of it."""

    row: int
    place: int
    ratings: Rated


OnCell = Callable[[str, InputError], None]
"""Hears of a rating that cannot be read, with the key of its grader."""


def accept_cell(_key: str, _error: InputError) -> None:
    """Have nothing to say."""


@dataclass(slots=True)
class GradedLine:
    """One line of the file: its passages, and by grader the ratings of each."""

    query_id: str
    passages: Sequence[MarkedPassageJson | PassageJson]
    rated: dict[str, list[RatedEntry]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkbenchGrades:
    """A workbench file as gradebooks, one per grader, sorted by name; queries are sorted by id.

    `bad` are the ratings that cannot be read, by the key of their grader.
    """

    graders: tuple[GraderIdentity, ...]
    _queries: tuple[GradedLine, ...]
    bad: Mapping[str, Skipped]

    @property
    def highest_judgment(self) -> int | None:
        """The highest judgment of any passage; None where nobody judged."""
        return max(
            (
                judgment.relevance
                for query in self._queries
                for passage in query.passages
                for judgment in passage.paragraph_data.judgments
            ),
            default=None,
        )

    def rated(self, grader: GraderIdentity) -> Mapping[str, Sequence[RatedEntry]]:
        """The ratings of a grader by query; of none where some could not be read."""
        if grader.key in self.bad:
            return {}
        return {query.query_id: query.rated.get(grader.key, ()) for query in self._queries}

    def gradebook(
        self, grader: GraderIdentity, bank: Iterable[BankEntry] | None = None, name: str = ""
    ) -> Gradebook:
        """The grades of one grader, on a bank; without one the bank is what was graded."""
        items = None if bank is None else items_by_query(bank, grader.kind)
        systems = {
            entry.method
            for query in self._queries
            for passage in query.passages
            for entry in passage.paragraph_data.rankings
        }
        check_system_names(systems)
        return Gradebook(
            grader=grader,
            bank=name,
            queries=tuple(
                query_grades(
                    query, grader, None if items is None else items.get(query.query_id, {})
                )
                for query in self._queries
            ),
            systems=tuple(sorted(systems)),
            bank_is_graded_items=items is None,
            notes=tuple(self._notes(grader)),
        )

    def _notes(self, grader: GraderIdentity) -> Iterator[str]:
        if grader.key in self.bad:
            bad = self.bad[grader.key]
            yield (
                f"Ratings of {grader.name} that cannot be read count as missing: {bad.count:,}, "
                f"the first: {bad.first[0]}."
            )


@dataclass(frozen=True, slots=True)
class GradedItem:
    """What evaluation needs of an item."""

    subtopic_id: str | None = None
    weight: float = 1.0
    importance: str | None = None


def items_by_query(bank: Iterable[BankEntry], kind: str) -> dict[str, dict[str, GradedItem]]:
    """The items of a kind by query and id."""
    items: dict[str, dict[str, GradedItem]] = {}
    for entry in bank:
        of_query = items.setdefault(entry.query_id, {})
        for item in entry.items:
            if item.kind == kind:
                of_query[item.item_id] = GradedItem(
                    item.subtopic_id or entry.subtopic_id,
                    item.weight,
                    importance(item.extra, item.weight),
                )
    return items


def read_grades(
    path: str | Path, on_error: OnError = raise_error, scale: RatingScale | None = None
) -> WorkbenchGrades:
    """Read what evaluation needs of a workbench file.

    `scale` is that of graders whose prompt is not known, by default from 0 to the highest label.
    Raises InputError (through `on_error`) with line and field for anything malformed but ratings.
    """
    decoder = msgspec.json.Decoder(MarkedLine)
    graders: dict[str, GraderIdentity] = {}
    queries: list[GradedLine] = []
    bad: dict[str, Skipped] = {}
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        told: list[tuple[str, InputError]] = []
        try:
            typed = decode_json(line, decoder, path, number)
            query_id = str(typed.query_id)
            check_new_query(query_id, number, seen)
            of_line = graded_line(query_id, typed.passages, graders, scale, _into(told))
        except InputError as error:
            on_error(error.at(path, number))
            continue
        queries.append(of_line)
        for key, cell in told:
            bad.setdefault(key, Skipped())(cell.at(path, number))
    queries.sort(key=lambda one: one.query_id)
    named = sorted(with_distinct_names(graders.values()), key=lambda one: (one.name, one.key))
    return WorkbenchGrades(tuple(named), tuple(queries), bad)


def _into(told: list[tuple[str, InputError]]) -> OnCell:
    def tell(key: str, error: InputError) -> None:
        told.append((key, error))

    return tell


def graded_line(
    query_id: str,
    passages: Sequence[MarkedPassageJson | PassageJson],
    graders: dict[str, GraderIdentity],
    scale: RatingScale | None = None,
    on_cell: OnCell = accept_cell,
) -> GradedLine:
    """The ratings of one line of the file by grader; graders not yet known are added.

    `on_cell` hears of each rating that cannot be read, with the key of its grader. Raises
    InputError with the field for anything else that is malformed.
    """
    query = GradedLine(query_id, passages)
    seen: dict[str, int] = {}
    for index, passage in enumerate(passages):
        check_new_passage(passage.paragraph_id, index, seen)
        place = f"[1][{index}]"
        try:
            of_passage = entries(passage.exam_grades, passage.grades, scale)
            for number, entry in enumerate(of_passage):
                key = entry.identity.key
                graders[key] = graders.get(key, entry.identity).widened(entry.identity)
                tell = within(place, partial(on_cell, key))
                rated = RatedEntry(index, number, ratings(query_id, entry, tell))
                query.rated.setdefault(key, []).append(rated)
        except InputError as error:
            error.field = f"{place}.{error.field}"
            raise
    return query


def query_grades(
    query: GradedLine, grader: GraderIdentity, items: dict[str, GradedItem] | None
) -> QueryGrades:
    """One query as one grader graded it, sorted by id, on these items or those that were graded."""
    rated = query.rated.get(grader.key, [])
    order = sorted(range(len(query.passages)), key=lambda row: query.passages[row].paragraph_id)
    query = replace(query, passages=[query.passages[row] for row in order])
    if items is None or grader.kind == "query":
        graded = dict.fromkeys(item_id for one in rated for item_id in one.ratings)
        items = {
            item_id: GradedItem(subtopic_of_item(query.query_id, item_id)) for item_id in graded
        }
    items = dict(sorted(items.items()))
    subtopics = _subtopics(query, items)
    subtopic_number = {subtopic_id: number for number, subtopic_id in enumerate(subtopics, 1)}
    passages = query.passages
    ratings = _matrix(rated, items, len(passages))[order]
    judgments = np.full((len(subtopics) + 1, len(passages)), MISSING, np.int16)
    for row, passage in enumerate(passages):
        for judgment in passage.paragraph_data.judgments:
            subtopic = subtopic_number.get(subtopic_of(query.query_id, judgment.query) or "", 0)
            judgments[subtopic, row] = judgment.relevance
    return QueryGrades(
        query_id=query.query_id,
        subtopic_ids=tuple(subtopics),
        item_ids=tuple(items),
        item_subtopics=np.array(
            [subtopic_number.get(item.subtopic_id or "", 0) for item in items.values()], np.int32
        ),
        weights=np.array([item.weight for item in items.values()], np.float64),
        importances=tuple(item.importance for item in items.values()),
        passage_ids=tuple(passage.paragraph_id for passage in passages),
        pool_size=len(passages),
        text_hashes=tuple(
            text_hash(one.title if isinstance(one.title, str) else "", sanitize(one.text)[0])
            if one.text
            else b""
            for one in passages
        ),
        ratings=ratings,
        judgments=judgments,
        rankings=sorted_rankings(_rankings(query, subtopic_number)),
    )


def _matrix(rated: Sequence[RatedEntry], items: dict[str, GradedItem], passages: int) -> Ratings:
    ratings = np.full((passages, len(items)), MISSING, np.int16)
    column = {item_id: index for index, item_id in enumerate(items)}
    cells = [
        (row, column[item_id], rating)
        for row, _, ratings_of_row in rated
        for item_id, rating in ratings_of_row.items()
        if item_id in column
    ]
    if cells:
        rows, columns, values = np.array(cells, np.int64).T
        ratings[rows, columns] = values
    return ratings


def _subtopics(query: GradedLine, items: dict[str, GradedItem]) -> list[str]:
    # few texts, of which each passage has all
    written: set[str | None] = set()
    for passage in query.passages:
        data = passage.paragraph_data
        written.update([entry.queryId for entry in data.rankings])
        written.update([judgment.query for judgment in data.judgments])
    of_lines = (subtopic_of(query.query_id, one) for one in written if one)
    return sorted({one for one in (*of_lines, *(i.subtopic_id for i in items.values())) if one})


def _rankings(query: GradedLine, subtopic_number: dict[str, int]) -> Iterable[Ranking]:
    by_text: dict[tuple[str, str | None], list[tuple[int, float, str, int]]] = {}
    for row, passage in enumerate(query.passages):
        for entry in passage.paragraph_data.rankings:
            place = (entry.rank, -entry.score, passage.paragraph_id, row)
            by_text.setdefault((entry.method, entry.queryId), []).append(place)
    ranked: dict[tuple[str, int], list[tuple[int, float, str, int]]] = {}
    for (system, written), places in by_text.items():
        subtopic = subtopic_number.get(subtopic_of(query.query_id, written) or "", 0)
        ranked.setdefault((system, subtopic), []).extend(places)
    for (system, subtopic), places in ranked.items():
        places.sort()
        yield Ranking(
            system=system,
            subtopic=subtopic,
            passages=np.array([place[3] for place in places], np.int32),
            scores=np.array([-place[1] for place in places], np.float64),
            ranks=np.array([place[0] for place in places], np.int32),
        )
