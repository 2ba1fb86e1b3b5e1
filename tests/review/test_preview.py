"""A preview against what the collection says once the edits are saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.items.edits import apply_change, change_item, find_item
from exampp.records import item_id
from exampp.records.gradebook import QueryGrades
from exampp.review.impact import Baseline, EditPreview
from exampp.store.bank import ItemChange, ItemState

SKY, SUNSET, MAGNET = "What does air scatter?", "Why are sunsets red?", "What makes a magnet?"
NEW = "Which colour does air scatter most?"
SKY_ID, SUNSET_ID, MAGNET_ID = item_id("q1", SKY), item_id("q1", SUNSET), item_id("q2", MAGNET)
OF_Q1 = 3
"""Passages in the pool of q1."""


class Operation(NamedTuple):
    """One edit of an item of q1."""

    operation: str
    item: str
    values: tuple[str, ...] = ()


def rating(ask: Request) -> str:
    """Some rating that depends on both texts."""
    return str(sum(map(ord, ask.item + ask.passage)) % 6)


def grade(collection: exampp.Collection) -> int:
    """Grade what is due; returns how many cells were asked."""
    grader = ScriptedGrader(rating)
    collection.grade(grader, model="scripted")
    return len(grader.calls)


def query_of(collection: exampp.Collection, query_id: str = "q1") -> QueryGrades:
    return next(q for q in collection.grades().gradebook.queries if q.query_id == query_id)


def same(one: QueryGrades, other: QueryGrades) -> bool:
    return (
        one.item_ids == other.item_ids
        and one.subtopic_ids == other.subtopic_ids
        and np.array_equal(one.item_subtopics, other.item_subtopics)
        and np.array_equal(one.weights, other.weights)
        and np.array_equal(one.ratings, other.ratings)
        and one.judgments.shape == other.judgments.shape
    )


def save(collection: exampp.Collection, edits: Sequence[Operation | ItemState]) -> None:
    for edit in edits:
        if isinstance(edit, ItemState):
            text, subtopic = edit.text or "", edit.subtopic_id
            collection.bank().add(
                "q1", text, kind=edit.kind, subtopic_id=subtopic, weight=edit.weight
            )
        else:
            collection.bank().edit(edit.operation, edit.item, *edit.values, query_id="q1")


def changes(
    collection: exampp.Collection, edits: Sequence[Operation | ItemState], query_id: str = "q1"
) -> list[ItemChange]:
    items, found = collection.bank().items(query_id), []
    for edit in edits:
        if isinstance(edit, ItemState):
            change = ItemChange("add", None, edit)
        else:
            known = find_item(items, edit.item, query_id)
            change = change_item(known, edit.operation, edit.values)
        apply_change(items, change)
        found.append(change)
    return found


def preview(
    collection: exampp.Collection, *edits: Operation | ItemState, query_id: str = "q1"
) -> EditPreview:
    stored = collection.grades().stored
    return collection.bank().preview(changes(collection, edits, query_id), stored)


def check(collection: exampp.Collection, *edits: Operation | ItemState) -> EditPreview:
    """Preview, save, compare; grades what is due then."""
    before = exams.tables(collection.path)
    found = preview(collection, *edits)
    assert exams.tables(collection.path) == before
    save(collection, edits)
    assert same(found.queries["q1"], query_of(collection))
    assert grade(collection) == found.to_grade
    return found


def test_each_edit(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        assert check(collection, Operation("reword", SKY_ID, (NEW,))).to_grade == OF_Q1
        # the old wording finds its grades again, and so does the new one
        assert check(collection, Operation("reword", SKY_ID, (SKY,))).to_grade == 0
        assert check(collection, Operation("reword", SKY_ID, (NEW,))).to_grade == 0
        assert check(collection, Operation("weight", SKY_ID, ("2.5",))).to_grade == 0
        assert check(collection, Operation("key", SKY_ID, ("blue",))).to_grade == 0
        assert check(collection, Operation("retire", SKY_ID)).to_grade == 0
        assert check(collection, Operation("restore", SKY_ID)).to_grade == 0
        new = ItemState("q1", "", "How far does light go?", subtopic_id="light", weight=0.5)
        assert check(collection, new).to_grade == OF_Q1
        assert preview(collection, ItemState("q1", "", "blue light", "nugget")).to_grade == 0


def test_decisions_come_back_with_their_text(tmp_path: Path) -> None:
    """A person decided about the old wording; the preview of going back to it knows."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        p1 = query_of(collection).passage_ids.index("p1")
        automatic = int(query_of(collection).ratings[p1, 0])
        other = (automatic + 3) % 6
        collection.grades().decisions.decide("q1", SKY_ID, "p1", other, author="ann")
        check(collection, Operation("reword", SKY_ID, (NEW,)))
        back = check(collection, Operation("reword", SKY_ID, (SKY,)))
        assert back.queries["q1"].ratings[p1, 0] == other


def test_what_was_graded_elsewhere_is_not_asked_again(tmp_path: Path) -> None:
    """q2 asks what q1 asked; they share the passage p4, whose grade is copied."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        found = preview(collection, Operation("reword", MAGNET_ID, (SKY,)), query_id="q2")
        pool = query_of(collection, "q2")
        shared = set(pool.passage_ids) & set(query_of(collection).passage_ids)
        assert shared == {"p4"}
        assert found.to_grade == len(pool.passage_ids) - 1
        collection.bank().edit("reword", MAGNET_ID, SKY)
        assert grade(collection) == found.to_grade


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (Operation("reword", SKY_ID, (SKY,)), "is so already"),
        (Operation("reword", SKY_ID, (" ",)), "the text is blank"),
        (Operation("weight", SKY_ID, ("much",)), "'much' is not"),
        (Operation("retire", MAGNET_ID), "has no item"),
        (ItemState("q1", "", SKY), "has that question already"),
    ],
)
def test_what_the_bank_refuses(tmp_path: Path, edit: Operation | ItemState, what: str) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        with pytest.raises(exampp.InputError, match=what):
            preview(collection, edit)


TEXTS = [SKY, SUNSET, NEW, "How far does light go?"]
PLACES = st.integers(0, 3).map(str)
WORDINGS = st.sampled_from(TEXTS)
WANTED = st.lists(
    st.one_of(
        st.builds(Operation, st.just("reword"), PLACES, st.tuples(WORDINGS)),
        st.builds(Operation, st.just("weight"), PLACES, st.tuples(st.sampled_from("0123"))),
        st.builds(Operation, st.sampled_from(["retire", "restore"]), PLACES),
        st.builds(
            ItemState,
            query_id=st.just("q1"),
            item_id=st.just(""),
            text=WORDINGS,
            subtopic_id=st.sampled_from([None, "light"]),
        ),
    ),
    max_size=8,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WANTED)
def test_any_edits_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Operation | ItemState]
) -> None:
    """Items are meant by their place; what the bank refuses is left out."""
    with exams.make(tmp_path_factory.mktemp("exam")) as collection:
        grade(collection)
        for edit in wanted:
            if isinstance(edit, Operation):
                known = collection.bank().items("q1")
                edit = edit._replace(item=known[int(edit.item) % len(known)].item_id)
            try:
                preview(collection, edit)
            except exampp.InputError:
                continue
            check(collection, edit)


def test_the_impact_of_a_preview_is_that_of_saving(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        before = Baseline.of(collection.grades().gradebook)
        edits: list[Operation | ItemState] = [Operation("retire", SKY_ID), ItemState("q1", "", NEW)]
        found = preview(collection, *edits)
        save(collection, edits)
        after = Baseline.of(collection.grades().gradebook)
        impact = before.impact(found.queries)
        for shift, means in zip(impact.shifts, after.means, strict=True):
            assert {move.system: move.after for move in shift.moves} == dict(
                zip(after.gradebook.systems, means, strict=True)
            )
        assert impact.missing_after == found.to_grade == OF_Q1
