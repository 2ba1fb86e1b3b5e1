"""Evaluation straight from a workbench file: the part of it that gradebooks need, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from exampp.errors import InputError
from exampp.formats.lines import OnError, decode_json, read_lines, refuse
from exampp.formats.workbench import (
    check_new_passage,
    check_new_query,
    direct_grade,
    direct_identity,
    exam_identity,
    marks,
    repeated,
)
from exampp.formats.workbench_json import (
    DirectJson,
    MarkedLine,
    MarkedPassageJson,
    MarksJson,
    PassageJson,
)
from exampp.records import (
    BankEntry,
    GraderIdentity,
    check_system_names,
    facet_of,
    facet_of_item,
)
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking, Ratings

Entry = MarksJson | DirectJson
Rated = dict[str, int]
"""Rating by item id."""


@dataclass(slots=True)
class GradedLine:
    """One line of the file: its passages, and by grader the ratings of each (row, ratings)."""

    query_id: str
    passages: Sequence[MarkedPassageJson | PassageJson]
    rated: dict[str, list[tuple[int, Rated]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkbenchGrades:
    """A workbench file as gradebooks, one per grader, in order of first appearance."""

    graders: tuple[GraderIdentity, ...]
    _queries: tuple[GradedLine, ...]

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

    def gradebook(
        self, grader: GraderIdentity, bank: Iterable[BankEntry] | None = None, name: str = ""
    ) -> Gradebook:
        """The grades of one grader, on a bank; without one the bank is what was graded."""
        items = None if bank is None else items_by_query(bank, grader.kind)
        systems: dict[str, None] = {}
        for query in self._queries:
            for passage in query.passages:
                systems.update((entry.method, None) for entry in passage.paragraph_data.rankings)
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
            systems=tuple(systems),
            bank_is_graded_items=items is None,
        )


@dataclass(frozen=True, slots=True)
class ItemOf:
    """What evaluation needs of an item."""

    facet_id: str | None = None
    weight: float = 1.0


def items_by_query(bank: Iterable[BankEntry], kind: str) -> dict[str, dict[str, ItemOf]]:
    """The items of a kind by query and id."""
    items: dict[str, dict[str, ItemOf]] = {}
    for entry in bank:
        of_query = items.setdefault(entry.query_id, {})
        for item in entry.items:
            if item.kind == kind:
                of_query[item.item_id] = ItemOf(item.facet_id or entry.facet_id, item.weight)
    return items


def read_grades(path: str | Path, on_error: OnError = refuse) -> WorkbenchGrades:
    """Read what evaluation needs of a workbench file.

    Raises InputError (through `on_error`) with line and field for anything malformed.
    """
    decoder = msgspec.json.Decoder(MarkedLine)
    graders: dict[str, GraderIdentity] = {}
    queries: list[GradedLine] = []
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            typed = decode_json(line, decoder, path, number)
            check_new_query(str(typed.query_id), number, seen)
            queries.append(graded_line(str(typed.query_id), typed.passages, graders))
        except InputError as error:
            on_error(error.at(path, number))
    return WorkbenchGrades(tuple(graders.values()), tuple(queries))


def graded_line(
    query_id: str,
    passages: Sequence[MarkedPassageJson | PassageJson],
    graders: dict[str, GraderIdentity],
) -> GradedLine:
    """The ratings of one line of the file by grader; graders not yet known are added.

    Raises InputError with the field for anything malformed.
    """
    query = GradedLine(query_id, passages)
    seen: dict[str, int] = {}
    for index, passage in enumerate(passages):
        check_new_passage(passage.paragraph_id, index, seen)
        taken: dict[str, int] = {}
        entries: list[tuple[GraderIdentity, Entry, str]] = [
            (exam_identity(entry), entry, f"exam_grades[{number}]")
            for number, entry in enumerate(passage.exam_grades or ())
        ]
        entries += [
            (direct_identity(single), single, f"grades[{number}]")
            for number, single in enumerate(passage.grades or ())
        ]
        for once, entry, place in entries:
            identity = repeated(once, taken)
            try:
                rated = _rated(query_id, entry, identity)
            except InputError as error:
                error.field = f"[1][{index}].{place}.{error.field}"
                raise
            known = graders.get(identity.key)
            if known is None or known.highest < identity.highest:
                graders[identity.key] = identity
            query.rated.setdefault(identity.key, []).append((index, rated))
    return query


def _rated(query_id: str, entry: Entry, grader: GraderIdentity) -> Rated:
    if isinstance(entry, DirectJson):
        grade = direct_grade(query_id, entry, grader)
        return {} if grade.rating is None else {query_id: grade.rating}
    found = marks(entry, grader)
    failed = entry.llm_response_errors
    if not failed:
        return found
    return {item_id: rating for item_id, rating in found.items() if item_id not in failed}


def query_grades(
    query: GradedLine, grader: GraderIdentity, items: dict[str, ItemOf] | None
) -> QueryGrades:
    """One query as one grader graded it, on these items; None: the items that were graded."""
    rated = query.rated.get(grader.key, [])
    if items is None or grader.kind == "query":
        graded = dict.fromkeys(item_id for _, ratings in rated for item_id in ratings)
        items = {item_id: ItemOf(facet_of_item(query.query_id, item_id)) for item_id in graded}
    facets = _facets(query, items)
    facet_number = {facet_id: number for number, facet_id in enumerate(facets, 1)}
    passages = query.passages
    ratings = _matrix(rated, items, len(passages))
    judgments = np.full((len(facets) + 1, len(passages)), MISSING, np.int16)
    for row, passage in enumerate(passages):
        for judgment in passage.paragraph_data.judgments:
            facet = facet_number.get(facet_of(query.query_id, judgment.query) or "", 0)
            judgments[facet, row] = judgment.relevance
    return QueryGrades(
        query_id=query.query_id,
        facet_ids=tuple(facets),
        item_ids=tuple(items),
        item_facets=np.array(
            [facet_number.get(item.facet_id or "", 0) for item in items.values()], np.int32
        ),
        weights=np.array([item.weight for item in items.values()], np.float64),
        passage_ids=tuple(passage.paragraph_id for passage in passages),
        pool_size=len(passages),
        ratings=ratings,
        judgments=judgments,
        rankings=tuple(_rankings(query, facet_number)),
    )


def _matrix(rated: Sequence[tuple[int, Rated]], items: dict[str, ItemOf], passages: int) -> Ratings:
    ratings = np.full((passages, len(items)), MISSING, np.int16)
    column = {item_id: index for index, item_id in enumerate(items)}
    cells = [
        (row, column[item_id], rating)
        for row, ratings_of_row in rated
        for item_id, rating in ratings_of_row.items()
        if item_id in column
    ]
    if cells:
        rows, columns, values = np.array(cells, np.int64).T
        ratings[rows, columns] = values
    return ratings


def _facets(query: GradedLine, items: dict[str, ItemOf]) -> dict[str, None]:
    facets = dict.fromkeys(item.facet_id for item in items.values() if item.facet_id)
    for passage in query.passages:
        data = passage.paragraph_data
        written = [entry.queryId for entry in data.rankings]
        written += [judgment.query for judgment in data.judgments]
        facets.update((f, None) for w in written if w and (f := facet_of(query.query_id, w)))
    return facets


def _rankings(query: GradedLine, facet_number: dict[str, int]) -> Iterable[Ranking]:
    ranked: dict[tuple[str, int], list[tuple[int, float, str, int]]] = {}
    for row, passage in enumerate(query.passages):
        for entry in passage.paragraph_data.rankings:
            facet = facet_number.get(facet_of(query.query_id, entry.queryId) or "", 0)
            place = (entry.rank, -entry.score, passage.paragraph_id, row)
            ranked.setdefault((entry.method, facet), []).append(place)
    for (system, facet), places in ranked.items():
        places.sort()
        yield Ranking(
            system=system,
            facet=facet,
            passages=np.array([place[3] for place in places], np.int32),
            scores=np.array([-place[1] for place in places], np.float64),
            ranks=np.array([place[0] for place in places], np.int32),
        )
