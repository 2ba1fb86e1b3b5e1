"""Edits as people make them, tried out on one query of a collection; nothing is saved.

The edits are those that a bank takes, with the same refusals. A text that an item had before comes
with the grades and decisions that it has, so that the query is as it would be after saving.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exampp.bank.changes import Operation, tried
from exampp.records import subtopic_of_item
from exampp.records.gradebook import QueryGrades
from exampp.review.edits import Add, ItemEdit, Retire, Reword, Weigh, edited
from exampp.store.bank_history import ItemState, states
from exampp.store.cells import DEPTH, cells_to_grade, exam_of, known_ratings
from exampp.store.grades import StoredGrader
from exampp.store.inputs import query_keys


@dataclass(frozen=True, slots=True)
class EditPreview:
    """A query as it would be after some edits, to be given to `Baseline.impact`.

    `to_grade` counts the cells of new and changed texts that the grader must grade then; `states`
    are the items of the query, retired ones too.
    """

    query: QueryGrades
    to_grade: int
    states: tuple[ItemState, ...]


def preview(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    query: QueryGrades,
    edits: Sequence[Operation | ItemState],
    depth: int = DEPTH,
) -> EditPreview:
    """Try out edits, one after the other; an ItemState is an item to be added.

    `query` is the query as it is now (see `Dossier.grades`). Raises InputError for edits that the
    bank would refuse.
    """
    items = states(connection, bank, query_id=query.query_id)
    due: dict[str, ItemState] = {}
    for edit in edits:
        before, after = tried(items, query.query_id, edit)
        if after.kind == grader.identity.kind:
            query = edited(query, _edits(connection, grader, before, after))
            if before is None or after.text != before.text or after.active > before.active:
                due[after.item_id] = after
        items = [after if state is before else state for state in items]
        items += [after] if before is None else []
    exam = exam_of(connection, grader, bank, depth)
    key = query_keys(connection).get(query.query_id, 0)
    now = {state.item_id: state for state in items if state.kind == grader.identity.kind}
    to_grade = sum(
        cells_to_grade(connection, grader.key, exam, key, one.key, one.text or "", one.answers)
        for one in (now[item_id] for item_id in due)
        if one.active
    )
    return EditPreview(query, to_grade, tuple(items))


def _edits(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    before: ItemState | None,
    after: ItemState,
) -> Iterator[ItemEdit]:
    if before is None or after.active > before.active:
        yield Add(
            after.item_id,
            after.weight,
            after.subtopic_id or subtopic_of_item(after.query_id, after.item_id),
            known_ratings(connection, grader, after.key, after.text),
        )
    elif after.active < before.active:
        yield Retire(after.item_id)
    elif after.text != before.text:
        yield Reword(after.item_id, known_ratings(connection, grader, after.key, after.text))
    elif after.weight != before.weight:
        yield Weigh(after.item_id, after.weight)
