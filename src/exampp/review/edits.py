"""What the exam of a query would be after some edits of its bank: pure, nothing is saved.

A cell of a text that was never graded is missing until it is graded. Each edit takes the columns as
the one before left them.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.formats.fields import check_weight, number
from exampp.records.gradebook import MISSING, DecidedCell, QueryGrades, Ratings
from exampp.records.importance import weighed

Known = Mapping[str, int]
"""Passage id -> the rating that a text of an item has there already."""


@dataclass(frozen=True, slots=True)
class Retire:
    """An item leaves the exam."""

    item_id: str


@dataclass(frozen=True, slots=True)
class Add:
    """An item joins: a new one, or a retired one with the ratings that its text has."""

    item_id: str
    weight: float = 1.0
    subtopic_id: str | None = None
    ratings: Known = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weigh:
    """An item gets another weight."""

    item_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class Reword:
    """An item gets another text, which has these ratings already."""

    item_id: str
    ratings: Known = field(default_factory=dict)


ItemEdit = Retire | Add | Weigh | Reword


def edited(query: QueryGrades, edits: Iterable[ItemEdit]) -> QueryGrades:
    """The query after the edits, one after the other; systems and judgments stay.

    Raises:
        InputError: An item is not in the exam, or one that joins is; a weight is negative.
    """
    for edit in edits:
        query = _EDITS[type(edit)](query, edit)
    return query


def column_of(query: QueryGrades, ratings: Known) -> Ratings:
    """The ratings of one item on all passages of the query, MISSING where none is known."""
    column = [ratings.get(passage, MISSING) for passage in query.passage_ids]
    return np.array(column, np.int16)


def missing_cells(query: QueryGrades) -> int:
    """How many cells of the query's pool have no grade."""
    return int((query.ratings[: query.pool_size] == MISSING).sum())


def _retired(query: QueryGrades, edit: Retire) -> QueryGrades:
    left = replace(query, decided=_on_others(query, edit))
    return _with_items(left, np.delete(np.arange(len(query.item_ids)), _place(query, edit)))


def _added(query: QueryGrades, edit: Add) -> QueryGrades:
    if edit.item_id in query.item_ids:
        raise InputError(f"item {edit.item_id!r} is in the exam already")
    query, subtopic = _with_subtopic(query, edit.subtopic_id)
    last = len(query.item_ids)
    order = np.insert(np.arange(last), bisect(query.item_ids, edit.item_id), last)
    column = column_of(query, edit.ratings)
    wider = replace(
        query,
        item_ids=(*query.item_ids, edit.item_id),
        item_subtopics=np.append(query.item_subtopics, np.int32(subtopic)),
        weights=np.append(query.weights, _checked_weight(edit.weight)),
        importances=(*query.importances, None) if query.importances else (),
        ratings=np.column_stack([query.ratings, column]),
    )
    return _with_items(wider, order)


def _weighed(query: QueryGrades, edit: Weigh) -> QueryGrades:
    weights, place = query.weights.copy(), _place(query, edit)
    weights[place] = _checked_weight(edit.weight)
    words = tuple(
        weighed(word, edit.weight) if index == place else word
        for index, word in enumerate(query.importances)
    )
    return replace(query, weights=weights, importances=words)


def _reworded(query: QueryGrades, edit: Reword) -> QueryGrades:
    ratings = query.ratings.copy()
    ratings[:, _place(query, edit)] = column_of(query, edit.ratings)
    return replace(query, ratings=ratings, decided=_on_others(query, edit))


_EDITS: Mapping[type, Callable[[QueryGrades, Any], QueryGrades]] = {
    Retire: _retired,
    Add: _added,
    Weigh: _weighed,
    Reword: _reworded,
}


def _on_others(query: QueryGrades, edit: Retire | Reword) -> tuple[DecidedCell, ...]:
    """What people decided about other items; these decisions belong to the text of this one."""
    return tuple(cell for cell in query.decided if cell.item_id != edit.item_id)


def _with_items(query: QueryGrades, columns: NDArray[np.intp]) -> QueryGrades:
    return replace(
        query,
        item_ids=tuple(query.item_ids[index] for index in columns.tolist()),
        item_subtopics=query.item_subtopics[columns],
        weights=query.weights[columns],
        importances=tuple(query.importances[i] for i in columns.tolist() if query.importances),
        ratings=np.ascontiguousarray(query.ratings[:, columns]),
    )


def _with_subtopic(query: QueryGrades, subtopic_id: str | None) -> tuple[QueryGrades, int]:
    """The number of a subtopic, which the query gets where it has it not."""
    if subtopic_id is None:
        return query, 0
    if subtopic_id in query.subtopic_ids:
        return query, query.subtopic_ids.index(subtopic_id) + 1
    number = bisect(query.subtopic_ids, subtopic_id) + 1
    of_items = query.item_subtopics
    known = replace(
        query,
        subtopic_ids=(
            *query.subtopic_ids[: number - 1],
            subtopic_id,
            *query.subtopic_ids[number - 1 :],
        ),
        item_subtopics=of_items + (of_items >= number).astype(np.int32),
        judgments=np.insert(query.judgments, number, MISSING, axis=0),
        rankings=tuple(
            replace(one, subtopic=one.subtopic + (one.subtopic >= number)) for one in query.rankings
        ),
    )
    return known, number


def _place(query: QueryGrades, edit: Retire | Weigh | Reword) -> int:
    if edit.item_id not in query.item_ids:
        raise InputError(f"the exam of query {query.query_id!r} has no item {edit.item_id!r}")
    return query.item_ids.index(edit.item_id)


def _checked_weight(weight: float) -> float:
    return check_weight(number(weight, "weight"))
