"""Grades that were asked for once show what is written through their collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.grades.grades import Grades

MEASURES = ["Cover@2"]


def rate(_item: object, passage: object) -> int:
    return 5 if "light" in str(passage) else 0


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as exam:
        exam.grade(rate, name="judge")
        yield exam


def means(grades: Grades) -> dict[str, float | None]:
    return {row.system: row.mean for row in grades.evaluate(MEASURES).rows}


def decide_here(exam: exampp.Collection, grades: Grades) -> None:
    (item, *_) = exam.bank().items("q2")
    grades.decisions.decide("q2", item.item_id, "p3", 5, author="ann")


def retire(exam: exampp.Collection, grades: Grades) -> None:
    (item, *_) = exam.bank().items("q2")
    exam.bank().edit("retire", item.item_id)


def remove(exam: exampp.Collection, grades: Grades) -> None:
    exam.systems.remove("alpha")


def add(exam: exampp.Collection, grades: Grades) -> None:
    row = {"query_id": "q1", "passage_id": "p2", "rank": 1, "score": 1.0, "system": "late"}
    exam.add(runs=[row])


@pytest.mark.parametrize("change", [decide_here, retire, remove, add])
def test_what_is_written_through_the_collection_is_seen(
    exam: exampp.Collection, change: Callable[[exampp.Collection, Grades], None]
) -> None:
    grades = exam.grades("judge")
    before = means(grades)
    change(exam, grades)
    assert means(grades) != before
    assert means(grades) == means(exam.grades("judge"))


def test_what_others_write_is_in_the_next(exam: exampp.Collection, tmp_path: Path) -> None:
    grades = exam.grades("judge")
    before, book = means(grades), grades.gradebook
    with exampp.Collection(tmp_path / "my.exam") as other:
        remove(other, grades)
    assert means(grades) == before
    assert grades.gradebook is book
    assert "alpha" not in means(exam.grades("judge"))
