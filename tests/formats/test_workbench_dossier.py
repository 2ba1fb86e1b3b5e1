"""A workbench file as people look at it agrees with the collection that it makes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import exams
import numpy as np
import pytest

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records import State
from exampp.records.gradebook import Dossier


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[exampp.Collection, exampp.Collection]]:
    """A collection with two graders, and the workbench file that it exports."""
    with exams.make(tmp_path) as collection:
        faults = {exams.QUESTIONS["q2"][0]: "the server fell asleep"}
        collection.grade(ScriptedGrader(["5", "4", *"012345"], default="2", faults=faults))
        collection.grade(ScriptedGrader("blue light"), prompt="question-answering")
        collection.export(tmp_path / "graded.jsonl.gz")
        yield collection, exampp.open(tmp_path / "graded.jsonl.gz")


def cells(dossier: Dossier) -> dict[tuple[str, str], tuple[State, int | None, str | None]]:
    ids = dossier.grades
    return {
        (ids.passage_ids[row], ids.item_ids[column]): (grade.state, grade.rating, grade.reply)
        for (row, column), grade in dossier.automatic.items()
    }


def texts_of_items(dossier: Dossier) -> list[tuple[str, str]]:
    return [(item.item_id, item.text) for item in dossier.items]


@pytest.mark.parametrize("prompt", ["question-self-rating", "question-answering"])
def test_file_and_collection_tell_the_same(
    both: tuple[exampp.Collection, exampp.Collection], tmp_path: Path, prompt: str
) -> None:
    collection, workbench = both
    bank = tmp_path / "bank.jsonl.gz"
    collection.export(bank, "bank")
    stored = list(collection.grades(prompt=prompt).dossiers())
    read = list(workbench.grades(prompt=prompt, bank=str(bank)).dossiers())
    assert len(stored) == len(read) == 2
    for one, other in zip(stored, read, strict=True):
        assert cells(one) == cells(other)
        assert len(cells(one)) > 0
        assert [(i.item_id, i.text) for i in one.items] == [
            (i.item_id, i.text) for i in other.items
        ]
        assert one.texts == other.texts
        assert one.query_text == other.query_text == exams.QUERIES[one.query_id]
        assert np.array_equal(one.grades.ratings, other.grades.ratings)
    for book, dossiers in (
        (collection.grades(prompt=prompt).gradebook, stored),
        (
            workbench.grades(prompt=prompt).gradebook,
            list(workbench.grades(prompt=prompt).dossiers()),
        ),
    ):
        for query, dossier in zip(book.queries, dossiers, strict=True):
            assert query.item_ids == dossier.grades.item_ids
            assert np.array_equal(query.ratings, dossier.grades.ratings)


def test_queries_that_are_asked_for(
    both: tuple[exampp.Collection, exampp.Collection],
) -> None:
    prompt = "question-self-rating"
    for opened in both:
        (one,) = opened.grades(prompt=prompt).dossiers(["q2"])
        assert one.query_id == "q2"
        with pytest.raises(InputError, match="no query 'q9'"):
            list(opened.grades(prompt=prompt).dossiers(["q1", "q9"]))
        with pytest.raises(exampp.AmbiguousGrader):
            list(opened.grades().dossiers())


def test_a_bad_reply_is_named_or_skipped(tmp_path: Path) -> None:
    def passage(name: str, answers: object) -> dict[str, object]:
        rated = [{"question_id": "q/1", "self_rating": 4}]
        grade = {"llm": "m", "self_ratings": rated, "answers": answers}
        return {"paragraph_id": name, "text": "So.", "exam_grades": [grade]}

    path = tmp_path / "graded.jsonl.gz"
    lines = [["a", [passage("p", [["q/1", "4"]])]], ["b", [passage("p", {"q/1": "4"})]]]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(InputError) as caught:
        list(exampp.open(path).grades().dossiers())
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert "answers" in caught.value.field
    found = list(exampp.open(path, on_error="skip").grades().dossiers())
    assert [one.query_id for one in found] == ["a"]


def test_direct_grades_are_of_the_query(shared_data: Path) -> None:
    workbench = exampp.open(shared_data / "llmjudge" / "test-graded.jsonl.gz")
    dossier = next(workbench.grades(kind="query").dossiers())
    assert dossier.grades.item_ids == (dossier.query_id,)
    assert len(dossier.automatic) == len(dossier.texts) > 90


def test_the_real_file_and_its_collection(shared_data: Path, dl19_exam: Path) -> None:
    folder = shared_data / "dl19"
    with exampp.Collection(dl19_exam) as collection:
        workbench = exampp.open(folder / "graded.jsonl.gz")
        for other in workbench.grades(bank=str(folder / "questions.jsonl.gz")).dossiers():
            (one,) = collection.grades().dossiers([other.query_id])
            assert one.texts == other.texts
            assert cells(one) == cells(other)
            assert np.array_equal(one.grades.judgments, other.grades.judgments)
