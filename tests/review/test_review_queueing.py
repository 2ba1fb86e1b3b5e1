"""The queue of a collection, as people decide."""

from __future__ import annotations

from pathlib import Path

import exams
import pytest

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.records.graders import Grade, State
from exampp.review.queue import Candidate, queue_of
from exampp.store.connection import transaction
from exampp.store.grades import grade_row, graders, put_grades


def grade(collection: exampp.Collection) -> None:
    """Every cell gets 3: one step below the threshold."""
    collection.grade(ScriptedGrader("3"), model="scripted")


def queue(collection: exampp.Collection) -> list[Candidate]:
    connection = collection.connection
    (grader,) = graders(connection)
    return queue_of(connection, grader, "main", collection.grades().gradebook, min_rating=4)


def decide(collection: exampp.Collection, one: Candidate, rating: int | None) -> None:
    collection.grades().decisions.decide(
        one.query_id, one.item_id, one.passage_id, rating, author="ann"
    )


def test_what_is_decided_leaves_the_queue_and_teaches_it(tmp_path: Path) -> None:
    """Nothing is covered: alpha has two passages on q1 and one on q2, beta p4 on both."""
    with exams.make(tmp_path) as collection:
        grade(collection)
        first = queue(collection)
        assert {(one.rating, one.chance) for one in first} == {(3, 0.25)}
        assert len(first) == 3 * 2 + 2
        decide(collection, first[0], 5)
        then = queue(collection)
        assert first[0] not in then
        assert {one.chance for one in then} == {(1 + 10 * 0.25) / 11}
        decide(collection, first[0], 3)
        assert {one.chance for one in queue(collection)} == {(0 + 10 * 0.25) / 11}
        # taken back, it is open again, and nothing is known of such grades
        decide(collection, first[0], None)
        assert queue(collection) == first


def test_how_sure_the_model_was(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        grade(collection)
        connection = collection.connection
        (grader,) = graders(connection)
        (item, passage), *_ = connection.execute(
            "SELECT i.version, p.version FROM item i, passage p WHERE i.kind = 'question' "
            "AND p.passage_id = 'p2' ORDER BY i.item"
        ).fetchall()
        sure = Grade("", State.GRADED, 3, "3!", confidence=0.9)
        with connection, transaction(connection):
            put_grades(connection, [grade_row(grader.key, item, passage, sure)])
        chances = {(one.passage_id, one.item_id): one.chance for one in queue(collection)}
        low = [name for name, chance in chances.items() if chance == pytest.approx(0.1 / 2)]
        assert [name[0] for name in low] == ["p2"]
        assert sorted(set(chances.values())) == [pytest.approx(0.05), 0.25]
